//! Readers: a few threads with a connection each, so that no query runs on an async thread.
//!
//! Each question is answered inside one read transaction and so sees whole batches. A connection that failed
//! is dropped and opened again for the next question, so that a database that comes back is read again.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection::open_reader;
use crate::StoreError;

/// A question, with the way its answer goes back; told of the connection, or why there is none.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Result<(), StoreError> + Send>;

#[derive(Debug)]
pub(super) struct Readers {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub fn start(path: &Path, busy: Duration, count: usize) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::unbounded_channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for number in 0..count.max(1) {
            let (queue, path) = (Arc::clone(&queue), path.to_owned());
            let thread = Builder::new()
                .name(format!("history-read-{number}"))
                .spawn(move || run(&queue, &path, busy))
                .map_err(|error| StoreError::Unavailable(error.to_string()))?;
            threads.push(thread);
        }
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs something on one of the threads that needs no database.
    pub async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(move |_| Ok(compute())).await
    }

    /// Asks the database.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(move |connection| {
            let transaction = connection?.unchecked_transaction()?;
            let answer = read(&transaction)?;
            transaction.commit()?;
            Ok(answer)
        })
        .await
    }

    async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(Result<&Connection, StoreError>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let result = work(connection);
            let failed = result.as_ref().err().cloned();
            // Nobody waits any more if the client has gone away; that is no failure.
            let _ = answer.send(result);
            failed.map_or(Ok(()), Err)
        });
        self.jobs.as_ref().ok_or(StoreError::Closed)?.send(job).map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(queue: &Mutex<mpsc::UnboundedReceiver<Job>>, path: &Path, busy: Duration) {
    let mut connection: Option<Connection> = None;
    loop {
        // One thread waits for the next question, the others for their turn to wait.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(job) = job else { return };
        let opened = match connection.take() {
            Some(connection) => Ok(connection),
            None => open_reader(path, busy),
        };
        connection = match opened {
            Ok(opened) => match job(Ok(&opened)) {
                Ok(()) | Err(StoreError::Busy) => Some(opened),
                Err(_) => None,
            },
            Err(error) => {
                let _ = job(Err(error));
                None
            }
        };
    }
}
