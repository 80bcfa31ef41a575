//! The planner: what of a history is shown when not all of it fits (R06, R09, R11, R17, R20, R36).
//!
//! When everything fits, nothing is touched. When a limit is passed, a large step frees a good part at once,
//! the gentlest measure first; its [`Decisions`] stick, so that until the next step every prompt begins with
//! the bytes of the one before. Calls and results go together, batches are never split, and what was taken out
//! carries a [`Handle`] by which it can be had back.
//!
//! Invariants: a plan is a function of its input; between two steps decisions stay; arguments stay valid JSON;
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
mod paths;
mod recollect;
mod segments;
mod shell;
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
pub use handle::{Found, Handle, HandleRange, find, find_range, handles};
pub use recollect::{NoSuchLines, Wanted, lines, list, recollect, search, snippets};
pub use subjects::Subjects;
pub use tokens::{Count, Tokens};
pub(crate) use told::{Argument, Told, strings, told};
pub use tools::{ToolKind, ToolRule, ToolRules, is_same_tool};

use crate::{Entry, Report, Role, Side, Text};
use digest::Gone;
use draft::Draft;
use fill::Pool;
use std::collections::BTreeSet;
use step::Step;
use superseded::{Relations, relations};
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
        "the prompt has {least} tokens even when shortened as far as possible, and {limit} are allowed; what cannot be \
         shortened is the system prompt with {instructions}, the tools with {tools} and the latest user message with \
         {message} tokens"
    )]
    DoesNotFit {
        /// The least that it has.
        least: Tokens,
        /// What is allowed.
        limit: Tokens,
        /// What the instructions take.
        instructions: Tokens,
        /// What the tools on offer take.
        tools: Tokens,
        /// What the latest message of the user takes.
        message: Tokens,
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
        let unseen = if percent < 100 { unseen(entries, sizes) } else { Tokens(0) };
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
        let work =
            Work { planner: self, survey: &survey, relations: &relations(&survey), besides, unseen, percent };
        let draft = work.step(&carried)?;
        let (after, tools) = (draft.total() + besides, draft.tool_tokens());
        let decisions = draft.into_decisions();
        let is_step = decisions != carried;
        Ok(plan(decisions, after, tools, is_step))
    }
}

/// Everything that a step needs to know.
struct Work<'w, 'p> {
    planner: &'w Planner<'p>,
    survey: &'w Survey<'w>,
    relations: &'w Relations,
    besides: Tokens,
    unseen: Tokens,
    percent: u64,
}

/// How much of the limit a step leaves to calls and results at least, in hundredths of what the rest leaves.
const TOOL_SHARE_MIN: u64 = 35;

/// A step that keeps more of the prefix is taken if what it shows is worth so many hundredths of what a step would show
/// that decides everything anew.
const VALUE_KEPT_MIN: u64 = 70;

