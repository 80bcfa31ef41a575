//! Rolling: the prompt of every step of a run, as a policy makes it.

use crate::atoms::{Atom, Facts, contains};
use crate::policy::{Policy, State};
use crate::scene::{Scene, Shown, Variant};
use crate::throughline;
use crate::trajectory::Kind;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// A fact whose newest carrier is more results back than this is far.
const FAR: usize = 5;

/// Distances from here on are counted as one.
pub const DISTANCE_MAX: usize = 50;

/// What was counted over all steps.
#[derive(Clone, Debug, Default)]
pub struct Rolled {
    /// Steps, and what their prompts took: in all, of calls and results, and of the prefix that was there before.
    pub steps: u64,
    /// All tokens.
    pub tokens: u64,
    /// Those of calls and results.
    pub tool_tokens: u64,
    /// Those of a prefix that the prompt before had as well.
    pub prefix: u64,
    /// Those of prompts that another one followed: what could be such a prefix.
    pub followed: u64,
    /// What came new with each step, as it came.
    pub new: u64,
    /// The words at each step, without what came new: what is read again even if every call and result is sent once.
    pub words_again: u64,
    /// Needed facts, and those that were there.
    pub all: Share,
    /// Those that are far.
    pub far: Share,
    /// Those that the model has not repeated itself.
    pub hard: Share,
    /// Those that are both.
    pub hard_far: Share,
    /// Those that were there, or can be had by a handle that is.
    pub recalled: Share,
    /// What a recall gave back for each needed fact that was not there, in tokens, and whether the fact was in it.
    pub recalls: Vec<(u64, bool)>,
    /// Steps without a prompt: it could not be made to fit.
    pub refused: u64,
    /// Steps that need facts, and those that had all of them.
    pub whole_steps: Share,
    /// How many results back needed facts were.
    pub distances: Vec<u64>,
    /// How long the policy took.
    pub nanos: u128,
}

/// Some of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many.
    pub of: u64,
    /// How many were there.
    pub ok: u64,
}

/// What is needed where, in a run.
pub(crate) struct Needs {
    pub facts: Facts,
    pub first: HashMap<Atom, Kind>,
    pub carriers: HashMap<Atom, Vec<usize>>,
}

impl Share {
    pub(crate) fn add(&mut self, ok: bool) {
        self.of += 1;
        self.ok += u64::from(ok);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.of += other.of;
        self.ok += other.ok;
    }
}

impl Needs {
    pub(crate) fn of(scene: &Scene, facts: Facts) -> Self {
        let (mut first, mut carriers): (HashMap<Atom, Kind>, HashMap<Atom, Vec<usize>>) = Default::default();
        for (at, unit) in scene.run.units.iter().enumerate() {
            for atom in &*scene.facts(at, &Variant::Full, facts) {
                first.entry(*atom).or_insert(unit.kind);
                carriers.entry(*atom).or_default().push(at);
            }
        }
        Self { facts, first, carriers }
    }

    /// Returns the facts among the arguments of a turn.
    pub(crate) fn named(&self, scene: &Scene, turn: usize, with_words: bool) -> BTreeSet<Atom> {
        let turn = &scene.run.turns[turn];
        let mut named: BTreeSet<Atom> = BTreeSet::new();
        for arguments in &turn.arguments {
            named.extend(scene.facts_of(&crate::atoms::leaf_values(arguments), self.facts).iter());
        }
        if with_words {
            named.extend(scene.facts_of(&turn.said, self.facts).iter());
        }
        named
    }

    /// Takes out what is only a part of another fact.
    pub(crate) fn without_parts(&self, scene: &Scene, facts: BTreeSet<Atom>) -> BTreeSet<Atom> {
        match self.facts {
            Facts::Identifiers => scene.interner.without_parts(&facts),
            Facts::Words => facts,
        }
    }

    pub(crate) fn is_fact_before(&self, atom: Atom, end: usize) -> bool {
        self.first.get(&atom) == Some(&Kind::Result) && self.carriers[&atom][0] < end
    }

    pub(crate) fn before(&self, atom: Atom, end: usize) -> Vec<usize> {
        self.carriers[&atom].iter().copied().filter(|unit| *unit < end).collect()
    }
}

