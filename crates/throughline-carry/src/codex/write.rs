//! Writing a session: its facts, an item for each entry, and for the screen what was said.

use crate::write::Header;
use crate::{Millis, Written, moment};
use throughline_core::{Role, joined_text};
use throughline_wire::encode_items;
use throughline_wire::json::Writer;

/// Writes a session.
pub(crate) fn write(header: &Header, entries: &[Written]) -> String {
    let mut out = String::new();
    line(&mut out, header.started, "session_meta", |writer| meta(writer, header));
    let items = encode_items(entries.iter().map(|written| &written.entry));
    for (written, item) in entries.iter().zip(items) {
        let Some(item) = item else { continue };
        if written.is_summary {
            line(&mut out, written.at, "compacted", |writer| compacted(writer, written, &item));
            continue;
        }
        line(&mut out, written.at, "response_item", |writer| writer.raw(&item));
        if let Some((kind, words)) = shown(written) {
            line(&mut out, written.at, "event_msg", |writer| {
                writer.begin_object();
                writer.field_str("type", kind);
                writer.field_str("message", &words);
                writer.end_object();
            });
        }
    }
    out
}

fn line(out: &mut String, at: Millis, kind: &str, payload: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("timestamp", &moment::iso(at));
    writer.field_str("type", kind);
    writer.key("payload");
    payload(&mut writer);
    writer.end_object();
    out.push_str(&writer.into_string());
    out.push('\n');
}

fn meta(writer: &mut Writer, header: &Header) {
    writer.begin_object();
    writer.field_str("id", &header.id);
    writer.field_str("timestamp", &moment::iso(header.started));
    writer.field_str("cwd", &header.cwd);
    writer.field_str("originator", "throughline");
    writer.field_str("cli_version", &header.version);
    writer.field_str("source", "cli");
    writer.end_object();
}

/// Writes the mark behind which the model is shown nothing of what came before but the summary.
fn compacted(writer: &mut Writer, written: &Written, item: &str) {
    let words = written.entry.as_said().map(|said| joined_text(&said.parts)).unwrap_or_default();
    writer.begin_object();
    writer.field_str("message", &words);
    writer.key("replacement_history");
    writer.begin_array();
    writer.raw(item);
    writer.end_array();
    writer.end_object();
}

/// Returns what the screen shows of an entry.
fn shown(written: &Written) -> Option<(&'static str, String)> {
    let said = written.entry.as_said()?;
    let kind = match said.role {
        Role::User => "user_message",
        Role::Assistant => "agent_message",
        Role::System | Role::Developer => return None,
    };
    let words = joined_text(&said.parts);
    (!words.is_empty() && !super::is_scaffold(&words)).then(|| (kind, words.to_string()))
}
