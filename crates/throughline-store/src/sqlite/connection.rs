//! Connections: how the database is opened, brought to the current schema, and what its errors mean.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

use super::compaction;
use super::documents;
use super::index::index_all;
use super::intact::{Draft, is_there as is_there_at};
use super::read::unpacked;
use super::rechain::rechain;
use super::rows::add_checksums;
use crate::StoreError;
use crate::record::envelope_of;
use crate::upkeep::WRITE_PROBE_INTERVAL;

/// The schema of each version, from the first; a database is brought forward one step at a time.
const MIGRATIONS: [Migration; 7] = [
    Migration { sql: include_str!("schema-1.sql"), then: None },
    Migration { sql: include_str!("schema-2.sql"), then: Some(note_envelopes) },
    Migration { sql: include_str!("schema-3.sql"), then: Some(index_all) },
    Migration { sql: include_str!("schema-4.sql"), then: Some(rechain) },
    Migration { sql: include_str!("schema-5.sql"), then: Some(add_checksums) },
    Migration { sql: include_str!("schema-6.sql"), then: Some(compaction::take_from_reports) },
    Migration { sql: include_str!("schema-7.sql"), then: Some(documents::move_reports) },
];

/// What is done once the tables are there.
type Afterwards = fn(&Connection) -> Result<(), StoreError>;

/// A step from one schema to the next.
struct Migration {
    sql: &'static str,
    /// What SQL alone cannot do.
    then: Option<Afterwards>,
}

/// The version that this program writes.
pub(super) const SCHEMA: u32 = MIGRATIONS.len() as u32;

const WAL_BYTES_KEPT: i64 = 64 << 20;
/// Small on purpose. When the tree of an index is balanced, SQLite looks through its whole cache at the commit, and a
/// history with digests for keys is balanced at every fifth: with 64 MiB that took a millisecond each time, far more than
/// it takes to have a page from the operating system again.
const WRITER_CACHE_KIB: i64 = 4 << 10;

const CACHED_STATEMENTS: usize = 64;

/// Whether a database is changed by being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// It is made if there is none, and brought to the current schema.
    Make,
    /// It is taken as it is, or not at all.
    AsItIs,
}

/// Opens a connection that writes.
pub(super) fn open_writer(path: &Path, busy: Duration, opening: Opening) -> Result<Connection, StoreError> {
    if !is_there_at(path)? && opening == Opening::Make {
        make(path, busy)?;
    }
    let mut connection = open(path, busy)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    match opening {
        Opening::Make => migrate(&mut connection)?,
        Opening::AsItIs => check_schema(&connection)?,
    }
    Ok(connection)
}

/// Says whether there is a history in the file, and one that this program can use as it is.
pub(super) fn is_there(path: &Path, busy: Duration) -> Result<bool, StoreError> {
    let connection = open(path, busy)?;
    if schema(&connection)? == 0 {
        return refuse_foreign(&connection).map(|()| false);
    }
    check_schema(&connection).map(|()| true)
}

/// Makes a database under another name, and has it take its place when it is whole: there is never one that is empty,
/// so one that is has been cut short.
fn make(path: &Path, busy: Duration) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let draft = Draft::beside(path).map_err(failed)?;
    let mut connection = open(draft.path(), busy)?;
    migrate(&mut connection)?;
    connection.close().map_err(|(_, error)| StoreError::from(error))?;
    draft.take_place().map_err(failed)
}

/// Says whether something can be written now: by writing something, unless that was done a moment ago.
///
/// It is asked over a connection of its own, which has nothing in its cache: one that is open goes on seeing what the
/// file was before it was damaged.
pub(super) fn check_ready(
    path: &Path,
    busy: Duration,
    written: &Mutex<Option<Instant>>,
) -> Result<(), StoreError> {
    const LOOK: &str = "SELECT coalesce(max(n), 0) FROM nodes UNION ALL SELECT n FROM indexed";
    if !is_there_at(path)? && path.parent().is_none_or(Path::is_dir) {
        // Whoever writes next makes it anew.
        return Ok(());
    }
    let mut connection = open(path, busy)?;
    connection.pragma_update(None, "synchronous", "full")?;
    let transaction = Transaction::new(&mut connection, TransactionBehavior::Immediate)?;
    check_schema(&transaction)?;
    let mut statement = transaction.prepare(LOOK)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    drop(statement);
    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
    if written.is_none_or(|at| at.elapsed() >= WRITE_PROBE_INTERVAL) {
        *written = None;
        transaction.execute("UPDATE write_probe SET at = at + 1", [])?;
        transaction.commit()?;
        *written = Some(Instant::now());
    }
    Ok(())
}

