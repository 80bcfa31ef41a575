//! What a backend saw of a history: what was kept beside what was sent, entry by entry, with the reason for
//! every difference.
//!
//! What was sent is decoded from the bytes that left. Which entry of the record each entry of it comes from, and why
//! the others are not in it, was noted while the request was rendered, and is looked up here. Nothing is compared,
//! and where nothing was noted, nothing is claimed.

use super::class_name;
use super::reason;
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::plan::{self, Handle};
use throughline_core::{
    Absence, Entry, Provenance, SentPlace, Share, Source, Text, Trace, Treatment, Treatments,
};
use throughline_store::Kept;
use throughline_tokens::{Counts, Gauge};

/// What one attempt showed of a history.
#[derive(Debug)]
pub struct Seen<'s> {
    /// Kept and sent side by side, in the order of what was sent; what was not sent stands where it would have been.
    pub rows: Vec<Row<'s>>,
    /// Tokens by kind of entry: as kept, as sent.
    pub tokens: BTreeMap<&'static str, (u64, u64)>,
    /// Why nothing is said about where the entries come from, if nothing is.
    pub unknown: Option<Unknown>,
}

/// Why nothing is said about where the entries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The attempt was recorded by a release that did not note it.
    NotNoted,
    /// What was noted cannot be read, or is not about this request.
    Unreadable,
}

/// An entry as it was kept and as it was sent.
#[derive(Debug)]
pub struct Row<'s> {
    /// As it was kept; none for what is not one entry of the record.
    pub kept: Option<&'s Kept>,
    /// As it was sent; none for what was not shown by itself.
    pub sent: Option<&'s Entry>,
    /// Where it comes from.
    pub from: From,
    /// How the two differ.
    pub mark: Mark,
    /// Why they differ, in a sentence; nothing where they do not.
    pub reason: Option<Text>,
    /// By which the model can have back what was taken out for the sake of the budget.
    pub handle: Option<Handle>,
    /// Whether it shows a file that was written since.
    pub stale: bool,
    /// Its size as it was kept and as it was sent.
    pub tokens: (u64, u64),
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From the record.
    Record,
    /// From this request alone: the record does not have it.
    Request,
    /// It was made for the backend.
    Added,
    /// From an entry whose row stands before this one.
    Above,
    /// Nobody noted it.
    Unknown,
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
    Retold,
    /// It stands in one message with what was said beside it.
    Joined,
    /// It went into a summary.
    Summarised,
    /// It was not shown.
    LeftOut,
    /// The backend has it already.
    Held,
    /// It is a note in the record, which no backend is shown.
    Internal,
    /// It was made for the backend, or came with the request alone.
    Added,
    /// Nobody noted what it is.
    Unknown,
}

impl From {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Request => "request",
            Self::Added => "added",
            Self::Above => "above",
            Self::Unknown => "unknown",
        }
    }
}

impl Mark {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Shortened => "shortened",
            Self::Retold => "retold",
            Self::Joined => "joined",
            Self::Summarised => "summarised",
            Self::LeftOut => "left out",
            Self::Held => "held",
            Self::Internal => "internal",
            Self::Added => "added",
            Self::Unknown => "unknown",
        }
    }

    /// Returns how something that was shown differs from what was kept.
    fn of_shown(treatments: Treatments) -> Self {
        let has = |treatment| treatments.contains(treatment);
        match () {
            () if treatments.is_as_is() => Self::Same,
            () if SHORTENING.into_iter().any(has) => Self::Shortened,
            () if has(Treatment::Retold) => Self::Retold,
            () if has(Treatment::Joined) || has(Treatment::BehindBrief) => Self::Joined,
            () => Self::Changed,
        }
    }

    /// Returns what became of something that was not shown.
    const fn of_absent(why: Absence) -> Self {
        match why {
            Absence::Summarised | Absence::Briefed => Self::Summarised,
            Absence::CallOfText => Self::Retold,
            Absence::Held => Self::Held,
            Absence::InternalNote => Self::Internal,
            _ => Self::LeftOut,
        }
    }
}

/// What shows only a part of something.
const SHORTENING: [Treatment; 4] =
    [Treatment::Excerpted, Treatment::Masked, Treatment::Superseded, Treatment::Cleared];

impl<'s> Seen<'s> {
    /// Lays what was kept beside what was sent, by what was noted when it was.
    ///
    /// `kept` is the branch that the request stands on, at least as far as it was shown.
    #[must_use]
    pub fn looked_up(
        kept: &'s [Kept],
        sent: &'s [Entry],
        noted: Result<&Provenance, Unknown>,
        gauge: &Gauge,
        counts: &Counts,
    ) -> Self {
        let size = |entry: &Entry| gauge.tokens(gauge.entry(counts, entry));
        let noted = noted.and_then(|provenance| match fits(provenance, kept, sent) {
            true => Ok(provenance),
            false => Err(Unknown::Unreadable),
        });
        let (mut rows, unknown) = match noted {
            Ok(provenance) => (Lookup::new(kept, sent).rows(provenance), None),
            Err(why) => (sent.iter().map(|sent| unknown_row(sent, why)).collect(), Some(why)),
        };
        let mut tokens: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
        for row in &mut rows {
            row.tokens = (row.kept.map_or(0, |kept| size(&kept.entry)), row.sent.map_or(0, size));
            if let Some(sent) = row.sent {
                tokens.entry(class_name(sent)).or_default().1 += row.tokens.1;
            }
            if let Some(kept) = row.kept {
                tokens.entry(class_name(&kept.entry)).or_default().0 += row.tokens.0;
            }
        }
        Self { rows, tokens, unknown }
    }
}

