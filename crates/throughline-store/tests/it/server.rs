//! What holds for PostgreSQL alone: a server that is cut off, locked, newer or strange, and replicas that share one.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use throughline_core::EntryId;
use throughline_store::{
    Batch, Conversations, Entries, ExchangeId, History, Moment, Paging, Postgres, PostgresOptions,
    ProviderEvent, Search, StoreError, Which, Write,
};

use crate::fixtures::{Schema, Store, append, beginning, conversation, exchange, extension, run, user};
use crate::proxy::Proxy;

fn try_append(store: &Store, text: &str) -> Result<EntryId, StoreError> {
    let extension = extension("a", None, 1, &[user(text)]);
    let tip = extension.tip().unwrap();
    run(store.append(Batch::durable(vec![beginning("a", 1), Write::Entries(extension)]))).map(|_| tip)
}

fn length(store: &Store, tip: &EntryId) -> usize {
    run(store.entries(Entries::Branch(tip.clone()))).unwrap().len()
}

/// Gives up soon.
fn impatient() -> PostgresOptions {
    PostgresOptions { limit: Duration::from_secs(4), patience: Duration::ZERO, readers: 2 }
}

fn through(proxy: &Proxy, schema: &Schema) -> String {
    let url = schema.url();
    let (before, after) = url.split_once("@").unwrap();
    let path = after.split_once('/').unwrap().1;
    format!("{before}@127.0.0.1:{}/{path}&sslmode=disable", proxy.port)
}

fn proxy(schema: &Schema) -> Proxy {
    let url = schema.url();
    Proxy::new(url.split(['@', '/']).nth(3).unwrap())
}

#[test]
fn connections_that_were_cut_are_opened_again_and_nobody_notices() {
    let Some(schema) = Schema::new("cut") else { return };
    let store: Store = Arc::new(schema.open());
    let first = try_append(&store, "before").unwrap();
    assert_eq!(length(&store, &first), 1);
    let name = schema.name();
    schema.execute(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
    ));
    assert_eq!(length(&store, &first), 1);
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1);
}

#[test]
fn an_older_schema_is_left_alone_by_whoever_opens_it_as_it_is() {
    let Some(schema) = Schema::new("as-it-is") else { return };
    let as_it_is = || Postgres::open_as_it_is(&schema.url(), impatient());
    assert!(as_it_is().unwrap().is_none(), "no table is made");
    let store: Store = Arc::new(schema.open());
    try_append(&store, "before").unwrap();
    assert_eq!(run(as_it_is().unwrap().unwrap().ready()), Ok(()));
    schema.execute("UPDATE format SET version = version - 1");
    let older = StoreError::Older { found: Postgres::FORMAT - 1, known: Postgres::FORMAT };
    assert_eq!(as_it_is().unwrap_err(), older);
    schema.execute("UPDATE format SET version = 99");
    let newer = StoreError::Newer { found: 99, known: Postgres::FORMAT };
    assert_eq!(as_it_is().unwrap_err(), newer);
    assert_eq!(run(store.ready()), Err(newer));
    schema.execute("DROP TABLE format");
    assert!(matches!(run(store.ready()), Err(StoreError::Damaged(_))));
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_out_about_and_not_repeated() {
    let Some(schema) = Schema::new("swallowed") else { return };
    let proxy = proxy(&schema);
    let store: Store = Arc::new(Postgres::open(&through(&proxy, &schema), impatient()).unwrap());
    run(store.append(Batch::durable(vec![beginning("a", 1), Write::Exchange(exchange("x", "a", 1).into())])))
        .unwrap();
    let event = ProviderEvent { at: Moment(1), name: None, data: "once".into() };
    let events = Write::Events { exchange: ExchangeId::new("x"), attempt: 0, events: vec![event] };
    proxy.swallows_commit.store(true, SeqCst);
    run(store.append(Batch::durable(vec![events]))).unwrap();
    assert!(!proxy.swallows_commit.load(SeqCst), "the commit was swallowed");
    let recording = run(store.recording(ExchangeId::new("x"), Which::Events)).unwrap();
    assert_eq!(recording.events.len(), 1);
}

#[test]
fn a_commit_that_is_lost_on_its_way_is_made_again_and_once() {
    let Some(schema) = Schema::new("lost") else { return };
    let proxy = proxy(&schema);
    let store: Store = Arc::new(Postgres::open(&through(&proxy, &schema), impatient()).unwrap());
    run(store.append(Batch::durable(vec![beginning("a", 1), Write::Exchange(exchange("x", "a", 1).into())])))
        .unwrap();
    let event = ProviderEvent { at: Moment(1), name: None, data: "once".into() };
    let events = Write::Events { exchange: ExchangeId::new("x"), attempt: 0, events: vec![event] };
    proxy.loses_commit.store(true, SeqCst);
    run(store.append(Batch::durable(vec![events]))).unwrap();
    assert!(!proxy.loses_commit.load(SeqCst), "the commit was lost");
    let recording = run(store.recording(ExchangeId::new("x"), Which::Events)).unwrap();
    assert_eq!(recording.events.len(), 1);
}

#[test]
fn a_server_that_is_away_is_an_error_and_service_is_back_when_it_is() {
    let Some(schema) = Schema::new("away") else { return };
    let proxy = proxy(&schema);
    let store: Store = Arc::new(Postgres::open(&through(&proxy, &schema), impatient()).unwrap());
    let first = try_append(&store, "before").unwrap();
    proxy.is_cut.store(true, SeqCst);
    let error = try_append(&store, "meanwhile").unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(_)) && error.is_passing(), "{error}");
    let error = run(store.entries(Entries::Branch(first.clone()))).unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(_)), "{error}");
    proxy.is_cut.store(false, SeqCst);
    let tip = try_append(&store, "after").unwrap();
    assert_eq!((length(&store, &tip), length(&store, &first)), (1, 1));
}

