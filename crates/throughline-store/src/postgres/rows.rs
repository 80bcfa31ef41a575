//! The rows that every durable store has, as PostgreSQL keeps them: read with ids in place of numbers, and written
//! by the statements that write batches.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Portal, Row as PostgresRow, Transaction};

use super::bodies::BLOBS;
use super::connection::Connection;
use super::failure::Failure;
use super::steps::{array, insertion};
use super::value::{plain, text, unpacked};
use crate::StoreError;
use crate::checksum::checksum_of_cells;
use crate::digest::Digest;
use crate::upkeep::{Cell, Column, Row, SourcedBody, TABLES, Table};

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
    let Select { columns, from, order, .. } = select(TABLES[table].name);
    let (more, joined, extra): (&str, &str, &[Column]) = match TABLES[table].name {
        "nodes" if with_records => (WITH_RECORDS, RECORDS_FROM, &[RECORD, RECORD].concat()),
        _ => ("", "", &[]),
    };
    let sql = format!("SELECT {columns}{more} FROM {from} {joined} ORDER BY {order}");
    let statement = transaction.prepare(&sql).await?;
    let portal = transaction.bind(&statement, &[]).await?;
    Ok(Pages { portal, columns: TABLES[table].kinds().chain(extra.iter().copied()).collect() })
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
    let columns = TABLES[table].kinds().enumerate();
    let values: Vec<Box<dyn ToSql + Sync + Send + '_>> =
        columns.map(|(at, column)| values(rows, at, column)).collect();
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
    let sql = format!("SELECT {BODIES} FROM bodies WHERE digest = $1");
    let Some(row) = transaction.query_opt(&sql, &[&digest]).await? else { return Ok(None) };
    let row = cells(&row, &Table::named("bodies").kinds().collect::<Vec<_>>())?;
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

/// Computes the checksum of every row of every table, inside a transaction that is under way: for a database from before
/// there were any.
pub(super) async fn add_checksums(connection: &Connection) -> Result<(), Failure> {
    for table in TABLES.iter().filter(|table| table.has_checksum()) {
        add_checksums_to(connection, table.name).await?;
    }
    Ok(())
}

/// Computes the checksum of every row of a table.
pub(super) async fn add_checksums_to(connection: &Connection, table: &str) -> Result<(), Failure> {
    let (client, table) = (&connection.client, Table::named(table));
    let Select { columns, from, key, .. } = select(table.name);
    let kinds: Vec<Column> = table.kinds().collect();
    let update = format!(
            "UPDATE {0} SET checksum = given.checksum FROM unnest($1::text[]::tid[], $2::bigint[]) AS given (place, checksum)
             WHERE {0}.ctid = given.place",
            table.name
        );
    let update = client.prepare(&update).await?;
    let cursor =
        format!("DECLARE unchecked NO SCROLL CURSOR FOR SELECT {columns}, {key}.ctid::text FROM {from}");
    client.batch_execute(&cursor).await?;
    loop {
        let rows = client.query(&format!("FETCH {PAGE_ROWS} FROM unchecked"), &[]).await?;
        if rows.is_empty() {
            break;
        }
        let (mut places, mut checksums) = (Vec::new(), Vec::new());
        for row in &rows {
            places.push(row.try_get::<_, String>(kinds.len())?);
            checksums.push(checksum_of_cells(table.name, &cells(row, &kinds[..kinds.len() - 1])?));
        }
        client.execute(&update, &[&places, &checksums]).await?;
    }
    client.batch_execute("CLOSE unchecked").await?;
    Ok(())
}

/// How the rows of a table are read, with ids in place of numbers.
struct Select {
    table: &'static str,
    columns: &'static str,
    from: &'static str,
    order: &'static str,
    /// What the table is called among those that it is read with.
    key: &'static str,
}

/// The record of each entry and its envelope, packed.
const WITH_RECORDS: &str =
    ", records.codec, records.size, records.bytes, envelopes.codec, envelopes.size, envelopes.bytes";

const RECORDS_FROM: &str = "LEFT JOIN blobs AS records ON records.digest = nodes.record
    LEFT JOIN blobs AS envelopes ON envelopes.digest = nodes.envelope";

const BODIES: &str = "digest, base, depth, sources, head, tail, codec, size, bytes, checksum";

fn select(table: &str) -> &'static Select {
    SELECTS.iter().find(|select| select.table == table).unwrap_or(&SELECTS[0])
}

