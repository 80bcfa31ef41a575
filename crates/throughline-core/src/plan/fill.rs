//! Water-filling: which lines of old results and arguments are worth their tokens (R20).
//!
//! All candidates compete for the same room: a segment is worth the identifiers that it brings and that the
//! prompt does not show yet, more so on lines that tell of a failure or a definition, and a little for its words, so that
//! no room stays free. The best per token goes first, whichever result it is from. The first segment of a round pays for the
//! round's calls and masks as well; a round that gets nothing goes into the digest. An identifier of a short result is worth
//! more than one of a long result, since about as many of either are needed later; and what a source has got already
//! counts against its next segments, or one that is dense with identifiers would leave nothing for the others.

use super::arguments;
use super::decision::Decision;
use super::draft::Draft;
use super::identifiers::{Class, Lexicon};
use super::segments;
use crate::{Call, Input, Kind, Text, exit, joined_text};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Strings in arguments that are longer than this can be shortened.
const LEAF_MIN: usize = 160;
/// Members whose first line stays: the model's own command.
const COMMAND_KEYS: &[&str] = &["command", "cmd", "script", "code", "input"];
/// How many bytes of each end of an earlier message stay.
pub(super) const MESSAGE_END: usize = 240;
/// What the mark of a gap takes.
const GAP_TOKENS: u64 = 3;
/// What is shown rather than left out as a gap of its own.
const GAP_FILLED_MAX: u64 = 5;
/// What the heading of an excerpt takes beyond that of a mask.
const HEADING_TOKENS: u64 = 4;
/// When a source has got so many equal shares of the room, its segments are worth half.
const HALVING_SHARES: u64 = 8;
/// By how much what is within its quota goes before all others.
const FIRST: u64 = 1_000;
/// What the calls of a round are worth without a piece of what can be shown of it, as a divisor: the digest tells of them
/// in fewer tokens.
const LONE_HEAD: u64 = 4;
/// Sources smaller than this are taken for as large.
const SOURCE_TOKENS_MIN: u64 = 50;

/// How much a thing is worth, in thousandths of a name.
mod worth {
    pub const TELLING: u64 = 1_500;
    pub const NAME: u64 = 1_000;
    pub const NUMBER: u64 = 500;
    pub const MEMBER: u64 = 500;
    pub const WORD: u64 = 150;
    /// Of each token, whatever it says: no room stays free while there is something to show.
    pub const TOKEN: u64 = 20;
    pub const FAILURE: u64 = 1_000;
    pub const MESSAGE: u64 = 1_500;
    pub const MESSAGE_OF_FAILURE: u64 = 4_000;
    pub const END_OF_ERRORS: u64 = 2_000;
    pub const DEFINITION: u64 = 1_000;
    /// Of a round that matters to what is being done.
    pub const MATTERS: u64 = 8_000;
}

/// An entry that excerpts can be made of, or what a round shows in any case.
pub(super) struct Source {
    part: Part,
    text: Text,
    /// What stays in any case: of arguments, everything outside the large strings.
    fixed: Vec<Range<usize>>,
    segments: Vec<Segment>,
    /// What its segments are worth, beside those of others.
    weight: u64,
    /// Up to how many tokens they go before all others.
    quota: u64,
}

/// What of a history a source is.
#[derive(Clone, Copy)]
enum Part {
    Result {
        entry: usize,
        pair: usize,
        round: usize,
    },
    Call {
        entry: usize,
        pair: usize,
        round: usize,
    },
    /// What the user has said.
    Message {
        entry: usize,
    },
    /// The calls and masks of a round.
    Head {
        round: usize,
    },
}

impl Part {
    const fn round(self) -> Option<usize> {
        match self {
            Self::Result { round, .. } | Self::Call { round, .. } | Self::Head { round } => Some(round),
            Self::Message { .. } => None,
        }
    }
}

