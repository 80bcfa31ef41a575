//! The bell between replicas: it rings when any of them has written.
//!
//! A notification inside a transaction makes commits wait for each other, so it is sent beside them: one for all
//! that was written in a moment. It says only that there is something; who hears it asks the database. The
//! connection for it is opened when somebody writes, or wants to be told.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio_postgres::AsyncMessage;

use super::connection::Door;
use super::failure::Failure;

/// What rings.
pub(super) struct Bell {
    pub door: Door,
    /// How often this replica has written.
    pub written: watch::Receiver<u64>,
    /// Somebody wants to be told.
    pub wanted: Arc<Notify>,
    /// Rung for those who want to be told.
    pub ring: watch::Sender<u64>,
    /// How much of what this replica has written the others were told of.
    pub told: u64,
}

const LISTEN: &str = "LISTEN throughline";
const WHO: &str = "SELECT current_schema()::text, pg_backend_pid()";
const TELL: &str = "SELECT pg_notify('throughline', current_schema()::text)";

/// What is written within this time is told of once.
const GATHER: Duration = Duration::from_millis(10);

/// How long to wait before a connection that was lost is opened again.
const RETRY: Duration = Duration::from_millis(500);

impl Bell {
    /// Tells and listens until the writer has gone.
    pub async fn run(mut self) {
        let first = async { self.written.wait_for(|written| *written > 0).await.is_ok() };
        let is_needed = tokio::select! {
            has_written = first => has_written,
            () = self.wanted.notified() => true,
        };
        if !is_needed {
            return;
        }
        while self.session().await.is_err() && self.written.has_changed().is_ok() {
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Tells and listens over one connection; done when the writer has gone.
    async fn session(&mut self) -> Result<(), Failure> {
        let (client, mut connection) = self.door.connected().await?;
        let (heard, mut hears) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            // Ends with the connection, which ends when the client is dropped.
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    let _ = heard.send(notification);
                }
            }
        });
        client.batch_execute(LISTEN).await?;
        let who = client.query_one(WHO, &[]).await?;
        let (schema, own): (String, i32) = (who.try_get(0)?, who.try_get(1)?);
        let tell = client.prepare(TELL).await?;
        // Something may have been missed while nobody listened.
        self.ring();
        loop {
            let written = *self.written.borrow_and_update();
            if written > self.told {
                client.execute(&tell, &[]).await?;
                self.told = written;
            }
            tokio::select! {
                notification = hears.recv() => match notification {
                    None => return Err(Failure::Lost("the connection that listens was lost".to_owned())),
                    Some(notification) => {
                        if notification.payload() == schema && notification.process_id() != own {
                            self.ring();
                        }
                    }
                },
                changed = self.written.changed() => match changed {
                    Ok(()) => tokio::time::sleep(GATHER).await,
                    Err(_) => return Ok(()),
                },
            }
        }
    }

    fn ring(&self) {
        self.ring.send_modify(|rung| *rung += 1);
    }
}
