//! The one writer: a thread that commits what has gathered while it was committing.
//!
//! A flush to the disk costs about a millisecond whatever it flushes, so batches are not committed one by one:
//! all that wait are written into one transaction, each inside a savepoint of its own so that a batch which
//! cannot be written takes no other with it, and each of those who wait is told after the commit. A group of
//! relaxed batches is committed without a flush; the next durable one flushes it along.
//!
//! A connection that failed is dropped and opened anew for the next group: when a disk has space again, or a
//! file is back, so is the service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, Savepoint, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::bodies::Lately;
use super::connection::{Opening, check_schema, open_writer};
use super::index::index;
use super::prune::prune;
use super::write::Writing;
use crate::prepared::Prepared;
use crate::upkeep::{Prune, Pruned};
use crate::{Durability, Receipt, StoreError};

/// What the writer is asked for.
pub(super) enum Job {
    /// To write a batch.
    Append(Box<Prepared>, oneshot::Sender<Result<Receipt, StoreError>>),
    /// To bring the index of words up to date.
    Index(oneshot::Sender<Result<(), StoreError>>),
    /// To take conversations out.
    Prune(Prune, oneshot::Sender<Result<Pruned, StoreError>>),
}

#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// How many jobs may wait; who brings more waits before.
const WAITING_MAX: usize = 1024;

/// How many batches are committed together at most.
const GROUP_MAX: usize = 256;

/// After this many new entries, their words are indexed without being asked for.
const UNINDEXED_MAX: usize = 256;

struct Work {
    path: PathBuf,
    busy: Duration,
    opening: Opening,
    connection: Option<Open>,
    bodies: Lately,
    unindexed: usize,
}

struct Open {
    connection: Connection,
    file: Option<FileMark>,
    /// Whether commits are flushed to the disk at the moment.
    flushes: bool,
    /// What changes when somebody else writes.
    version: Option<i64>,
}

/// Which file a path leads to.
type FileMark = (u64, u64);

