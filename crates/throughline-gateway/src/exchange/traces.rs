//! Which entry of the record each entry of a request is, so that what a backend is shown can be told from the
//! record (R39).
//!
//! The record of a branch is a list, and an entry goes by its position in it. A request that resends its history
//! was located by the chain of what was said: of what counts in a chain, both sides have the same, in the same order.
//! What is silent there (reasoning, instructions, recalls) is the same only where it stands at the same point and
//! says the same; else it came with the request, and the record does not have it.

use std::ops::Range;
use throughline_core::{Entry, Input, Kind, Side, Source, Trace, Treatment};

/// An entry of a request that the record has in several pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// The entry.
    pub asked: usize,
    /// Where the pieces are, with what was recalled between them.
    pub record: Range<usize>,
}

/// Returns the entries of a branch, each with its position.
pub fn positioned(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let at = |(entry, at): (Entry, u32)| Entry { trace: Trace::from(Source::Record(at)), ..entry };
    entries.into_iter().zip(0..).map(at).collect()
}

/// Returns which entries of the record those of a request are. The first `known` of them are in `kept`; the others
/// will follow as number `next` and so on.
pub fn of_request(asked: &[Entry], kept: &[Entry], known: usize, next: u32, pieces: &[Pieces]) -> Vec<Trace> {
    let kept_counts = counting(kept);
    let asked_counts = counting(asked);
    let mut at = 0;
    let mut traces = Vec::with_capacity(asked.len());
    for (number, entry) in asked[..known].iter().enumerate() {
        if let Some(Pieces { record, .. }) = pieces.iter().find(|pieces| pieces.asked == number) {
            let said = kept[record.clone()].iter().filter(|piece| piece.as_said().is_some());
            traces.push(Trace::joined(said.map(|piece| &piece.trace)));
            at = record.end;
            continue;
        }
        let gap = kept_counts[at..].iter().position(|counts| *counts).unwrap_or(kept.len() - at);
        let found = if asked_counts[number] {
            (at + gap < kept.len()).then_some(at + gap)
        } else {
            kept[at..at + gap].iter().position(|other| other.kind == entry.kind).map(|found| at + found)
        };
        match found {
            Some(found) => {
                traces.push(resent(entry, &kept[found]));
                at = found + 1;
            }
            None => traces.push(Trace::from(own_place(entry))),
        }
    }
    let new = asked.len() - known;
    traces.extend((next..).take(new).map(|at| Trace::from(Source::Record(at))));
    traces
}

/// Returns which entries those of a request are that leaves the history to the record: the first `known` of them are
/// the instructions that hold already, and the others will follow as number `next` and so on.
pub fn behind(asked: &[Entry], kept: &[Entry], known: usize, next: u32) -> Vec<Trace> {
    let in_force = kept.iter().rev().find(|entry| entry.is_standing());
    let trace = in_force.map_or(Trace::Untracked, |entry| entry.trace.clone());
    let new = (next..).take(asked.len() - known).map(|at| Trace::from(Source::Record(at)));
    std::iter::repeat_n(trace, known).chain(new).collect()
}

/// Returns how many entries a branch has.
pub fn length(kept: &[Entry]) -> u32 {
    u32::try_from(kept.len()).unwrap_or(u32::MAX)
}

/// Returns entries with these traces.
pub fn with_traces(entries: &[Entry], traces: &[Trace]) -> Vec<Entry> {
    let traced = |(entry, trace): (&Entry, &Trace)| Entry { trace: trace.clone(), ..entry.clone() };
    entries.iter().zip(traces).map(traced).collect()
}

/// Returns the trace of what a client resends; it may write the same arguments in other words.
fn resent(asked: &Entry, kept: &Entry) -> Trace {
    let arguments = |entry: &Entry| match entry.as_call().map(|call| call.input.clone()) {
        Some(Input::Arguments(text)) => Some(text),
        _ => None,
    };
    if arguments(asked) == arguments(kept) { kept.trace.clone() } else { kept.trace.with(Treatment::Resent) }
}

