//! Blank text, which some backends reject, is removed; so is what has no content at all.

use super::Item;
use crate::{Absence, Action, Kind, Part, Report, Rules, Treatment};

/// Removes blank text where the rules forbid it, and entries that say nothing.
pub(super) fn clear(items: &mut Vec<Item>, rules: &Rules, report: &mut Report) {
    items.retain_mut(|item| {
        if !rules.blank_text {
            without_blanks(item, report);
        }
        let says_something = item.entry.as_said().is_none_or(|said| !said.parts.is_empty());
        if !says_something {
            report.entry(Action::Repaired, item.entry.place, "it had no content");
            report.leave_out(&item.entry, Absence::Blank);
        }
        says_something
    });
}

fn without_blanks(item: &mut Item, report: &mut Report) {
    let entry = &mut item.entry;
    let (parts, is_result) = match &mut entry.kind {
        Kind::Said(said) => (&mut said.parts, false),
        Kind::Returned(returned) => (&mut returned.parts, true),
        _ => return,
    };
    // A bare string that is empty is how an empty result is written; only a blank text part is rejected.
    let is_bare = is_result && parts.len() == 1 && parts[0].wire.is_none();
    if !parts.iter().any(Part::is_blank)
        || (is_bare && parts[0].as_text().is_some_and(|text| text.is_empty()))
    {
        return;
    }
    parts.retain(|part| !part.is_blank());
    entry.intact = false;
    entry.trace.note(Treatment::Adapted);
    report.entry(Action::Repaired, entry.place, "blank text was left out");
}
