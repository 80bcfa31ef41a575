//! Clearing: what a client asks to have taken out of its own history, by its own measure.
//!
//! A client may say itself what its model need not see any more, and when. What is cleared stays cleared, and
//! nothing more is until its measure is full again: so the prompt keeps its prefix here too.

use super::decision::{Decision, Decisions};
use super::draft::Draft;
use super::survey::{Pair, Survey};
use super::{Measured, Planner, Tokens, carried};
use crate::{Entry, Kind, Side, Text};

/// What a client asks to have cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clearing {
    /// Which calls and results.
    pub calls: Option<ClearCalls>,
    /// Of how many of the latest turns that have reasoning it is kept; without it, of all.
    pub thoughts_of: Option<usize>,
}

/// Which calls and results are to be cleared, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearCalls {
    /// When it is time.
    pub when: When,
    /// How many of the latest calls keep their results.
    pub keep: usize,
    /// What has to be freed by it; if that is not to be had, nothing is cleared.
    pub at_least: Tokens,
    /// The tools whose calls and results are left alone.
    pub spared: Vec<Text>,
    /// Whose arguments go with the results.
    pub inputs: Inputs,
}

/// When it is time to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// When the prompt has more tokens.
    Tokens(Tokens),
    /// When there are more calls whose results are shown.
    Calls(usize),
}

/// Whose arguments are cleared with the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Nobody's.
    None,
    /// Those of all tools.
    All,
    /// Those of these tools.
    Of(Vec<Text>),
}

/// What clearing came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// What is decided now, with what was decided before.
    pub decisions: Decisions,
    /// Whether anything was cleared that was not before, so that the prompt's prefix changes.
    pub is_step: bool,
}

/// What of a history is cleared, as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many results.
    pub calls: usize,
    /// What that freed.
    pub call_tokens: Tokens,
    /// How many turns have lost their reasoning.
    pub turns: usize,
    /// What that freed.
    pub thought_tokens: Tokens,
}

impl Planner<'_> {
    /// Clears what a client asks to have cleared; what was decided before stays decided.
    #[must_use]
    pub fn clear(&self, history: Measured<'_>, before: &Decisions, clearing: &Clearing) -> Cleared {
        let Measured { entries, sizes, besides } = history;
        if entries.len() != sizes.len() {
            return Cleared { decisions: before.clone(), is_step: false };
        }
        let carried = carried(entries, sizes, self.rules, before);
        let survey = Survey::of(entries, sizes, self.rules);
        let mut draft = Draft::new(&survey, &carried, self.count, self.recall);
        if let Some(turns) = clearing.thoughts_of {
            clear_thoughts(&mut draft, turns);
        }
        if let Some(calls) = &clearing.calls {
            calls.clear(&mut draft, besides);
        }
        let decisions = draft.into_decisions();
        let is_step = decisions != carried;
        Cleared { decisions, is_step }
    }
}

impl ClearCalls {
    fn clear(&self, draft: &mut Draft<'_>, besides: Tokens) {
        let survey = draft.survey;
        let is_shown = |draft: &Draft<'_>, pair: &Pair| {
            let result = pair.result.map(|result| draft.decision(result));
            matches!(result, Some(None | Some(Decision::Excerpt(_))))
        };
        let shown = survey.pairs.iter().filter(|pair| is_shown(draft, pair)).count();
        let is_time = match self.when {
            When::Tokens(most) => draft.total() + besides > most,
            When::Calls(most) => shown > most,
        };
        if !is_time {
            return;
        }
        let (start, total) = (draft.taken.clone(), draft.total());
        let old = survey.pairs.len().saturating_sub(self.keep);
        for pair in &survey.pairs[..old] {
            let name = pair.call.and_then(|call| survey.entries[call].as_call()).map(|call| &call.name);
            if !is_shown(draft, pair) || name.is_some_and(|name| self.spared.contains(name)) {
                continue;
            }
            if let Some(result) = pair.result {
                draft.shorten(result, pair.handle, Decision::Cleared, false);
            }
            let with_input = match &self.inputs {
                Inputs::None => false,
                Inputs::All => true,
                Inputs::Of(names) => name.is_some_and(|name| names.contains(name)),
            };
            if let Some(call) = pair.call.filter(|_| with_input) {
                draft.shorten(call, pair.handle, Decision::Cleared, false);
            }
        }
        if total.less(draft.total()) < self.at_least {
            draft.taken = start;
        }
    }
}

