//! Water-filling: which lines of old results and arguments are worth their tokens (R20).
//!
//! All candidates compete for the same room: a segment is worth the identifiers that it brings and that the
//! prompt does not show yet, more so on lines that tell of a failure or a definition. The best per token goes first,
//! whichever result it is from. An identifier of a short result is worth more than one of a long result, since about as
//! many of either are needed later; and what a source has got already counts against its next segments, or one that is
//! dense with identifiers would leave nothing for the others.

use super::arguments;
use super::decision::Decision;
use super::draft::Draft;
use super::identifiers::{Class, Lexicon};
use super::{marker, segments};
use crate::{Call, Input, Kind, Text, joined_text};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Strings in arguments that are longer than this can be shortened.
const LEAF_MIN: usize = 160;
/// What the mark of a gap takes.
const GAP_TOKENS: u64 = 3;
/// What the heading of an excerpt takes beyond that of a mask.
const HEADING_TOKENS: u64 = 4;
/// When a source has got so many equal shares of the room, its segments are worth half.
const HALVING_SHARES: u64 = 8;
/// Sources smaller than this are taken for as large.
const SOURCE_TOKENS_MIN: u64 = 50;

/// How much a thing is worth, in hundredths of a name.
mod worth {
    pub const TELLING: u64 = 150;
    pub const NAME: u64 = 100;
    pub const NUMBER: u64 = 50;
    pub const MEMBER: u64 = 50;
    pub const FAILURE: u64 = 150;
    pub const DEFINITION: u64 = 100;
}

/// An entry that excerpts can be made of.
pub(super) struct Source {
    entry: usize,
    pair: usize,
    text: Text,
    /// What stays in any case: of arguments, everything outside the large strings.
    fixed: Vec<Range<usize>>,
    segments: Vec<Segment>,
    /// What its segments are worth, beside those of others.
    weight: u64,
    is_call: bool,
}

struct Segment {
    range: Range<usize>,
    identifiers: Range<usize>,
    tokens: u64,
    bonus: u64,
}

/// The candidates, and what is known about their identifiers.
#[derive(Default)]
pub(super) struct Pool {
    sources: Vec<Source>,
    lexicon: Lexicon,
    identifiers: Vec<u32>,
    /// In how many sources each identifier is.
    spread: Vec<u16>,
    /// Whether the prompt shows it anyway, and whether the user or the operator said it.
    shown: Vec<Shown>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    No,
    /// In what stays of the tool history, or in the model's words.
    Anyway,
    /// By the user or the operator.
    Given,
}

pub(super) type Ranges = Vec<Range<usize>>;

/// What a selection keeps of each source: the indexes of its segments.
pub(super) type Selection = Vec<Vec<bool>>;

impl Pool {
    /// Takes note of a text that is shown as it is.
    pub fn take_shown(&mut self, text: &str, given: bool) {
        let mut found = Vec::new();
        self.lexicon.read(text, &mut found);
        self.grow();
        let how = if given { Shown::Given } else { Shown::Anyway };
        for number in found {
            let shown = &mut self.shown[number as usize];
            *shown = (*shown).max(how);
        }
    }

    /// Adds an entry to cut; says whether it can be.
    pub fn take_source(&mut self, draft: &Draft<'_>, pair: usize, entry: usize, weight: u64) -> bool {
        let kind = &draft.survey.entries[entry].kind;
        let before = match draft.decision(entry) {
            Some(Decision::Excerpt(ranges)) => {
                Some(ranges.iter().map(marker::usize_range).collect::<Vec<_>>())
            }
            Some(_) => return false,
            None => None,
        };
        let (text, is_call) = match kind {
            Kind::Returned(returned) => (joined_text(&returned.parts), false),
            Kind::Called(call) => (call.input.text().clone(), true),
            _ => return false,
        };
        let escaped = matches!(kind, Kind::Called(call) if matches!(call.input, Input::Arguments(_)));
        let Some((cuttable, fixed)) = cuttable(&text, escaped, before) else { return false };
        let size = draft.survey.sizes[entry].0.max(1);
        let per_token = (text.len() as u64).max(1) as f64 / size as f64;
        let weight = weight * 10_000 / (size.max(SOURCE_TOKENS_MIN) * 100).isqrt();
        let mut source = Source { entry, pair, text, fixed, segments: Vec::new(), weight, is_call };
        self.read_segments(&mut source, &cuttable, escaped, per_token);
        self.sources.push(source);
        true
    }

