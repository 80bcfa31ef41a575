//! Verifies a history in SQLite: the file, by SQLite's own checks; the schema, against the one that this program makes;
//! every row, by `upkeep/checkup.rs`; and the index of words, by working it out anew.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{made_in_memory, open_reader};
use super::index::words_of;
use super::rows::{rows, sourced};
use super::upkeep::{PAGE_ROWS, stats};
use crate::StoreError;
use crate::record::EntryReader;
use crate::upkeep::{Checker, Checkup, TABLES, Teller, Watch};

/// How much of what SQLite finds is asked for.
const FOUND_MAX: usize = 100;

/// Verifies everything.
pub(super) fn check(path: &Path, busy: Duration, watch: Watch) -> Result<Checkup, StoreError> {
    let connection = open_reader(path, busy)?;
    // A table that only this connection has will show what is in the index of words.
    connection.pragma_update(None, "query_only", false)?;
    let snapshot = connection.unchecked_transaction()?;
    let mut checker = Checker::default();
    check_structure(&snapshot, &mut checker)?;
    check_rows(&snapshot, &mut checker, watch)?;
    match verify_index(&snapshot) {
        Ok(None) => {}
        Ok(Some(what)) => checker.index(&what),
        Err(error @ StoreError::Busy) => return Err(error),
        // SQLite has no word of its own for an index of words that it cannot make sense of.
        Err(StoreError::Damaged(what) | StoreError::Unavailable(what)) => checker.index(&what),
        Err(error) => return Err(error),
    }
    Ok(checker.done())
}

fn check_rows(connection: &Connection, checker: &mut Checker, watch: Watch) -> Result<(), StoreError> {
    let total = match stats(connection) {
        Err(StoreError::Damaged(_)) => 0,
        stats => stats?.rows_to_check(),
    };
    let mut teller = Teller::new(watch, "checked", total);
    for (table, described) in TABLES.iter().enumerate() {
        let counts = ["conversations", "exchanges", "nodes", "blobs", "bodies"].contains(&described.name);
        let mut odd = Vec::new();
        let read = rows(
            connection,
            table,
            true,
            PAGE_ROWS,
            &mut |row, error| {
                odd.push((row, error));
                Ok(())
            },
            &mut |page| {
                page.iter().for_each(|row| checker.row(table, row));
                teller.add(if counts { page.len() } else { 0 });
                Ok(())
            },
        );
        for (row, error) in odd {
            checker.unreadable(described.name, &row, &error);
        }
        match read {
            Err(error @ StoreError::Damaged(_)) => checker.unreadable(described.name, "", &error),
            read => read?,
        }
    }
    while let Some(digest) = checker.next_body() {
        match sourced(connection, digest) {
            Err(StoreError::Damaged(_)) => checker.body(digest, None),
            body => checker.body(digest, body?),
        }
        teller.add(1);
    }
    Ok(())
}

/// Verifies what holds the rows: pages, indexes, references, and the tables themselves.
fn check_structure(connection: &Connection, checker: &mut Checker) -> Result<(), StoreError> {
    for found in integrity(connection)? {
        checker.file(&found);
    }
    for found in dangling(connection)? {
        checker.file(&found);
    }
    let (expected, found) = (schema_of(&made_in_memory()?)?, schema_of(connection)?);
    for (name, sql) in expected {
        if found.get(&name) != Some(&sql) {
            checker.file(&format!("the definition of {name} is not the one that this program makes"));
        }
    }
    Ok(())
}

/// Asks SQLite whether its own structures are sound: every page, and every index against its table.
pub(super) fn integrity(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let lines = || -> Result<Vec<String>, StoreError> {
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FOUND_MAX})"))?;
        let found = statement.query_map([], |row| row.get::<_, String>(0))?;
        Ok(found.collect::<Result<_, _>>()?)
    };
    match lines() {
        // What is so damaged that it cannot even be checked is found as well.
        Err(StoreError::Damaged(what) | StoreError::Unavailable(what)) => Ok(vec![what]),
        lines => Ok(lines?.into_iter().filter(|line| line != "ok").collect()),
    }
}

/// Returns the rows that refer to one that is not there.
fn dangling(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let found = statement.query_map([], |row| {
        let (table, n, of): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let row = n.map_or_else(String::new, |n| format!(" {n}"));
        Ok(format!("row{row} of {table} refers to a row of {of} that is not there"))
    })?;
    let found: Result<Vec<String>, _> = found.take(FOUND_MAX).collect();
    match found.map_err(StoreError::from) {
        Err(StoreError::Damaged(what)) => Ok(vec![what]),
        found => found,
    }
}

/// Returns how each table and index is defined, without comments and spaces.
fn schema_of(connection: &Connection) -> Result<BTreeMap<String, String>, StoreError> {
    let mut statement =
        connection.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let all = statement.query_map([], |row| Ok((row.get(0)?, bare(&row.get::<_, String>(1)?))))?;
    Ok(all.collect::<Result<_, _>>()?)
}

fn bare(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Says what is wrong with the index of words: it should have the words of the entries that it reaches, and no others.
fn verify_index(connection: &Connection) -> Result<Option<String>, StoreError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let reaches = number("SELECT n FROM indexed")?;
    if number("SELECT count(*) FROM indexed")? != 1
        || reaches > number("SELECT coalesce(max(n), 0) FROM nodes")?
    {
        return Ok(Some("it claims to reach beyond the last entry".to_owned()));
    }
    let (mut expected, mut unknown) = (0_u64, HashSet::new());
    let mut entries = connection.prepare(
        "SELECT nodes.n, codec, size, bytes, message, block FROM nodes JOIN blobs ON blobs.n = nodes.record
         WHERE nodes.n <= ?1 ORDER BY nodes.n",
    )?;
    let mut reader = EntryReader::default();
    let mut rows = entries.query([reaches])?;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        match words_of(connection, &mut reader, row)? {
            Some(words) => {
                for word in words {
                    expected = expected.wrapping_add(mark_of(n, &word));
                }
            }
            // Its record is damaged: whether these are its words cannot be told.
            None => drop(unknown.insert(n)),
        }
    }
    connection
        .execute_batch("CREATE VIRTUAL TABLE temp.indexed_words USING fts5vocab (main, words, instance)")?;
    let mut found = 0_u64;
    let mut indexed = connection.prepare("SELECT doc, term FROM temp.indexed_words")?;
    let mut rows = indexed.query([])?;
    while let Some(row) = rows.next()? {
        let term =
            row.get_ref(1)?.as_bytes().map_err(|_| StoreError::Damaged("a word is no text".to_owned()))?;
        let n = row.get(0)?;
        if !unknown.contains(&n) {
            found = found.wrapping_add(mark_of(n, &String::from_utf8_lossy(term)));
        }
    }
    Ok((found != expected).then(|| "its words are not those of the entries".to_owned()))
}

/// Marks are added up, so that the order in which they come does not matter.
fn mark_of(n: i64, word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (n, word).hash(&mut hasher);
    hasher.finish()
}
