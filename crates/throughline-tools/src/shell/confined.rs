//! The supervisor: runs one command below itself, under Landlock and resource limits.
//!
//! It is told what to do by its arguments and is no interface for people. It makes itself the parent of whatever the
//! command leaves behind, so that everything can be found and ended: when the command is over, and when the other end
//! of its input is closed, which also happens when the program that started it dies.

use super::{Confinement, Shell, environment};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, setrlimit, wait,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The argument that asks what the kernel can do.
pub(super) const PROBE: &str = "--probe";
/// The exit code when the command was not run, because it could not be confined or started.
pub(super) const UNCONFINED: u8 = 125;
/// What the reason for that begins with, on stderr.
const FAILURE: &str = "throughline-shell: ";

/// What the system needs for its programs to run, as far as it is there.
const SYSTEM: &[&str] = &[
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
    "/dev",
    "/nix",
    "/snap",
    "/run/current-system",
    "/run/systemd/resolve",
    "/home/linuxbrew",
];
/// Devices that may be written to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// What is to be run, and how.
#[derive(Debug, Default)]
struct Order {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    limits: Vec<(Resource, u64)>,
    deny_tcp: bool,
    /// Whether nothing is run if it cannot be confined.
    require: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

/// Runs one command confined, as the arguments say, and exits as it does.
///
/// This is for a program that is the [launcher](super::Launcher::Confined) of a [`Shell`]: it calls this before it does
/// anything else, above all before it starts a thread.
pub fn confined_shell_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter().peekable();
    if arguments.peek().is_some_and(|it| it == PROBE) {
        let mut out = io::stdout().lock();
        return match writeln!(out, "{}", written_probe(&restrict(&Order::default()))) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    match Order::read(arguments).and_then(|order| supervise(&order)) {
        Ok(code) => ExitCode::from(code),
        Err(reason) => {
            // With nobody to listen, the exit code has to do.
            let _ = writeln!(io::stderr(), "{FAILURE}{reason}");
            ExitCode::from(UNCONFINED)
        }
    }
}

/// Returns the arguments that tell the supervisor what `shell` allows; the program comes behind them.
pub(super) fn order(shell: &Shell, root: &Path) -> Vec<OsString> {
    let settings = &shell.settings;
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |flag: &str, value: OsString| arguments.extend([flag.into(), value]);
    for path in environment::toolchains(&settings.variables).into_iter().chain(settings.readable.clone()) {
        add("--read", path.into());
    }
    let own = [root.to_owned(), shell.temp.path().to_owned()];
    for path in own.into_iter().chain(settings.writable.clone()) {
        add("--write", path.into());
    }
    let resources = &settings.resources;
    let limits = [
        ("--cpu", resources.cpu_seconds),
        ("--file-size", resources.file_bytes),
        ("--processes", resources.processes),
        ("--address-space", resources.address_space_bytes),
    ];
    for (flag, limit) in limits {
        if let Some(limit) = limit {
            add(flag, limit.to_string().into());
        }
    }
    if settings.deny_tcp {
        arguments.push("--deny-tcp".into());
    }
    if matches!(shell.confinement, Confinement::Landlock(_)) {
        arguments.push("--require".into());
    }
    arguments.push("--".into());
    arguments
}

/// Returns what a probe answered.
pub(super) fn read_probe(answer: &str) -> Option<Confinement> {
    let (kind, rest) = answer.split_once(' ')?;
    match kind {
        "landlock" => rest.parse().ok().map(Confinement::Landlock),
        "none" => Some(Confinement::None(rest.to_owned())),
        _ => None,
    }
}

/// Returns why a command was not run, if that is what stderr says.
pub(super) fn read_failure(stderr: &[u8]) -> Option<String> {
    let reason = str::from_utf8(stderr).ok()?.strip_prefix(FAILURE)?;
    Some(format!("the command was not run: {}", reason.trim()))
}

fn written_probe(confinement: &Result<Confinement, String>) -> String {
    match confinement {
        Ok(Confinement::Landlock(abi)) => format!("landlock {abi}"),
        Ok(Confinement::None(reason)) | Err(reason) => format!("none {reason}"),
    }
}

impl Order {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut order = Self::default();
        while let Some(flag) = arguments.next() {
            let flag = flag.to_string_lossy().into_owned();
            let resource = match flag.as_str() {
                "--" => {
                    order.program = arguments.next().ok_or("no program is named")?;
                    order.arguments = arguments.collect();
                    return Ok(order);
                }
                "--deny-tcp" => {
                    order.deny_tcp = true;
                    continue;
                }
                "--require" => {
                    order.require = true;
                    continue;
                }
                "--cpu" => Some(Resource::Cpu),
                "--file-size" => Some(Resource::Fsize),
                "--processes" => Some(Resource::Nproc),
                "--address-space" => Some(Resource::As),
                _ => None,
            };
            let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match (flag.as_str(), resource) {
                ("--read", _) => order.readable.push(value.into()),
                ("--write", _) => order.writable.push(value.into()),
                (_, Some(resource)) => {
                    let number = value.to_str().and_then(|text| text.parse().ok());
                    order.limits.push((resource, number.ok_or_else(|| format!("{flag} needs a number"))?));
                }
                _ => return Err(format!("{flag} is not known")),
            }
        }
        Err("no program is named".to_owned())
    }
}