    fn read_segments(
        &mut self,
        source: &mut Source,
        cuttable: &[Range<usize>],
        escaped: bool,
        per_token: f64,
    ) {
        let text = source.text.clone();
        let mut scratch = String::new();
        let mut seen = Vec::new();
        for range in cuttable {
            for range in segments::cut(&text, range.clone(), escaped) {
                let piece = readable(&text[range.clone()], escaped, &mut scratch);
                let start = self.identifiers.len();
                self.lexicon.read(piece, &mut self.identifiers);
                once_each(&mut self.identifiers, start);
                seen.extend_from_slice(&self.identifiers[start..]);
                let tokens = ((range.len() as f64 / per_token) as u64).max(1);
                let bonus = bonus(piece);
                source.segments.push(Segment {
                    range,
                    identifiers: start..self.identifiers.len(),
                    tokens,
                    bonus,
                });
            }
        }
        self.grow();
        seen.sort_unstable();
        seen.dedup();
        for number in seen {
            let spread = &mut self.spread[number as usize];
            *spread = spread.saturating_add(1);
        }
    }

    fn grow(&mut self) {
        self.shown.resize(self.lexicon.len(), Shown::No);
        self.spread.resize(self.lexicon.len(), 0);
    }

    /// Chooses what is worth most, within `room` tokens.
    pub fn select(&self, room: u64) -> Selection {
        let mut filling = Filling {
            pool: self,
            chosen: self.sources.iter().map(|source| vec![false; source.segments.len()]).collect(),
            begun: vec![false; self.sources.len()],
            shown: self.shown.clone(),
            heap: BinaryHeap::new(),
            room,
            spent: vec![0; self.sources.len()],
            halving: (room * HALVING_SHARES / (self.sources.len() as u64).max(1)).max(1),
        };
        filling.run();
        filling.chosen
    }

    /// Says of each of so many pairs whether anything of its result was selected.
    pub fn heard(&self, selection: &Selection, pairs: usize) -> Vec<bool> {
        let mut heard = vec![false; pairs];
        for (source, chosen) in self.sources.iter().zip(selection).filter(|(source, _)| !source.is_call) {
            heard[source.pair] |= chosen.contains(&true);
        }
        heard
    }

    /// Decides about every source what was selected of it.
    pub fn decide(&self, draft: &mut Draft<'_>, selection: &Selection, stale: &[bool]) {
        for (source, chosen) in self.sources.iter().zip(selection) {
            if chosen.iter().all(|chosen| *chosen) && draft.decision(source.entry).is_none() {
                continue;
            }
            let handle = draft.survey.pairs[source.pair].handle;
            let ranges = source.kept(chosen);
            let is_stale = stale[source.pair] && !source.is_call;
            let decision = if ranges.is_empty() { Decision::Masked } else { Decision::Excerpt(ranges) };
            draft.shorten(source.entry, handle, decision, is_stale);
        }
    }
}

