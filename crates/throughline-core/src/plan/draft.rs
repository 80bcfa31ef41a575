//! A draft: decisions in the making, with the sizes that they lead to.

use super::decision::{Decision, Decisions, Span, Taken};
use super::handle::stamp;
use super::survey::Survey;
use super::{Count, Handle, Tokens, marker};
use crate::Kind;
use std::collections::BTreeMap;

pub(super) struct Draft<'a> {
    pub survey: &'a Survey<'a>,
    pub taken: BTreeMap<usize, Taken>,
    pub span: Option<Span>,
    count: &'a dyn Count,
    pub recall: bool,
    /// Whether the prompt would not fit otherwise, so that every token counts.
    pub is_pressed: bool,
}

/// What a cut must save.
const SAVED_TOKENS_MIN: u64 = 8;

impl<'a> Draft<'a> {
    /// Returns a draft that begins with what was decided before.
    pub fn new(survey: &'a Survey<'a>, before: &Decisions, count: &'a dyn Count, recall: bool) -> Self {
        let taken = before.taken.iter().map(|taken| (taken.entry as usize, taken.clone())).collect();
        Self { survey, taken, span: before.span.clone(), count, recall, is_pressed: false }
    }

    pub fn into_decisions(self) -> Decisions {
        Decisions { taken: self.taken.into_values().collect(), span: self.span }
    }

    /// Says whether it comes to what was decided before.
    pub fn is_same_as(&self, before: &Decisions) -> bool {
        self.span == before.span && self.taken.values().eq(&before.taken)
    }

    /// Returns the size of an entry as it is shown.
    pub fn size(&self, entry: usize) -> Tokens {
        self.taken.get(&entry).map_or(self.survey.sizes[entry], |taken| taken.tokens)
    }

    pub fn decision(&self, entry: usize) -> Option<&Decision> {
        self.taken.get(&entry).map(|taken| &taken.decision)
    }

    /// Returns the size of all calls and results, with the summary that stands for the oldest.
    pub fn tool_tokens(&self) -> Tokens {
        let entries = self.survey.pairs.iter().flat_map(super::survey::Pair::entries);
        let span = self.span.as_ref().map_or(Tokens(0), |span| span.tokens);
        entries.map(|entry| self.size(entry)).sum::<Tokens>() + span
    }

    /// Returns the size of the output that the user has pasted.
    pub fn pasted_tokens(&self) -> Tokens {
        self.survey.pasted.iter().map(|entry| self.size(*entry)).sum()
    }

    /// Returns the size of everything that a step can cut: calls, results and pasted output.
    pub fn cuttable_tokens(&self) -> Tokens {
        self.tool_tokens() + self.pasted_tokens()
    }

    /// Returns the size of everything.
    pub fn total(&self) -> Tokens {
        let span = self.span.as_ref().map_or(Tokens(0), |span| span.tokens);
        (0..self.survey.sizes.len()).map(|entry| self.size(entry)).sum::<Tokens>() + span
    }

    /// Says whether a round is left out already.
    pub fn is_gone(&self, round: usize) -> bool {
        let pairs = &self.survey.rounds[round].pairs;
        let first = self.survey.pairs[pairs.start].call;
        first
            .is_some_and(|call| matches!(self.decision(call), Some(Decision::Dropped | Decision::Summarised)))
    }

    /// Shows a result or a call in another form; not if that would make it larger.
    pub fn shorten(&mut self, entry: usize, handle: Handle, decision: Decision, stale: bool) {
        let now = self.size(entry);
        let mut taken = self.taking(entry, handle, decision);
        taken.stale = stale;
        let text = match &self.survey.entries[entry].kind {
            Kind::Returned(returned) => marker::result_text(returned, &taken, self.recall),
            Kind::Called(call) => {
                let input = marker::call_input(call, &taken, self.recall);
                format!("{} {}", call.name, input.text())
            }
            Kind::Said(said) => marker::said_text(said, &taken, self.recall),
            _ => return,
        };
        taken.tokens = self.count.count(&text) + self.count.around_entry();
        // A cut that saves next to nothing is not worth its mark, unless there is no other way or the client asks for it.
        let is_wanted = self.is_pressed || taken.decision == Decision::Cleared;
        let saves = if is_wanted { 1 } else { SAVED_TOKENS_MIN };
        if taken.tokens + Tokens(saves) <= now {
            self.taken.insert(entry, taken);
        }
    }

    /// Leaves out a round with its reasoning; one that must stay is masked instead.
    pub fn leave_out(&mut self, round: usize, decision: &Decision) {
        let round = &self.survey.rounds[round];
        if round.is_pinned {
            for pair in &self.survey.pairs[round.pairs.clone()] {
                if let Some(result) = pair.result {
                    self.shorten(result, pair.handle, Decision::Masked, false);
                }
            }
            return;
        }
        for pair in &self.survey.pairs[round.pairs.clone()] {
            for entry in pair.entries() {
                let taken = self.taking(entry, pair.handle, decision.clone());
                self.taken.insert(entry, taken);
            }
        }
        for entry in round.thoughts.iter().copied() {
            self.leave_out_entry(entry, decision.clone());
        }
    }

    /// Leaves out something said or thought.
    pub fn leave_out_entry(&mut self, entry: usize, decision: Decision) {
        let handle = Handle::of(None, self.survey.entries.get(entry));
        let taken = self.taking(entry, handle, decision);
        self.taken.insert(entry, taken);
    }

    /// Sets the summary of everything that is left out.
    pub fn set_span(&mut self, text: String) {
        let is_in = |taken: &&Taken| matches!(taken.decision, Decision::Summarised | Decision::Dropped);
        let Some(first) = self.taken.values().find(is_in).map(|taken| taken.entry) else { return };
        let covers = self.taken.values().filter(is_in).count();
        let tokens = self.count.count(&text) + self.count.around_entry();
        let covers = u32::try_from(covers).unwrap_or(u32::MAX);
        self.span = Some(Span { at: first, covers, text: text.into(), tokens });
    }

    /// Returns what an entry takes beside its text.
    pub fn around_entry(&self) -> u64 {
        self.count.around_entry().0
    }

    /// Returns the handle of something said.
    pub fn handle(&self, entry: usize) -> Handle {
        Handle::of(None, self.survey.entries.get(entry))
    }

    fn taking(&self, entry: usize, handle: Handle, decision: Decision) -> Taken {
        Taken {
            entry: u32::try_from(entry).unwrap_or(u32::MAX),
            stamp: stamp(&self.survey.entries[entry]),
            handle,
            decision,
            stale: false,
            from: self.survey.sizes[entry],
            tokens: Tokens(0),
        }
    }
}
