//! What a backend saw of a history: what was kept beside what was sent, entry by entry, with the reason for
//! every difference.
//!
//! The bodies that were sent are decoded again, so what is shown is what left, and not what was meant to leave.

use super::class_name;
use super::reason::{self, Difference};
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::plan::{Decision, Decisions, Handle, Taken};
use throughline_core::{Call, Entry, Kind, Ledger, Return, Role, Text, joined_text};
use throughline_store::Kept;
use throughline_tokens::{Counts, Gauge};

/// How many characters of a result must be found in a text that retells it.
const TELLING_CHARS: usize = 200;

/// How many entries behind the last one that was found are searched for a text that retells something: in a
/// rendering as text everything keeps its order.
const TELLING_WITHIN: usize = 8;

/// What one attempt showed of a history.
#[derive(Debug)]
pub struct Seen<'s> {
    /// Kept and sent side by side, in the order of the history.
    pub rows: Vec<Row<'s>>,
    /// Tokens by kind of entry: as kept, as sent.
    pub tokens: BTreeMap<&'static str, (u64, u64)>,
}

/// An entry as it was kept and as it was sent.
#[derive(Debug)]
pub struct Row<'s> {
    /// As it was kept; none for what was added for the backend.
    pub kept: Option<&'s Kept>,
    /// As it was sent; none for what was not shown by itself.
    pub sent: Option<&'s Entry>,
    /// How the two differ.
    pub mark: Mark,
    /// Why they differ, in a sentence; nothing where they do not.
    pub reason: Option<Text>,
    /// What was decided about it, where the budget was the reason.
    pub taken: Option<&'s Taken>,
    /// Its size as it was kept and as it was sent.
    pub tokens: (u64, u64),
}

/// How what was sent differs from what was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Not at all.
    Same,
    /// It says the same in another form, or goes by another id or name.
    Changed,
    /// A part of it was shown.
    Shortened,
    /// It was told as text.
    AsyncSummary,
    /// It stands in one message with what was said beside it.
    Joined,
    /// It went into a summary.
    Summarised,
    /// It was not shown.
    LeftOut,
    /// The backend has it already.
    Held,
    /// It was made for the backend.
    Added,
}

/// What is known about an attempt besides its entries.
#[derive(Clone, Copy, Debug)]
pub struct Attempted<'s> {
    /// What was decided for the sake of the budget.
    pub decisions: &'s Decisions,
    /// Whether the backend went on from what it keeps itself.
    pub continues: bool,
    /// Whether it was given a brief in the place of the history.
    pub briefed: bool,
}

impl Mark {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Shortened => "shortened",
            Self::AsyncSummary => "retold",
            Self::Joined => "joined",
            Self::Summarised => "summarised",
            Self::LeftOut => "left out",
            Self::Held => "held",
            Self::Added => "added",
        }
    }
}

impl<'s> Seen<'s> {
    /// Lays what was kept beside what was sent.
    #[must_use]
    pub fn of(
        kept: &'s [Kept],
        sent: &'s [Entry],
        attempted: Attempted<'s>,
        gauge: &Gauge,
        counts: &Counts,
    ) -> Self {
        let counterparts = Counterparts::find(kept, sent);
        let decided = decided(kept, attempted.decisions);
        let told = told_calls(kept, &counterparts);
        let reasons = reason::Reasons::new(sent, attempted.briefed);
        let size = |entry: &Entry| gauge.tokens(gauge.entry(counts, entry));
        let mut tokens: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
        let mut rows = Vec::with_capacity(kept.len().max(sent.len()));
        for (at, found) in counterparts.rows(kept.len(), sent.len()) {
            let kept = at.map(|at| &kept[at]);
            let taken = at.and_then(|at| decided.get(&at).copied());
            let sent = match found {
                Found::Itself(found) => Some(&sent[found]),
                Found::Within | Found::Nowhere => None,
            };
            let mark = match mark(kept, sent, &found, taken, attempted.continues) {
                Mark::LeftOut if taken.is_none() && at.is_some_and(|at| told.contains(&at)) => {
                    Mark::AsyncSummary
                }
                Mark::LeftOut if taken.is_none() && attempted.briefed => {
                    kept.map_or(Mark::LeftOut, |kept| reasons.in_brief(&kept.entry))
                }
                mark => mark,
            };
            let difference = Difference { kept: kept.map(|kept| &kept.entry), sent, mark, taken };
            let reason = reasons.of(&difference);
            let sizes = (kept.map_or(0, |kept| size(&kept.entry)), sent.map_or(0, size));
            if let Some(entry) = kept.map(|kept| &kept.entry) {
                tokens.entry(class_name(entry)).or_default().0 += sizes.0;
            }
            if let Some(entry) = sent {
                tokens.entry(class_name(entry)).or_default().1 += sizes.1;
            }
            rows.push(Row { kept, sent, mark, reason, taken, tokens: sizes });
        }
        Self { rows, tokens }
    }
}

