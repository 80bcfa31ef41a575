//! Connections that read: a few, opened when they are needed and used again.
//!
//! A question that found its connection cut off is asked again over a new one: reading twice does no harm.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::connection::{Connection, Door};
use super::failure::Failure;
use crate::StoreError;

/// A question to the database.
pub(super) trait Question: Send + Sync + 'static {
    /// What comes back.
    type Answer: Send + 'static;

    /// Asks it.
    fn ask(&self, connection: &mut Connection) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// Connections that read.
pub(super) struct Pool {
    door: Door,
    patience: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
    /// Since when the server has not been there.
    gone: Mutex<Option<Instant>>,
}

/// How long to wait before the server is asked again whether it is back.
const RETRY: Duration = Duration::from_millis(50);

impl Pool {
    pub fn new(door: Door, patience: Duration, size: usize) -> Self {
        let (idle, gone) = (Mutex::new(Vec::new()), Mutex::new(None));
        Self { door, patience, permits: Semaphore::new(size.max(1)), idle, gone }
    }

    /// Asks a question.
    pub async fn ask<Q: Question>(&self, question: &Q) -> Result<Q::Answer, StoreError> {
        let _permit = self.permits.acquire().await.map_err(|_| StoreError::Closed)?;
        // Connections that were cut off while nobody looked are found out one by one.
        while let Some(connection) = self.take() {
            match self.ask_over(question, connection).await {
                Err(Failure::Lost(_)) => {}
                answered => return Ok(answered?),
            }
        }
        let connection = self.open().await?;
        Ok(self.ask_over(question, connection).await?)
    }

    /// Opens a connection; waits for a while if the server has only just gone away.
    pub async fn open(&self) -> Result<Connection, StoreError> {
        loop {
            match self.door.open().await {
                Err(Failure::Lost(_)) if self.is_worth_waiting() => tokio::time::sleep(RETRY).await,
                Err(failure) => return Err(failure.into()),
                Ok(connection) => {
                    *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return Ok(connection);
                }
            }
        }
    }

    /// Says whether the server has not been gone for long.
    fn is_worth_waiting(&self) -> bool {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.get_or_insert_with(Instant::now).elapsed() < self.patience
    }

    async fn ask_over<Q: Question>(
        &self,
        question: &Q,
        mut connection: Connection,
    ) -> Result<Q::Answer, Failure> {
        match tokio::time::timeout(self.door.limit, question.ask(&mut connection)).await {
            Ok(Ok(answer)) => {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
                Ok(answer)
            }
            // A connection on which anything failed is not used again: it may be inside a transaction.
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Store(too_slow(self.door.limit))),
        }
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Says that the database took too long.
pub(super) fn too_slow(limit: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer within {limit:?}"))
}