struct Segment {
    range: Range<usize>,
    identifiers: Range<usize>,
    tokens: u64,
    bonus: u64,
    /// Whether it is a frame of a stack trace, which names much that nobody needs.
    is_frame: bool,
}

/// The candidates, and what is known about their identifiers.
#[derive(Default)]
pub(super) struct Pool {
    sources: Vec<Source>,
    /// What each round takes when anything of it is shown; nothing for those that are shown in any case.
    prices: Vec<u64>,
    /// Which of the sources belong to each round.
    by_round: Vec<Vec<usize>>,
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

/// What was selected.
pub(super) struct Selection {
    /// Of each source, which segments.
    segments: Vec<Vec<bool>>,
    /// Which rounds are shown.
    pub rounds: Vec<bool>,
}

/// Where an entry belongs, and what its lines are worth in hundredths.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub entry: usize,
    pub pair: usize,
    pub round: usize,
    pub weight: u64,
    /// Up to how many tokens it is shown before all others.
    pub quota: u64,
    pub failed: bool,
}

impl Pool {
    /// Returns a pool for so many rounds.
    pub fn new(rounds: usize) -> Self {
        Self { prices: vec![0; rounds], by_round: vec![Vec::new(); rounds], ..Self::default() }
    }

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

    /// Adds a call or a result to cut; says whether it can be.
    pub fn take_source(&mut self, draft: &Draft<'_>, candidate: Candidate) -> bool {
        let Candidate { entry, pair, round, weight, quota, failed } = candidate;
        if draft.decision(entry).is_some() {
            return false;
        }
        let (part, text, cuttable, escaped) = match &draft.survey.entries[entry].kind {
            Kind::Returned(returned) => {
                let text = joined_text(&returned.parts);
                let cuttable = Some(Cuttable::result(&text));
                (Part::Result { entry, pair, round }, text, cuttable, false)
            }
            Kind::Called(call) => {
                let escaped = matches!(call.input, Input::Arguments(_));
                (Part::Call { entry, pair, round }, call.input.text().clone(), Cuttable::call(call), escaped)
            }
            _ => return false,
        };
        let Some(cuttable) = cuttable else { return false };
        self.push_source(part, text, cuttable, escaped, draft.survey.sizes[entry].0, weight, failed);
        if let Some(source) = self.sources.last_mut() {
            source.quota = quota;
        }
        true
    }

    /// Adds a message of the user to cut; says whether it can be.
    pub fn take_message(&mut self, draft: &Draft<'_>, entry: usize) -> bool {
        let Kind::Said(said) = &draft.survey.entries[entry].kind else { return false };
        let text = joined_text(&said.parts);
        let Some(cuttable) = Cuttable::message(&text) else { return false };
        self.push_source(
            Part::Message { entry },
            text,
            cuttable,
            false,
            draft.survey.sizes[entry].0,
            100,
            false,
        );
        true
    }

    /// Sets what a round takes when anything of it is shown, and what it says then.
    pub fn take_head(&mut self, round: usize, price: u64, text: &str, matters: bool) {
        self.prices[round] = price.max(1);
        let start = self.identifiers.len();
        self.lexicon.read(text, &mut self.identifiers);
        once_each(&mut self.identifiers, start);
        self.grow();
        let segment = Segment {
            range: 0..0,
            identifiers: start..self.identifiers.len(),
            tokens: 0,
            bonus: if matters { worth::MATTERS } else { 0 },
            is_frame: false,
        };
        let weight = weight_of(100, price);
        self.by_round[round].push(self.sources.len());
        let (text, fixed) = (Text::default(), Vec::new());
        self.sources.push(Source {
            part: Part::Head { round },
            text,
            fixed,
            segments: vec![segment],
            weight,
            quota: 0,
        });
    }

