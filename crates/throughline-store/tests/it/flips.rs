//! One bit flips somewhere in what is kept: the check finds it, or it changed nothing that anybody can read.
//!
//! Bits are flipped through SQL in every column of every table, and in the file itself, page by page. Which ones is
//! drawn from a fixed seed. What the check does not find is read in full through the store and compared: then it may
//! be one that means nothing, such as a reserved bit of a compressed frame, or free space of a page.

use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use throughline_core::{Dialect, Outcome, Usage};
use throughline_store::{
    Attempt, Batch, CompactionStep, Conversations, DocumentKind, Entries, Exchange, ExchangeId, Exchanges,
    History, Learned, Moment, Paging, PlanSizes, Postgres, ProviderEvent, ResponseMark, Scope, Search,
    Setting, Sqlite, SqliteOptions, StepId, StoreError, Upkeep, Which, Write,
};

use crate::fixtures::{
    Folder, Schema, Store, append, beginning, call, conversation, exchange, extension, open, result, run,
    user,
};

/// Draws numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

fn step_of(exchange: &str) -> StepId {
    StepId { exchange: ExchangeId::new(exchange), attempt: 1 }
}

fn ended(id: &str, at: i64) -> Exchange {
    let attempt = |backend: &str, failure: Option<&str>| Attempt {
        backend: backend.into(),
        dialect: Dialect::Messages,
        model: Some("model".into()),
        strategy: Some("native".into()),
        started: Moment(at),
        ended: Some(Moment(at + 4)),
        status: Some(200),
        failure: failure.map(Into::into),
        compaction: Some(step_of("x0")),
        plan: Some(PlanSizes { before: 9, after: 7, tools: 5 }),
        continues: Some("resp_1".into()),
        recall: Some("recall".into()),
    };
    Exchange {
        client: Some("agent/1.0".into()),
        asked_model: Some("large".into()),
        ended: Some(Moment(at + 5)),
        ending: Some("end_turn".into()),
        status: Some(200),
        usage: Some(Usage { input: 100, cache_read: 20, cache_written: 3, output: 40, reasoning: 5 }),
        attempts: vec![attempt("first", Some("overloaded")), attempt("second", None)],
        response: Some(ResponseMark { id: format!("resp_{id}").into(), stored: true, deleted: false }),
        ..exchange(id, "a", at)
    }
}

