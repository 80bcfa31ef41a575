//! The baselines: what is done elsewhere, in its plainest form.
//!
//! A policy is asked before each step what of the units so far is shown, and has a state that lasts from step to
//! step. Names and figures are those of the reference, so that tables can be laid side by side.

use crate::excerpt::{Known, skim};
use crate::ladder;
use crate::scene::{Scene, Shown, Variant};
use crate::throughline;
use crate::trajectory::Kind;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use throughline_core::plan::Decisions;

/// What a policy remembers from step to step.
#[derive(Debug, Default)]
pub struct State {
    /// How units are shown that are not shown as they came.
    pub levels: BTreeMap<usize, Variant>,
    /// The calls that are left out with their results.
    pub gone: BTreeSet<usize>,
    /// What Throughline's planner has decided.
    pub decisions: Decisions,
    /// How often it found no prompt that fits.
    pub refused: u64,
}

/// Decides what of the units before a step is shown.
pub type Policy = Box<dyn Fn(&Scene, usize, &mut State) -> Vec<Shown>>;

/// What a budget is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Calls and results.
    #[default]
    Tools,
    /// The whole prompt.
    Prompt,
}

/// Returns all policies by name, the budgeted ones for each budget; `once` is for a handover, where the whole
/// budget is filled, instead of going well below it so that the next cut is far away.
#[must_use]
pub fn all(budgets: &[u64], scope: Scope, once: bool) -> Vec<(String, Policy)> {
    let mut all = fixed();
    for budget in budgets {
        for name in NAMES {
            let budget = *budget;
            let policy: Policy = Box::new(move |scene, end, state| {
                let left = match scope {
                    Scope::Tools => budget,
                    Scope::Prompt => budget.saturating_sub(scene.words_tokens(end)),
                };
                match (name, scope) {
                    ("throughline", Scope::Prompt) => throughline::show(scene, end, state, budget, once),
                    ("throughline", Scope::Tools) => {
                        throughline::show(scene, end, state, budget + scene.words_tokens(end), once)
                    }
                    _ => budgeted(left, once)
                        .into_iter()
                        .find(|(known, _)| *known == name)
                        .map_or_else(Vec::new, |(_, policy)| policy(scene, end, state)),
                }
            });
            all.push((format!("{name} @{budget}"), policy));
        }
    }
    all
}

/// The policies that have a budget.
const NAMES: [&str; 10] = [
    "drop-oldest",
    "fair head+tail",
    "mask-oldest",
    "clear_tool_uses k=3",
    "ladder+digest",
    "skim excerpts",
    "skim excerpts+args",
    "dedup+skim+args",
    "dedup+linededup+skim+args",
    "throughline",
];

fn fixed() -> Vec<(String, Policy)> {
    let named: [(&str, Policy); 13] = [
        ("keep-all", Box::new(|_, end, _| (0..end).map(|unit| (unit, Variant::Full)).collect())),
        ("text-only (drop tools)", Box::new(|scene, end, _| keep(scene, end, &BTreeSet::new()))),
        ("keep-last-6 pairs", last(6)),
        ("keep-last-10 pairs", last(10)),
        ("head 2000 chars", results(Variant::Head(2000))),
        ("head+tail 2000", results(Variant::HeadTail(2000))),
        ("head+tail 800", results(Variant::HeadTail(800))),
        ("dedup seed rules", dedup(0)),
        ("dedup exact call", dedup(1)),
        ("line dedup (older->newer)", Box::new(|scene, end, _| line_dedup(scene, end))),
        ("mask all but 3", mask(3)),
        ("mask all but 5", mask(5)),
        ("mask all but 10", mask(10)),
    ];
    named.into_iter().map(|(name, policy)| (name.to_owned(), policy)).collect()
}

fn budgeted(budget: u64, once: bool) -> Vec<(&'static str, Policy)> {
    let target = if once { 1.0 } else { 0.6 };
    let plain = Skim { budget, target, share: 0.0, arguments: false, dedup: false, lines: false };
    let skimming = |skim: Skim| -> Policy { Box::new(move |scene, end, state| skim.show(scene, end, state)) };
    let whole = Skim { share: 0.4, arguments: true, dedup: true, ..plain };
    vec![
        ("drop-oldest", drop_oldest(budget)),
        ("fair head+tail", fair(budget)),
        (
            "mask-oldest",
            Box::new(move |scene, end, state| ladder::mask_oldest(scene, end, state, budget, target)),
        ),
        ("clear_tool_uses k=3", Box::new(move |scene, end, state| clear(scene, end, state, budget))),
        (
            "ladder+digest",
            Box::new(move |scene, end, state| ladder::ladder(scene, end, state, budget, target)),
        ),
        ("skim excerpts", skimming(plain)),
        ("skim excerpts+args", skimming(Skim { arguments: true, ..plain })),
        ("dedup+skim+args", skimming(whole)),
        ("dedup+linededup+skim+args", skimming(Skim { lines: true, ..whole })),
    ]
}

