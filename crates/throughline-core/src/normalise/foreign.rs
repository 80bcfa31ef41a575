//! What only another dialect understands is taken out, and reported.

use crate::{
    Absence, Action, Content, Dialect, Entry, File, Kind, Media, Part, Place, Report, Return, Rules, Said,
    Text, Treatment, Wire,
};

/// Returns the entries without anything that the target's dialect has no words for.
pub(super) fn without_foreign(entries: &[Entry], rules: &Rules, report: &mut Report) -> Vec<Entry> {
    entries.iter().filter_map(|entry| native(entry, rules, report)).collect()
}

fn native(entry: &Entry, rules: &Rules, report: &mut Report) -> Option<Entry> {
    report_extras(entry, rules.dialect, report);
    match &entry.kind {
        Kind::Opaque { kind } | Kind::Reference { id: kind } => {
            let kept = is_own(entry.wire.as_ref(), rules.dialect) && rules.own_extensions;
            if !kept {
                let reason = format!("{kind} has no counterpart in {}", rules.dialect);
                report.entry(Action::Dropped, entry.place, reason);
                report.leave_out(entry, Absence::NoCounterpart);
            }
            kept.then(|| entry.clone())
        }
        Kind::Said(said) => {
            let parts = native_parts(&said.parts, entry.place, rules, report);
            Some(match parts {
                Some(parts) => adapted(entry, Kind::Said(Said { parts, ..said.clone() })),
                None => entry.clone(),
            })
        }
        Kind::Returned(returned) => {
            let parts = native_parts(&returned.parts, entry.place, rules, report);
            Some(match parts {
                Some(parts) => adapted(entry, Kind::Returned(Return { parts, ..returned.clone() })),
                None => entry.clone(),
            })
        }
        // A handover is a note in the record; no backend is shown it.
        Kind::HandedOver(_) => {
            report.leave_out(entry, Absence::InternalNote);
            None
        }
        Kind::Thought(_) | Kind::Called(_) | Kind::Summarised(_) => Some(entry.clone()),
    }
}

fn adapted(entry: &Entry, kind: Kind) -> Entry {
    Entry { trace: entry.trace.with(Treatment::Adapted), ..entry.altered(kind) }
}

/// Returns the parts that the target understands, or nothing if that is all of them.
fn native_parts(
    parts: &[Part],
    place: Option<Place>,
    rules: &Rules,
    report: &mut Report,
) -> Option<Vec<Part>> {
    let is_native = |part: &Part| match &part.content {
        Content::Opaque { .. } => is_own(part.wire.as_ref(), rules.dialect) && rules.own_extensions,
        Content::Image(image) => !is_stored(&image.media) || is_own(part.wire.as_ref(), rules.dialect),
        Content::File(file) => {
            rules.files && (!is_stored(&file.media) || is_own(part.wire.as_ref(), rules.dialect))
        }
        Content::Refusal(_) => rules.refusals,
        Content::Text(_) => true,
    };
    if parts.iter().all(is_native) {
        return None;
    }
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        if is_native(part) {
            kept.push(part.clone());
        } else {
            kept.extend(stand_in(part, place, rules, report));
        }
    }
    Some(kept)
}

/// Returns the words that stand in for a part that cannot be sent, and reports what became of it.
fn stand_in(part: &Part, place: Option<Place>, rules: &Rules, report: &mut Report) -> Option<Part> {
    let (action, reason, words) = match &part.content {
        Content::Refusal(words) => (Action::Translated, "a refusal is sent as text".into(), words.clone()),
        Content::File(File { media: Media::Plain(words), .. }) => {
            (Action::Translated, "a file of text is sent as text".into(), words.clone())
        }
        Content::File(file) if !is_stored(&file.media) => {
            let line = Text::from_static("[file left out: the target takes no files]");
            (Action::Dropped, Text::from_static("the target takes no files"), line)
        }
        Content::Image(_) | Content::File(_) => {
            let kind = if matches!(part.content, Content::Image(_)) { "image" } else { "file" };
            let line = format!("[{kind} left out: it is stored with another provider]");
            (
                Action::Dropped,
                format!("a stored {kind} has no counterpart in {}", rules.dialect).into(),
                line.into(),
            )
        }
        Content::Opaque { kind } => {
            let reason = format!("{kind} has no counterpart in {}", rules.dialect);
            report.entry(Action::Dropped, place, reason);
            return None;
        }
        Content::Text(_) => return Some(part.clone()),
    };
    report.entry(action, place, reason);
    Some(Part::text(words))
}

const fn is_stored(media: &Media) -> bool {
    matches!(media, Media::Stored(_))
}

fn is_own(wire: Option<&Wire>, dialect: Dialect) -> bool {
    wire.is_some_and(|wire| wire.dialect == dialect)
}

/// Reports the fields beside the content that the target has no place for.
fn report_extras(entry: &Entry, dialect: Dialect, report: &mut Report) {
    let envelope = entry.envelope.as_ref().filter(|(_, position)| *position == 0);
    let of_message = envelope.map(|(envelope, _)| &envelope.wire);
    let of_entry = entry.wire.as_ref();
    let parts: &[Part] = match &entry.kind {
        Kind::Said(said) => &said.parts,
        Kind::Returned(returned) => &returned.parts,
        _ => &[],
    };
    let of_parts = parts.iter().filter_map(|part| part.wire.as_ref());
    for wire in of_message.into_iter().chain(of_entry).chain(of_parts) {
        if wire.dialect == dialect {
            continue;
        }
        for extra in &wire.extras {
            let reason = format!("{} has no counterpart in {dialect}", extra.name);
            report.entry(Action::Dropped, entry.place, reason);
        }
    }
}