/// Leaves out the reasoning of all turns but the latest ones that have any.
fn clear_thoughts(draft: &mut Draft<'_>, turns: usize) {
    let thoughts = thoughts_by_turn(draft.survey.entries);
    for thought in thoughts.iter().rev().skip(turns).flatten() {
        if draft.decision(*thought).is_none() {
            draft.leave_out_entry(*thought, Decision::Cleared);
        }
    }
}

/// Returns where the reasoning of each turn stands, of turns that have any.
fn thoughts_by_turn(entries: &[Entry]) -> Vec<Vec<usize>> {
    let mut turns = vec![Vec::new()];
    for (at, entry) in entries.iter().enumerate() {
        match &entry.kind {
            Kind::Thought(_) => turns.last_mut().into_iter().for_each(|turn: &mut Vec<usize>| turn.push(at)),
            // The results of a turn's calls belong to it.
            Kind::Said(_) if entry.side() == Side::User => turns.push(Vec::new()),
            _ => {}
        }
    }
    turns.retain(|turn| !turn.is_empty());
    turns
}

impl Tally {
    /// Counts what decisions about `entries` have cleared.
    #[must_use]
    pub fn of(entries: &[Entry], decisions: &Decisions) -> Self {
        let mut tally = Self::default();
        let cleared = decisions.taken.iter().filter(|taken| taken.decision == Decision::Cleared);
        let mut thoughts = Vec::new();
        for taken in cleared {
            let freed = taken.from.less(taken.tokens);
            match entries.get(taken.entry as usize).map(|entry| &entry.kind) {
                Some(Kind::Thought(_)) => {
                    tally.thought_tokens += freed;
                    thoughts.push(taken.entry as usize);
                }
                Some(Kind::Returned(_)) => {
                    tally.calls += 1;
                    tally.call_tokens += freed;
                }
                _ => tally.call_tokens += freed,
            }
        }
        let turns = thoughts_by_turn(entries);
        let is_cleared = |turn: &&Vec<usize>| turn.iter().any(|thought| thoughts.contains(thought));
        tally.turns = turns.iter().filter(is_cleared).count();
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, result, thought, user};
    use super::super::{Budget, ToolRules};
    use super::*;
    use crate::{Report, Role};

