//! What a client calls by another name than the backend that answers it.
//!
//! An answer that is forwarded is the backend's own, byte for byte, but for these names: the model as the client
//! asked for it, an id of ours, and the response or conversation that the client continues and the backend was not
//! told of.

use crate::json::{Document, Edit, Kind, Writer, patch, quote};
use throughline_core::{Ask, Dialect, Text};

/// What the client calls by another name than the backend, or the backend was not told of.
#[derive(Clone, Debug, Default)]
pub struct ClientNames {
    /// The model as the client named it.
    pub model: Option<Text>,
    /// The response, where the client knows it by an id of ours.
    pub id: Option<Text>,
    /// The response that the client continues.
    pub previous: Option<Text>,
    /// The conversation that the client continues.
    pub conversation: Option<Text>,
}

impl ClientNames {
    /// Returns what a request continues, which no backend is told of.
    #[must_use]
    pub fn for_request(ask: &Ask) -> Self {
        Self { previous: ask.previous.clone(), conversation: ask.conversation.clone(), ..Self::default() }
    }

    /// Says whether the backend's names are the client's.
    const fn are_none(&self) -> bool {
        self.model.is_none() && self.id.is_none() && self.previous.is_none() && self.conversation.is_none()
    }

    /// Returns an event's data with the client's names; nothing if the event names nothing of that.
    #[must_use]
    pub fn rename_event(&self, dialect: Dialect, data: &str) -> Option<String> {
        if self.are_none() {
            return None;
        }
        let holder = match dialect {
            Dialect::Chat => return self.rename_object(data),
            Dialect::Messages => "message",
            Dialect::Responses => "response",
        };
        let document = Document::parse(data).ok()?;
        let inner = document.root().field(holder).filter(|inner| inner.kind() == Kind::Object)?;
        let value = self.rename_object(inner.raw())?;
        patch(data, &[Edit::Set { name: holder, value: &value }]).ok()
    }

    /// Returns an answer with the client's names; nothing if it names nothing of that.
    #[must_use]
    pub fn rename_object(&self, object: &str) -> Option<String> {
        if self.are_none() {
            return None;
        }
        let document = Document::parse(object).ok()?;
        let named = [("model", &self.model), ("previous_response_id", &self.previous)];
        let mut values: Vec<(&str, String)> = named
            .into_iter()
            .filter(|(name, _)| document.root().field(name).is_some())
            .filter_map(|(name, value)| Some((name, quote(value.as_ref()?))))
            .collect();
        // Whatever stands there, or if nothing does: what has no id cannot be continued.
        values.extend(self.id.as_ref().map(|id| ("id", quote(id))));
        // Only an answer within a conversation has this field at all. What it goes on from at the backend is then
        // our affair, and no response that the client has named.
        if let Some(id) = &self.conversation {
            let previous = document.root().field("previous_response_id");
            values.extend(previous.map(|_| ("previous_response_id", "null".to_owned())));
            values.push(("conversation", conversation(id)));
        }
        let edits: Vec<Edit<'_>> = values.iter().map(|(name, value)| Edit::Set { name, value }).collect();
        if edits.is_empty() { None } else { patch(object, &edits).ok() }
    }
}

fn conversation(id: &str) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", id);
    writer.end_object();
    writer.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_renamed_where_each_dialect_names_it() {
        let mine = Some(Text::from_static("mine"));
        let names = ClientNames { model: mine.clone(), ..ClientNames::default() };
        let chat = names.rename_event(Dialect::Chat, r#"{"id":1,"model":"theirs","x":1.10}"#);
        assert_eq!(chat.as_deref(), Some(r#"{"id":1,"model":"mine","x":1.10}"#));
        let start = r#"{"type":"message_start","message":{"model":"theirs"}}"#;
        let messages = names.rename_event(Dialect::Messages, start);
        assert_eq!(messages.as_deref(), Some(r#"{"type":"message_start","message":{"model":"mine"}}"#));
        assert_eq!(names.rename_event(Dialect::Messages, r#"{"type":"ping"}"#), None);
        assert_eq!(names.rename_event(Dialect::Chat, "[DONE]"), None);

        let created = r#"{"response":{"model":"theirs","previous_response_id":null}}"#;
        let names = ClientNames { previous: mine.clone(), ..ClientNames::default() };
        let responses = names.rename_event(Dialect::Responses, created);
        let expected = r#"{"response":{"model":"theirs","previous_response_id":"mine"}}"#;
        assert_eq!(responses.as_deref(), Some(expected));

        let names = ClientNames { conversation: mine, ..ClientNames::default() };
        let responses = names.rename_event(Dialect::Responses, r#"{"response":{"model":"theirs"}}"#);
        let expected = r#"{"response":{"model":"theirs","conversation":{"id":"mine"}}}"#;
        assert_eq!(responses.as_deref(), Some(expected));
    }
}