/// Names an entry that the record does not have by the message it came in.
fn own_place(entry: &Entry) -> Source {
    Source::Request(entry.place.map_or(0, |place| place.message.saturating_add(1)))
}

/// Says of each entry whether it counts in the chain by which a resent history is recognised.
fn counting(entries: &[Entry]) -> Vec<bool> {
    let mut has_begun = false;
    let counts = |entry: &Entry| {
        let is_silent = match &entry.kind {
            Kind::Thought(_) | Kind::HandedOver(_) | Kind::Summarised(_) => true,
            Kind::Said(said) if said.standing => true,
            _ => entry.is_hidden() || (entry.side() == Side::System && !has_begun),
        };
        has_begun |= !is_silent;
        !is_silent
    };
    entries.iter().map(counts).collect()
}

/// Returns the position in the record of the first of these entries that has one.
pub fn first_position(entries: &[Entry]) -> Option<u32> {
    entries.iter().flat_map(|entry| entry.trace.shares()).find_map(|share| match share.source {
        Source::Record(at) => Some(at),
        Source::Request(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Role, Text, Thought};

    fn user(text: &str) -> Entry {
        Entry::said(Role::User, text)
    }

    fn system(text: &str) -> Entry {
        Entry::said(Role::System, text)
    }

    fn thought(text: &str) -> Entry {
        Entry::new(Kind::Thought(Thought { content: vec![text.into()], ..Thought::default() }))
    }

    fn call(namespace: Option<&'static str>, arguments: &str) -> Entry {
        Entry::new(Kind::Called(Call {
            id: "a".into(),
            item_id: None,
            name: "f".into(),
            namespace: namespace.map(Text::from_static),
            input: Input::Arguments(arguments.into()),
        }))
    }

    fn sources(traces: &[Trace]) -> Vec<Option<Source>> {
        traces.iter().map(|trace| trace.shares().first().map(|share| share.source)).collect()
    }

    #[test]
    fn what_is_resent_is_found_past_what_clients_do_not_see() {
        let kept = positioned([
            system("It is nine."),
            user("go"),
            thought("hm"),
            call(Some(Entry::OWN_TOOLS), "{}"),
            user("go"),
            user("go"),
        ]);
        let asked = [system("It is ten."), user("go"), thought("hm"), user("go"), user("go"), user("new")];
        let traces = of_request(&asked, &kept, 5, 6, &[]);
        let record = |at| Some(Source::Record(at));
        let expected = [Some(Source::Request(0)), record(1), record(2), record(4), record(5), record(6)];
        assert_eq!(sources(&traces), expected);
    }

    #[test]
    fn arguments_in_other_words_say_so() {
        let kept = positioned([user("go"), call(None, r#"{"a": 1}"#)]);
        let asked = [user("go"), call(None, r#"{"a":1}"#)];
        let traces = of_request(&asked, &kept, 2, 2, &[]);
        assert!(traces[1].shares()[0].treatments.contains(Treatment::Resent));
        assert!(traces[0].shares()[0].treatments.is_as_is());
    }

    #[test]
    fn an_answer_in_pieces_comes_from_all_of_them() {
        let said = |text: &str| Entry::said(Role::Assistant, text);
        let kept = positioned([
            user("go"),
            said("One."),
            call(Some(Entry::OWN_TOOLS), "{}"),
            said("Two."),
            user("on"),
        ]);
        let asked = [user("go"), said("One.\n\nTwo."), user("on")];
        let pieces = [Pieces { asked: 1, record: 1..4 }];
        let traces = of_request(&asked, &kept, 3, 5, &pieces);
        let of_answer: Vec<Source> = traces[1].shares().iter().map(|share| share.source).collect();
        assert_eq!(of_answer, [Source::Record(1), Source::Record(3)]);
        assert_eq!(sources(&traces[2..]), [Some(Source::Record(4))]);
    }
}