    /// Returns a turn of that many calls, each with a result of a hundred tokens.
    fn turn(number: usize, calls: usize) -> Vec<Entry> {
        let mut entries = vec![user("go on"), thought("what next")];
        for at in 0..calls {
            let id = format!("{number}.{at}");
            let name = if at == 0 { "remember" } else { "Read" };
            entries.push(call(&id, name, &format!(r#"{{"path":"{id}","text":"{}"}}"#, "x ".repeat(40))));
            entries.push(result(&id, &"word ".repeat(100)));
        }
        entries.push(Entry::said(Role::Assistant, "done"));
        entries
    }

    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    fn cleared(entries: &[Entry], before: &Decisions, clearing: &Clearing) -> Cleared {
        let sizes: Vec<Tokens> = entries
            .iter()
            .map(|entry| match &entry.kind {
                Kind::Returned(_) => Tokens(100),
                Kind::Called(call) => Tokens(words(call.input.text())),
                _ => Tokens(3),
            })
            .collect();
        let (budget, rules) = (Budget::default(), ToolRules::default());
        let planner = Planner { budget: &budget, rules: &rules, count: &words, recall: true };
        planner.clear(Measured { entries, sizes: &sizes, besides: Tokens(0) }, before, clearing)
    }

    fn calls(when: When) -> ClearCalls {
        ClearCalls { when, keep: 2, at_least: Tokens(0), spared: Vec::new(), inputs: Inputs::None }
    }

    fn tally(entries: &[Entry], calls: ClearCalls) -> Tally {
        let clearing = Clearing { calls: Some(calls), thoughts_of: None };
        Tally::of(entries, &cleared(entries, &Decisions::default(), &clearing).decisions)
    }

    #[test]
    fn results_are_cleared_when_it_is_time_but_for_the_latest_and_the_spared() {
        let entries = turn(0, 6);
        assert_eq!(tally(&entries, calls(When::Calls(6))).calls, 0);
        assert_eq!(tally(&entries, calls(When::Calls(5))).calls, 4);
        assert_eq!(tally(&entries, calls(When::Tokens(Tokens(10_000)))).calls, 0);
        assert_eq!(tally(&entries, calls(When::Tokens(Tokens(100)))).calls, 4);
        let spared = ClearCalls { spared: vec!["remember".into()], ..calls(When::Calls(1)) };
        assert_eq!(tally(&entries, spared).calls, 3);
        let not_worth_it = ClearCalls { at_least: Tokens(1_000), ..calls(When::Calls(1)) };
        assert_eq!(tally(&entries, not_worth_it).calls, 0);
        let with_inputs = ClearCalls { inputs: Inputs::All, ..calls(When::Calls(1)) };
        assert!(
            tally(&entries, with_inputs).call_tokens > tally(&entries, calls(When::Calls(1))).call_tokens
        );
    }

    #[test]
    fn reasoning_is_kept_of_the_latest_turns_that_have_any() {
        let entries = [turn(0, 1), turn(1, 1), vec![user("no thought")], turn(2, 1)].concat();
        for (turns, left_out) in [(1, 2), (2, 1), (3, 0), (9, 0)] {
            let clearing = Clearing { calls: None, thoughts_of: Some(turns) };
            let Cleared { decisions, is_step } = cleared(&entries, &Decisions::default(), &clearing);
            assert_eq!((Tally::of(&entries, &decisions).turns, is_step), (left_out, left_out > 0));
        }
    }

    #[test]
    fn what_is_cleared_stays_so_and_nothing_more_is_until_it_is_time_again() {
        let clearing = Clearing { calls: Some(calls(When::Calls(5))), thoughts_of: None };
        let mut entries = turn(0, 6);
        let first = cleared(&entries, &Decisions::default(), &clearing);
        assert!(first.is_step);
        let stored = Decisions::from_text(&first.decisions.to_text()).unwrap();
        for (number, is_step) in [(1, false), (2, false), (3, false), (4, true)] {
            entries.extend(turn(number, 1));
            let next = cleared(&entries, &stored, &clearing);
            assert_eq!(next.is_step, is_step, "turn {number}");
        }
    }

    #[test]
    fn what_is_cleared_says_so_and_leaves_valid_arguments() {
        let entries = turn(0, 3);
        let inputs = ClearCalls { inputs: Inputs::Of(vec!["remember".into()]), ..calls(When::Calls(0)) };
        let clearing = Clearing { calls: Some(inputs), thoughts_of: Some(0) };
        let decisions = cleared(&entries, &Decisions::default(), &clearing).decisions;
        let mut report = Report::default();
        let shown = super::super::apply::apply(&entries, &decisions, true, &mut report);
        assert_eq!(shown.len(), entries.len() - 1, "the thought is gone");
        let first = shown.iter().find_map(Entry::as_call).unwrap();
        assert_eq!(first.input.text(), "{}");
        let text = shown.iter().find_map(Entry::as_return).map(|it| crate::joined_text(&it.parts)).unwrap();
        assert!(text.starts_with("[cut: 1 line; recall "), "{text}");
        assert!(report.changes.iter().all(|change| change.reason.starts_with("cleared, as the client asks")));
    }
}