#[test]
fn tables_that_are_locked_are_busy_until_they_are_let_go() {
    let Some(schema) = Schema::new("locked") else { return };
    let store: Store = Arc::new(Postgres::open(&schema.url(), impatient()).unwrap());
    try_append(&store, "before").unwrap();
    let held = schema.hold("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE");
    let error = try_append(&store, "meanwhile").unwrap_err();
    held.release();
    assert!(error.is_passing(), "{error}");
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1);
}

#[test]
fn a_database_that_cannot_be_written_takes_no_part_of_a_batch_and_resumes() {
    let Some(schema) = Schema::new("unwritable") else { return };
    let store: Store = Arc::new(schema.open());
    let first = try_append(&store, "before").unwrap();
    schema.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
         CREATE TRIGGER refuse BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let error = try_append(&store, "meanwhile").unwrap_err();
    assert_eq!(error, StoreError::Unavailable("no".to_owned()));
    let page = run(store.conversations(Conversations::One(conversation("a")))).unwrap();
    assert_eq!(page.items[0].entries, 1);
    schema.execute("DROP TRIGGER refuse ON nodes");
    let tip = try_append(&store, "after").unwrap();
    assert_eq!((length(&store, &tip), length(&store, &first)), (1, 1));
}

#[test]
fn a_newer_schema_is_refused_at_the_door_and_while_running() {
    let Some(schema) = Schema::new("newer") else { return };
    let store: Store = Arc::new(schema.open());
    try_append(&store, "before").unwrap();
    schema.execute("UPDATE format SET version = 9");
    let newer = StoreError::Newer { found: 9, known: Postgres::FORMAT };
    assert_eq!(try_append(&store, "meanwhile").unwrap_err(), newer);
    assert_eq!(Postgres::open(&schema.url(), impatient()).unwrap_err(), newer);
}

#[test]
fn a_server_that_cannot_be_reached_is_named_and_its_password_is_not() {
    let Some(schema) = Schema::new("unreachable") else { return };
    let url = schema.url();
    let password = url.split(['@', ':']).nth(2).unwrap();
    for (url, why) in [
        (url.replace(password, "wrong-password"), "password authentication failed"),
        (url.replace("/postgres?", "/no_such_database?"), "no_such_database"),
        ("postgres://user:wrong-password@127.0.0.1:9/d".to_owned(), "127.0.0.1:9/d"),
    ] {
        let error = Postgres::open(&url, impatient()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("wrong-password") && !error.contains(password), "{error}");
    }
}

