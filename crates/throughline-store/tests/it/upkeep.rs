//! What an operator does to a durable history: checks that find what was damaged, copies that are equal, and
//! deletions after which nothing is to be found in the file.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::Connection;
use throughline_core::plan::Decisions;
use throughline_core::{EntryId, Outcome};
use throughline_store::{
    Batch, CompactionStep, Conversations, DocumentKind, Entries, ExchangeId, Exchanges, History, Inventory,
    Learned, Moment, Outworn, Paging, ProviderEvent, Prune, Remedy, Scope, Search, Setting, Sqlite,
    SqliteOptions, StepId, StoreError, Upkeep, Watch, Which, Write, copy,
};

use crate::fixtures::{
    Folder, Schema, Store, append, beginning, call, conversation, exchange, extension, open,
    remove_checksums, result, run, user,
};

fn silent() -> Watch {
    Arc::new(|_| {})
}

/// Fills a history with some of everything: pairs, a branch, requests that rest on each other, texts that are hard.
fn fill(store: &Store) -> EntryId {
    run(async {
        let mut tip = None;
        for n in 0..12_i64 {
            let id = format!("x{n}");
            let entries = [
                user(&format!("question {n} about \0 and é")),
                call(&format!("c{n}"), "read", r#"{"path":"src/main.rs"}"#),
                result(&format!("c{n}"), &format!("content {n} ").repeat(200), Outcome::Ok),
            ];
            let growth = extension("a", tip.as_ref(), n, &entries).of_exchange(ExchangeId::new(id.as_str()));
            tip = growth.tip();
            let body = format!(
                "{{\"messages\":[{}]}}",
                (0..=n).map(|n| format!("\"{n}{}\"", "word ".repeat(300))).collect::<Vec<_>>().join(",")
            );
            let of = || ExchangeId::new(id.as_str());
            let event = ProviderEvent { at: Moment(n), name: Some("delta".into()), data: "{}".into() };
            let writes = vec![
                beginning("a", n),
                Write::Exchange(exchange(&id, "a", n).into()),
                Write::Entries(growth),
                Write::Document {
                    kind: DocumentKind::Sent,
                    exchange: of(),
                    attempt: 0,
                    body: Bytes::from(body),
                },
                Write::Events { exchange: of(), attempt: 0, events: vec![event] },
                Write::Answer { exchange: of(), json: "{\"id\":\"r\"}".into() },
                Write::Compaction(Box::new(CompactionStep {
                    id: StepId { exchange: of(), attempt: 0 },
                    conversation: conversation("a"),
                    backend: "one".into(),
                    model: "m".into(),
                    at: Moment(n),
                    follows: (n > 0).then(|| StepId { exchange: ExchangeId::new("x0"), attempt: 0 }),
                    decisions: format!("decisions 1\n{n} 0000000000000007 abcdefgh 90 9 - m").into(),
                    summary: None,
                })),
            ];
            store.append(Batch::durable(writes)).await.unwrap();
        }
        append(store, "b", None, 20, &[user("another"), result("lost", "no call", Outcome::Error)]).await;
        let learned = Learned {
            backend: "one".into(),
            model: "".into(),
            capability: "native_tool_history".into(),
            verdict: "no".into(),
            reason: "400".into(),
            at: Moment(1),
            expires: Some(Moment(2)),
        };
        let setting =
            |scope| Setting { scope, name: "backend".into(), value: Some("one".into()), at: Moment(3) };
        let writes = vec![
            Write::Learned(learned),
            Write::Setting(setting(Scope::Everywhere)),
            Write::Setting(setting(Scope::Conversation(conversation("b")))),
        ];
        store.append(Batch::durable(writes)).await.unwrap();
        tip.unwrap()
    })
}

/// Asserts that two histories answer alike.
fn assert_alike(one: &Store, two: &Store, tip: &EntryId) {
    let branch = |store: &Store| run(store.entries(Entries::Branch(tip.clone()))).unwrap();
    assert_eq!(branch(one), branch(two));
    for n in 0..12 {
        let recording = |store: &Store| {
            run(store.recording(ExchangeId::new(format!("x{n}")), Which::Everything)).unwrap()
        };
        assert_eq!(recording(one), recording(two));
    }
    assert_eq!(run(one.standing()).unwrap(), run(two.standing()).unwrap());
    let search = || Search { words: "content".into(), paging: Paging::first(5), ..Search::default() };
    let hits = |store: &Store| run(store.search(search())).unwrap().items;
    assert_eq!(hits(one), hits(two));
    assert_eq!(hits(one).len(), 5);
}

fn checked(store: &dyn Upkeep) -> throughline_store::Checkup {
    run(store.check(silent())).unwrap()
}

#[test]
fn a_sound_history_is_found_sound() {
    let folder = Folder::new("sound");
    let store = Arc::new(open(&folder.database()));
    fill(&(Arc::clone(&store) as Store));
    let checkup = checked(&*store);
    assert_eq!(checkup.findings, []);
    assert_eq!((checkup.conversations, checkup.exchanges, checkup.entries), (2, 12, 38));
    assert_eq!((checkup.pairs, checkup.open, checkup.orphans, checkup.repeated), (12, 0, 1, 0));
    assert_eq!(checkup.requests, 12);
    let stats = run(store.stats()).unwrap();
    assert_eq!((stats.conversations, stats.entries, stats.exchanges), (2, 38, 12));
    assert!(stats.content() > 0 && stats.content() <= stats.disk);
    assert_eq!(stats.oldest, Some(Moment(0)));
}

#[test]
fn a_sound_history_in_postgresql_is_found_sound() {
    let Some(schema) = Schema::new("sound") else { return };
    let store = Arc::new(schema.open());
    fill(&(Arc::clone(&store) as Store));
    let checkup = checked(&*store);
    assert_eq!(checkup.findings, []);
    assert_eq!((checkup.conversations, checkup.exchanges, checkup.entries), (2, 12, 38));
    assert_eq!((checkup.pairs, checkup.open, checkup.orphans, checkup.repeated), (12, 0, 1, 0));
    let stats = run(store.stats()).unwrap();
    assert_eq!((stats.conversations, stats.entries, stats.exchanges), (2, 38, 12));
}

/// What somebody does behind the store's back, and what the check says about it.
const DAMAGE: [(&str, &str); 16] = [
    ("UPDATE blobs SET bytes = zeroblob(length(bytes)) WHERE n = 3", "record"),
    ("DELETE FROM blobs WHERE n = (SELECT record FROM nodes WHERE n = 5)", "its record is not there"),
    ("UPDATE nodes SET parent = 1 WHERE n = 9", "its id does not follow"),
    ("UPDATE nodes SET chain = zeroblob(16) WHERE n = 4", "its chain is not that"),
    ("UPDATE nodes SET kind = 2 WHERE n = 2", "filed under another kind"),
    ("UPDATE nodes SET tool = 'rm' WHERE n = 2", "filed under another tool"),
    ("UPDATE nodes SET tool = NULL WHERE n = 3", "filed under another tool"),
    ("UPDATE nodes SET call_id = 'other' WHERE n = 2", "filed under another call"),
    ("UPDATE nodes SET call_id = NULL WHERE n = 3", "filed under another call"),
    ("UPDATE nodes SET block = 1 WHERE n = 1", "no place in a message"),
    ("UPDATE nodes SET envelope = 1 WHERE n = 1", "filed under another envelope"),
    ("DELETE FROM bodies WHERE n = 4", "request"),
    ("UPDATE bodies SET head = head + 1 WHERE n = 7", "request"),
    ("UPDATE events SET bytes = x'00' WHERE n = 2", "events of attempt 0 of exchange x1"),
    ("UPDATE answers SET bytes = zeroblob(length(bytes)) WHERE exchange = 3", "is not what its digest says"),
    ("DELETE FROM exchanges WHERE n = 6", "its exchange is not there"),
];

#[test]
fn whatever_is_damaged_is_found_and_named() {
    let folder = Folder::new("damaged");
    let sound: Store = Arc::new(open(&folder.database()));
    fill(&sound);
    drop(sound);
    for (number, (damage, said)) in DAMAGE.into_iter().enumerate() {
        let file = folder.database().with_file_name(format!("damaged-{number}.db"));
        std::fs::copy(folder.database(), &file).unwrap();
        let behind = Connection::open(&file).unwrap();
        behind.execute_batch(&format!("PRAGMA foreign_keys = off; {damage}")).unwrap();
        drop(behind);
        let checkup = checked(&open(&file));
        let found: Vec<String> =
            checkup.findings.iter().map(|found| format!("{}: {}", found.of, found.what)).collect();
        assert!(found.iter().any(|found| found.contains(said)), "{damage}: {found:?}");
        assert!(checkup.wrong >= 1);
    }
}

#[test]
fn damage_in_postgresql_is_found_too() {
    let Some(schema) = Schema::new("damaged") else { return };
    let store = Arc::new(schema.open());
    fill(&(Arc::clone(&store) as Store));
    schema.execute("UPDATE nodes SET chain = id WHERE n = (SELECT min(n) + 3 FROM nodes)");
    schema.execute("UPDATE bodies SET tail = tail + 1 WHERE depth = 5");
    schema.execute("UPDATE nodes SET tool = 'rm' WHERE n = (SELECT min(n) + 1 FROM nodes)");
    schema.execute("UPDATE nodes SET call_id = 'other' WHERE n = (SELECT min(n) + 2 FROM nodes)");
    let found: Vec<String> = checked(&*store).findings.iter().map(|found| found.what.clone()).collect();
    assert!(found.iter().any(|what| what.contains("its chain is not that")), "{found:?}");
    assert!(found.iter().any(|what| what.contains("based on cannot be read")), "{found:?}");
    assert!(found.iter().any(|what| what.contains("filed under another tool")), "{found:?}");
    assert!(found.iter().any(|what| what.contains("filed under another call")), "{found:?}");
}

#[test]
fn a_backup_is_made_while_others_write_and_is_equal() {
    let folder = Folder::new("backup");
    let store = Arc::new(open(&folder.database()));
    let shared = Arc::clone(&store) as Store;
    let tip = fill(&shared);
    let file = folder.database().with_file_name("backup.db");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..50).for_each(|n| drop(run(append(&shared, "c", None, n, &[user(&n.to_string())]))));
        });
        run(store.back_up(&file, silent())).unwrap();
    });
    let copy: Store = Arc::new(open(&file));
    assert_alike(&shared, &copy, &tip);
    assert_eq!(checked(&open(&file)).findings, []);
    let again = run(store.back_up(&file, silent())).unwrap_err();
    assert!(again.to_string().contains("is there already"), "{again}");
}

