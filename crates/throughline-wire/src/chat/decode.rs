//! A request body, read into an ask.

use super::extras::{given_bool, given_text, is_significant};
use super::history::decode_messages;
use super::known;
use super::settings::{decode_settings, is_extra};
use super::tools::{decode_choice, decode_tools};
use crate::json::{DecodeError, Document, Node};
use crate::shape;
use throughline_core::{Ask, Dialect, Extra, Text};

/// Reads a request.
pub(crate) fn decode_request(document: &Document) -> Result<Ask, DecodeError> {
    let root = document.root().expect_object()?;
    shape::check(root, known::REQUEST)?;
    let settings = decode_settings(root)?;
    let extras = root
        .fields()
        .filter(|(name, value)| is_significant(*value) && is_extra(name, *value, &settings))
        .map(|(name, _)| Text::from(&*name))
        .collect();
    Ok(Ask {
        dialect: Dialect::Chat,
        model: given_text(root, "model")?,
        entries: decode_messages(root.expect_field("messages")?)?,
        tools: decode_tools(root)?,
        tool_choice: decode_choice(root)?,
        settings,
        stream: given_bool(root, "stream")?.unwrap_or(false),
        previous: None,
        conversation: None,
        fields: top_level_fields(root),
        extras,
    })
}

/// Returns every field with its text; of repeated names the last value, as readers of JSON have it.
pub(super) fn top_level_fields(root: Node<'_>) -> Vec<Extra> {
    let mut fields: Vec<Extra> = Vec::with_capacity(16);
    for (name, value) in root.fields() {
        match fields.iter_mut().find(|field| field.name == *name) {
            Some(field) => field.value = value.raw_text(),
            None => fields.push(Extra { name: Text::from(&*name), value: value.raw_text() }),
        }
    }
    fields
}
