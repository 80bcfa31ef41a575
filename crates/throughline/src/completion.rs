//! What shells complete: commands and options, and the names that this user's configuration and history hold.
//!
//! The script of a shell asks this program for each completion, by a variable. So it is never behind, and what it offers
//! is what `ls`, `backends` and `env` would list. Whatever goes wrong, nothing is offered and nothing is said.

use crate::args::Args;
use crate::commands::{client_names, history};
use crate::exit::CommandError;
use crate::output;
use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use std::ffi::OsStr;
use throughline_gateway::config::{Config, Flags, Process, StoreLocation, load_to_look};
use throughline_store::{Conversations, Heading, Paging};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "THROUGHLINE_COMPLETE";
/// How many conversations are offered.
const CONVERSATIONS: u32 = 50;

/// Answers a shell that asks, and ends the program then.
pub fn answer() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(Args::command).var(VARIABLE).complete();
    }
}

/// Prints the script that makes a shell ask.
pub fn script(shell: Shell) -> Result<(), CommandError> {
    let (shells, mut script) = (Shells::builtins(), Vec::new());
    let written = shells.completer(&shell.to_string()).map(|completer| {
        completer.write_registration(VARIABLE, "throughline", "throughline", "throughline", &mut script)
    });
    match written {
        Some(Ok(())) => output::print(&String::from_utf8_lossy(&script)),
        Some(Err(source)) => Err(CommandError::file("the script", source)),
        None => Err(CommandError::bad_input(format!("{shell}: nothing is known about this shell"))),
    }
}

/// Offers the backends of the configuration.
pub fn backends() -> Vec<CompletionCandidate> {
    let backends = configured().map(|config| config.backends).unwrap_or_default();
    let offered = backends.iter().map(|backend| {
        CompletionCandidate::new(backend.name.as_str()).help(Some(backend.dialect.to_string().into()))
    });
    offered.collect()
}

/// Offers the latest conversations that begin so, with their titles; without `conv_`, unless that was typed.
pub fn conversations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let offered = |heading: Heading| {
        let whole = heading.id.as_str();
        let id = if typed.starts_with('c') { whole } else { whole.strip_prefix("conv_").unwrap_or(whole) };
        let title = heading.title.as_deref().map(|title| title.to_owned().into());
        id.starts_with(&*typed).then(|| CompletionCandidate::new(id).help(title))
    };
    headings().unwrap_or_default().into_iter().filter_map(offered).collect()
}

/// Offers the clients that `env` knows.
pub fn clients() -> Vec<CompletionCandidate> {
    client_names().map(|(name, title)| CompletionCandidate::new(name).help(Some(title.into()))).collect()
}

fn configured() -> Option<Config> {
    load_to_look(&Process, &Flags::default()).ok()
}

fn headings() -> Option<Vec<Heading>> {
    // A server that does not answer must not hold the shell up.
    let config = configured().filter(|config| matches!(config.store.location, StoreLocation::Sqlite(_)))?;
    let history = history::open_to_read(&config).ok()?;
    let latest = Conversations::All(Paging::first(CONVERSATIONS));
    let page = history::wait(async { Ok(history.conversations(latest).await?) }).ok()?;
    Some(page.items)
}