#[test]
fn a_history_goes_to_postgresql_and_back_and_is_equal() {
    let folder = Folder::new("migrate");
    let Some(schema) = Schema::new("migrate") else { return };
    let (first, middle) = (Arc::new(open(&folder.database())), Arc::new(schema.open()));
    let tip = fill(&(Arc::clone(&first) as Store));
    let there: Inventory = run(copy(&*first, &*middle, silent())).unwrap();
    assert_alike(&(Arc::clone(&first) as Store), &(Arc::clone(&middle) as Store), &tip);
    assert_eq!(checked(&*middle).findings, []);

    let back = Arc::new(open(&folder.database().with_file_name("back.db")));
    let again = run(copy(&*middle, &*back, silent())).unwrap();
    assert_eq!(there, again);
    assert_eq!(there.digest(), again.digest());
    assert_alike(&(Arc::clone(&first) as Store), &(Arc::clone(&back) as Store), &tip);

    let refused = run(copy(&*first, &*middle, silent())).unwrap_err();
    assert!(matches!(refused, StoreError::Unsupported(_)), "{refused}");
    // What is copied goes on like any other history.
    let store = middle as Store;
    run(append(&store, "a", Some(&tip), 30, &[user("and on")]));
}

#[test]
fn a_backup_of_postgresql_is_a_file_that_can_be_brought_back() {
    let folder = Folder::new("backup-postgres");
    let Some(schema) = Schema::new("backup-postgres") else { return };
    let store = Arc::new(schema.open());
    let tip = fill(&(Arc::clone(&store) as Store));
    let file = folder.database();
    run(store.back_up(&file, silent())).unwrap();
    assert_alike(&(Arc::clone(&store) as Store), &(Arc::new(open(&file)) as Store), &tip);
}