/// Opens a connection that only reads.
pub(super) fn open_reader(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let connection = open(path, busy)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -8_000)?;
    check_schema(&connection)?;
    Ok(connection)
}

/// Says whether this program may work with the database as it is now.
///
/// A newer program may bring it forward at any time, so this is asked again before each write.
pub(super) fn check_schema(connection: &Connection) -> Result<(), StoreError> {
    match schema(connection)? {
        SCHEMA => Ok(()),
        found if found > SCHEMA => Err(StoreError::Newer { found, known: SCHEMA }),
        0 => Err(StoreError::Damaged("there is no history in it".to_owned())),
        found => Err(StoreError::Older { found, known: SCHEMA }),
    }
}

fn open(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    // Never made here: `make` is how a file comes to be.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy)?;
    // A file that somebody else has written may hold anything, but no functions of ours.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

fn schema(connection: &Connection) -> Result<u32, StoreError> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    if schema(connection)? == SCHEMA {
        return Ok(());
    }
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Asked again now that nobody else writes: another process may have done it meanwhile.
    let from = schema(&transaction)?;
    if from > SCHEMA {
        return Err(StoreError::Newer { found: from, known: SCHEMA });
    }
    if from == 0 {
        refuse_foreign(&transaction)?;
    }
    let steps = &MIGRATIONS[from as usize..];
    // What SQL alone cannot do is done by code that knows the tables as they are in the end.
    for step in steps {
        transaction.execute_batch(step.sql)?;
    }
    for then in steps.iter().filter_map(|step| step.then) {
        then(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()?;
    Ok(())
}

/// Says that a database with tables and without a version is none that may be written to.
fn refuse_foreign(connection: &Connection) -> Result<(), StoreError> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match tables {
        0 => Ok(()),
        _ => Err(StoreError::Damaged("it has tables, and does not say of which schema".to_owned())),
    }
}

/// Makes an empty database of the current schema in memory: what one on the disk is compared with.
pub(super) fn made_in_memory() -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Fills in which envelope each entry shares with others.
fn note_envelopes(connection: &Connection) -> Result<(), StoreError> {
    let mut entries = connection.prepare(
        "SELECT nodes.n, codec, size, bytes FROM nodes JOIN blobs ON blobs.n = nodes.record ORDER BY nodes.n",
    )?;
    let mut note = connection
        .prepare("UPDATE nodes SET envelope = (SELECT n FROM blobs WHERE digest = ?2) WHERE n = ?1")?;
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(envelope) = envelope_of(&unpacked(row, 1)?)? {
            note.execute(params![row.get::<_, i64>(0)?, envelope.bytes()])?;
        }
    }
    Ok(())
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            // A column that is not what it should be: nothing of ours wrote that.
            None => Self::Damaged(error.to_string()),
            Some(_) => Self::Unavailable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn errors_say_what_is_the_matter() {
        let error = |code| StoreError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        assert_eq!(error(ffi::SQLITE_FULL), StoreError::Full);
        assert_eq!(error(ffi::SQLITE_BUSY), StoreError::Busy);
        assert!(matches!(error(ffi::SQLITE_CORRUPT), StoreError::Damaged(_)));
        assert!(matches!(error(ffi::SQLITE_IOERR), StoreError::Unavailable(_)));
        assert!(error(ffi::SQLITE_FULL).is_passing() && !error(ffi::SQLITE_CORRUPT).is_passing());
    }

    #[test]
    fn sqlite_is_one_whose_log_does_not_corrupt() {
        // Before 3.51.3, resetting the write-ahead log could corrupt the database.
        assert!(rusqlite::version_number() >= 3_051_003, "SQLite {}", rusqlite::version());
    }
}
