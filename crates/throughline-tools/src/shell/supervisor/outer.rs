//! The outer stage: makes namespaces, starts the inner stage in them, waits, and ends it.
//!
//! It is one thread only: a user namespace is made for a process of one thread, and one that has made a namespace of
//! processes can start no further thread.

use super::order::{Order, Task};
use super::report::Report;
use super::{INNER, Own, exit_code, leave_terminal, tree};
use crate::shell::Namespaces;
use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open,
    set_dumpable_behavior, waitpid,
};
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

/// How often is looked, where the kernel has no handles on processes to wait for.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Runs an order and returns the exit code of the command.
pub(super) fn run(mut order: Order, own: &Own) -> Result<u8, String> {
    leave_terminal();
    close_inherited();
    let adopts = tree::adopt_orphans();
    if order.namespaces.is_none() {
        let watchers = [Some(getpid()), getppid()];
        order.shielded = watchers.iter().flatten().map(|pid| pid.as_raw_nonzero().get()).collect();
    }
    if let Some(namespaces) = order.namespaces {
        enter(namespaces, order.network)?;
    }
    // A command must not be able to read this process's memory or take it over as a debugger.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let (socket, other) = UnixStream::pair().map_err(|error| format!("no socket: {error}"))?;
    let mut command = own.command();
    command.arg(INNER).args(order.to_arguments()).stdin(Stdio::from(OwnedFd::from(other)));
    let child =
        command.spawn().map_err(|error| format!("{} cannot be run: {error}", own.program.display()))?;
    drop(command);
    let code = watch(child.id().cast_signed(), order.namespaces.is_none() && adopts);
    let report = Report::receive(&socket);
    match report {
        Some(Report::NotRun(reason)) => Err(reason),
        Some(report) => {
            let _ = report.send();
            Ok(code)
        }
        // The inner stage became the command itself, or was ended.
        None => {
            if order.task != Task::Try {
                let _ = Report::Ran { sought_network: false }.send();
            }
            Ok(code)
        }
    }
}

/// Closes what was left open by whoever started us; the command must have nothing but its input and output.
pub(super) fn close_inherited() {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let open: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in open {
        // One of them was the listing itself, and is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Makes the namespaces. This process stays in the namespace of processes it is in; its children do not.
fn enter(namespaces: Namespaces, network: bool) -> Result<(), String> {
    let mut flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if !network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    if namespaces == Namespaces::Privileged {
        return unshare(flags).map_err(|error| format!("namespaces cannot be made: {error}"));
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(flags | CloneFlags::CLONE_NEWUSER)
        .map_err(|error| format!("namespaces of an ordinary user cannot be made: {error}"))?;
    // The same user and group inside as outside.
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (name, text) in maps {
        fs::write(format!("/proc/self/{name}"), text)
            .map_err(|error| format!("a user namespace cannot be set up: {name}: {error}"))?;
    }
    keep_capabilities().map_err(|error| format!("capabilities cannot be handed on: {error}"))
}

/// Hands on to the inner stage, which is another program to the kernel, what it needs to set the namespaces up.
fn keep_capabilities() -> rustix::io::Result<()> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    let mut sets = capabilities(None)?;
    sets.inheritable |= needed;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true)
}

/// Waits until the inner stage is over or nobody wants it any more, ends it, and returns its exit code.
fn watch(child: i32, sweeps: bool) -> u8 {
    let Some(child) = Pid::from_raw(child) else { return super::NOT_RUN };
    let handle = pidfd_open(child, PidfdFlags::empty()).ok();
    let mut code = super::NOT_RUN;
    let mut is_over = false;
    while !is_over {
        let is_unwanted = wait_for_news(handle.as_ref());
        if is_unwanted {
            // In its namespace it is the first process, and everything ends with it.
            let _ = kill_process(child, Signal::KILL);
            if sweeps {
                tree::kill_descendants();
            }
        }
        let options = if is_unwanted { WaitOptions::empty() } else { WaitOptions::NOHANG };
        match waitpid(Some(child), options) {
            Ok(Some((_, status))) => {
                code = exit_code(status);
                is_over = true;
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => is_over = true,
        }
    }
    if sweeps {
        tree::end_descendants();
    }
    code
}

/// Waits until the inner stage ends or our input is closed, and says whether it is the latter.
fn wait_for_news(handle: Option<&OwnedFd>) -> bool {
    let input = std::io::stdin();
    let mut watched = vec![PollFd::new(&input, PollFlags::IN)];
    watched.extend(handle.map(|handle| PollFd::new(handle, PollFlags::IN)));
    let pause = handle.is_none().then_some(&PAUSE);
    match poll(&mut watched, pause) {
        Ok(_) => !watched[0].revents().is_empty(),
        Err(_) => false,
    }
}
