//! Baselines that degrade results step by step, oldest first, and never go back.

use crate::excerpt::{Known, telling_atoms};
use crate::policy::{State, float, without};
use crate::scene::{Scene, Shown, Variant};
use crate::trajectory::Kind;
use std::collections::BTreeMap;

/// The newest results, which are touched last.
const KEPT: usize = 3;

/// Characters of a result's ends on the first rung, and tokens of its atoms on the second.
const END_CHARS: usize = 400;
const ATOM_TOKENS: usize = 60;

/// Masks results, oldest first, then drops pairs.
pub fn mask_oldest(scene: &Scene, end: usize, state: &mut State, budget: u64, target: f64) -> Vec<Shown> {
    let mut total = total(scene, end, state, true);
    let goal = float(budget) * target;
    if total > budget {
        for unit in old(scene, end) {
            if float(total) <= goal {
                break;
            }
            if state.levels.contains_key(&unit) {
                continue;
            }
            // A pair that is gone already counts as gained once more, as it does in the reference.
            total = (total + scene.tokens(unit, &Variant::Mask)).saturating_sub(scene.full(unit));
            state.levels.insert(unit, Variant::Mask);
        }
        drop_from(scene, end, state, budget, goal, total);
    }
    without(scene, end, &state.gone, &state.levels)
}

/// Shows results by their ends and atoms, then by their atoms, then not at all.
pub fn ladder(scene: &Scene, end: usize, state: &mut State, budget: u64, target: f64) -> Vec<Shown> {
    let mut now = total(scene, end, state, false);
    let goal = float(budget) * target;
    if now > budget {
        let known = Known::before(scene, end);
        for rung in 1..=3 {
            for unit in old(scene, end) {
                if float(now) <= goal {
                    break;
                }
                if rung_of(state.levels.get(&unit)) < rung {
                    lower(scene, state, unit, on_rung(scene, unit, &known, rung), &mut now);
                }
            }
        }
        if float(now) > goal {
            let results: Vec<usize> = scene.of_kind(end, Kind::Result).collect();
            for unit in results.iter().skip(results.len().saturating_sub(KEPT)) {
                if now <= budget {
                    break;
                }
                lower(scene, state, *unit, Variant::HeadTail(2000), &mut now);
            }
        }
    }
    if now > budget {
        let sizes = sizes(scene, end, state);
        let mut left: u64 =
            sizes.iter().filter(|(pair, _)| !state.gone.contains(pair)).map(|(_, size)| size).sum();
        drop_until(scene, end, state, &sizes, goal, &mut left);
    }
    without(scene, end, &state.gone, &state.levels)
}

/// Drops the oldest pairs, if what is left is still over the budget.
pub fn drop_pairs(scene: &Scene, end: usize, state: &mut State, budget: u64, goal: f64) {
    let total = total(scene, end, state, true);
    drop_from(scene, end, state, budget, goal, total);
}

fn drop_from(scene: &Scene, end: usize, state: &mut State, budget: u64, goal: f64, mut total: u64) {
    if total > budget {
        let sizes = sizes(scene, end, state);
        drop_until(scene, end, state, &sizes, goal, &mut total);
    }
}

fn drop_until(
    scene: &Scene,
    end: usize,
    state: &mut State,
    sizes: &BTreeMap<usize, u64>,
    goal: f64,
    total: &mut u64,
) {
    let mut pairs = scene.pairs(end);
    pairs.pop();
    for pair in pairs {
        if float(*total) <= goal {
            break;
        }
        if state.gone.insert(pair) {
            *total = total.saturating_sub(sizes.get(&pair).copied().unwrap_or_default());
        }
    }
}

fn lower(scene: &Scene, state: &mut State, unit: usize, variant: Variant, total: &mut u64) {
    let now = scene.tokens(unit, state.levels.get(&unit).unwrap_or(&Variant::Full));
    let then = scene.tokens(unit, &variant);
    if then < now {
        state.levels.insert(unit, variant);
        *total = *total - now + then;
    }
}

fn on_rung(scene: &Scene, unit: usize, known: &Known, rung: u32) -> Variant {
    let (chars, room) = match rung {
        1 => (END_CHARS, 2 * ATOM_TOKENS),
        2 => (0, ATOM_TOKENS),
        _ => return Variant::Mask,
    };
    Variant::Digest { chars, atoms: telling_atoms(scene, unit, known, room) }
}

const fn rung_of(variant: Option<&Variant>) -> u32 {
    match variant {
        Some(Variant::Mask) => 3,
        Some(Variant::Digest { chars: 0, .. }) => 2,
        Some(Variant::Digest { .. }) => 1,
        _ => 0,
    }
}

fn old(scene: &Scene, end: usize) -> Vec<usize> {
    let mut old: Vec<usize> = scene.of_kind(end, Kind::Result).collect();
    old.truncate(old.len().saturating_sub(KEPT));
    old
}

fn total(scene: &Scene, end: usize, state: &State, without_gone: bool) -> u64 {
    let counts = |pair: usize| !without_gone || !state.gone.contains(&pair);
    let counted = (0..end).filter(|unit| scene.unit(*unit).pair.is_some_and(counts));
    counted.map(|unit| scene.tokens(unit, state.levels.get(&unit).unwrap_or(&Variant::Full))).sum()
}

fn sizes(scene: &Scene, end: usize, state: &State) -> BTreeMap<usize, u64> {
    let mut sizes = BTreeMap::new();
    for unit in 0..end {
        if let Some(pair) = scene.unit(unit).pair {
            let shown = state.levels.get(&unit).unwrap_or(&Variant::Full);
            *sizes.entry(pair).or_default() += scene.tokens(unit, shown);
        }
    }
    sizes
}
