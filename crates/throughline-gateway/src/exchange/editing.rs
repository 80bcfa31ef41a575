//! `context_management`: what a client asks to have done with its history when it grows.
//!
//! A backend of the client's own dialect that knows the field is sent it as it came. For all others the same is
//! done here, before they are asked: what is to be cleared is cleared, sticks like every other decision and can be
//! recalled, and what is to be compacted is kept below the threshold by the planner. See docs/decisions/0022.

use crate::config::Backend;
use throughline_core::plan::Tally;
use throughline_core::{Action, Ask, Dialect, Report, Text};
use throughline_wire::json::{Edit, Writer, patch};
use throughline_wire::{CONTEXT_FIELD, ContextEdits, context_edits};

/// Returns what is asked for and done here, because the backend does not do it.
#[must_use]
pub fn honoured(ask: &Ask, backend: &Backend) -> Option<ContextEdits> {
    let is_the_backends = ask.dialect == backend.dialect && backend.edits_context();
    if is_the_backends { None } else { context_edits(ask) }
}

/// Takes the field out of a request for which it is honoured here, and says so.
pub fn take_out(ask: &mut Ask, edits: &ContextEdits, report: &mut Report) {
    ask.fields.retain(|field| field.name != CONTEXT_FIELD);
    ask.extras.retain(|name| name != CONTEXT_FIELD);
    report.field(Action::Translated, CONTEXT_FIELD, "done here: the backend does not do it");
    for unknown in &edits.unknown {
        let reason = format!("`{unknown}` is known neither to the backend nor here");
        report.field(Action::Dropped, CONTEXT_FIELD, reason);
    }
}

/// Returns what clients of Messages are told about what was done; nothing where nothing was asked for.
#[must_use]
pub fn applied(ask: &Ask, backend: &Backend, cleared: Tally) -> Option<Text> {
    honoured(ask, backend).filter(|_| ask.dialect == Dialect::Messages)?;
    let Tally { calls, call_tokens, turns, thought_tokens } = cleared;
    let mut writer = Writer::new();
    writer.begin_object();
    writer.key("applied_edits");
    writer.begin_array();
    for (kind, name, count, tokens) in [
        ("clear_thinking_20251015", "cleared_thinking_turns", turns, thought_tokens),
        ("clear_tool_uses_20250919", "cleared_tool_uses", calls, call_tokens),
    ] {
        if count > 0 {
            writer.begin_object();
            writer.field_str("type", kind);
            writer.field_uint(name, count as u64);
            writer.field_uint("cleared_input_tokens", tokens.0);
            writer.end_object();
        }
    }
    writer.end_array();
    writer.end_object();
    Some(writer.into_string().into())
}

/// Returns an answer, or the event that ends one, with what was done.
#[must_use]
pub fn with_applied_edits(object: &str, applied: Option<&Text>) -> Option<String> {
    patch(object, &[Edit::Set { name: CONTEXT_FIELD, value: applied? }]).ok()
}
