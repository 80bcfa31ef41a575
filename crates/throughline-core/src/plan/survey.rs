//! The survey: what a large step has to know about a history, gathered once.
//!
//! A round is what the model did in one go: a run of entries on its side with the calls among them (a batch),
//! and their results. Rounds are left out as a whole or not at all.

use super::handle::{self, Handle};
use super::paths::Directories;
use super::shell;
use super::tools::{ToolRules, Use};
use super::{Tokens, ToolKind};
use crate::{Entry, Kind, Ledger, PairState, Role, Side, exit};
use std::ops::Range;

pub(super) struct Survey<'a> {
    pub entries: &'a [Entry],
    pub sizes: &'a [Tokens],
    /// In the order of their calls; those of a round stand side by side.
    pub pairs: Vec<Pair>,
    pub rounds: Vec<Round>,
    /// What the model said without calling anything, oldest first.
    pub talk: Vec<usize>,
    /// What the user said before the latest message.
    pub asked: Vec<usize>,
    /// The large ones of them: mostly output that was pasted, which is tool history in all but name.
    pub pasted: Vec<usize>,
}

/// A call with its result, or a result alone.
pub(super) struct Pair {
    pub call: Option<usize>,
    pub result: Option<usize>,
    pub usage: Use,
    pub handle: Handle,
    /// Whether the result says that the tool failed, or its command did.
    pub failed: bool,
    /// Whether running it again may do something again.
    pub changes_something: bool,
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

/// What the user said is taken for pasted output from this size on.
const PASTED_TOKENS_MIN: u64 = 600;

impl Pair {
    /// Returns the entries of the pair.
    pub fn entries(&self) -> impl Iterator<Item = usize> {
        self.call.into_iter().chain(self.result)
    }

    /// Returns the one thing that it is about: a file in the form that is the same for all its names, else the key.
    pub fn subject(&self) -> Option<&str> {
        match self.usage.files.as_slice() {
            [] => self.usage.key.as_deref(),
            [file, ..] => Some(file),
        }
    }
}

impl Round {
    /// Returns its first entry.
    pub fn start(&self, survey: &Survey<'_>) -> usize {
        let pairs = survey.pairs[self.pairs.clone()].iter().flat_map(Pair::entries);
        pairs.chain(self.thoughts.iter().copied()).chain(self.words.iter().copied()).min().unwrap_or_default()
    }
}

impl<'a> Survey<'a> {
    pub fn of(entries: &'a [Entry], sizes: &'a [Tokens], rules: &ToolRules) -> Self {
        let ledger = Ledger::of(entries);
        let mut survey = Self {
            entries,
            sizes,
            pairs: Vec::with_capacity(ledger.pairs().len()),
            rounds: Vec::new(),
            talk: Vec::new(),
            asked: Vec::new(),
            pasted: Vec::new(),
        };
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

        survey.take_user_messages();
        handle::shorten(
            survey.pairs.iter_mut().filter(|pair| pair.call.is_some()).map(|pair| &mut pair.handle),
        );
        survey.resolve_paths();
        survey
    }

    fn take_lone(&mut self, at: usize) {
        let usage = Use { kind: ToolKind::Other, key: None, rest: 0, files: Vec::new(), is_whole: false };
        let handle = Handle::of(None, self.entries.get(at));
        let first = self.pairs.len();
        let (call, result) = (None, Some(at));
        self.pairs.push(Pair { call, result, usage, handle, failed: false, changes_something: true });
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
                    let returned = result.and_then(|result| self.entries[result].as_return());
                    let failed = pair
                        .is_some_and(|pair| matches!(pair.state, PairState::Settled(how) if how.is_error()))
                        || returned.is_some_and(|returned| exit::is_failure(&call.name, returned));
                    round.is_pinned |= result.is_none();
                    let handle =
                        Handle::of(self.entries.get(at), result.and_then(|result| self.entries.get(result)));
                    let usage = rules.usage(call);
                    let is_command = usage.kind == ToolKind::Command;
                    let is_read_only = usage.key.as_deref().is_some_and(shell::is_read_only);
                    let changes_something = is_command && !is_read_only;
                    self.pairs.push(Pair {
                        call: Some(at),
                        result,
                        usage,
                        handle,
                        failed,
                        changes_something,
                    });
                }
                _ => round.is_pinned = true,
            }
        }
        round.pairs = first..self.pairs.len();
        if round.pairs.is_empty() {
            let is_plain = !round.is_pinned && round.thoughts.is_empty();
            self.talk.extend(round.words.into_iter().filter(|_| is_plain));
        } else {
            self.rounds.push(round);
        }
    }

    fn take_user_messages(&mut self) {
        let is_asked =
            |entry: &Entry| entry.as_said().is_some_and(|said| said.role == Role::User && !said.standing);
        let is_text = |entry: &Entry| {
            entry.as_said().is_some_and(|said| said.parts.iter().all(|part| part.as_text().is_some()))
        };
        let latest = self.entries.iter().rposition(is_asked).unwrap_or_default();
        // A handover brief was fitted to the window when it was written, and stands for all that came before.
        let can_be_cut = |at: &usize| {
            let entry = &self.entries[*at];
            is_asked(entry) && is_text(entry) && !entry.trace.holds_brief()
        };
        self.asked = (0..latest).filter(can_be_cut).collect();
        let is_large = |at: &usize| self.sizes[*at].0 >= PASTED_TOKENS_MIN;
        self.pasted = self.asked.iter().copied().filter(is_large).collect();
        self.talk.retain(|at| *at < latest);
    }

    /// Gives each file one name, whatever it was called by.
    fn resolve_paths(&mut self) {
        let directories = Directories::find(self.entries, &self.pairs);
        for pair in &mut self.pairs {
            for file in &mut pair.usage.files {
                *file = directories.resolve(file);
            }
        }
    }
}
