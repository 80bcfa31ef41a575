//! The prototype's excerpts: lines chosen for the identifiers that they bring.
//!
//! Greedy: the segment that brings most weight for its tokens first. Weights know only what is known when the
//! excerpt is made: which atoms the model has used, which recur in other results, which were given.

use crate::atoms::{Atom, Atoms, Interner};
use crate::python::is_space;
use crate::scene::{Scene, count};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

const LONG_CHARS: usize = 160;
const CUT_FROM: usize = 60;
const CUT_TO: usize = 140;

const ALARMING: [&str; 10] = [
    "error",
    "exception",
    "fail",
    "traceback",
    "assert",
    "warning",
    "denied",
    "not found",
    "returncode",
    "exit code",
];
const DEFINING: [&str; 14] = [
    "def ",
    "class ",
    "fn ",
    "pub ",
    "impl ",
    "func ",
    "function ",
    "public ",
    "private ",
    "interface ",
    "struct ",
    "enum ",
    "export ",
    "async def ",
];

/// A line, or a piece of a long one.
#[derive(Debug)]
pub struct Segment {
    /// What it says.
    pub text: String,
    /// What it names.
    pub atoms: Atoms,
    /// What it takes.
    pub tokens: u64,
    is_blank: bool,
    is_alarming: bool,
    is_defining: bool,
}

/// What is known of a history when excerpts are made.
#[derive(Debug, Default)]
pub struct Known {
    /// What the model has named.
    pub used: HashSet<Atom>,
    /// In how many results each atom is.
    pub results: HashMap<Atom, u32>,
    /// What instructions and the user have named.
    pub given: HashSet<Atom>,
}

/// A score in a heap: the highest first, of equals the one with the lowest index.
#[derive(PartialEq)]
struct Scored(f64, Reverse<usize>);

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// Takes a text apart.
pub fn segments(interner: &Interner, text: &str) -> Vec<Segment> {
    let mut found = Vec::new();
    for line in text.split('\n') {
        let mut chars: Vec<char> = if line.len() > LONG_CHARS { line.chars().collect() } else { Vec::new() };
        if chars.len() <= LONG_CHARS {
            found.push(line.to_owned());
            continue;
        }
        while chars.len() > LONG_CHARS {
            let rest = chars.split_off(cut(&chars) + 1);
            found.push(chars.iter().collect());
            chars = rest;
        }
        found.push(chars.into_iter().collect());
    }
    found.into_iter().map(|text| Segment::new(interner, text)).collect()
}

/// Returns where a long line is cut: behind a comma, a bracket or a word.
fn cut(line: &[char]) -> usize {
    let last = |what: &[char]| line[CUT_FROM..CUT_TO].windows(what.len()).rposition(|two| two == what);
    let comma = last(&[',', ' ']).map(|at| at + CUT_FROM);
    let bracket = last(&['}', ',']).map(|at| at + CUT_FROM + 1);
    let space = if comma.is_none() { last(&[' ']).map(|at| at + CUT_FROM) } else { None };
    comma.max(bracket).max(space).unwrap_or(CUT_TO)
}

impl Segment {
    fn new(interner: &Interner, text: String) -> Self {
        let lower = text.to_ascii_lowercase();
        Self {
            atoms: interner.atoms(&text),
            tokens: count(&text) + 1,
            is_blank: text.chars().all(is_space),
            is_alarming: ALARMING.iter().any(|word| lower.contains(word)),
            is_defining: is_defining(&text),
            text,
        }
    }
}

/// Says whether a line defines something, with or without a number in front.
fn is_defining(line: &str) -> bool {
    let line = line.trim_start_matches(is_space);
    let begins = |line: &str| DEFINING.iter().any(|word| line.starts_with(word));
    let behind = line.trim_start_matches(|c: char| c.is_numeric());
    let is_mark = |c: char| is_space(c) || matches!(c, ':' | '-');
    let numbered = behind.len() < line.len() && behind.starts_with(is_mark);
    begins(line) || numbered && begins(behind.trim_start_matches(is_mark))
}

impl Known {
    /// Returns what is known before `end`.
    #[must_use]
    pub fn before(scene: &Scene, end: usize) -> Self {
        use crate::scene::Variant;
        use crate::trajectory::Kind;
        let mut known = Self::default();
        for unit in 0..end {
            let view = scene.view(unit, &Variant::Full);
            match scene.unit(unit).kind {
                Kind::Call | Kind::Assistant => known.used.extend(view.atoms.iter()),
                Kind::Result => {
                    view.atoms.iter().for_each(|atom| *known.results.entry(*atom).or_default() += 1);
                }
                Kind::System | Kind::User => known.given.extend(view.atoms.iter()),
            }
        }
        known
    }

