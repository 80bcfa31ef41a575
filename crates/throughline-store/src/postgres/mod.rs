//! The history in a PostgreSQL database, for any number of replicas over one.
//!
//! One task writes in groups (`writer.rs`), a few connections read (`pool.rs`). They run on threads of their own,
//! so that the store answers whatever runtime it is asked from, and a client that goes away ends no write. The
//! records are those of the SQLite store, to the byte. Docs: docs/history.md, docs/decisions/0011.

mod address;
mod bell;
mod bodies;
mod compaction;
mod condition;
mod connection;
mod documents;
mod exchanges;
mod failure;
mod index;
mod lookup;
mod plan;
mod pool;
mod prune;
mod read;
mod rechain;
mod rows;
mod schema;
mod search;
mod steps;
mod tls;
mod upkeep;
mod value;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throughline_core::ConversationId;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::changes::ring;
use crate::prepared::Prepared;
use crate::upkeep::{Checkup, Inflow, Inventory, Outflow, Prune, Pruned, Stats, Upkeep, Watch};
use crate::{
    Answer, Batch, Changes, CompactionStep, Conversations, Entries, Exchange, ExchangeId, Exchanges, Heading,
    History, Hit, Kept, Locate, Located, Page, Receipt, Recording, Search, Standing, StoreError, Which,
};
use address::{Address, Writes};
use bell::Bell;
use compaction::StepsOf;
use condition::{InWhatCondition, IsReady};
use connection::Door;
use exchanges::{Passed, WhatStands};
use pool::{Pool, Question};
use tls::Tls;
use writer::{Waiting, Writer};

pub use condition::Condition;

/// A history in a PostgreSQL database.
///
/// When it is dropped, it waits until all that was accepted is written.
pub struct Postgres {
    pool: Arc<Pool>,
    batches: Option<mpsc::Sender<Waiting>>,
    tasks: Vec<JoinHandle<()>>,
    rung: watch::Sender<u64>,
    bell_wanted: Arc<Notify>,
    runtime: Option<Runtime>,
    address: Arc<Address>,
    /// When it was last seen that something can be written.
    written_at: Arc<Mutex<Option<Instant>>>,
}

/// How a database is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How long the database may take to answer.
    pub limit: Duration,
    /// How long to wait for a server that has just gone away: it may only be restarting.
    pub patience: Duration,
    /// How many connections read.
    pub readers: usize,
}

/// How many batches may wait; who brings more waits before.
const WAITING_MAX: usize = 1024;

/// The threads that the store has of its own.
const THREADS: usize = 2;

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { limit: Duration::from_secs(10), patience: Duration::from_secs(5), readers: 4 }
    }
}

impl Postgres {
    /// The version of the format in which the database is kept once it is open.
    pub const FORMAT: u32 = schema::SCHEMA.cast_unsigned();

    /// Opens the database at `url`, in which the tables are created if there are none, and brought to the
    /// current schema.
    ///
    /// Blocks while it does so.
    ///
    /// # Errors
    /// When the URL cannot be used, the server cannot be reached or is too old, or the database was written by
    /// a newer program.
    pub fn open(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let missing = || StoreError::Damaged("its tables are gone".to_owned());
        Self::start(url, options, Opening::Make)?.ok_or_else(missing)
    }

    /// Opens the database at `url` as it is: no table is made, none brought forward, and nothing written before something
    /// is appended. None if there is no history there.
    ///
    /// Blocks while it does so.
    ///
    /// # Errors
    /// When the URL cannot be used, the server cannot be reached or is too old, or the database has another schema than
    /// this program's.
    pub fn open_as_it_is(url: &str, options: PostgresOptions) -> Result<Option<Self>, StoreError> {
        Self::start(url, options, Opening::AsItIs)
    }

    fn start(url: &str, options: PostgresOptions, opening: Opening) -> Result<Option<Self>, StoreError> {
        let writes = if opening == Opening::Make { Writes::Needed } else { Writes::IfPossible };
        let address = Arc::new(Address::parse(url, options.limit, writes)?);
        let tls = Tls::new(&address)?;
        let door = Door { address: Arc::clone(&address), tls, limit: options.limit };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("history")
            .enable_all()
            .build()
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let pool = Arc::new(Pool::new(door.clone(), options.patience, options.readers));
        let (opened, waiting) = std::sync::mpsc::channel();
        let way = door.clone();
        runtime.spawn(async move {
            let _ = opened.send(open(&way, opening).await);
        });
        let (connection, id) = match waiting.recv().unwrap_or(Err(StoreError::Closed)) {
            Ok(Some(opened)) => opened,
            other => {
                // Whoever opens it may be inside another runtime, where one may not be waited for.
                runtime.shutdown_background();
                return other.map(|_| None);
            }
        };
        let (batches, queue) = mpsc::channel(WAITING_MAX);
        let (written, bell_wanted) = (watch::Sender::new(0), Arc::new(Notify::new()));
        let rung = watch::Sender::new(0);
        let bell = Bell {
            door,
            written: written.subscribe(),
            wanted: Arc::clone(&bell_wanted),
            ring: rung.clone(),
            told: 0,
        };
        let writer = Writer {
            pool: Arc::clone(&pool),
            connection: Some(connection),
            id,
            begun: 0,
            limit: options.limit,
            lately: plan::Lately::default(),
            unindexed: 0,
            written,
            rung: rung.clone(),
        };
        let tasks = vec![runtime.spawn(writer.run(queue)), runtime.spawn(bell.run())];
        let (batches, runtime) = (Some(batches), Some(runtime));
        let written_at = Arc::default();
        Ok(Some(Self { pool, batches, tasks, rung, bell_wanted, runtime, address, written_at }))
    }

