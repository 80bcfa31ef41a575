//! Stores to test, and things to put into them.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throughline_core::{
    Call, ConversationId, Dialect, Entry, EntryId, Input, Kind, Outcome, Part, Return, Role,
};
use throughline_store::{
    Batch, Exchange, ExchangeId, Extension, History, Moment, NewConversation, Postgres, PostgresOptions,
    Sqlite, SqliteOptions, Write,
};

/// A store under test.
pub type Store = Arc<dyn History>;

/// A folder of its own for one test, gone when the test is through.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Self {
        let name = format!("{test}-{}", std::process::id()).replace("::", "-");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("history.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A schema of its own for one test in the PostgreSQL that the tests were given, gone when the test is through.
pub struct Schema {
    name: String,
    server: String,
}

impl Schema {
    /// Returns nothing, and says so, where there is no PostgreSQL; in continuous integration there is one.
    #[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
    pub fn new(test: &str) -> Option<Self> {
        let Ok(server) = std::env::var("THROUGHLINE_TEST_POSTGRES") else {
            assert!(std::env::var_os("CI").is_none(), "THROUGHLINE_TEST_POSTGRES is not set");
            eprintln!("skipped: THROUGHLINE_TEST_POSTGRES is not set; ./test sets it");
            return None;
        };
        let digest = blake3::hash(test.as_bytes()).to_hex();
        let name = format!("test_{}_{}", &digest[..12], std::process::id());
        let schema = Self { name, server };
        schema.execute(&format!("DROP SCHEMA IF EXISTS {0} CASCADE; CREATE SCHEMA {0}", schema.name));
        Some(schema)
    }

    /// The URL under which the schema is the place for tables.
    pub fn url(&self) -> String {
        let with = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{with}options=-csearch_path%3D{1}&application_name={1}", self.server, self.name)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn open(&self) -> Postgres {
        Postgres::open(&self.url(), PostgresOptions::default()).unwrap()
    }

    /// Does something to the database behind the store's back.
    pub fn execute(&self, sql: &str) {
        self.ask(sql);
    }

    /// Asks the database behind the store's back, and returns the last row that comes.
    pub fn ask(&self, sql: &str) -> Vec<String> {
        let sql = format!("SET client_min_messages = warning; SET search_path = {}; {sql}", self.name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.server, tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            let answers = client.simple_query(&sql).await.unwrap();
            drop(client);
            connection.await.unwrap().unwrap();
            let row = answers.iter().rev().find_map(|answer| match answer {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            let columns = |row: &tokio_postgres::SimpleQueryRow| {
                (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
            };
            row.map(columns).unwrap_or_default()
        })
    }
}

/// A connection behind the store's back.
pub struct Client {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Schema {
    /// Opens a connection behind the store's back.
    pub fn client(&self) -> Client {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let connected = tokio_postgres::connect(&self.server, tokio_postgres::NoTls);
        let (client, connection) = runtime.block_on(connected).unwrap();
        runtime.spawn(connection);
        runtime.block_on(client.batch_execute(&format!("SET search_path = {}", self.name))).unwrap();
        Client { runtime, client }
    }
}

impl Client {
    /// Returns all rows.
    pub fn ask(&self, sql: &str) -> Vec<Vec<String>> {
        self.try_ask(sql).unwrap()
    }

    /// Returns all rows; nothing if the server refuses.
    pub fn try_ask(&self, sql: &str) -> Option<Vec<Vec<String>>> {
        let answers = self.runtime.block_on(self.client.simple_query(sql)).ok()?;
        let rows = answers.iter().filter_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        });
        Some(rows.collect())
    }
}

/// Takes what schema 7 added out of a database in SQLite. What the reports said is not put back.
pub fn remove_documents(connection: &rusqlite::Connection) {
    let sent = "CREATE TABLE sent (
            exchange INTEGER NOT NULL REFERENCES exchanges (n),
            attempt  INTEGER NOT NULL,
            body     INTEGER NOT NULL REFERENCES bodies (n),
            checksum INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (exchange, attempt)
        ) STRICT, WITHOUT ROWID;";
    connection.execute_batch(sent).unwrap();
    connection.execute_batch(WITHOUT_DOCUMENTS).unwrap();
    connection.execute_batch("PRAGMA user_version = 6").unwrap();
}

const WITHOUT_DOCUMENTS: &str = "
    INSERT INTO sent (exchange, attempt, body) SELECT exchange, attempt, body FROM documents WHERE kind = 0;
    DROP TABLE documents;
    ALTER TABLE attempts DROP COLUMN tokens_before; ALTER TABLE attempts DROP COLUMN tokens_after;
    ALTER TABLE attempts DROP COLUMN tool_tokens; ALTER TABLE attempts DROP COLUMN continues;
    ALTER TABLE attempts DROP COLUMN recall; ALTER TABLE attempts ADD COLUMN report TEXT;";

/// Takes what schema 6 added out of a database in SQLite, and what came later.
pub fn remove_steps(connection: &rusqlite::Connection) {
    remove_documents(connection);
    connection.execute_batch(WITHOUT_STEPS).unwrap();
    connection.execute_batch("PRAGMA user_version = 5").unwrap();
}

const WITHOUT_STEPS: &str = "DROP TABLE compaction_steps;
    ALTER TABLE attempts DROP COLUMN step_exchange; ALTER TABLE attempts DROP COLUMN step_attempt;";

/// Takes what schema 5 added out of a database in SQLite, and what came later.
pub fn remove_checksums(connection: &rusqlite::Connection) {
    remove_steps(connection);
    for table in WITH_CHECKSUM {
        connection.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN checksum")).unwrap();
    }
    connection.execute_batch("DROP TABLE write_probe; PRAGMA user_version = 4").unwrap();
}

impl Schema {
    /// Takes what schema 6 added out of the database. What the reports said is not put back.
    pub fn remove_documents(&self) {
        self.execute(
            "CREATE TABLE sent (exchange bigint NOT NULL, attempt integer NOT NULL, body uuid NOT NULL,
                checksum bigint NOT NULL DEFAULT 0, PRIMARY KEY (exchange, attempt))",
        );
        self.execute(WITHOUT_DOCUMENTS);
        self.execute("UPDATE format SET version = 5");
    }

    /// Takes what schema 5 added out of the database, and what came later.
    pub fn remove_steps(&self) {
        self.remove_documents();
        self.execute(WITHOUT_STEPS);
        self.execute("UPDATE format SET version = 4");
    }

    /// Takes what schema 4 added out of the database, and what came later.
    pub fn remove_checksums(&self) {
        self.remove_steps();
        for table in WITH_CHECKSUM {
            self.execute(&format!("ALTER TABLE {table} DROP COLUMN checksum"));
        }
        self.execute("DROP TABLE write_probe; UPDATE format SET version = 3");
    }
}