/// Returns everything but the calls, and their results, that are not in `kept`.
fn keep(scene: &Scene, end: usize, kept: &BTreeSet<usize>) -> Vec<Shown> {
    let is_kept = |unit: &usize| {
        let unit = scene.unit(*unit);
        !matches!(unit.kind, Kind::Call | Kind::Result) || unit.pair.is_some_and(|pair| kept.contains(&pair))
    };
    (0..end).filter(is_kept).map(|unit| (unit, Variant::Full)).collect()
}

fn last(count: usize) -> Policy {
    Box::new(move |scene, end, _| {
        let kept = scene.pairs(end).into_iter().rev().take(count).collect();
        keep(scene, end, &kept)
    })
}

fn results(variant: Variant) -> Policy {
    Box::new(move |scene, end, _| {
        let shown = |unit: usize| {
            let is_result = scene.unit(unit).kind == Kind::Result;
            (unit, if is_result { variant.clone() } else { Variant::Full })
        };
        (0..end).map(shown).collect()
    })
}

fn mask(count: usize) -> Policy {
    Box::new(move |scene, end, _| {
        let kept: BTreeSet<usize> = scene.of_kind(end, Kind::Result).rev().take(count).collect();
        let masked = |unit: usize| scene.unit(unit).kind == Kind::Result && !kept.contains(&unit);
        (0..end).map(|unit| (unit, if masked(unit) { Variant::Mask } else { Variant::Full })).collect()
    })
}

fn dedup(which: usize) -> Policy {
    Box::new(move |scene, end, _| {
        let gone = superseded(scene, end, which..which + 1);
        without(scene, end, &gone, &BTreeMap::new())
    })
}

/// Returns the calls that a later one repeats, by some of the ways to tell.
pub fn superseded(scene: &Scene, end: usize, which: std::ops::Range<usize>) -> BTreeSet<usize> {
    let mut latest: HashMap<&str, Option<usize>> = HashMap::new();
    let calls = || scene.of_kind(end, Kind::Call).map(|unit| scene.unit(unit));
    let keys = |unit: &'_ crate::trajectory::Unit| unit.keys[which.clone()].to_vec();
    for unit in calls() {
        for key in unit.keys[which.clone()].iter().flatten() {
            latest.insert(key, unit.pair);
        }
    }
    let is_repeated = |unit: &&crate::trajectory::Unit| {
        keys(unit).iter().flatten().any(|key| latest.get(key.as_str()).is_some_and(|pair| *pair != unit.pair))
    };
    calls().filter(is_repeated).filter_map(|unit| unit.pair).collect()
}

/// Returns everything but what is gone, as it is to be shown.
pub fn without(
    scene: &Scene,
    end: usize,
    gone: &BTreeSet<usize>,
    levels: &BTreeMap<usize, Variant>,
) -> Vec<Shown> {
    let is_there = |unit: &usize| scene.unit(*unit).pair.is_none_or(|pair| !gone.contains(&pair));
    let shown = |unit: usize| (unit, levels.get(&unit).cloned().unwrap_or(Variant::Full));
    (0..end).filter(is_there).map(shown).collect()
}

fn drop_oldest(budget: u64) -> Policy {
    Box::new(move |scene, end, _| {
        let mut sizes: HashMap<usize, u64> = HashMap::new();
        for unit in 0..end {
            if let Some(pair) = scene.unit(unit).pair {
                *sizes.entry(pair).or_default() += scene.full(unit);
            }
        }
        let (mut kept, mut total) = (BTreeSet::new(), 0);
        for pair in scene.pairs(end).into_iter().rev() {
            if total + sizes[&pair] > budget && !kept.is_empty() {
                break;
            }
            kept.insert(pair);
            total += sizes[&pair];
        }
        keep(scene, end, &kept)
    })
}

fn fair(budget: u64) -> Policy {
    const CAPS: [usize; 12] = [64000, 32000, 16000, 8000, 4000, 2000, 1000, 500, 250, 120, 60, 20];
    Box::new(move |scene, end, _| {
        let calls: u64 = scene.of_kind(end, Kind::Call).map(|unit| scene.full(unit)).sum();
        let fits = |cap: &usize| {
            let cut = |unit| scene.tokens(unit, &Variant::HeadTail(*cap));
            calls + scene.of_kind(end, Kind::Result).map(cut).sum::<u64>() <= budget
        };
        let cap = CAPS.into_iter().find(fits).unwrap_or(20);
        results(Variant::HeadTail(cap))(scene, end, &mut State::default())
    })
}

