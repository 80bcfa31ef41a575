//! The planner: what of a history is shown when not all of it fits (R06, R09, R11, R17, R20, R36).
//!
//! When everything fits, nothing is touched. When a limit is passed, a large step frees a good part at once,
//! the gentlest measure first; its [`Decisions`] stick, so that until the next step every prompt begins with
//! the bytes of the one before. Calls and results go together, batches are never split, and what was taken out
//! carries a [`Handle`] by which it can be had back.
//!
//! Invariants: a plan is a function of its input; decisions only ever go further; arguments stay valid JSON;
//! a plan that does not fit is an error, never a prompt.

mod apply;
mod arguments;
mod budget;
mod clear;
mod decision;
mod digest;
mod draft;
mod fill;
mod handle;
mod identifiers;
mod marker;
mod segments;
mod step;
mod subjects;
mod superseded;
mod survey;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tokens;
mod told;
mod tools;

pub use budget::{Budget, Policy};
pub use clear::{ClearCalls, Cleared, Clearing, Inputs, Tally, When};
pub use decision::{Decision, Decisions, DecisionsError, Span, Taken};
pub use handle::{Found, Handle, HandleRange, find, find_range};
pub use subjects::Subjects;
pub use tokens::{Count, Tokens};
pub(crate) use told::{Argument, Told, strings, told};
pub use tools::{ToolKind, ToolRule, ToolRules, is_same_tool};

use crate::{Entry, Report, Side, Text};
use digest::Gone;
use draft::Draft;
use std::collections::BTreeSet;
use step::Step;
use survey::Survey;

/// Plans what is shown.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    /// How much there may be.
    pub budget: &'a Budget,
    /// What the tools are.
    pub rules: &'a ToolRules,
    /// Counts texts that come into being.
    pub count: &'a dyn Count,
    /// Whether the model can have back what was taken out, and is told so.
    pub recall: bool,
}

/// A history with its sizes.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The entries, in their order.
    pub entries: &'a [Entry],
    /// The size of each.
    pub sizes: &'a [Tokens],
    /// What the prompt has besides: the tools on offer, the dialect's own overhead.
    pub besides: Tokens,
}

/// What is shown of a history, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What was decided, now and before; to be handed in with the next request.
    pub decisions: Decisions,
    /// The size of the prompt as it came.
    pub before: Tokens,
    /// The size of the prompt as planned.
    pub after: Tokens,
    /// How much of that are calls and results.
    pub tool_history: Tokens,
    /// Whether this plan took a large step, so that the prompt's prefix changes.
    pub is_step: bool,
    recall: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Even with everything taken out that may be, the prompt is too large.
    #[error(
        "the prompt has {least} tokens even when shortened as far as possible, and {limit} are allowed; \
         {fixed} of them are instructions, the user's words and tools, which are never shortened"
    )]
    DoesNotFit {
        /// The least that it has.
        least: Tokens,
        /// What is allowed.
        limit: Tokens,
        /// What is never shortened.
        fixed: Tokens,
    },
    /// The prompt is too large, and may not be shortened.
    #[error("the prompt has {tokens} tokens, {limit} are allowed, and nothing of it may be shortened")]
    Forbidden {
        /// What it has.
        tokens: Tokens,
        /// What is allowed.
        limit: Tokens,
    },
    /// There is not one size for each entry.
    #[error("{sizes} sizes were given for {entries} entries")]
    Sizes {
        /// How many sizes there are.
        sizes: usize,
        /// How many entries there are.
        entries: usize,
    },
}

/// Tells what the calls of `entries` did, by rule and in about that many characters: the digest that stands for
/// rounds which are left out.
#[must_use]
pub fn digest(entries: &[Entry], rules: &ToolRules, chars_max: usize) -> String {
    let sizes = vec![Tokens::default(); entries.len()];
    let survey = Survey::of(entries, &sizes, rules);
    let pairs: Vec<usize> = (0..survey.pairs.len()).collect();
    digest::digest(&survey, &Gone { summarised: pairs, repeated: 0, range: None }, chars_max)
}