    #[expect(clippy::too_many_arguments, reason = "what a source is made of, in one place")]
    fn push_source(
        &mut self,
        part: Part,
        text: Text,
        cuttable: Cuttable,
        escaped: bool,
        size: u64,
        weight: u64,
        failed: bool,
    ) {
        let per_token = (text.len() as u64).max(1) as f64 / size.max(1) as f64;
        let weight = weight_of(weight, size);
        let mut source = Source { part, text, fixed: cuttable.fixed, segments: Vec::new(), weight, quota: 0 };
        self.read_segments(&mut source, &cuttable.ranges, escaped, per_token, failed);
        if let Some(round) = part.round() {
            self.by_round[round].push(self.sources.len());
        }
        self.sources.push(source);
    }

    fn read_segments(
        &mut self,
        source: &mut Source,
        cuttable: &[Range<usize>],
        escaped: bool,
        per_token: f64,
        failed: bool,
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
                source.segments.push(Segment {
                    range,
                    identifiers: start..self.identifiers.len(),
                    tokens,
                    bonus: bonus(piece, failed),
                    is_frame: piece.lines().any(exit::is_stack_frame),
                });
            }
        }
        prefer_ends(&text, &mut source.segments);
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
            rounds: self.prices.iter().map(|price| *price == 0).collect(),
            shown: self.shown.clone(),
            heap: BinaryHeap::new(),
            room,
            spent: vec![0; self.sources.len()],
            halving: (room * HALVING_SHARES / (self.sources.len() as u64).max(1)).max(1),
        };
        filling.run();
        Selection { segments: filling.chosen, rounds: filling.rounds }
    }

    /// Decides about every source that is shown what was selected of it.
    pub fn decide(&self, draft: &mut Draft<'_>, selection: &Selection, stale: &[bool]) {
        for (source, chosen) in self.sources.iter().zip(&selection.segments) {
            let (entry, handle, is_stale) = match source.part {
                Part::Result { entry, pair, .. } => (entry, draft.survey.pairs[pair].handle, stale[pair]),
                Part::Call { entry, pair, .. } => (entry, draft.survey.pairs[pair].handle, false),
                Part::Message { entry } => (entry, draft.handle(entry), false),
                Part::Head { .. } => continue,
            };
            let is_shown = source.part.round().is_none_or(|round| selection.rounds[round]);
            let chosen = source.with_small_gaps(chosen);
            if !is_shown || chosen.iter().all(|chosen| *chosen) {
                continue;
            }
            let ranges = source.kept(&chosen);
            let decision = if ranges.is_empty() { Decision::Masked } else { Decision::Excerpt(ranges) };
            draft.shorten(entry, handle, decision, is_stale);
        }
    }

    /// Returns what a draft shows is worth, among the candidates of this pool.
    pub fn value(&self, draft: &Draft<'_>) -> u64 {
        let mut shown = self.shown.clone();
        let mut value = 0;
        for source in &self.sources {
            let entry = match source.part {
                Part::Result { entry, .. } | Part::Call { entry, .. } | Part::Message { entry } => entry,
                Part::Head { .. } => continue,
            };
            for segment in &source.segments {
                let is_kept = match draft.decision(entry) {
                    None => true,
                    Some(Decision::Excerpt(ranges)) => {
                        let holds = |range: &Range<u32>| {
                            range.start as usize <= segment.range.start
                                && segment.range.end <= range.end as usize
                        };
                        ranges.iter().any(holds)
                    }
                    Some(_) => false,
                };
                if is_kept {
                    value += self.worth_of(segment, &shown) * source.weight;
                    self.show(segment, &mut shown);
                }
            }
        }
        value
    }

    fn show(&self, segment: &Segment, shown: &mut [Shown]) {
        for number in &self.identifiers[segment.identifiers.clone()] {
            let shown = &mut shown[*number as usize];
            *shown = (*shown).max(Shown::Anyway);
        }
    }

    /// Returns what a segment is worth beside what is shown.
    fn worth_of(&self, segment: &Segment, shown: &[Shown]) -> u64 {
        let identifiers = &self.identifiers[segment.identifiers.clone()];
        let named: u64 = identifiers.iter().map(|number| self.worth(*number, shown)).sum();
        let named = if segment.is_frame { named / 2 } else { named };
        named + segment.bonus + segment.tokens * worth::TOKEN
    }

    fn worth(&self, number: u32, shown: &[Shown]) -> u64 {
        let worth = match self.lexicon.class(number) {
            Class::Telling => worth::TELLING,
            Class::Name => worth::NAME,
            Class::Number => worth::NUMBER,
            Class::Member => worth::MEMBER,
            Class::Word => worth::WORD,
        };
        match shown[number as usize] {
            Shown::Given => 0,
            Shown::Anyway => worth / 8,
            Shown::No if self.spread[number as usize] > 1 => worth * 3 / 2,
            Shown::No => worth,
        }
    }
}

