//! One door to the three dialects: whoever holds a [`Dialect`] calls these and matches on nothing.

use crate::heal::healed;
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

/// Returns the name of the field that holds the history of a request.
#[must_use]
pub const fn history_field(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
    }
}

/// Reads a request out of whose history `skipped` elements were cut, behind the first `from`.
///
/// Entries behind the gap stand where they stood in the whole request. There is no such request if something
/// in it goes by its place, as the id of a call does that came without one.
///
/// # Errors
/// When a field that the dialect knows has the wrong type.
pub fn decode_abridged(
    dialect: Dialect,
    document: &Document,
    from: u32,
    skipped: u32,
) -> Result<Option<Ask>, DecodeError> {
    let mut ask = decode_document(dialect, document)?;
    for entry in &mut ask.entries {
        let Some(place) = entry.place.as_mut().filter(|place| place.message >= from) else { continue };
        let made_up = match &entry.kind {
            Kind::Called(call) => Some(&call.id),
            Kind::Returned(returned) => returned.call_id.as_ref(),
            _ => None,
        };
        let by_place = |id: &str| {
            id.starts_with(chat::WITHOUT_ID) || id.strip_prefix("call_") == Some(&place.message.to_string())
        };
        if made_up.is_some_and(|id| by_place(id)) {
            return Ok(None);
        }
        place.message += skipped;
    }
    Ok(Some(ask))
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

/// Writes the request body of a prompt, in the dialect of its target, and notes in the report where each entry
/// landed in it.
#[must_use]
pub fn encode_request(prompt: &Prompt<'_>, report: &mut Report) -> String {
    report.provenance.rows.clear();
    let body = match prompt.rules.dialect {
        Dialect::Chat => chat::encode_request(prompt, report),
        Dialect::Messages => messages::encode_request(prompt, report),
        Dialect::Responses => responses::encode_request(prompt, report),
    };
    report.provenance.settle(&prompt.ask.entries);
    healed(prompt.rules.dialect, body, report)
}

/// Writes each entry as an item of the Responses dialect, which alone lists what an answer was given by items.
///
/// An entry that no item can say has none.
#[must_use]
pub fn encode_items<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Vec<Option<String>> {
    responses::encode_items(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abridged(dialect: Dialect, body: &str, from: u32, skipped: u32) -> Option<Ask> {
        decode_abridged(dialect, &Document::parse(body).unwrap(), from, skipped).unwrap()
    }

    #[test]
    fn what_stands_behind_the_gap_is_read_as_if_there_were_none() {
        let elements = [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"assistant","content":"b"}"#,
            r#"{"role":"user","content":"c"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}"#,
        ];
        let body = |elements: &[&str]| format!(r#"{{"messages":[{}],"stream":true}}"#, elements.join(","));
        let whole = decode_request(Dialect::Messages, body(&elements)).unwrap();
        let gap = abridged(Dialect::Messages, &body(&[elements[0], elements[3]]), 1, 2).unwrap();
        assert_eq!(gap.entries[0], whole.entries[0]);
        assert_eq!(gap.entries[1], whole.entries[3]);
        assert_eq!(gap.stream, whole.stream);
    }

    #[test]
    fn ids_that_were_made_from_places_are_not_made_from_others() {
        let calls = r#"{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let body = format!(r#"{{"messages":[{{"role":"user","content":"a"}},{calls}]}}"#);
        assert!(abridged(Dialect::Chat, &body, 1, 2).is_none());
        let body = r#"{"input":[{"role":"user","content":"a"},{"type":"function_call","name":"f","arguments":"{}"}]}"#;
        assert!(abridged(Dialect::Responses, body, 1, 2).is_none());
    }
}
