//! The one writer of a replica: commits what has gathered while it was committing.
//!
//! A commit takes two journeys and a flush, whatever is in it, so batches are committed in groups, as in the
//! SQLite store. Other replicas write at the same time; what they have in common is settled by the database.
//!
//! A connection may be lost at any moment. Before the commit is sent, nothing was written, and the group is
//! written anew over another connection. After that the server is asked whether the mark is there that each
//! transaction leaves, so that an error means that nothing was written, and an answer that everything was.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;

use super::bodies::latest;
use super::connection::Connection;
use super::failure::Failure;
use super::index::{Index, PIECE_ENTRIES};
use super::lookup::{Begun, Mark, begin};
use super::plan::{Lately, Plan, Wanted};
use super::pool::{Pool, too_slow};
use crate::changes::ring;
use crate::prepared::Prepared;
use crate::{Durability, Receipt, StoreError};

/// A batch, and whoever waits for it.
pub(super) type Waiting = (Prepared, oneshot::Sender<Result<Receipt, StoreError>>);

/// What came of each batch of a group.
type Receipts = Vec<Result<Receipt, StoreError>>;

/// How many batches are committed together at most.
const GROUP_MAX: usize = 256;

/// How often a group that collided with another is written anew.
const COLLISIONS_MAX: usize = 5;

/// How long to wait before the server is asked again what became of a transaction.
const RETRY: Duration = Duration::from_millis(20);

pub(super) struct Writer {
    pub pool: Arc<Pool>,
    pub connection: Option<Connection>,
    /// What this writer is called in the database.
    pub id: String,
    /// How often it has begun to write a group.
    pub begun: i64,
    /// How long a group may take.
    pub limit: Duration,
    pub lately: Lately,
    /// How many entries were written since the index of words was last brought up to date.
    pub unindexed: usize,
    /// Counts commits, for the other replicas.
    pub written: watch::Sender<u64>,
    /// Rung after each commit, for this one.
    pub rung: watch::Sender<u64>,
}

/// Why an attempt to write a group failed.
enum Undone {
    /// Nothing was written.
    Before(Failure),
    /// The commit was under way, in this process of the server.
    Unknown(i32, Failure),
}

impl<F: Into<Failure>> From<F> for Undone {
    fn from(failure: F) -> Self {
        Self::Before(failure.into())
    }
}

impl Writer {
    /// Writes what comes until nobody can bring any more.
    pub async fn run(mut self, mut queue: mpsc::Receiver<Waiting>) {
        let mut group = Vec::new();
        while queue.recv_many(&mut group, GROUP_MAX).await > 0 {
            let (batches, askers): (Vec<Prepared>, Vec<_>) = group.drain(..).unzip();
            let receipts = self.write(&batches).await;
            if let Ok(receipts) = &receipts {
                ring(&self.written);
                ring(&self.rung);
                self.index(receipts);
            }
            for (number, asker) in askers.into_iter().enumerate() {
                let receipt = match &receipts {
                    Ok(receipts) => receipts.get(number).cloned().unwrap_or(Err(StoreError::Closed)),
                    Err(error) => Err(error.clone()),
                };
                // Nobody waits any more if the client has gone away; that is no failure.
                let _ = asker.send(receipt);
            }
        }
    }

    /// Has the words of what was written indexed, when there is enough of it for a piece.
    fn index(&mut self, receipts: &Receipts) {
        self.unindexed += receipts.iter().flatten().map(|receipt| receipt.new_entries).sum::<usize>();
        if self.unindexed as i64 >= PIECE_ENTRIES {
            self.unindexed = 0;
            let pool = Arc::clone(&self.pool);
            // If it fails, whoever searches has it made up for.
            tokio::spawn(async move { pool.ask(&Index).await });
        }
    }

    /// Writes a group; an error means that nothing of it was written.
    async fn write(&mut self, group: &[Prepared]) -> Result<Receipts, StoreError> {
        let deadline = Instant::now() + self.limit;
        let mut collisions = 0;
        loop {
            let (undone, receipts) = match self.attempt(group, deadline).await {
                Ok(receipts) => return Ok(receipts),
                Err((undone, receipts)) => (undone, receipts),
            };
            self.lately.clear();
            let failure = match undone {
                Undone::Before(failure) => failure,
                Undone::Unknown(process, failure) => match self.was_committed(process, deadline).await? {
                    true => return Ok(receipts),
                    false => failure,
                },
            };
            match failure {
                Failure::Lost(_) if Instant::now() < deadline => {}
                Failure::Collided if collisions < COLLISIONS_MAX => collisions += 1,
                failure => return Err(failure.into()),
            }
        }
    }