#[test]
fn a_copy_of_what_is_damaged_keeps_nothing() {
    let folder = Folder::new("broken-off");
    let store: Store = Arc::new(open(&folder.database()));
    fill(&store);
    drop(store);
    let damage = "PRAGMA ignore_check_constraints = on; UPDATE nodes SET id = x'00' WHERE n = 20";
    Connection::open(folder.database()).unwrap().execute_batch(damage).unwrap();
    let (from, to) = (open(&folder.database()), open(&folder.database().with_file_name("to.db")));
    assert!(run(copy(&from, &to, silent())).is_err());
    assert_eq!(run(to.stats()).unwrap().conversations, 0, "it can be begun again");
}

#[test]
fn what_was_taken_out_is_not_to_be_found_in_the_file() {
    let folder = Folder::new("erased");
    let store = Arc::new(open(&folder.database()));
    let shared = Arc::clone(&store) as Store;
    let secret = "xyzzyplughsecret";
    run(async {
        let growth = extension("a", None, 1, &[user(&format!("the word is {secret}"))]);
        let of = || ExchangeId::new("x1");
        let writes = vec![
            beginning("a", 1),
            Write::Exchange(exchange("x1", "a", 1).into()),
            Write::Entries(growth.of_exchange(of())),
            Write::Document {
                kind: DocumentKind::Sent,
                exchange: of(),
                attempt: 0,
                body: Bytes::from(format!("{{\"m\":\"{secret}\"}}")),
            },
            Write::Answer { exchange: of(), json: format!("{{\"a\":\"{secret}\"}}").into() },
        ];
        shared.append(Batch::durable(writes)).await.unwrap();
        append(&shared, "b", None, 1, &[user("something else")]).await;
        let found = shared.search(Search { words: secret.into(), ..Search::default() }).await.unwrap();
        assert_eq!(found.items.len(), 1);
    });
    assert!(holds(&folder.database(), secret), "the test can fail");
    run(shared.prune(Prune { which: Outworn::These(vec![conversation("a")]), dry_run: false })).unwrap();
    assert!(!holds(&folder.database(), secret));
    assert_eq!(checked(&*store).findings, []);
}

