//! Handover: a run that changes hands after a quarter, a half and three quarters of its results.
//!
//! What the rest of the run needs, knew before the change and does not see again until it needs it, must be
//! in what is handed over.

use crate::atoms::{Atom, Facts};
use crate::policy::{Policy, State};
use crate::rolling::{Needs, Prompt, Share, is_hard};
use crate::scene::Scene;
use crate::trajectory::Kind;
use std::collections::BTreeSet;
use std::time::Instant;

/// The points, in hundredths of the results.
const POINTS: [usize; 3] = [25, 50, 75];

/// Runs with fewer results are not handed over.
const RESULTS_MIN: usize = 4;

/// What was counted over all handovers.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// How often.
    pub times: u64,
    /// Tokens of calls and results.
    pub tool_tokens: u64,
    /// Needed facts, and those that were there.
    pub all: Share,
    /// Those that were there with some of what stood around them.
    pub in_context: Share,
    /// Those that only results carried.
    pub hard: Share,
    /// Those, with some of what stood around them.
    pub hard_in_context: Share,
    /// Those of them that were there, or can be had by a handle that is.
    pub hard_recalled: Share,
    /// How long the policy took.
    pub nanos: u128,
}

/// Measures policies where a run changes hands.
#[must_use]
pub fn handover(scene: &Scene, policies: &[(String, Policy)], facts: Facts, with_words: bool) -> Vec<Handed> {
    let mut all: Vec<Handed> = policies.iter().map(|_| Handed::default()).collect();
    if scene.run.results() < RESULTS_MIN {
        return all;
    }
    let needs = Needs::of(scene, facts);
    for point in POINTS {
        let Some(end) = end_of(scene, scene.run.results() * point / 100) else { continue };
        let needed = needed_after(scene, &needs, end, with_words);
        for ((_, policy), handed) in policies.iter().zip(&mut all) {
            handed.take(scene, &needs, end, &needed, policy);
        }
    }
    all
}

/// Returns the end of what is handed over after that many results; a batch is not split.
fn end_of(scene: &Scene, results: usize) -> Option<usize> {
    let last = results.checked_sub(1)?;
    let mut end = scene.run.units.iter().position(|unit| unit.result == Some(last))? + 1;
    while scene.run.units.get(end).is_some_and(|unit| unit.kind == Kind::Result) {
        end += 1;
    }
    Some(end)
}

fn needed_after(scene: &Scene, needs: &Needs, end: usize, with_words: bool) -> BTreeSet<Atom> {
    let mut needed = BTreeSet::new();
    for (number, turn) in scene.run.turns.iter().enumerate().filter(|(_, turn)| turn.unit >= end) {
        for atom in needs.without_parts(scene, needs.named(scene, number, with_words)) {
            if !needs.is_fact_before(atom, end) {
                continue;
            }
            let seen_again = needs.carriers[&atom].iter().any(|unit| {
                (end..turn.unit).contains(unit) && matches!(scene.unit(*unit).kind, Kind::Result | Kind::User)
            });
            if !seen_again {
                needed.insert(atom);
            }
        }
    }
    needed
}

impl Handed {
    /// Adds what was counted over another run.
    pub fn merge(&mut self, other: &Self) {
        self.times += other.times;
        self.tool_tokens += other.tool_tokens;
        self.all.merge(other.all);
        self.in_context.merge(other.in_context);
        self.hard.merge(other.hard);
        self.hard_in_context.merge(other.hard_in_context);
        self.hard_recalled.merge(other.hard_recalled);
        self.nanos += other.nanos;
    }

    fn take(&mut self, scene: &Scene, needs: &Needs, end: usize, needed: &BTreeSet<Atom>, policy: &Policy) {
        let begun = Instant::now();
        let shown = policy(scene, end, &mut State::default());
        self.nanos += begun.elapsed().as_nanos();
        self.times += 1;
        let of_tools = shown.iter().filter(|(unit, _)| scene.unit(*unit).pair.is_some());
        self.tool_tokens += of_tools.map(|(unit, variant)| scene.tokens(*unit, variant)).sum::<u64>();
        let prompt = Prompt::new(scene, end, &shown);
        for atom in needed {
            let carriers = needs.before(*atom, end);
            let ok = prompt.has(&carriers, *atom, needs.facts);
            let in_context = ok && prompt.has_in_context(&carriers, *atom, needs.facts);
            self.all.add(ok);
            self.in_context.add(in_context);
            if is_hard(scene, &carriers) {
                self.hard.add(ok);
                self.hard_in_context.add(in_context);
                self.hard_recalled.add(ok || prompt.can_recall(&carriers));
            }
        }
    }
}