impl Planner<'_> {
    /// Plans the next request of a conversation.
    ///
    /// # Errors
    /// When the prompt cannot be made to fit, or may not be shortened.
    pub fn plan(&self, history: Measured<'_>, before: &Decisions) -> Result<Plan, PlanError> {
        if history.entries.len() != history.sizes.len() {
            return Err(history.mismatch());
        }
        let carried = carried(history.entries, history.sizes, self.rules, before);
        self.planned(history, carried, self.budget.target_percent)
    }

    /// Plans a handover: the receiving backend has nothing in its cache, so the whole budget is filled anew.
    ///
    /// # Errors
    /// When the prompt cannot be made to fit, or may not be shortened.
    pub fn hand_over(&self, history: Measured<'_>) -> Result<Plan, PlanError> {
        self.planned(history, Decisions::default(), 100)
    }

    fn planned(&self, history: Measured<'_>, carried: Decisions, percent: u64) -> Result<Plan, PlanError> {
        let Measured { entries, sizes, besides } = history;
        if entries.len() != sizes.len() {
            return Err(history.mismatch());
        }
        let sums = Sums::of(entries, sizes, &carried);
        // At a handover everything counts: the limit is what the other backend takes.
        let unseen = if percent < 100 { unseen(entries, sizes, &carried) } else { Tokens(0) };
        let total = sums.total + besides;
        let limit = self.budget.limit();
        let plan = |decisions, after, tool_history, is_step| Plan {
            decisions,
            before: sizes.iter().copied().sum::<Tokens>() + besides,
            after,
            tool_history,
            is_step,
            recall: self.recall,
        };
        let is_over = limit.is_some_and(|limit| total > limit)
            || self.budget.tool_history.is_some_and(|most| {
                sums.tools > most && sums.tools.less(unseen) > least_of_old(most, percent)
            });
        if !is_over {
            return Ok(plan(carried, total, sums.tools, false));
        }
        if self.budget.policy == Policy::Off {
            return match limit.filter(|limit| total > *limit) {
                Some(limit) => Err(PlanError::Forbidden { tokens: total, limit }),
                None => Ok(plan(carried, total, sums.tools, false)),
            };
        }
        let survey = Survey::of(entries, sizes, self.rules);
        let mut draft = Draft::new(&survey, &carried, self.count, self.recall);
        let others = total.less(sums.tools);
        let of_prompt = limit.map(|limit| limit.less(others)).map(|most| {
            let with_unseen = least_of_old(most, percent) + unseen;
            most.percent(percent).max(with_unseen.min(most))
        });
        let of_tools = self
            .budget
            .tool_history
            .map(|most| most.percent(percent).max(least_of_old(most, percent) + unseen));
        let goal = of_prompt.into_iter().chain(of_tools).min().unwrap_or_default();
        let mut step = Step::new(&mut draft, self.budget, goal, unseen);
        step.run();
        if let Some(limit) = limit
            && !step.squeeze(limit.less(besides), target(limit.less(besides), percent))
        {
            let least = step.draft.total() + besides;
            return Err(PlanError::DoesNotFit { least, limit, fixed: fixed(entries, sizes) + besides });
        }
        let (after, tools) = (draft.total() + besides, draft.tool_tokens());
        let decisions = draft.into_decisions();
        let is_step = decisions != carried;
        Ok(plan(decisions, after, tools, is_step))
    }
}

impl Measured<'_> {
    const fn mismatch(&self) -> PlanError {
        PlanError::Sizes { sizes: self.sizes.len(), entries: self.entries.len() }
    }
}

impl Plan {
    /// Says whether everything is shown as it came.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.decisions.is_empty()
    }

    /// Returns the entries as they are shown; they must be those that the plan was made of.
    #[must_use]
    pub fn apply(&self, entries: &[Entry], report: &mut Report) -> Vec<Entry> {
        if self.is_untouched() {
            return entries.to_vec();
        }
        apply::apply(entries, &self.decisions, self.recall, report)
    }

    /// Returns what was decided about each entry that is not shown as it came, and why.
    pub fn reasons(&self) -> impl Iterator<Item = (&Taken, Text)> {
        self.decisions.taken.iter().map(|taken| (taken, taken.reason()))
    }
}

impl Taken {
    /// Returns why the entry is not shown as it came.
    #[must_use]
    pub fn reason(&self) -> Text {
        apply::reason(self)
    }
}