impl Writer {
    /// Starts the thread, and opens the database; one that is taken as it is, when something is to be written.
    pub fn start(path: &Path, busy: Duration, opening: Opening) -> Result<Self, StoreError> {
        let path = path.to_owned();
        let mut work =
            Work { path, busy, opening, connection: None, bodies: Lately::default(), unindexed: 0 };
        if opening == Opening::Make {
            work.connection = Some(work.open()?);
        }
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let thread = Builder::new()
            .name("history-write".to_owned())
            .spawn(move || work.run(queue))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    pub async fn append(&self, prepared: Prepared) -> Result<Receipt, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Job::Append(Box::new(prepared), answer)).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    pub async fn index(&self) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Job::Index(answer)).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    pub async fn prune(&self, prune: Prune) -> Result<Pruned, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.submit(Job::Prune(prune, answer)).await?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    async fn submit(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for Writer {
    /// Waits until everything that was accepted is written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Waiting = (Box<Prepared>, oneshot::Sender<Result<Receipt, StoreError>>);

impl Work {
    fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(job) = queue.blocking_recv() {
            let mut group = Vec::new();
            let mut askers = Vec::new();
            let mut prunes = Vec::new();
            let mut next = Some(job);
            while let Some(job) = next {
                match job {
                    Job::Append(prepared, answer) => group.push((prepared, answer)),
                    Job::Index(answer) => askers.push(answer),
                    Job::Prune(prune, answer) => prunes.push((prune, answer)),
                }
                next = if group.len() < GROUP_MAX { queue.try_recv().ok() } else { None };
            }
            if !group.is_empty() {
                self.append(group);
            }
            for (prune, asker) in prunes {
                let _ = asker.send(self.prune(&prune));
            }
            if !askers.is_empty() || self.unindexed >= UNINDEXED_MAX {
                let indexed = self.index();
                for asker in askers {
                    let _ = asker.send(indexed.clone());
                }
            }
        }
    }

    fn append(&mut self, group: Vec<Waiting>) {
        match self.commit(&group) {
            Ok(receipts) => {
                for ((_, answer), receipt) in group.into_iter().zip(receipts) {
                    let _ = answer.send(receipt);
                }
            }
            Err(error) => {
                self.recover();
                for (_, answer) in group {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Writes a group; an error means that nothing of it was written.
    fn commit(&mut self, group: &[Waiting]) -> Result<Vec<Result<Receipt, StoreError>>, StoreError> {
        let durable = group.iter().any(|(prepared, _)| prepared.batch.durability == Durability::Durable);
        let mut open = self.take_open()?;
        open.set_flushes(durable)?;
        let mut transaction = Transaction::new(&mut open.connection, TransactionBehavior::Immediate)?;
        check_schema(&transaction)?;
        let version = data_version(&transaction)?;
        if open.version.replace(version) != Some(version) {
            // Another process has written, and may have taken out what requests would be based on.
            self.bodies.clear();
        }
        let mut receipts = Vec::with_capacity(group.len());
        for (prepared, _) in group {
            let savepoint = transaction.savepoint()?;
            receipts.push(write(savepoint, prepared, &mut self.bodies)?);
        }
        transaction.commit()?;
        self.unindexed += receipts.iter().flatten().map(|receipt| receipt.new_entries).sum::<usize>();
        self.connection = Some(open);
        Ok(receipts)
    }

    fn index(&mut self) -> Result<(), StoreError> {
        let result = self.take_open().and_then(|mut open| {
            open.set_flushes(false)?;
            index(&mut open.connection)?;
            self.connection = Some(open);
            Ok(())
        });
        match &result {
            Ok(()) => self.unindexed = 0,
            Err(_) => self.recover(),
        }
        result
    }

    fn prune(&mut self, asked: &Prune) -> Result<Pruned, StoreError> {
        let result = self.take_open().and_then(|mut open| {
            open.set_flushes(true)?;
            check_schema(&open.connection)?;
            let pruned = prune(&mut open.connection, asked)?;
            self.connection = Some(open);
            Ok(pruned)
        });
        // What requests were based on may be gone.
        self.bodies.clear();
        if result.is_err() {
            self.recover();
        }
        result
    }

    /// Takes the connection, or opens a new one if there is none or the file is another by now.
    fn take_open(&mut self) -> Result<Open, StoreError> {
        match self.connection.take() {
            Some(open) if open.file == file_mark(&self.path) => Ok(open),
            _ => self.open(),
        }
    }

    fn open(&self) -> Result<Open, StoreError> {
        let connection = open_writer(&self.path, self.busy, self.opening)?;
        Ok(Open { connection, file: file_mark(&self.path), flushes: true, version: None })
    }

    /// Forgets what may not be true any more. The connection is gone already.
    fn recover(&mut self) {
        self.connection = None;
        self.bodies.clear();
    }
}

impl Open {
    fn set_flushes(&mut self, flushes: bool) -> Result<(), StoreError> {
        if self.flushes != flushes {
            let level = if flushes { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.flushes = flushes;
        }
        Ok(())
    }
}

/// Writes one batch of a group; an error of the database ends the group, any other only this batch.
fn write(
    savepoint: Savepoint<'_>,
    prepared: &Prepared,
    bodies: &mut Lately,
) -> Result<Result<Receipt, StoreError>, StoreError> {
    let written =
        Writing { connection: &savepoint, prepared, bodies, new_entries: 0, touched: BTreeMap::new() }
            .write();
    match written {
        Ok(receipt) => {
            savepoint.commit()?;
            Ok(Ok(receipt))
        }
        Err(
            error @ (StoreError::UnknownEntry(_)
            | StoreError::UnknownConversation(_)
            | StoreError::UnknownExchange(_)),
        ) => {
            // Dropped, the savepoint is rolled back; so are the requests that were based on it.
            bodies.clear();
            Ok(Err(error))
        }
        Err(error) => Err(error),
    }
}

/// Returns a number that changes when another connection writes, and not when this one does.
fn data_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

/// Tells the file that a path leads to from another that took its place: one that is written to after it was
/// removed would be lost in silence.
#[cfg(unix)]
fn file_mark(path: &Path) -> Option<FileMark> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_mark(_: &Path) -> Option<FileMark> {
    None
}