impl<'w> Work<'w, '_> {
    /// Takes a step: one that keeps as much of the prefix as it can without showing much less.
    fn step(&self, carried: &Decisions) -> Result<Draft<'w>, PlanError> {
        let anew = self.attempt(carried, 0)?;
        if anew.draft.is_same_as(carried) {
            return Ok(anew.draft);
        }
        let Some(place) = self.frontier(carried) else { return Ok(anew.draft) };
        let Ok(kept) = self.attempt(carried, place) else { return Ok(anew.draft) };
        let pool = &anew.pool;
        let is_good =
            kept.is_down && pool.value(&kept.draft) >= pool.value(&anew.draft) / 100 * VALUE_KEPT_MIN;
        Ok(if is_good { kept.draft } else { anew.draft })
    }

    /// Returns where what was decided before ends; nothing at a handover, where no cache is warm.
    fn frontier(&self, carried: &Decisions) -> Option<usize> {
        let last = carried.taken.last()?.entry as usize;
        let is_behind = |round: &&survey::Round| round.start(self.survey) > last;
        let round = self.survey.rounds.iter().find(is_behind).filter(|_| self.percent < 100)?;
        Some(round.start(self.survey))
    }

    fn attempt(&self, carried: &Decisions, place: usize) -> Result<Attempt<'w>, PlanError> {
        let Planner { budget, count, recall, .. } = *self.planner;
        let fills = self.percent >= 100;
        let mut draft = Draft::new(self.survey, &carried.before(place), count, recall);
        let limit = budget.limit().map(|limit| limit.less(self.besides));
        let fixed = Fixed::of(self.survey.entries, self.survey.sizes);
        if let Some(limit) = limit.filter(|_| place == 0) {
            Step::limit_talk(&mut draft, limit.less(fixed.total()), fills);
        }

        let others = draft.total().less(draft.cuttable_tokens());
        let of_prompt = limit.map(|limit| self.goal_of_prompt(limit, others));
        let of_tools = budget.tool_history.map(|most| {
            let goal = most.percent(self.percent).max(least_of_old(most, self.percent) + self.unseen);
            Goal { goal: goal + draft.pasted_tokens(), most: most.max(self.unseen) + draft.pasted_tokens() }
        });
        let goals = || of_prompt.iter().chain(&of_tools);
        let goal = goals().map(|goal| goal.goal).min().unwrap_or_default();
        let most = goals().map(|goal| goal.most).min().unwrap_or_default();

        let words = carried.words();
        let (unseen, relations) = (self.unseen, self.relations);
        let setting = step::Setting { budget, relations, goal, most, unseen, place, words: words.as_deref() };
        let mut step = Step::new(&mut draft, setting);
        let pool = step.pool();
        let is_down = step.run();
        if let Some(limit) = limit
            && !step.squeeze(limit, if fills { limit } else { limit.percent(90) })
        {
            let least = step.draft.total() + self.besides;
            let Survey { entries, sizes, .. } = *self.survey;
            let history = Measured { entries, sizes, besides: self.besides };
            return Err(history.does_not_fit(least, limit + self.besides));
        }
        Ok(Attempt { draft, pool, is_down })
    }

    /// Returns what calls and results are to take, and may take at most, where the whole prompt is limited.
    fn goal_of_prompt(&self, limit: Tokens, others: Tokens) -> Goal {
        let most = limit.less(others);
        if self.percent >= 100 {
            return Goal { goal: most, most };
        }
        let goal = limit.percent(self.percent).less(others).max(most.percent(TOOL_SHARE_MIN));
        let with_unseen = least_of_old(most, self.percent) + self.unseen;
        Goal { goal: goal.max(with_unseen.min(most)), most }
    }
}

/// What calls and results are to take, and may take at most.
struct Goal {
    goal: Tokens,
    most: Tokens,
}

/// What a step came to.
struct Attempt<'w> {
    draft: Draft<'w>,
    /// The candidates that it had.
    pool: Pool,
    /// Whether it freed as much as it was to.
    is_down: bool,
}

impl Measured<'_> {
    /// Says that a prompt of this history does not fit, and what of it cannot be shortened.
    #[must_use]
    pub fn does_not_fit(&self, least: Tokens, limit: Tokens) -> PlanError {
        let Fixed { instructions, message } = Fixed::of(self.entries, self.sizes);
        PlanError::DoesNotFit { least, limit, instructions, tools: self.besides, message }
    }

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

/// Returns what is left to the old rounds of the threshold, however large the latest one is.
const fn least_of_old(threshold: Tokens, percent: u64) -> Tokens {
    if percent < 100 { threshold.percent(percent).percent(40) } else { Tokens(0) }
}

/// Returns the size of the results that came since the model last spoke, with their calls.
fn unseen(entries: &[Entry], sizes: &[Tokens]) -> Tokens {
    let is_other = |entry: &Entry| entry.side() != Side::Assistant;
    let spoke = entries.iter().rposition(|entry| !is_other(entry)).map_or(0, |at| at + 1);
    if !entries[spoke..].iter().any(|entry| entry.as_return().is_some()) {
        return Tokens(0);
    }
    let began = entries[..spoke].iter().rposition(is_other).map_or(0, |at| at + 1);
    let is_tool = |at: &usize| entries[*at].as_return().is_some() || entries[*at].as_call().is_some();
    (began..entries.len()).filter(is_tool).map(|at| sizes[at]).sum()
}

/// The sizes of what is never shortened.
struct Fixed {
    instructions: Tokens,
    message: Tokens,
}

impl Fixed {
    fn of(entries: &[Entry], sizes: &[Tokens]) -> Self {
        let said = |at: usize| entries[at].as_said();
        let is_user = |at: &usize| said(*at).is_some_and(|said| said.role == Role::User && !said.standing);
        let is_standing =
            |at: &usize| said(*at).is_some_and(|said| said.role != Role::Assistant) && !is_user(at);
        let latest = (0..entries.len()).rfind(is_user);
        Self {
            instructions: (0..entries.len()).filter(is_standing).map(|at| sizes[at]).sum(),
            message: latest.map_or(Tokens(0), |at| sizes[at]),
        }
    }

    fn total(&self) -> Tokens {
        self.instructions + self.message
    }
}