    /// Says whether an atom is in more than one result.
    #[must_use]
    pub fn recurs(&self, atom: Atom) -> bool {
        self.results.get(&atom).is_some_and(|results| *results > 1)
    }

    fn weight(&self, interner: &Interner, atom: Atom) -> f64 {
        if self.given.contains(&atom) {
            return 0.0;
        }
        let name = interner.name(atom);
        let has_digit = name.bytes().any(|byte| byte.is_ascii_digit());
        let has_letter = name.bytes().any(|byte| byte.is_ascii_alphabetic());
        let base = if name.contains(['/', '_']) || has_digit && has_letter {
            1.5
        } else if has_letter {
            1.0
        } else {
            0.5
        };
        if self.used.contains(&atom) {
            base * 2.5
        } else if self.recurs(atom) {
            base * 1.5
        } else {
            base
        }
    }
}

/// Chooses segments of a unit under a cap of tokens, none of them in `skip`.
pub fn skim(scene: &Scene, unit: usize, cap: i64, known: &Known, skip: &HashSet<Rc<str>>) -> Rc<[usize]> {
    let segments = scene.segments(unit);
    let mut left = cap - 14;
    let atoms: BTreeSet<Atom> = segments.iter().flat_map(|segment| segment.atoms.iter().copied()).collect();
    let weights: Vec<(Atom, f64)> =
        atoms.iter().map(|atom| (*atom, known.weight(&scene.interner, *atom))).collect();
    let weight =
        |atom: Atom| weights.binary_search_by_key(&atom, |(atom, _)| *atom).map_or(0.0, |at| weights[at].1);
    let mut have: HashSet<Atom> = HashSet::new();
    let score = |at: usize, have: &HashSet<Atom>| {
        let segment = &segments[at];
        let new = segment.atoms.iter().filter(|atom| !have.contains(atom));
        let mut gain: f64 = new.map(|atom| weight(*atom)).sum();
        gain += if segment.is_alarming { 1.5 } else { 0.0 };
        gain += if segment.is_defining { 1.0 } else { 0.0 };
        gain += if at < 2 || at + 2 >= segments.len() { 0.7 } else { 0.0 };
        gain / tokens_f64(segment.tokens + 2)
    };
    let is_candidate = |at: &usize| !segments[*at].is_blank && !skip.contains(segments[*at].text.as_str());
    let mut heap: BinaryHeap<Scored> =
        (0..segments.len()).filter(is_candidate).map(|at| Scored(score(at, &have), Reverse(at))).collect();
    let mut chosen = Vec::new();
    while left > 0
        && let Some(Scored(_, Reverse(at))) = heap.pop()
    {
        let tokens = i64::try_from(segments[at].tokens).unwrap_or(i64::MAX - 1) + 1;
        if tokens > left {
            continue;
        }
        let now = score(at, &have);
        if heap.peek().is_some_and(|next| now < next.0 - 1e-9) {
            heap.push(Scored(now, Reverse(at)));
            continue;
        }
        if now <= 0.0 {
            break;
        }
        chosen.push(at);
        left -= tokens;
        have.extend(segments[at].atoms.iter());
    }
    chosen.sort_unstable();
    chosen.into()
}

/// Ranks the atoms of a result, and returns the first of them that fit.
pub fn telling_atoms(scene: &Scene, unit: usize, known: &Known, room: usize) -> Rc<[Atom]> {
    let mut ranked: Vec<(i32, usize, Rc<str>, Atom)> = Vec::new();
    let mut seen = HashSet::new();
    for (at, word) in crate::atoms::words(&scene.unit(unit).text).enumerate() {
        if !seen.insert(word) || !crate::atoms::is_atom(word) {
            continue;
        }
        let atom = scene.interner.intern(word);
        if known.given.contains(&atom) {
            continue;
        }
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        let mut score = if word.contains('/') || has_digit && has_letter {
            3
        } else if word.contains(['_', '.']) || has_letter {
            2
        } else {
            1
        };
        score += if known.used.contains(&atom) { 3 } else { 0 };
        score += i32::from(known.recurs(atom));
        ranked.push((-score, at, word.into(), atom));
    }
    ranked.sort();
    let mut taken = 0;
    let fits = |ranked: &&(i32, usize, Rc<str>, Atom)| {
        taken += (ranked.2.len() / 3).max(1);
        taken <= room
    };
    ranked.iter().take_while(fits).map(|ranked| ranked.3).collect()
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn tokens_f64(tokens: u64) -> f64 {
    tokens as f64
}
