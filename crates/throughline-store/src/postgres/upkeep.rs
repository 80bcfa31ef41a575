//! Counts, checks, copies: what an operator does to a history in PostgreSQL, over a connection of its own.
//!
//! Such work takes as long as it takes: statements on this connection have no time limit, and the planner is free to
//! read whole tables.

use std::path::Path;

use tokio_postgres::IsolationLevel;
use tokio_postgres::Transaction;

use super::connection::Connection;
use super::failure::Failure;
use super::index::Index;
use super::pool::{Pool, Question};
use super::prune::words_between;
use super::rows::{insert, pages, sourced};
use crate::upkeep::{
    Checker, Checkup, Inflow, Inventory, Outflow, Page, Stats, TABLES, Teller, Volume, Watch, copy,
    not_empty, unequal,
};
use crate::{Moment, Postgres, Sqlite, SqliteOptions, StoreError};

const STATS: &str = "
    SELECT (SELECT count(*) FROM conversations), (SELECT count(*) FROM nodes), (SELECT count(*) FROM exchanges),
        (SELECT min(created) FROM conversations), (SELECT max(updated) FROM conversations),
        (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')";

const VOLUMES: &str = "
    SELECT count(*), coalesce(sum(length(bytes)), 0)::bigint, coalesce(sum(size), 0)::bigint FROM blobs
    UNION ALL SELECT count(*), coalesce(sum(length(bytes)), 0)::bigint, coalesce(sum(size), 0)::bigint FROM bodies
    UNION ALL SELECT count(*), coalesce(sum(length(bytes)), 0)::bigint, coalesce(sum(size), 0)::bigint FROM events
    UNION ALL SELECT count(*), coalesce(sum(length(bytes)), 0)::bigint, coalesce(sum(size), 0)::bigint FROM answers";

const IS_EMPTY: &str = "
    SELECT NOT EXISTS (SELECT 1 FROM conversations) AND NOT EXISTS (SELECT 1 FROM blobs)
        AND NOT EXISTS (SELECT 1 FROM learned) AND NOT EXISTS (SELECT 1 FROM settings)";

/// Keeps every writer out until the transaction ends.
pub(super) const ALONE: &str = "LOCK TABLE format IN ACCESS EXCLUSIVE MODE";

/// Opens a connection for work that takes long.
pub(super) async fn open(pool: &Pool) -> Result<Connection, StoreError> {
    let connection = pool.open().await?;
    let settings = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
        SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on";
    connection.client.batch_execute(settings).await.map_err(Failure::from)?;
    Ok(connection)
}

/// Counts what there is.
pub(super) async fn stats(pool: &Pool) -> Result<Stats, StoreError> {
    let mut connection = open(pool).await?;
    Ok(counted(&mut connection).await?)
}

async fn counted(connection: &mut Connection) -> Result<Stats, Failure> {
    let rows = connection.query(STATS, &[]).await?;
    let row = rows.first().ok_or_else(|| Failure::Lost("no answer".to_owned()))?;
    let number = |column: usize| Ok::<_, Failure>(row.try_get::<_, i64>(column)?.cast_unsigned());
    let moment = |column: usize| Ok::<_, Failure>(row.try_get::<_, Option<i64>>(column)?.map(Moment));
    let mut stats = Stats {
        conversations: number(0)?,
        entries: number(1)?,
        exchanges: number(2)?,
        oldest: moment(3)?,
        latest: moment(4)?,
        disk: number(5)?,
        ..Stats::default()
    };
    let volumes = connection.query(VOLUMES, &[]).await?;
    let all = [&mut stats.records, &mut stats.requests, &mut stats.events, &mut stats.answers];
    for (volume, row) in all.into_iter().zip(&volumes) {
        let number = |column: usize| Ok::<_, Failure>(row.try_get::<_, i64>(column)?.cast_unsigned());
        *volume = Volume { count: number(0)?, bytes: number(1)?, unpacked: number(2)? };
    }
    Ok(stats)
}

/// Begins a transaction that sees one state of the database.
async fn snapshot(connection: &mut Connection) -> Result<Transaction<'_>, Failure> {
    let begun = connection.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    Ok(begun.read_only(true).start().await?)
}

