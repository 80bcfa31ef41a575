//! The `throughline` binary: reads arguments, runs a command, turns its outcome into an exit code.

mod args;
mod commands;
mod completion;
mod configuration;
mod exit;
mod input;
mod log;
mod output;
mod private;
mod reload;
mod signals;
mod terminal;

use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// Gives memory back to the system soon after it is freed, whichever thread had it. The system's own allocator keeps some of
/// it for each thread, so that a few large requests would leave the gateway large for good.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else, and before any thread: what confines a process holds for the threads it has.
    let mut typed = std::env::args_os().skip(1);
    if typed.next().is_some_and(|first| first == commands::CONFINED_SHELL) {
        return throughline_tools::confined_shell_main(typed);
    }
    completion::answer();
    let args = match args::Args::from_arg_matches(&args::group_commands(args::Args::command()).get_matches())
    {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    args.color.write_global();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::report_error(&error);
            error.code()
        }
    }
}