/// Where something that was kept is in what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It is that entry, or the first that stands in it.
    Itself(usize),
    /// It stands in an entry that holds others as well, behind the first of them.
    Within,
    Nowhere,
}

/// For each entry that was kept, where it is in what was sent; and which of what was sent are words.
struct Counterparts(Vec<Found>, Vec<bool>);

impl Counterparts {
    fn find(kept: &[Kept], sent: &[Entry]) -> Self {
        let calls = Halves::of(sent.iter().map(|entry| entry.as_call().map(|call| call.id.as_str())));
        let returns = Halves::of(
            sent.iter().map(|entry| entry.as_return().and_then(|returned| returned.call_id.as_deref())),
        );
        let mut taken = BTreeSet::new();
        let mut past = 0;
        let mut found = Vec::with_capacity(kept.len());
        for Kept { entry, .. } in kept {
            let own = match &entry.kind {
                Kind::Called(Call { id, .. }) => {
                    calls.named(id).or_else(|| renamed(entry, sent, past, &taken))
                }
                Kind::Returned(Return { call_id: Some(id), .. }) => {
                    returns.named(id).or_else(|| renamed(entry, sent, past, &taken))
                }
                _ => same_words(entry, sent, past, &taken),
            };
            let at = own.or_else(|| telling(entry, sent, past));
            found.push(match at {
                Some(at) if taken.insert(at) => {
                    past = past.max(at + 1);
                    Found::Itself(at)
                }
                Some(_) => Found::Within,
                None => Found::Nowhere,
            });
        }
        Self(found, sent.iter().map(|entry| entry.as_said().is_some()).collect())
    }

    /// Says whether an entry became words.
    fn is_said(&self, at: usize) -> bool {
        matches!(self.0[at], Found::Itself(found) if self.1[found])
    }

    /// Returns what was kept with where it is, and between it what was added.
    fn rows(&self, kept: usize, sent: usize) -> Vec<(Option<usize>, Found)> {
        let itself: BTreeMap<usize, usize> = (0..kept)
            .filter_map(|at| match self.0[at] {
                Found::Itself(found) => Some((found, at)),
                Found::Within | Found::Nowhere => None,
            })
            .collect();
        let mut rows = Vec::with_capacity(kept.max(sent));
        let mut next = 0;
        for at in 0..sent {
            let Some(own) = itself.get(&at).copied() else {
                rows.push((None, Found::Itself(at)));
                continue;
            };
            while next <= own {
                rows.push((Some(next), self.0[next]));
                next += 1;
            }
        }
        rows.extend((next..kept).map(|at| (Some(at), self.0[at])));
        rows
    }
}

/// Where calls, or results, stand that go by an id.
struct Halves<'s>(BTreeMap<&'s str, usize>);

impl<'s> Halves<'s> {
    fn of(ids: impl Iterator<Item = Option<&'s str>>) -> Self {
        Self(ids.enumerate().filter_map(|(at, id)| Some((id?, at))).collect())
    }

    fn named(&self, id: &str) -> Option<usize> {
        self.0.get(id).copied()
    }
}

/// Finds a half of a pair that goes by another id there: the next one that says the same.
fn renamed(entry: &Entry, sent: &[Entry], past: usize, taken: &BTreeSet<usize>) -> Option<usize> {
    let says_it = |other: &Entry| match (&entry.kind, &other.kind) {
        (Kind::Called(a), Kind::Called(b)) => a.name == b.name && a.input.text() == b.input.text(),
        (Kind::Returned(a), Kind::Returned(b)) => joined_text(&a.parts) == joined_text(&b.parts),
        _ => false,
    };
    (past..sent.len()).find(|at| !taken.contains(at) && says_it(&sent[*at]))
}

