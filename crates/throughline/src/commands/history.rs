//! Opening the history, and finding a conversation in it by what the user typed.
//!
//! The commands that read do so while a gateway may be writing; the store sees to that.

use super::config::bad_config;
use crate::args::Args;
use crate::exit::CommandError;
use std::sync::Arc;
use throughline_core::ConversationId;
use throughline_gateway::config::{Config, Flags, Process, StoreLocation, load};
use throughline_gateway::secret::Secret;
use throughline_store::{
    Conversations, Heading, History, Memory, Paging, Postgres, PostgresOptions, Sqlite, SqliteOptions,
    StoreError, Upkeep,
};

/// How many conversations are looked through at a time.
const PAGE: u32 = 500;

/// Opens the history that the configuration names, and creates it if there is none.
pub fn open(config: &Config) -> Result<Arc<dyn History>, CommandError> {
    Ok(open_at(&config.store.location)?)
}

/// Opens the history that the configuration names, to look after it; there must be one.
pub fn open_existing(config: &Config) -> Result<Arc<dyn Upkeep>, CommandError> {
    match &config.store.location {
        StoreLocation::Sqlite(file) if !file.exists() => {
            Err(CommandError::No(format!("there is no history yet: {}", file.display())))
        }
        location => open_at(location),
    }
}

/// Opens a history, and creates it if there is none.
pub fn open_at(location: &StoreLocation) -> Result<Arc<dyn Upkeep>, CommandError> {
    match location {
        StoreLocation::Sqlite(file) => {
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(|source| CommandError::File { path: folder.display().to_string(), source })?;
            }
            Ok(Arc::new(Sqlite::open(file, SqliteOptions::default())?))
        }
        StoreLocation::Postgres(url) => Ok(Arc::new(open_postgres(url)?)),
    }
}

/// Opens a history in PostgreSQL.
pub fn open_postgres(url: &Secret) -> Result<Postgres, StoreError> {
    Postgres::open(url.expose(), PostgresOptions::default())
}

/// Opens the history to look at it: where there is none, none is created, and it is empty.
pub fn open_to_read(config: &Config) -> Result<Arc<dyn History>, CommandError> {
    match &config.store.location {
        StoreLocation::Sqlite(file) if !file.exists() => Ok(Arc::new(Memory::new())),
        _ => open(config),
    }
}

/// Reads the configuration as the command line has it.
pub fn configured(args: &Args) -> Result<Config, CommandError> {
    let flags = Flags { config: args.config.clone(), listen: None, data: args.data.clone() };
    load(&Process, &flags).map_err(|errors| bad_config(&errors))
}

/// Waits for what a command asks of the history.
pub fn wait<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|source| CommandError::File { path: "the runtime".into(), source })?;
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
        [] => Err(CommandError::No(format!("no conversation is called `{typed}`, or begins so"))),
        _ => {
            Err(CommandError::No(format!("several conversations begin with `{typed}`; give more of the id")))
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}