/// Returns what the segments of a source of that size are worth: about as much is needed of a short one as of a long one.
const fn weight_of(weight: u64, size: u64) -> u64 {
    let size = if size < SOURCE_TOKENS_MIN { SOURCE_TOKENS_MIN } else { size };
    weight * 10_000 / (size * 100).isqrt()
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

    /// Returns what was chosen, and what lies between two chosen segments and is no larger than the mark of a gap.
    fn with_small_gaps(&self, chosen: &[bool]) -> Vec<bool> {
        let mut filled = chosen.to_vec();
        let mut last: Option<usize> = None;
        for at in (0..chosen.len()).filter(|at| chosen[*at]) {
            if let Some(last) = last {
                let gap = &self.segments[last + 1..at];
                if gap.iter().map(|segment| segment.tokens).sum::<u64>() <= GAP_FILLED_MAX {
                    filled[last + 1..at].fill(true);
                }
            }
            last = Some(at);
        }
        filled
    }

    fn touches(&self, chosen: &[bool], at: usize) -> bool {
        let ends_here = |other: usize| self.segments[other].range.end == self.segments[at].range.start;
        let before = at > 0 && chosen[at - 1] && ends_here(at - 1);
        let after = at + 1 < chosen.len()
            && chosen[at + 1]
            && self.segments[at].range.end == self.segments[at + 1].range.start;
        before || after
    }
}

