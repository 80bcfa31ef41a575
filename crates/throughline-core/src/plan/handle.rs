//! Handles: short names by which the model can ask for what was taken out (R32).
//!
//! A handle is derived from the pair alone (the call's id, name and input, and the result), so it is the same
//! after a restart, on another machine, and for a client that resends its history. Stamps are the same for
//! single entries; by them a decision recognises the entry that it was taken about.

use crate::{Content, Entry, Input, Kind, Ledger, Media, Part, Text};
use std::collections::BTreeSet;
use std::fmt;

/// The name of a pair in markers, and in calls of `recall`: eight letters, or the first four of them where no earlier
/// pair begins with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    bits: u64,
    letters: u8,
}

/// All pairs from one to another, by their handles; a digest names what it stands for in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandleRange {
    /// The first pair.
    pub first: Handle,
    /// The last one; it may be the same.
    pub last: Handle,
}

/// What a handle names, by the indexes of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The call, if it is there.
    pub call: Option<usize>,
    /// The result, if there is one; without a call, a message that was shortened.
    pub result: Option<usize>,
}

const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// 40 bits: among ten thousand pairs the chance of any two sharing a handle is one in twenty thousand.
const LENGTH: u8 = 8;
/// The short form. It names the first pair of a history that begins with it, so it stays good as the history grows.
const SHORT_LENGTH: u8 = 4;
const BITS_PER_LETTER: u8 = 5;
const MASK: u64 = (1 << (BITS_PER_LETTER * LENGTH)) - 1;

impl Handle {
    /// Reads a handle as a marker writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let letters =
            u8::try_from(text.len()).ok().filter(|length| (SHORT_LENGTH..=LENGTH).contains(length))?;
        let mut bits = 0;
        for byte in text.bytes() {
            let digit = LETTERS.iter().position(|letter| *letter == byte.to_ascii_lowercase())?;
            bits = bits << BITS_PER_LETTER | u64::try_from(digit).ok()?;
        }
        Some(Self { bits, letters })
    }

    /// Returns the handle of a pair; either half may be missing.
    #[must_use]
    pub fn of(call: Option<&Entry>, result: Option<&Entry>) -> Self {
        let half = |entry: Option<&Entry>| entry.map_or(0, |entry| number(entry, hash));
        Self { bits: mix(half(call), half(result)) & MASK, letters: LENGTH }
    }

    /// Returns the first letters of it.
    #[must_use]
    pub const fn short(self) -> Self {
        if self.letters <= SHORT_LENGTH {
            return self;
        }
        let bits = self.bits >> (BITS_PER_LETTER * (self.letters - SHORT_LENGTH));
        Self { bits, letters: SHORT_LENGTH }
    }

    /// Says whether `whole` begins with this handle.
    #[must_use]
    pub const fn is_start_of(self, whole: Self) -> bool {
        self.letters <= whole.letters
            && whole.bits >> (BITS_PER_LETTER * (whole.letters - self.letters)) == self.bits
    }
}

/// Shortens handles that stand in the order of their pairs: each to its first letters, unless one before begins with
/// the same.
pub(super) fn shorten<'h>(handles: impl Iterator<Item = &'h mut Handle>) {
    let mut seen = BTreeSet::new();
    for handle in handles {
        let short = handle.short();
        if seen.insert(short) {
            *handle = short;
        }
    }
}

/// Returns the pairs of a history in the order of their calls, each with the shortest handle that names it.
#[must_use]
pub fn handles(entries: &[Entry]) -> Vec<(Found, Handle)> {
    let ledger = Ledger::of(entries);
    let mut all: Vec<(Found, Handle)> = ledger
        .pairs()
        .iter()
        .map(|pair| {
            let handle = Handle::of(entries.get(pair.call), pair.result.and_then(|at| entries.get(at)));
            (Found { call: Some(pair.call), result: pair.result }, handle)
        })
        .collect();
    shorten(all.iter_mut().map(|(_, handle)| handle));
    all
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in (0..self.letters).rev() {
            let digit = usize::try_from(self.bits >> (BITS_PER_LETTER * place) & 31).unwrap_or_default();
            write!(f, "{}", char::from(LETTERS[digit]))?;
        }
        Ok(())
    }
}

/// Between the two handles of a range.
const TO: &str = "..";

