//! Tallies: what the exchanges of a conversation add up to, tokens by backend and runs.
//!
//! A list of conversations shows what each has taken so far, and must not read every exchange of each for that. What
//! has been counted once is remembered here, so that only what came since is read.

use crate::async_summary::answering;
use crate::bill::Bill;
use crate::config::Config;
use crate::run_ids::run_of;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use throughline_core::{ConversationId, EntryId, Text};
use throughline_store::{Exchange, ExchangeId, Exchanges, Heading, History, Moment, Paging, StoreError};

/// How many exchanges are read at a time.
const PAGE: u32 = 200;

/// How many conversations are remembered; beyond it all are forgotten, and counted again when they are asked for.
const REMEMBERED_MAX: usize = 10_000;

/// An exchange that has not ended so long after it began was cut off, and will not end.
const CUT_OFF_AFTER_MS: i64 = 60 * 60 * 1000;

/// What the exchanges of a conversation add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The tokens that were taken.
    pub used: Bill,
    /// The runs, in the order in which they began.
    pub runs: Vec<Run>,
    /// How many exchanges were counted.
    exchanges: u64,
}

/// A turn of the tool loop, as far as its exchanges tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: Text,
    /// When it began.
    pub started: Moment,
    /// When its latest answer was through.
    pub ended: Option<Moment>,
    /// How its latest answer ended.
    pub ending: Option<Text>,
    /// The last entry that it began with: what it was told to do.
    pub task: Option<EntryId>,
    /// Its latest exchange.
    pub last: ExchangeId,
    /// The number of its first exchange in the conversation, from 1.
    pub first: u64,
    /// How many exchanges it took.
    pub exchanges: u64,
    /// The tokens that were taken.
    pub used: Bill,
}

/// What was counted of conversations so far.
#[derive(Debug, Default)]
pub struct Tallies(Mutex<BTreeMap<ConversationId, Counted>>);

/// The exchanges from the first to the last that nothing will be added to.
#[derive(Clone, Debug, Default)]
struct Counted {
    tally: Tally,
    last: Option<ExchangeId>,
}

impl Tally {
    /// Returns what so many exchanges, the earliest first, add up to.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Self {
        let mut tally = Self::default();
        exchanges.iter().for_each(|exchange| tally.count(exchange));
        tally
    }

    fn count(&mut self, exchange: &Exchange) {
        self.exchanges += 1;
        let used = exchange.usage.zip(answering(exchange));
        if let Some((usage, attempt)) = used {
            self.used.add(&attempt.backend, attempt.model.as_ref(), usage);
        }
        let Some(id) = run_of(exchange) else { return };
        let at = self.runs.iter().position(|run| *run.id == *id).unwrap_or_else(|| {
            self.runs.push(Run {
                id: id.into(),
                started: exchange.started,
                ended: None,
                ending: None,
                task: exchange.before.clone(),
                last: exchange.id.clone(),
                first: self.exchanges,
                exchanges: 0,
                used: Bill::default(),
            });
            self.runs.len() - 1
        });
        let run = &mut self.runs[at];
        run.exchanges += 1;
        run.ended = exchange.ended;
        run.ending.clone_from(&exchange.ending);
        run.last = exchange.id.clone();
        if let Some((usage, attempt)) = used {
            run.used.add(&attempt.backend, attempt.model.as_ref(), usage);
        }
    }
}

impl Tallies {
    /// Returns the tally of a conversation as it is now.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub async fn of(&self, history: &dyn History, heading: &Heading) -> Result<Tally, StoreError> {
        let known = self.known(&heading.id);
        if known.tally.exchanges == heading.exchanges {
            return Ok(known.tally);
        }
        let (known, fresh) = since(history, &heading.id, known).await?;
        let mut tally = known.tally.clone();
        fresh.iter().for_each(|exchange| tally.count(exchange));
        let is_through = |exchange: &&Exchange| {
            exchange.ended.is_some() || heading.updated.0 - exchange.started.0 > CUT_OFF_AFTER_MS
        };
        let through = fresh.iter().take_while(is_through).count();
        if through > 0 {
            let mut counted = known;
            fresh[..through].iter().for_each(|exchange| counted.tally.count(exchange));
            counted.last = Some(fresh[through - 1].id.clone());
            self.remember(&heading.id, counted);
        }
        Ok(tally)
    }

    fn known(&self, id: &ConversationId) -> Counted {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned().unwrap_or_default()
    }

    fn remember(&self, id: &ConversationId, counted: Counted) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(id.clone(), counted);
    }
}

/// Reads the exchanges behind those that were counted, the earliest first.
///
/// Where the last one that was counted is gone, so is what was counted: another conversation has the name now.
async fn since(
    history: &dyn History,
    id: &ConversationId,
    known: Counted,
) -> Result<(Counted, Vec<Exchange>), StoreError> {
    let mut fresh = Vec::new();
    let mut paging = Paging::first(PAGE);
    let found = loop {
        let page = history.exchanges(Exchanges::Of(id.clone(), paging)).await?;
        let known_at = page.items.iter().position(|exchange| Some(&exchange.id) == known.last.as_ref());
        fresh.extend(page.items.into_iter().take(known_at.unwrap_or(usize::MAX)));
        match page.next {
            Some(next) if known_at.is_none() => paging = Paging { after: Some(next), limit: PAGE },
            _ => break known_at.is_some(),
        }
    };
    fresh.reverse();
    Ok((if found { known } else { Counted::default() }, fresh))
}