/// Runs the command and returns its exit code.
fn supervise(order: &Order) -> Result<u8, String> {
    for (resource, limit) in &order.limits {
        limited(*resource, *limit).map_err(|error| format!("a resource limit cannot be set: {error}"))?;
    }
    limited(Resource::Core, 0).map_err(|error| format!("core dumps cannot be turned off: {error}"))?;
    let confinement = restrict(order);
    if order.require && !matches!(confinement, Ok(Confinement::Landlock(_))) {
        return Err(format!("it cannot be confined: {}", written_probe(&confinement)));
    }
    shed_capabilities(&confinement)?;
    let mut command = Command::new(&order.program);
    command.args(&order.arguments).stdin(Stdio::null());
    if !adopt_orphans() {
        return Err(format!("{} cannot be run: {}", order.program.display(), command.exec()));
    }
    // Before the command is started: a thread may not outlive the wish to end it.
    std::thread::spawn(end_with_input);
    let child =
        command.spawn().map_err(|error| format!("{} cannot be run: {error}", order.program.display()))?;
    Ok(wait_for(child.id().cast_signed()))
}

/// Lowers a limit, as far as it is not lower already.
fn limited(resource: Resource, limit: u64) -> io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// Gives up what root may do beyond files: among other things, to read the memory of every process, and with it the
/// keys in our own environment, which Landlock alone would not keep root from.
fn shed_capabilities(confinement: &Result<Confinement, String>) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    if matches!(confinement, Ok(Confinement::Landlock(_))) {
        use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
        let kept = CapabilitySet::CHOWN
            | CapabilitySet::DAC_OVERRIDE
            | CapabilitySet::FOWNER
            | CapabilitySet::FSETID;
        let shed = |error| format!("capabilities cannot be given up: {error}");
        let permitted = capabilities(None).map_err(shed)?.permitted & kept;
        let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
        // Landlock forbids to gain privileges, so that no program that is run gets them back.
        set_capabilities(None, sets).map_err(shed)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = confinement;
    Ok(())
}

/// Makes this process the parent of orphans below it, and says whether the system can do that.
fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
            && Path::new("/proc/self/stat").exists()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// Ends everything when the input is closed.
fn end_with_input() {
    let mut rest = Vec::new();
    // An error means that it is closed just as well.
    let _ = io::stdin().read_to_end(&mut rest);
    kill_descendants();
}

/// Waits for the command, then ends what it left behind.
fn wait_for(command: i32) -> u8 {
    let mut code = UNCONFINED;
    while let Ok(Some((pid, status))) = wait(WaitOptions::empty()) {
        if pid.as_raw_nonzero().get() == command {
            code = exit_code(status);
            break;
        }
    }
    // Each round ends what it finds and waits until one of them is gone; without children there is nothing to wait for.
    loop {
        kill_descendants();
        if wait(WaitOptions::empty()).is_err() {
            return code;
        }
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn kill_descendants() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for pid in descendants(own, &parents()) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may be gone by now.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns the parent of every process.
fn parents() -> BTreeMap<i32, i32> {
    let mut parents = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return parents };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name before it may hold anything, so count from its closing parenthesis: state, then parent.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    parents
}

fn descendants(ancestor: i32, parents: &BTreeMap<i32, i32>) -> Vec<i32> {
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, it)| **it == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Puts this process under Landlock.
#[cfg(target_os = "linux")]
fn restrict(order: &Order) -> Result<Confinement, String> {
    use landlock::{LandlockStatus, RulesetStatus};
    let status = landlocked(order).map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Ok(Confinement::None("the kernel has Landlock, but it is not enabled".to_owned()))
        }
        (RulesetStatus::NotEnforced, _) => Ok(Confinement::None("the kernel has no Landlock".to_owned())),
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(Confinement::Landlock(effective_abi as i32))
        }
        (_, _) => Err("Landlock does not say what it does".to_owned()),
    }
}

#[cfg(target_os = "linux")]
fn landlocked(order: &Order) -> Result<landlock::RestrictionStatus, landlock::RulesetError> {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
        path_beneath_rules,
    };
    // The newest that is known; of it, the kernel does what it can.
    let abi = ABI::V9;
    let (read, all) = (AccessFs::from_read(abi), AccessFs::from_all(abi));
    let device = AccessFs::from_file(abi);
    let mut ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(abi))?;
    if order.deny_tcp {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    ruleset
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(&order.readable, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(&order.writable, all))?
        .restrict_self()
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Order) -> Result<Confinement, String> {
    Ok(Confinement::None("Landlock is a part of Linux".to_owned()))
}
