//! What of the record a backend is not shown, and why (R39).

use super::compact;
use super::place::Placed;
use std::collections::BTreeSet;
use throughline_core::{Absence, Ask, Entry, Kind, Provenance, Source, Trace};

/// Says of everything on the branch that is neither shown nor left out for a reason why it is not shown.
pub fn account(provenance: &mut Provenance, ask: &Ask, placed: &Placed, is_held: bool) {
    let sources = |entries: &[Entry]| -> BTreeSet<Source> {
        entries.iter().flat_map(|entry| entry.trace.shares()).map(|share| share.source).collect()
    };
    let rows = provenance.rows.iter().flat_map(|row| row.trace.shares());
    let mut settled: BTreeSet<Source> = rows.map(|share| share.source).collect();
    settled.extend(provenance.absent.iter().map(|absent| absent.source));

    let in_history = sources(&placed.history);
    let notes: Vec<Entry> = placed.history.iter().filter(|entry| is_note(entry)).cloned().collect();
    let notes = sources(&notes);
    let asks = |(entry, trace): (&Entry, &Trace)| {
        compact::is_trigger(entry).then(|| trace.shares().first().map(|share| share.source)).flatten()
    };
    let requests: BTreeSet<Source> = ask.entries.iter().zip(&placed.asked).filter_map(asks).collect();
    for at in 0..placed.recorded {
        let source = Source::Record(at);
        // What was not read is not known here; whoever knows it adds it.
        if settled.contains(&source) || placed.unread.contains(&at) {
            continue;
        }
        let why = match () {
            () if requests.contains(&source) => Absence::Request,
            () if notes.contains(&source) => Absence::InternalNote,
            () if is_held => Absence::Held,
            () if in_history.contains(&source) => Absence::NotResent,
            // A client may have taken single items out of a conversation.
            () if ask.conversation.is_some() => Absence::Unexplained,
            () => Absence::InstructionsReplaced,
        };
        provenance.leave_out(&Trace::from(source), why);
    }
    provenance.settle([]);
}

const fn is_note(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::HandedOver(_))
}