#[test]
fn tls_is_used_as_far_as_the_url_asks_for_it() {
    let Some(schema) = Schema::new("tls") else { return };
    let authority = std::env::var("THROUGHLINE_TEST_POSTGRES_CA").unwrap();
    let is_encrypted = || {
        let name = schema.name();
        schema.ask(&format!(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{name}'
             ORDER BY backend_start"
        ))
    };
    for (query, encrypted) in [
        ("&sslmode=disable".to_owned(), "f"),
        ("&sslmode=require".to_owned(), "t"),
        (format!("&sslmode=verify-ca&sslrootcert={authority}"), "t"),
        (format!("&sslmode=verify-full&sslrootcert={authority}"), "t"),
    ] {
        let store = Postgres::open(&format!("{}{query}", schema.url()), impatient()).unwrap();
        assert_eq!(is_encrypted(), [encrypted], "{query}");
        drop(store);
    }
    // The authorities of this system do not know the server, and the certificate is not for that name.
    let elsewhere = schema.url().replace("127.0.0.1", "localhost");
    for url in [
        format!("{}&sslmode=verify-full", schema.url()),
        format!("{elsewhere}&sslmode=verify-full&sslrootcert={authority}"),
    ] {
        let error = Postgres::open(&url, impatient()).unwrap_err().to_string();
        assert!(error.contains("certificate"), "{error}");
    }
}

#[test]
fn a_server_on_another_machine_is_verified_unless_the_url_says_otherwise() {
    let Some(schema) = Schema::new("tls-default") else { return };
    let authority = std::env::var("THROUGHLINE_TEST_POSTGRES_CA").unwrap();
    // A name that is not this machine's, and its address: the certificate is good for that name.
    let url = schema.url().replace("@127.0.0.1:", "@history.example:") + "&hostaddr=127.0.0.1";
    let error = Postgres::open(&url, impatient()).unwrap_err();
    assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    assert!(error.to_string().contains("sslrootcert=FILE"), "it says what to do: {error}");
    let verified = Postgres::open(&format!("{url}&sslrootcert={authority}"), impatient()).unwrap();
    let encrypted = schema.ask(&format!(
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{}'",
        schema.name()
    ));
    assert_eq!(encrypted, ["t"]);
    drop(verified);
    let other_name = url.replace("history.example", "other.example");
    let error = Postgres::open(&format!("{other_name}&sslrootcert={authority}"), impatient()).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    drop(Postgres::open(&format!("{url}&sslmode=disable"), impatient()).unwrap());
}

#[test]
fn a_server_that_takes_no_writes_for_a_while_is_an_error_and_service_is_back_when_it_does() {
    let Some(schema) = Schema::new("failover") else { return };
    let base = schema.url().split("/postgres?").next().unwrap().to_owned();
    let url = format!("{base}/{}", schema.name());
    let database = schema.client();
    database.ask(&format!("CREATE DATABASE {}", schema.name()));
    let switch = |read_only: bool| {
        let value = if read_only { "on" } else { "off" };
        database
            .ask(&format!("ALTER DATABASE {} SET default_transaction_read_only = {value}", schema.name()));
        // Whoever hands over ends all sessions.
        database.ask(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
            schema.name()
        ));
    };
    {
        let store: Store = Arc::new(Postgres::open(&url, impatient()).unwrap());
        let first = try_append(&store, "before").unwrap();
        assert_eq!(run(store.ready()), Ok(()));
        switch(true);
        let error = try_append(&store, "meanwhile").unwrap_err();
        assert!(error.is_passing(), "{error}");
        assert!(error.to_string().contains("writes"), "it says why: {error}");
        assert!(run(store.ready()).unwrap_err().is_passing());
        switch(false);
        let tip = try_append(&store, "after").unwrap();
        assert_eq!(run(store.ready()), Ok(()));
        assert_eq!((length(&store, &first), length(&store, &tip)), (1, 1));
        // A session that is there already may be turned, too: it is not used again.
        database.ask(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", schema.name()));
        let error = Postgres::open(&url, impatient()).unwrap_err();
        assert!(error.to_string().contains("writes"), "{error}");
        assert!(Postgres::open_as_it_is(&url, impatient()).unwrap().is_some(), "it can be looked at");
        switch(false);
    }
    database.ask(&format!("DROP DATABASE {} WITH (FORCE)", schema.name()));
}