/// What a prompt shows, to be asked about facts.
pub(crate) struct Prompt<'a> {
    pub scene: &'a Scene,
    pub shown: HashMap<usize, &'a Variant>,
    summaries: Vec<(usize, &'a Variant)>,
    recallable: BTreeSet<usize>,
}

impl<'a> Prompt<'a> {
    pub(crate) fn new(scene: &'a Scene, end: usize, shown: &'a [Shown]) -> Self {
        let told =
            |(unit, variant): &'a Shown| matches!(variant, Variant::Told(_)).then_some((*unit, variant));
        let summaries = shown.iter().filter_map(told).collect();
        let recallable = throughline::recallable(scene, end, shown);
        let shown = shown.iter().map(|(unit, variant)| (*unit, variant)).collect();
        Self { scene, shown, summaries, recallable }
    }

    /// Says whether a fact is there.
    pub(crate) fn has(&self, carriers: &[usize], atom: Atom, facts: Facts) -> bool {
        let is_in = |unit: usize, variant: &Variant| {
            *variant == Variant::Full || contains(&self.scene.facts(unit, variant, facts), atom)
        };
        carriers.iter().any(|unit| self.shown.get(unit).is_some_and(|variant| is_in(*unit, variant)))
            || self.summaries.iter().any(|(unit, variant)| is_in(*unit, variant))
    }

    /// Says whether a fact is there with some of what stood around it.
    pub(crate) fn has_in_context(&self, carriers: &[usize], atom: Atom, facts: Facts) -> bool {
        let scene = self.scene;
        let told = |unit: usize, variant: &Variant| match variant {
            Variant::Told(text) if facts == Facts::Identifiers => scene.has_context(unit, text, atom),
            _ => false,
        };
        carriers.iter().any(|unit| {
            let here = self.shown.get(unit);
            here.is_some_and(|variant| scene.is_shown_in_context(*unit, variant, atom, facts))
                || self.summaries.iter().any(|(_, variant)| told(*unit, variant))
        })
    }

    /// Recalls a fact by its handle and its name, as a model would that knows what it looks for; returns what that took,
    /// and whether it brought the fact.
    fn recall(&self, carriers: &[usize], atom: Atom, end: usize) -> Option<(u64, bool)> {
        let unit = *carriers.iter().rev().find(|unit| self.recallable.contains(unit))?;
        let name = self.scene.interner.name(atom);
        let told = throughline::recollected(self.scene, end, unit, &name)?;
        Some((crate::scene::count(&told), told.contains(&*name)))
    }

    /// Says whether a fact can be had by a handle that is there.
    pub(crate) fn can_recall(&self, carriers: &[usize]) -> bool {
        carriers.iter().any(|unit| self.recallable.contains(unit))
    }
}

/// Says whether only results carry a fact.
pub(crate) fn is_hard(scene: &Scene, carriers: &[usize]) -> bool {
    !carriers.iter().any(|unit| matches!(scene.unit(*unit).kind, Kind::Assistant | Kind::Call))
}

/// Measures policies over a run.
#[must_use]
pub fn rolling(scene: &Scene, policies: &[(String, Policy)], facts: Facts, with_words: bool) -> Vec<Rolled> {
    let needs = Needs::of(scene, facts);
    let steps: Vec<(usize, BTreeSet<Atom>)> = scene
        .run
        .turns
        .iter()
        .enumerate()
        .map(|(number, turn)| {
            let named = needs.named(scene, number, with_words);
            let facts = named.into_iter().filter(|atom| needs.is_fact_before(*atom, turn.unit)).collect();
            (turn.unit, needs.without_parts(scene, facts))
        })
        .collect();
    policies.iter().map(|(_, policy)| roll(scene, &needs, &steps, policy)).collect()
}

fn roll(scene: &Scene, needs: &Needs, steps: &[(usize, BTreeSet<Atom>)], policy: &Policy) -> Rolled {
    let mut rolled = Rolled { distances: vec![0; DISTANCE_MAX + 1], ..Rolled::default() };
    let mut state = State::default();
    let mut before: Option<Vec<Shown>> = None;
    let mut sent = 0;
    for (end, needed) in steps {
        let begun = Instant::now();
        let shown = policy(scene, *end, &mut state);
        rolled.refused += std::mem::take(&mut state.refused);
        rolled.nanos += begun.elapsed().as_nanos();
        rolled.take_sizes(scene, before.as_deref(), &shown);
        rolled.take_least(scene, sent, *end);
        sent = *end;
        if !needed.is_empty() {
            rolled.take_facts(&Prompt::new(scene, *end, &shown), needs, *end, needed);
        }
        before = Some(shown);
    }
    rolled
}

