//! Histories from before arguments were told by what they mean: they are brought forward when they are opened, found
//! sound, and recognised however a client prints them.

use std::sync::Arc;

use rusqlite::Connection;
use throughline_core::{Entry, Outcome};
use throughline_store::{Chain, History, Locate, Upkeep, chains};

use crate::fixtures::{
    Folder, Schema, Store, append, conversation, open, remove_checksums, result, run, user,
};

const SAID: &str = "read it";
const WRITTEN: &str = r#"{"path":"é.rs","lines":[1.10,2]}"#;
const REPRINTED: &str = "{ \"lines\": [1.1, 2.0], \"path\": \"\\u00e9.rs\" }";

fn call(n: usize, arguments: &str) -> Entry {
    crate::fixtures::call(&format!("c{n}"), "read", arguments)
}

/// How many calls there are: more entries than are seen to at once.
const CALLS: usize = 150;

fn history(arguments: &str) -> Vec<Entry> {
    let pair = |n| [call(n, arguments), result(&format!("c{n}"), "content", Outcome::Ok)];
    std::iter::once(user(SAID)).chain((0..CALLS).flat_map(pair)).collect()
}

/// The chains of [`history`] by the rule that held before: over arguments as they were written.
fn old_chains() -> Vec<[u8; 16]> {
    let digest = |use_of: &str, pieces: &[&[u8]]| {
        let mut hasher = blake3::Hasher::new_derive_key(use_of);
        for piece in pieces {
            hasher.update(piece);
        }
        <[u8; 16]>::try_from(&hasher.finalize().as_bytes()[..16]).unwrap()
    };
    let piece = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let saying = |bytes: Vec<u8>| digest("throughline 2026 saying", &[&bytes]);
    let mut sayings = vec![saying([&[2, 20][..], &piece(SAID)].concat())];
    for n in 0..CALLS {
        let id = piece(&format!("c{n}"));
        sayings.push(saying([&[10][..], &id, &piece("read"), &[0], &piece(WRITTEN)].concat()));
        sayings.push(saying([&[11][..], &id, &[0, 20], &piece("content")].concat()));
    }
    let mut last = [0; 16];
    let mut step = |saying: &[u8; 16]| {
        last = digest("throughline 2026 chain", &[&last, saying]);
        last
    };
    sayings.iter().map(&mut step).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn known(store: &dyn History, chains: Vec<Chain>) -> Option<usize> {
    let prefix = Locate::Prefix { within: Some(conversation("a")), chains };
    run(store.locate(prefix)).unwrap().map(|located| located.known)
}

fn findings(store: &dyn Upkeep) -> usize {
    run(store.check(Arc::new(|_| {}))).unwrap().findings.len()
}

/// Asserts that all of the history is recognised, as it was written and as a client prints it.
fn assert_recognised(store: &dyn History) {
    for arguments in [WRITTEN, REPRINTED] {
        let all = history(arguments);
        assert_eq!(known(store, chains(&all)), Some(all.len()));
    }
}

#[test]
fn an_older_database_is_brought_forward_and_recognised() {
    let folder = Folder::new("rechain");
    let store: Store = Arc::new(open(&folder.database()));
    run(append(&store, "a", None, 1, &history(WRITTEN)));
    assert_recognised(&*store);
    drop(store);
    let older = Connection::open(folder.database()).unwrap();
    for (at, chain) in old_chains().iter().enumerate() {
        older.execute("UPDATE nodes SET chain = ?2 WHERE n = ?1", (at + 1, chain)).unwrap();
    }
    let unconverted = open(&folder.database());
    assert_eq!(findings(&unconverted), CALLS * 2, "all but what was said before the first call");
    assert_eq!(known(&unconverted, chains(&history(WRITTEN))), Some(1));
    drop(unconverted);
    remove_checksums(&older);
    older.execute_batch("PRAGMA user_version = 3").unwrap();
    drop(older);
    let store = open(&folder.database());
    assert_eq!(findings(&store), 0);
    assert_recognised(&store);
}

#[test]
fn damage_does_not_keep_an_older_database_closed() {
    let folder = Folder::new("rechain-damaged");
    let store: Store = Arc::new(open(&folder.database()));
    run(append(&store, "a", None, 1, &[user(SAID), call(0, WRITTEN), user("and on")]));
    drop(store);
    let older = Connection::open(folder.database()).unwrap();
    remove_checksums(&older);
    older.execute_batch("UPDATE blobs SET bytes = x'00' WHERE n = 2; PRAGMA user_version = 3").unwrap();
    drop(older);
    let store = open(&folder.database());
    assert!(findings(&store) > 0);
    assert_eq!(known(&store, chains(&[user(SAID)])), Some(1));
}

#[test]
fn an_older_database_in_postgresql_is_too() {
    let Some(schema) = Schema::new("rechain") else { return };
    let store: Store = Arc::new(schema.open());
    run(append(&store, "a", None, 1, &history(WRITTEN)));
    assert_recognised(&*store);
    drop(store);
    let update = |(at, chain): (usize, &[u8; 16])| {
        format!("UPDATE nodes SET chain = '{}' WHERE n = (SELECT min(n) + {at} FROM nodes);", hex(chain))
    };
    schema.execute(&old_chains().iter().enumerate().map(update).collect::<String>());
    let unconverted = schema.open();
    assert_eq!(findings(&unconverted), CALLS * 2);
    drop(unconverted);
    schema.remove_checksums();
    schema.execute("UPDATE format SET version = 2");
    let store = schema.open();
    assert_eq!(findings(&store), 0);
    assert_recognised(&store);
}
