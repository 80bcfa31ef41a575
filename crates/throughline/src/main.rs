//! The `throughline` binary: reads arguments, runs a command, turns its outcome into an exit code.

mod args;
mod commands;
mod exit;
mod input;
mod output;
mod reload;
mod signals;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    args.color.write_global();
    match commands::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::report_error(&error);
            error.code()
        }
    }
}
