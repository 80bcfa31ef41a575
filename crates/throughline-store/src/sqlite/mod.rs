//! The history in one SQLite file.
//!
//! The database is in WAL mode: one thread writes (`writer.rs`), a few read (`readers.rs`), and other
//! processes may do both at the same time, so that the record can be looked at while it is being written.
//! Nothing here blocks an async thread. Docs: docs/history.md, docs/decisions/0006.

mod bodies;
mod compaction;
mod connection;
mod documents;
mod exchanges;
mod index;
mod intact;
mod prune;
mod read;
mod readers;
mod rechain;
mod rows;
mod search;
mod upkeep;
mod verify;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throughline_core::ConversationId;
use tokio::sync::watch;

use crate::changes::ring;
use crate::prepared::Prepared;
use crate::upkeep::{Checkup, Inflow, Inventory, Outflow, Prune, Pruned, Stats, Upkeep, Watch};
use crate::{
    Answer, Batch, Changes, CompactionStep, Conversations, Entries, Exchange, ExchangeId, Exchanges, Heading,
    History, Hit, Kept, Locate, Located, Page, Receipt, Recording, Search, Standing, StoreError, Which,
};
use connection::Opening;
use readers::Readers;
pub(crate) use upkeep::{refuse_existing, unfinished};
use writer::Writer;

/// A history in one SQLite file.
///
/// When it is dropped, it waits until all that was accepted is written.
#[derive(Debug)]
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
    rung: watch::Sender<u64>,
    path: PathBuf,
    options: SqliteOptions,
    opening: Opening,
    /// When it was last seen that something can be written.
    written: Arc<Mutex<Option<Instant>>>,
}

/// How a database is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How long to wait for another process that writes.
    pub busy: Duration,
    /// How many threads read.
    pub readers: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { busy: Duration::from_secs(5), readers: 3 }
    }
}

impl Sqlite {
    /// The version of the format in which the database is kept once it is open.
    pub const FORMAT: u32 = connection::SCHEMA;

    /// Opens the database at `path`, which is created if there is none, and brought to the current schema.
    ///
    /// Blocks while it does so.
    ///
    /// # Errors
    /// When the file cannot be opened or created, is no database of ours, or was written by a newer program.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::start(path, options, Opening::Make)
    }

    /// Opens the database at `path` as it is: nothing is made, nothing brought forward, and nothing written before
    /// something is appended. None if there is no history there.
    ///
    /// # Errors
    /// When the file cannot be opened, is no database of ours, or has another schema than this program's.
    pub fn open_as_it_is(path: &Path, options: SqliteOptions) -> Result<Option<Self>, StoreError> {
        if !intact::is_there(path)? || !connection::is_there(path, options.busy)? {
            return Ok(None);
        }
        Self::start(path, options, Opening::AsItIs).map(Some)
    }

    fn start(path: &Path, options: SqliteOptions, opening: Opening) -> Result<Self, StoreError> {
        let writer = Writer::start(path, options.busy, opening)?;
        let readers = Readers::start(path, options.busy, options.readers)?;
        let (rung, path) = (watch::Sender::default(), path.to_owned());
        Ok(Self { writer, readers, rung, path, options, opening, written: Arc::default() })
    }
}

impl History for Sqlite {
    fn append(&self, batch: Batch) -> Answer<'_, Receipt> {
        Box::pin(async move {
            let prepared = if Prepared::is_large(&batch) {
                self.readers.compute(|| Prepared::new(batch)).await?
            } else {
                Prepared::new(batch)
            };
            let receipt = self.writer.append(prepared).await?;
            ring(&self.rung);
            Ok(receipt)
        })
    }

    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>> {
        Box::pin(self.readers.read(move |connection| read::locate(connection, &locate)))
    }

    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>> {
        Box::pin(self.readers.read(move |connection| read::conversations(connection, &which)))
    }

    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>> {
        Box::pin(self.readers.read(move |connection| read::entries(connection, &which)))
    }

    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>> {
        Box::pin(self.readers.read(move |connection| exchanges::exchanges(connection, &which)))
    }

    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording> {
        Box::pin(self.readers.read(move |connection| exchanges::recording(connection, &exchange, which)))
    }

    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>> {
        Box::pin(self.readers.read(move |connection| compaction::steps(connection, &conversation)))
    }

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        Box::pin(async move {
            if self.opening == Opening::Make {
                self.writer.index().await?;
            }
            self.readers.read(move |connection| search::search(connection, &search)).await
        })
    }

    fn standing(&self) -> Answer<'_, Standing> {
        Box::pin(self.readers.read(exchanges::standing))
    }

    fn prune(&self, prune: Prune) -> Answer<'_, Pruned> {
        Box::pin(async move {
            let pruned = self.writer.prune(prune).await?;
            ring(&self.rung);
            Ok(pruned)
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        let written = Arc::clone(&self.written);
        Box::pin(self.apart(move |path, busy| connection::check_ready(path, busy, &written)))
    }

    fn changes(&self) -> Changes {
        Changes::of(&self.rung)
    }
}

impl Upkeep for Sqlite {
    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(self.readers.read(upkeep::stats))
    }

    fn check(&self, watch: Watch) -> Answer<'_, Checkup> {
        Box::pin(self.apart(move |path, busy| verify::check(path, busy, watch)))
    }

    fn back_up<'a>(&'a self, file: &'a Path, watch: Watch) -> Answer<'a, ()> {
        let file = file.to_owned();
        Box::pin(self.apart(move |path, busy| upkeep::back_up(path, busy, &file, &watch)))
    }

    fn reindex(&self) -> Answer<'_, ()> {
        Box::pin(self.apart(upkeep::reindex))
    }

    fn shrink(&self) -> Answer<'_, ()> {
        Box::pin(self.apart(upkeep::shrink))
    }

    fn pour(&self, into: Outflow) -> Answer<'_, ()> {
        Box::pin(self.apart(move |path, busy| upkeep::pour(path, busy, &into)))
    }

    fn fill(&self, mut from: Inflow) -> Answer<'_, Inventory> {
        Box::pin(self.apart(move |path, busy| upkeep::fill(path, busy, &mut from)))
    }
}
