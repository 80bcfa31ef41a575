//! Whether appending and recognising stay as fast as the history grows: ratios of 100,000 exchanges to 10.
//!
//! `just bench` runs it, with a PostgreSQL of its own where there is one. What is measured is what a request
//! costs: finding the place of a resent history of twenty entries, and the two durable appends of an exchange as the
//! gateway makes them: what was said and is sent, and what was answered, with the events of the provider. A small history
//! and a large one are measured in turn, so that whatever else the machine does falls on both.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

use std::time::{Duration, Instant};

use throughline_core::{ConversationId, Dialect, Entry, Role};
use throughline_store::{
    Batch, Chain, DocumentKind, Exchange, ExchangeId, Extension, History, Locate, Moment, NewConversation,
    Postgres, PostgresOptions, ProviderEvent, Sqlite, SqliteOptions, Write, chains,
};

const FEW: usize = 10;
const MANY: usize = 100_000;

/// How many exchanges a conversation has.
const EXCHANGES: usize = 10;

/// How many exchanges are written at once while the history is filled.
const AT_ONCE: usize = 500;

/// How often each thing is measured; the middle one counts.
const TIMES: usize = 1001;

fn main() {
    let folder = std::env::temp_dir().join(format!("throughline-flat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let sqlite = |name: &str| Sqlite::open(&folder.join(name), SqliteOptions::default()).unwrap();
    measure("sqlite", &sqlite("few.db"), &sqlite("many.db"));
    std::fs::remove_dir_all(&folder).unwrap();
    match std::env::var("THROUGHLINE_TEST_POSTGRES") {
        Ok(url) => measure("postgres", &schema(&url, "flat_few"), &schema(&url, "flat_many")),
        Err(_) => println!("postgres: skipped, THROUGHLINE_TEST_POSTGRES is not set"),
    }
}

/// Opens a history in a schema of its own.
fn schema(url: &str, name: &str) -> Postgres {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    });
    Postgres::open(&format!("{url}?options=-csearch_path%3D{name}"), PostgresOptions::default()).unwrap()
}

fn measure(name: &str, few: &dyn History, many: &dyn History) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        fill(few, FEW).await;
        fill(many, MANY).await;
        let append = async |store: &dyn History, time: usize| {
            // Conversations of their own, each begun by a measured append.
            for writes in exchange(MANY * 10 + time * EXCHANGES) {
                store.append(Batch::durable(writes)).await.unwrap();
            }
        };
        let locate = async |store: &dyn History, of: &[Chain]| {
            let locate = Locate::Prefix { within: None, chains: of.to_vec() };
            assert!(store.locate(locate).await.unwrap().is_some());
        };
        let (last_few, last_many) = (resent(FEW - 1), resent(MANY - 1));
        let appends =
            medians(async |time| append(few, time).await, async |time| append(many, time).await).await;
        let locates =
            medians(async |_| locate(few, &last_few).await, async |_| locate(many, &last_many).await).await;
        let ratio = |(few, many): (Duration, Duration)| many.as_secs_f64() / few.as_secs_f64();
        for (what, times) in [("append", appends), ("locate", locates)] {
            let (few, many) = times;
            println!("{name}: {what} {:.2} ({few:?} of {FEW} exchanges, {many:?} of {MANY})", ratio(times));
        }
    });
}

async fn fill(store: &dyn History, size: usize) {
    for from in (0..size).step_by(AT_ONCE) {
        let writes = (from..size.min(from + AT_ONCE)).flat_map(exchange).flatten().collect();
        store.append(Batch::relaxed(writes)).await.unwrap();
    }
    // What was only with the operating system goes to the disk before anything is measured.
    store.append(Batch::durable(Vec::new())).await.unwrap();
}

/// Measures two things in turn; the middle of each counts.
async fn medians(one: impl AsyncFn(usize), other: impl AsyncFn(usize)) -> (Duration, Duration) {
    let (mut first, mut second) = (Vec::with_capacity(TIMES), Vec::with_capacity(TIMES));
    for time in 0..TIMES {
        let begun = Instant::now();
        one(time).await;
        first.push(begun.elapsed());
        let begun = Instant::now();
        other(time).await;
        second.push(begun.elapsed());
    }
    first.sort_unstable();
    second.sort_unstable();
    (first[TIMES / 2], second[TIMES / 2])
}

/// The two entries that an exchange brings.
fn entries(n: usize) -> [Entry; 2] {
    let words = format!("{} of a history that grows and grows", n.wrapping_mul(0x9e37_79b9));
    [
        Entry::said(Role::User, format!("question {words}")),
        Entry::said(Role::Assistant, format!("answer {words}")),
    ]
}

/// What an exchange writes: before it is sent, and when it is answered.
fn exchange(n: usize) -> [Vec<Write>; 2] {
    let first = n - n % EXCHANGES;
    let (conversation, at) = (ConversationId::new(format!("conv_{first}")), Moment(n as i64));
    let mut before = Extension::new(conversation.clone(), None, at);
    (first..n).for_each(|earlier| before.extend(&entries(earlier)));
    let id = ExchangeId::new(format!("x{n}"));
    let [question, answer] = entries(n);
    let mut asked = Extension::new(conversation.clone(), before.tip(), at).of_exchange(id.clone());
    asked.extend(&[question]);
    let mut answered = Extension::new(conversation.clone(), asked.tip(), at).of_exchange(id.clone());
    answered.extend(&[answer]);
    let new = NewConversation {
        id: conversation.clone(),
        at,
        identified: "bench".into(),
        title: None,
        keys: Vec::new(),
    };
    let begun = Exchange::begun(id.clone(), conversation, Dialect::Chat, at);
    let ended = Exchange { ended: Some(at), after: answered.tip(), ..begun.clone() };
    let said = |kind: &str| format!("{{\"{kind}\":\"{} of a history\"}}", n.wrapping_mul(0x9e37_79b9));
    let event = |part: usize| ProviderEvent { at, name: None, data: said(&format!("delta{part}")).into() };
    let sent = Write::Document {
        kind: DocumentKind::Sent,
        exchange: id.clone(),
        attempt: 0,
        body: said("messages").into(),
    };
    let events = Write::Events { exchange: id.clone(), attempt: 0, events: (0..4).map(event).collect() };
    [
        vec![Write::Conversation(new), Write::Exchange(begun.into()), Write::Entries(asked), sent],
        vec![
            Write::Exchange(ended.into()),
            Write::Entries(answered),
            events,
            Write::Answer { exchange: id, json: said("answer").into() },
        ],
    ]
}

/// The chains of the conversation up to an exchange, and of something new.
fn resent(n: usize) -> Vec<Chain> {
    let first = n - n % EXCHANGES;
    let mut all: Vec<Entry> = (first..=n).flat_map(entries).collect();
    all.push(Entry::said(Role::User, "something new"));
    chains(&all)
}
