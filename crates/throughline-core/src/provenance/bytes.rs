//! Provenance as bytes: compact, versioned, and read without trust in what is read.
//!
//! The places and the traces are two columns. Of places, each message is one number, how many entries it has, and a
//! pattern of such numbers that recurs is written once. Of traces, a run of entries that are shown as they are, one behind the other, takes two, however long it is.
//! Numbers have seven bits to a byte, the last byte of each without its highest bit.

use super::{Absence, Absent, Addition, Provenance, Row, SentPlace, Share, Source, Trace, Treatments};

/// Why stored provenance was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvenanceError {
    /// It was written by a version that this one does not know.
    #[error("the stored provenance is of version {0}, and this program knows version {VERSION}")]
    Version(u8),
    /// It ends too early, or something in it is not what it should be.
    #[error("the stored provenance is damaged at byte {0}")]
    Damaged(usize),
}

const VERSION: u8 = 1;

/// More rows, or more absent sources, are taken for damage.
const COUNT_MAX: u64 = 1 << 20;

// What a trace is, in the lowest three bits of its first number.
const RUN: u64 = 0;
const FROM: u64 = 1;
const ADDED: u64 = 2;
const JOINED: u64 = 3;
const UNTRACKED: u64 = 4;

impl Provenance {
    /// Writes the stored form. The rows must be settled.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Output { bytes: vec![VERSION], next: 0 };
        let rows = complete(&self.rows);
        let places: Vec<SentPlace> = rows.iter().map(|row| row.at).collect();
        out.places(&places);
        let traces: Vec<&Trace> = rows.iter().map(|row| &row.trace).collect();
        out.traces(&traces);
        out.next = 0;
        out.absent(&self.absent);
        out.bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is of another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProvenanceError> {
        let mut input = Input { bytes, at: 1, next: 0 };
        match bytes.first() {
            Some(&VERSION) => {}
            Some(other) => return Err(ProvenanceError::Version(*other)),
            None => return Err(ProvenanceError::Damaged(0)),
        }
        let damaged = |input: &Input<'_>| ProvenanceError::Damaged(input.at);
        let places = input.places().ok_or_else(|| damaged(&input))?;
        let traces = input.traces(places.len()).ok_or_else(|| damaged(&input))?;
        input.next = 0;
        let absent = input.absent().ok_or_else(|| damaged(&input))?;
        if input.at != bytes.len() {
            return Err(damaged(&input));
        }
        let rows = places.into_iter().zip(traces).map(|(at, trace)| Row { at, trace }).collect();
        Ok(Self { rows, absent })
    }
}

/// How many messages a pattern has at most, and in how many bits that is said.
const PATTERN_MAX: usize = 4;
const PATTERN_BITS: u32 = 2;

/// Returns the length of the pattern that covers most of the beginning of `counts`, and how often it recurs there.
fn pattern(counts: &[u64]) -> (usize, usize) {
    let repeats = |length: usize| {
        let recurs = counts.chunks_exact(length).take_while(|chunk| *chunk == &counts[..length]);
        (length, recurs.count())
    };
    let patterns = (1..=PATTERN_MAX.min(counts.len())).map(repeats);
    // Of those that cover as much, the shortest.
    patterns
        .rev()
        .max_by_key(|(length, repeats)| if *repeats > 1 { length * repeats } else { 1 })
        .unwrap_or((1, 1))
}

/// Returns the rows with one for every entry of a message up to the last that has one.
fn complete(rows: &[Row]) -> Vec<Row> {
    let mut whole: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        let same = whole.last().filter(|last| last.at.message == row.at.message);
        let first = same.map_or(0, |last| last.at.nth + 1);
        let missing = (first..row.at.nth).map(|nth| SentPlace { nth, ..row.at });
        whole.extend(missing.map(|at| Row { at, trace: Trace::Untracked }));
        whole.push(row.clone());
    }
    whole
}

struct Output {
    bytes: Vec<u8>,
    /// The entry of the record behind the last source that was written.
    next: u32,
}