/// Fills a history with some of everything, in every column.
pub fn fill(store: &Store) {
    run(async {
        let mut tip = None;
        for n in 0..6_i64 {
            let id = format!("x{n}");
            let of = || ExchangeId::new(id.as_str());
            let entries = [
                user(&format!("question {n} about é")),
                call(&format!("c{n}"), "read", r#"{"path":"src/main.rs"}"#),
                result(
                    &format!("c{n}"),
                    &format!("content {n} of a file that is long ").repeat(20),
                    Outcome::Ok,
                ),
            ];
            let growth = extension("a", tip.as_ref(), 1_000 + n, &entries).of_exchange(of());
            let mut exchange = ended(&id, 1_000 + n);
            exchange.before.clone_from(&tip);
            tip = growth.tip();
            exchange.after.clone_from(&tip);
            let words: Vec<String> = (0..=n).map(|n| format!("\"{n}{}\"", "word ".repeat(300))).collect();
            let body = format!("{{\"messages\":[{}]}}", words.join(","));
            let event =
                |data: &str| ProviderEvent { at: Moment(n), name: Some("delta".into()), data: data.into() };
            let writes = vec![
                beginning("a", 1_000 + n),
                Write::Exchange(exchange.into()),
                Write::Entries(growth),
                Write::Document { kind: DocumentKind::Sent, exchange: of(), attempt: 1, body: body.into() },
                Write::Events { exchange: of(), attempt: 1, events: vec![event("{\"a\":1}")] },
                Write::Answer { exchange: of(), json: format!("{{\"id\":\"resp_x{n}\"}}").into() },
                Write::Compaction(Box::new(CompactionStep {
                    id: step_of(&id),
                    conversation: conversation("a"),
                    backend: "second".into(),
                    model: "model".into(),
                    at: Moment(n),
                    follows: (n > 0).then(|| step_of(&format!("x{}", n - 1))),
                    decisions: format!("decisions 1\n{n} 0000000000000007 abcdefgh 90 9 - m").into(),
                    summary: (n % 2 == 0).then(|| format!("words {n}").into()),
                })),
            ];
            store.append(Batch::durable(writes)).await.unwrap();
        }
        append(store, "b", None, 20, &[user("another"), result("lost", "no call", Outcome::Error)]).await;
        let setting =
            |scope| Setting { scope, name: "backend".into(), value: Some("one".into()), at: Moment(3) };
        let learned = Learned {
            backend: "one".into(),
            model: "m".into(),
            capability: "native_tool_history".into(),
            verdict: "no".into(),
            reason: "400".into(),
            at: Moment(1),
            expires: Some(Moment(2)),
        };
        let writes = vec![
            Write::Learned(learned),
            Write::Setting(setting(Scope::Everywhere)),
            Write::Setting(setting(Scope::Conversation(conversation("b")))),
            Write::ForgetResponse { id: "resp_x2".into() },
        ];
        store.append(Batch::durable(writes)).await.unwrap();
        assert_eq!(found(&**store, "content").await.unwrap(), 6);
    });
}

async fn found(store: &dyn History, words: &str) -> Result<usize, StoreError> {
    Ok(store.search(Search { words: words.into(), ..Search::default() }).await?.items.len())
}

/// Everything that anybody can read.
fn everything(store: &dyn History) -> Result<String, StoreError> {
    run(async {
        let mut all = String::new();
        let headings = store.conversations(Conversations::All(Paging::first(100))).await?.items;
        for heading in &headings {
            let named = Conversations::One(heading.id.clone());
            all += &format!("{:?}\n", store.conversations(named).await?.items);
            all += &format!("{:?}\n", store.entries(Entries::Conversation(heading.id.clone())).await?);
            all += &format!("{:?}\n", store.compaction(heading.id.clone()).await?);
        }
        all += &format!("{headings:?}\n");
        let exchanges = store.exchanges(Exchanges::All(Paging::first(100))).await?.items;
        for exchange in &exchanges {
            all += &format!("{:?}\n", store.recording(exchange.id.clone(), Which::Everything).await?);
            if let Some(mark) = &exchange.response {
                all += &format!("{:?}\n", store.exchanges(Exchanges::Response(mark.id.clone())).await?.items);
            }
        }
        all += &format!("{exchanges:?}\n{:?}\n", store.standing().await?);
        for words in ["content", "another", "question", "read", "file", "main"] {
            all += &format!("{}\n", found(store, words).await?);
        }
        Ok(all)
    })
}

/// What became of a bit.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Found,
    MeansNothing,
    Missed,
}

fn fate(store: &dyn Upkeep, before: &str) -> Fate {
    match run(store.check(Arc::new(|_| {}))) {
        Ok(checkup) if checkup.wrong == 0 => match everything(store) {
            Ok(now) if now == before => Fate::MeansNothing,
            Ok(_) => Fate::Missed,
            Err(_) => Fate::Missed,
        },
        Ok(_) => Fate::Found,
        Err(error) => {
            assert!(!error.is_passing(), "{error}");
            Fate::Found
        }
    }
}

fn flipped(value: &Value, dice: &mut Dice) -> Option<Value> {
    let flip = |bytes: &[u8], dice: &mut Dice| {
        let mut bytes = bytes.to_vec();
        let bit = dice.below(bytes.len() * 8);
        *bytes.get_mut(bit / 8)? ^= 1 << (bit % 8);
        Some(bytes)
    };
    match value {
        Value::Integer(number) => Some(Value::Integer(number ^ (1 << dice.below(64)))),
        Value::Text(text) => flip(text.as_bytes(), dice).map(Value::Blob),
        Value::Blob(bytes) => flip(bytes, dice).map(Value::Blob),
        _ => None,
    }
}

