//! The index of words, brought up to date in large steps.
//!
//! Adding the words of one entry costs as much as storing it; adding those of many costs little more. So
//! entries are indexed when many have gathered, or when somebody searches. How far the index reaches is in the
//! database, next to it, so that nothing is left out after a crash.

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use super::read::{load_blob, place, unpacked};
use crate::StoreError;
use crate::record::EntryReader;
use crate::words::Findable;

/// How many entries are indexed in one transaction.
const STEP: usize = 512;

/// Indexes the words of all entries that are not indexed yet.
pub(super) fn index(connection: &mut Connection) -> Result<(), StoreError> {
    while is_behind(connection)? {
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        step(&transaction)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Does the same inside a transaction that is under way.
pub(super) fn index_all(connection: &Connection) -> Result<(), StoreError> {
    while is_behind(connection)? {
        step(connection)?;
    }
    Ok(())
}

/// Builds the index anew, whatever state it is in.
pub(super) fn reindex(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    rebuild(&transaction)?;
    Ok(transaction.commit()?)
}

/// Does the same inside a transaction that is under way.
pub(super) fn rebuild(connection: &Connection) -> Result<(), StoreError> {
    // It cannot be dropped while it says that it is of another version.
    const READABLE: &str = "INSERT OR REPLACE INTO words_config (k, v) VALUES ('version', 4)";
    connection.execute_batch(READABLE)?;
    connection.execute_batch(include_str!("schema-3.sql"))?;
    connection.execute_batch("DELETE FROM indexed; INSERT INTO indexed VALUES (0)")?;
    index_all(connection)
}

/// Returns the words of an entry, whose number, record and place are in that row.
///
/// None if its record is damaged: `store check` tells of it, and the others are found all the same.
pub(super) fn words_of(
    connection: &Connection,
    reader: &mut EntryReader,
    row: &Row<'_>,
) -> Result<Option<Vec<String>>, StoreError> {
    let place = place(row, 4)?;
    let read = unpacked(row, 1)
        .and_then(|record| reader.decode(&record, place, &mut |digest| load_blob(connection, digest)));
    match read {
        Err(StoreError::Damaged(_)) => Ok(None),
        read => Ok(Some(Findable::of(&read?).distinct().into_iter().collect())),
    }
}

fn is_behind(connection: &Connection) -> Result<bool, StoreError> {
    let behind = "SELECT coalesce((SELECT max(n) FROM nodes), 0) > (SELECT n FROM indexed)";
    Ok(connection.prepare_cached(behind)?.query_row([], |row| row.get(0))?)
}

fn step(transaction: &Connection) -> Result<(), StoreError> {
    let mut select = transaction.prepare_cached(
        "SELECT nodes.n, codec, size, bytes, message, block FROM nodes JOIN blobs ON blobs.n = nodes.record
         WHERE nodes.n > (SELECT n FROM indexed) ORDER BY nodes.n LIMIT ?1",
    )?;
    let mut insert = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
    let mut reader = EntryReader::default();
    let mut rows = select.query([STEP])?;
    let mut last: Option<i64> = None;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        let words = words_of(transaction, &mut reader, row)?.unwrap_or_default();
        insert.execute(params![n, words.join(" ")])?;
        last = Some(n);
    }
    if let Some(last) = last {
        transaction.prepare_cached("UPDATE indexed SET n = ?1")?.execute([last])?;
    }
    Ok(())
}
