//! The commands, one file each.

mod backends;
mod brief;
mod carry;
mod compact;
mod config;
mod convert;
mod demo;
mod doctor;
mod env;
mod export;
pub mod history;
mod import;
mod ls;
mod man;
mod mcp;
mod models;
mod open;
mod prune;
mod replay;
mod run;
mod search;
mod serve;
mod show;
mod sim;
mod start;
mod store;
mod switch;
mod trash;
mod trust;
mod usage;

use crate::args::{Args, Command};
use crate::completion;
use crate::exit::CommandError;
use crate::log;
pub use env::names as client_names;
pub use run::CONFINED_SHELL;

/// Runs the command that was asked for.
pub fn run(args: &Args) -> Result<(), CommandError> {
    refuse_idle_options(args)?;
    // A gateway has a log unless it is told not to; what others do along the way is only told on demand.
    log::begin(args, matches!(args.command, Command::Serve { .. }).then_some(tracing::Level::INFO));
    match &args.command {
        Command::Serve { listen, port, open } => serve::run(listen.as_deref(), *port, *open, args),
        Command::Open { id } => open::run(id.as_deref(), args),
        Command::Demo(asked) => demo::run(*asked, args),
        Command::Run(asked) => run::run(asked, args),
        Command::Chat(asked) => run::chat(asked, args),
        Command::Replay(asked) => replay::run(asked, args),
        Command::Use(asked) => switch::run(asked, args),
        Command::Backends(asked) => backends::run(asked, args),
        Command::Models(asked) => models::run(asked, args),
        Command::Doctor { probe } => doctor::run(*probe, args),
        Command::Env(asked) if asked.mcp => env::print_mcp(asked.client.as_deref(), args),
        Command::Env(asked) => env::run(asked, args),
        Command::Mcp { listen } => mcp::run(*listen, args),
        Command::Start(asked) => start::run(asked, args),
        Command::Ls(asked) => ls::run(asked, args),
        Command::Show(asked) => show::run(asked, args),
        Command::Usage(asked) => usage::run(asked, args),
        Command::Search(search) => search::run(search, args),
        Command::Rm(asked) => prune::remove(asked, args),
        Command::Store { action } => store::run(action, args),
        Command::Convert(convert) => convert::run(convert, args.quiet),
        Command::Compact(compact) => compact::run(compact, args),
        Command::Import(asked) => import::run(asked, args),
        Command::Export(asked) => export::run(asked, args),
        Command::Carry(asked) => carry::run(asked, args),
        Command::Brief(brief) => brief::run(brief, args),
        Command::Config { action } => config::run(action.as_ref(), args),
        Command::Trust(asked) => trust::run(asked, args),
        Command::Sim(sim) => sim::run(sim),
        Command::Completions { shell } => completion::script(*shell),
        Command::Man { dir } => man::run(dir.as_deref(), args.quiet),
    }
}

/// An option that is accepted everywhere but read only by some is an error where it would do nothing.
fn refuse_idle_options(args: &Args) -> Result<(), CommandError> {
    let reads_config = !matches!(
        args.command,
        Command::Brief(_)
            | Command::Demo(_)
            | Command::Convert(_)
            | Command::Compact(_)
            | Command::Sim(_)
            | Command::Trust(_)
            | Command::Completions { .. }
            | Command::Man { .. }
    );
    let writes_json = !matches!(args.command, Command::Mcp { .. });
    let reads_json = (reads_config && writes_json)
        || matches!(args.command, Command::Compact(_) | Command::Brief(_) | Command::Trust(_));
    let given = [
        ("--config", args.config.is_some() && !reads_config),
        ("--data", args.data.is_some() && !reads_config),
        ("--json", args.json && !reads_json),
    ];
    match given.into_iter().find(|(_, is_idle)| *is_idle) {
        Some((name, _)) => Err(CommandError::bad_input(format!("{name}: has no effect on this command"))),
        None => Ok(()),
    }
}
