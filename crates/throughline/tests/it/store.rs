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
    assert_eq!(served.run(&["store", "backup", "copy.db"]).code, 4, "nothing is written over");
    let moved: Value =
        serde_json::from_str(&served.shown(&["store", "migrate", "--to", "sqlite:moved.db", "--json"]))
            .unwrap();
    assert_eq!((&moved["equal"], &moved["rows"]["exchanges"]), (&true.into(), &2.into()), "{moved}");
    let again = served.run(&["store", "migrate", "--to", "sqlite:moved.db"]);
    assert_eq!(again.code, 4, "{}", again.stderr);
    assert!(again.stderr.contains("there is a history already"), "{}", again.stderr);

    let dry = served.shown(&["store", "prune", "--older-than", "0m", "--dry-run"]);
    assert_eq!(dry.trim(), id);
    assert_eq!(served.shown(&["rm", &id]).trim(), id);
    assert_eq!(served.run(&["rm", &id]).code, 1);
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