/// A column of a table, with what names a row of it.
struct Place {
    table: String,
    column: String,
    is_text: bool,
    key: Vec<String>,
    /// Which of the key it is itself.
    of_key: Option<usize>,
}

fn places(connection: &Connection) -> Vec<Place> {
    let sql = "SELECT tables.name, columns.name, columns.type, tables.wr, columns.pk FROM pragma_table_list AS tables
        JOIN pragma_table_info(tables.name) AS columns
        WHERE tables.schema = 'main' AND tables.type IN ('table', 'shadow') AND tables.name NOT LIKE 'sqlite_%'
        -- The version of the index's own format, by a key that SQLite does not let anybody take back.
        AND tables.name <> 'words_config'";
    let mut statement = connection.prepare(sql).unwrap();
    let found = statement.query_map([], |row| {
        let names: (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((names, (row.get::<_, bool>(3)?, row.get::<_, i64>(4)?)))
    });
    let of_key = |table: &str| -> Vec<String> {
        let sql = format!("SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk");
        let mut statement = connection.prepare(&sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let found = found.unwrap().map(Result::unwrap);
    found
        .map(|((table, column, kind), (is_keyed, pk))| {
            let key = if is_keyed { of_key(&table) } else { vec!["rowid".to_owned()] };
            // The primary key of a table that has numbers for its rows is that number.
            let of_key =
                if is_keyed { key.iter().position(|name| *name == column) } else { (pk > 0).then_some(0) };
            Place { table, column, is_text: kind == "TEXT", key, of_key }
        })
        .collect()
}

impl Place {
    /// Writes a value into the row of that key, and says whether the database let it.
    fn write(&self, connection: &Connection, value: Value, key: &[Value]) -> bool {
        // A text that is no longer one can only be asked for as the bytes that it has.
        let given = |at: usize| match key[at] {
            Value::Blob(_) => format!("CAST(?{} AS TEXT)", at + 2),
            _ => format!("?{}", at + 2),
        };
        let of_key: Vec<String> =
            self.key.iter().enumerate().map(|(at, name)| format!("{name} IS {}", given(at))).collect();
        let what = if self.is_text { "CAST(?1 AS TEXT)" } else { "?1" };
        let sql =
            format!("UPDATE {} SET {} = {what} WHERE {}", self.table, self.column, of_key.join(" AND "));
        let values = std::iter::once(value).chain(key.iter().cloned());
        connection.execute(&sql, params_from_iter(values)).is_ok_and(|rows| rows == 1)
    }

    fn any_row(&self, connection: &Connection, dice: &mut Dice) -> Option<(Value, Vec<Value>)> {
        let count: usize = connection
            .query_row(&format!("SELECT count(*) FROM {}", self.table), [], |row| row.get(0))
            .unwrap();
        let sql = format!(
            "SELECT {}, {} FROM {} LIMIT 1 OFFSET {}",
            self.column,
            self.key.join(", "),
            self.table,
            dice.below(count)
        );
        let read = |row: &rusqlite::Row<'_>| {
            let key = (1..=self.key.len()).map(|at| row.get(at)).collect::<Result<Vec<Value>, _>>()?;
            Ok((row.get::<_, Value>(0)?, key))
        };
        connection.query_row(&sql, [], read).ok()
    }
}

/// Flips bits in every column of every table, so many in each.
fn flip_by_sql(test: &str, seed: u64, in_each: usize) {
    let folder = Folder::new(test);
    let store = Arc::new(open(&folder.database()));
    fill(&(Arc::clone(&store) as Store));
    let before = everything(&*store).unwrap();
    let behind = Connection::open(folder.database()).unwrap();
    behind.execute_batch("PRAGMA foreign_keys = off").unwrap();
    let mut dice = Dice(seed);
    let (mut found, mut nothing, mut missed) = (0, Vec::new(), Vec::new());
    for place in places(&behind) {
        for _ in 0..in_each {
            let Some((value, key)) = place.any_row(&behind, &mut dice) else { continue };
            let Some(other) = flipped(&value, &mut dice) else { continue };
            if !place.write(&behind, other.clone(), &key) {
                continue;
            }
            // What is beside it in memory is as it was: a store that is opened sees what is in the file.
            let what = format!("{}.{} {value:?} -> {other:?}", place.table, place.column);
            match fate(&open(&folder.database()), &before) {
                Fate::Found => found += 1,
                Fate::MeansNothing => nothing.push(format!("{}.{}", place.table, place.column)),
                Fate::Missed => missed.push(what.clone()),
            }
            let mut key = key;
            if let Some(at) = place.of_key {
                key[at] = if place.is_text { as_text(&other) } else { other };
            }
            assert!(place.write(&behind, value, &key), "{what} is taken back");
        }
    }
    assert_eq!(missed, Vec::<String>::new());
    assert!(found >= 40, "{found}");
    let is_harmless = |place: &String| {
        // What only numbers rows, what is worked out anew, bits of compressed frames that mean nothing.
        place.ends_with(".n")
            || place.starts_with("words_")
            || place == "blobs.bytes"
            || place == "write_probe.at"
    };
    assert!(nothing.iter().all(is_harmless), "{nothing:?}");
    assert_eq!(run(store.check(Arc::new(|_| {}))).unwrap().findings, []);
}

fn as_text(value: &Value) -> Value {
    match value {
        Value::Blob(bytes) => String::from_utf8(bytes.clone()).map_or_else(|_| value.clone(), Value::Text),
        other => other.clone(),
    }
}

#[test]
fn a_bit_that_flips_in_any_column_is_found() {
    flip_by_sql("flips-1", 1, 2);
}

#[test]
fn so_is_another() {
    flip_by_sql("flips-2", 2, 2);
}

#[test]
fn and_another() {
    flip_by_sql("flips-3", 3, 2);
}

/// Flips bits in the file, some in each page.
fn flip_in_file(test: &str, seed: u64, of: usize, which: usize) {
    let folder = Folder::new(test);
    let store = Arc::new(open(&folder.database()));
    fill(&(Arc::clone(&store) as Store));
    let before = everything(&*store).unwrap();
    drop(store);
    Connection::open(folder.database()).unwrap().execute_batch("PRAGMA journal_mode = delete").unwrap();
    let sound = std::fs::read(folder.database()).unwrap();
    let page = 4096;
    let mut dice = Dice(seed);
    let (mut found, mut missed) = (0, Vec::new());
    for number in (0..sound.len() / page).filter(|number| number % of == which) {
        for _ in 0..10 {
            let mut bit = dice.below(page * 8);
            // Most of a small database is free space; what is in use is hit more often than that.
            for _ in 0..6 {
                if sound[number * page + bit / 8] == 0 {
                    bit = dice.below(page * 8);
                }
            }
            let (at, mask) = (number * page + bit / 8, 1 << (bit % 8));
            let mut bytes = sound.clone();
            bytes[at] ^= mask;
            write_file(&folder.database(), &bytes);
            let options = SqliteOptions { readers: 1, ..SqliteOptions::default() };
            match Sqlite::open(&folder.database(), options) {
                Err(error) => {
                    assert!(!error.is_passing(), "byte {at} of page {number}: {error}");
                    found += 1;
                }
                Ok(store) => match fate(&store, &before) {
                    Fate::Found => found += 1,
                    Fate::MeansNothing => {}
                    Fate::Missed => missed.push(format!("byte {at} of page {number}, mask {mask:02x}")),
                },
            }
        }
    }
    assert_eq!(missed, Vec::<String>::new());
    assert!(found >= 20, "{found}");
}

fn write_file(path: &Path, bytes: &[u8]) {
    for name in ["history.db-wal", "history.db-shm"] {
        let _ = std::fs::remove_file(path.with_file_name(name));
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_bit_that_flips_in_the_file_is_found_or_means_nothing() {
    flip_in_file("flips-file-1", 1, 2, 0);
}

#[test]
fn in_every_page_of_it() {
    flip_in_file("flips-file-2", 2, 2, 1);
}

/// How one bit of a column is flipped in PostgreSQL; the same again takes it back.
fn flip_of(kind: &str, column: &str, dice: &mut Dice) -> Option<String> {
    let number = dice.below(1 << 20);
    Some(match kind {
        "int8" => format!("{column} # (1::bigint << {})", number % 64),
        "int4" => format!("{column} # (1 << {})", number % 32),
        "int2" => format!("({column} # (1 << {})::smallint)::smallint", number % 15),
        "bool" => format!("NOT {column}"),
        "bytea" => format!(
            "set_bit({column}, ({number} % (length({column}) * 8))::bigint,
                 1 - get_bit({column}, ({number} % (length({column}) * 8))::bigint))"
        ),
        "uuid" => format!(
            "encode(set_bit(uuid_send({column}), {0}, 1 - get_bit(uuid_send({column}), {0})), 'hex')::uuid",
            number % 128
        ),
        // The lowest bit of a letter or a digit: anything else may be no text any more.
        "text" => format!(
            "overlay({column} PLACING chr(ascii(substr({column}, 1 + {number} % length({column}), 1)) # 1)
                 FROM 1 + {number} % length({column}))"
        ),
        _ => return None,
    })
}

fn flip_in_postgres(test: &str, seed: u64) {
    let Some(schema) = Schema::new(test) else { return };
    let store: Arc<Postgres> = Arc::new(schema.open());
    fill(&(Arc::clone(&store) as Store));
    let before = everything(&*store).unwrap();
    let held = schema.client();
    let columns = held.ask(&format!(
        "SELECT table_name, column_name, udt_name FROM information_schema.columns
         WHERE table_schema = '{}' AND table_name NOT IN ('writers', 'write_probe', 'format')
         ORDER BY table_name, column_name",
        schema.name()
    ));
    let mut dice = Dice(seed);
    let (mut found, mut missed, mut nothing) = (0, Vec::new(), Vec::new());
    for row in columns {
        let [table, column, kind] = &row[..] else { panic!("{row:?}") };
        let Some(flip) = flip_of(kind, column, &mut dice) else { continue };
        let rows =
            held.ask(&format!("SELECT ctid::text FROM {table} WHERE {column} IS NOT NULL ORDER BY ctid"));
        if rows.is_empty() {
            continue;
        }
        let at = &rows[dice.below(rows.len())][0];
        let sql = format!("UPDATE {table} SET {column} = {flip} WHERE ctid = '{at}' RETURNING ctid::text");
        let Some(moved) = held.try_ask(&sql) else { continue };
        let what = format!("{table}.{column} ({kind}): {flip}");
        match fate(&*store, &before) {
            Fate::Found => found += 1,
            Fate::MeansNothing => nothing.push(format!("{table}.{column}")),
            Fate::Missed => missed.push(what),
        }
        held.ask(&format!("UPDATE {table} SET {column} = {flip} WHERE ctid = '{}'", moved[0][0]));
    }
    assert_eq!(missed, Vec::<String>::new());
    assert!(found >= 40, "{found}");
    let is_harmless = |place: &String| place.ends_with(".n") || place == "blobs.bytes";
    assert!(nothing.iter().all(is_harmless), "{nothing:?}");
    assert_eq!(run(store.check(Arc::new(|_| {}))).unwrap().findings, []);
}

#[test]
fn a_bit_that_flips_in_postgresql_is_found() {
    flip_in_postgres("flips-1", 1);
}

#[test]
fn so_is_another_in_postgresql() {
    flip_in_postgres("flips-2", 2);
}
