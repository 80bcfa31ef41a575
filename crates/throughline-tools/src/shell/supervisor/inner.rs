//! The inner stage: confines itself, and runs the command below itself or becomes it.

use super::order::{LandlockUse, Order, Task};
use super::report::Report;
use super::{exit_code, filter, landlock, leave_terminal, limit_resources, mounts, network};
use crate::shell::Namespaces;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal, wait,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// Runs an order and returns the exit code of the command.
pub(super) fn run(order: &Order) -> Result<u8, String> {
    leave_terminal();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("its end cannot be tied to the supervisor's: {error}"))?;
    if !is_wanted() {
        return Err("the supervisor is gone".to_owned());
    }
    confine(order)?;
    match &order.task {
        Task::Try => Ok(0),
        Task::Run { program, arguments } if order.namespaces.is_some() => {
            let code = run_below(program, arguments)?;
            let sought_network = !order.network && network::was_sought();
            // The exit code arrives in any case.
            let _ = Report::Ran { sought_network }.send();
            Ok(code)
        }
        Task::Run { program, arguments } => {
            let error = Command::new(program).args(arguments).stdin(Stdio::null()).exec();
            Err(format!("{} cannot be run: {error}", program.display()))
        }
    }
}

/// Says whether the outer stage was still there after our end was tied to its own.
fn is_wanted() -> bool {
    let input = std::io::stdin();
    let mut watched = [PollFd::new(&input, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut watched, Some(&now)), Ok(0))
}

/// Confines this process, and with it everything it starts.
fn confine(order: &Order) -> Result<(), String> {
    if let Some(namespaces) = order.namespaces {
        if !order.network {
            network::raise_loopback()?;
        }
        mounts::arrange(order)?;
        if namespaces == Namespaces::User {
            give_up(CapabilitySet::empty())?;
        }
    }
    limit_resources(order)?;
    if order.landlock == LandlockUse::Require {
        landlock::restrict(order).map_err(|reason| format!("it cannot be confined: {reason}"))?;
    }
    if order.landlock == LandlockUse::Require || order.namespaces.is_some() || order.filter {
        // Root may otherwise read every process's memory, and with it the keys in our own environment, and type into
        // every terminal.
        give_up(
            CapabilitySet::CHOWN
                | CapabilitySet::DAC_OVERRIDE
                | CapabilitySet::FOWNER
                | CapabilitySet::FSETID,
        )?;
    }
    if order.namespaces.is_some() {
        // Not before mounts are made. Programs that are run become readable again.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| format!("privileges cannot be given up: {error}"))?;
    }
    if order.filter {
        filter::apply(order)?;
    }
    Ok(())
}

/// Gives up all capabilities but these.
fn give_up(kept: CapabilitySet) -> Result<(), String> {
    let words = |error| format!("capabilities cannot be given up: {error}");
    let permitted = capabilities(None).map_err(words)?.permitted & kept;
    let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(words)
}

/// Runs the command as the first process of its namespace has to: whoever loses its parent becomes our child.
fn run_below(program: &OsString, arguments: &[OsString]) -> Result<u8, String> {
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).spawn();
    let child = child.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let child = child.id().cast_signed();
    // What is left runs no longer than this process does.
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == child => return Ok(exit_code(status)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("{} cannot be waited for: {error}", program.display())),
        }
    }
}
