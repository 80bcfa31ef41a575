//! What the record says was decided about the history of a conversation.
//!
//! Each step of compaction is a row that says only what it adds to the step before it. Put together they are decisions
//! again: for each backend and model, and for each branch of the history, since two branches are shortened each for
//! itself. Nothing is derived anew: whoever reads the same rows goes on with the same bytes.

use std::collections::BTreeMap;
use throughline_core::plan::Decisions;
use throughline_core::{Entry, Text};
use throughline_store::{CompactionStep, StepId};

/// The decisions of a conversation, after each step.
#[derive(Clone, Debug, Default)]
pub struct CompactionRecord {
    /// In the order in which the steps were taken.
    states: Vec<RecordedDecisions>,
}

/// What was decided up to a step.
#[derive(Clone, Debug)]
pub struct RecordedDecisions {
    /// The step.
    pub step: StepId,
    /// All that was decided.
    pub decisions: Decisions,
    /// The words of a model for what this step has put into the digest, if there are any.
    pub summary: Option<Text>,
    backend: Text,
    model: Text,
}

impl CompactionRecord {
    /// Puts the steps of a conversation together. One that cannot be read is left out, with all that follow it.
    #[must_use]
    pub fn from_steps(steps: Vec<CompactionStep>) -> Self {
        let mut states: Vec<RecordedDecisions> = Vec::new();
        let mut by_step: BTreeMap<StepId, usize> = BTreeMap::new();
        for step in steps {
            let before = step.follows.as_ref().map(|follows| by_step.get(follows).copied());
            let before = match before {
                Some(None) => continue,
                before => before.flatten(),
            };
            if let (Some(summary), Some(at)) = (&step.summary, before) {
                states[at].summary = Some(summary.clone());
                continue;
            }
            let added = match Decisions::from_text(&step.decisions) {
                Ok(added) => added,
                Err(error) => {
                    let exchange = step.id.exchange.as_str();
                    tracing::warn!(%error, exchange, "a step of compaction cannot be read; it is decided anew");
                    continue;
                }
            };
            let mut decisions = before.map_or_else(Decisions::default, |at| states[at].decisions.clone());
            decisions.add(added);
            by_step.insert(step.id.clone(), states.len());
            let CompactionStep { id, backend, model, .. } = step;
            states.push(RecordedDecisions { step: id, decisions, summary: None, backend, model });
        }
        Self { states }
    }

    /// Says whether nothing was decided.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns what was decided up to a step.
    #[must_use]
    pub fn after(&self, step: &StepId) -> Option<&RecordedDecisions> {
        self.states.iter().find(|state| state.step == *step)
    }

    /// Returns what was decided for a backend and model about the branch that `entries` are: the decisions of which
    /// most are about them, and of several such the latest.
    #[must_use]
    pub fn for_branch(&self, backend: &str, model: &str, entries: &[Entry]) -> Option<&RecordedDecisions> {
        let states = self.states.iter().filter(|state| state.backend == backend && state.model == model);
        let matching = states.map(|state| {
            let count = state.decisions.matching(entries);
            (count, count == state.decisions.taken().len(), state)
        });
        let best = matching.max_by_key(|(count, is_whole, _)| (*count, *is_whole));
        best.filter(|(count, ..)| *count > 0).map(|(.., state)| state)
    }
}