/// Says whether a text stands in the database or beside it.
fn holds(database: &Path, text: &str) -> bool {
    let files = ["history.db", "history.db-wal"].map(|name| database.with_file_name(name));
    let has = |file: &Path| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    files.iter().any(|file| has(file))
}

#[test]
fn what_is_said_after_something_was_taken_out_is_found() {
    let folder = Folder::new("pruned-words");
    let store = Arc::new(open(&folder.database()));
    let shared = Arc::clone(&store) as Store;
    let found = |words: &str| {
        run(shared.search(Search { words: words.into(), ..Search::default() })).unwrap().items.len()
    };
    run(append(&shared, "a", None, 1, &[user("first"), user("second"), user("third")]));
    assert_eq!(found("third"), 1);
    run(shared.prune(Prune { which: Outworn::These(vec![conversation("a")]), dry_run: false })).unwrap();
    // SQLite gives out the numbers of rows anew.
    run(append(&shared, "b", None, 2, &[user("fourth")]));
    assert_eq!((found("fourth"), found("third")), (1, 0));
    assert_eq!(checked(&*store).findings, []);
}

#[test]
fn a_conversation_with_damage_can_be_deleted() {
    let folder = Folder::new("pruned-damage");
    let store = Arc::new(open(&folder.database()));
    fill(&(Arc::clone(&store) as Store));
    let found = |words: &str| {
        run(store.search(Search { words: words.into(), ..Search::default() })).unwrap().items.len()
    };
    assert_eq!((found("content"), found("another")), (12, 1));
    let behind = Connection::open(folder.database()).unwrap();
    behind.execute_batch("UPDATE blobs SET bytes = zeroblob(length(bytes)) WHERE n = 3").unwrap();
    let wrong = checked(&*store).findings;
    assert!(wrong.iter().all(|found| found.conversation.as_deref() == Some("a")), "{wrong:?}");
    run(append(&(Arc::clone(&store) as Store), "b", None, 30, &[user("and more")]));
    assert_eq!(found("more"), 1, "the rest is found as long as it is there");
    run(store.prune(Prune { which: Outworn::These(vec![conversation("a")]), dry_run: false })).unwrap();
    assert_eq!(checked(&*store).findings, []);
    assert_eq!((found("content"), found("another")), (0, 1));
}