/// Returns what an exchange cost in US dollars, if the prices of its backend are known.
#[must_use]
pub fn cost_of(config: &Config, exchange: &Exchange) -> Option<f64> {
    let attempt = answering(exchange)?;
    let mut bill = Bill::default();
    bill.add(&attempt.backend, attempt.model.as_ref(), exchange.usage?);
    bill.cost(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_ids::client_of;
    use crate::turn::settings;
    use throughline_core::{Dialect, Usage};
    use throughline_store::{Attempt, Batch, Conversations, Memory, NewConversation, Write};

    const PRICED: &str = "active = \"a\"\n\
        [[backends]]\nname = \"a\"\ndialect = \"chat\"\nbase_url = \"sim:\"\n\
        prices = { input = 2.0, output = 8.0, cache_read = 0.5, cache_write = 3.0 }\n\
        [[backends]]\nname = \"b\"\ndialect = \"chat\"\nbase_url = \"sim:\"\n";

    fn exchange(number: u32, backend: &str, client: &str, usage: Option<Usage>) -> Exchange {
        let id = ExchangeId::new(format!("x{number}"));
        let started = Moment(i64::from(number) * 1000);
        Exchange {
            client: Some(client.into()),
            usage,
            ended: usage.map(|_| Moment(started.0 + 500)),
            ending: usage.map(|_| "end_turn".into()),
            attempts: vec![Attempt {
                backend: backend.into(),
                dialect: Dialect::Chat,
                model: None,
                strategy: None,
                started,
                ended: None,
                status: Some(200),
                failure: None,
                compaction: None,
                plan: None,
                continues: None,
                recall: None,
            }],
            ..Exchange::begun(id, ConversationId::new("c"), Dialect::Chat, started)
        }
    }

    fn used(input: u64, cache_read: u64, cache_written: u64, output: u64) -> Option<Usage> {
        Some(Usage { input, cache_read, cache_written, output, reasoning: 0 })
    }

    #[test]
    fn what_was_cached_is_priced_apart_and_what_has_no_price_has_no_cost() {
        let config = settings::read(PRICED).unwrap();
        let one = exchange(1, "a", "curl", used(1_000_000, 600_000, 100_000, 250_000));
        // 300,000 at 2.0, 600,000 at 0.5, 100,000 at 3.0, 250,000 at 8.0, by the million.
        assert_eq!(cost_of(&config, &one), Some(0.6 + 0.3 + 0.3 + 2.0));
        let tally = Tally::of(&[one.clone(), one.clone()]);
        assert_eq!(tally.used.cost(&config), Some(6.4));
        assert_eq!(tally.used.total(), used(2_000_000, 1_200_000, 200_000, 500_000));
        let unpriced = exchange(2, "b", "curl", used(10, 0, 0, 1));
        assert_eq!(cost_of(&config, &unpriced), None);
        assert_eq!(
            Tally::of(&[one, unpriced]).used.cost(&config),
            None,
            "a part of the cost is not the cost"
        );
        assert_eq!(Tally::of(&[]).used.cost(&config), None);
    }

    #[test]
    fn runs_are_told_apart_by_what_they_call_themselves() {
        let client = client_of("run_1");
        let tally = Tally::of(&[
            exchange(1, "a", "curl", used(1, 0, 0, 1)),
            exchange(2, "a", &client, used(5, 0, 0, 1)),
            exchange(3, "b", &client, used(7, 0, 0, 1)),
            exchange(4, "a", &client_of("run_2"), None),
        ]);
        let runs: Vec<_> = tally.runs.iter().map(|run| (&*run.id, run.first, run.exchanges)).collect();
        assert_eq!(runs, [("run_1", 2, 2), ("run_2", 4, 1)]);
        assert_eq!(tally.runs[0].used.total(), used(12, 0, 0, 2));
        assert_eq!((tally.runs[1].ended, tally.runs[1].used.total()), (None, None));
    }

    #[tokio::test]
    async fn only_what_came_since_is_counted_and_an_answer_under_way_is_counted_again() {
        let (history, tallies) = (Memory::new(), Tallies::default());
        let begin = Write::Conversation(NewConversation {
            id: ConversationId::new("c"),
            at: Moment(0),
            identified: "header".into(),
            title: None,
            keys: Vec::new(),
        });
        history.append(Batch::relaxed(vec![begin])).await.unwrap();
        let mut read = Vec::new();
        let steps = [
            exchange(1, "a", "curl", used(10, 0, 0, 1)),
            exchange(2, "a", "curl", None),
            exchange(2, "a", "curl", used(20, 0, 0, 1)),
            exchange(3, "b", "curl", used(30, 0, 0, 1)),
        ];
        for step in steps {
            history.append(Batch::relaxed(vec![Write::Exchange(Box::new(step))])).await.unwrap();
            let which = Conversations::One(ConversationId::new("c"));
            let heading = history.conversations(which).await.unwrap().items.remove(0);
            let tally = tallies.of(&history, &heading).await.unwrap();
            assert_eq!(tally, tallies.of(&history, &heading).await.unwrap(), "asked again, the same");
            read.push(tally.used.total().unwrap().input);
        }
        assert_eq!(read, [10, 10, 30, 60]);
    }
}
