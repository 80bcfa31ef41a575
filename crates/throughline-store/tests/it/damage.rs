//! A database that is locked, full, damaged, newer or gone: the error says so, and the service resumes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use throughline_core::EntryId;
use throughline_store::{
    Batch, Conversations, Entries, Paging, Search, Sqlite, SqliteOptions, StoreError, Write,
};

use crate::fixtures::{Folder, Store, append, beginning, conversation, extension, open, run, user};

fn try_append(store: &Store, text: &str) -> Result<EntryId, StoreError> {
    let extension = extension("a", None, 1, &[user(text)]);
    let tip = extension.tip().unwrap();
    run(store.append(Batch::durable(vec![beginning("a", 1), Write::Entries(extension)]))).map(|_| tip)
}

fn length(store: &Store, tip: &EntryId) -> usize {
    run(store.entries(Entries::Branch(tip.clone()))).unwrap().len()
}

#[test]
fn a_locked_database_is_busy_until_it_is_let_go() {
    let folder = Folder::new("locked");
    let store: Store = Arc::new(open(&folder.database()));
    let first = try_append(&store, "before").unwrap();
    let other = Connection::open(folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = try_append(&store, "meanwhile").unwrap_err();
    assert_eq!(error, StoreError::Busy);
    assert!(error.is_passing());
    assert_eq!(length(&store, &first), 1, "reading goes on");
    other.execute_batch("COMMIT").unwrap();
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1);
}

#[test]
fn a_database_that_cannot_be_written_takes_no_part_of_a_batch_and_resumes() {
    let folder = Folder::new("unwritable");
    let store: Store = Arc::new(open(&folder.database()));
    let first = try_append(&store, "before").unwrap();
    let other = Connection::open(folder.database()).unwrap();
    other
        .execute_batch("CREATE TRIGGER t BEFORE INSERT ON nodes BEGIN SELECT raise(ABORT, 'no'); END")
        .unwrap();
    let error = try_append(&store, "meanwhile").unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    let page = run(store.conversations(Conversations::One(conversation("a")))).unwrap();
    assert_eq!(page.items[0].entries, 1);
    assert_eq!(length(&store, &first), 1);
    other.execute_batch("DROP TRIGGER t").unwrap();
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1);
}

#[test]
fn a_file_that_is_no_database_is_called_damaged() {
    let folder = Folder::new("garbage");
    std::fs::write(folder.database(), "this is not a database, whatever its name says").unwrap();
    let error = Sqlite::open(&folder.database(), SqliteOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("backup"), "it says what to do: {error}");
}

#[test]
fn a_path_that_leads_nowhere_is_named() {
    let error = Sqlite::open(Path::new("no/such/folder/history.db"), SqliteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no/such/folder/history.db"), "{error}");
}

#[test]
fn a_newer_schema_is_refused_at_the_door_and_while_running() {
    let folder = Folder::new("newer");
    let store: Store = Arc::new(open(&folder.database()));
    try_append(&store, "before").unwrap();
    let other = Connection::open(folder.database()).unwrap();
    other.pragma_update(None, "user_version", 9).unwrap();
    let newer = StoreError::Newer { found: 9, known: Sqlite::FORMAT };
    assert_eq!(try_append(&store, "meanwhile").unwrap_err(), newer);
    assert_eq!(Sqlite::open(&folder.database(), SqliteOptions::default()).unwrap_err(), newer);
}

#[test]
fn an_older_schema_is_left_alone_by_whoever_opens_it_as_it_is() {
    let folder = Folder::new("older");
    let store: Store = Arc::new(open(&folder.database()));
    try_append(&store, "before").unwrap();
    drop(store);
    let as_it_is = || Sqlite::open_as_it_is(&folder.database(), SqliteOptions::default());
    let other = Connection::open(folder.database()).unwrap();
    let version = || other.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).unwrap();
    other.pragma_update(None, "user_version", Sqlite::FORMAT - 1).unwrap();
    let older = StoreError::Older { found: Sqlite::FORMAT - 1, known: Sqlite::FORMAT };
    assert_eq!(as_it_is().unwrap_err(), older);
    assert_eq!(version(), Sqlite::FORMAT - 1);
    drop(open(&folder.database()));
    assert_eq!(version(), Sqlite::FORMAT, "whoever may, brings it forward");
    assert!(as_it_is().unwrap().is_some());
}

