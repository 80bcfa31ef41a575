//! How much a history takes on the disk.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use throughline_core::{
    Content, Dialect, Entry, EntryId, Envelope, Kind, Outcome, Part, Return, Role, Said, Wire,
};
use throughline_store::{
    Batch, DocumentKind, ExchangeId, Locate, Moment, ProviderEvent, Search, Which, Write, chains,
};

use crate::fixtures::{Folder, Schema, Store, beginning, call, conversation, exchange, extension, open, run};

/// A word that depends on its number alone and looks like one of some thousands.
fn word(n: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "con", "fig", "re", "quest", "file", "path", "test", "err", "or", "line", "mod", "ule", "par", "se",
        "buf", "fer",
    ];
    let mixed = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let length = 1 + mixed as usize % 3;
    (0..length).map(|at| SYLLABLES[(mixed as usize >> (4 * at + 2)) % 16]).collect()
}

/// Text of about that many bytes, which compresses about as well as source code does.
fn prose(seed: usize, bytes: usize) -> String {
    let mut text = String::new();
    for n in 0.. {
        if text.len() >= bytes {
            return text;
        }
        text += &word(seed * 7919 + n);
        text += if n % 9 == 8 { "\n" } else { " " };
    }
    text
}

fn wire(text: String) -> Wire {
    Wire { dialect: Dialect::Chat, text: text.into(), extras: Vec::new() }
}

/// One message of a request, with the entry that stands for it.
fn message(kind: Kind, text: String) -> (String, Entry) {
    let mut entry = Entry::new(kind);
    entry.envelope = Some((Arc::new(Envelope { wire: wire(text.clone()), entries: 1 }), 0));
    (text, entry)
}

fn said(role: Role, name: &str, text: &str) -> (String, Entry) {
    let json = format!("{{\"role\":\"{name}\",\"content\":\"{}\"}}", text.replace('\n', "\\n"));
    let parts = vec![Part { content: Content::Text(text.into()), wire: None }];
    message(Kind::Said(Said { role, parts, standing: false }), json)
}

/// The messages of one turn: a question, a call, its result, an answer.
fn turn(n: usize) -> Vec<(String, Entry)> {
    let id = format!("call_{n:06}");
    let arguments = format!("{{\"path\":\"src/{}.rs\"}}", word(n));
    let output = prose(n, 2_000);
    let called = format!(
        "{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"{id}\",\"type\":\"function\",\"function\":{{\"name\":\"Read\",\"arguments\":\"{}\"}}}}]}}",
        arguments.replace('"', "\\\"")
    );
    let returned = format!(
        "{{\"role\":\"tool\",\"tool_call_id\":\"{id}\",\"content\":\"{}\"}}",
        output.replace('\n', "\\n")
    );
    let result = Return {
        call_id: Some(id.as_str().into()),
        item_id: None,
        name: None,
        parts: vec![Part::text(output)],
        outcome: Outcome::Ok,
        freeform: false,
    };
    vec![
        said(Role::User, "user", &prose(n + 10_000, 200)),
        message(call(&id, "Read", &arguments).kind, called),
        message(Kind::Returned(result), returned),
        said(Role::Assistant, "assistant", &prose(n + 20_000, 300)),
    ]
}

/// What a history took.
#[derive(Debug, Default)]
struct Took {
    /// Each message once, and each event once.
    unique: usize,
    /// Every request and every answer in full.
    logged: usize,
}

/// Appends a turn of a client that resends everything, as the gateway does.
async fn exchange_of(
    store: &Store,
    n: usize,
    history: &mut Vec<(String, Entry)>,
    bytes: &mut Took,
) -> EntryId {
    let messages = turn(n);
    bytes.unique += messages.iter().map(|(text, _)| text.len()).sum::<usize>();
    let (asked, answered) = messages.split_at(3);
    history.extend_from_slice(asked);
    let body = format!(
        "{{\"model\":\"m\",\"messages\":[{}],\"stream\":true}}",
        history.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(",")
    );
    let entries: Vec<Entry> = history.iter().map(|(_, entry)| entry.clone()).collect();
    let chains = chains(&entries);
    let found = store.locate(Locate::Prefix { within: Some(conversation("a")), chains }).await.unwrap();
    let (known, parent) = found.map_or((0, None), |found| (found.known, found.entry));
    assert_eq!(known, history.len() - 3);

    let (id, at) = (format!("x{n}"), n as i64);
    let mut growth =
        extension("a", parent.as_ref(), at, &entries[known..]).of_exchange(ExchangeId::new(id.as_str()));
    growth.push(&answered[0].1);
    let tip = growth.tip().unwrap();
    history.extend_from_slice(answered);
    let events = stream(&answered[0].0, at);
    let streamed: usize = events.iter().map(|event| event.data.len()).sum();
    bytes.unique += streamed;
    bytes.logged += body.len() + streamed;
    let exchange_id = || ExchangeId::new(id.as_str());
    let writes = vec![
        beginning("a", at),
        Write::Exchange(exchange(&id, "a", at).into()),
        Write::Entries(growth),
        Write::Document {
            kind: DocumentKind::Sent,
            exchange: exchange_id(),
            attempt: 0,
            body: Bytes::from(body),
        },
        Write::Events { exchange: exchange_id(), attempt: 0, events },
    ];
    store.append(Batch::relaxed(writes)).await.unwrap();
    tip
}