/// Says whether what was noted is about these entries.
fn fits(provenance: &Provenance, kept: &[Kept], sent: &[Entry]) -> bool {
    let is_kept = |source: Source| match source {
        Source::Record(at) => (at as usize) < kept.len(),
        Source::Request(_) => true,
    };
    let mut shares = provenance.rows.iter().flat_map(|row| row.trace.shares());
    provenance.rows.iter().map(|row| row.at).eq(places(sent))
        && shares.all(|share| is_kept(share.source))
        && provenance.absent.iter().all(|absent| is_kept(absent.source))
}

/// Returns where the entries of a body stand.
fn places(sent: &[Entry]) -> impl Iterator<Item = SentPlace> {
    let mut last: Option<SentPlace> = None;
    sent.iter().map(move |entry| {
        let message = entry.place.map(|place| place.message);
        let nth = last.filter(|last| last.message == message).map_or(0, |last| last.nth + 1);
        *last.insert(SentPlace { message, nth })
    })
}

fn unknown_row(sent: &Entry, why: Unknown) -> Row<'_> {
    Row {
        kept: None,
        sent: Some(sent),
        from: From::Unknown,
        mark: Mark::Unknown,
        reason: Some(reason::unknown(why)),
        handle: None,
        stale: false,
        tokens: (0, 0),
    }
}

/// What is looked up in.
struct Lookup<'s> {
    kept: &'s [Kept],
    sent: &'s [Entry],
    /// By position, the handles of calls and results.
    handles: BTreeMap<usize, Handle>,
    /// The entries of the record that have a row already.
    told: BTreeSet<u32>,
    rows: Vec<Row<'s>>,
}

impl<'s> Lookup<'s> {
    fn new(kept: &'s [Kept], sent: &'s [Entry]) -> Self {
        Self { kept, sent, handles: handles(kept), told: BTreeSet::new(), rows: Vec::new() }
    }

    fn rows(mut self, provenance: &Provenance) -> Vec<Row<'s>> {
        let absent = |absent: &throughline_core::Absent| match absent.source {
            Source::Record(at) => Some((at, absent.why)),
            Source::Request(_) => None,
        };
        let mut absent = provenance.absent.iter().filter_map(absent).peekable();
        for (row, sent) in provenance.rows.iter().zip(self.sent) {
            // What was left out before this stands before it.
            while let Some((at, why)) = absent.next_if(|(at, _)| is_before(*at, &row.trace)) {
                self.leave_out(at, why);
            }
            self.show(&row.trace, sent);
        }
        absent.for_each(|(at, why)| self.leave_out(at, why));
        self.rows
    }

    fn leave_out(&mut self, at: u32, why: Absence) {
        if !self.told.insert(at) {
            return;
        }
        let kept = &self.kept[at as usize];
        let is_for_budget = matches!(why, Absence::Summarised | Absence::Superseded | Absence::Cleared);
        self.rows.push(Row {
            kept: Some(kept),
            sent: None,
            from: From::Record,
            mark: Mark::of_absent(why),
            reason: Some(reason::absent(why)),
            handle: self.handles.get(&(at as usize)).copied().filter(|_| is_for_budget),
            stale: false,
            tokens: (0, 0),
        });
    }

    /// Adds the rows of an entry that was sent: one for it, and one more for each further entry that stands in it.
    fn show(&mut self, trace: &Trace, sent: &'s Entry) {
        let mut is_shown = false;
        for share in trace.shares() {
            let Source::Record(at) = share.source else { continue };
            if !self.told.insert(at) {
                continue;
            }
            self.push_share(*share, at, sent, !is_shown);
            is_shown = true;
        }
        if is_shown {
            return;
        }
        let (from, mark, reason) = match (trace, trace.shares().first()) {
            (Trace::Added(addition), _) => (From::Added, Mark::Added, Some(reason::added(*addition))),
            (_, None) => (From::Unknown, Mark::Unknown, Some(reason::unknown(Unknown::Unreadable))),
            (_, Some(Share { source: Source::Request(_), treatments })) => {
                (From::Request, Mark::Added, Some(reason::of_request(*treatments)))
            }
            (_, Some(Share { source: Source::Record(_), treatments })) => {
                (From::Above, Mark::of_shown(*treatments), Some(reason::above()))
            }
        };
        let (kept, handle, stale, tokens) = (None, None, false, (0, 0));
        self.rows.push(Row { kept, sent: Some(sent), from, mark, reason, handle, stale, tokens });
    }

    fn push_share(&mut self, share: Share, at: u32, sent: &'s Entry, is_first: bool) {
        let kept = &self.kept[at as usize];
        let mark = Mark::of_shown(share.treatments);
        self.rows.push(Row {
            kept: Some(kept),
            sent: is_first.then_some(sent),
            from: From::Record,
            mark,
            reason: reason::shown(share.treatments, &kept.entry, sent),
            handle: self.handles.get(&(at as usize)).copied().filter(|_| mark == Mark::Shortened),
            stale: share.treatments.contains(Treatment::Stale),
            tokens: (0, 0),
        });
    }
}

