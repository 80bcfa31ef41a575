//! The commands, one file each.

mod convert;

use crate::args::{Args, Command};
use crate::exit::CommandError;
use crate::output;
use clap::CommandFactory;

/// Runs the command that was asked for.
pub fn run(args: &Args) -> Result<(), CommandError> {
    match &args.command {
        Command::Convert(convert) => convert::run(convert, args.quiet),
        Command::Completions { shell } => completions(*shell),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "throughline", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
