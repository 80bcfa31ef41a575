//! Provenance: what of a history a backend was shown, noted while it is rendered (R39).
//!
//! Each entry on its way to a backend carries a [`Trace`]: the entries that it comes from, and what was done to
//! each of them. Whatever leaves an entry out says why. The encoder notes where each entry landed in the body.
//! What comes of it, a [`Provenance`], is kept with the attempt, so that "what did the backend see" is a lookup
//! and never a comparison of texts.
//!
//! Invariants: every entry that the sent body decodes to has one row; every source is placed or absent, and what
//! is absent has a reason; a source that is placed as it is says, word for word, what stands at its place.

mod bytes;
mod trace;

pub use bytes::ProvenanceError;
pub use trace::{Addition, Share, Source, Trace, Treatment, Treatments};

use crate::{Entry, Kind};
use std::collections::BTreeSet;

/// What of a history a backend was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// What stands in the body, in its order.
    pub rows: Vec<Row>,
    /// What does not, in the order of the sources.
    pub absent: Vec<Absent>,
}

/// Where an entry of the body comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it stands.
    pub at: SentPlace,
    /// Where it comes from.
    pub trace: Trace,
}

/// Where an entry stands in a body that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SentPlace {
    /// The message or item; none for instructions that stand beside the conversation.
    pub message: Option<u32>,
    /// Which of the entries that the message decodes to.
    pub nth: u32,
}

/// A source that is not in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absent {
    /// Which.
    pub source: Source,
    /// Why not.
    pub why: Absence,
}

/// Why a source is not in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Absence {
    /// The summary of the oldest calls tells it.
    Summarised,
    /// A later call shows the same anew.
    Superseded,
    /// The client asked to have it cleared.
    Cleared,
    /// The handover brief stands for it.
    Briefed,
    /// A handover brief holds no reasoning.
    ReasoningNotBriefed,
    /// Reasoning of another backend or model.
    ForeignReasoning,
    /// Reasoning that this backend refuses: changed, or without its seal.
    UnusableReasoning,
    /// Reasoning that nothing follows any more.
    DanglingReasoning,
    /// The backend is configured to be sent no reasoning.
    ReasoningOff,
    /// A note in the record, which no backend is shown.
    InternalNote,
    /// The backend's dialect has no counterpart.
    NoCounterpart,
    /// The same result came before.
    DuplicateResult,
    /// It says nothing, and nothing is not sent.
    Blank,
    /// The call of a result that is told as text.
    CallOfText,
    /// Instructions that the request replaced by its own.
    InstructionsReplaced,
    /// Instructions that stand in the body once already.
    InstructionsRestated,
    /// The client resends its history itself, without this.
    NotResent,
    /// The backend keeps it from an answer before.
    Held,
    /// It only asked for something to be done.
    Request,
    /// It was left out, and nobody noted why.
    Unexplained,
}

impl Absence {
    /// All reasons; the position of each is its number in stored bytes, so that new ones go to the end.
    pub const ALL: [Self; 20] = [
        Self::Summarised,
        Self::Superseded,
        Self::Cleared,
        Self::Briefed,
        Self::ReasoningNotBriefed,
        Self::ForeignReasoning,
        Self::UnusableReasoning,
        Self::DanglingReasoning,
        Self::ReasoningOff,
        Self::InternalNote,
        Self::NoCounterpart,
        Self::DuplicateResult,
        Self::Blank,
        Self::CallOfText,
        Self::InstructionsReplaced,
        Self::InstructionsRestated,
        Self::NotResent,
        Self::Held,
        Self::Request,
        Self::Unexplained,
    ];
}

impl SentPlace {
    /// Returns the place of instructions that stand beside the conversation.
    #[must_use]
    pub const fn beside() -> Self {
        Self { message: None, nth: 0 }
    }

    /// Returns the place of the `nth` entry of a message.
    #[must_use]
    pub const fn within(message: u32, nth: u32) -> Self {
        Self { message: Some(message), nth }
    }
}

