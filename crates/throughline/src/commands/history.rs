//! Opening the history, and finding a conversation in it by what the user typed.
//!
//! The commands that read do so while a gateway may be writing; the store sees to that.

use super::config::bad_config;
use crate::args::Args;
use crate::configuration::{Question, load, load_to_look};
use crate::exit::CommandError;
use crate::output::Ink;
use crate::private;
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_core::ConversationId;
use throughline_gateway::config::keys::nearest;
use throughline_gateway::config::{Config, Flags, StoreLocation};
use throughline_store::{
    Conversations, Heading, History, Memory, Paging, Postgres, PostgresOptions, Sqlite, SqliteOptions,
    StoreError, Upkeep,
};

/// How many conversations are looked through at a time.
const PAGE: u32 = 500;
/// How many characters of an id are shown at least: in those that are made here, the time to the millisecond.
const SHORT: usize = 12;
/// Where it does not pay any more to shorten.
const MAX_SHORT: usize = 32;

/// Opens the history that the configuration names, for a command that adds conversations: it is created if there is
/// none, and brought to this version's schema.
pub fn open(config: &Config) -> Result<Arc<dyn History>, CommandError> {
    Ok(open_at(&config.store.location)?)
}

/// Opens the history that the configuration names to change something in it: one of an older schema is left alone, since
/// a gateway of that version may be at work on it.
pub fn open_to_change(config: &Config) -> Result<Arc<dyn History>, CommandError> {
    match as_it_is(&config.store.location)? {
        Some(history) => Ok(history),
        None => open(config),
    }
}

/// Opens the history that the configuration names, to look after it; there must be one.
pub fn open_existing(config: &Config) -> Result<Arc<dyn Upkeep>, CommandError> {
    as_it_is(&config.store.location)?.ok_or_else(|| {
        let place = match &config.store.location {
            StoreLocation::Sqlite(file) => file.display().to_string(),
            StoreLocation::Postgres(_) => "the database has no tables of ours".to_owned(),
        };
        CommandError::no(format!("there is no history yet: {place}")).hint(
            "`throughline serve` and `throughline import` make one; --data and `[store] url` say where it is",
        )
    })
}

/// Opens a history as it is: nothing is created or brought forward. None if there is none.
pub fn as_it_is(location: &StoreLocation) -> Result<Option<Arc<dyn Upkeep>>, StoreError> {
    let opened: Option<Arc<dyn Upkeep>> = match location {
        StoreLocation::Sqlite(file) => {
            let opened = Sqlite::open_as_it_is(file, SqliteOptions::default())?;
            opened.map(|opened| Arc::new(opened) as _)
        }
        StoreLocation::Postgres(url) => {
            let opened = Postgres::open_as_it_is(url.expose(), PostgresOptions::default())?;
            opened.map(|opened| Arc::new(opened) as _)
        }
    };
    Ok(opened)
}

/// Opens a history, creates it if there is none, and brings it to this version's schema.
pub fn open_at(location: &StoreLocation) -> Result<Arc<dyn Upkeep>, CommandError> {
    match location {
        StoreLocation::Sqlite(file) => {
            tracing::debug!(file = %file.display(), "opening the history");
            if let Some(folder) = file.parent() {
                private::create_folder(folder)
                    .map_err(|source| CommandError::file(folder.display(), source))?;
            }
            Ok(Arc::new(Sqlite::open(file, SqliteOptions::default())?))
        }
        StoreLocation::Postgres(url) => {
            tracing::debug!("opening the history in PostgreSQL");
            Ok(Arc::new(Postgres::open(url.expose(), PostgresOptions::default())?))
        }
    }
}

/// Opens the history to look at it, as it is: where there is none, none is created, and it is empty.
pub fn open_to_read(config: &Config) -> Result<Arc<dyn History>, CommandError> {
    tracing::debug!("opening the history to read");
    Ok(match as_it_is(&config.store.location)? {
        Some(history) => history,
        None => Arc::new(Memory::new()),
    })
}

/// Reads the configuration as the command line has it, for a command that asks no backend: keys need not be there.
pub fn configured(args: &Args) -> Result<Config, CommandError> {
    load_to_look(&flags(args), Question::of(args)).map(logged).map_err(|errors| bad_config(&errors))
}

