//! Compactions: an item that stands for a span of history, and the answer that holds one.

use crate::Stamp;
use crate::json::Writer;
use throughline_core::Usage;

/// The type of an item that stands for a span of history.
pub const COMPACTION: &str = "compaction";

/// Returns an item that stands for a span of history.
#[must_use]
pub fn compaction_item(id: &str, content: &str) -> String {
    let mut writer = Writer::with_capacity(content.len() + 128);
    writer.begin_object();
    writer.field_str("type", COMPACTION);
    writer.field_str("id", id);
    writer.field_str("status", "completed");
    writer.field_str("encrypted_content", content);
    writer.end_object();
    writer.into_string()
}

/// Returns the object that answers a request for a compaction.
#[must_use]
pub fn compaction_object(stamp: &Stamp, items: &[String], usage: Usage) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", &format!("resp_{}", stamp.id));
    writer.field_str("object", "response.compaction");
    writer.field_uint("created_at", stamp.created_at);
    writer.key("output");
    writer.begin_array();
    items.iter().for_each(|item| writer.raw(item));
    writer.end_array();
    writer.key("usage");
    writer.begin_object();
    writer.field_uint("input_tokens", usage.input);
    writer.field_raw("input_tokens_details", r#"{"cached_tokens":0}"#);
    writer.field_uint("output_tokens", usage.output);
    writer.field_raw("output_tokens_details", r#"{"reasoning_tokens":0}"#);
    writer.field_uint("total_tokens", usage.input.saturating_add(usage.output));
    writer.end_object();
    writer.end_object();
    writer.into_string()
}