fn clear(scene: &Scene, end: usize, state: &mut State, budget: u64) -> Vec<Shown> {
    const KEPT: usize = 3;
    let tools = (0..end).filter(|unit| scene.unit(*unit).pair.is_some());
    let shown = |state: &State, unit: usize| state.levels.get(&unit).cloned().unwrap_or(Variant::Full);
    let total: u64 = tools.map(|unit| scene.tokens(unit, &shown(state, unit))).sum();
    if total > budget {
        let mut old: Vec<usize> = scene.of_kind(end, Kind::Result).collect();
        old.truncate(old.len().saturating_sub(KEPT));
        let new = |unit: &&usize| !state.levels.contains_key(*unit);
        let gain: u64 =
            old.iter().filter(new).map(|unit| scene.full(*unit) - scene.tokens(*unit, &Variant::Mask)).sum();
        if gain > 0 {
            state.levels.extend(old.into_iter().map(|unit| (unit, Variant::Mask)));
        }
    }
    without(scene, end, &BTreeSet::new(), &state.levels)
}

/// Leaves out the lines of older results that a newer one repeats.
fn line_dedup(scene: &Scene, end: usize) -> Vec<Shown> {
    let (mut seen, mut levels) = (HashSet::new(), BTreeMap::new());
    for (age, unit) in scene.of_kind(end, Kind::Result).rev().enumerate() {
        let segments = scene.segments(unit);
        let is_long = |at: usize| crate::python::len(&segments[at].text) >= 20;
        if age >= 1 {
            let is_new = |at: &usize| !is_long(*at) || !seen.contains(&segments[*at].text);
            let new: Rc<[usize]> = (0..segments.len()).filter(is_new).collect();
            let variant = Variant::Excerpt { cap: 0, segments: Rc::clone(&new) };
            if new.len() < segments.len() && scene.tokens(unit, &variant) < scene.full(unit) {
                levels.insert(unit, variant);
            }
        }
        seen.extend((0..segments.len()).filter(|at| is_long(*at)).map(|at| segments[at].text.clone()));
    }
    without(scene, end, &BTreeSet::new(), &levels)
}

/// The prototype: excerpts under caps that fill the budget, with or without what else it can do.
#[derive(Clone, Copy, Debug)]
struct Skim {
    budget: u64,
    target: f64,
    /// The share of the room that the newest results may fill as they came; without it, the newest three.
    share: f64,
    arguments: bool,
    dedup: bool,
    lines: bool,
}

/// The units that a step of the prototype works on.
struct Parts {
    old: Vec<usize>,
    new: Vec<usize>,
}

const CAPS: [u64; 14] = [8000, 4000, 2000, 1000, 700, 500, 350, 250, 180, 120, 80, 50, 30, 0];

impl Skim {
    fn show(self, scene: &Scene, end: usize, state: &mut State) -> Vec<Shown> {
        if self.total(scene, end, state) > self.budget {
            self.step(scene, end, state);
        }
        without(scene, end, &state.gone, &state.levels)
    }

    fn goal(self) -> f64 {
        float(self.budget) * self.target
    }

    fn total(self, scene: &Scene, end: usize, state: &State) -> u64 {
        let is_there = |pair: usize| !state.gone.contains(&pair);
        let counted = (0..end).filter(|unit| scene.unit(*unit).pair.is_some_and(is_there));
        counted.map(|unit| size(scene, state, unit)).sum()
    }

    fn step(self, scene: &Scene, end: usize, state: &mut State) {
        let known = Known::before(scene, end);
        if self.dedup {
            state.gone.extend(superseded(scene, end, 0..2));
            if float(self.total(scene, end, state)) <= self.goal() {
                return;
            }
        }
        let parts = self.parts(scene, end, state);
        if self.arguments {
            self.cut_arguments(scene, end, state, &parts, &known);
        }
        let calls = calls(scene, end, state);
        let sum = |state: &State| parts.new.iter().map(|unit| size(scene, state, *unit)).sum::<u64>();
        if float(calls + sum(state)) > self.goal() * 0.8 {
            for unit in &parts.new {
                let now = size(scene, state, *unit);
                let cut = Variant::HeadTail(2000);
                if now > 700 && scene.tokens(*unit, &cut) < now {
                    state.levels.insert(*unit, cut);
                }
            }
        }
        let room = self.goal() - float(calls + sum(state));
        self.fill(scene, state, &parts, &known, room);
        ladder::drop_pairs(scene, end, state, self.budget, self.goal());
    }