impl HandleRange {
    /// Reads a range as a digest writes it; a single handle is a range of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once(TO).unwrap_or((text, text));
        Some(Self { first: Handle::parse(first)?, last: Handle::parse(last)? })
    }

    /// Returns the handle, if it is only one.
    #[must_use]
    pub fn single(&self) -> Option<Handle> {
        (self.first == self.last).then_some(self.first)
    }
}

impl fmt::Display for HandleRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(handle) => handle.fmt(f),
            None => write!(f, "{}{TO}{}", self.first, self.last),
        }
    }
}

/// Finds the pairs of a range among `entries`, in the order of their calls.
///
/// Where a client took back one end of it, the range goes on to that end of the history.
#[must_use]
pub fn find_range(range: HandleRange, entries: &[Entry]) -> Vec<Found> {
    let ledger = Ledger::of(entries);
    let pairs = ledger.pairs();
    let handles: Vec<Handle> = pairs
        .iter()
        .map(|pair| Handle::of(entries.get(pair.call), pair.result.and_then(|at| entries.get(at))))
        .collect();
    let first = handles.iter().position(|handle| range.first.is_start_of(*handle));
    let last = handles.iter().position(|handle| range.last.is_start_of(*handle));
    if first.is_none() && last.is_none() {
        return Vec::new();
    }
    let (start, end) = (first.unwrap_or(0), last.map_or(pairs.len(), |last| last + 1));
    let among = pairs.get(start..end).unwrap_or_default();
    among.iter().map(|pair| Found { call: Some(pair.call), result: pair.result }).collect()
}

/// Finds what `handle` names among `entries`.
#[must_use]
pub fn find(handle: Handle, entries: &[Entry]) -> Option<Found> {
    let ledger = Ledger::of(entries);
    let of_pair = ledger.pairs().iter().find_map(|pair| {
        let found = Handle::of(entries.get(pair.call), pair.result.and_then(|at| entries.get(at)));
        handle.is_start_of(found).then_some(Found { call: Some(pair.call), result: pair.result })
    });
    of_pair.or_else(|| {
        let alone = |at: &usize| {
            entries[*at].as_said().is_some()
                || entries[*at].as_return().is_some() && ledger.pair_of(*at).is_none()
        };
        (0..entries.len())
            .filter(alone)
            .find(|at| Handle::of(None, entries.get(*at)) == handle)
            .map(|at| Found { call: None, result: Some(at) })
    })
}

/// Returns a number by which a decision recognises its entry.
///
/// Decisions are held against the entries with every request, so only the ends of long texts are looked at. A
/// text of the same length and ends can take the decision's ranges all the same.
pub(super) fn stamp(entry: &Entry) -> u64 {
    number(entry, |text| {
        let bytes = text.as_bytes();
        let (head, tail) = (bytes.len().min(ENDS), bytes.len().saturating_sub(ENDS));
        mix(hash_bytes(&bytes[..head]), mix(hash_bytes(&bytes[tail..]), length(bytes)))
    })
}

/// How many bytes of each end of a text a stamp looks at.
const ENDS: usize = 64;

/// Returns a number for what an entry says, made of the numbers of its texts.
fn number(entry: &Entry, of: impl Fn(&str) -> u64 + Copy) -> u64 {
    match &entry.kind {
        Kind::Called(call) => {
            let form = u64::from(matches!(call.input, Input::Freeform(_)));
            [&call.id, &call.name, call.input.text()].iter().fold(form, |sum, text| mix(sum, of(text)))
        }
        Kind::Returned(returned) => {
            let id = returned.call_id.as_deref().map_or(0, of);
            parts(mix(id, u64::from(returned.outcome.is_error())), &returned.parts, of)
        }
        Kind::Said(said) => parts(2, &said.parts, of),
        Kind::Thought(thought) => {
            thought.content.iter().chain(&thought.summary).fold(3, |sum, text| mix(sum, of(text)))
        }
        Kind::Summarised(summary) => mix(4, of(&summary.text)),
        Kind::HandedOver(_) => 5,
        Kind::Reference { id } => mix(6, of(id)),
        Kind::Opaque { kind } => mix(7, of(kind)),
    }
}