const SELECTS: [Select; 14] = [
    Select {
        table: "conversations",
        columns: "id, created, updated, identified, title, checksum",
        from: "conversations",
        order: "n",
        key: "conversations",
    },
    Select {
        table: "keys",
        columns: "key, conversations.id, keys.checksum",
        from: "keys LEFT JOIN conversations ON conversations.n = keys.conversation",
        order: "key",
        key: "keys",
    },
    Select {
        table: "exchanges",
        columns:
            "exchanges.id, conversations.id, before, after, dialect, client, asked_model, started, ended,
            ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted,
            exchanges.checksum",
        from: "exchanges LEFT JOIN conversations ON conversations.n = exchanges.conversation",
        order: "exchanges.n",
        key: "exchanges",
    },
    Select {
        table: "attempts",
        columns: "exchanges.id, number, backend, attempts.dialect, model, strategy, attempts.started,
            attempts.ended, attempts.status, failure,
            CASE WHEN attempts.step_exchange IS NOT NULL THEN coalesce(decided.id, '') END, step_attempt,
            tokens_before, tokens_after, tool_tokens, continues, recall, attempts.checksum",
        from: "attempts LEFT JOIN exchanges ON exchanges.n = attempts.exchange
            LEFT JOIN exchanges AS decided ON decided.n = attempts.step_exchange",
        order: "attempts.exchange, number",
        key: "attempts",
    },
    Select {
        table: "blobs",
        columns: "digest, codec, size, bytes",
        from: "blobs",
        order: "digest",
        key: "blobs",
    },
    // An exchange that is gone is not the same as none.
    Select {
        table: "nodes",
        columns: "nodes.id, conversations.id,
            CASE WHEN nodes.exchange IS NOT NULL THEN coalesce(exchanges.id, '') END, nodes.parent,
            nodes.record, nodes.envelope, nodes.chain, nodes.counts, nodes.at, nodes.kind, nodes.tool,
            nodes.call_id, nodes.message, nodes.block, nodes.checksum",
        from: "nodes LEFT JOIN conversations ON conversations.n = nodes.conversation
            LEFT JOIN exchanges ON exchanges.n = nodes.exchange",
        order: "nodes.n",
        key: "nodes",
    },
    Select {
        table: "items",
        columns: "items.id, nodes.id, items.checksum",
        from: "items LEFT JOIN nodes ON nodes.id = items.node",
        order: "items.id",
        key: "items",
    },
    // A base comes before what is based on it.
    Select { table: "bodies", columns: BODIES, from: "bodies", order: "depth, digest", key: "bodies" },
    Select {
        table: "documents",
        columns: "exchanges.id, attempt, kind, bodies.digest, documents.checksum",
        from: "documents LEFT JOIN exchanges ON exchanges.n = documents.exchange
            LEFT JOIN bodies ON bodies.digest = documents.body",
        order: "documents.exchange, attempt, kind",
        key: "documents",
    },
    Select {
        table: "events",
        columns: "exchanges.id, attempt, codec, size, bytes, events.checksum",
        from: "events LEFT JOIN exchanges ON exchanges.n = events.exchange",
        order: "events.exchange, attempt, events.n",
        key: "events",
    },
    Select {
        table: "answers",
        columns: "exchanges.id, codec, size, bytes, answers.checksum",
        from: "answers LEFT JOIN exchanges ON exchanges.n = answers.exchange",
        order: "answers.exchange",
        key: "answers",
    },
    // A step that is gone is not the same as none.
    Select {
        table: "compaction_steps",
        columns: "exchanges.id, attempt, conversations.id, backend, model, at,
            CASE WHEN follows_exchange IS NOT NULL THEN coalesce(followed.id, '') END, follows_attempt, codec,
            size, bytes, summary, compaction_steps.checksum",
        from: "compaction_steps LEFT JOIN exchanges ON exchanges.n = compaction_steps.exchange
            LEFT JOIN conversations ON conversations.n = compaction_steps.conversation
            LEFT JOIN exchanges AS followed ON followed.n = compaction_steps.follows_exchange",
        order: "compaction_steps.n",
        key: "compaction_steps",
    },
    Select {
        table: "learned",
        columns: "backend, model, capability, verdict, reason, at, expires, checksum",
        from: "learned",
        order: "backend, model, capability",
        key: "learned",
    },
    // What holds everywhere has no conversation; one that is gone is not the same.
    Select {
        table: "settings",
        columns:
            "CASE WHEN settings.conversation <> 0 THEN coalesce(conversations.id, '') END, name, value, at,
            settings.checksum",
        from: "settings LEFT JOIN conversations ON conversations.n = settings.conversation",
        order: "settings.conversation, name",
        key: "settings",
    },
];
