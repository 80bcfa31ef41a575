//! The supervisor of a server that speaks on its standard input and output.
//!
//! Such a server is a program of the user's and is not confined. It gets a session of its own, so that it has no
//! terminal, and everything it started ends with it: when it ends itself, and when its input is closed.

use super::{leave_terminal, tree};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};

/// The argument that asks for it; the program and its arguments come behind it.
pub(super) const SERVER: &str = "--server";

/// How long a server may take to end by itself when its input is closed.
#[cfg(target_os = "linux")]
const GRACE: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 2, tv_nsec: 0 };

/// Runs a server and returns its exit code.
pub(super) fn supervise(mut arguments: impl Iterator<Item = OsString>) -> Result<u8, String> {
    let program = arguments.next().ok_or("no program is named")?;
    leave_terminal();
    #[cfg(target_os = "linux")]
    super::outer::close_inherited();
    let mut command = Command::new(&program);
    command.args(arguments).process_group(0);
    let words = |error: io::Error| format!("{} cannot be run: {error}", program.display());
    if !tree::adopt_orphans() {
        return Err(words(command.exec()));
    }
    let child = command.spawn().map_err(words)?;
    #[cfg(target_os = "linux")]
    wait_for_end(child.id());
    tree::kill_descendants();
    let code = child_code(child);
    tree::end_descendants();
    Ok(code)
}

fn child_code(mut child: Child) -> u8 {
    let status = child.wait();
    let code = status.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
    code.ok().and_then(|code| u8::try_from(code).ok()).unwrap_or(super::NOT_RUN)
}

/// Waits until the server is over, or should be because nobody can speak to it any more.
#[cfg(target_os = "linux")]
fn wait_for_end(child: u32) {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(pid) = Pid::from_raw(child.cast_signed()) else { return };
    // Where the kernel has no handles on processes, closing the input is what ends a server.
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
    let input = io::stdin();
    // The server reads from the same pipe. That the other end is closed shows without asking for anything.
    let mut watched = vec![PollFd::new(&input, PollFlags::empty())];
    watched.extend(handle.iter().map(|handle| PollFd::new(handle, PollFlags::IN)));
    while poll(&mut watched, None) == Err(rustix::io::Errno::INTR) {}
    if let Some(handle) = handle.as_ref().filter(|_| !watched[0].revents().is_empty()) {
        let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&GRACE));
    }
}
