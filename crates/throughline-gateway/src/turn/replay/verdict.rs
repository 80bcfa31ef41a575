//! What came of a replay: as JSON, and as a note beside the turn.

use super::{Difference, Replayed, Tape};
use crate::switch::By;
use crate::turn::note::{REPLAYED, note};
use throughline_store::{Moment, ProviderEvent, Write};
use throughline_wire::json::Writer;

/// So many of the differences that a replay found are kept: the first ones, which the others follow from.
const DIFFERENCES_KEPT: usize = 5;

impl Tape {
    /// Returns what has to be written to keep what came of a replay beside the turn; `is_other` says that
    /// it was driven under other settings.
    #[must_use]
    pub fn verdict(&self, replayed: &Replayed, by: By, is_other: bool, at: Moment) -> Option<Write> {
        let (exchange, _) = self.exchanges.last()?;
        let attempt = u32::try_from(exchange.attempts.len().saturating_sub(1)).ok()?;
        let events = vec![replayed_note(replayed, by.name(), is_other, at)];
        Some(Write::Events { exchange: exchange.id.clone(), attempt, events })
    }
}

/// Writes what came of a replay; `whole` with the bodies of requests that differ.
pub fn write_replayed(writer: &mut Writer, tape: &Tape, replayed: &Replayed, whole: bool) {
    writer.begin_object();
    writer.field_str("run", &tape.turn);
    writer.field_str("conversation", tape.conversation.as_str());
    write_verdict(writer, replayed, usize::MAX, whole);
    writer.end_object();
}

/// Writes the fields of a verdict, with so many of the differences.
fn write_verdict(writer: &mut Writer, replayed: &Replayed, differences_max: usize, whole: bool) {
    writer.field_bool("identical", replayed.differences.is_empty());
    writer.field_bool("finished", replayed.is_finished);
    writer.field_uint("requests", replayed.requests as u64);
    writer.field_uint("provider_events", replayed.events as u64);
    writer.field_uint("tool_calls", replayed.calls as u64);
    writer.key("differences");
    writer.begin_array();
    for difference in replayed.differences.iter().take(differences_max) {
        write_difference(writer, difference, whole);
    }
    writer.end_array();
}

fn write_difference(writer: &mut Writer, difference: &Difference, whole: bool) {
    writer.begin_object();
    match difference.request {
        Some(request) => writer.field_uint("request", request as u64),
        None => writer.field_null("request"),
    }
    writer.field_str("what", difference.place.words());
    writer.field_str("path", &difference.path);
    writer.field_str("recorded", &difference.recorded);
    writer.field_str("replayed", &difference.replayed);
    if let Some(bodies) = difference.bodies.as_ref().filter(|_| whole) {
        writer.field_str("recorded_body", &bodies.recorded);
        writer.field_str("replayed_body", &bodies.replayed);
    }
    writer.end_object();
}

/// Returns what came of a replay, with the first of its differences.
fn replayed_note(replayed: &Replayed, by: &str, is_other: bool, at: Moment) -> ProviderEvent {
    note(REPLAYED, at, |writer| {
        writer.field_str("by", by);
        writer.field_str("version", env!("CARGO_PKG_VERSION"));
        writer.field_str("settings", if is_other { "current" } else { "recorded" });
        writer.field_uint("different", replayed.differences.len() as u64);
        write_verdict(writer, replayed, DIFFERENCES_KEPT, false);
    })
}
