//! The schema: what version the database has, and how it is brought to the current one.

use super::compaction::take_from_reports;
use super::connection::Connection;
use super::documents::move_reports;
use super::failure::Failure;
use super::rechain::rechain;
use super::rows::add_checksums;
use crate::StoreError;

/// The schema of each version, from the first; a database is brought forward one step at a time.
const MIGRATIONS: [Migration; 6] = [
    Migration { sql: include_str!("schema-1.sql"), then: Afterwards::Nothing },
    Migration { sql: include_str!("schema-2.sql"), then: Afterwards::Nothing },
    Migration { sql: include_str!("schema-3.sql"), then: Afterwards::Rechain },
    Migration { sql: include_str!("schema-4.sql"), then: Afterwards::AddChecksums },
    Migration { sql: include_str!("schema-5.sql"), then: Afterwards::TakeSteps },
    Migration { sql: include_str!("schema-6.sql"), then: Afterwards::MoveReports },
];

/// A step from one schema to the next.
struct Migration {
    sql: &'static str,
    then: Afterwards,
}

/// What SQL alone cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Afterwards {
    Nothing,
    /// Entries get other chains.
    Rechain,
    /// Rows get their checksums.
    AddChecksums,
    /// Steps of compaction are taken from reports.
    TakeSteps,
    /// Reports are moved from the rows of attempts into documents.
    MoveReports,
}

/// The version that this program writes.
pub(super) const SCHEMA: i32 = MIGRATIONS.len() as i32;

/// Reads the version of the database, and keeps others from bringing it forward while a transaction goes on.
pub(super) const VERSION: &str = "SELECT version, pg_backend_pid() FROM format";

/// Taken by whoever brings the schema forward: "through", in ASCII.
const MIGRATION_LOCK: i64 = 0x7468_726f_7567_6800;

/// Brings the database to the current schema, or says why that cannot be.
pub(super) async fn migrate(connection: &mut Connection) -> Result<(), Failure> {
    if found(connection).await? == SCHEMA {
        return Ok(());
    }
    // It takes as long as it takes; only the wait for others does not.
    let begin =
        format!("BEGIN; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    connection.client.batch_execute(&begin).await?;
    // Asked again now that nobody else does the same: another replica may have done it meanwhile.
    let from = found(connection).await?;
    check(from)?;
    let steps = MIGRATIONS.get(from.max(0).cast_unsigned() as usize..).unwrap_or_default();
    if from > 0 && !steps.is_empty() {
        // Writers under way end first, and later ones see the new version.
        connection.client.batch_execute("LOCK TABLE format IN ACCESS EXCLUSIVE MODE").await?;
    }
    // What SQL alone cannot do is done by code that knows the tables as they are in the end.
    for step in steps {
        connection.client.batch_execute(step.sql).await?;
    }
    for step in steps {
        match step.then {
            Afterwards::Rechain if from > 0 => rechain(connection).await?,
            Afterwards::AddChecksums if from > 0 => add_checksums(connection).await?,
            Afterwards::TakeSteps if from > 0 => take_from_reports(connection).await?,
            Afterwards::MoveReports => move_reports(connection).await?,
            _ => {}
        }
    }
    let done = format!("UPDATE format SET version = {SCHEMA} WHERE version <> {SCHEMA}; COMMIT");
    connection.client.batch_execute(&done).await?;
    Ok(())
}

/// Says whether there is a history in the database, and one that this program can use as it is.
pub(super) async fn is_there(connection: &Connection) -> Result<bool, Failure> {
    match found(connection).await? {
        0 => Ok(false),
        version if version < SCHEMA => {
            let (found, known) = (version.max(0).cast_unsigned(), SCHEMA.cast_unsigned());
            Err(StoreError::Older { found, known }.into())
        }
        version => Ok(check(version).map(|()| true)?),
    }
}

/// Says whether this program may work with a database of that version.
pub(super) fn check(version: i32) -> Result<(), StoreError> {
    match version.cast_unsigned() {
        found if version > SCHEMA => Err(StoreError::Newer { found, known: SCHEMA.cast_unsigned() }),
        _ => Ok(()),
    }
}

/// Returns the version of the database; 0 if there is none yet.
async fn found(connection: &Connection) -> Result<i32, Failure> {
    let exists = "SELECT to_regclass('format') IS NOT NULL";
    if !connection.client.query_one(exists, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = connection.client.query_opt("SELECT version FROM format", &[]).await?;
    let missing = || StoreError::Damaged("it does not say which schema it has".to_owned());
    Ok(row.ok_or_else(missing)?.try_get(0)?)
}