/// Verifies everything.
pub(super) async fn check(pool: &Pool, watch: Watch) -> Result<Checkup, StoreError> {
    let mut connection = open(pool).await?;
    Ok(checked(&mut connection, watch).await?)
}

async fn checked(connection: &mut Connection, watch: Watch) -> Result<Checkup, Failure> {
    let total = counted(connection).await?.rows_to_check();
    let mut teller = Teller::new(watch, "checked", total);
    let mut checker = Checker::default();
    let snapshot = snapshot(connection).await?;
    for (table, described) in TABLES.iter().enumerate() {
        let counts = ["conversations", "exchanges", "nodes", "blobs", "bodies"].contains(&described.name);
        let mut pages = pages(&snapshot, table, true).await?;
        while let Some(page) = pages.next(&snapshot).await? {
            tokio::task::block_in_place(|| page.iter().for_each(|row| checker.row(table, row)));
            teller.add(if counts { page.len() } else { 0 });
        }
    }
    while let Some(digest) = checker.next_body() {
        let body = sourced(&snapshot, digest).await?;
        tokio::task::block_in_place(|| checker.body(digest, body));
        teller.add(1);
    }
    if let Some(what) = verify_index(&snapshot).await? {
        checker.index(what);
    }
    snapshot.commit().await?;
    Ok(checker.done())
}

/// Entries that no piece of the index of words has although it claims to reach them, pieces beyond its reach, and a
/// reach beyond the last number that was given out.
const MISSED: &str = "
    SELECT (SELECT count(*) FROM indexed) <> 1
        OR EXISTS (SELECT 1 FROM nodes WHERE n <= (SELECT n FROM indexed)
            AND NOT EXISTS (SELECT 1 FROM words WHERE nodes.n BETWEEN words.first AND words.last))
        OR EXISTS (SELECT 1 FROM words WHERE last > (SELECT n FROM indexed) OR first > last)
        OR (SELECT n FROM indexed) > coalesce(pg_sequence_last_value(pg_get_serial_sequence('nodes', 'n')), 0)";