fn same_words(entry: &Entry, sent: &[Entry], past: usize, taken: &BTreeSet<usize>) -> Option<usize> {
    let says_it = |other: &Entry| match (&entry.kind, &other.kind) {
        (Kind::Said(a), Kind::Said(b)) => {
            side(a.role) == side(b.role) && joined_text(&a.parts) == joined_text(&b.parts)
        }
        (Kind::Thought(a), Kind::Thought(b)) => a.seal == b.seal && a.content == b.content,
        (Kind::Summarised(a), Kind::Summarised(b)) => a.text == b.text,
        (Kind::Opaque { kind: a }, Kind::Opaque { kind: b }) => a == b,
        (Kind::Reference { id: a }, Kind::Reference { id: b }) => a == b,
        _ => false,
    };
    let from = if matches!(&entry.kind, Kind::Said(said) if side(said.role) == 0) { 0 } else { past };
    (from..sent.len()).find(|at| !taken.contains(at) && says_it(&sent[*at]))
}

/// Instructions go by several names, and the dialects put them in different places.
const fn side(role: Role) -> u8 {
    match role {
        Role::System | Role::Developer => 0,
        Role::User => 1,
        Role::Assistant => 2,
    }
}

/// Finds the message of what was sent that tells, among other things, what an entry says.
fn telling(entry: &Entry, sent: &[Entry], past: usize) -> Option<usize> {
    let text = match &entry.kind {
        Kind::Returned(returned) => joined_text(&returned.parts),
        Kind::Said(said) => joined_text(&said.parts),
        _ => return None,
    };
    let telling: String = text.chars().take(TELLING_CHARS).collect();
    if telling.trim().is_empty() {
        return None;
    }
    let tells = |at: &usize| matches!(&sent[*at].kind, Kind::Said(said) if joined_text(&said.parts).contains(telling.as_str()));
    (past.saturating_sub(1)..sent.len()).take(TELLING_WITHIN).find(tells)
}

/// Returns the decisions by the entry that they are about; those about other histories are left out.
fn decided<'s>(kept: &[Kept], decisions: &'s Decisions) -> BTreeMap<usize, &'s Taken> {
    if decisions.is_empty() {
        return BTreeMap::new();
    }
    let entries: Vec<Entry> = kept.iter().map(|kept| kept.entry.clone()).collect();
    let ledger = Ledger::of(&entries);
    let mut halves: BTreeMap<(Handle, bool), usize> = BTreeMap::new();
    for pair in ledger.pairs() {
        let result = pair.result.and_then(|at| Some((at, entries.get(at)?)));
        let handle = Handle::of(entries.get(pair.call), result.map(|(_, entry)| entry));
        halves.insert((handle, true), pair.call);
        if let Some((at, _)) = result {
            halves.insert((handle, false), at);
        }
    }
    let by_index = |taken: &Taken| {
        let at = taken.entry as usize;
        let is_call = entries.get(at)?.as_call().is_some();
        Some(halves.get(&(taken.handle, is_call)).copied().unwrap_or(at))
    };
    decisions.taken().iter().filter_map(|taken| Some((by_index(taken)?, taken))).collect()
}

fn mark(
    kept: Option<&Kept>,
    sent: Option<&Entry>,
    found: &Found,
    taken: Option<&Taken>,
    continues: bool,
) -> Mark {
    let Some(Kept { entry, .. }) = kept else { return Mark::Added };
    let told = if entry.as_return().is_some() { Mark::AsyncSummary } else { Mark::Joined };
    let Some(sent) = sent else {
        return match taken.map(|taken| &taken.decision) {
            Some(Decision::Summarised) => Mark::Summarised,
            Some(_) => Mark::LeftOut,
            None if *found == Found::Within => told,
            None if continues => Mark::Held,
            None => Mark::LeftOut,
        };
    };
    match (&entry.kind, &sent.kind) {
        _ if taken.is_some() => Mark::Shortened,
        (Kind::Returned(_), Kind::Said(_)) => told,
        (Kind::Said(a), Kind::Said(b)) if joined_text(&a.parts) != joined_text(&b.parts) => told,
        _ if says_the_same(entry, sent) => Mark::Same,
        _ => Mark::Changed,
    }
}