impl Provenance {
    /// Notes that an entry stands at a place; what stands there already is joined with it.
    pub fn land(&mut self, at: SentPlace, trace: &Trace) {
        // Results go before other blocks of their message, so that the row may not be the last one.
        let of_message = self.rows.iter_mut().rev().take_while(|row| row.at.message == at.message);
        match of_message.into_iter().find(|row| row.at == at) {
            Some(row) => row.trace.join(trace),
            None => self.rows.push(Row { at, trace: trace.clone() }),
        }
    }

    /// Notes that what an entry comes from is not shown.
    pub fn leave_out(&mut self, trace: &Trace, why: Absence) {
        self.absent.extend(trace.shares().iter().map(|share| Absent { source: share.source, why }));
    }

    /// Settles what became of `given`: a source that was placed is not absent, one that is neither is absent, and
    /// each is named once.
    pub fn settle<'e>(&mut self, given: impl IntoIterator<Item = &'e Entry>) {
        self.rows.sort_by_key(|row| row.at);
        let placed: BTreeSet<Source> =
            self.rows.iter().flat_map(|row| row.trace.shares()).map(|share| share.source).collect();
        let mut absent = BTreeSet::new();
        // The first reason is that of the step which left it out.
        self.absent.retain(|it| !placed.contains(&it.source) && absent.insert(it.source));

        for entry in given {
            for share in entry.trace.shares() {
                if !placed.contains(&share.source) && absent.insert(share.source) {
                    self.absent.push(Absent { source: share.source, why: unwritten(entry) });
                }
            }
        }
        self.absent.sort_unstable();
    }

    /// Returns why a source is not in the body.
    #[must_use]
    pub fn absence(&self, source: Source) -> Option<Absence> {
        let at = self.absent.binary_search_by_key(&source, |absent| absent.source).ok()?;
        Some(self.absent[at].why)
    }
}

/// Returns why an entry was not written that reached the encoder.
const fn unwritten(entry: &Entry) -> Absence {
    match &entry.kind {
        Kind::Said(_) | Kind::Summarised(_) => Absence::Blank,
        Kind::Thought(_) => Absence::UnusableReasoning,
        Kind::HandedOver(_) => Absence::InternalNote,
        Kind::Reference { .. } | Kind::Opaque { .. } => Absence::NoCounterpart,
        Kind::Called(_) | Kind::Returned(_) => Absence::Unexplained,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn record(at: u32) -> Trace {
        Trace::from(Source::Record(at))
    }

    #[test]
    fn what_lands_in_one_place_is_joined_there() {
        let mut provenance = Provenance::default();
        provenance.land(SentPlace::within(0, 0), &record(0));
        provenance.land(SentPlace::within(0, 1), &record(1));
        provenance.land(SentPlace::within(0, 0), &record(2));
        assert_eq!(provenance.rows.len(), 2);
        let joined = provenance.rows[0].trace.shares();
        assert_eq!(
            joined.iter().map(|share| share.source).collect::<Vec<_>>(),
            [Source::Record(0), Source::Record(2)]
        );
        assert!(joined.iter().all(|share| share.treatments.contains(Treatment::Joined)));
    }

    #[test]
    fn every_source_is_placed_or_absent_and_never_both() {
        let entries: Vec<Entry> =
            (0..4).map(|at| Entry { trace: record(at), ..Entry::said(Role::User, "a") }).collect();
        let mut provenance = Provenance::default();
        provenance.leave_out(&record(1), Absence::Superseded);
        provenance.leave_out(&record(1), Absence::Held);
        provenance.leave_out(&record(0), Absence::Held);
        provenance.land(SentPlace::within(0, 0), &record(0));
        provenance.settle(&entries);
        let why = |at| provenance.absence(Source::Record(at));
        assert_eq!(
            [why(0), why(1), why(2), why(3)],
            [None, Some(Absence::Superseded), Some(Absence::Blank), Some(Absence::Blank)]
        );
    }
}
