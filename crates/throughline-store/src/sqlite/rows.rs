//! The rows that every durable store has, as SQLite keeps them: read with ids in place of numbers, and written back.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row as SqliteRow, Statement, ToSql, params, params_from_iter};

use super::bodies::encoded;
use super::read::unpacked;
use crate::StoreError;
use crate::checksum::checksum_of_cells;
use crate::digest::Digest;
use crate::record::Reader;
use crate::upkeep::{Cell, Column, Row, SourcedBody, TABLES, Table};

/// Sends every row of a table, some at a time. `with_records` adds what the check of an entry needs; `odd` is told of
/// rows that cannot be read, by what names them in the database, and says whether to go on.
pub(super) fn rows(
    connection: &Connection,
    table: usize,
    with_records: bool,
    at_once: usize,
    odd: &mut dyn FnMut(String, StoreError) -> Result<(), StoreError>,
    send: &mut dyn FnMut(Vec<Row>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    const RECORD: [Column; 3] = [Column::Small, Column::Number, Column::Bytes];
    let described = &TABLES[table];
    let Select { columns, from, order, key, .. } = select(described.name);
    let more = if with_records && described.name == "nodes" { RECORDS } else { "" };
    let extra: &[Column] = if more.is_empty() { &[] } else { &[RECORD, RECORD].concat() };
    let sql = format!("SELECT {columns}{more}, {} FROM {from} ORDER BY {order}", key.join(", "));
    let kinds: Vec<Column> = described.kinds().chain(extra.iter().copied()).collect();
    let mut statement = connection.prepare(&sql)?;
    let mut digests = connection.prepare("SELECT digest FROM blobs WHERE n = ?1")?;
    let mut found = statement.query([])?;
    let mut page = Vec::new();
    while let Some(row) = found.next()? {
        let cells = kinds.iter().enumerate().map(|(at, column)| cell(row, at, *column, &mut digests));
        match cells.collect::<Result<Row, StoreError>>() {
            Ok(cells) => page.push(cells),
            Err(error @ StoreError::Damaged(_)) => odd(name_of(row, kinds.len(), key)?, error)?,
            Err(error) => return Err(error),
        }
        if page.len() >= at_once {
            send(std::mem::take(&mut page))?;
        }
    }
    if page.is_empty() { Ok(()) } else { send(page) }
}

/// Returns what names a row in the database: the columns of its key, which begin at that one.
fn name_of(row: &SqliteRow<'_>, from: usize, key: &[&str]) -> Result<String, StoreError> {
    let mut names = Vec::new();
    for (at, name) in key.iter().enumerate() {
        let value = match row.get_ref(from + at)? {
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => "?".to_owned(),
        };
        names.push(format!("{} {value}", name.rsplit('.').next().unwrap_or(name)));
    }
    Ok(names.join(", "))
}

/// Computes the checksum of every row of every table, inside a transaction that is under way: for a database from before
/// there were any.
///
/// A row that cannot be read keeps one that is wrong: it is for `store check` to say so, and no reason to keep the
/// rest of the history closed.
pub(super) fn add_checksums(connection: &Connection) -> Result<(), StoreError> {
    for table in TABLES.iter().filter(|table| table.has_checksum()) {
        add_checksums_to(connection, table.name)?;
    }
    Ok(())
}

/// Computes the checksum of every row of a table.
pub(super) fn add_checksums_to(connection: &Connection, table: &str) -> Result<(), StoreError> {
    let Select { order, .. } = select(table);
    update_checksums(connection, Table::named(table), &format!("ORDER BY {order}"), &[])
}

/// Updates the checksum of an exchange after something in it was changed.
pub(super) fn update_exchange_checksum(connection: &Connection, n: i64) -> Result<(), StoreError> {
    update_checksums(connection, Table::named("exchanges"), "WHERE exchanges.n = ?1", &[&n])
}

/// Updates the checksum of an attempt after something in it was changed.
pub(super) fn update_attempt_checksum(
    connection: &Connection,
    exchange: i64,
    number: u32,
) -> Result<(), StoreError> {
    let which = "WHERE attempts.exchange = ?1 AND number = ?2";
    update_checksums(connection, Table::named("attempts"), which, &[&exchange, &number])
}

fn update_checksums(
    connection: &Connection,
    table: &Table,
    which: &str,
    params: &[&dyn ToSql],
) -> Result<(), StoreError> {
    let Select { columns, from, key, .. } = select(table.name);
    let sql = format!("SELECT {columns}, {} FROM {from} {which}", key.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let mut digests = connection.prepare("SELECT digest FROM blobs WHERE n = ?1")?;
    let of_key =
        |(at, name): (usize, &&str)| format!("{} = ?{}", name.rsplit('.').next().unwrap_or(name), at + 2);
    let of_key: Vec<String> = key.iter().enumerate().map(of_key).collect();
    let update = format!("UPDATE {} SET checksum = ?1 WHERE {}", table.name, of_key.join(" AND "));
    let mut update = connection.prepare(&update)?;
    let kinds: Vec<Column> = table.kinds().collect();
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        let covered = kinds[..kinds.len() - 1].iter().enumerate();
        let cells =
            covered.map(|(at, column)| cell(row, at, *column, &mut digests)).collect::<Result<Row, _>>();
        let cells = match cells {
            Err(StoreError::Damaged(_)) => continue,
            cells => cells?,
        };
        let mut values = vec![Value::Integer(checksum_of_cells(table.name, &cells))];
        for at in 0..key.len() {
            values.push(row.get(kinds.len() + at)?);
        }
        update.execute(params_from_iter(values))?;
    }
    Ok(())
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
    let sql = format!("SELECT {BODIES} FROM {BODIES_FROM} WHERE bodies.digest = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut digests = connection.prepare_cached("SELECT digest FROM blobs WHERE n = ?1")?;
    let mut contents = connection.prepare_cached("SELECT codec, size, bytes FROM blobs WHERE digest = ?1")?;
    let mut found = statement.query([digest.bytes()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let kinds = Table::named("bodies").kinds().enumerate();
    let row: Row = kinds.map(|(at, column)| cell(row, at, column, &mut digests)).collect::<Result<_, _>>()?;
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

/// How the rows of a table are read, with ids in place of numbers.
struct Select {
    table: &'static str,
    columns: &'static str,
    from: &'static str,
    order: &'static str,
    /// What names a row in this database.
    key: &'static [&'static str],
}

fn select(table: &str) -> &'static Select {
    SELECTS.iter().find(|select| select.table == table).unwrap_or(&SELECTS[0])
}

const SELECTS: [Select; 14] = [
    Select {
        table: "conversations",
        columns: "id, created, updated, identified, title, checksum",
        from: "conversations",
        order: "n",
        key: &["n"],
    },
    Select {
        table: "keys",
        columns: "key, conversations.id, keys.checksum",
        from: "keys LEFT JOIN conversations ON conversations.n = keys.conversation",
        order: "key",
        key: &["key"],
    },
    Select {
        table: "exchanges",
        columns:
            "exchanges.id, conversations.id, before, after, dialect, client, asked_model, started, ended,
            ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted,
            exchanges.checksum",
        from: "exchanges LEFT JOIN conversations ON conversations.n = exchanges.conversation",
        order: "exchanges.n",
        key: &["exchanges.n"],
    },
    Select {
        table: "attempts",
        columns: "exchanges.id, number, backend, attempts.dialect, model, strategy, attempts.started,
            attempts.ended, attempts.status, failure, decided.id, step_attempt, tokens_before, tokens_after, tool_tokens,
            continues, recall, attempts.checksum",
        from: "attempts LEFT JOIN exchanges ON exchanges.n = attempts.exchange
            LEFT JOIN exchanges AS decided ON decided.n = attempts.step_exchange",
        order: "attempts.exchange, number",
        key: &["attempts.exchange", "number"],
    },
    Select { table: "blobs", columns: "digest, codec, size, bytes", from: "blobs", order: "n", key: &["n"] },
    Select { table: "nodes", columns: NODES, from: NODES_FROM, order: "nodes.n", key: &["nodes.n"] },
    Select {
        table: "items",
        columns: "items.id, nodes.id, items.checksum",
        from: "items LEFT JOIN nodes ON nodes.n = items.node",
        order: "items.id",
        key: &["items.id"],
    },
    // A base comes before what is based on it. The limit keeps SQLite from sorting the contents along.
    Select {
        table: "bodies",
        columns: BODIES,
        from: "(SELECT n FROM bodies ORDER BY depth, digest LIMIT -1) AS sorted
            CROSS JOIN bodies ON bodies.n = sorted.n LEFT JOIN bodies AS bases ON bases.n = bodies.base",
        order: "NULL",
        key: &["bodies.n"],
    },
    Select {
        table: "documents",
        columns: "exchanges.id, attempt, kind, bodies.digest, documents.checksum",
        from: "documents LEFT JOIN exchanges ON exchanges.n = documents.exchange
            LEFT JOIN bodies ON bodies.n = documents.body",
        order: "documents.exchange, attempt, kind",
        key: &["documents.exchange", "attempt", "kind"],
    },
    Select {
        table: "events",
        columns: "exchanges.id, attempt, codec, size, bytes, events.checksum",
        from: "events LEFT JOIN exchanges ON exchanges.n = events.exchange",
        order: "events.exchange, attempt, events.n",
        key: &["events.n"],
    },
    Select {
        table: "answers",
        columns: "exchanges.id, codec, size, bytes, answers.checksum",
        from: "answers LEFT JOIN exchanges ON exchanges.n = answers.exchange",
        order: "answers.exchange",
        key: &["answers.exchange"],
    },
    Select {
        table: "compaction_steps",
        columns:
            "exchanges.id, attempt, conversations.id, backend, model, at, followed.id, follows_attempt, codec,
            size, bytes, summary, compaction_steps.checksum",
        from: "compaction_steps LEFT JOIN exchanges ON exchanges.n = compaction_steps.exchange
            LEFT JOIN conversations ON conversations.n = compaction_steps.conversation
            LEFT JOIN exchanges AS followed ON followed.n = compaction_steps.follows_exchange",
        order: "compaction_steps.n",
        key: &["compaction_steps.n"],
    },
    Select {
        table: "learned",
        columns: "backend, model, capability, verdict, reason, at, expires, checksum",
        from: "learned",
        order: "backend, model, capability",
        key: &["backend", "model", "capability"],
    },
    // What holds everywhere has no conversation; one that is gone is not the same.
    Select {
        table: "settings",
        columns:
            "CASE WHEN settings.conversation <> 0 THEN coalesce(conversations.id, '') END, name, value, at,
            settings.checksum",
        from: "settings LEFT JOIN conversations ON conversations.n = settings.conversation",
        order: "settings.conversation, name",
        key: &["settings.conversation", "name"],
    },
];

/// The record of each entry and its envelope, packed.
const RECORDS: &str =
    ", records.codec, records.size, records.bytes, envelopes.codec, envelopes.size, envelopes.bytes";

const NODES: &str = "nodes.id, conversations.id, exchanges.id, parents.id, records.digest, envelopes.digest,
    nodes.chain, nodes.counts, nodes.at, nodes.kind, nodes.tool, nodes.call_id, nodes.message, nodes.block,
    nodes.checksum";

const NODES_FROM: &str = "nodes LEFT JOIN conversations ON conversations.n = nodes.conversation
    LEFT JOIN exchanges ON exchanges.n = nodes.exchange
    LEFT JOIN nodes AS parents ON parents.n = nodes.parent
    LEFT JOIN blobs AS records ON records.n = nodes.record
    LEFT JOIN blobs AS envelopes ON envelopes.n = nodes.envelope";

const BODIES: &str = "bodies.digest, bases.digest, bodies.depth, bodies.sources, bodies.head, bodies.tail,
    bodies.codec, bodies.size, bodies.bytes, bodies.checksum";

const BODIES_FROM: &str = "bodies LEFT JOIN bodies AS bases ON bases.n = bodies.base";

fn insertion(table: &str) -> &'static str {
    match table {
        "conversations" => {
            "INSERT INTO conversations (id, created, updated, identified, title, checksum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        }
        "keys" => "INSERT INTO keys VALUES (?1, (SELECT n FROM conversations WHERE id = ?2), ?3)",
        "exchanges" => {
            "INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
                 ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted,
                 checksum)
             VALUES (?1, (SELECT n FROM conversations WHERE id = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                 ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
        }
        "attempts" => {
            "INSERT INTO attempts (exchange, number, backend, dialect, model, strategy, started, ended, status, failure,
                 step_exchange, step_attempt, tokens_before, tokens_after, tool_tokens, continues, recall, checksum)
             VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                 (SELECT n FROM exchanges WHERE id = ?11), ?12, ?13, ?14, ?15, ?16, ?17, ?18)"
        }
        "blobs" => "INSERT INTO blobs (digest, codec, size, bytes) VALUES (?1, ?2, ?3, ?4)",
        "nodes" => {
            "INSERT INTO nodes (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind,
                 tool, call_id, message, block, checksum)
             VALUES (?1, (SELECT n FROM conversations WHERE id = ?2), (SELECT n FROM exchanges WHERE id = ?3),
                 (SELECT n FROM nodes WHERE id = ?4), (SELECT n FROM blobs WHERE digest = ?5),
                 (SELECT n FROM blobs WHERE digest = ?6), ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
        }
        "items" => "INSERT INTO items VALUES (?1, (SELECT n FROM nodes WHERE id = ?2), ?3)",
        "bodies" => {
            "INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes, checksum)
             VALUES (?1, (SELECT n FROM bodies WHERE digest = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        }
        "documents" => {
            "INSERT INTO documents VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3,
                 (SELECT n FROM bodies WHERE digest = ?4), ?5)"
        }
        "events" => {
            "INSERT INTO events (exchange, attempt, codec, size, bytes, checksum)
             VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4, ?5, ?6)"
        }
        "answers" => "INSERT INTO answers VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, ?3, ?4, ?5)",
        "compaction_steps" => {
            "INSERT INTO compaction_steps (exchange, attempt, conversation, backend, model, at, follows_exchange,
                 follows_attempt, codec, size, bytes, summary, checksum)
             VALUES ((SELECT n FROM exchanges WHERE id = ?1), ?2, (SELECT n FROM conversations WHERE id = ?3), ?4, ?5,
                 ?6, (SELECT n FROM exchanges WHERE id = ?7), ?8, ?9, ?10, ?11, ?12, ?13)"
        }
        "learned" => "INSERT INTO learned VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        _ => {
            "INSERT INTO settings
             VALUES (coalesce((SELECT n FROM conversations WHERE id = ?1), 0), ?2, ?3, ?4, ?5)"
        }
    }
}
