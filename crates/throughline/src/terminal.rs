//! The terminal as somebody to ask.
//!
//! An answer counts only if it was typed behind its question. So nothing is read ahead of time: a line is taken from the
//! terminal when somebody waits for it, and whatever was typed before a question is thrown away first.

use std::io::{self, IsTerminal};

/// Says whether somebody can be asked: they see what is asked, and what they type comes here.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

#[cfg(unix)]
pub use unix::{abandonable, drain, read_line};

#[cfg(unix)]
mod unix {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::pipe::{PipeFlags, pipe_with};
    use rustix::termios::{QueueSelector, tcflush};
    use std::io;
    use std::os::fd::OwnedFd;

    /// Ends the waiting for a line when it is dropped, so that nobody is left who would take the next one.
    pub struct Abandon(#[expect(dead_code, reason = "closing it is what it is for")] OwnedFd);

    /// Returns what can be waited beside, and what ends that.
    pub fn abandonable() -> io::Result<(OwnedFd, Abandon)> {
        let (waiting, abandon) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((waiting, Abandon(abandon)))
    }

    /// Forgets what was typed and not read, an unfinished line included.
    pub fn drain() {
        // What is no terminal has nothing to forget.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }

    /// Waits for a line on the terminal. Nothing at its end, or once it was abandoned; then nothing was taken.
    pub fn read_line(abandoned: Option<&OwnedFd>) -> io::Result<Option<String>> {
        let stdin = io::stdin();
        let mut line = Vec::new();
        loop {
            let mut watched = vec![PollFd::new(&stdin, PollFlags::IN)];
            watched.extend(abandoned.map(|end| PollFd::new(end, PollFlags::IN)));
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if watched.get(1).is_some_and(|end| !end.revents().is_empty()) {
                return Ok(None);
            }
            let mut buffer = [0; 4096];
            let read = match rustix::io::read(&stdin, &mut buffer) {
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            line.extend_from_slice(&buffer[..read]);
            if read == 0 && line.is_empty() {
                return Ok(None);
            }
            // The terminal hands out one line at a time; only one in another mode has something behind it.
            if read == 0 || line.contains(&b'\n') {
                let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
        }
    }
}

#[cfg(not(unix))]
pub use elsewhere::{abandonable, drain, read_line};

#[cfg(not(unix))]
mod elsewhere {
    use std::io;

    /// Nothing ends the waiting here.
    pub struct Abandon;

    /// Returns what can be waited beside, and what ends that.
    pub fn abandonable() -> io::Result<((), Abandon)> {
        Ok(((), Abandon))
    }

    /// Forgets nothing: there is no way to.
    pub fn drain() {}

    /// Waits for a line.
    pub fn read_line(_: Option<&()>) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}
