//! The stretches of a resent history: its opening, what is settled, and the rest from the cut on.
//!
//! The cut stands before words of the assistant and behind words of the user, and no result behind it answers a
//! call before it: then neither side has a say in how the other is rendered.

use std::collections::BTreeSet;
use std::ops::Range;
use throughline_core::{Entry, Side, Text};

/// Where the stretches of a body meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// Where the list begins that holds the history.
    pub list: usize,
    /// Where the last element of the opening ends.
    pub opening_end: usize,
    /// How many elements the opening has.
    pub opening: u32,
    /// Where the last settled element ends.
    pub cut: usize,
    /// How many elements are settled.
    pub settled: u32,
}

/// So many elements at the end are never settled: clients move the marks of the prompt cache among them.
const REST_ELEMENTS_MIN: usize = 4;

/// So far from the end a cut is looked for.
const REST_ELEMENTS_LOOKED_AT: usize = 64;

impl Stretches {
    /// Divides a history whose elements stand at `spans` of the body.
    #[must_use]
    pub fn of(entries: &[Entry], list: usize, spans: &[(usize, usize)]) -> Option<Self> {
        let first = entries.iter().find(|entry| entry.side() == Side::Assistant)?.place?.message;
        let is_asked = |entry: &Entry| entry.place.is_some() && entry.side() == Side::User;
        if first == 0 || !entries.iter().take_while(|entry| entry.side() != Side::Assistant).any(is_asked) {
            return None;
        }
        let behind = entries.partition_point(|entry| element(entry).is_none_or(|at| at < first));
        let element = choose_cut(&entries[behind..], first, spans.len().checked_sub(first as usize)?)?;
        Some(Self {
            list,
            opening_end: spans.get(first as usize - 1)?.1,
            opening: first,
            cut: spans.get(element as usize - 1)?.1,
            settled: element - first,
        })
    }

    /// Returns which of the entries of the whole request are settled.
    #[must_use]
    pub fn settled_entries(&self, entries: &[Entry]) -> Range<usize> {
        let before = |limit: u32| entries.partition_point(|entry| element(entry).is_none_or(|at| at < limit));
        before(self.opening)..before(self.opening + self.settled)
    }
}

fn element(entry: &Entry) -> Option<u32> {
    entry.place.map(|place| place.message)
}

/// Returns the element before which to cut, of `count` elements from number `first` on; the latest that leaves
/// a few behind it, and at least one before it.
#[must_use]
pub fn choose_cut(entries: &[Entry], first: u32, count: usize) -> Option<u32> {
    let latest = count.checked_sub(REST_ELEMENTS_MIN)?;
    let earliest = latest.saturating_sub(REST_ELEMENTS_LOOKED_AT).max(1);
    (earliest..=latest).rev().map(|at| first + u32::try_from(at).unwrap_or(u32::MAX)).find(|at| {
        let split = entries.partition_point(|entry| element(entry).is_some_and(|element| element < *at));
        let (before, behind) = entries.split_at(split);
        behind.first().is_some_and(|entry| entry.side() == Side::Assistant && element(entry) == Some(*at))
            && before.last().is_some_and(|entry| entry.side() == Side::User)
            && is_closed(behind, &BTreeSet::new())
    })
}

/// Says whether each result among `entries` answers a call among them, and no call goes by an id that was
/// `taken` before.
#[must_use]
pub fn is_closed(entries: &[Entry], taken: &BTreeSet<Text>) -> bool {
    let ids: BTreeSet<&Text> = entries.iter().filter_map(Entry::as_call).map(|call| &call.id).collect();
    let answers = |entry: &Entry| {
        let returned = entry.as_return();
        returned.is_none_or(|returned| returned.call_id.as_ref().is_some_and(|id| ids.contains(id)))
    };
    entries.iter().all(answers) && !ids.iter().any(|id| taken.contains(*id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::Dialect;
    use throughline_wire::decode_request;

    /// Reads a talk in which `u` and `a` speak, `c` calls and `r` answers the call before.
    fn entries(talk: &str) -> Vec<Entry> {
        let mut calls = 0;
        let element = |what: char| match what {
            'u' => r#"{"role":"user","content":"u"}"#.to_owned(),
            'a' => r#"{"role":"assistant","content":"a"}"#.to_owned(),
            'c' => {
                calls += 1;
                format!(
                    r#"{{"role":"assistant","tool_calls":[{{"id":"id{calls}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
                )
            }
            _ => format!(r#"{{"role":"tool","tool_call_id":"id{calls}","content":"r"}}"#),
        };
        let elements: Vec<String> = talk.chars().map(element).collect();
        let body = format!(r#"{{"messages":[{}]}}"#, elements.join(","));
        decode_request(Dialect::Chat, body).unwrap().entries
    }

    fn cut(talk: &str) -> Option<u32> {
        let spans: Vec<(usize, usize)> = (0..talk.len()).map(|at| (at, at)).collect();
        Stretches::of(&entries(talk), 0, &spans).map(|stretches| stretches.opening + stretches.settled)
    }

    #[test]
    fn the_cut_stands_before_the_assistant_and_behind_the_user() {
        assert_eq!(cut("ucrcrcrcr"), Some(5));
        assert_eq!(cut("ucrcrcrcru"), Some(5));
        assert_eq!(cut("uauauauau"), Some(5));
    }

    #[test]
    fn a_short_history_and_one_that_nobody_opened_are_not_cut() {
        assert_eq!(cut("ucrcr"), None);
        assert_eq!(cut("auauauauau"), None);
    }

    #[test]
    fn no_result_is_cut_from_its_call() {
        // The second call of a batch is answered late.
        let mut talk = entries("ucrcrcrcrcr");
        talk.swap(8, 10);
        let closed: Vec<bool> = (0..talk.len()).map(|at| is_closed(&talk[at..], &BTreeSet::new())).collect();
        assert_eq!(closed[7..10], [true, false, false]);
        assert!(!is_closed(&talk, &BTreeSet::from(["id1".into()])));
    }
}
