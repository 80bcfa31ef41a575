//! One door to the three dialects: whoever holds a [`Dialect`] calls these and matches on nothing.

use crate::json::{DecodeError, Document};
use crate::{chat, messages, responses};
use std::sync::Arc;
use throughline_core::{Ask, Dialect, Entry, Kind, Prompt, Report};

/// Reads a request body.
///
/// # Errors
/// When the body is not JSON, or a field that the dialect knows has the wrong type.
pub fn decode_request(dialect: Dialect, body: impl Into<Arc<str>>) -> Result<Ask, DecodeError> {
    decode_document(dialect, &Document::parse(body)?)
}

/// Reads a request from JSON that is indexed already.
///
/// # Errors
/// When a field that the dialect knows has the wrong type.
pub fn decode_document(dialect: Dialect, document: &Document) -> Result<Ask, DecodeError> {
    let mut ask = match dialect {
        Dialect::Chat => chat::decode_request(document),
        Dialect::Messages => messages::decode_request(document),
        Dialect::Responses => responses::decode_request(document),
    }?;
    trim(&mut ask);
    Ok(ask)
}

/// Gives back what the lists of a request hold in reserve: it lives as long as its answer takes.
///
/// A list that grew has room for four at least, and most entries have one part.
fn trim(ask: &mut Ask) {
    ask.entries.shrink_to_fit();
    for entry in &mut ask.entries {
        match &mut entry.kind {
            Kind::Said(said) => said.parts.shrink_to_fit(),
            Kind::Returned(returned) => returned.parts.shrink_to_fit(),
            _ => {}
        }
    }
}

/// Returns how many bytes the request of a prompt will have, or somewhat more: as many as came, and where the
/// dialect changes, some for what is written at greater length.
pub(crate) fn expected_length(prompt: &Prompt<'_>) -> usize {
    let came: usize = prompt.ask.fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
    let longer = match prompt.rules.dialect {
        _ if prompt.stays_in_dialect() => 0,
        // Arguments are no strings here, and lose their escapes.
        Dialect::Messages => came / 32,
        Dialect::Chat | Dialect::Responses => came / 16,
    };
    came + longer + 512
}

/// Writes the request body of a prompt, in the dialect of its target.
#[must_use]
pub fn encode_request(prompt: &Prompt<'_>, report: &mut Report) -> String {
    match prompt.rules.dialect {
        Dialect::Chat => chat::encode_request(prompt, report),
        Dialect::Messages => messages::encode_request(prompt, report),
        Dialect::Responses => responses::encode_request(prompt, report),
    }
}

/// Writes each entry as an item of the Responses dialect, which alone lists what an answer was given by items.
///
/// An entry that no item can say has none.
#[must_use]
pub fn encode_items<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Vec<Option<String>> {
    responses::encode_items(entries)
}
