//! A database that is locked, full, damaged, newer or gone: the error says so, and the service resumes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use throughline_core::EntryId;
use throughline_store::{
    Batch, Conversations, Entries, Paging, Search, Sqlite, SqliteOptions, StoreError, Upkeep, Write,
};

use crate::fixtures::{
    Folder, Store, append, beginning, conversation, extension, open, remove_checksums, run, user,
};

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

/// Copies a database with so many bytes of it, and its log if there is one.
fn cut(folder: &Folder, bytes: usize, with_log: bool) -> std::path::PathBuf {
    let file = folder.database().with_file_name("cut.db");
    let beside = |rest: &str| file.with_file_name(format!("cut.db{rest}"));
    ["-wal", "-shm"].iter().for_each(|rest| drop(std::fs::remove_file(beside(rest))));
    std::fs::write(&file, &std::fs::read(folder.database()).unwrap()[..bytes]).unwrap();
    if with_log {
        std::fs::copy(folder.database().with_file_name("history.db-wal"), beside("-wal")).unwrap();
    }
    file
}

#[test]
fn a_file_that_was_cut_short_is_refused_and_left_as_it_is() {
    let folder = Folder::new("cut-short");
    let store: Store = Arc::new(open(&folder.database()));
    (0..60).for_each(|n| drop(try_append(&store, &format!("{n} {}", "words ".repeat(n)))));
    drop(store);
    let other = Connection::open(folder.database()).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(other);
    let whole = std::fs::read(folder.database()).unwrap().len();
    assert!(whole > 60_000, "{whole}");
    for bytes in [0, 1, 99, 100, 4_095, 4_096, 30_000, whole - 4_096, whole - 1] {
        let file = cut(&folder, bytes, false);
        for as_it_is in [false, true] {
            let opened = match as_it_is {
                true => Sqlite::open_as_it_is(&file, SqliteOptions::default()).map(drop),
                false => Sqlite::open(&file, SqliteOptions::default()).map(drop),
            };
            let error = opened.unwrap_err();
            assert!(matches!(error, StoreError::Damaged(_)), "{bytes}: {error}");
            assert!(error.to_string().contains("backup"), "it says what to do: {error}");
        }
        assert_eq!(std::fs::metadata(&file).unwrap().len(), bytes as u64, "nothing is written to it");
    }
    let file = cut(&folder, whole, false);
    assert_eq!(run(open(&file).stats()).unwrap().entries, 60);
}

#[test]
fn what_a_file_lacks_may_be_in_its_log() {
    let folder = Folder::new("cut-log");
    let store: Store = Arc::new(open(&folder.database()));
    (0..20).for_each(|n| drop(try_append(&store, &format!("{n} {}", "words ".repeat(n)))));
    let whole = std::fs::read(folder.database()).unwrap().len();
    // Nothing was written back yet: the log has what was said since the file was made, and the file the rest.
    assert_eq!(run(open(&cut(&folder, whole, true)).stats()).unwrap().entries, 20);
    for bytes in [0, whole / 2] {
        let file = cut(&folder, bytes, true);
        let error = Sqlite::open(&file, SqliteOptions::default()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{bytes}: {error}");
        let log = std::fs::metadata(file.with_file_name("cut.db-wal")).unwrap().len();
        assert!(log > 0, "the log is still there for whoever can make use of it");
    }
    let file = cut(&folder, whole, true);
    std::fs::remove_file(&file).unwrap();
    let error = Sqlite::open(&file, SqliteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("its log"), "{error}");
}

#[test]
fn a_database_of_somebody_else_is_not_written_to() {
    let folder = Folder::new("foreign");
    Connection::open(folder.database()).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
    let error = Sqlite::open(&folder.database(), SqliteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("does not say of which schema"), "{error}");
}

#[test]
fn two_that_make_a_database_at_once_make_one() {
    let folder = Folder::new("made-twice");
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let path = folder.database();
            std::thread::spawn(move || {
                let store: Store = Arc::new(Sqlite::open(&path, SqliteOptions::default()).unwrap());
                run(append(&store, &n.to_string(), None, n, &[user("hello")]));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(run(open(&folder.database()).stats()).unwrap().conversations, 8);
    let left = std::fs::read_dir(folder.database().parent().unwrap()).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".new-"));
    assert_eq!(left.count(), 0);
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
    remove_checksums(&other);
    let older = StoreError::Older { found: 4, known: Sqlite::FORMAT };
    assert_eq!(as_it_is().unwrap_err(), older);
    assert_eq!(version(), 4);
    drop(open(&folder.database()));
    assert_eq!(version(), Sqlite::FORMAT, "whoever may, brings it forward");
    assert!(as_it_is().unwrap().is_some());
}

#[test]
fn what_is_opened_as_it_is_is_not_made_and_reads_what_others_write() {
    let folder = Folder::new("as-it-is");
    let as_it_is = || Sqlite::open_as_it_is(&folder.database(), SqliteOptions::default()).unwrap();
    assert!(as_it_is().is_none() && !folder.database().exists());
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

#[test]
fn a_store_that_is_ready_has_been_written_to() {
    let folder = Folder::new("write_probe");
    let store: Store = Arc::new(open(&folder.database()));
    let other = Connection::open(folder.database()).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE UPDATE ON write_probe BEGIN SELECT raise(ABORT, 'no space'); END",
        )
        .unwrap();
    let error = run(store.ready()).unwrap_err();
    assert!(error.to_string().contains("no space"), "{error}");
    other.execute_batch("DROP TRIGGER refuse").unwrap();
    assert_eq!(run(store.ready()), Ok(()), "and it is back by itself");
    let write_probe =
        || other.query_row("SELECT at FROM write_probe", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = write_probe();
    assert!(before > 0);
    (0..50).for_each(|_| assert_eq!(run(store.ready()), Ok(())));
    assert!(write_probe() - before < 50, "not with each question");
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
    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        let metadata = std::fs::metadata(folder.database().with_file_name(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{name}");
    }
    drop(store);
    // A copy that somebody has left open to all is closed to others when it is used.
    std::fs::set_permissions(folder.database(), PermissionsExt::from_mode(0o666)).unwrap();
    drop(open(&folder.database()));
    let mode = std::fs::metadata(folder.database()).unwrap().permissions().mode();
    assert_eq!(mode & 0o007, 0, "{mode:o}");
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
