//! Connections: how one is opened, what holds on it, and its prepared statements.
//!
//! Every question here is answered by an index. The planner is told so: a plan that was made while a table was
//! small, and read it whole, would otherwise hold when it is large.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::address::Address;
use super::failure::Failure;
use super::tls::Tls;
use crate::StoreError;

/// The way to the database.
#[derive(Clone)]
pub(super) struct Door {
    pub address: Arc<Address>,
    pub tls: Tls,
    /// How long the database may take to answer.
    pub limit: Duration,
}

/// One connection, closed when it is dropped.
pub(super) struct Connection {
    pub client: Client,
    statements: BTreeMap<&'static str, Statement>,
    driver: JoinHandle<()>,
}

/// A parameter of a statement.
pub(super) type Param<'p> = &'p (dyn ToSql + Sync);

/// The oldest server that will do: it makes up names by itself.
const SERVER_MIN: i32 = 130_000;

impl Door {
    /// Opens a connection.
    pub async fn open(&self) -> Result<Connection, Failure> {
        let (client, driver) = self.connected().await?;
        let driver = tokio::spawn(async move {
            // Whoever asks is told of its end; nobody else needs to be.
            let _ = driver.await;
        });
        let connection = Connection { client, statements: BTreeMap::new(), driver };
        connection.set_up(self.limit).await?;
        Ok(connection)
    }

    /// Opens a connection whose messages the caller reads.
    pub async fn connected(
        &self,
    ) -> Result<
        (
            Client,
            tokio_postgres::Connection<tokio_postgres::Socket, super::tls::Stream<tokio_postgres::Socket>>,
        ),
        Failure,
    > {
        let connected = tokio::time::timeout(self.limit, self.address.config.connect(self.tls.clone())).await;
        match connected {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(error)) => {
                let is_refused = self.address.by_default && is_about_tls(&error);
                let failure = self.named(error.into());
                Err(if is_refused { with_advice(failure) } else { failure })
            }
            Err(_) => Err(Failure::Lost(format!("{}: no answer to a connection", self.address))),
        }
    }

    /// Says which server could not be reached: there may be several, and the error names none.
    fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Lost(what) => Failure::Lost(format!("{}: {what}", self.address)),
            Failure::Store(StoreError::Unavailable(what)) => {
                Failure::Store(StoreError::Unavailable(format!("{}: {what}", self.address)))
            }
            other => other,
        }
    }
}

/// Says whether a connection failed because of TLS, and not because it was lost on the way.
fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    // The driver tells what it was doing in words alone.
    let is_handshake = error.to_string().starts_with("error performing TLS handshake");
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let speaks_tls = |cause: &std::io::Error| {
        let inner = cause.get_ref();
        inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
    };
    is_handshake && cause.is_none_or(speaks_tls)
}

/// Says what to put into the URL when TLS stands in the way that the URL does not mention. It is no use to try again.
fn with_advice(failure: Failure) -> Failure {
    let what = match failure {
        Failure::Lost(what) | Failure::Store(StoreError::Unavailable(what)) => what,
        other => return other,
    };
    Failure::Store(StoreError::Unsupported(format!(
        "{what}; servers on other machines are reached with TLS and their certificate is verified: name the \
         authority with sslrootcert=FILE in the URL, or say sslmode=require to encrypt without verifying, or \
         sslmode=disable to do neither"
    )))
}

impl Connection {
    async fn set_up(&self, limit: Duration) -> Result<(), Failure> {
        let limit = limit.as_millis();
        let settings = format!(
            "SET statement_timeout = {limit}; SET lock_timeout = {};
             SET idle_in_transaction_session_timeout = {};
             SET client_min_messages = warning; SET jit = off;
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
             SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'",
            limit / 2,
            2 * limit
        );
        self.client.batch_execute(&settings).await?;
        Ok(())
    }

    /// Says whether the server is one that will do.
    pub async fn check_server(&self) -> Result<(), Failure> {
        let row = self.client.query_one("SELECT current_setting('server_version_num')::integer", &[]).await?;
        Ok(check_version(row.try_get(0)?)?)
    }

    /// Prepares a statement, unless it is prepared already.
    pub async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Failure> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Asks a question.
    pub async fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, params).await?)
    }

    /// Begins a transaction that sees one state of the database, for questions of several statements.
    pub async fn begin_snapshot(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
    }

    /// Ends it.
    pub async fn end_snapshot(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }
}

fn check_version(version: i32) -> Result<(), StoreError> {
    if version >= SERVER_MIN {
        return Ok(());
    }
    let (found, needed) = (version / 10_000, SERVER_MIN / 10_000);
    let what = format!("the server is PostgreSQL {found}, and {needed} or later is needed");
    Err(StoreError::Unsupported(what))
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A server that does not answer would keep it waiting.
        self.driver.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_refused_by_name() {
        let error = check_version(120_022).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL 12, and 13 or later is needed"), "{error}");
        assert_eq!(check_version(130_000), Ok(()));
    }
}
