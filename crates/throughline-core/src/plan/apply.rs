//! A plan carried out: the entries as they will be shown, and a line in the report for each change (R33).

use super::decision::{Decision, Decisions, Taken};
use super::marker;
use crate::{
    Absence, Action, Addition, Call, Entry, Kind, Part, Report, Return, Said, Side, Summary, Text, Trace,
    Treatment,
};

/// Returns the entries as `decisions` show them.
pub(super) fn apply(
    entries: &[Entry],
    decisions: &Decisions,
    recall: bool,
    report: &mut Report,
) -> Vec<Entry> {
    let mut shown = Vec::with_capacity(entries.len());
    let mut taken = decisions.taken.iter().peekable();
    // Whether the run of entries under way lost its reasoning: its items may not be sent under ids that refer
    // to it.
    let mut bereft = false;
    for (at, entry) in entries.iter().enumerate() {
        if let Some(span) = decisions.span.as_ref().filter(|span| span.at as usize == at) {
            let summary = Summary { text: span.text.clone(), covers: span.covers };
            let trace = Trace::Added(Addition::Summary);
            shown.push(Entry { trace, ..Entry::new(Kind::Summarised(summary)) });
        }
        bereft &= entry.side() == Side::Assistant;
        let Some(taken) = taken.next_if(|taken| taken.entry as usize == at) else {
            shown.push(if bereft && entry.as_said().is_some() { unlinked(entry) } else { entry.clone() });
            continue;
        };
        bereft |= matches!(entry.kind, Kind::Thought(_));
        report.entry(action(&taken.decision, entry), entry.place, reason(taken));
        match shown_as(entry, taken, recall) {
            Some(mut entry) => {
                note_treatment(&mut entry.trace, taken);
                shown.push(entry);
            }
            None => report.leave_out(entry, absence(&taken.decision)),
        }
    }
    shown
}

fn note_treatment(trace: &mut Trace, taken: &Taken) {
    trace.note(match &taken.decision {
        Decision::Superseded { .. } => Treatment::Superseded,
        Decision::Excerpt(_) => Treatment::Excerpted,
        Decision::Cleared => Treatment::Cleared,
        Decision::Masked | Decision::Summarised | Decision::Dropped => Treatment::Masked,
    });
    if taken.stale {
        trace.note(Treatment::Stale);
    }
}

const fn absence(decision: &Decision) -> Absence {
    match decision {
        Decision::Summarised => Absence::Summarised,
        Decision::Cleared => Absence::Cleared,
        _ => Absence::Superseded,
    }
}

fn unlinked(entry: &Entry) -> Entry {
    Entry { intact: false, ..entry.clone() }
}

fn shown_as(entry: &Entry, taken: &Taken, recall: bool) -> Option<Entry> {
    match (&taken.decision, &entry.kind) {
        (Decision::Dropped | Decision::Summarised, _) | (Decision::Cleared, Kind::Thought(_)) => None,
        (_, Kind::Returned(returned)) => {
            let parts = vec![Part::text(marker::result_text(returned, taken, recall))];
            Some(entry.altered(Kind::Returned(Return { parts, ..returned.clone() })))
        }
        (_, Kind::Called(call)) => {
            let input = marker::call_input(call, taken, recall);
            Some(entry.altered(Kind::Called(Call { input, ..call.clone() })))
        }
        (_, Kind::Said(said)) => {
            let others = said.parts.iter().filter(|part| part.as_text().is_none()).cloned();
            let text = Part::text(marker::said_text(said, taken, recall));
            let parts = std::iter::once(text).chain(others).collect();
            Some(entry.altered(Kind::Said(Said { parts, ..said.clone() })))
        }
        _ => Some(entry.clone()),
    }
}

const fn action(decision: &Decision, entry: &Entry) -> Action {
    match (decision, &entry.kind) {
        (Decision::Dropped | Decision::Summarised, _) | (Decision::Cleared, Kind::Thought(_)) => {
            Action::Dropped
        }
        _ => Action::Shortened,
    }
}

/// Says why an entry is shown as it is.
pub(super) fn reason(taken: &Taken) -> Text {
    let Taken { from, tokens, .. } = taken;
    let why = match &taken.decision {
        Decision::Summarised => return Text::from_static("went into the summary of the oldest calls"),
        Decision::Dropped => return Text::from_static("a later call shows the same anew"),
        Decision::Superseded { by } => {
            return format!("entry {by} shows it anew; {from} tokens, now {tokens}").into();
        }
        Decision::Excerpt(_) if taken.stale => "excerpt of a file that was written since",
        Decision::Excerpt(_) => "excerpt",
        Decision::Masked => "masked",
        Decision::Cleared => "cleared, as the client asks",
    };
    format!("{why}; {from} tokens, now {tokens}").into()
}
