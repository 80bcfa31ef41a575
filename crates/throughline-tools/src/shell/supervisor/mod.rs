//! The supervisor: runs one command, confined, and ends everything that the command started.
//!
//! It is this program, executed again, in two stages. The *outer* stage stays outside of everything that confines the
//! command: it makes the namespaces, starts the inner stage in them, and waits. The *inner* stage confines itself and
//! runs the command below itself. When the command is over, or the socket that is the outer stage's input is closed,
//! which also happens when the program that started it dies, the outer stage ends the inner one, and with it the
//! namespace of processes and everything in it.

#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
mod order;
#[cfg(target_os = "linux")]
mod outer;
mod probe;
mod report;
mod server;
mod tree;

use super::Shell;
use order::{Order, Task};
pub(super) use probe::{PROBE, read_probe};
pub(super) use report::Report;
use rustix::process::{Resource, Rlimit, WaitStatus, getrlimit, setrlimit};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit code of a supervisor that did not run the command; its report says why.
const NOT_RUN: u8 = 125;
/// The argument that makes the inner stage of a process.
#[cfg(target_os = "linux")]
const INNER: &str = "--inner";

/// Runs one command confined, as the arguments say, and exits as it does.
///
/// This is for a program that is the [launcher](super::Launcher::Confined) of a [`Shell`]: it calls this before it does
/// anything else, above all before it starts a thread. The arguments must be the last ones of the process: the program
/// is executed again with those before them.
pub fn confined_shell_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let first = arguments.first().and_then(|it| it.to_str()).unwrap_or_default();
    let rest = arguments.iter().skip(1).cloned();
    let code = match first {
        PROBE => probe::answer(&Own::new(&arguments)),
        server::SERVER => server::supervise(rest),
        #[cfg(target_os = "linux")]
        INNER => Order::parse(rest).and_then(|order| inner::run(&order)),
        _ => {
            let own = Own::new(&arguments);
            Order::parse(arguments.iter().cloned()).and_then(|order| run(order, &own))
        }
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(reason) => {
            // A server's input is no socket: there, standard error goes to the log. With nobody to listen, the exit
            // code has to do.
            if first == server::SERVER {
                let _ = writeln!(io::stderr(), "{reason}");
            } else {
                let _ = Report::NotRun(reason).send();
            }
            ExitCode::from(NOT_RUN)
        }
    }
}

/// Returns the arguments that make the supervisor run `script` with the program of `shell`.
pub(super) fn order(shell: &Shell, root: &Path, protected: Vec<PathBuf>, script: &str) -> Vec<OsString> {
    let mut order = Order::for_command(shell, root, protected);
    order.task =
        Task::Run { program: shell.program.clone().into(), arguments: vec!["-c".into(), script.into()] };
    order.to_arguments()
}

/// How this program is executed again.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is one stage only"))]
struct Own {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Own {
    /// Returns it, given what of the process's arguments is for the supervisor.
    fn new(rest: &[OsString]) -> Self {
        let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        arguments.truncate(arguments.len().saturating_sub(rest.len()));
        let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        Self { program, arguments }
    }

    #[cfg(target_os = "linux")]
    fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

#[cfg(target_os = "linux")]
fn run(order: Order, own: &Own) -> Result<u8, String> {
    outer::run(order, own)
}

/// Where there is neither Landlock nor a namespace, the command takes this process's place.
#[cfg(not(target_os = "linux"))]
fn run(order: Order, _: &Own) -> Result<u8, String> {
    use std::os::unix::process::CommandExt as _;
    leave_terminal();
    limit_resources(&order)?;
    let Task::Run { program, arguments } = &order.task else { return Ok(0) };
    let error = std::process::Command::new(program).args(arguments).stdin(std::process::Stdio::null()).exec();
    Err(format!("{} cannot be run: {error}", program.display()))
}

/// Begins a session of its own, which has no terminal.
fn leave_terminal() {
    // Whoever leads a group already is in a session of its own as far as it can be.
    let _ = rustix::process::setsid();
}

fn limit_resources(order: &Order) -> Result<(), String> {
    for (limit, value) in &order.limits {
        lower(limit.resource(), *value)
            .map_err(|error| format!("a resource limit cannot be set: {error}"))?;
    }
    lower(Resource::Core, 0).map_err(|error| format!("core dumps cannot be turned off: {error}"))
}

/// Lowers a limit, as far as it is not lower already.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?)
}

/// Returns an exit code as a shell would: 128 and the signal for what a signal ended.
fn exit_code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
