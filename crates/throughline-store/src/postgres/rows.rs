//! The rows that every durable store has, as PostgreSQL keeps them: read with ids in place of numbers, and written
//! by the statements that write batches.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Portal, Row as PostgresRow, Transaction};

use super::bodies::BLOBS;
use super::failure::Failure;
use super::steps::{array, insertion};
use super::value::{plain, text, unpacked};
use crate::StoreError;
use crate::digest::Digest;
use crate::upkeep::{Cell, Column, Row, SourcedBody, TABLES};

/// How many rows are read at a time.
const PAGE_ROWS: i32 = 256;

/// A table that is read in pieces.
pub(super) struct Pages {
    portal: Portal,
    columns: Vec<Column>,
}

/// Begins to read a table. `with_records` adds what the check of an entry needs.
pub(super) async fn pages(
    transaction: &Transaction<'_>,
    table: usize,
    with_records: bool,
) -> Result<Pages, Failure> {
    const RECORD: [Column; 3] = [Column::Small, Column::Number, Column::Bytes];
    let (sql, extra): (String, &[Column]) = match TABLES[table].name {
        "nodes" if with_records => (
            format!("SELECT {NODES}{WITH_RECORDS} FROM {NODES_FROM} {RECORDS_FROM} ORDER BY nodes.n"),
            &[RECORD, RECORD].concat(),
        ),
        "nodes" => (format!("SELECT {NODES} FROM {NODES_FROM} ORDER BY nodes.n"), &[]),
        name => (select(name).to_owned(), &[]),
    };
    let statement = transaction.prepare(&sql).await?;
    let portal = transaction.bind(&statement, &[]).await?;
    Ok(Pages { portal, columns: TABLES[table].columns.iter().chain(extra).copied().collect() })
}

