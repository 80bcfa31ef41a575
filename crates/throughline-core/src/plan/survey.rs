//! The survey: what a large step has to know about a history, gathered once.
//!
//! A round is what the model did in one go: a run of entries on its side with the calls among them (a batch),
//! and their results. Rounds are left out as a whole or not at all.

use super::handle::Handle;
use super::tools::{ToolRules, Use, has_side_effects};
use super::{Tokens, ToolKind};
use crate::{Entry, Kind, Ledger, PairState, Side};
use std::ops::Range;

pub(super) struct Survey<'a> {
    pub entries: &'a [Entry],
    pub sizes: &'a [Tokens],
    /// In the order of their calls; those of a round stand side by side.
    pub pairs: Vec<Pair>,
    pub rounds: Vec<Round>,
}

/// A call with its result, or a result alone.
pub(super) struct Pair {
    pub call: Option<usize>,
    pub result: Option<usize>,
    pub usage: Use,
    pub handle: Handle,
    /// Whether the result says that the tool failed.
    pub failed: bool,
}

pub(super) struct Round {
    /// Its pairs, among those of the survey.
    pub pairs: Range<usize>,
    /// Its reasoning: goes only with the whole round.
    pub thoughts: Vec<usize>,
    /// Its text.
    pub words: Vec<usize>,
    /// Whether it must stay: it holds what only its dialect understands, or a call without a result.
    pub is_pinned: bool,
}

impl Pair {
    /// Returns the entries of the pair.
    pub fn entries(&self) -> impl Iterator<Item = usize> {
        self.call.into_iter().chain(self.result)
    }

    /// Says whether running it again may do something again.
    pub fn changes_something(&self) -> bool {
        self.usage.kind == ToolKind::Command && self.usage.key.as_deref().is_none_or(has_side_effects)
    }
}

impl<'a> Survey<'a> {
    pub fn of(entries: &'a [Entry], sizes: &'a [Tokens], rules: &ToolRules) -> Self {
        let ledger = Ledger::of(entries);
        let mut survey =
            Self { entries, sizes, pairs: Vec::with_capacity(ledger.pairs().len()), rounds: Vec::new() };
        let mut at = 0;
        while at < entries.len() {
            if entries[at].side() != Side::Assistant {
                if entries[at].as_return().is_some() && ledger.pair_of(at).is_none() {
                    survey.take_lone(at);
                }
                at += 1;
                continue;
            }
            let is_other = |entry: &Entry| entry.side() != Side::Assistant;
            let end = entries[at..].iter().position(is_other).map_or(entries.len(), |length| at + length);
            survey.take_run(at..end, &ledger, rules);
            at = end;
        }
        survey
    }

    fn take_lone(&mut self, at: usize) {
        let usage = Use { kind: ToolKind::Other, key: None, rest: 0 };
        let handle = Handle::of(None, self.entries.get(at));
        let first = self.pairs.len();
        self.pairs.push(Pair { call: None, result: Some(at), usage, handle, failed: false });
        let pairs = first..self.pairs.len();
        self.rounds.push(Round { pairs, thoughts: Vec::new(), words: Vec::new(), is_pinned: true });
    }

    fn take_run(&mut self, run: Range<usize>, ledger: &Ledger, rules: &ToolRules) {
        let first = self.pairs.len();
        let mut round =
            Round { pairs: first..first, thoughts: Vec::new(), words: Vec::new(), is_pinned: false };
        for at in run {
            match &self.entries[at].kind {
                Kind::Thought(_) => round.thoughts.push(at),
                Kind::Said(_) => round.words.push(at),
                Kind::Called(call) => {
                    let pair = ledger.pair_of(at);
                    let result = pair.and_then(|pair| pair.result);
                    let failed = pair
                        .is_some_and(|pair| matches!(pair.state, PairState::Settled(how) if how.is_error()));
                    round.is_pinned |= result.is_none();
                    let handle =
                        Handle::of(self.entries.get(at), result.and_then(|result| self.entries.get(result)));
                    self.pairs.push(Pair {
                        call: Some(at),
                        result,
                        usage: rules.usage(call),
                        handle,
                        failed,
                    });
                }
                _ => round.is_pinned = true,
            }
        }
        round.pairs = first..self.pairs.len();
        if !round.pairs.is_empty() {
            self.rounds.push(round);
        }
    }
}
