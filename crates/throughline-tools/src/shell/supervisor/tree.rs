//! Processes below this one, where no namespace of processes holds them together.

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group, wait};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Makes this process the parent of orphans below it, and says whether the system can do that.
pub(super) fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(getpid())).is_ok() && Path::new("/proc/self/stat").exists()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = Path::new("/");
        false
    }
}

/// Ends everything below this process and waits until it is gone.
pub(super) fn end_descendants() {
    // Each round ends what it finds and waits until one of them is gone; without children there is nothing to wait for.
    loop {
        kill_descendants();
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

/// Sends everything below this process the signal that nothing survives.
///
/// Groups come first: the kernel signals a group as a whole, so that what multiplies in it cannot get away while the
/// list of processes is read.
pub(super) fn kill_descendants() {
    let own = getpid();
    let found = descendants(own.as_raw_nonzero().get(), &processes());
    let own_group = getpgrp();
    let groups: BTreeSet<i32> = found.iter().map(|(_, process)| process.group).collect();
    for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != own_group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    for pid in found.iter().filter_map(|(pid, _)| Pid::from_raw(*pid)) {
        // It may be gone by now.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A process, as the list of all of them has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    parent: i32,
    group: i32,
}

/// Returns every process that can be seen.
fn processes() -> BTreeMap<i32, Listed> {
    let mut processes = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return processes };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        processes.extend(parse(&stat).map(|process| (pid, process)));
    }
    processes
}

fn parse(stat: &str) -> Option<Listed> {
    // The name before it may hold anything, so count from its closing parenthesis: state, parent, group.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(1).map(str::parse);
    Some(Listed { parent: fields.next()?.ok()?, group: fields.next()?.ok()? })
}

fn descendants(ancestor: i32, processes: &BTreeMap<i32, Listed>) -> Vec<(i32, Listed)> {
    let mut children: BTreeMap<i32, Vec<(i32, Listed)>> = BTreeMap::new();
    for (pid, process) in processes {
        children.entry(process.parent).or_default().push((*pid, *process));
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some((parent, _)) = found.get(next).copied() {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_is_found() {
        assert_eq!(parse("7 (a) b) S 3 5 5 0 -1"), Some(Listed { parent: 3, group: 5 }));
        assert_eq!(parse("nonsense"), None);
        let listed = |parent| Listed { parent, group: 1 };
        let processes = BTreeMap::from([(2, listed(1)), (3, listed(2)), (4, listed(3)), (5, listed(1))]);
        let pids: Vec<i32> = descendants(2, &processes).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(pids, [3, 4]);
    }
}