    /// Says whether a URL can be used, without using it.
    ///
    /// # Errors
    /// When it cannot, and why; no error shows a password.
    pub fn check_url(url: &str) -> Result<(), StoreError> {
        Address::parse(url, PostgresOptions::default().limit, Writes::Needed).map(drop)
    }

    /// Returns what can be said about the database itself.
    pub fn condition(&self) -> Answer<'_, Condition> {
        self.ask(InWhatCondition)
    }

    /// Returns where the database is: host, port and name.
    #[must_use]
    pub fn place(&self) -> String {
        self.address.to_string()
    }

    /// Asks the database, on a thread of the store.
    fn ask<Q: Question>(&self, question: Q) -> Answer<'_, Q::Answer> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { pool.ask(&question).await })
    }

    /// Runs something on a thread of the store, to its end even if nobody waits for it any more.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let runtime = self.runtime.as_ref().ok_or(StoreError::Closed)?;
            runtime.spawn(work).await.map_err(|_| StoreError::Closed)?
        })
    }
}

/// Whether a database is changed by being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Its tables are made if there are none, and brought to the current schema.
    Make,
    /// It is taken as it is, or not at all.
    AsItIs,
}

/// Opens the connection that writes, and returns it with a name for the writer that no other has; nothing if there is no
/// history there.
async fn open(door: &Door, opening: Opening) -> Result<Option<(connection::Connection, String)>, StoreError> {
    const NAME: &str = "SELECT gen_random_uuid()::text";
    const FORGET_OTHERS: &str = "DELETE FROM writers WHERE at < now() - interval '7 days'";
    let mut connection = door.open().await?;
    connection.check_server().await?;
    match opening {
        Opening::Make => {
            schema::migrate(&mut connection).await?;
            connection.query(FORGET_OTHERS, &[]).await?;
        }
        Opening::AsItIs if !schema::is_there(&connection).await? => return Ok(None),
        Opening::AsItIs => {}
    }
    let rows = connection.query(NAME, &[]).await?;
    let name = rows.first().ok_or_else(|| StoreError::Damaged("it names nobody".to_owned()))?;
    Ok(Some((connection, name.try_get(0).map_err(failure::Failure::from)?)))
}

impl History for Postgres {
    fn append(&self, batch: Batch) -> Answer<'_, Receipt> {
        let Some(batches) = self.batches.clone() else { return Box::pin(async { Err(StoreError::Closed) }) };
        self.run(async move {
            let prepared = if Prepared::is_large(&batch) {
                let made = tokio::task::spawn_blocking(|| Prepared::new(batch)).await;
                made.map_err(|_| StoreError::Closed)?
            } else {
                Prepared::new(batch)
            };
            let (answer, answered) = oneshot::channel();
            batches.send((prepared, answer)).await.map_err(|_| StoreError::Closed)?;
            drop(batches);
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>> {
        self.ask(locate)
    }

    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>> {
        self.ask(which)
    }

    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>> {
        self.ask(which)
    }

    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>> {
        self.ask(which)
    }

    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording> {
        self.ask(Passed(exchange, which))
    }

    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>> {
        self.ask(StepsOf(conversation))
    }

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        self.ask(search)
    }

    fn standing(&self) -> Answer<'_, Standing> {
        self.ask(WhatStands)
    }

    fn prune(&self, asked: Prune) -> Answer<'_, Pruned> {
        let (pool, rung) = (Arc::clone(&self.pool), self.rung.clone());
        self.run(async move {
            let pruned = prune::prune(&pool, &asked).await?;
            ring(&rung);
            Ok(pruned)
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        self.ask(IsReady { written: Arc::clone(&self.written_at) })
    }

    fn changes(&self) -> Changes {
        self.bell_wanted.notify_one();
        Changes::of(&self.rung)
    }
}

impl Upkeep for Postgres {
    fn stats(&self) -> Answer<'_, Stats> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::stats(&pool).await })
    }

    fn check(&self, watch: Watch) -> Answer<'_, Checkup> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::check(&pool, watch).await })
    }

    fn back_up<'a>(&'a self, file: &'a Path, watch: Watch) -> Answer<'a, ()> {
        Box::pin(self.copy_to(file, watch))
    }

    fn reindex(&self) -> Answer<'_, ()> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::reindex(&pool).await })
    }

    fn shrink(&self) -> Answer<'_, ()> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::shrink(&pool).await })
    }

    fn pour(&self, into: Outflow) -> Answer<'_, ()> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::pour(&pool, into).await })
    }

    fn fill(&self, from: Inflow) -> Answer<'_, Inventory> {
        let pool = Arc::clone(&self.pool);
        self.run(async move { upkeep::fill(&pool, from).await })
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.address)
    }
}

impl Drop for Postgres {
    /// Waits until everything that was accepted is written.
    fn drop(&mut self) {
        self.batches = None;
        let Some(runtime) = self.runtime.take() else { return };
        let (ended, waiting) = std::sync::mpsc::channel::<()>();
        let tasks = std::mem::take(&mut self.tasks);
        runtime.spawn(async move {
            for task in tasks {
                let _ = task.await;
            }
            drop(ended);
        });
        let _ = waiting.recv();
        runtime.shutdown_background();
    }
}
