//! The rows that every durable store has, as SQLite keeps them: read with ids in place of numbers, and written back.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row as SqliteRow, Statement, params, params_from_iter};

use super::bodies::encoded;
use super::read::unpacked;
use crate::StoreError;
use crate::digest::Digest;
use crate::record::Reader;
use crate::upkeep::{Cell, Column, Row, SourcedBody, TABLES};

/// Sends every row of a table, some at a time. `with_records` adds what the check of an entry needs.
pub(super) fn rows(
    connection: &Connection,
    table: usize,
    with_records: bool,
    at_once: usize,
    send: &mut dyn FnMut(Vec<Row>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    const RECORD: [Column; 3] = [Column::Small, Column::Number, Column::Bytes];
    let (sql, extra): (String, &[Column]) = match TABLES[table].name {
        "nodes" if with_records => (nodes(WITH_RECORDS), &[RECORD, RECORD].concat()),
        "nodes" => (nodes(""), &[]),
        name => (select(name).to_owned(), &[]),
    };
    let columns: Vec<Column> = TABLES[table].columns.iter().chain(extra).copied().collect();
    let mut statement = connection.prepare(&sql)?;
    let mut digests = connection.prepare("SELECT digest FROM blobs WHERE n = ?1")?;
    let mut found = statement.query([])?;
    let mut page = Vec::new();
    while let Some(row) = found.next()? {
        let cells = columns.iter().enumerate().map(|(at, column)| cell(row, at, *column, &mut digests));
        page.push(cells.collect::<Result<Row, StoreError>>()?);
        if page.len() >= at_once {
            send(std::mem::take(&mut page))?;
        }
    }
    if page.is_empty() { Ok(()) } else { send(page) }
}

fn cell(
    row: &SqliteRow<'_>,
    at: usize,
    column: Column,
    digests: &mut Statement<'_>,
) -> Result<Cell, StoreError> {
    let odd = || StoreError::Damaged(format!("a column of rows has no valid {column:?}"));
    Ok(match (column, row.get_ref(at)?) {
        (_, ValueRef::Null) => Cell::Nothing,
        (Column::Text, ValueRef::Text(text)) => {
            Cell::Text(String::from_utf8(text.to_vec()).map_err(|_| odd())?)
        }
        (Column::Small | Column::Number | Column::Long | Column::Flag, ValueRef::Integer(number)) => {
            Cell::Number(number)
        }
        (Column::Digest, ValueRef::Blob(bytes)) => Cell::Digest(Digest::from_slice(bytes).ok_or_else(odd)?),
        (Column::Bytes, ValueRef::Blob(bytes)) => Cell::Bytes(bytes.to_vec()),
        (Column::Digests, ValueRef::Blob(numbers)) => {
            let mut all = Vec::new();
            for number in Reader::new(numbers).list(Reader::number)? {
                let found: Option<[u8; Digest::BYTES]> =
                    digests.query_row([number.cast_signed()], |row| row.get(0)).optional()?;
                // One that is missing is told by its digest, which nothing has.
                all.push(found.map(Digest::from_bytes).unwrap_or_default());
            }
            Cell::Digests(all)
        }
        _ => return Err(odd()),
    })
}

/// Says whether there is nothing in the database yet.
pub(super) fn empty(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM conversations) AND NOT EXISTS (SELECT 1 FROM blobs)
        AND NOT EXISTS (SELECT 1 FROM learned) AND NOT EXISTS (SELECT 1 FROM settings)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Writes rows of a table.
pub(super) fn insert(connection: &Connection, table: usize, rows: &[Row]) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(insertion(TABLES[table].name))?;
    let mut numbers = connection.prepare_cached("SELECT n FROM blobs WHERE digest = ?1")?;
    for row in rows {
        let values = row.iter().map(|cell| value(cell, &mut numbers)).collect::<Result<Vec<Value>, _>>()?;
        statement.execute(params_from_iter(values))?;
    }
    Ok(())
}

fn value(cell: &Cell, numbers: &mut Statement<'_>) -> Result<Value, StoreError> {
    Ok(match cell {
        Cell::Nothing => Value::Null,
        Cell::Text(text) => Value::Text(text.clone()),
        Cell::Number(number) => Value::Integer(*number),
        Cell::Digest(digest) => Value::Blob(digest.bytes().to_vec()),
        Cell::Bytes(bytes) => Value::Blob(bytes.clone()),
        Cell::Digests(digests) => {
            let number = |digest: &Digest| numbers.query_row([digest.bytes()], |row| row.get::<_, i64>(0));
            let all = digests.iter().map(number).collect::<Result<Vec<i64>, _>>()?;
            Value::Blob(encoded(&all))
        }
    })
}