#[test]
fn an_index_that_is_damaged_is_built_anew() {
    let folder = Folder::new("reindex");
    for damage in [
        "UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10",
        "UPDATE words_config SET v = 0 WHERE k = 'version'",
        "UPDATE words_data SET block = x'00' WHERE id = 10",
        "UPDATE indexed SET n = n + 1000",
        "UPDATE indexed SET n = 1",
    ] {
        let _ = std::fs::remove_file(folder.database());
        let store = Arc::new(open(&folder.database()));
        let tip = fill(&(Arc::clone(&store) as Store));
        let search = || Search { words: "content".into(), ..Search::default() };
        let before = run(store.search(search())).unwrap().items;
        Connection::open(folder.database()).unwrap().execute_batch(damage).unwrap();
        drop(store);
        let store = Arc::new(open(&folder.database()));
        let found = checked(&*store).findings;
        assert!(found.iter().any(|found| found.remedy == Remedy::Reindex), "{damage}: {found:?}");
        run(store.reindex()).unwrap();
        assert_eq!(checked(&*store).findings, [], "{damage}");
        assert_eq!(run(store.search(search())).unwrap().items, before);
        assert_eq!(run(store.entries(Entries::Branch(tip))).unwrap().len(), 36);
    }
}

#[test]
fn an_index_in_postgresql_is_too() {
    let Some(schema) = Schema::new("reindex") else { return };
    let store = Arc::new(schema.open());
    let shared = Arc::clone(&store) as Store;
    let entries: Vec<_> = (0..600).map(|n| user(&format!("word{n}"))).collect();
    run(append(&shared, "a", None, 1, &entries));
    let found = |words: &str| {
        run(shared.search(Search { words: words.into(), ..Search::default() })).unwrap().items.len()
    };
    assert_eq!(found("word7"), 1);
    run(store.reindex()).unwrap();
    let reaches = || schema.ask("SELECT n FROM indexed")[0].clone();
    assert_eq!(reaches(), "512");
    for damage in [
        "UPDATE words SET words = replace(words, 'word7', 'word8')",
        "UPDATE words SET last = last - 1",
        "UPDATE indexed SET n = n + 64",
        "UPDATE indexed SET n = n + 4096",
        "DELETE FROM words",
    ] {
        schema.execute(damage);
        let wrong = checked(&*store).findings;
        assert!(wrong.iter().any(|found| found.remedy == Remedy::Reindex), "{damage}: {wrong:?}");
        run(store.reindex()).unwrap();
        assert_eq!(checked(&*store).findings, [], "{damage}");
        assert_eq!((found("word7"), reaches()), (1, "512".to_owned()));
    }
}

/// A history that the release before checksums wrote, with `serve`: three requests, a response.
const SCHEMA_4: &[u8] = include_bytes!("../histories/sqlite-schema-4.db.zst");