impl Rolled {
    /// Returns what the prompts cost, where reading from a cache costs a tenth and writing to it a quarter more.
    #[must_use]
    pub fn cost(&self) -> f64 {
        let float = crate::policy::float;
        0.1 * float(self.prefix) + 1.25 * float(self.tokens - self.prefix)
    }

    /// Returns what the prompts would cost if each call and result were sent once and then forgotten, and if that broke
    /// no prefix: nothing that shows a model each result whole costs less.
    #[must_use]
    pub fn least_cost(&self) -> f64 {
        let float = crate::policy::float;
        0.1 * float(self.words_again) + 1.25 * float(self.new)
    }

    /// Adds what was counted over another run.
    pub fn merge(&mut self, other: &Self) {
        self.followed += other.followed;
        self.new += other.new;
        self.words_again += other.words_again;
        self.steps += other.steps;
        self.tokens += other.tokens;
        self.tool_tokens += other.tool_tokens;
        self.prefix += other.prefix;
        self.all.merge(other.all);
        self.far.merge(other.far);
        self.hard.merge(other.hard);
        self.hard_far.merge(other.hard_far);
        self.recalled.merge(other.recalled);
        self.recalls.extend_from_slice(&other.recalls);
        self.refused += other.refused;
        self.whole_steps.merge(other.whole_steps);
        self.distances.resize(DISTANCE_MAX + 1, 0);
        self.distances.iter_mut().zip(&other.distances).for_each(|(sum, count)| *sum += count);
        self.nanos += other.nanos;
    }

    fn take_sizes(&mut self, scene: &Scene, before: Option<&[Shown]>, shown: &[Shown]) {
        self.steps += 1;
        for (unit, variant) in shown {
            let tokens = scene.tokens(*unit, variant);
            self.tokens += tokens;
            self.tool_tokens += if scene.unit(*unit).pair.is_some() { tokens } else { 0 };
        }
        let size = |(unit, variant): &Shown| scene.tokens(*unit, variant);
        self.followed += before.unwrap_or_default().iter().map(size).sum::<u64>();
        let same = before.unwrap_or_default().iter().zip(shown).take_while(|(old, new)| old == new);
        self.prefix += same.map(|(_, shown)| size(shown)).sum::<u64>();
    }

    fn take_least(&mut self, scene: &Scene, sent: usize, end: usize) {
        self.new += (sent..end).map(|unit| scene.full(unit)).sum::<u64>();
        let is_words = |unit: &usize| scene.unit(*unit).pair.is_none();
        self.words_again += (0..sent).filter(is_words).map(|unit| scene.full(unit)).sum::<u64>();
    }

    fn take_facts(&mut self, prompt: &Prompt<'_>, needs: &Needs, end: usize, needed: &BTreeSet<Atom>) {
        let scene = prompt.scene;
        let results = scene.of_kind(end, Kind::Result).count();
        let mut all_there = true;
        for atom in needed {
            let carriers = needs.before(*atom, end);
            let newest =
                carriers.iter().filter_map(|unit| scene.unit(*unit).result).max().unwrap_or_default();
            let distance = results - newest;
            let (is_far, is_hard) = (distance > FAR, is_hard(scene, &carriers));
            let ok = prompt.has(&carriers, *atom, needs.facts);
            self.all.add(ok);
            self.recalled.add(ok || prompt.can_recall(&carriers));
            if !ok {
                self.recalls.extend(prompt.recall(&carriers, *atom, end));
            }
            for (counts, share) in
                [(is_far, &mut self.far), (is_hard, &mut self.hard), (is_hard && is_far, &mut self.hard_far)]
            {
                if counts {
                    share.add(ok);
                }
            }
            self.distances[distance.min(DISTANCE_MAX)] += 1;
            all_there &= ok;
        }
        self.whole_steps.add(all_there);
    }
}
