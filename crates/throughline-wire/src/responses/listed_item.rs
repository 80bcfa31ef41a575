//! Items as a list of them has them: with an id, a status and parts, also where they came without.

use crate::encode_items;
use crate::json::{Document, Edit, Node, SyntaxError, Writer, patch, quote};
use throughline_core::{Entry, Text};

/// Types of items, and what their ids begin with.
const PREFIXES: [(&str, &str); 6] = [
    ("message", "msg"),
    ("reasoning", "rs"),
    ("function_call", "fc"),
    ("function_call_output", "fco"),
    ("custom_tool_call", "ctc"),
    ("custom_tool_call_output", "ctco"),
];

/// An item with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// The id.
    pub id: Text,
    /// The item.
    pub json: String,
    /// The entry that it is.
    pub entry: Text,
}

/// Returns entries as items of a list; `stamp` tells their ids from others.
#[must_use]
pub fn listed_items(entries: &[&Entry], stamp: &str) -> Vec<String> {
    let items = encode_items(entries.iter().copied()).into_iter().zip(0..);
    let item = |(json, at): (Option<String>, u32)| listed_item(&json?, &format!("{stamp}_{at}")).ok();
    items.filter_map(item).map(|item| item.json).collect()
}

/// Returns an item with what clients expect of it and may leave out themselves; `entry` is what its id follows from.
///
/// # Errors
/// When it is no JSON object.
pub fn listed_item(json: &str, entry: &str) -> Result<ListedItem, SyntaxError> {
    let document = Document::parse(json)?;
    let root = document.root();
    let text = |name: &str| root.field(name).and_then(|value| value.as_text());
    let kind = text("type").unwrap_or(Text::from_static("message"));
    let prefix = PREFIXES.iter().find(|(name, _)| kind == *name).map_or("item", |(_, prefix)| prefix);
    let id = text("id").unwrap_or_else(|| Text::from(format!("{prefix}_{entry}")));
    let status = text("status").unwrap_or(Text::from_static("completed"));
    let (kind, quoted, status) = (quote(&kind), quote(&id), quote(&status));
    let content = root.field("content").and_then(|content| parts(root, content));
    let mut edits = vec![
        Edit::Set { name: "type", value: &kind },
        Edit::Set { name: "id", value: &quoted },
        Edit::Set { name: "status", value: &status },
    ];
    edits.extend(content.as_deref().map(|value| Edit::Set { name: "content", value }));
    Ok(ListedItem { json: patch(json, &edits)?, id, entry: Text::from(entry) })
}

/// Returns content that is a plain string as the list of parts that it stands for.
fn parts(item: Node<'_>, content: Node<'_>) -> Option<String> {
    let text = content.as_str()?;
    let is_output = item.field("role").is_some_and(|role| role.is_str("assistant"));
    let mut writer = Writer::with_capacity(text.len() + 64);
    writer.begin_array();
    writer.begin_object();
    writer.field_str("type", if is_output { "output_text" } else { "input_text" });
    writer.field_str("text", &text);
    if is_output {
        writer.field_raw("annotations", "[]");
    }
    writer.end_object();
    writer.end_array();
    Some(writer.into_string())
}
