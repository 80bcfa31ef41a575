//! Throughline's own planner as a policy, given what the others are given: the units, their sizes, a budget.

use crate::policy::State;
use crate::scene::{Scene, Shown, Variant, count};
use crate::trajectory::{Kind, Unit};
use std::collections::BTreeSet;
use throughline_core::plan::{
    Budget, Decision, Found, HandleRange, Measured, Plan, Planner, Policy, Tokens, ToolRules, Wanted,
    find_range, recollect,
};
use throughline_core::{
    Call, Entry, Input, Kind as EntryKind, Ledger, Outcome, Part, Report, Return, Role, joined_text,
};

/// What the declaration of `recall` takes.
const RECALL_TOKENS: u64 = 150;

/// The word that a handle stands behind.
const HANDLE_MARK: &str = "recall ";

/// Returns units as entries, one for one.
pub fn entries(units: &[Unit]) -> Vec<Entry> {
    units.iter().map(entry).collect()
}

fn entry(unit: &Unit) -> Entry {
    let text = unit.text.as_str();
    match unit.kind {
        Kind::System => Entry::said(Role::System, text),
        Kind::User => Entry::said(Role::User, text),
        Kind::Assistant => Entry::said(Role::Assistant, text),
        Kind::Call => Entry::new(EntryKind::Called(Call {
            id: unit.id.as_str().into(),
            item_id: None,
            name: unit.name.as_str().into(),
            namespace: None,
            input: Input::Arguments(text.into()),
        })),
        Kind::Result => Entry::new(EntryKind::Returned(Return {
            call_id: Some(unit.id.as_str().into()),
            item_id: None,
            name: None,
            parts: vec![Part::text(text)],
            outcome: Outcome::Ok,
            freeform: false,
        })),
    }
}

/// Returns what Throughline shows.
///
/// The budget is for the whole prompt, and the tool `recall` is charged to it.
pub fn show(scene: &Scene, end: usize, state: &mut State, budget: u64, once: bool) -> Vec<Shown> {
    let entries = &scene.entries[..end];
    let sizes: Vec<Tokens> = (0..end).map(|unit| Tokens(scene.full(unit))).collect();
    // What fits without the tool is sent without it.
    let fits = sizes.iter().copied().sum::<Tokens>() <= Tokens(budget);
    let besides = Tokens(if fits { 0 } else { RECALL_TOKENS });
    let history = Measured { entries, sizes: &sizes, besides };
    let is_other = |unit: &usize| !matches!(scene.unit(*unit).kind, Kind::Call | Kind::Result);
    let prompt = Some(Tokens(budget));
    let budget = Budget { prompt, tool_history: None, policy: Policy::Default, ..Budget::default() };
    let planner = Planner { budget: &budget, rules: &ToolRules::default(), count: &count, recall: true };
    let plan = if once { planner.hand_over(history) } else { planner.plan(history, &state.decisions) };
    // Without a plan nothing would be sent at all.
    let Ok(plan) = plan else {
        state.refused += 1;
        return (0..end).filter(is_other).map(|unit| (unit, Variant::Full)).collect();
    };
    let shown = shown(scene, end, &plan);
    state.decisions = plan.decisions;
    shown
}

/// Says how a plan shows each unit.
fn shown(scene: &Scene, end: usize, plan: &Plan) -> Vec<Shown> {
    let mut applied = plan.apply(&scene.entries[..end], &mut Report::default()).into_iter();
    let span = plan.decisions.span();
    let mut shown = Vec::new();
    for unit in 0..end {
        if span.is_some_and(|span| span.at as usize == unit)
            && let Some(EntryKind::Summarised(summary)) = applied.next().map(|entry| entry.kind)
        {
            shown.push((unit, Variant::Told(summary.text.as_str().into())));
        }
        let taken = plan.decisions.about(unit);
        if taken.is_some_and(|taken| matches!(taken.decision, Decision::Dropped | Decision::Summarised)) {
            continue;
        }
        let Some(entry) = applied.next() else { break };
        let variant = match (taken, &entry.kind) {
            (Some(_), EntryKind::Returned(returned)) => {
                Variant::Shown(joined_text(&returned.parts).as_str().into())
            }
            (Some(_), EntryKind::Called(call)) => Variant::Shown(call.input.text().as_str().into()),
            (Some(_), EntryKind::Said(said)) => Variant::Shown(joined_text(&said.parts).as_str().into()),
            _ => Variant::Full,
        };
        shown.push((unit, variant));
    }
    shown
}

/// Returns what a recall of a unit gives back that looks for `name`.
pub fn recollected(scene: &Scene, end: usize, unit: usize, name: &str) -> Option<String> {
    let entries = &scene.entries[..end];
    let ledger = Ledger::of(entries);
    let pair = ledger.pair_of(unit)?;
    let found = Found { call: Some(pair.call), result: pair.result };
    let wanted = Wanted { words: Wanted::words_of(name), ..Wanted::default() };
    recollect(found, entries, &wanted).ok().map(|parts| joined_text(&parts).to_string())
}

/// Returns the units that handles in a prompt lead to, found as `recall` finds them.
pub fn recallable(scene: &Scene, end: usize, shown: &[Shown]) -> BTreeSet<usize> {
    let entries = &scene.entries[..end];
    let mut found = BTreeSet::new();
    for (_, variant) in shown {
        let (Variant::Shown(text) | Variant::Told(text)) = variant else { continue };
        for behind in text.split(HANDLE_MARK).skip(1) {
            let named = behind.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).next();
            let Some(range) = named.and_then(HandleRange::parse) else { continue };
            found.extend(find_range(range, entries).into_iter().flat_map(|found| [found.call, found.result]));
        }
    }
    found.into_iter().flatten().collect()
}
