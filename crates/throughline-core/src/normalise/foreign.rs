//! What only another dialect understands is taken out, and reported.

use crate::{
    Action, Content, Dialect, Entry, Kind, Media, Part, Place, Report, Return, Rules, Said, Text, Wire,
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
            }
            kept.then(|| entry.clone())
        }
        Kind::Said(said) => {
            let parts = native_parts(&said.parts, entry.place, rules, report);
            Some(match parts {
                Some(parts) => entry.altered(Kind::Said(Said { parts, ..said.clone() })),
                None => entry.clone(),
            })
        }
        Kind::Returned(returned) => {
            let parts = native_parts(&returned.parts, entry.place, rules, report);
            Some(match parts {
                Some(parts) => entry.altered(Kind::Returned(Return { parts, ..returned.clone() })),
                None => entry.clone(),
            })
        }
        // A handover is a note in the record; no backend is shown it.
        Kind::HandedOver(_) => None,
        Kind::Thought(_) | Kind::Called(_) | Kind::Summarised(_) => Some(entry.clone()),
    }
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
        Content::File(file) => !is_stored(&file.media) || is_own(part.wire.as_ref(), rules.dialect),
        Content::Text(_) | Content::Refusal(_) => true,
    };
    if parts.iter().all(is_native) {
        return None;
    }
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        if is_native(part) {
            kept.push(part.clone());
        } else {
            let (what, stand_in) = describe(part);
            report.entry(Action::Dropped, place, format!("{what} has no counterpart in {}", rules.dialect));
            kept.extend(stand_in);
        }
    }
    Some(kept)
}

/// Names a part that cannot be sent, and the words that stand in for it.
fn describe(part: &Part) -> (Text, Option<Part>) {
    let stored = |what: &str| {
        let line = format!("[{what} left out: it is stored with another provider]");
        (Text::from(format!("a stored {what}")), Some(Part::text(line)))
    };
    match &part.content {
        Content::Image(_) => stored("image"),
        Content::File(_) => stored("file"),
        Content::Opaque { kind } => (kind.clone(), None),
        Content::Text(_) | Content::Refusal(_) => (Text::from_static("text"), None),
    }
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
