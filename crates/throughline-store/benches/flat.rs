//! Whether appending and recognising stay as fast as the history grows: ratios of 100,000 exchanges to 10.
//!
//! `just bench` runs it, with a PostgreSQL of its own where there is one. What is measured is what a request
//! costs: a durable append of an exchange with two entries, and finding the place of a resent history of twenty.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends when it cannot go on"
)]

use std::time::{Duration, Instant};

use throughline_core::{ConversationId, Dialect, Entry, EntryId, Role};
use throughline_store::{
    Batch, Chain, Exchange, ExchangeId, Extension, History, Locate, Moment, NewConversation, Postgres,
    PostgresOptions, Sqlite, SqliteOptions, Write, chains,
};

const FEW: usize = 10;
const MANY: usize = 100_000;

/// How many exchanges a conversation has.
const EXCHANGES: usize = 10;

/// How many exchanges are written at once while the history is filled.
const AT_ONCE: usize = 500;

/// How often each thing is measured; the middle one counts.
const TIMES: usize = 301;

fn main() {
    let folder = std::env::temp_dir().join(format!("throughline-flat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let sqlite = Sqlite::open(&folder.join("history.db"), SqliteOptions::default()).unwrap();
    measure("sqlite", &sqlite);
    drop(sqlite);
    std::fs::remove_dir_all(&folder).unwrap();
    match std::env::var("THROUGHLINE_TEST_POSTGRES") {
        Ok(url) => {
            measure("postgres", &Postgres::open(&url, PostgresOptions::default()).unwrap());
        }
        Err(_) => println!("postgres: skipped, THROUGHLINE_TEST_POSTGRES is not set"),
    }
}

fn measure(name: &str, store: &dyn History) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut filled = 0;
        let mut medians = Vec::new();
        for size in [FEW, MANY] {
            while filled < size {
                let until = size.min(filled + AT_ONCE);
                let writes = (filled..until).flat_map(|n| exchange(n).0).collect();
                store.append(Batch::relaxed(writes)).await.unwrap();
                filled = until;
            }
            let append = median_of(async |time| {
                // Conversations of their own, each begun by a measured append.
                let (writes, _) = exchange((size + 1) * 1_000_000 + time * EXCHANGES);
                store.append(Batch::durable(writes)).await.unwrap();
            });
            let append = append.await;
            let known = resent(filled - 1);
            let locate = median_of(async |_| {
                let locate = Locate::Prefix { within: None, chains: known.clone() };
                assert!(store.locate(locate).await.unwrap().is_some());
            });
            medians.push((append, locate.await));
        }
        let ratio = |many: Duration, few: Duration| many.as_secs_f64() / few.as_secs_f64();
        let (few, many) = (medians[0], medians[1]);
        println!(
            "{name}: append {:.2} ({:?}), locate {:.2} ({:?})",
            ratio(many.0, few.0),
            many.0,
            ratio(many.1, few.1),
            many.1
        );
    });
}

async fn median_of(run: impl AsyncFn(usize)) -> Duration {
    let mut took = Vec::with_capacity(TIMES);
    for time in 0..TIMES {
        let begun = Instant::now();
        run(time).await;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took[TIMES / 2]
}

/// The two entries that an exchange brings.
fn entries(n: usize) -> [Entry; 2] {
    let words = format!("{} of a history that grows and grows", n.wrapping_mul(0x9e37_79b9));
    [
        Entry::said(Role::User, format!("question {words}")),
        Entry::said(Role::Assistant, format!("answer {words}")),
    ]
}

/// What an exchange writes, and the last entry of it.
fn exchange(n: usize) -> (Vec<Write>, EntryId) {
    let first = n - n % EXCHANGES;
    let conversation = ConversationId::new(format!("conv_{first}"));
    let mut before = Extension::new(conversation.clone(), None, Moment(n as i64));
    (first..n).for_each(|earlier| before.extend(&entries(earlier)));
    let id = ExchangeId::new(format!("x{n}"));
    let mut growth =
        Extension::new(conversation.clone(), before.tip(), Moment(n as i64)).of_exchange(id.clone());
    growth.extend(&entries(n));
    let tip = growth.tip().unwrap();
    let new = NewConversation {
        id: conversation.clone(),
        at: Moment(n as i64),
        identified: "bench".into(),
        title: None,
        keys: Vec::new(),
    };
    let begun = Exchange::begun(id, conversation, Dialect::Chat, Moment(n as i64));
    (vec![Write::Conversation(new), Write::Exchange(begun.into()), Write::Entries(growth)], tip)
}

/// The chains of the conversation up to an exchange, and of something new.
fn resent(n: usize) -> Vec<Chain> {
    let first = n - n % EXCHANGES;
    let mut all: Vec<Entry> = (first..=n).flat_map(entries).collect();
    all.push(Entry::said(Role::User, "something new"));
    chains(&all)
}