impl Pages {
    /// Returns the next rows, if there are any.
    pub async fn next(&mut self, transaction: &Transaction<'_>) -> Result<Option<Vec<Row>>, Failure> {
        let found = transaction.query_portal(&self.portal, PAGE_ROWS).await?;
        let page = found.iter().map(|row| cells(row, &self.columns)).collect::<Result<Vec<Row>, _>>()?;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

fn cells(row: &PostgresRow, columns: &[Column]) -> Result<Row, Failure> {
    columns.iter().enumerate().map(|(at, column)| cell(row, at, *column)).collect()
}

fn cell(row: &PostgresRow, at: usize, column: Column) -> Result<Cell, Failure> {
    let found = match column {
        Column::Text => match row.try_get::<_, Option<&str>>(at)? {
            Some(_) => Some(Cell::Text(text(row, at)?.to_string())),
            None => None,
        },
        Column::Small => row.try_get::<_, Option<i16>>(at)?.map(|number| Cell::Number(number.into())),
        Column::Number => row.try_get::<_, Option<i32>>(at)?.map(|number| Cell::Number(number.into())),
        Column::Long => row.try_get::<_, Option<i64>>(at)?.map(Cell::Number),
        Column::Flag => row.try_get::<_, Option<bool>>(at)?.map(|flag| Cell::Number(flag.into())),
        Column::Digest => row.try_get::<_, Option<Digest>>(at)?.map(Cell::Digest),
        Column::Digests => row.try_get::<_, Option<Vec<Digest>>>(at)?.map(Cell::Digests),
        Column::Bytes => row.try_get::<_, Option<Vec<u8>>>(at)?.map(Cell::Bytes),
    };
    Ok(found.unwrap_or(Cell::Nothing))
}

/// Writes rows of a table.
pub(super) async fn insert(transaction: &Transaction<'_>, table: usize, rows: &[Row]) -> Result<(), Failure> {
    let statement = transaction.prepare(insertion(TABLES[table].name)).await?;
    let columns = TABLES[table].columns.iter().enumerate();
    let values: Vec<Box<dyn ToSql + Sync + Send + '_>> =
        columns.map(|(at, column)| values(rows, at, *column)).collect();
    let params: Vec<&(dyn ToSql + Sync)> = values.iter().map(|values| &**values as _).collect();
    transaction.execute(&statement, &params).await?;
    Ok(())
}

/// Returns a column of rows as an array.
fn values(rows: &[Row], at: usize, column: Column) -> Box<dyn ToSql + Sync + Send + '_> {
    fn all<'r, T>(rows: &'r [Row], at: usize, of: impl Fn(&'r Cell) -> Option<T>) -> Vec<Option<T>> {
        rows.iter().map(|row| of(&row[at])).collect()
    }
    match column {
        Column::Text => Box::new(all(rows, at, |cell| cell.text().map(plain))),
        Column::Small => {
            Box::new(all(rows, at, |cell| cell.number().and_then(|number| i16::try_from(number).ok())))
        }
        Column::Number => {
            Box::new(all(rows, at, |cell| cell.number().and_then(|number| i32::try_from(number).ok())))
        }
        Column::Long => Box::new(all(rows, at, Cell::number)),
        Column::Flag => Box::new(all(rows, at, |cell| cell.number().map(|number| number != 0))),
        Column::Digest => Box::new(all(rows, at, Cell::digest)),
        Column::Bytes => Box::new(all(rows, at, Cell::bytes)),
        Column::Digests => Box::new(all(rows, at, |cell| match cell {
            Cell::Digests(digests) => Some(Cow::<str>::Owned(array(digests))),
            _ => None,
        })),
    }
}

/// Reads a request as it is stored, with the records that it is compressed with.
pub(super) async fn sourced(
    transaction: &Transaction<'_>,
    digest: Digest,
) -> Result<Option<SourcedBody>, Failure> {
    const BODY: &str =
        "SELECT digest, base, depth, sources, head, tail, codec, size, bytes FROM bodies WHERE digest = $1";
    let Some(row) = transaction.query_opt(BODY, &[&digest]).await? else { return Ok(None) };
    let columns = TABLES.iter().find(|table| table.name == "bodies").map_or(&[][..], |table| table.columns);
    let row = cells(&row, columns)?;
    let mut sources = Vec::new();
    if let Some(Cell::Digests(digests)) = row.get(3) {
        let found = transaction.query(BLOBS, &[digests]).await?;
        for digest in digests {
            let is_it = |row: &&PostgresRow| row.try_get::<_, Digest>(0).is_ok_and(|found| found == *digest);
            if let Some(row) = found.iter().find(is_it) {
                // One that cannot be unpacked is found out by itself, and by what rests on it.
                sources.extend(unpacked(row, 1).map_err(StoreError::from).unwrap_or_default());
            }
        }
    }
    Ok(Some(SourcedBody { row, sources }))
}

const NODES: &str = "nodes.id, conversations.id, exchanges.id, nodes.parent, nodes.record, nodes.envelope,
    nodes.chain, nodes.counts, nodes.at, nodes.kind, nodes.tool, nodes.call_id, nodes.message, nodes.block";

const NODES_FROM: &str = "nodes LEFT JOIN conversations ON conversations.n = nodes.conversation
    LEFT JOIN exchanges ON exchanges.n = nodes.exchange";

/// The record of each entry and its envelope, packed.
const WITH_RECORDS: &str =
    ", records.codec, records.size, records.bytes, envelopes.codec, envelopes.size, envelopes.bytes";

const RECORDS_FROM: &str = "LEFT JOIN blobs AS records ON records.digest = nodes.record
    LEFT JOIN blobs AS envelopes ON envelopes.digest = nodes.envelope";

fn select(table: &str) -> &'static str {
    match table {
        "conversations" => "SELECT id, created, updated, identified, title FROM conversations ORDER BY n",
        "keys" => {
            "SELECT key, conversations.id
             FROM keys LEFT JOIN conversations ON conversations.n = keys.conversation"
        }
        "exchanges" => {
            "SELECT exchanges.id, conversations.id, before, after, dialect, client, asked_model, started, ended,
                 ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted
             FROM exchanges LEFT JOIN conversations ON conversations.n = exchanges.conversation
             ORDER BY exchanges.n"
        }
        "attempts" => {
            "SELECT exchanges.id, number, backend, attempts.dialect, model, strategy, report, attempts.started,
                 attempts.ended, attempts.status, failure
             FROM attempts LEFT JOIN exchanges ON exchanges.n = attempts.exchange"
        }
        "blobs" => "SELECT digest, codec, size, bytes FROM blobs",
        "items" => "SELECT items.id, nodes.id FROM items LEFT JOIN nodes ON nodes.id = items.node",
        // A base comes before what is based on it.
        "bodies" => {
            "SELECT digest, base, depth, sources, head, tail, codec, size, bytes FROM bodies ORDER BY depth, digest"
        }
        "sent" => {
            "SELECT exchanges.id, attempt, bodies.digest
             FROM sent LEFT JOIN exchanges ON exchanges.n = sent.exchange
                 LEFT JOIN bodies ON bodies.digest = sent.body"
        }
        "events" => {
            "SELECT exchanges.id, attempt, codec, size, bytes
             FROM events LEFT JOIN exchanges ON exchanges.n = events.exchange
             ORDER BY events.exchange, attempt, events.n"
        }
        "answers" => {
            "SELECT exchanges.id, codec, size, bytes
             FROM answers LEFT JOIN exchanges ON exchanges.n = answers.exchange"
        }
        "learned" => "SELECT backend, model, capability, verdict, reason, at, expires FROM learned",
        _ => {
            "SELECT conversations.id, name, value, at
             FROM settings LEFT JOIN conversations ON conversations.n = settings.conversation"
        }
    }
}
