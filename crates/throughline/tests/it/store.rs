//! Looking after the history, while a gateway serves: check, count, copy, move and take out.

use crate::record::Served;
use rusqlite::Connection;
use serde_json::Value;

#[test]
fn a_history_is_checked_counted_and_copied_while_it_is_served() {
    let served = Served::start("upkeep");
    let (_, id) = served.talk();
    let checked = served.shown(&["store", "check"]);
    assert!(checked.contains("1 pair, 0 open calls, 0 results without a call"), "{checked}");
    let stats: Value = serde_json::from_str(&served.shown(&["store", "stats", "--json"])).unwrap();
    assert_eq!((&stats["conversations"], &stats["exchanges"]), (&1.into(), &2.into()), "{stats}");
    assert!(served.shown(&["store", "stats"]).contains("requests"));

    let copied = served.shown(&["store", "backup", "copy.db"]);
    assert!(copied.starts_with("copy.db: "), "{copied}");
    for (target, told) in [("copy.db", "never written over"), ("missing/x.db", "make it first")] {
        let refused = served.run(&["store", "backup", target]);
        assert!(refused.code == 2 && refused.stderr.contains(told), "{target}: {}", refused.stderr);
    }
    let moved: Value =
        serde_json::from_str(&served.shown(&["store", "migrate", "--to", "sqlite:moved.db", "--json"]))
            .unwrap();
    assert_eq!((&moved["equal"], &moved["rows"]["exchanges"]), (&true.into(), &2.into()), "{moved}");
    let again = served.run(&["store", "migrate", "--to", "sqlite:moved.db"]);
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert!(again.stderr.contains("there is a history already"), "{}", again.stderr);

    let dry = served.shown(&["store", "prune", "--older-than", "0m", "--dry-run"]);
    let (head, row) = dry.trim().split_once('\n').unwrap();
    assert!(head.starts_with("ID") && row.starts_with(&id) && row.contains("marmot"), "{dry}");
    assert_eq!(served.shown(&["rm", &id]).trim(), id);
    assert_eq!(served.run(&["rm", &id]).code, 1);
    assert_eq!(served.shown(&["rm", "--undo"]).trim(), id, "for a day it can be had back");
    assert_eq!(served.lines(&["show", &id, "--view", "pairs", "--json"]).len(), 1);
    assert_eq!(served.lines(&["show", &id, "--view", "sent", "--json"]).len(), 2, "with all that was sent");
    assert_eq!(served.run(&["rm", "--undo"]).code, 1, "once is enough");
    assert_eq!(served.shown(&["rm", &id, "--for-good"]).trim(), id);
    assert_eq!(served.run(&["rm", "--undo"]).code, 1, "no copy was kept");
    let (_, anew) = served.talk();
    assert_ne!(anew, id, "a client that goes on with what was deleted begins anew");
    assert!(served.shown(&["store", "check"]).contains("everything is what its digest says"));
}

#[test]
fn damage_is_named_and_ends_with_one() {
    let served = Served::start("damage");
    served.talk();
    served.shown(&["store", "backup", "data/damaged.db"]);
    let damaged = Connection::open(served.folder.join("data/damaged.db")).unwrap();
    damaged.execute_batch("UPDATE nodes SET chain = zeroblob(16) WHERE n = 2").unwrap();
    drop(damaged);
    let config = "[[backends]]\nname = \"one\"\ndialect = \"chat\"\nbase_url = \"sim:\"\napi_key = \"none\"\n\
                  [store]\nurl = \"sqlite:damaged.db\"\n";
    std::fs::write(served.folder.join("damaged.toml"), config).unwrap();
    let run = served.run(&["store", "check", "--config", "damaged.toml"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stdout.contains("its chain is not that of what was said up to it"), "{}", run.stdout);
    let json = served.run(&["store", "check", "--json", "--config", "damaged.toml"]);
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&found["sound"], &found["wrong"]), (&false.into(), &1.into()));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let served = Served::start("refused");
    for args in [
        &["store", "prune"][..],
        &["store", "prune", "--older-than", "soon"],
        &["store", "prune", "--max-size", "much"],
        &["store", "migrate", "--to", "mysql://somewhere"],
        &["store", "migrate", "--to", "env:NOT_SET"],
    ] {
        assert_eq!(served.run(args).code, 2, "{args:?}");
    }
    assert_eq!(served.run(&["store", "prune", "--conversation", "nobody"]).code, 1);
}

#[test]
fn a_history_of_an_older_version_is_brought_forward_only_by_whoever_may() {
    let served = Served::start("older");
    served.talk();
    served.shown(&["store", "backup", "data/older.db"]);
    let format = throughline_store::Sqlite::FORMAT;
    let file = Connection::open(served.folder.join("data/older.db")).unwrap();
    // What the latest schema added.
    file.execute_batch(
        "CREATE TABLE sent (
            exchange INTEGER NOT NULL REFERENCES exchanges (n),
            attempt  INTEGER NOT NULL,
            body     INTEGER NOT NULL REFERENCES bodies (n),
            checksum INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (exchange, attempt)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO sent (exchange, attempt, body) SELECT exchange, attempt, body FROM documents WHERE kind = 0;
        DROP TABLE documents;
        ALTER TABLE attempts DROP COLUMN tokens_before; ALTER TABLE attempts DROP COLUMN tokens_after;
        ALTER TABLE attempts DROP COLUMN tool_tokens; ALTER TABLE attempts DROP COLUMN continues;
        ALTER TABLE attempts DROP COLUMN recall; ALTER TABLE attempts ADD COLUMN report TEXT;",
    )
    .unwrap();
    file.pragma_update(None, "user_version", format - 1).unwrap();
    let version = || file.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).unwrap();
    let config = "[[backends]]\nname = \"one\"\ndialect = \"chat\"\nbase_url = \"sim:\"\napi_key = \"none\"\n\
                  [store]\nurl = \"sqlite:older.db\"\n";
    std::fs::write(served.folder.join("older.toml"), config).unwrap();
    let run = |args: &[&str]| served.run(&[args, &["--config", "older.toml"]].concat());
    for args in [
        &["ls"][..],
        &["search", "a"],
        &["show", "a"],
        &["replay", "a"],
        &["backends"],
        &["use", "one"],
        &["rm", "a"],
        &["store", "stats"],
        &["store", "check"],
    ] {
        let run = run(args);
        assert_eq!(run.code, 4, "{args:?}: {}{}", run.stdout, run.stderr);
        assert!(
            run.stderr.contains("`throughline store upgrade` brings it forward"),
            "{args:?}: {}",
            run.stderr
        );
    }
    assert_eq!(run(&["doctor"]).code, 1);
    assert_eq!(version(), format - 1, "none of them changed it");
    let upgraded = run(&["store", "upgrade"]);
    let told = format!("the history was brought from schema {} to {format}\n", format - 1);
    assert_eq!((upgraded.stdout, upgraded.code), (told, 0), "{}", upgraded.stderr);
    assert_eq!(version(), format);
    assert_eq!(run(&["store", "check"]).code, 0);
    let again: Value = serde_json::from_str(&run(&["store", "upgrade", "--json"]).stdout).unwrap();
    assert_eq!((&again["from"], &again["to"]), (&format.into(), &format.into()));
}
