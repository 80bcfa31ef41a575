//! Landlock: what a command may read and write, and whom it may signal.

use super::devices;
use super::order::Order;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// What the system needs for its programs to run, as far as it is there.
pub(super) const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/nix",
    "/snap",
    "/run/current-system",
    "/run/systemd/resolve",
    "/home/linuxbrew",
];

/// Puts this process under Landlock and returns the version of its interface, or why it is not there.
pub(super) fn restrict(order: &Order) -> Result<i32, String> {
    let status = apply(order).map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("the kernel has Landlock, but it is not enabled".to_owned())
        }
        // A filter of system calls, as containers have, looks the same.
        (RulesetStatus::NotEnforced, _) => Err("the kernel has no Landlock, or hides it".to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as i32),
        (_, _) => Err("Landlock does not say what it does".to_owned()),
    }
}

fn apply(order: &Order) -> Result<RestrictionStatus, RulesetError> {
    // The newest that is known; of it, the kernel does what it can.
    let abi = ABI::V9;
    let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    let device = AccessFs::from_file(abi);
    let mut ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(abi))?;
    // In a network namespace of its own a command may listen and connect as it likes.
    if !order.network && order.namespaces.is_none() {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let ruleset = ruleset
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(&order.readable, read))?
        .add_rules(path_beneath_rules(devices::READABLE, read))?
        .add_rules(path_beneath_rules(devices::WRITABLE, device))?
        .add_rules(path_beneath_rules(&order.writable, all))?;
    let ruleset = match order.private_view {
        true => ruleset
            .add_rules(path_beneath_rules(["/dev"], read))?
            .add_rules(path_beneath_rules(devices::PRIVATE_TERMINALS, device))?
            .add_rules(path_beneath_rules(devices::PRIVATE_DIRECTORIES, all))?,
        false => ruleset,
    };
    ruleset.restrict_self()
}