struct Filling<'p> {
    pool: &'p Pool,
    chosen: Vec<Vec<bool>>,
    /// Whether anything of a source was chosen yet.
    begun: Vec<bool>,
    /// Whether anything of a round was.
    rounds: Vec<bool>,
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
            self.offer_all(source);
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
            // Others may have shown meanwhile what this one brings.
            if value < offered && self.heap.peek().is_some_and(|next| value < next.0) {
                self.heap.push((value, source, Reverse(segment)));
                continue;
            }
            self.choose(source, segment, price);
        }
    }

    fn offer_all(&mut self, source: usize) {
        for segment in 0..self.pool.sources[source].segments.len() {
            if !self.chosen[source][segment] {
                self.offer(source, segment);
            }
        }
    }

    fn offer(&mut self, source: usize, segment: usize) {
        let value = self.value(source, segment, self.price(source, segment));
        self.heap.push((value, source, Reverse(segment)));
    }

    fn choose(&mut self, source: usize, segment: usize, price: u64) {
        let of = &self.pool.sources[source];
        self.room -= price;
        self.spent[source] += price;
        self.chosen[source][segment] = true;
        self.begun[source] = true;
        self.pool.show(&of.segments[segment], &mut self.shown);
        if let Some(round) = of.part.round()
            && !std::mem::replace(&mut self.rounds[round], true)
        {
            self.begin(round);
        }
        // What touches a chosen segment needs no mark of its own any more, and tells more in its company.
        for neighbour in [segment.wrapping_sub(1), segment + 1] {
            if self.chosen[source].get(neighbour) == Some(&false) {
                self.offer(source, neighbour);
            }
        }
    }

    /// Shows the calls of a round; what else it has is to be had for less from now on.
    fn begin(&mut self, round: usize) {
        let pool = self.pool;
        for source in pool.by_round[round].iter().copied() {
            if let Part::Head { .. } = pool.sources[source].part {
                self.chosen[source][0] = true;
                pool.show(&pool.sources[source].segments[0], &mut self.shown);
            }
        }
        for source in pool.by_round[round].iter().copied() {
            self.offer_all(source);
        }
    }

    fn price(&self, source: usize, segment: usize) -> u64 {
        let of = &self.pool.sources[source];
        let unpaid = of.part.round().filter(|round| !self.rounds[*round]);
        let head = unpaid.map_or(0, |round| self.pool.prices[round]);
        if let Part::Head { .. } = of.part {
            return head;
        }
        let gap = if of.touches(&self.chosen[source], segment) { 0 } else { GAP_TOKENS };
        let is_result = matches!(of.part, Part::Result { .. });
        let heading = if is_result && !self.begun[source] { HEADING_TOKENS } else { 0 };
        of.segments[segment].tokens + gap + heading + head
    }

    /// Says whether a source is the calls of a round that has pieces to show as well, and does not matter for itself.
    fn is_lone_head(&self, source: &Source) -> bool {
        let Part::Head { round } = source.part else { return false };
        self.pool.by_round[round].len() > 1 && source.segments[0].bonus == 0
    }

    /// Returns what a segment is worth per token.
    fn value(&self, source: usize, segment: usize, price: u64) -> u64 {
        let of = &self.pool.sources[source];
        let mut worth = self.pool.worth_of(&of.segments[segment], &self.shown) * of.weight;
        let unpaid = of.part.round().filter(|round| !self.rounds[*round]);
        if let Some(round) = unpaid
            && !matches!(of.part, Part::Head { .. })
        {
            let heads = self.pool.by_round[round].iter().map(|source| &self.pool.sources[*source]);
            let heads = heads.filter(|source| matches!(source.part, Part::Head { .. }));
            worth += heads
                .map(|head| self.pool.worth_of(&head.segments[0], &self.shown) * head.weight)
                .sum::<u64>();
        }
        if self.is_lone_head(of) {
            worth /= LONE_HEAD;
        }
        let first = if self.spent[source] < of.quota { FIRST } else { 1 };
        let value = worth * 10 / price.max(1) * first;
        (value * self.halving / (self.halving + self.spent[source])).max(1)
    }
}

/// Returns how many bytes of a call's input can be cut.
pub(super) fn cuttable_bytes(call: &Call) -> usize {
    Cuttable::call(call).map_or(0, |cuttable| cuttable.ranges.iter().map(Range::len).sum())
}

/// Returns what stays of a call's input in any case.
pub(super) fn fixed_text(call: &Call) -> String {
    let text = call.input.text();
    let fixed = Cuttable::call(call)
        .map_or_else(|| std::iter::once(0..text.len()).collect(), |cuttable| cuttable.fixed);
    fixed.into_iter().map(|range| &text[range]).collect::<Vec<_>>().join(" ")
}