impl Source {
    /// Returns the ranges that stay, joined where they touch.
    fn kept(&self, chosen: &[bool]) -> Vec<Range<u32>> {
        let segments = self.segments.iter().zip(chosen).filter(|(_, chosen)| **chosen);
        let mut kept: Vec<Range<usize>> = self.fixed.clone();
        kept.extend(segments.map(|(segment, _)| segment.range.clone()));
        kept.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u32>> = Vec::new();
        for range in kept.into_iter().filter(|range| !range.is_empty()) {
            let (Ok(start), Ok(end)) = (u32::try_from(range.start), u32::try_from(range.end)) else {
                continue;
            };
            match joined.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => joined.push(start..end),
            }
        }
        joined
    }

    fn touches(&self, chosen: &[bool], at: usize) -> u64 {
        let ends_here = |other: usize| self.segments[other].range.end == self.segments[at].range.start;
        let before = at > 0 && chosen[at - 1] && ends_here(at - 1);
        let after = at + 1 < chosen.len()
            && chosen[at + 1]
            && self.segments[at].range.end == self.segments[at + 1].range.start;
        u64::from(before) + u64::from(after)
    }
}

struct Filling<'p> {
    pool: &'p Pool,
    chosen: Selection,
    /// Whether anything of a source was chosen yet.
    begun: Vec<bool>,
    shown: Vec<Shown>,
    /// The best first; of equals the newest source, and in it the first segment.
    heap: BinaryHeap<(u64, usize, Reverse<usize>)>,
    room: u64,
    /// How many tokens of each source were chosen.
    spent: Vec<u64>,
    /// At how many of them its segments are worth half.
    halving: u64,
}

impl Filling<'_> {
    fn run(&mut self) {
        for source in 0..self.pool.sources.len() {
            for segment in 0..self.pool.sources[source].segments.len() {
                self.offer(source, segment);
            }
        }
        while let Some((offered, source, Reverse(segment))) = self.heap.pop() {
            if self.chosen[source][segment] {
                continue;
            }
            let price = self.price(source, segment);
            if price > self.room {
                continue;
            }
            let value = self.value(source, segment, price);
            if value == 0 {
                continue;
            }
            // Others may have shown meanwhile what this one brings.
            if value < offered && self.heap.peek().is_some_and(|next| value < next.0) {
                self.heap.push((value, source, Reverse(segment)));
                continue;
            }
            self.choose(source, segment, price);
        }
    }

    fn offer(&mut self, source: usize, segment: usize) {
        let value = self.value(source, segment, self.price(source, segment));
        if value > 0 {
            self.heap.push((value, source, Reverse(segment)));
        }
    }

    fn choose(&mut self, source: usize, segment: usize, price: u64) {
        self.room -= price;
        self.spent[source] += price;
        self.chosen[source][segment] = true;
        self.begun[source] = true;
        let of = &self.pool.sources[source].segments[segment];
        for number in &self.pool.identifiers[of.identifiers.clone()] {
            let shown = &mut self.shown[*number as usize];
            *shown = (*shown).max(Shown::Anyway);
        }
        // What touches a chosen segment needs no mark of its own any more, and tells more in its company.
        for neighbour in [segment.wrapping_sub(1), segment + 1] {
            if self.chosen[source].get(neighbour) == Some(&false) {
                self.offer(source, neighbour);
            }
        }
    }

    fn price(&self, source: usize, segment: usize) -> u64 {
        let of = &self.pool.sources[source];
        let gap = match of.touches(&self.chosen[source], segment) {
            0 => GAP_TOKENS,
            _ => 0,
        };
        let heading = if of.is_call || self.begun[source] { 0 } else { HEADING_TOKENS };
        of.segments[segment].tokens + gap + heading
    }

    /// Returns what a segment is worth per token.
    fn value(&self, source: usize, segment: usize, price: u64) -> u64 {
        let of = &self.pool.sources[source];
        let segment = &of.segments[segment];
        let identifiers = &self.pool.identifiers[segment.identifiers.clone()];
        let worth: u64 = identifiers.iter().map(|number| self.worth(*number)).sum();
        let value = (worth + segment.bonus) * of.weight * 100 / price;
        (value * self.halving / (self.halving + self.spent[source])).max(value.min(1))
    }

    fn worth(&self, number: u32) -> u64 {
        let worth = match self.pool.lexicon.class(number) {
            Class::Telling => worth::TELLING,
            Class::Name => worth::NAME,
            Class::Number => worth::NUMBER,
            Class::Member => worth::MEMBER,
        };
        match self.shown[number as usize] {
            Shown::Given => 0,
            Shown::Anyway => worth / 8,
            Shown::No if self.pool.spread[number as usize] > 1 => worth * 3 / 2,
            Shown::No => worth,
        }
    }
}