/// The sizes of a history as decisions show it.
struct Sums {
    total: Tokens,
    tools: Tokens,
}

impl Sums {
    fn of(entries: &[Entry], sizes: &[Tokens], decisions: &Decisions) -> Self {
        let span = decisions.span.as_ref().map_or(Tokens(0), |span| span.tokens);
        let mut sums = Self { total: span, tools: span };
        let mut taken = decisions.taken.iter().peekable();
        for (at, (entry, size)) in entries.iter().zip(sizes).enumerate() {
            let taken = taken.next_if(|taken| taken.entry as usize == at);
            let size = taken.map_or(*size, |taken| taken.tokens);
            sums.total += size;
            if entry.as_call().is_some() || entry.as_return().is_some() {
                sums.tools += size;
            }
        }
        sums
    }
}

/// Returns those decisions that are about what `entries` say.
///
/// A client that rewrote its history from some point on has made those about the rest void.
fn carried(entries: &[Entry], sizes: &[Tokens], rules: &ToolRules, before: &Decisions) -> Decisions {
    let holds = |taken: &&Taken| {
        entries.get(taken.entry as usize).is_some_and(|entry| handle::stamp(entry) == taken.stamp)
    };
    let kept = before.taken.iter().take_while(holds).count();
    if kept == before.taken.len() {
        return before.clone();
    }
    let mut taken = before.taken[..kept].to_vec();
    let goes = |taken: &Taken| matches!(taken.decision, Decision::Dropped | Decision::Summarised);
    let gone: BTreeSet<usize> =
        taken.iter().filter(|taken| goes(taken)).map(|taken| taken.entry as usize).collect();
    let survey = Survey::of(entries, sizes, rules);
    // A round that is half left out is shown whole again.
    let mut halves = BTreeSet::new();
    for round in &survey.rounds {
        let of_pairs = survey.pairs[round.pairs.clone()].iter().flat_map(survey::Pair::entries);
        let all: Vec<usize> = of_pairs.chain(round.thoughts.iter().copied()).collect();
        if round.is_pinned || !all.iter().all(|entry| gone.contains(entry)) {
            halves.extend(all.into_iter().chain(round.words.iter().copied()));
        }
    }
    taken.retain(|taken| !(goes(taken) && halves.contains(&(taken.entry as usize))));
    let is_gone = taken.iter().any(goes);
    Decisions { taken, span: before.span.clone().filter(|_| is_gone) }
}

/// Returns down to what a prompt is squeezed that is over its limit.
const fn target(limit: Tokens, percent: u64) -> Tokens {
    if percent < 100 { limit.percent(90) } else { limit }
}

/// Returns what is left to the old rounds of the threshold, however large the latest one is.
const fn least_of_old(threshold: Tokens, percent: u64) -> Tokens {
    if percent < 100 { threshold.percent(percent).percent(40) } else { Tokens(0) }
}

/// Returns the size of the results that came since the model last spoke, with their calls, as they are shown.
fn unseen(entries: &[Entry], sizes: &[Tokens], decisions: &Decisions) -> Tokens {
    let is_other = |entry: &Entry| entry.side() != Side::Assistant;
    let spoke = entries.iter().rposition(|entry| !is_other(entry)).map_or(0, |at| at + 1);
    if !entries[spoke..].iter().any(|entry| entry.as_return().is_some()) {
        return Tokens(0);
    }
    let began = entries[..spoke].iter().rposition(is_other).map_or(0, |at| at + 1);
    let is_tool = |at: &usize| entries[*at].as_return().is_some() || entries[*at].as_call().is_some();
    let size = |at: usize| decisions.about(at).map_or(sizes[at], |taken| taken.tokens);
    (began..entries.len()).filter(is_tool).map(size).sum()
}

/// Returns the size of what is never shortened.
fn fixed(entries: &[Entry], sizes: &[Tokens]) -> Tokens {
    let is_fixed = |entry: &Entry| {
        let said = entry.as_said();
        said.is_some_and(|said| said.role != crate::Role::Assistant)
    };
    entries.iter().zip(sizes).filter(|(entry, _)| is_fixed(entry)).map(|(_, size)| *size).sum()
}
