//! A program on a terminal of its own: what it shows, and somebody who types.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long something may take that should happen at once, on a machine that has much to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program on a terminal.
pub struct Pty {
    master: File,
    child: Child,
    shown: Vec<u8>,
    /// How much of what was shown somebody has waited for already.
    seen: usize,
}

impl Pty {
    /// Starts a program, with something typed before it does anything.
    pub fn start(mut command: Command, typed_ahead: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut master = File::from(master);
        master.write_all(typed_ahead.as_bytes()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        Self { master, child, shown: Vec::new(), seen: 0 }
    }

    /// Types.
    pub fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until these words are shown, behind those that were waited for before; returns what stands before them.
    pub fn until(&mut self, words: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.shown[self.seen..]).into_owned();
            if let Some(at) =
                self.shown[self.seen..].windows(words.len()).position(|it| it == words.as_bytes())
            {
                let before = String::from_utf8_lossy(&self.shown[self.seen..self.seen + at]).into_owned();
                self.seen += at + words.len();
                return before;
            }
            assert!(self.read(), "it ended without {words:?}: {text}");
        }
    }

    /// Waits until the program ends; returns what was not waited for yet.
    pub fn end(mut self) -> (String, ExitStatus) {
        while self.read() {}
        let status = self.child.wait().unwrap();
        (String::from_utf8_lossy(&self.shown[self.seen..]).into_owned(), status)
    }

    /// Reads what is shown next; false at the end.
    fn read(&mut self) -> bool {
        let began = Instant::now();
        loop {
            let mut watched = [PollFd::new(&self.master, PollFlags::IN)];
            let ready = poll(&mut watched, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap();
            if ready > 0 {
                break;
            }
            let shown = String::from_utf8_lossy(&self.shown);
            assert!(began.elapsed() < PATIENCE, "it hangs; it showed {shown}");
        }
        let mut buffer = [0; 4096];
        // When the last end of a terminal is closed, reading fails.
        let read = self.master.read(&mut buffer).unwrap_or(0);
        self.shown.extend_from_slice(&buffer[..read]);
        read > 0
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