impl Output {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push((number & 0x7f) as u8);
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Writes how many entries stand beside the conversation, how many messages there are, and how many entries each
    /// has. The rounds of an agent are alike, so that a pattern which recurs is written once.
    fn places(&mut self, places: &[SentPlace]) {
        let beside = places.iter().take_while(|place| place.message.is_none()).count();
        let last = places.last().and_then(|place| place.message);
        let mut counts = vec![0_u64; last.map_or(0, |last| last as usize + 1)];
        for message in places.iter().filter_map(|place| place.message) {
            counts[message as usize] += 1;
        }
        self.count(beside);
        self.count(counts.len());
        let mut rest = &counts[..];
        while !rest.is_empty() {
            let (length, repeats) = pattern(rest);
            self.number(((repeats as u64) << PATTERN_BITS) | (length as u64 - 1));
            rest[..length].iter().for_each(|count| self.number(*count));
            rest = &rest[length * repeats..];
        }
    }

    fn traces(&mut self, traces: &[&Trace]) {
        let mut at = 0;
        while let Some(trace) = traces.get(at) {
            at += match trace {
                Trace::From(share) if share.treatments.is_as_is() => self.run(*share, &traces[at..]),
                Trace::From(share) => {
                    self.number((u64::from(share.treatments.bits()) << 3) | FROM);
                    self.source(share.source);
                    1
                }
                Trace::Added(addition) => {
                    self.number((position(&Addition::ALL, addition) << 3) | ADDED);
                    1
                }
                Trace::Joined(shares) => {
                    self.number(((shares.len() as u64) << 3) | JOINED);
                    for share in &**shares {
                        self.number(share.treatments.bits().into());
                        self.source(share.source);
                    }
                    1
                }
                Trace::Untracked => {
                    let count = traces[at..].iter().take_while(|trace| ***trace == Trace::Untracked).count();
                    self.number(((count as u64) << 3) | UNTRACKED);
                    count
                }
            };
        }
    }

    /// Writes a run of entries that are shown as they are, and returns how many those are.
    fn run(&mut self, first: Share, traces: &[&Trace]) -> usize {
        let mut expected = Some(first.source);
        let follows = |trace: &&&Trace| {
            let is_next = expected.is_some_and(|source| ***trace == Trace::from(source));
            expected = expected.and_then(following);
            is_next
        };
        let count = traces.iter().take_while(follows).count();
        self.number(((count as u64) << 3) | RUN);
        self.source(first.source);
        self.pass(first.source, count);
        count
    }

    fn source(&mut self, source: Source) {
        match source {
            Source::Record(at) => {
                let delta = i64::from(at) - i64::from(self.next);
                self.number(zigzag(delta) << 1);
                self.next = at.wrapping_add(1);
            }
            Source::Request(at) => self.number((u64::from(at) << 1) | 1),
        }
    }

    fn pass(&mut self, first: Source, count: usize) {
        if let Source::Record(at) = first {
            self.next = at.wrapping_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    fn absent(&mut self, absent: &[Absent]) {
        let follows = |a: &Absent, b: &Absent| a.why == b.why && following(a.source) == Some(b.source);
        let runs: Vec<&[Absent]> = absent.chunk_by(follows).collect();
        self.count(runs.len());
        for run in runs {
            let Absent { source, why } = run[0];
            self.number(position(&Absence::ALL, &why));
            self.count(run.len());
            self.source(source);
            self.pass(source, run.len());
        }
    }
}

fn position<T: PartialEq>(all: &[T], one: &T) -> u64 {
    all.iter().position(|it| it == one).unwrap_or_default() as u64
}

fn following(source: Source) -> Option<Source> {
    match source {
        Source::Record(at) => at.checked_add(1).map(Source::Record),
        Source::Request(at) => at.checked_add(1).map(Source::Request),
    }
}

const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
    next: u32,
}

impl Input<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads how many there are of something.
    fn count(&mut self) -> Option<usize> {
        let count = self.number().filter(|count| *count <= COUNT_MAX)?;
        usize::try_from(count).ok()
    }