/// Reads the configuration as the command line has it, with every key that it refers to.
pub fn configured_with_keys(args: &Args) -> Result<Config, CommandError> {
    load(&flags(args), Question::of(args)).map(logged).map_err(|errors| bad_config(&errors))
}

fn flags(args: &Args) -> Flags {
    Flags { config: args.config.clone(), listen: None, data: args.data.clone() }
}

/// Returns a configuration after the log was told which one it is.
fn logged(config: Config) -> Config {
    let file = config.file.as_deref().map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    tracing::debug!(%file, active = %config.active, backends = config.backends.len(), "configured");
    config
}

/// Waits for what a command asks of the history.
pub fn wait<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    runtime.block_on(work)
}

/// Finds the conversation of that id, or the only one whose id begins so; `conv_` may be left out.
pub async fn find(history: &dyn History, typed: &str) -> Result<ConversationId, CommandError> {
    let exact = history.conversations(Conversations::One(ConversationId::new(typed))).await?;
    if let Some(heading) = exact.items.into_iter().next() {
        return Ok(heading.id);
    }
    let begins = |heading: &Heading| {
        let id = heading.id.as_str();
        id.starts_with(typed) || id.strip_prefix("conv_").is_some_and(|id| id.starts_with(typed))
    };
    let mut fitting = Vec::new();
    let mut paging = Paging::first(PAGE);
    loop {
        let page = history.conversations(Conversations::All(paging)).await?;
        fitting.extend(page.items.into_iter().filter(begins).map(|heading| heading.id));
        match page.next {
            Some(next) if fitting.len() < 2 => paging = Paging { after: Some(next), limit: PAGE },
            _ => break,
        }
    }
    match fitting.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(missing(history, typed).await?),
        several => {
            let names: Vec<String> = several.iter().map(|id| format!("\n  {id}")).collect();
            Err(CommandError::no(format!("several conversations begin with `{typed}`:{}", names.concat()))
                .hint("give more of the id"))
        }
    }
}

/// Says that there is no such conversation, and which one may be meant.
async fn missing(history: &dyn History, typed: &str) -> Result<CommandError, CommandError> {
    let error = CommandError::no(format!("no conversation is called `{typed}`, or begins so"));
    let page = history.conversations(Conversations::All(Paging::first(PAGE))).await?;
    if page.items.is_empty() {
        return Ok(error
            .hint("there are no conversations yet: `throughline env` says how clients come through here"));
    }
    let near = nearest(typed, page.items.iter().map(|heading| heading.id.as_str()));
    let holding = |heading: &&Heading| {
        let title = heading.title.as_deref().unwrap_or_default();
        title.to_lowercase().contains(&typed.to_lowercase())
    };
    let meant = near.or_else(|| page.items.iter().find(holding).map(|heading| heading.id.as_str()));
    Ok(match meant {
        Some(meant) => error.hint(format!("did you mean {meant}? `throughline ls` lists all")),
        None => error.hint("`throughline ls` lists them"),
    })
}

/// Returns what writes ids for people: without `conv_`, and only as much of each as tells these apart. A file gets
/// them whole.
pub fn short<'i>(
    ids: impl Iterator<Item = &'i ConversationId>,
    ink: &Ink,
) -> impl Fn(&ConversationId) -> String {
    let own = |id: &ConversationId| id.as_str().strip_prefix("conv_").map(str::to_owned);
    let all: BTreeSet<String> = ids.filter_map(own).collect();
    let beginnings = |length| all.iter().map(|id| beginning(id, length)).collect::<BTreeSet<_>>().len();
    let length = (SHORT..MAX_SHORT).find(|length| beginnings(*length) == all.len()).unwrap_or(usize::MAX);
    let is_short = ink.is_on_terminal();
    move |id| match own(id) {
        Some(own) if is_short => beginning(&own, length).to_owned(),
        _ => id.to_string(),
    }
}

/// Returns the first characters of an id.
fn beginning(id: &str, length: usize) -> &str {
    id.char_indices().nth(length).map_or(id, |(end, _)| &id[..end])
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let hint = matches!(error, StoreError::Older { .. }).then_some(
            "`throughline store upgrade` brings it forward, and so does starting this version's gateway; \
             stop older ones first, and take a backup with them",
        );
        let error = Self::store(error.to_string());
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