/// Reads a request as it is stored, with the records that it is compressed with.
pub(super) fn sourced(connection: &Connection, digest: Digest) -> Result<Option<SourcedBody>, StoreError> {
    let sql = format!("{BODIES} WHERE bodies.digest = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut digests = connection.prepare_cached("SELECT digest FROM blobs WHERE n = ?1")?;
    let mut contents = connection.prepare_cached("SELECT codec, size, bytes FROM blobs WHERE digest = ?1")?;
    let mut found = statement.query([digest.bytes()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let columns = TABLES.iter().find(|table| table.name == "bodies").map_or(&[][..], |table| table.columns);
    let cells = columns.iter().enumerate().map(|(at, column)| cell(row, at, *column, &mut digests));
    let row: Row = cells.collect::<Result<_, _>>()?;
    let mut sources = Vec::new();
    if let Some(Cell::Digests(digests)) = row.get(3) {
        for digest in digests {
            let mut rows = contents.query(params![digest.bytes()])?;
            if let Some(row) = rows.next()? {
                // One that cannot be unpacked is found out by itself, and by what rests on it.
                sources.extend(unpacked(row, 0).unwrap_or_default());
            }
        }
    }
    Ok(Some(SourcedBody { row, sources }))
}

fn select(table: &str) -> &'static str {
    match table {
        "conversations" => "SELECT id, created, updated, identified, title FROM conversations ORDER BY n",
        "keys" => {
            "SELECT key, conversations.id
             FROM keys LEFT JOIN conversations ON conversations.n = keys.conversation ORDER BY key"
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
             FROM attempts LEFT JOIN exchanges ON exchanges.n = attempts.exchange
             ORDER BY attempts.exchange, number"
        }
        "blobs" => "SELECT digest, codec, size, bytes FROM blobs ORDER BY n",
        "items" => "SELECT items.id, nodes.id FROM items LEFT JOIN nodes ON nodes.n = items.node ORDER BY items.id",
        "bodies" => SORTED_BODIES,
        "sent" => {
            "SELECT exchanges.id, attempt, bodies.digest
             FROM sent LEFT JOIN exchanges ON exchanges.n = sent.exchange LEFT JOIN bodies ON bodies.n = sent.body
             ORDER BY sent.exchange, attempt"
        }
        "events" => {
            "SELECT exchanges.id, attempt, codec, size, bytes
             FROM events LEFT JOIN exchanges ON exchanges.n = events.exchange
             ORDER BY events.exchange, attempt, events.n"
        }
        "answers" => {
            "SELECT exchanges.id, codec, size, bytes
             FROM answers LEFT JOIN exchanges ON exchanges.n = answers.exchange ORDER BY answers.exchange"
        }
        "learned" => "SELECT backend, model, capability, verdict, reason, at, expires FROM learned",
        _ => {
            "SELECT conversations.id, name, value, at
             FROM settings LEFT JOIN conversations ON conversations.n = settings.conversation"
        }
    }
}

/// The record of each entry and its envelope, packed.
const WITH_RECORDS: &str =
    ", records.codec, records.size, records.bytes, envelopes.codec, envelopes.size, envelopes.bytes";

fn nodes(with: &str) -> String {
    format!(
        "SELECT nodes.id, conversations.id, exchanges.id, parents.id, records.digest, envelopes.digest, nodes.chain,
             nodes.counts, nodes.at, nodes.kind, nodes.tool, nodes.call_id, nodes.message, nodes.block{with}
         FROM nodes LEFT JOIN conversations ON conversations.n = nodes.conversation
             LEFT JOIN exchanges ON exchanges.n = nodes.exchange
             LEFT JOIN nodes AS parents ON parents.n = nodes.parent
             LEFT JOIN blobs AS records ON records.n = nodes.record
             LEFT JOIN blobs AS envelopes ON envelopes.n = nodes.envelope
         ORDER BY nodes.n"
    )
}

const BODIES: &str = "
    SELECT bodies.digest, bases.digest, bodies.depth, bodies.sources, bodies.head, bodies.tail, bodies.codec,
        bodies.size, bodies.bytes
    FROM bodies LEFT JOIN bodies AS bases ON bases.n = bodies.base";

/// A base comes before what is based on it. The limit keeps SQLite from sorting the contents along.
const SORTED_BODIES: &str = "
    SELECT bodies.digest, bases.digest, bodies.depth, bodies.sources, bodies.head, bodies.tail, bodies.codec,
        bodies.size, bodies.bytes
    FROM (SELECT n FROM bodies ORDER BY depth, digest LIMIT -1) AS sorted
        CROSS JOIN bodies ON bodies.n = sorted.n LEFT JOIN bodies AS bases ON bases.n = bodies.base";

fn insertion(table: &str) -> &'static str {
    match table {
        "conversations" => {
            "INSERT INTO conversations (id, created, updated, identified, title) VALUES (?1, ?2, ?3, ?4, ?5)"
        }
        "keys" => "INSERT INTO keys VALUES (?1, (SELECT n FROM conversations WHERE id = ?2))",
        "exchanges" => {
            "INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
                 ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted)
             VALUES (?1, (SELECT n FROM conversations WHERE id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                 ?13, ?14, ?15, ?16, ?17, ?18, ?19)"
        }
        "attempts" => {
            "INSERT INTO attempts VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
                 ?10, ?11)"
        }
        "blobs" => "INSERT INTO blobs (digest, codec, size, bytes) VALUES (?1, ?2, ?3, ?4)",
        "nodes" => {
            "INSERT INTO nodes (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind,
                 tool, call_id, message, block)
             VALUES (?1, (SELECT n FROM conversations WHERE id = ?2), (SELECT n FROM exchanges WHERE id = ?3),
                 (SELECT n FROM nodes WHERE id = ?4), (SELECT n FROM blobs WHERE digest = ?5),
                 (SELECT n FROM blobs WHERE digest = ?6), ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        }
        "items" => "INSERT INTO items VALUES (?1, (SELECT n FROM nodes WHERE id = ?2))",
        "bodies" => {
            "INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes)
             VALUES (?1, (SELECT n FROM bodies WHERE digest = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        }
        "sent" => {
            "INSERT INTO sent VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2,
                 (SELECT n FROM bodies WHERE digest = ?3))"
        }
        "events" => {
            "INSERT INTO events (exchange, attempt, codec, size, bytes)
             VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4, ?5)"
        }
        "answers" => "INSERT INTO answers VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4)",
        "learned" => "INSERT INTO learned VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        _ => {
            "INSERT INTO settings
             VALUES (coalesce((SELECT n FROM conversations WHERE id = ?1), 0), ?2, ?3, ?4)"
        }
    }
}
