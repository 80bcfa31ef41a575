//! One door to the three dialects: whoever holds a [`Dialect`] calls these and matches on nothing.

use crate::json::{DecodeError, Document};
use crate::{chat, messages, responses};
use std::sync::Arc;
use throughline_core::{Ask, Dialect, Prompt, Report};

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
    match dialect {
        Dialect::Chat => chat::decode_request(document),
        Dialect::Messages => messages::decode_request(document),
        Dialect::Responses => responses::decode_request(document),
    }
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