/// Returns where the strings are that a call's input can be shortened in; none if it cannot be.
pub(super) fn large_strings(call: &Call) -> Option<Ranges> {
    match &call.input {
        Input::Arguments(text) => large_leaves(text),
        Input::Freeform(text) => Some(std::iter::once(0..text.len()).collect()),
    }
}

fn large_leaves(text: &str) -> Option<Ranges> {
    let large = |leaf: &arguments::Leaf| leaf.raw.len() > LEAF_MIN;
    Some(arguments::leaves(text)?.into_iter().filter(large).map(|leaf| leaf.raw).collect())
}

/// Removes from the numbers behind `start` those that occur there before; segments are short.
fn once_each(numbers: &mut Vec<u32>, start: usize) {
    let mut end = start;
    for at in start..numbers.len() {
        if !numbers[start..end].contains(&numbers[at]) {
            numbers[end] = numbers[at];
            end += 1;
        }
    }
    numbers.truncate(end);
}

/// Returns where a text may be cut, and what of it stays in any case; none if nothing can be cut.
fn cuttable(text: &str, escaped: bool, before: Option<Ranges>) -> Option<(Ranges, Ranges)> {
    let kept = before.unwrap_or_else(|| std::iter::once(0..text.len()).collect());
    if !escaped {
        return Some((kept, Vec::new()));
    }
    let strings = large_leaves(text)?;
    if strings.is_empty() {
        return None;
    }
    let (mut cuttable, mut fixed) = (Vec::new(), Vec::new());
    for range in kept {
        let mut at = range.start;
        for string in strings.iter().filter(|string| string.start < range.end && string.end > range.start) {
            let inside = string.start.max(range.start)..string.end.min(range.end);
            fixed.push(at..inside.start);
            at = inside.end;
            cuttable.push(inside);
        }
        fixed.push(at..range.end);
    }
    Some((cuttable, fixed))
}

/// Returns a piece without its escapes, which would else run into the words behind them.
fn readable<'s>(piece: &'s str, escaped: bool, scratch: &'s mut String) -> &'s str {
    if !escaped || !piece.contains('\\') {
        return piece;
    }
    scratch.clear();
    let bytes = piece.as_bytes();
    let mut at = 0;
    while let Some(next) = piece[at..].find('\\') {
        scratch.push_str(&piece[at..at + next]);
        scratch.push(' ');
        at = (at + next + arguments::unit_length(&bytes[at + next..])).min(piece.len());
    }
    scratch.push_str(&piece[at..]);
    scratch
}

const FAILURES: &[&str] = &[
    "error",
    "exception",
    "fail",
    "traceback",
    "assert",
    "warning",
    "denied",
    "not found",
    "exit code",
    "panic",
];
const DEFINITIONS: &[&str] = &[
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
    "async ",
    "trait ",
    "type ",
    "const ",
];

fn bonus(piece: &str) -> u64 {
    let lower = piece.to_ascii_lowercase();
    let fails = FAILURES.iter().any(|word| lower.contains(word));
    let starts = |line: &str| {
        let line = line.trim_start_matches(|c: char| {
            c.is_whitespace() || c.is_ascii_digit() || matches!(c, ':' | '-' | '→' | '|')
        });
        DEFINITIONS.iter().any(|word| line.starts_with(word))
    };
    let defines = piece.lines().any(starts);
    u64::from(fails) * worth::FAILURE + u64::from(defines) * worth::DEFINITION
}
