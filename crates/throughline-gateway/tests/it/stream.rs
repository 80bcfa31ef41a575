//! The laws of a Responses stream, checked event by event: required fields, numbering, order, and that all
//! ways in which a stream says the same thing agree.

use serde_json::Value;
use std::collections::BTreeMap;

/// Every field of a response; `?` may be null.
const RESPONSE: &str = "id object created_at completed_at? status incomplete_details? model \
    previous_response_id? instructions? output error? tools tool_choice truncation parallel_tool_calls text \
    top_p presence_penalty frequency_penalty top_logprobs temperature reasoning? usage? max_output_tokens? \
    max_tool_calls? store background service_tier metadata safety_identifier? prompt_cache_key?";

/// Asserts that a response has all its fields.
pub fn check_response(response: &Value) {
    for field in RESPONSE.split_whitespace() {
        let name = field.trim_end_matches('?');
        let value = response.get(name).unwrap_or_else(|| panic!("{name} is missing: {response}"));
        assert!(field.ends_with('?') || !value.is_null(), "{name} is null: {response}");
    }
    assert_eq!(response["object"], "response");
    assert!(response["text"]["format"]["type"].is_string(), "{response}");
    assert!(response["text"].get("verbosity").is_none_or(Value::is_string), "{response}");
    if !response["usage"].is_null() {
        assert!(response["usage"]["input_tokens_details"]["cached_tokens"].is_u64(), "{response}");
        assert!(response["usage"]["output_tokens_details"]["reasoning_tokens"].is_u64(), "{response}");
    }
    for item in response["output"].as_array().unwrap() {
        for name in ["id", "type", "status"] {
            assert!(item[name].is_string(), "{name}: {item}");
        }
    }
}

/// Asserts the laws of a stream and returns the final response.
pub fn check_stream(events: &[Value]) -> Value {
    let (first, last) = (&events[0], events.last().unwrap());
    assert_eq!(first["type"], "response.created");
    assert_eq!(events[1]["type"], "response.in_progress");
    let mut seen = Seen::default();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "{event}");
        if let Some(response) = event.get("response") {
            check_response(response);
            assert_eq!(response["id"], first["response"]["id"]);
        }
        assert_eq!(is_last(event), at + 1 == events.len(), "{event}");
        seen.take(event);
    }
    let output = last["response"]["output"].as_array().unwrap();
    assert!(seen.open.is_empty(), "never done: {:?}", seen.open);
    assert_eq!(&seen.done, output, "what was done is what there is in the end");
    last["response"].clone()
}

/// What has been seen of the items of a stream.
#[derive(Default)]
struct Seen {
    /// Items that are under way, by their index: the id.
    open: BTreeMap<u64, String>,
    /// Parts that are under way: their text so far.
    parts: BTreeMap<(u64, u64), String>,
    /// Arguments so far.
    arguments: BTreeMap<u64, String>,
    done: Vec<Value>,
}

impl Seen {
    fn take(&mut self, event: &Value) {
        let index = event["output_index"].as_u64();
        let part = || (index.unwrap(), event["content_index"].as_u64().unwrap());
        if let (Some(index), Some(item_id)) = (index, event["item_id"].as_str()) {
            assert_eq!(self.open[&index], item_id, "{event}");
        }
        let text = |name: &str| event[name].as_str().unwrap();
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => {
                let id = event["item"]["id"].as_str().unwrap().to_owned();
                assert_eq!(index.unwrap(), (self.open.len() + self.done.len()) as u64, "{event}");
                self.open.insert(index.unwrap(), id);
            }
            "response.content_part.added" => drop(self.parts.insert(part(), String::new())),
            "response.output_text.delta" | "response.reasoning.delta" | "response.reasoning_text.delta" => {
                *self.parts.get_mut(&part()).unwrap() += text("delta");
            }
            "response.output_text.done" | "response.reasoning.done" | "response.reasoning_text.done" => {
                assert_eq!(self.parts[&part()], text("text"));
            }
            "response.content_part.done" => {
                let so_far = self.parts.remove(&part()).unwrap();
                assert_eq!(event["part"]["text"], so_far);
            }
            "response.function_call_arguments.delta" => {
                *self.arguments.entry(index.unwrap()).or_default() += text("delta");
            }
            "response.function_call_arguments.done" => {
                assert_eq!(self.arguments[&index.unwrap()], text("arguments"));
            }
            "response.output_item.done" => {
                let id = self.open.remove(&index.unwrap()).unwrap();
                assert_eq!(event["item"]["id"], id);
                self.done.push(event["item"].clone());
            }
            _ => {}
        }
    }
}

fn is_last(event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap();
    ["response.completed", "response.incomplete", "response.failed"].contains(&kind)
}
