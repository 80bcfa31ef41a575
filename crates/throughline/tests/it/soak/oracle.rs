//! The oracle: knows what agents saw completed, and compares it with what the history has.

use super::agents::Seen;
use super::watch::Watch;
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_core::{Entry, Kind, joined_text};
use throughline_store::{Entries, ExchangeId, Exchanges, History, Postgres, PostgresOptions, Upkeep, Which};

/// What the oracle found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Answers that were seen completed and are not in the history, with what is missing.
    pub lost: Vec<String>,
    /// Entries that stand twice in one branch, and answers whose end was written twice.
    pub duplicated: Vec<String>,
    /// Results without a call.
    pub orphaned: u64,
    /// What does not fit its digest.
    pub wrong: u64,
    /// How many exchanges the history has.
    pub exchanges: u64,
    /// How many entries.
    pub entries: u64,
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.duplicated.is_empty() && self.orphaned == 0 && self.wrong == 0
    }
}

/// Compares what was seen with what is kept.
pub fn judge(url: &str, seen: &[Seen], watch: &Watch) -> Verdict {
    let store = Postgres::open(url, PostgresOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut verdict = Verdict::default();
        for (number, seen) in seen.iter().enumerate() {
            if number % 1000 == 0 {
                watch.waits_for(format!("the oracle, which has found {number} answers"));
            }
            if let Err(what) = find(&store, seen, &mut verdict.duplicated).await {
                verdict.lost.push(format!("{seen:?}: {what}"));
            }
        }
        watch.waits_for("the check of everything");
        let checkup = store.check(Arc::new(|_| {})).await.unwrap();
        verdict.orphaned = checkup.orphans;
        verdict.wrong = checkup.wrong;
        verdict.exchanges = checkup.exchanges;
        verdict.entries = checkup.entries;
        verdict
    })
}

async fn find(store: &Postgres, seen: &Seen, duplicated: &mut Vec<String>) -> Result<(), &'static str> {
    let id = ExchangeId::new(seen.exchange.as_str());
    let found = store.exchanges(Exchanges::One(id.clone())).await.unwrap().items.into_iter().next();
    let exchange = found.ok_or("the exchange is not there")?;
    if exchange.conversation.as_str() != seen.conversation || exchange.ended.is_none() {
        return Err("the exchange is another, or has no end");
    }
    let after = exchange.after.ok_or("the answer is not there")?;
    let branch = store.entries(Entries::Branch(after)).await.unwrap();
    let has = |wanted: &dyn Fn(&Entry) -> bool| branch.iter().any(|kept| wanted(&kept.entry));
    if let Some(call) = &seen.call
        && !has(&|entry| entry.as_call().is_some_and(|found| found.id == call.as_str()))
    {
        return Err("the call is not there");
    }
    let says =
        |entry: &Entry| entry.as_said().is_some_and(|said| joined_text(&said.parts) == seen.text.as_str());
    if !seen.text.is_empty() && !has(&says) {
        return Err("the text is not there");
    }
    // Whatever is said in these conversations is said once.
    let mut known = BTreeSet::new();
    for kept in &branch {
        let said = match &kept.entry.kind {
            Kind::Said(said) => format!("said {}", joined_text(&said.parts)),
            Kind::Called(call) => format!("called {}", call.id),
            Kind::Returned(returned) => format!("returned {:?}", returned.call_id),
            _ => continue,
        };
        if !known.insert(said.clone()) {
            duplicated.push(format!("{}: {said}", seen.exchange));
        }
    }
    let events = store.recording(id, Which::Events).await.unwrap().events;
    let is_end = |data: &str| data == "[DONE]" || data.contains("\"type\":\"message_stop\"");
    let ends: Vec<u32> =
        events.iter().filter(|(_, event)| is_end(&event.data)).map(|(attempt, _)| *attempt).collect();
    if ends.len() > ends.iter().collect::<BTreeSet<_>>().len() {
        duplicated.push(format!("{}: its end", seen.exchange));
    }
    Ok(())
}
