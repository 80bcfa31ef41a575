//! What can be said about the database itself, for whoever examines it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::connection::Connection;
use super::failure::Failure;
use super::pool::Question;
use super::schema::check;
use crate::StoreError;
use crate::upkeep::WRITE_PROBE_INTERVAL;

/// What can be said about the database itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The version of the server, as it says it.
    pub server: String,
    /// How many bytes the history takes, with its indexes and without the server's maps of free space.
    pub bytes: u64,
    /// Whether the server flushes to the disk what it acknowledges.
    pub flushes: bool,
}

/// The question for it.
#[derive(Debug)]
pub(super) struct InWhatCondition;

const CONDITION: &str = "
    SELECT current_setting('server_version'), current_setting('fsync') = 'on',
        (SELECT coalesce(sum(pg_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace
             OR oid IN (SELECT reltoastrelid FROM pg_class
                 WHERE relnamespace = current_schema()::regnamespace))";

/// The question whether something can be written now: something is, unless that was done a moment ago.
#[derive(Debug)]
pub(super) struct IsReady {
    /// When it was last seen that something can be written.
    pub written: Arc<Mutex<Option<Instant>>>,
}

const WRITE: &str = "UPDATE write_probe SET at = now()";

/// The version and whether the server takes writes, and a look at where every group is written.
const READY: &str = "
    SELECT version, current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery(),
        (SELECT coalesce(max(n), 0) FROM nodes), (SELECT n FROM indexed)
    FROM format";

impl Question for IsReady {
    type Answer = ();

    async fn ask(&self, connection: &mut Connection) -> Result<(), Failure> {
        let rows = connection.query(READY, &[]).await?;
        let missing = || StoreError::Damaged("it does not say which schema it has".to_owned());
        let row = rows.first().ok_or_else(missing)?;
        check(row.try_get(0)?)?;
        match row.try_get(1)? {
            // Over another connection, which may lead to another server, it may be otherwise.
            true => Err(Failure::Lost("the server takes no writes".to_owned())),
            false => self.write(connection).await,
        }
    }
}

impl IsReady {
    async fn write(&self, connection: &mut Connection) -> Result<(), Failure> {
        let seen = |now: Option<Instant>| {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *written, now)
        };
        let last = seen(None);
        if last.is_none_or(|at| at.elapsed() >= WRITE_PROBE_INTERVAL) {
            connection.query(WRITE, &[]).await?;
            seen(Some(Instant::now()));
        } else {
            seen(last);
        }
        Ok(())
    }
}

impl Question for InWhatCondition {
    type Answer = Condition;

    async fn ask(&self, connection: &mut Connection) -> Result<Condition, Failure> {
        let rows = connection.query(CONDITION, &[]).await?;
        let row = rows.first().ok_or_else(|| Failure::Lost("no answer".to_owned()))?;
        Ok(Condition {
            server: row.try_get(0)?,
            flushes: row.try_get(1)?,
            bytes: row.try_get::<_, i64>(2)?.cast_unsigned(),
        })
    }
}
