//! What is read together to show something of the record.

use super::{Tallies, Tally};
use crate::async_summary::answering;
use crate::config::Config;
use std::collections::BTreeMap;
use throughline_core::{ConversationId, Entry, Ledger, Oddity, PairState, Text, exit_code};
use throughline_store::{
    ConversationFilter, Conversations, Entries, Exchange, Exchanges, Heading, History, Kept, Locate, Page,
    Paging, StoreError,
};

/// How many exchanges are read at a time.
const PAGE: u32 = 200;

/// A conversation in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What the history says of it.
    pub heading: Heading,
    /// The backend that was tried last.
    pub answered_by: Option<Text>,
    /// Its latest exchange, if there was one.
    pub latest: Option<Exchange>,
}

/// A call with its result; or a result that belongs to no call, or to one that had a result.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'k> {
    /// The call.
    pub call: Option<&'k Kept>,
    /// The result.
    pub result: Option<&'k Kept>,
    /// How it stands.
    pub state: PairState,
    /// What is odd about it.
    pub oddity: Option<Oddity>,
}

/// Lists conversations, the latest first.
///
/// # Errors
/// When the history cannot be read.
pub async fn list(history: &dyn History, which: Conversations) -> Result<Page<Listed>, StoreError> {
    let page = history.conversations(which).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for heading in page.items {
        items.push(listed(history, heading).await?);
    }
    Ok(Page { items, next: page.next })
}

/// What a list of conversations is sorted by, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// What they cost, as far as prices are known.
    Cost,
    /// How many tokens they took.
    Tokens,
    /// How many exchanges they took.
    Exchanges,
}

/// Lists the first of the conversations that a filter lets through, sorted by what they took. All of them are looked at.
///
/// # Errors
/// When the history cannot be read.
pub async fn ranked(
    history: &dyn History,
    filter: &ConversationFilter,
    ranking: Ranking,
    limit: u32,
    tallies: &Tallies,
    config: &Config,
) -> Result<Vec<(Listed, Tally)>, StoreError> {
    let mut found: Vec<(f64, Heading, Tally)> = Vec::new();
    let mut paging = Paging::first(PAGE);
    loop {
        let which = Conversations::Matching(Box::new(filter.clone()), paging);
        let page = history.conversations(which).await?;
        for heading in page.items {
            let tally = tallies.of(history, &heading).await?;
            let used = tally.used.total().unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let weight = match ranking {
                Ranking::Cost => tally.used.cost_known(config),
                Ranking::Tokens => used.input.saturating_add(used.output) as f64,
                Ranking::Exchanges => heading.exchanges as f64,
            };
            found.push((weight, heading, tally));
        }
        match page.next {
            Some(next) => paging = Paging { after: Some(next), limit: PAGE },
            None => break,
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(limit as usize);
    let mut ranked = Vec::with_capacity(found.len());
    for (_, heading, tally) in found {
        ranked.push((listed(history, heading).await?, tally));
    }
    Ok(ranked)
}

async fn listed(history: &dyn History, heading: Heading) -> Result<Listed, StoreError> {
    let latest = history.exchanges(Exchanges::Of(heading.id.clone(), Paging::first(1))).await?;
    let latest = latest.items.into_iter().next();
    let answered_by = latest.as_ref().and_then(|latest| Some(answering(latest)?.backend.clone()));
    Ok(Listed { heading, answered_by, latest })
}

/// Reads a conversation up to the entry that was appended last.
///
/// # Errors
/// When the history cannot be read.
pub async fn latest_branch(history: &dyn History, id: &ConversationId) -> Result<Vec<Kept>, StoreError> {
    let tip = history.locate(Locate::Conversation(id.clone())).await?.and_then(|located| located.entry);
    match tip {
        Some(tip) => history.entries(Entries::Branch(tip)).await,
        None => Ok(Vec::new()),
    }
}

/// Reads all exchanges of a conversation, the earliest first.
///
/// # Errors
/// When the history cannot be read.
pub async fn exchanges(history: &dyn History, id: &ConversationId) -> Result<Vec<Exchange>, StoreError> {
    let mut all = Vec::new();
    let mut paging = Paging::first(PAGE);
    loop {
        let page = history.exchanges(Exchanges::Of(id.clone(), paging)).await?;
        all.extend(page.items);
        match page.next {
            Some(next) => paging = Paging { after: Some(next), limit: PAGE },
            None => break,
        }
    }
    all.reverse();
    Ok(all)
}

/// The tools of calls, by the ids by which their results know them.
#[derive(Debug, Default)]
pub struct Tools<'k>(BTreeMap<&'k str, &'k str>);

impl<'k> Tools<'k> {
    /// Returns the tools of the calls among entries.
    #[must_use]
    pub fn of(entries: &'k [Kept]) -> Self {
        let calls = entries.iter().filter_map(|kept| kept.entry.as_call());
        Self(calls.map(|call| (&*call.id, &*call.name)).collect())
    }

    /// Returns the exit code that an entry says, if it is the result of a command.
    #[must_use]
    pub fn exit_code(&self, entry: &Entry) -> Option<i32> {
        let returned = entry.as_return()?;
        let tool = returned.call_id.as_ref().and_then(|id| self.0.get(&**id).copied());
        exit_code(tool, returned)
    }
}

impl Pair<'_> {
    /// Returns the exit code that the result of a command says.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        let tool = self.call.and_then(|kept| kept.entry.as_call()).map(|call| &*call.name);
        exit_code(tool, self.result?.entry.as_return()?)
    }
}

/// Pairs the calls of a branch with their results; results that are left over come last.
#[must_use]
pub fn pairs(branch: &[Kept]) -> Vec<Pair<'_>> {
    let entries: Vec<_> = branch.iter().map(|kept| kept.entry.clone()).collect();
    let ledger = Ledger::of(&entries);
    let paired = ledger.pairs().iter().map(|pair| Pair {
        call: Some(&branch[pair.call]),
        result: pair.result.map(|result| &branch[result]),
        state: pair.state,
        oddity: pair.result.map_or(Some(Oddity::NoResult), |result| ledger.oddity_of(result)),
    });
    let is_left_over = |oddity: Oddity| matches!(oddity, Oddity::NoCall | Oddity::Duplicate { .. });
    let left_over = ledger.mismatches().iter().filter(|mismatch| is_left_over(mismatch.oddity));
    let left_over = left_over.filter_map(|mismatch| {
        let outcome = entries[mismatch.entry].as_return()?.outcome;
        Some(Pair {
            call: None,
            result: Some(&branch[mismatch.entry]),
            state: PairState::Settled(outcome),
            oddity: Some(mismatch.oddity),
        })
    });
    paired.chain(left_over).collect()
}