#[test]
fn what_is_opened_as_it_is_is_not_made_and_reads_what_others_write() {
    let folder = Folder::new("as-it-is");
    let as_it_is = || Sqlite::open_as_it_is(&folder.database(), SqliteOptions::default()).unwrap();
    assert!(as_it_is().is_none() && !folder.database().exists());
    std::fs::write(folder.database(), "").unwrap();
    assert!(as_it_is().is_none(), "an empty file is no history");
    let writing: Store = Arc::new(open(&folder.database()));
    try_append(&writing, "the first words").unwrap();
    let reading: Store = Arc::new(as_it_is().unwrap());
    try_append(&writing, "and the second").unwrap();
    let found = |words: &str| {
        let search = Search { words: words.to_owned(), ..Search::default() };
        run(reading.search(search)).unwrap().items.len()
    };
    assert_eq!((found("words"), found("second"), found("the")), (1, 1, 2), "without an index of them");
    let indexed = Connection::open(folder.database()).unwrap();
    let indexed: i64 = indexed.query_row("SELECT n FROM indexed", [], |row| row.get(0)).unwrap();
    assert_eq!(indexed, 0, "nothing is written by reading");
    try_append(&reading, "it can be written").unwrap();
    assert_eq!(found("written"), 1);
}

#[test]
fn a_store_is_ready_only_while_a_batch_could_be_written() {
    let folder = Folder::new("ready");
    let store: Store = Arc::new(open(&folder.database()));
    try_append(&store, "before").unwrap();
    assert_eq!(run(store.ready()), Ok(()));
    let other = Connection::open(folder.database()).unwrap();
    other.pragma_update(None, "user_version", 9).unwrap();
    assert_eq!(run(store.ready()), Err(StoreError::Newer { found: 9, known: Sqlite::FORMAT }));
    other.pragma_update(None, "user_version", Sqlite::FORMAT).unwrap();
    assert_eq!(run(store.ready()), Ok(()));
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(run(store.ready()), Err(StoreError::Busy));
    other.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::write(folder.database(), [7; 65_536]).unwrap();
    let error = run(store.ready()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "garbage in its place: {error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_was_taken_away_is_not_written_to_in_silence() {
    let folder = Folder::new("removed");
    let store: Store = Arc::new(open(&folder.database()));
    try_append(&store, "before").unwrap();
    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        let _ = std::fs::remove_file(folder.database().with_file_name(name));
    }
    let tip = try_append(&store, "after").unwrap();
    drop(store);
    let store: Store = Arc::new(open(&folder.database()));
    assert_eq!(length(&store, &tip), 1);
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("private");
    let store: Store = Arc::new(open(&folder.database()));
    try_append(&store, "private").unwrap();
    for name in ["history.db", "history.db-wal"] {
        let metadata = std::fs::metadata(folder.database().with_file_name(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{name}");
    }
}

#[test]
fn what_is_accepted_is_written_when_the_store_is_dropped() {
    let folder = Folder::new("dropped");
    let store: Store = Arc::new(open(&folder.database()));
    let mut appends = Vec::new();
    for n in 0..50 {
        let store = Arc::clone(&store);
        appends.push(std::thread::spawn(move || run(append(&store, "a", None, 1, &[user(&n.to_string())]))));
    }
    let tips: Vec<EntryId> = appends.into_iter().map(|append| append.join().unwrap()).collect();
    drop(store);
    let store: Store = Arc::new(open(&folder.database()));
    assert!(tips.iter().all(|tip| length(&store, tip) == 1));
}

#[test]
fn another_process_reads_and_writes_at_the_same_time() {
    let folder = Folder::new("shared");
    let options = SqliteOptions { busy: Duration::from_secs(5), ..SqliteOptions::default() };
    let one: Store = Arc::new(Sqlite::open(&folder.database(), options).unwrap());
    let two: Store = Arc::new(Sqlite::open(&folder.database(), options).unwrap());
    let stores = [Arc::clone(&one), Arc::clone(&two)];
    let threads = stores.into_iter().enumerate().map(|(number, store)| {
        std::thread::spawn(move || {
            for n in 0..40 {
                run(append(&store, &format!("c{number}"), None, n, &[user(&n.to_string())]));
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    for store in [&one, &two] {
        let page = run(store.conversations(Conversations::All(Paging::default()))).unwrap();
        assert_eq!(page.items.iter().map(|heading| heading.entries).collect::<Vec<_>>(), [40, 40]);
    }
    assert_eq!(run(one.search(Search { words: "39".into(), ..Default::default() })).unwrap().items.len(), 2);
}