/// Returns the decision that so many bytes of each end of a message stay.
pub(super) fn ends_of(text: &str, bytes: usize) -> Decision {
    let head = text.floor_char_boundary(bytes);
    let tail = text.floor_char_boundary(text.len().saturating_sub(bytes));
    let ends = [0..head.min(tail), tail.max(head)..text.len()];
    let range = |range: &Range<usize>| Some(u32::try_from(range.start).ok()?..u32::try_from(range.end).ok()?);
    let kept: Vec<Range<u32>> = ends.iter().filter(|range| !range.is_empty()).filter_map(range).collect();
    if kept.is_empty() { Decision::Masked } else { Decision::Excerpt(kept) }
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

/// Where a text may be cut, and what of it stays in any case.
struct Cuttable {
    ranges: Ranges,
    fixed: Ranges,
}

impl Cuttable {
    /// Returns where a result may be cut: everywhere.
    fn result(text: &str) -> Self {
        Self { ranges: std::iter::once(0..text.len()).collect(), fixed: Vec::new() }
    }

    /// Returns where a message may be cut: not at its ends, where people say what they want.
    fn message(text: &str) -> Option<Self> {
        let head = text.floor_char_boundary(MESSAGE_END);
        let tail = text.floor_char_boundary(text.len().saturating_sub(MESSAGE_END));
        let inside = std::iter::once(head..tail).collect();
        (head < tail).then(|| Self { ranges: inside, fixed: vec![0..head, tail..text.len()] })
    }

    /// Returns where the input of a call may be cut: in its large strings. The first line of a command stays.
    fn call(call: &Call) -> Option<Self> {
        let text = call.input.text();
        let strings: Ranges = match &call.input {
            Input::Freeform(text) => {
                let start = first_line_end(text, 0..text.len(), false);
                std::iter::once(start..text.len()).filter(|range| !range.is_empty()).collect()
            }
            Input::Arguments(text) => {
                let large = arguments::leaves(text)?.into_iter().filter(|leaf| leaf.raw.len() > LEAF_MIN);
                let cut = large.map(|leaf| {
                    let keeps_first = COMMAND_KEYS.contains(&&text[leaf.name.clone()]);
                    let start = match keeps_first {
                        true => first_line_end(text, leaf.raw.clone(), true),
                        false => leaf.raw.start,
                    };
                    start..leaf.raw.end
                });
                cut.filter(|range| !range.is_empty()).collect()
            }
        };
        if strings.is_empty() {
            return None;
        }
        let mut fixed = Vec::new();
        let mut at = 0;
        for string in &strings {
            fixed.push(at..string.start);
            at = string.end;
        }
        fixed.push(at..text.len());
        Some(Self { ranges: strings, fixed })
    }
}

/// Returns where the first line of a string ends, or as much of it as is kept in any case.
fn first_line_end(text: &str, range: Range<usize>, escaped: bool) -> usize {
    let first = segments::cut_lines(text, range.clone(), escaped).first().map_or(range.end, |line| line.end);
    first.min(range.end)
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

const FAILURES: &[&str] =
    &["error", "exception", "fail", "traceback", "assert", "warning", "denied", "not found", "panic"];
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

/// Returns what a piece is worth beyond what it names.
fn bonus(piece: &str, failed: bool) -> u64 {
    if piece.lines().any(exit::is_error_message) {
        return if failed { worth::MESSAGE_OF_FAILURE } else { worth::MESSAGE };
    }
    let lower = piece.to_ascii_lowercase();
    let fails = FAILURES.iter().any(|word| lower.contains(word)) && !piece.lines().any(exit::is_stack_frame);
    let starts = |line: &str| {
        let line = line.trim_start_matches(|c: char| {
            c.is_whitespace() || c.is_ascii_digit() || matches!(c, ':' | '-' | '→' | '|')
        });
        DEFINITIONS.iter().any(|word| line.starts_with(word))
    };
    let defines = piece.lines().any(starts);
    u64::from(fails) * worth::FAILURE + u64::from(defines) * worth::DEFINITION
}

/// Adds to the first and the last message of an error in a source: what went wrong, and how it ended.
fn prefer_ends(text: &str, segments: &mut [Segment]) {
    let is_message = |segment: &&mut Segment| text[segment.range.clone()].lines().any(exit::is_error_message);
    let mut messages = segments.iter_mut().filter(is_message);
    if let Some(first) = messages.next() {
        first.bonus += worth::END_OF_ERRORS;
    }
    if let Some(last) = messages.next_back() {
        last.bonus += worth::END_OF_ERRORS;
    }
}
