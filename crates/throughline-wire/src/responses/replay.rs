//! The stream of a response that is over: the events in which it could have been given.
//!
//! A stored response is one object. A client that asks for it as a stream is shown it growing: each item is announced
//! empty, filled in one piece, and ended as it stands in the object. What nobody knows comes whole.

use super::fields;
use crate::json::{Document, Edit, Kind, Node, Writer, patch, quote};

/// Returns the data of the events, with their names, from the first to the last.
#[must_use]
pub fn replayed_events(response: &str) -> Vec<(String, String)> {
    let Ok(document) = Document::parse(response) else { return Vec::new() };
    let root = document.root();
    let mut events = Replay { events: Vec::new() };
    let begun = with(
        response,
        &[("status", "\"in_progress\""), ("output", "[]"), ("completed_at", "null"), ("usage", "null")],
    );
    for name in ["response.created", "response.in_progress"] {
        events.push(name, |writer| writer.field_raw("response", &begun));
    }
    let items = root.field("output").into_iter().flat_map(Node::items);
    for (index, item) in items.filter(|item| item.kind() == Kind::Object).enumerate() {
        events.item(index as u64, item);
    }
    let status = fields::lenient_text(root, "status").unwrap_or_default();
    let last = match status.as_str() {
        "completed" | "incomplete" => format!("response.{status}"),
        _ => "response.failed".to_owned(),
    };
    events.push(&last, |writer| writer.field_raw("response", response));
    events.events
}

struct Replay {
    events: Vec<(String, String)>,
}

/// Where a piece of an item stands.
#[derive(Clone, Copy)]
struct Spot<'a> {
    item_id: &'a str,
    output_index: u64,
    /// The name and the number of the part, where it is one.
    part: Option<(&'a str, u64)>,
}

impl Replay {
    fn push(&mut self, name: &str, write: impl FnOnce(&mut Writer)) {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("type", name);
        writer.field_uint("sequence_number", self.events.len() as u64);
        write(&mut writer);
        writer.end_object();
        self.events.push((name.to_owned(), writer.into_string()));
    }

    fn item(&mut self, index: u64, item: Node<'_>) {
        let id = fields::lenient_text(item, "id").unwrap_or_default();
        let spot = Spot { item_id: &id, output_index: index, part: None };
        let kind = fields::lenient_text(item, "type").unwrap_or_default();
        let empty: &[(&str, &str)] = match kind.as_str() {
            "message" => &[("status", "\"in_progress\""), ("content", "[]")],
            "function_call" => &[("status", "\"in_progress\""), ("arguments", "\"\"")],
            "custom_tool_call" => &[("status", "\"in_progress\""), ("input", "\"\"")],
            "reasoning" => &[("summary", "[]")],
            _ => &[],
        };
        let begun = with(item.raw(), empty);
        self.push("response.output_item.added", |writer| {
            writer.field_uint("output_index", index);
            writer.field_raw("item", &begun);
        });
        match kind.as_str() {
            "message" => self.message(spot, item),
            "function_call" => self.whole(spot, "response.function_call_arguments", item, "arguments"),
            "custom_tool_call" => self.whole(spot, "response.custom_tool_call_input", item, "input"),
            "reasoning" => self.reasoning(spot, item),
            _ => {}
        }
        self.push("response.output_item.done", |writer| {
            writer.field_uint("output_index", index);
            writer.field_raw("item", item.raw());
        });
    }

    fn message(&mut self, spot: Spot<'_>, item: Node<'_>) {
        for (at, part) in item.field("content").into_iter().flat_map(Node::items).enumerate() {
            let spot = Spot { part: Some(("content_index", at as u64)), ..spot };
            let is_refusal = part.field("type").is_some_and(|tag| tag.is_str("refusal"));
            let (name, field) =
                if is_refusal { ("response.refusal", "refusal") } else { ("response.output_text", "text") };
            let empty = with(part.raw(), &[(field, "\"\"")]);
            self.at(spot, "response.content_part.added", |writer| writer.field_raw("part", &empty));
            self.whole(spot, name, part, field);
            self.at(spot, "response.content_part.done", |writer| writer.field_raw("part", part.raw()));
        }
    }

