//! Opening the history, and finding a conversation in it by what the user typed.
//!
//! The commands that read do so while a gateway may be writing; the store sees to that.

use super::config::bad_config;
use crate::args::Args;
use crate::configuration::{Question, load, load_to_look};
use crate::exit::CommandError;
use crate::output::{self, Cell, Ink, Tone};
use crate::private;
use crate::terminal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throughline_core::{ConversationId, Text};
use throughline_gateway::config::{Config, Flags, StoreLocation};
use throughline_gateway::exchange::SIDE_QUESTIONS;
use throughline_store::{
    ConversationFilter, Conversations, Heading, History, Memory, Page, Paging, Postgres, PostgresOptions,
    Sqlite, SqliteOptions, StoreError, Upkeep, short_id,
};

/// The word for the conversation that something was added to last.
pub const LAST: &str = "@last";
/// How many conversations are offered where an id fits several.
const CANDIDATES_MAX: u32 = 20;
/// How many characters of an id are shown.
const SHORT: usize = 8;
/// How many characters of an id somebody has to type at least.
const UNIQUE_LEAST: usize = 2;
/// Of how many conversations it is looked up how much of their ids has to be typed.
const LOOKED_UP_MAX: usize = 100;

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

/// Finds the conversation that the user means: by its id, by the beginning of it or of its short form, or as `@last`.
/// Where several fit, somebody at a terminal chooses.
pub async fn find(history: &dyn History, typed: &str) -> Result<ConversationId, CommandError> {
    if typed == LAST {
        return last(history).await;
    }
    let exact = history.conversations(Conversations::One(ConversationId::new(typed))).await?;
    if let Some(heading) = exact.items.into_iter().next() {
        return Ok(heading.id);
    }
    let fitting = beginning_with(history, typed, CANDIDATES_MAX).await?;
    match fitting.items.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(missing(history, typed).await?),
        several if terminal::is_interactive() => choose(typed, several),
        several => {
            let ink = Ink::of_stderr();
            let lines: String =
                several.iter().map(|heading| format!("\n  {}", candidate(heading, &ink))).collect();
            let more = if fitting.next.is_some() { "\n  …" } else { "" };
            Err(CommandError::no(format!("several conversations begin with `{typed}`:{lines}{more}"))
                .hint("give more of the id"))
        }
    }
}

/// Returns the conversation that something was added to last.
async fn last(history: &dyn History) -> Result<ConversationId, CommandError> {
    let filter = ConversationFilter {
        except_identified: Some(Text::from_static(SIDE_QUESTIONS)),
        ..ConversationFilter::default()
    };
    let latest = history.conversations(Conversations::Matching(Box::new(filter), Paging::first(1))).await?;
    latest.items.into_iter().next().map(|heading| heading.id).ok_or_else(|| {
        CommandError::no("there are no conversations yet")
            .hint("`throughline start claude` runs an agent through the gateway, `throughline import` lists its sessions")
    })
}

async fn beginning_with(history: &dyn History, typed: &str, limit: u32) -> Result<Page<Heading>, StoreError> {
    let filter = ConversationFilter { id: Some(typed.into()), ..ConversationFilter::default() };
    history.conversations(Conversations::Matching(Box::new(filter), Paging::first(limit))).await
}

/// Returns a conversation as somebody recognises it.
fn candidate(heading: &Heading, ink: &Ink) -> String {
    let title = ink.tame(heading.title.as_deref().unwrap_or("without a title")).into_owned();
    format!("{}  {}  {title}", short_id(&heading.id), ink.when(heading.updated))
}

/// Has somebody choose one of several conversations.
fn choose(typed: &str, several: &[Heading]) -> Result<ConversationId, CommandError> {
    let ink = Ink::of_stderr();
    output::remark(&format!("several conversations begin with `{typed}`:"));
    for (number, heading) in (1..).zip(several) {
        output::remark(&format!("{}  {}", ink.bold(&format!("{number:3}")), candidate(heading, &ink)));
    }
    terminal::drain();
    output::prompt(&format!("Which one? [1-{}] ", several.len()));
    let answer = terminal::read_line(None).ok().flatten().unwrap_or_default();
    let number = answer.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let chosen = number.and_then(|at| several.get(at)).map(|heading| heading.id.clone());
    chosen.ok_or_else(|| CommandError::no("none was chosen").hint("give more of the id"))
}

/// Says that there is no such conversation, and which one may be meant.
async fn missing(history: &dyn History, typed: &str) -> Result<CommandError, CommandError> {
    let error = CommandError::no(format!("no conversation id matches `{typed}`"));
    let titled = ConversationFilter { title: Some(typed.into()), ..ConversationFilter::default() };
    let titled = history.conversations(Conversations::Matching(Box::new(titled), Paging::first(1))).await?;
    if let Some(heading) = titled.items.first() {
        let title = heading.title.as_deref().unwrap_or_default();
        return Ok(error.hint(format!(
            "did you mean {} (“{title}”)? `throughline ls` lists all",
            short_id(&heading.id)
        )));
    }
    let any = history.conversations(Conversations::All(Paging::first(1))).await?;
    Ok(match any.items.is_empty() {
        true => {
            error.hint("there are no conversations yet: `throughline env` says how clients come through here")
        }
        false => error.hint("`throughline ls` lists them; `@last` is the latest"),
    })
}

/// Ids as people see them: short, with as much of each set off as has to be typed. A file gets them whole.
#[derive(Debug, Default)]
pub struct ShortIds(BTreeMap<ConversationId, ShortId>);

#[derive(Debug)]
struct ShortId {
    text: String,
    /// How many characters of it no other conversation has.
    unique: usize,
}

impl ShortIds {
    /// Works out how these conversations are called here.
    pub async fn read<'i>(
        history: &dyn History,
        ids: impl Iterator<Item = &'i ConversationId>,
        ink: &Ink,
    ) -> Result<Self, CommandError> {
        if !ink.is_on_terminal() {
            return Ok(Self::default());
        }
        let ids: BTreeSet<&ConversationId> = ids.collect();
        let mut all = BTreeMap::new();
        for id in &ids {
            let short = short_id(id);
            let unique = match ids.len() <= LOOKED_UP_MAX {
                true => unique_length(history, short).await?,
                false => SHORT,
            };
            let shown = beginning(short, unique.max(SHORT)).to_owned();
            all.insert((*id).clone(), ShortId { text: shown, unique });
        }
        Ok(Self(all))
    }

    /// Returns an id for a table.
    pub fn cell(&self, id: &ConversationId) -> Cell {
        match self.0.get(id) {
            Some(short) => Cell::with_prefix(short.unique, short.text.as_str()),
            None => Cell::new(Tone::Bold, id.as_str()),
        }
    }

    /// Returns an id for a line.
    pub fn text<'i>(&'i self, id: &'i ConversationId) -> &'i str {
        self.0.get(id).map_or(id.as_str(), |short| short.text.as_str())
    }
}

/// Returns how many characters of a short form tell its conversation from all others.
async fn unique_length(history: &dyn History, short: &str) -> Result<usize, CommandError> {
    let chars = short.chars().count();
    for length in UNIQUE_LEAST.min(chars)..chars {
        if beginning_with(history, beginning(short, length), 2).await?.items.len() < 2 {
            return Ok(length);
        }
    }
    Ok(chars)
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