    async fn attempt(
        &mut self,
        group: &[Prepared],
        deadline: Instant,
    ) -> Result<Receipts, (Undone, Receipts)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.pool.open().await.map_err(|error| (error.into(), Vec::new()))?,
        };
        let mut receipts = Vec::new();
        let mut process = None;
        self.begun += 1;
        let written = self.transact(&mut connection, group, &mut receipts, &mut process);
        let written = tokio::time::timeout_at(deadline, written).await;
        let failure = match written {
            Ok(Ok(())) => {
                self.connection = Some(connection);
                return Ok(receipts);
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Store(too_slow(self.limit)),
        };
        let undone = match (process, failure) {
            (Some(process), failure @ (Failure::Lost(_) | Failure::Store(StoreError::Unavailable(_)))) => {
                Undone::Unknown(process, failure)
            }
            (_, failure) => Undone::Before(failure),
        };
        Err((undone, receipts))
    }

    /// Writes a group in one transaction; `process` is set once the commit may be under way.
    async fn transact(
        &mut self,
        connection: &mut Connection,
        group: &[Prepared],
        receipts: &mut Receipts,
        process: &mut Option<i32>,
    ) -> Result<(), Failure> {
        let mut wanted = Wanted::default();
        group.iter().for_each(|prepared| wanted.add(prepared, &self.lately));
        let is_durable = group.iter().any(|prepared| prepared.batch.durability == Durability::Durable);
        let mark = Mark { writer: &self.id, group: self.begun };
        let begun: Begun = begin(connection, &wanted, mark, is_durable).await?;
        let mut plan = Plan::new(begun.known);
        self.bring_to_hand(connection, &plan, group).await?;
        let lately = &mut self.lately;
        // Comparing and compressing requests of megabytes takes milliseconds.
        *receipts =
            tokio::task::block_in_place(|| group.iter().map(|prepared| plan.add(prepared, lately)).collect());
        let steps = plan.steps();
        let mut statements = Vec::with_capacity(steps.len());
        for step in &steps {
            statements.push(connection.prepared(step.sql).await?);
        }
        *process = Some(begun.process);
        let client = &connection.client;
        let run = steps.iter().zip(&statements).map(|(step, statement)| {
            client.execute_raw(statement, step.params.iter().map(|param| &**param as &(dyn ToSql + Sync)))
        });
        // The commit is sent without waiting for what goes before: if that fails, it takes back.
        let written = tokio::try_join!(biased; try_join_all(run), client.batch_execute("COMMIT"));
        written?;
        Ok(())
    }

    /// Reads the latest request of each conversation that has none at hand to compare with.
    async fn bring_to_hand(
        &mut self,
        connection: &mut Connection,
        plan: &Plan<'_>,
        group: &[Prepared],
    ) -> Result<(), Failure> {
        group.iter().for_each(|prepared| plan.forget_what_is_gone(prepared, &mut self.lately));
        let needed: BTreeSet<_> =
            group.iter().flat_map(|prepared| plan.needs_latest(prepared, &self.lately)).collect();
        for conversation in needed {
            if let Some(sent) = latest(connection, &conversation).await? {
                self.lately.put_at_hand(&conversation, sent);
            }
        }
        Ok(())
    }

    /// Asks the server whether the transaction was committed whose commit was under way when the connection was lost.
    ///
    /// It holds the writer's row until its end. Whoever gets hold of that sees whether its mark is there, for good. A
    /// row that nobody sees may be one that it is about to write, so the place of the row is taken in any case.
    async fn was_committed(&mut self, process: i32, deadline: Instant) -> Result<bool, StoreError> {
        const WAIT_BRIEFLY: &str = "SELECT set_config('lock_timeout', '50ms', false)";
        const MARK: &str = "INSERT INTO writers VALUES ($1::text::uuid, 0, now())
            ON CONFLICT (id) DO UPDATE SET at = excluded.at RETURNING groups";
        const END: &str = "SELECT pg_terminate_backend($1)";
        loop {
            let mut connection = self.pool.open().await?;
            let asked = async {
                connection.query(WAIT_BRIEFLY, &[]).await?;
                connection.query(MARK, &[&self.id]).await
            };
            match asked.await {
                Ok(rows) => {
                    let last = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose();
                    return Ok(last.map_err(Failure::from)? == Some(self.begun));
                }
                // The server has not noticed that nobody is there any more.
                Err(Failure::Store(StoreError::Busy)) => drop(connection.query(END, &[&process]).await),
                Err(Failure::Store(error)) => return Err(error),
                Err(_) => {}
            }
            if Instant::now() >= deadline + self.limit {
                let what = "the connection was lost while writing, and what became of it is not known";
                return Err(StoreError::Unavailable(what.to_owned()));
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}
