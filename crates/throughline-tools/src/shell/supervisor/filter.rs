//! Filters of system calls, for where there are no namespaces.
//!
//! Sockets other than Unix ones cannot be made, and `io_uring`, which would make them without a system call, is not
//! there. The processes that watch over the command cannot be signalled. Nothing can be typed into a terminal.

use super::order::Order;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Programs of the x32 interface call the same system calls by numbers with this bit.
const X32_BIT: i64 = 0x4000_0000;

/// Applies the filters that an order asks for.
pub(super) fn apply(order: &Order) -> Result<(), String> {
    let words = |error: seccompiler::Error| format!("system calls cannot be filtered: {error}");
    for (rules, errno) in filters(order).map_err(|error| words(error.into()))? {
        let architecture = std::env::consts::ARCH.try_into();
        let filter = architecture.and_then(|architecture| {
            let action = SeccompAction::Errno(errno.cast_unsigned());
            SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)
        });
        let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
        let program = program.map_err(|error| words(error.into()))?;
        seccompiler::apply_filter(&program).map_err(words)?;
    }
    Ok(())
}

/// Returns the rules, each with the error that a call gets which matches one.
fn filters(order: &Order) -> Result<Vec<(Rules, i32)>, seccompiler::BackendError> {
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| equals(1, request));
    let typing = typing.into_iter().collect::<Result<_, _>>()?;
    let mut filters = vec![(with_x32([(libc::SYS_ioctl, typing)]), libc::EPERM)];
    if !order.network {
        let unix = u64::from(libc::AF_UNIX.cast_unsigned());
        let other_families = SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            unix,
        )?])?;
        filters.push((with_x32([(libc::SYS_socket, vec![other_families])]), libc::ENETUNREACH));
        filters.push((with_x32([(libc::SYS_io_uring_setup, Vec::new())]), libc::ENOSYS));
    }
    if !order.shielded.is_empty() {
        // Everybody, the process itself, and its group.
        let targets = order.shielded.iter().flat_map(|pid| [*pid, -*pid]).chain([-1]);
        let rules: Vec<SeccompRule> = targets.map(targets_process).collect::<Result<_, _>>()?;
        let calls = [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_open,
        ];
        filters.push((with_x32(calls.map(|call| (call, rules.clone()))), libc::EPERM));
    }
    Ok(filters)
}

fn targets_process(pid: i32) -> Result<SeccompRule, seccompiler::BackendError> {
    equals(0, u64::from(pid.cast_unsigned()))
}

fn equals(argument: u8, value: impl Into<u64>) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value.into())?;
    SeccompRule::new(vec![condition])
}

fn with_x32<const N: usize>(rules: [(i64, Vec<SeccompRule>); N]) -> Rules {
    let mut all = Rules::new();
    for (call, rules) in rules {
        if cfg!(target_arch = "x86_64") {
            all.insert(call | X32_BIT, rules.clone());
        }
        all.insert(call, rules);
    }
    all
}
