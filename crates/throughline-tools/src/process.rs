//! Groups of processes, which are ended as a whole, and sessions, which have no terminal.

use tokio::process::Child;

/// Returns a command that begins a session of its own, or a group of its own where there is no program for that.
///
/// A session is left to `setsid(1)`, since nothing may be done between fork and exec in safe Rust.
#[cfg(unix)]
pub(crate) fn in_own_session(program: &std::path::Path) -> tokio::process::Command {
    let setsid = ["/usr/bin/setsid", "/bin/setsid"].iter().find(|it| std::path::Path::new(it).is_file());
    match setsid {
        Some(setsid) => {
            let mut command = tokio::process::Command::new(setsid);
            command.arg(program);
            command
        }
        None => {
            let mut command = tokio::process::Command::new(program);
            command.process_group(0);
            command
        }
    }
}

/// A group of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

/// Ends a group of processes when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Group);

impl Group {
    /// Returns the group that `child` was started as the leader of.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "there are no groups of processes"))]
    pub(crate) fn of(child: &Child) -> Self {
        Self {
            #[cfg(unix)]
            leader: child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())),
        }
    }

    /// Ends every process of the group.
    pub(crate) fn kill(self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            // That nothing is left to be killed is as good.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }

    pub(crate) fn guard(self) -> Guard {
        Guard(self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.kill();
    }
}