/// Says whether an entry of the record stands before what an entry that was sent comes from.
fn is_before(at: u32, trace: &Trace) -> bool {
    let sources = trace.shares().iter().filter_map(|share| match share.source {
        Source::Record(at) => Some(at),
        Source::Request(_) => None,
    });
    sources.min().is_some_and(|first| at < first)
}

fn handles(kept: &[Kept]) -> BTreeMap<usize, Handle> {
    let entries: Vec<Entry> = kept.iter().map(|kept| kept.entry.clone()).collect();
    let mut handles = BTreeMap::new();
    for (pair, handle) in plan::handles(&entries) {
        handles.extend(pair.call.into_iter().chain(pair.result).map(|at| (at, handle)));
    }
    handles
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Absent, Addition, ConversationId, EntryId, Place, Role, Row as Noted};
    use throughline_store::Moment;

    fn kept(entry: Entry) -> Kept {
        Kept {
            id: EntryId::new("e"),
            parent: None,
            conversation: ConversationId::new("c"),
            exchange: None,
            at: Moment(0),
            entry,
        }
    }

    fn sent(texts: &[&str]) -> Vec<Entry> {
        let place = |message| Some(Place { message, block: None });
        let said = |(text, at): (&&str, u32)| Entry { place: place(at), ..Entry::said(Role::User, *text) };
        texts.iter().zip(0..).map(said).collect()
    }

    fn record(at: u32, treatments: Treatments) -> Trace {
        Trace::From(Share { source: Source::Record(at), treatments })
    }

    fn noted(traces: Vec<Trace>, absent: &[(u32, Absence)]) -> Provenance {
        let row = |(trace, at)| Noted { at: SentPlace::within(at, 0), trace };
        let absent = absent.iter().map(|(at, why)| Absent { source: Source::Record(*at), why: *why });
        Provenance { rows: traces.into_iter().zip(0..).map(row).collect(), absent: absent.collect() }
    }

    fn rows(kept: &[Kept], sent: &[Entry], noted: Result<&Provenance, Unknown>) -> Vec<String> {
        let seen = Seen::looked_up(kept, sent, noted, &Gauge::of_model("m"), &Counts::default());
        let row = |row: &Row<'_>| {
            format!("{} {} {}", row.mark.name(), row.from.name(), row.sent.map_or("-", |_| "sent"))
        };
        seen.rows.iter().map(row).collect()
    }

    #[test]
    fn the_same_words_are_told_apart_by_what_was_noted() {
        let history: Vec<Kept> = (0..3).map(|_| kept(Entry::said(Role::User, "again"))).collect();
        let sent = sent(&["again", "again"]);
        let as_is = Treatments::AS_IS;
        let noted = noted(vec![record(0, as_is), record(2, as_is)], &[(1, Absence::Superseded)]);
        let expected = ["same record sent", "left out record -", "same record sent"];
        assert_eq!(rows(&history, &sent, Ok(&noted)), expected);
    }

    #[test]
    fn what_is_not_of_the_record_says_where_it_comes_from() {
        let history = [kept(Entry::said(Role::User, "a")), kept(Entry::said(Role::User, "b"))];
        let sent = sent(&["summary", "a", "b", "rest", "x"]);
        let split = Treatments::AS_IS.with(Treatment::Split);
        let traces = vec![
            Trace::Added(Addition::Summary),
            record(0, split),
            record(1, Treatments::AS_IS),
            record(0, split),
            Trace::from(Source::Request(0)),
        ];
        let expected = [
            "added added sent",
            "changed record sent",
            "same record sent",
            "changed above sent",
            "added request sent",
        ];
        assert_eq!(rows(&history, &sent, Ok(&noted(traces, &[]))), expected);
    }

    #[test]
    fn nothing_is_claimed_where_nothing_was_noted_or_something_else() {
        let history = [kept(Entry::said(Role::User, "a"))];
        let sent = sent(&["a"]);
        assert_eq!(rows(&history, &sent, Err(Unknown::NotNoted)), ["unknown unknown sent"]);
        let other = noted(vec![record(7, Treatments::AS_IS)], &[]);
        assert_eq!(rows(&history, &sent, Ok(&other)), ["unknown unknown sent"]);
        let shorter = noted(vec![], &[(0, Absence::Held)]);
        assert_eq!(rows(&history, &sent, Ok(&shorter)), ["unknown unknown sent"]);
    }
}