    /// Tells the newest results from the older ones.
    fn parts(self, scene: &Scene, end: usize, state: &State) -> Parts {
        let is_there = |unit: &usize| scene.unit(*unit).pair.is_none_or(|pair| !state.gone.contains(&pair));
        let mut old: Vec<usize> = scene.of_kind(end, Kind::Result).filter(is_there).collect();
        let mut kept = 3;
        if self.share > 0.0 {
            let room = self.share * (self.goal() - float(calls(scene, end, state)));
            let mut taken = 0;
            kept = 0;
            for unit in old.iter().rev() {
                taken += scene.full(*unit);
                if float(taken) > room && kept >= 1 {
                    break;
                }
                kept += 1;
            }
        }
        let new = old.split_off(old.len().saturating_sub(kept));
        Parts { old, new }
    }

    fn cut_arguments(self, scene: &Scene, end: usize, state: &mut State, parts: &Parts, known: &Known) {
        let new: BTreeSet<Option<usize>> = parts.new.iter().map(|unit| scene.unit(*unit).pair).collect();
        let is_old = |unit: &usize| {
            let pair = scene.unit(*unit).pair;
            pair.is_none_or(|pair| !state.gone.contains(&pair)) && !new.contains(&pair)
        };
        let old: Vec<usize> = scene.of_kind(end, Kind::Call).filter(is_old).collect();
        for cap in [400, if self.budget >= 4000 { 120 } else { 60 }, 30] {
            if float(calls(scene, end, state)) <= 0.3 * float(self.budget) * self.target {
                break;
            }
            for unit in &old {
                let now = size(scene, state, *unit);
                if now > cap + 30 {
                    excerpt(scene, state, *unit, cap, known, &HashSet::new());
                }
            }
        }
    }

    /// Gives every older result the largest cap under which all fit; the newer half twice that.
    fn fill(self, scene: &Scene, state: &mut State, parts: &Parts, known: &Known, room: f64) {
        let middle = parts.old.len() / 2;
        let doubled = |at: usize, cap: u64| if at >= middle { cap * 2 } else { cap };
        let fits = |cap: &u64| {
            let capped = |(at, unit): (usize, &usize)| {
                let least = doubled(at, *cap).max(scene.tokens(*unit, &Variant::Mask));
                scene.full(*unit).min(least)
            };
            float(parts.old.iter().enumerate().map(capped).sum()) <= room
        };
        let cap = CAPS.into_iter().find(fits).unwrap_or(0);
        let mut skip: HashSet<Rc<str>> = HashSet::new();
        if self.lines {
            parts.new.iter().for_each(|unit| skip.extend(long_lines(scene, *unit, None)));
        }
        for (at, unit) in parts.old.iter().enumerate().rev() {
            let cap = doubled(at, cap);
            let now = size(scene, state, *unit);
            if now > cap && cap < 30 {
                if scene.tokens(*unit, &Variant::Mask) < now {
                    state.levels.insert(*unit, Variant::Mask);
                }
            } else if now > cap {
                excerpt(scene, state, *unit, cap, known, &skip);
            }
            if self.lines {
                match state.levels.get(unit) {
                    None => skip.extend(long_lines(scene, *unit, None)),
                    Some(Variant::Excerpt { segments, .. }) => {
                        skip.extend(long_lines(scene, *unit, Some(segments)));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Shows a unit as an excerpt, if that makes it smaller.
fn excerpt(scene: &Scene, state: &mut State, unit: usize, cap: u64, known: &Known, skip: &HashSet<Rc<str>>) {
    let cap = i64::try_from(cap).unwrap_or(i64::MAX);
    let variant = Variant::Excerpt { cap, segments: skim(scene, unit, cap, known, skip) };
    if scene.tokens(unit, &variant) < size(scene, state, unit) {
        state.levels.insert(unit, variant);
    }
}

/// Returns the lines of a unit, or some of them, that are long enough to be told from others.
fn long_lines(scene: &Scene, unit: usize, chosen: Option<&[usize]>) -> Vec<Rc<str>> {
    let segments = scene.segments(unit);
    let chosen: Vec<usize> = chosen.map_or_else(|| (0..segments.len()).collect(), <[usize]>::to_vec);
    let texts = chosen.into_iter().map(|at| segments[at].text.as_str());
    texts.filter(|text| crate::python::len(text) >= 20).map(Rc::from).collect()
}

fn size(scene: &Scene, state: &State, unit: usize) -> u64 {
    scene.tokens(unit, state.levels.get(&unit).unwrap_or(&Variant::Full))
}

fn calls(scene: &Scene, end: usize, state: &State) -> u64 {
    let is_there = |unit: &usize| scene.unit(*unit).pair.is_none_or(|pair| !state.gone.contains(&pair));
    scene.of_kind(end, Kind::Call).filter(is_there).map(|unit| size(scene, state, unit)).sum()
}

/// Returns a count as a float, for comparing with shares of a budget.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
pub fn float(tokens: u64) -> f64 {
    tokens as f64
}