#[test]
fn a_history_of_the_last_release_is_sealed_when_it_is_brought_forward() {
    let folder = Folder::new("schema-4");
    std::fs::write(folder.database(), zstd::decode_all(SCHEMA_4).unwrap()).unwrap();
    let as_it_is = Sqlite::open_as_it_is(&folder.database(), SqliteOptions::default());
    assert!(matches!(as_it_is, Err(StoreError::Older { found: 4, .. })), "{as_it_is:?}");
    let store = Arc::new(open(&folder.database()));
    let checkup = checked(&*store);
    assert_eq!(checkup.findings, []);
    assert_eq!((checkup.conversations, checkup.exchanges, checkup.entries), (2, 4, 17));
    let behind = Connection::open(folder.database()).unwrap();
    behind.execute_batch("UPDATE attempts SET started = started + 1 WHERE exchange = 2").unwrap();
    let found = checked(&*store).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].table, found[0].conversation.as_deref()), ("attempts", Some("conv_fixture")));
    assert_eq!(found[0].remedy, Remedy::RestoreOrDelete);
}

/// A history that the release before steps of compaction wrote: a session that was shortened twice, with the words of
/// a model for what was left out; its decisions are in the reports of its attempts.
const SCHEMA_5: &[u8] = include_bytes!("../histories/sqlite-schema-5.db.zst");

/// Asserts that the steps of that session were taken from its reports.
fn assert_taken_from_reports(store: &dyn Upkeep) {
    assert_eq!(checked(store).findings, []);
    let heading = run(store.conversations(Conversations::All(Paging::default()))).unwrap().items.remove(0);
    let steps = run(store.compaction(heading.id.clone())).unwrap();
    let follows: Vec<_> = steps.iter().map(|step| step.follows.clone()).collect();
    let [first, words, second, later_words] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(
        follows,
        [None, Some(first.id.clone()), Some(first.id.clone()), Some(second.id.clone())],
        "what is new follows what was decided before"
    );
    assert!(words.summary.is_some() && later_words.summary.is_some() && second.summary.is_none());
    let mut decisions = Decisions::from_text(&first.decisions).unwrap();
    let before = decisions.taken().len();
    decisions.add(Decisions::from_text(&second.decisions).unwrap());
    assert!(decisions.taken().len() > before);
    let exchanges = run(store.exchanges(Exchanges::Of(heading.id, Paging::default()))).unwrap().items;
    let shows: Vec<_> =
        exchanges.iter().rev().map(|exchange| exchange.attempts[0].compaction.clone()).collect();
    assert_eq!(shows, [&first.id, &first.id, &second.id, &second.id].map(|id| Some(id.clone())));
}

#[test]
fn what_reports_decided_is_in_rows_when_a_history_is_brought_forward() {
    let folder = Folder::new("schema-5");
    std::fs::write(folder.database(), zstd::decode_all(SCHEMA_5).unwrap()).unwrap();
    let store = Arc::new(open(&folder.database()));
    assert_taken_from_reports(&*store);
    let Some(schema) = Schema::new("schema-4-steps") else { return };
    let copied = Arc::new(schema.open());
    run(copy(&*store, &*copied, silent())).unwrap();
    drop(copied);
    // The copy is made to be what the release before had, with the reports that it had in its rows.
    schema.remove_steps();
    let beside = folder.database().with_extension("older");
    std::fs::write(&beside, zstd::decode_all(SCHEMA_5).unwrap()).unwrap();
    let older = Connection::open(beside).unwrap();
    let mut reports = older
        .prepare(
            "SELECT id, number, report FROM attempts JOIN exchanges ON n = exchange WHERE report IS NOT NULL",
        )
        .unwrap();
    let reports = reports.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    for report in reports {
        let (exchange, number, report): (String, u32, String) = report.unwrap();
        schema.execute(&format!(
            "UPDATE attempts SET report = '{}' FROM exchanges
             WHERE exchanges.n = attempts.exchange AND exchanges.id = '{exchange}' AND number = {number}",
            report.replace('\'', "''")
        ));
    }
    assert_taken_from_reports(&schema.open());
}

#[test]
fn several_that_bring_a_history_forward_at_once_do_so_once() {
    let folder = Folder::new("schema-4-at-once");
    std::fs::write(folder.database(), zstd::decode_all(SCHEMA_4).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let open = || drop(Sqlite::open(&folder.database(), SqliteOptions::default()).unwrap());
        (0..4).for_each(|_| drop(scope.spawn(open)));
    });
    assert_eq!(checked(&open(&folder.database())).findings, []);
    let Some(schema) = Schema::new("schema-3-at-once") else { return };
    fill(&(Arc::new(schema.open()) as Store));
    schema.remove_checksums();
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| drop(schema.open())))));
    assert_eq!(checked(&schema.open()).findings, []);
}

