//! What the supervisor reports, on the socket that is its input.
//!
//! The command has no way to that socket, so that nothing it prints can be taken for a report.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// How a command went, as its supervisor saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shell) enum Report {
    /// It was not run, for this reason.
    NotRun(String),
    /// It was run.
    Ran {
        /// Whether it tried to reach something beyond its own network namespace.
        sought_network: bool,
    },
}

const LENGTH_MAX: u64 = 64 * 1024;

impl Report {
    /// Writes it to the standard input, which is a socket.
    pub(super) fn send(&self) -> io::Result<()> {
        let mut socket = UnixStream::from(rustix::io::dup(io::stdin())?);
        let text = match self {
            Self::NotRun(reason) => format!("not-run {reason}\n"),
            Self::Ran { sought_network } => format!("ran {}\n", u8::from(*sought_network)),
        };
        socket.write_all(text.as_bytes())
    }

    /// Reads what a supervisor wrote that is gone by now.
    pub(in crate::shell) fn receive(socket: &UnixStream) -> Option<Self> {
        // What is there is there; if somebody still held the other end, nobody would wait for it.
        socket.set_nonblocking(true).ok()?;
        let mut bytes = Vec::new();
        let _ = socket.take(LENGTH_MAX).read_to_end(&mut bytes);
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.trim_end().split_once(' ')?;
        match kind {
            "not-run" => Some(Self::NotRun(rest.to_owned())),
            "ran" => Some(Self::Ran { sought_network: rest == "1" }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_meant() {
        assert_eq!(Report::parse("ran 1\n"), Some(Report::Ran { sought_network: true }));
        assert_eq!(Report::parse("not-run no room left\n"), Some(Report::NotRun("no room left".into())));
        assert_eq!(Report::parse(""), None);
    }
}