#[test]
fn a_session_that_has_become_read_only_is_not_used_again() {
    let Some(schema) = Schema::new("turned") else { return };
    let proxy = proxy(&schema);
    let store: Store = Arc::new(Postgres::open(&through(&proxy, &schema), impatient()).unwrap());
    try_append(&store, "before").unwrap();
    assert_eq!(run(store.ready()), Ok(()));
    // The sessions that are there now, and no others, are told what a server says that has handed over.
    schema.execute(
        "CREATE FUNCTION turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT 1 FROM turned WHERE pid = pg_backend_pid()) THEN
                RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TABLE turned AS SELECT pid FROM pg_stat_activity WHERE application_name = current_schema();
        CREATE TRIGGER turn BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION turn()",
    );
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1, "over another session, and nobody notices");
}

#[test]
fn of_several_hosts_the_one_that_takes_writes_is_used() {
    let Some(schema) = Schema::new("hosts") else { return };
    let (first, second) = (proxy(&schema), proxy(&schema));
    let url = through(&first, &schema);
    let hosts = format!("@127.0.0.1:{},127.0.0.1:{}/", first.port, second.port);
    let url = url.replace(&format!("@127.0.0.1:{}/", first.port), &hosts);
    let store: Store = Arc::new(Postgres::open(&url, impatient()).unwrap());
    try_append(&store, "before").unwrap();
    first.is_cut.store(true, SeqCst);
    let tip = try_append(&store, "after").unwrap();
    assert_eq!(length(&store, &tip), 1);
    assert_eq!(run(store.ready()), Ok(()));
}

#[test]
fn replicas_that_write_to_one_conversation_at_a_time_all_succeed() {
    let Some(schema) = Schema::new("replicas") else { return };
    let replicas: Vec<Store> = (0..3).map(|_| Arc::new(schema.open()) as Store).collect();
    let root = run(append(&replicas[0], "shared", None, 0, &[user("root")]));
    let threads: Vec<_> = replicas
        .iter()
        .cloned()
        .enumerate()
        .map(|(number, store)| {
            let root = root.clone();
            std::thread::spawn(move || {
                for n in 0..20 {
                    let same = user(&format!("said by all {n}"));
                    let own = user(&format!("said by {number} {n}"));
                    run(append(&store, "shared", Some(&root), n, &[same, own.clone()]));
                    run(append(&store, &format!("own-{number}"), None, n, &[own]));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for store in &replicas {
        let all = run(store.entries(Entries::Conversation(conversation("shared")))).unwrap();
        assert_eq!(all.len(), 1 + 20 + 3 * 20, "what all said is there once");
        let known = |id: &EntryId| all.iter().any(|kept| kept.id == *id);
        assert!(all.iter().all(|kept| kept.parent.as_ref().is_none_or(known)));
        let page = run(store.conversations(Conversations::All(Paging::default()))).unwrap();
        assert_eq!(page.items.len(), 4);
        let search = Search { words: "\"said by 2 19\"".into(), ..Search::default() };
        assert_eq!(run(store.search(search)).unwrap().items.len(), 2);
    }
}

#[test]
fn what_one_replica_writes_rings_at_the_others() {
    let Some(schema) = Schema::new("bell") else { return };
    let (one, two): (Store, Store) = (Arc::new(schema.open()), Arc::new(schema.open()));
    let mut changes = two.changes();
    // Once when it begins to listen: something may have been missed.
    run(changes.next()).unwrap();
    try_append(&one, "heard").unwrap();
    run(changes.next()).unwrap();
}
