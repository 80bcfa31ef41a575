//! What the system can do to confine commands, found out by trying.

use super::Own;
use crate::shell::{Confinement, Namespaces};
use std::io::{self, Write as _};

/// The argument that asks what the system can do.
pub(in crate::shell) const PROBE: &str = "--probe";

/// Tries everything and writes the answer to standard output.
pub(super) fn answer(own: &Own) -> Result<u8, String> {
    let found = find(own);
    let written = writeln!(io::stdout().lock(), "{}", write_probe(&found));
    written.map(|()| 0).map_err(|error| error.to_string())
}

/// Returns what a probe answered.
pub(in crate::shell) fn read_probe(answer: &str) -> Option<Confinement> {
    let mut lines = answer.lines();
    let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let landlock = next("landlock")?;
    let namespaces = next("namespaces")?;
    let flag = |text: &str| text == "yes";
    Some(Confinement {
        landlock: landlock.parse().map_err(|_| landlock.to_owned()),
        namespaces: match namespaces {
            "privileged" => Ok(Namespaces::Privileged),
            "user" => Ok(Namespaces::User),
            reason => Err(reason.to_owned()),
        },
        fresh_proc: flag(next("proc")?),
        private_view: flag(next("view")?),
        filter: flag(next("filter")?),
    })
}

fn write_probe(found: &Confinement) -> String {
    let landlock = found.landlock.as_ref().map_or_else(Clone::clone, ToString::to_string);
    let namespaces = match &found.namespaces {
        Ok(Namespaces::Privileged) => "privileged",
        Ok(Namespaces::User) => "user",
        Err(reason) => reason,
    };
    let flag = |is_set| if is_set { "yes" } else { "no" };
    let (proc, view, filter) = (flag(found.fresh_proc), flag(found.private_view), flag(found.filter));
    format!("landlock {landlock}\nnamespaces {namespaces}\nproc {proc}\nview {view}\nfilter {filter}")
}

#[cfg(target_os = "linux")]
fn find(own: &Own) -> Confinement {
    use super::order::{LandlockUse, Order};
    let mut found = Confinement {
        landlock: Err("it was not tried".to_owned()),
        namespaces: Err("they were not tried".to_owned()),
        fresh_proc: false,
        private_view: false,
        filter: false,
    };
    let is_root = rustix::process::geteuid().is_root();
    let kinds = [Namespaces::Privileged, Namespaces::User];
    let kinds = kinds.into_iter().filter(|kind| is_root || *kind == Namespaces::User);
    let steps = [(true, true), (true, false), (false, false)];
    'found: for kind in kinds {
        for (fresh_proc, private_view) in steps {
            let order = Order { namespaces: Some(kind), fresh_proc, private_view, ..Order::default() };
            match tries(own, &order) {
                Ok(()) => {
                    (found.namespaces, found.fresh_proc, found.private_view) =
                        (Ok(kind), fresh_proc, private_view);
                    break 'found;
                }
                Err(reason) => found.namespaces = Err(reason),
            }
        }
    }
    // These hold for this process from now on, so they come last.
    let order = Order { landlock: LandlockUse::Require, network: true, ..Order::default() };
    found.landlock = super::landlock::restrict(&order);
    found.filter = super::filter::apply(&Order { shielded: vec![i32::MAX], ..Order::default() }).is_ok();
    found
}

/// Has another process do what cannot be undone.
#[cfg(target_os = "linux")]
fn tries(own: &Own, order: &super::order::Order) -> Result<(), String> {
    use super::report::Report;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::Stdio;
    let words = |error: io::Error| error.to_string();
    let (socket, other) = UnixStream::pair().map_err(words)?;
    let mut command = own.command();
    command.args(order.to_arguments()).stdin(Stdio::from(OwnedFd::from(other)));
    command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    let status = command.status().map_err(words)?;
    drop(command);
    match Report::receive(&socket) {
        Some(Report::NotRun(reason)) => Err(reason),
        _ if status.success() => Ok(()),
        _ => Err(format!("the attempt ended with {status}")),
    }
}

#[cfg(not(target_os = "linux"))]
fn find(_: &Own) -> Confinement {
    Confinement::none("Landlock and namespaces are parts of Linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_read_as_it_was_written() {
        let all = Confinement {
            landlock: Ok(7),
            namespaces: Ok(Namespaces::User),
            fresh_proc: true,
            private_view: true,
            filter: true,
        };
        let none = Confinement::none("nothing is here");
        for confinement in [all, none] {
            assert_eq!(read_probe(&write_probe(&confinement)), Some(confinement));
        }
        assert_eq!(read_probe("landlock 7"), None);
    }
}