/// Says what is wrong with the index of words: it should have the words of the entries that it reaches, and no others.
async fn verify_index(transaction: &Transaction<'_>) -> Result<Option<&'static str>, Failure> {
    if transaction.query_one(MISSED, &[]).await?.try_get(0)? {
        return Ok(Some("it does not reach the entries that it claims to"));
    }
    let pieces = transaction.prepare("SELECT first, last, words FROM words ORDER BY first").await?;
    let portal = transaction.bind(&pieces, &[]).await?;
    loop {
        let some = transaction.query_portal(&portal, 16).await?;
        if some.is_empty() {
            return Ok(None);
        }
        for piece in &some {
            let expected = match words_between(transaction, piece.try_get(0)?, piece.try_get(1)?).await {
                Err(Failure::Store(StoreError::Damaged(_))) => None,
                words => Some(words?),
            };
            if expected.as_deref() != Some(piece.try_get(2)?) {
                return Ok(Some("its words are not those of the entries"));
            }
        }
    }
}

/// Builds the index of words anew: pieces are made as they are when a history grows.
pub(super) async fn reindex(pool: &Pool) -> Result<(), StoreError> {
    // Whoever is about to add a piece is waited for.
    const EMPTY: &str = "SELECT pg_advisory_xact_lock(512970878067);
        DELETE FROM words; DELETE FROM indexed; INSERT INTO indexed VALUES (0)";
    let mut connection = open(pool).await?;
    let emptied = async {
        let transaction = connection.client.transaction().await?;
        transaction.batch_execute(EMPTY).await?;
        transaction.commit().await
    };
    emptied.await.map_err(Failure::from)?;
    Ok(Index.ask(&mut connection).await?)
}

/// Gives space that was freed back to the file system.
pub(super) async fn shrink(pool: &Pool) -> Result<(), StoreError> {
    let connection = open(pool).await?;
    for table in TABLES.iter().map(|table| table.name).chain(["words"]) {
        let sql = format!("VACUUM (FULL, ANALYZE) {table}");
        connection.client.batch_execute(&sql).await.map_err(Failure::from)?;
    }
    Ok(())
}

/// Sends every row of one state of the database.
pub(super) async fn pour(pool: &Pool, into: Outflow) -> Result<(), StoreError> {
    let mut connection = open(pool).await?;
    let poured = async {
        let snapshot = snapshot(&mut connection).await?;
        for table in 0..TABLES.len() {
            let mut pages = pages(&snapshot, table, false).await?;
            while let Some(page) = pages.next(&snapshot).await? {
                into.0.send(Page::Rows(table, page)).await.map_err(|_| StoreError::Closed)?;
            }
        }
        snapshot.commit().await?;
        into.0.send(Page::End).await.map_err(|_| StoreError::Closed)?;
        Ok::<_, Failure>(())
    };
    Ok(poured.await?)
}

/// Takes in every row of another history, and keeps it if it reads back equal.
pub(super) async fn fill(pool: &Pool, from: Inflow) -> Result<Inventory, StoreError> {
    let mut connection = open(pool).await?;
    let written = filled(&mut connection, from).await?;
    // Nobody has asked for anything yet, so nobody waits for the words.
    Index.ask(&mut connection).await?;
    connection.client.batch_execute("ANALYZE").await.map_err(Failure::from)?;
    Ok(written)
}

async fn filled(connection: &mut Connection, mut from: Inflow) -> Result<Inventory, Failure> {
    let transaction = connection.client.transaction().await?;
    transaction.batch_execute(ALONE).await?;
    if !transaction.query_one(IS_EMPTY, &[]).await?.try_get::<_, bool>(0)? {
        return Err(not_empty().into());
    }
    let mut given = Inventory::default();
    loop {
        match from.0.recv().await {
            // The source broke off, and says why itself.
            None => return Err(StoreError::Closed.into()),
            Some(Page::End) => break,
            Some(Page::Rows(table, page)) => {
                page.iter().for_each(|row| given.add(table, row));
                insert(&transaction, table, &page).await?;
            }
        }
    }
    let mut written = Inventory::default();
    for table in 0..TABLES.len() {
        let mut pages = pages(&transaction, table, false).await?;
        while let Some(page) = pages.next(&transaction).await? {
            page.iter().for_each(|row| written.add(table, row));
        }
    }
    if let Some(table) = given.difference(&written) {
        return Err(unequal(table).into());
    }
    transaction.commit().await?;
    Ok(written)
}

impl Postgres {
    /// Copies the history to an SQLite file that is not there yet.
    pub(super) async fn copy_to(&self, file: &Path, watch: Watch) -> Result<(), StoreError> {
        crate::sqlite::refuse_existing(file)?;
        let all @ [partial, ..] = &crate::sqlite::unfinished(file);
        all.iter().for_each(|left| drop(std::fs::remove_file(left)));
        let copied = async {
            let target = Sqlite::open(partial, SqliteOptions::default())?;
            copy(self, &target, watch).await.map(drop)
        };
        let copied = copied.await.and_then(|()| {
            let named = std::fs::File::open(partial).and_then(|copy| copy.sync_all());
            let named = named.and_then(|()| std::fs::rename(partial, file));
            named.map_err(|error| StoreError::Unavailable(format!("{}: {error}", file.display())))
        });
        all.iter().for_each(|left| drop(std::fs::remove_file(left)));
        copied
    }
}
