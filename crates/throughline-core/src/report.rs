//! The report: what was changed for a backend, where, and why (R33).
//!
//! Whatever a backend is shown that differs from what the client said, other than by the plain fact of
//! another dialect, is a [`Change`]. Nothing is dropped in silence.

use crate::{Absence, Entry, Place, Provenance, Text, Trace};
use std::fmt;

/// Everything that was changed in one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The name of the strategy that rendered the history.
    pub strategy: &'static str,
    /// The changes, in the order in which they were made.
    pub changes: Vec<Change>,
    /// Where what is shown comes from, and why the rest is not shown.
    pub provenance: Provenance,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was done.
    pub action: Action,
    /// To what.
    pub subject: Subject,
    /// Why.
    pub reason: Text,
}

/// What was done to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// What the backend would have rejected was mended.
    Repaired,
    /// It was shortened.
    Shortened,
    /// It was left out; the record still has it.
    Dropped,
    /// It goes by another id or name.
    Renamed,
    /// It says the same in another form.
    Translated,
}

/// What a change was made to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A top-level field of the request.
    Field(Text),
    /// An entry of the history, by where it stood in the request.
    Entry(Option<Place>),
    /// A tool on offer.
    Tool(Text),
}

impl Action {
    /// All actions, in the order in which a summary counts them.
    pub const ALL: [Self; 5] =
        [Self::Repaired, Self::Shortened, Self::Dropped, Self::Renamed, Self::Translated];

    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Shortened => "shortened",
            Self::Dropped => "dropped",
            Self::Renamed => "renamed",
            Self::Translated => "translated",
        }
    }
}

impl Report {
    /// Notes a change.
    pub fn note(&mut self, action: Action, subject: Subject, reason: impl Into<Text>) {
        self.changes.push(Change { action, subject, reason: reason.into() });
    }

    /// Notes a change of an entry.
    pub fn entry(&mut self, action: Action, place: Option<Place>, reason: impl Into<Text>) {
        self.note(action, Subject::Entry(place), reason);
    }

    /// Notes that an entry is left out, and why.
    pub fn leave_out(&mut self, entry: &Entry, why: Absence) {
        self.leave_out_trace(&entry.trace, why);
    }

    /// Notes that what a trace comes from is left out, and why.
    pub fn leave_out_trace(&mut self, trace: &Trace, why: Absence) {
        self.provenance.leave_out(trace, why);
    }

    /// Notes a change of a top-level field.
    pub fn field(&mut self, action: Action, name: impl Into<Text>, reason: impl Into<Text>) {
        self.note(action, Subject::Field(name.into()), reason);
    }

    /// Puts the changes into an order that depends on nothing but what they are: that of the request.
    pub fn sort(&mut self) {
        self.changes
            .sort_by(|a, b| (&a.subject, a.action, &a.reason).cmp(&(&b.subject, b.action, &b.reason)));
    }

    /// Returns how many changes of that kind there are.
    #[must_use]
    pub fn count(&self, action: Action) -> usize {
        self.changes.iter().filter(|change| change.action == action).count()
    }
}

/// Writes the summary of a report, as it stands in a response header.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in Action::ALL {
            write!(f, "{}={} ", action.name(), self.count(action))?;
        }
        write!(f, "strategy={}", self.strategy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_sorted_by_where_they_were_made() {
        let place = |message| Some(Place { message, block: None });
        let mut report = Report::default();
        report.entry(Action::Renamed, place(2), "a");
        report.entry(Action::Dropped, place(1), "b");
        report.field(Action::Dropped, "top_k", "c");
        report.sort();
        let reasons: Vec<&str> = report.changes.iter().map(|change| change.reason.as_str()).collect();
        assert_eq!(reasons, ["c", "b", "a"]);
    }

    #[test]
    fn the_summary_counts_each_action() {
        let mut report = Report { strategy: "native", ..Report::default() };
        report.field(Action::Dropped, "top_k", "the target has no such setting");
        report.entry(Action::Renamed, None, "id too long");
        report.entry(Action::Renamed, None, "id too long");
        assert_eq!(
            report.to_string(),
            "repaired=0 shortened=0 dropped=1 renamed=2 translated=0 strategy=native"
        );
    }
}
