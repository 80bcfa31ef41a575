//! Messages and items out of a session file, decoded as if a client had sent them.
//!
//! What an agent writes around a message (its own ids, prices, times) is no part of the conversation and would be
//! refused by providers; the message is cut out of it, as the exact text, and nothing else is decoded.

use crate::Damage;
use throughline_core::{Dialect, Entry, Text};
use throughline_wire::json::{DecodeError, Document, Node, SyntaxError};
use throughline_wire::{decode_request, history_field};

/// Decodes one message or item of a dialect.
pub(crate) fn entries(dialect: Dialect, element: &str) -> Result<Vec<Entry>, Damage> {
    let body = format!("{{\"{}\":[{element}]}}", history_field(dialect));
    let mut entries = decode_request(dialect, body)?.entries;
    // Where it stood in a request that never was says nothing.
    entries.iter_mut().for_each(|entry| entry.place = None);
    Ok(entries)
}

/// Reads a line as a JSON object.
pub(crate) fn object(line: &str) -> Result<Document, Damage> {
    let document = Document::parse(line)?;
    match document.root().kind() {
        throughline_wire::json::Kind::Object => Ok(document),
        _ => Err(Damage("a line must be a JSON object".to_owned())),
    }
}

/// Returns the text of a field, if it is a string and not empty.
pub(crate) fn text(node: &Node<'_>, name: &str) -> Option<Text> {
    // A copy: a slice would keep the whole line.
    let text = node.field(name)?.as_str()?;
    (!text.is_empty()).then(|| Text::from(&*text))
}

/// Says whether a field is `true`.
pub(crate) fn flag(node: &Node<'_>, name: &str) -> bool {
    node.field(name).and_then(|field| field.as_bool()).unwrap_or(false)
}

impl From<SyntaxError> for Damage {
    fn from(error: SyntaxError) -> Self {
        Self(error.to_string())
    }
}

impl From<DecodeError> for Damage {
    fn from(error: DecodeError) -> Self {
        Self(error.to_string())
    }
}