    fn places(&mut self) -> Option<Vec<SentPlace>> {
        let (beside, messages) = (self.count()?, self.count()?);
        let mut places: Vec<SentPlace> = Vec::new();
        extend(&mut places, None, beside)?;
        let mut message = 0;
        while message < messages {
            let number = self.number()?;
            let length = usize::try_from(number & (PATTERN_MAX as u64 - 1)).ok()? + 1;
            let repeats = usize::try_from(number >> PATTERN_BITS).ok().filter(|repeats| *repeats > 0)?;
            if repeats.checked_mul(length)? > messages - message {
                return None;
            }
            let counts = (0..length).map(|_| self.count()).collect::<Option<Vec<usize>>>()?;
            for count in std::iter::repeat_n(&counts, repeats).flatten() {
                extend(&mut places, Some(u32::try_from(message).ok()?), *count)?;
                message += 1;
            }
        }
        Some(places)
    }

    fn traces(&mut self, count: usize) -> Option<Vec<Trace>> {
        let mut traces = Vec::with_capacity(count.min(self.bytes.len()));
        while traces.len() < count {
            let number = self.number()?;
            let detail = number >> 3;
            let left = u64::try_from(count - traces.len()).ok()?;
            match number & 7 {
                RUN if (1..=left).contains(&detail) => {
                    let mut source = self.source()?;
                    traces.push(Trace::from(source));
                    for _ in 1..detail {
                        source = following(source)?;
                        traces.push(Trace::from(source));
                    }
                    self.pass(source)?;
                }
                FROM => {
                    let treatments = Treatments::from_bits(detail).filter(|it| !it.is_as_is())?;
                    traces.push(Trace::From(Share { source: self.source()?, treatments }));
                }
                ADDED => traces.push(Trace::Added(*Addition::ALL.get(usize::try_from(detail).ok()?)?)),
                JOINED => traces.push(Trace::Joined(self.shares(detail)?.into())),
                UNTRACKED if (1..=left).contains(&detail) => {
                    let count = usize::try_from(detail).ok()?;
                    traces.extend(std::iter::repeat_n(Trace::Untracked, count));
                }
                _ => return None,
            }
        }
        Some(traces)
    }

    fn shares(&mut self, count: u64) -> Option<Vec<Share>> {
        // Each takes two bytes at least, so that a count that is made up ends with the bytes.
        let mut shares = Vec::new();
        for _ in 0..count {
            let treatments = Treatments::from_bits(self.number()?)?;
            shares.push(Share { treatments, source: self.source()? });
        }
        Some(shares)
    }

    fn source(&mut self) -> Option<Source> {
        let number = self.number()?;
        if number & 1 == 1 {
            return u32::try_from(number >> 1).ok().map(Source::Request);
        }
        let at = i64::from(self.next).checked_add(unzigzag(number >> 1))?;
        let at = u32::try_from(at).ok()?;
        self.next = at.wrapping_add(1);
        Some(Source::Record(at))
    }

    /// Passes the entries of a run, of which this is the last.
    fn pass(&mut self, last: Source) -> Option<()> {
        if let Source::Record(at) = last {
            self.next = at.wrapping_add(1);
        }
        Some(())
    }

    fn absent(&mut self) -> Option<Vec<Absent>> {
        let runs = self.count()?;
        let mut absent = Vec::new();
        for _ in 0..runs {
            let why = *Absence::ALL.get(usize::try_from(self.number()?).ok()?)?;
            let count = self.count().filter(|count| *count > 0)?;
            if absent.len().checked_add(count)? as u64 > COUNT_MAX {
                return None;
            }
            let mut source = self.source()?;
            absent.push(Absent { source, why });
            for _ in 1..count {
                source = following(source)?;
                absent.push(Absent { source, why });
            }
            self.pass(source)?;
        }
        Some(absent)
    }
}