/// Appends what an attempt of a session is about that is shortened: what came, which is longer each time; what was sent,
/// which begins anew with each step; and what was changed, in which every call so far is named.
async fn shortened_attempt(store: &Store, n: usize, history: &[(String, Entry)]) {
    const STEP: usize = 80;
    let body = |messages: &[(String, Entry)], first: &str| {
        let messages = messages.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(",");
        Bytes::from(format!("{{\"model\":\"m\",\"messages\":[{first}{messages}],\"stream\":true}}"))
    };
    let step = history.len() / STEP;
    let digest = format!("{{\"role\":\"user\",\"content\":\"step {step}: {}\"}},", prose(step, 1_500));
    let renamed = |at: usize| {
        format!("{{\"action\":\"renamed\",\"place\":\"messages[{at}]\",\"reason\":\"id of call_{at}\"}}")
    };
    let changes = (0..history.len()).step_by(4).map(renamed).collect::<Vec<_>>().join(",");
    let report = format!("{{\"summary\":\"shortened={}\",\"changes\":[{changes}]}}", step * STEP);
    let documents = [
        (DocumentKind::Received, body(history, "")),
        (DocumentKind::Sent, body(&history[(step * STEP).saturating_sub(STEP / 2)..], &digest)),
        (DocumentKind::Report, Bytes::from(report)),
    ];
    let document =
        |(kind, body)| Write::Document { exchange: ExchangeId::new(format!("x{n}")), attempt: 0, kind, body };
    store.append(Batch::relaxed(documents.map(document).to_vec())).await.unwrap();
}

#[test]
fn a_session_that_is_shortened_takes_little_more_than_what_is_new() {
    const TURNS: usize = 400;
    let folder = Folder::new("size-shortened");
    let store: Store = Arc::new(open(&folder.database()));
    let mut bytes = Took::default();
    run(async {
        let mut history = Vec::new();
        for n in 0..TURNS {
            exchange_of(&store, n, &mut history, &mut bytes).await;
            shortened_attempt(&store, n, &history).await;
        }
    });
    drop(store);
    let (disk, most) = (bytes_on_disk(&folder.database()), bytes.unique * 13 / 10 + TURNS * 1024);
    assert!(disk <= most, "{disk} bytes on disk for {} new ones; {most} are allowed", bytes.unique);
}

/// An answer as a stream of a few words each.
fn stream(text: &str, at: i64) -> Vec<ProviderEvent> {
    let delta = |piece: &str| {
        format!("{{\"id\":\"chatcmpl-1\",\"choices\":[{{\"delta\":{{\"content\":\"{piece}\"}}}}]}}")
    };
    let event = |data: String| ProviderEvent { at: Moment(at), name: None, data: data.into() };
    text.split(' ').map(|piece| event(delta(piece))).collect()
}

fn bytes_on_disk(database: &Path) -> usize {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::metadata(database).unwrap().len() as usize
}

/// Has a client that resends everything take five hundred turns.
async fn five_hundred_turns(store: &Store) -> Took {
    let mut bytes = Took::default();
    let mut history = Vec::new();
    for n in 0..500 {
        exchange_of(store, n, &mut history, &mut bytes).await;
    }
    // The words are in the index, too.
    let search = Search { words: "config".into(), ..Search::default() };
    assert!(!store.search(search).await.unwrap().items.is_empty());
    let last = store.recording(ExchangeId::new("x499"), Which::Sent).await.unwrap();
    assert!(last.sent[0].1.len() > 1_000_000);
    bytes
}

/// The promise that docs/operations.md makes.
fn assert_little(disk: usize, bytes: &Took) {
    let of_unique = disk as f64 / bytes.unique as f64;
    let of_logged = disk as f64 / bytes.logged as f64;
    assert!(of_unique <= 1.2, "{of_unique:.2} of the unique bytes");
    assert!(of_logged <= 0.05, "{of_logged:.3} of what logging would take");
}

#[test]
fn five_hundred_turns_of_a_client_that_resends_everything_take_little_more_than_what_is_new() {
    let folder = Folder::new("size");
    let store: Store = Arc::new(open(&folder.database()));
    let bytes = run(five_hundred_turns(&store));
    drop(store);
    assert_little(bytes_on_disk(&folder.database()), &bytes);
}

#[test]
fn so_do_they_in_postgresql() {
    let Some(schema) = Schema::new("size") else { return };
    let postgres = Arc::new(schema.open());
    let store: Store = Arc::clone(&postgres) as Store;
    // Each table and each index has a page or two even when it is empty.
    let empty = run(postgres.condition()).unwrap().bytes;
    let bytes = run(five_hundred_turns(&store));
    let disk = run(postgres.condition()).unwrap().bytes - empty;
    assert_little(disk as usize, &bytes);
}