fn says_the_same(a: &Entry, b: &Entry) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Called(a), Kind::Called(b)) => a.id == b.id && a.name == b.name && a.input == b.input,
        (Kind::Returned(a), Kind::Returned(b)) => {
            a.call_id == b.call_id && joined_text(&a.parts) == joined_text(&b.parts)
        }
        // What was found by its words says the same.
        _ => true,
    }
}

/// Returns the calls whose results are told as text: they are told with them.
fn told_calls(kept: &[Kept], counterparts: &Counterparts) -> BTreeSet<usize> {
    let is_told = |at: &usize| counterparts.0[*at] == Found::Within || counterparts.is_said(*at);
    let mut calls = BTreeMap::new();
    let mut told = BTreeSet::new();
    for (at, Kept { entry, .. }) in kept.iter().enumerate() {
        match &entry.kind {
            Kind::Called(call) => {
                calls.insert(&call.id, at);
            }
            Kind::Returned(Return { call_id: Some(id), .. }) if is_told(&at) => {
                told.extend(calls.get(id).copied());
            }
            _ => {}
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{ConversationId, EntryId, Outcome, Part, Said};
    use throughline_store::Moment;

    fn said(role: Role, text: &str) -> Entry {
        Entry::new(Kind::Said(Said { role, parts: vec![Part::text(text)], standing: false }))
    }

    fn call(id: &str, arguments: &str) -> Entry {
        Entry::new(Kind::Called(Call {
            id: id.into(),
            item_id: None,
            name: "Read".into(),
            namespace: None,
            input: throughline_core::Input::Arguments(arguments.into()),
        }))
    }

    fn result(id: &str, text: &str) -> Entry {
        Entry::new(Kind::Returned(Return {
            call_id: Some(id.into()),
            name: None,
            outcome: Outcome::Ok,
            parts: vec![Part::text(text)],
            item_id: None,
            freeform: false,
        }))
    }

    fn kept(entries: &[Entry]) -> Vec<Kept> {
        let kept = |(at, entry): (usize, &Entry)| Kept {
            id: EntryId::new(format!("e{at}")),
            conversation: ConversationId::new("c"),
            parent: None,
            exchange: None,
            at: Moment(0),
            entry: entry.clone(),
        };
        entries.iter().enumerate().map(kept).collect()
    }

    fn marks(entries: &[Entry], sent: &[Entry], continues: bool) -> Vec<&'static str> {
        let decisions = Decisions::default();
        let attempted = Attempted { decisions: &decisions, continues, briefed: false };
        let kept = kept(entries);
        let seen = Seen::of(&kept, sent, attempted, &Gauge::of_model("gpt-5"), &Counts::default());
        seen.rows.iter().map(|row| row.mark.name()).collect()
    }

    #[test]
    fn what_was_sent_as_it_was_kept_is_the_same() {
        let history =
            [said(Role::User, "read it"), call("a", "{}"), result("a", "text"), said(Role::User, "and?")];
        assert_eq!(marks(&history, &history, false), ["same"; 4]);
    }

    #[test]
    fn what_has_no_counterpart_was_left_out_or_is_held_or_was_added() {
        let history = [said(Role::User, "one"), said(Role::Assistant, "two")];
        let sent = [said(Role::User, "a brief"), said(Role::Assistant, "two")];
        assert_eq!(marks(&history, &sent, false), ["added", "left out", "same"]);
        assert_eq!(marks(&history, &sent[1..], true), ["held", "same"]);
    }

    #[test]
    fn results_are_found_in_the_text_that_retells_them() {
        let history =
            [said(Role::User, "read"), call("a", "{}"), result("a", "the file"), said(Role::User, "go on")];
        let sent = [said(Role::User, "read"), said(Role::User, "Context (tool result):\nthe file\n\ngo on")];
        assert_eq!(marks(&history, &sent, false), ["same", "retold", "retold", "joined"]);
    }

    #[test]
    fn a_call_that_goes_by_another_id_is_the_same_call() {
        let history = [call("a-long-id", "{\"path\":\"x\"}"), result("a-long-id", "text")];
        let sent = [call("short", "{\"path\":\"x\"}"), result("short", "text")];
        assert_eq!(marks(&history, &sent, false), ["changed", "changed"]);
    }
}