fn parts(start: u64, parts: &[Part], of: impl Fn(&str) -> u64) -> u64 {
    parts.iter().fold(start, |sum, part| {
        let text = match &part.content {
            Content::Text(text) | Content::Refusal(text) => text,
            Content::Image(image) => media(&image.media),
            Content::File(file) => media(&file.media),
            Content::Opaque { kind } => kind,
        };
        mix(sum, of(text))
    })
}

fn media(media: &Media) -> &Text {
    match media {
        Media::Url(text) | Media::Plain(text) | Media::Stored(text) => text,
        Media::Inline { base64, .. } => base64,
    }
}

/// Returns a number that depends on every byte of `text`, the same on every machine.
pub(super) fn hash(text: &str) -> u64 {
    hash_bytes(text.as_bytes())
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(length(bytes), |state: u64, word| {
        (state.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    mix(state, rest.iter().rev().fold(1, |word, byte| word << 8 | u64::from(*byte)))
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Joins two numbers into one in which every bit of both tells.
///
/// No secret is protected here. Stored decisions and handles in running conversations depend on the result,
/// so it never changes.
pub(super) const fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a.rotate_left(29) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, result, user};
    use super::*;

    #[test]
    fn a_handle_finds_its_pair_again() {
        let entries = [
            user("go"),
            call("a", "Read", "{}"),
            result("a", "one"),
            call("a", "Read", "{}"),
            result("a", "two"),
        ];
        let first = Handle::of(Some(&entries[1]), Some(&entries[2]));
        let second = Handle::of(Some(&entries[3]), Some(&entries[4]));
        assert_ne!(first, second);
        assert_eq!(find(second, &entries), Some(Found { call: Some(3), result: Some(4) }));
        assert_eq!(Handle::parse(&first.to_string()), Some(first));
        assert_eq!(find(Handle { bits: 1, letters: LENGTH }, &entries), None);
        assert_eq!(find(first.short(), &entries).and_then(|found| found.result), Some(2));
        assert_eq!(Handle::parse("tooLONGforahandle"), None);
    }

    #[test]
    fn a_range_finds_everything_between_its_ends() {
        let entries: Vec<Entry> = (0..4)
            .flat_map(|at| [call(&format!("c{at}"), "Read", "{}"), result(&format!("c{at}"), "text")])
            .collect();
        let of = |at: usize| Handle::of(entries.get(2 * at), entries.get(2 * at + 1));
        let range = |first: usize, last: usize| HandleRange { first: of(first), last: of(last) };
        let found = |range, until: usize| -> Vec<usize> {
            find_range(range, &entries[..until]).iter().filter_map(|found| found.call).collect()
        };
        assert_eq!(found(range(1, 2), 8), [2, 4]);
        assert_eq!(found(range(1, 1), 8), [2]);
        assert_eq!(found(range(1, 3), 6), [2, 4], "the last pair was taken back");
        assert_eq!(found(range(2, 1), 8), [0; 0]);
        let nothing = |bits| Handle { bits, letters: LENGTH };
        assert_eq!(found(HandleRange { first: nothing(1), last: nothing(2) }, 8), [0; 0]);
        for range in [range(0, 3), range(2, 2)] {
            assert_eq!(HandleRange::parse(&range.to_string()), Some(range));
        }
        assert_eq!(HandleRange::parse("e5m8fv2z..nonsense!"), None);
    }

    #[test]
    fn a_short_handle_names_the_first_pair_that_begins_with_it() {
        let handle = |text| Handle::parse(text).unwrap();
        let mut all = [handle("e5m8fv2z"), handle("e5m8aaaa"), handle("k7f2qx9d")];
        shorten(all.iter_mut());
        assert_eq!(all.map(|handle| handle.to_string()), ["e5m8", "e5m8aaaa", "k7f2"]);
        assert!(
            handle("e5m8").is_start_of(handle("e5m8aaaa")) && !handle("e5m8").is_start_of(handle("k7f2qx9d"))
        );
        assert_eq!((Handle::parse("e5m"), handle("e5m8").short()), (None, handle("e5m8")));
    }

    #[test]
    fn a_handle_never_changes() {
        // Pinned: models hold on to handles, and stored decisions to stamps.
        let handle = Handle::of(Some(&call("a", "Read", "{}")), Some(&result("a", "one two three")));
        assert_eq!(handle.to_string(), "e5m8fv2z");
    }
}