    fn reasoning(&mut self, spot: Spot<'_>, item: Node<'_>) {
        for (at, part) in item.field("summary").into_iter().flat_map(Node::items).enumerate() {
            let spot = Spot { part: Some(("summary_index", at as u64)), ..spot };
            let empty = with(part.raw(), &[("text", "\"\"")]);
            self.at(spot, "response.reasoning_summary_part.added", |writer| writer.field_raw("part", &empty));
            self.whole(spot, "response.reasoning_summary_text", part, "text");
            self.at(spot, "response.reasoning_summary_part.done", |writer| {
                writer.field_raw("part", part.raw());
            });
        }
    }

    /// Tells a text in one piece, and that this was all.
    fn whole(&mut self, spot: Spot<'_>, name: &str, node: Node<'_>, field: &str) {
        let text = fields::lenient_text(node, field).unwrap_or_default();
        let has_marks = name == "response.output_text";
        if !text.is_empty() {
            self.at(spot, &format!("{name}.delta"), |writer| {
                writer.field_str("delta", &text);
                if has_marks {
                    writer.field_raw("logprobs", "[]");
                }
            });
        }
        self.at(spot, &format!("{name}.done"), |writer| {
            writer.field_str(field, &text);
            if has_marks {
                writer.field_raw("logprobs", "[]");
            }
        });
    }

    fn at(&mut self, spot: Spot<'_>, name: &str, write: impl FnOnce(&mut Writer)) {
        self.push(name, |writer| {
            writer.field_str("item_id", spot.item_id);
            writer.field_uint("output_index", spot.output_index);
            if let Some((part, number)) = spot.part {
                writer.field_uint(part, number);
            }
            write(writer);
        });
    }
}

/// Returns an object with those of its fields set that it has.
fn with(object: &str, values: &[(&str, &str)]) -> String {
    let document = Document::parse(object).ok();
    let has = |name: &str| document.as_ref().is_some_and(|document| document.root().field(name).is_some());
    let edits: Vec<Edit<'_>> =
        values.iter().filter(|(name, _)| has(name)).map(|(name, value)| Edit::Set { name, value }).collect();
    patch(object, &edits).unwrap_or_else(|_| quote(object))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamDecoder;
    use crate::sse::SseEvent;
    use throughline_core::{Assembler, Dialect};

    #[test]
    fn a_response_that_is_replayed_is_read_as_what_it_was() {
        let response = r#"{"id":"resp_1","status":"completed","output":[
            {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}]},
            {"type":"message","id":"msg_1","role":"assistant","status":"completed",
             "content":[{"type":"output_text","text":"Here.","annotations":[]}]},
            {"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"a\":1}","status":"completed"},
            {"type":"web_search_call","id":"ws_1","status":"completed"}],
            "usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}"#;
        let events = replayed_events(response);
        let (mut decoder, mut frames) = (StreamDecoder::new(Dialect::Responses), Vec::new());
        for (at, (name, data)) in events.iter().enumerate() {
            assert!(data.contains(&format!("\"sequence_number\":{at}")), "{data}");
            let event = SseEvent { name: Some(name.as_str().into()), data: data.as_str().into() };
            decoder.handle_event(&event, &mut frames);
        }
        let mut assembler = Assembler::new(Dialect::Responses);
        frames.iter().for_each(|frame| assembler.handle_frame(frame));
        let told = assembler.finish();
        let whole = crate::decode_reply(Dialect::Responses, response).unwrap();
        let kinds = |reply: &throughline_core::Reply| -> Vec<String> {
            reply
                .entries
                .iter()
                .map(|entry| entry.as_call().map_or("other".into(), |call| call.input.text().to_string()))
                .collect()
        };
        assert_eq!((kinds(&told), told.ending), (kinds(&whole), whole.ending));
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"response.output_text.delta") && names.last() == Some(&"response.completed"));
    }
}