fn extend(places: &mut Vec<SentPlace>, message: Option<u32>, count: usize) -> Option<()> {
    if places.len().checked_add(count)? as u64 > COUNT_MAX {
        return None;
    }
    let count = u32::try_from(count).ok()?;
    places.extend((0..count).map(|nth| SentPlace { message, nth }));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::Treatment;
    use super::*;
    use proptest::prelude::*;

    fn source() -> impl Strategy<Value = Source> {
        prop_oneof![
            4 => (0..40u32).prop_map(Source::Record),
            1 => any::<u32>().prop_map(Source::Record),
            1 => any::<u32>().prop_map(Source::Request),
        ]
    }

    fn share() -> impl Strategy<Value = Share> {
        let treatments = prop::collection::vec(prop::sample::select(Treatment::ALL.to_vec()), 0..3);
        let treatments = treatments.prop_map(|all| all.into_iter().fold(Treatments::AS_IS, Treatments::with));
        (source(), treatments).prop_map(|(source, treatments)| Share { source, treatments })
    }

    fn trace() -> impl Strategy<Value = Trace> {
        prop_oneof![
            3 => share().prop_map(Trace::From),
            1 => prop::sample::select(Addition::ALL.to_vec()).prop_map(Trace::Added),
            1 => prop::collection::vec(share(), 2..4).prop_map(|shares| Trace::Joined(shares.into())),
            1 => Just(Trace::Untracked),
        ]
    }

    /// Messages of which each has a few entries, some of them runs of the record.
    fn provenance() -> impl Strategy<Value = Provenance> {
        let message = prop_oneof![
            prop::collection::vec(trace(), 1..4),
            (0..30u32, 1..4u32).prop_map(|(first, n)| (first..first + n)
                .map(|at| Trace::from(Source::Record(at)))
                .collect()),
        ];
        let messages = prop::collection::vec((0..3u32, message), 0..8);
        let absent = (source(), prop::sample::select(Absence::ALL.to_vec()));
        let absent = prop::collection::vec(absent, 0..12);
        (prop::collection::vec(trace(), 0..2), messages, absent).prop_map(|(beside, messages, absent)| {
            let mut rows = Vec::new();
            let row = |message, (nth, trace): (u32, Trace)| Row { at: SentPlace { message, nth }, trace };
            rows.extend((0..).zip(beside).map(|it| row(None, it)));
            let mut next = 0;
            for (gap, traces) in messages {
                let message = Some(next + gap / 2);
                rows.extend((0..).zip(traces).map(|it| row(message, it)));
                next += gap / 2 + 1;
            }
            let absent = absent.into_iter().map(|(source, why)| Absent { source, why }).collect();
            Provenance { rows, absent }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn what_is_written_is_read_again(provenance in provenance()) {
            prop_assert_eq!(Provenance::from_bytes(&provenance.to_bytes()), Ok(provenance));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), version: bool) {
            let mut bytes = bytes;
            if version {
                bytes.insert(0, VERSION);
            }
            let _ = Provenance::from_bytes(&bytes);
        }

        #[test]
        fn damaged_bytes_never_panic(provenance in provenance(), at: prop::sample::Index, by in 1..=255u8) {
            let mut bytes = provenance.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = bytes[at].wrapping_add(by);
            let _ = Provenance::from_bytes(&bytes);
            let _ = Provenance::from_bytes(&bytes[..at]);
        }
    }

    #[test]
    fn a_long_history_shown_as_it_is_takes_a_few_bytes() {
        // Words and a call, then the result, ten thousand times.
        let place = |at: u32| SentPlace::within(at / 3 * 2 + u32::from(at % 3 == 2), u32::from(at % 3 == 1));
        let row = |at: u32| Row { at: place(at), trace: Trace::from(Source::Record(at)) };
        let provenance = Provenance { rows: (0..30_000).map(row).collect(), absent: Vec::new() };
        let bytes = provenance.to_bytes();
        assert!(bytes.len() < 20, "{}", bytes.len());
        assert_eq!(Provenance::from_bytes(&bytes), Ok(provenance));
    }

    #[test]
    fn a_hole_in_a_message_is_a_row_of_which_nothing_is_known() {
        let row = Row { at: SentPlace::within(3, 1), trace: Trace::from(Source::Record(0)) };
        let read = Provenance::from_bytes(&Provenance { rows: vec![row], absent: Vec::new() }.to_bytes());
        let rows = read.unwrap().rows;
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].trace, Trace::Untracked);
    }

    #[test]
    fn another_version_says_so() {
        assert_eq!(Provenance::from_bytes(&[9, 0]), Err(ProvenanceError::Version(9)));
        assert_eq!(Provenance::from_bytes(&[]), Err(ProvenanceError::Damaged(0)));
    }
}