const WITH_CHECKSUM: [&str; 12] = [
    "conversations",
    "keys",
    "nodes",
    "items",
    "exchanges",
    "attempts",
    "bodies",
    "sent",
    "answers",
    "events",
    "learned",
    "settings",
];

/// A transaction that somebody else holds open.
pub struct Held {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Schema {
    /// Begins a transaction behind the store's back, and leaves it open.
    pub fn hold(&self, sql: &str) -> Held {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let connected = tokio_postgres::connect(&self.server, tokio_postgres::NoTls);
        let (client, connection) = runtime.block_on(connected).unwrap();
        runtime.spawn(connection);
        let sql = format!("SET search_path = {}; BEGIN; {sql}", self.name);
        runtime.block_on(client.batch_execute(&sql)).unwrap();
        Held { runtime, client }
    }
}

impl Held {
    pub fn release(self) {
        self.runtime.block_on(self.client.batch_execute("COMMIT")).unwrap();
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.execute(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

/// Opens a database that gives up at once when another process holds it.
pub fn open(path: &Path) -> Sqlite {
    let options = SqliteOptions { busy: Duration::from_millis(20), ..SqliteOptions::default() };
    Sqlite::open(path, options).unwrap()
}

/// Runs a test to its end.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

pub fn user(text: &str) -> Entry {
    Entry::said(Role::User, text)
}

pub fn assistant(text: &str) -> Entry {
    Entry::said(Role::Assistant, text)
}

pub fn call(id: &str, name: &str, arguments: &str) -> Entry {
    let call = Call {
        id: id.into(),
        item_id: Some(format!("item_{id}").into()),
        name: name.into(),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    };
    Entry::new(Kind::Called(call))
}

pub fn result(id: &str, text: &str, outcome: Outcome) -> Entry {
    Entry::new(Kind::Returned(Return {
        call_id: Some(id.into()),
        item_id: None,
        name: None,
        parts: vec![Part::text(text)],
        outcome,
        freeform: false,
    }))
}

pub fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// The write that begins a conversation.
pub fn beginning(id: &str, at: i64) -> Write {
    Write::Conversation(NewConversation {
        id: conversation(id),
        at: Moment(at),
        identified: "test".into(),
        title: Some(format!("about {id}").into()),
        keys: vec![format!("key-of-{id}").into()],
    })
}

/// Entries behind `parent`.
pub fn extension(id: &str, parent: Option<&EntryId>, at: i64, entries: &[Entry]) -> Extension {
    let mut extension = Extension::new(conversation(id), parent.cloned(), Moment(at));
    extension.extend(entries);
    extension
}

/// Begins a conversation if need be, appends entries behind `parent`, and returns the last of them.
pub async fn append(
    store: &Store,
    id: &str,
    parent: Option<&EntryId>,
    at: i64,
    entries: &[Entry],
) -> EntryId {
    let extension = extension(id, parent, at, entries);
    let tip = extension.tip().unwrap();
    store.append(Batch::durable(vec![beginning(id, at), Write::Entries(extension)])).await.unwrap();
    tip
}

pub fn exchange(id: &str, of: &str, at: i64) -> Exchange {
    Exchange::begun(ExchangeId::new(id), conversation(of), Dialect::Chat, Moment(at))
}