#[test]
fn a_history_in_postgresql_is_sealed_when_it_is_brought_forward() {
    let Some(schema) = Schema::new("schema-3") else { return };
    let store = schema.open();
    let tip = fill(&(Arc::new(store) as Store));
    schema.remove_checksums();
    let store = Arc::new(schema.open());
    assert_eq!(checked(&*store).findings, []);
    assert_eq!(run(store.entries(Entries::Branch(tip))).unwrap().len(), 36);
    schema.execute("UPDATE exchanges SET started = started + 1 WHERE id = 'x3'");
    let found = checked(&*store).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].table, &*found[0].of), ("exchanges", "exchange x3"));
}

#[test]
fn another_process_that_takes_out_leaves_nothing_dangling() {
    let folder = Folder::new("pruned-elsewhere");
    let options = SqliteOptions::default();
    let serving = Arc::new(Sqlite::open(&folder.database(), options).unwrap());
    let elsewhere = Sqlite::open(&folder.database(), options).unwrap();
    let store = Arc::clone(&serving) as Store;
    rests_on_nothing_that_is_gone(&store, &elsewhere);
    assert_eq!(checked(&*serving).findings, []);
}

#[test]
fn nor_does_another_replica() {
    let Some(schema) = Schema::new("pruned-elsewhere") else { return };
    let (serving, elsewhere) = (Arc::new(schema.open()), schema.open());
    rests_on_nothing_that_is_gone(&(Arc::clone(&serving) as Store), &elsewhere);
    assert_eq!(checked(&*serving).findings, []);
}

/// A request that would be kept as what differs from one that another has taken out.
fn rests_on_nothing_that_is_gone(serving: &Store, elsewhere: &dyn Upkeep) {
    let send = |n: i64| {
        let id = format!("x{n}");
        let body = format!("{{\"messages\":[\"{}\",{n}]}}", "word ".repeat(2_000));
        run(serving.append(Batch::durable(vec![
            beginning("a", n),
            Write::Exchange(exchange(&id, "a", n).into()),
            Write::Entries(extension("a", None, n, &[user(&format!("{n} {}", "word ".repeat(100)))])),
            Write::Document {
                kind: DocumentKind::Sent,
                exchange: ExchangeId::new(id.as_str()),
                attempt: 0,
                body: Bytes::from(body),
            },
        ])))
        .unwrap();
    };
    send(1);
    send(2);
    run(elsewhere.prune(Prune { which: Outworn::These(vec![conversation("a")]), dry_run: false })).unwrap();
    send(3);
    let sent = run(serving.recording(ExchangeId::new("x3"), Which::Sent)).unwrap();
    assert!(sent.sent[0].1.ends_with(b",3]}"));
}

#[test]
fn a_database_of_the_first_schema_is_brought_forward() {
    let folder = Folder::new("schema-1");
    let store = Arc::new(open(&folder.database()));
    let tip = fill(&(Arc::clone(&store) as Store));
    let before = run(store.entries(Entries::Branch(tip.clone()))).unwrap();
    drop(store);
    let older = Connection::open(folder.database()).unwrap();
    remove_checksums(&older);
    older
        .execute_batch(
            "ALTER TABLE nodes DROP COLUMN envelope;
             DROP TABLE words;
             CREATE VIRTUAL TABLE words USING fts5 (text, content = '', columnsize = 0, detail = none);
             PRAGMA user_version = 1",
        )
        .unwrap();
    drop(older);
    let store = open(&folder.database());
    assert_eq!(run(store.entries(Entries::Branch(tip))).unwrap(), before);
    let search = Search { words: "\"question 11\"".into(), ..Search::default() };
    assert_eq!(run(store.search(search)).unwrap().items.len(), 1);
    assert_eq!(checked(&store).findings, []);
}
