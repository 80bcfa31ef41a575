//! The requests of a turn, as bodies of the Responses dialect. Pure.

use throughline_core::{Closing, ConversationId, Entry, Kind, Part, Return, Settled, Settlement, Text};
use throughline_tools::Declaration;
use throughline_wire::encode_items;
use throughline_wire::json::Writer;

/// How the model is asked in a turn, the same in each of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// The backend, if not the one that the configuration or a switch chooses.
    pub backend: Option<Text>,
    /// The model, if not the backend's own choice.
    pub model: Option<Text>,
    /// What the operator says.
    pub instructions: Option<Text>,
    /// The tools on offer, as they are declared on the wire.
    pub tools: Vec<Text>,
    /// The most calls that are run.
    pub max_tool_calls: u32,
}

impl Manner {
    /// Returns a tool as it is declared on the wire.
    #[must_use]
    pub fn declared(tool: &Declaration) -> Text {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("type", "function");
        writer.field_str("name", &tool.name);
        writer.field_str("description", &tool.description);
        writer.field_raw("parameters", &tool.schema);
        writer.field_bool("strict", false);
        writer.end_object();
        writer.into_string().into()
    }

    /// Returns a request with these items; `conversation` is what it goes on from, if there is anything.
    #[must_use]
    pub fn body(
        &self,
        conversation: Option<&ConversationId>,
        items: &[String],
        offers_tools: bool,
    ) -> String {
        let mut writer = Writer::new();
        writer.begin_object();
        if let Some(model) = &self.model {
            writer.field_str("model", model);
        }
        if let Some(conversation) = conversation {
            writer.field_str("conversation", conversation.as_str());
        }
        self.write_said(&mut writer, items);
        if !self.tools.is_empty() {
            list(&mut writer, "tools", self.tools.iter().map(Text::as_str));
            if !offers_tools {
                writer.field_str("tool_choice", "none");
            }
            writer.field_bool("parallel_tool_calls", false);
            writer.field_uint("max_tool_calls", self.max_tool_calls.into());
        }
        writer.field_bool("stream", true);
        writer.end_object();
        writer.into_string()
    }

    /// Returns of such a request what becomes entries.
    #[must_use]
    pub fn said(&self, items: &[String]) -> String {
        let mut writer = Writer::new();
        writer.begin_object();
        self.write_said(&mut writer, items);
        writer.end_object();
        writer.into_string()
    }

    fn write_said(&self, writer: &mut Writer, items: &[String]) {
        if let Some(instructions) = &self.instructions {
            writer.field_str("instructions", instructions);
        }
        list(writer, "input", items.iter().map(String::as_str));
    }
}

fn list<'i>(writer: &mut Writer, name: &str, items: impl Iterator<Item = &'i str>) {
    writer.key(name);
    writer.begin_array();
    items.for_each(|item| writer.raw(item));
    writer.end_array();
}

/// Returns what the user says, with images, as an item.
#[must_use]
pub fn said_item(text: &str, images: &[Text]) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("type", "message");
    writer.field_str("role", "user");
    writer.key("content");
    writer.begin_array();
    writer.begin_object();
    writer.field_str("type", "input_text");
    writer.field_str("text", text);
    writer.end_object();
    images.iter().for_each(|image| writer.raw(image));
    writer.end_array();
    writer.end_object();
    writer.into_string()
}

/// Returns an image as a part of such an item.
#[must_use]
pub fn image_item(media_type: &str, base64: &str) -> Text {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("type", "input_image");
    writer.field_str("image_url", &format!("data:{media_type};base64,{base64}"));
    writer.end_object();
    writer.into_string().into()
}

/// Returns what came of calls, as items.
pub(super) fn result_items(results: &[Settled]) -> Vec<String> {
    let entries: Vec<Entry> = results.iter().map(entry_of).collect();
    encode_items(&entries).into_iter().flatten().collect()
}

/// Says whether a call was closed without being run.
pub(super) const fn is_closed(settled: &Settled) -> bool {
    matches!(settled.settlement, Settlement::Closed(_))
}

fn entry_of(settled: &Settled) -> Entry {
    let parts = match &settled.settlement {
        Settlement::Returned(_, parts) => parts.clone(),
        Settlement::Closed(closing) => vec![Part::text(words_of(*closing))],
    };
    Entry::new(Kind::Returned(Return {
        call_id: Some(settled.call.id.clone()),
        item_id: None,
        name: None,
        parts,
        outcome: settled.outcome(),
        freeform: matches!(settled.call.input, throughline_core::Input::Freeform(_)),
    }))
}

/// Returns what the model is told about a call that has no result of its own, in the form of all results.
const fn words_of(closing: Closing) -> &'static str {
    match closing {
        Closing::Limit => {
            r#"{"error":"not run: the tool calls that this turn may make are used up; answer with what you have"}"#
        }
        Closing::Cancelled => r#"{"error":"not run: the user called the turn off"}"#,
        Closing::CutShort => {
            r#"{"error":"not run: the answer that made this call was cut short, and the call may be incomplete"}"#
        }
        Closing::Lost => {
            r#"{"error":"nobody knows whether this was run: the program ended before its result was recorded; look at what is there before you do it again"}"#
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Dialect, Input, Outcome};
    use throughline_wire::decode_request;

    fn call(id: &str) -> Call {
        let input = Input::Arguments("{}".into());
        Call { id: id.into(), item_id: None, name: "read".into(), namespace: None, input }
    }

    #[test]
    fn what_is_kept_early_is_what_the_request_brings() {
        let manner = Manner {
            instructions: Some("Be brief.".into()),
            tools: vec![r#"{"type":"function","name":"read","parameters":{}}"#.into()],
            max_tool_calls: 5,
            ..Manner::default()
        };
        let returned = |outcome, text: &str| Settlement::Returned(outcome, vec![Part::text(text)]);
        let results = [
            Settled { call: call("a"), settlement: returned(Outcome::Ok, r#"{"content":"x"}"#) },
            Settled { call: call("b"), settlement: returned(Outcome::Denied, "no") },
            Settled { call: call("c"), settlement: Settlement::Closed(Closing::Lost) },
        ];
        let items = result_items(&results);
        assert_eq!(
            items[0],
            r#"{"type":"function_call_output","call_id":"a","output":"{\"content\":\"x\"}"}"#
        );
        let conversation = ConversationId::new("conv_1");
        let whole =
            decode_request(Dialect::Responses, manner.body(Some(&conversation), &items, true)).unwrap();
        let early = decode_request(Dialect::Responses, manner.said(&items)).unwrap();
        assert_eq!(early.entries, whole.entries);
        let outcomes: Vec<Outcome> =
            whole.entries.iter().filter_map(Entry::as_return).map(|returned| returned.outcome).collect();
        assert_eq!(outcomes, [Outcome::Ok, Outcome::Denied, Outcome::Unknown]);
        assert_eq!(whole.conversation.as_deref(), Some("conv_1"));
        assert_eq!(whole.settings.parallel_calls, Some(false));
    }
}
