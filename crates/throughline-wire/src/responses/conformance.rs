//! What the specification demands of answers and streams, as checks for the tests of this dialect.
//!
//! Facts of OpenResponses 2026-04-24: the 31 fields of a response, the required fields of each event, the
//! order of events, and the consistency that follows from them. Events that OpenAI adds for custom tools
//! and raw reasoning are allowed under their own names.

use crate::Outgoing;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields and what they must be: `s`tring, `i`nteger, `n`umber, `b`oolean, `a`rray, `o`bject, `*` anything;
/// a question mark allows `null`.
type Shape = &'static [(&'static str, &'static str)];

const RESPONSE: Shape = &[
    ("id", "s"),
    ("object", "s"),
    ("created_at", "i"),
    ("completed_at", "i?"),
    ("status", "s"),
    ("incomplete_details", "o?"),
    ("model", "s"),
    ("previous_response_id", "s?"),
    ("instructions", "s?"),
    ("output", "a"),
    ("error", "o?"),
    ("tools", "a"),
    ("tool_choice", "*"),
    ("truncation", "s"),
    ("parallel_tool_calls", "b"),
    ("text", "o"),
    ("top_p", "n"),
    ("presence_penalty", "n"),
    ("frequency_penalty", "n"),
    ("top_logprobs", "i"),
    ("temperature", "n"),
    ("reasoning", "o?"),
    ("usage", "o?"),
    ("max_output_tokens", "i?"),
    ("max_tool_calls", "i?"),
    ("store", "b"),
    ("background", "b"),
    ("service_tier", "s"),
    ("metadata", "o"),
    ("safety_identifier", "s?"),
    ("prompt_cache_key", "s?"),
];

const LIFE: Shape = &[("response", "o")];
const ITEM: Shape = &[("output_index", "i"), ("item", "o")];
const PART: Shape = &[("item_id", "s"), ("output_index", "i"), ("content_index", "i"), ("part", "o")];
const SUMMARY_PART: Shape = &[("item_id", "s"), ("output_index", "i"), ("summary_index", "i"), ("part", "o")];
const CONTENT_DELTA: Shape =
    &[("item_id", "s"), ("output_index", "i"), ("content_index", "i"), ("delta", "s")];
const CONTENT_DONE: Shape = &[("item_id", "s"), ("output_index", "i"), ("content_index", "i"), ("text", "s")];
const INPUT_DELTA: Shape = &[("item_id", "s"), ("output_index", "i"), ("delta", "s")];

const EVENTS: &[(&str, Shape)] = &[
    ("response.created", LIFE),
    ("response.in_progress", LIFE),
    ("response.completed", LIFE),
    ("response.failed", LIFE),
    ("response.incomplete", LIFE),
    ("response.output_item.added", ITEM),
    ("response.output_item.done", ITEM),
    ("response.content_part.added", PART),
    ("response.content_part.done", PART),
    ("response.output_text.delta", CONTENT_DELTA),
    ("response.output_text.done", CONTENT_DONE),
    (
        "response.output_text.annotation.added",
        &[
            ("item_id", "s"),
            ("output_index", "i"),
            ("content_index", "i"),
            ("annotation_index", "i"),
            ("annotation", "o"),
        ],
    ),
    ("response.refusal.delta", CONTENT_DELTA),
    (
        "response.refusal.done",
        &[("item_id", "s"), ("output_index", "i"), ("content_index", "i"), ("refusal", "s")],
    ),
    ("response.reasoning.delta", CONTENT_DELTA),
    ("response.reasoning.done", CONTENT_DONE),
    ("response.reasoning_text.delta", CONTENT_DELTA),
    ("response.reasoning_text.done", CONTENT_DONE),
    ("response.reasoning_summary_part.added", SUMMARY_PART),
    ("response.reasoning_summary_part.done", SUMMARY_PART),
    (
        "response.reasoning_summary_text.delta",
        &[("item_id", "s"), ("output_index", "i"), ("summary_index", "i"), ("delta", "s")],
    ),
    (
        "response.reasoning_summary_text.done",
        &[("item_id", "s"), ("output_index", "i"), ("summary_index", "i"), ("text", "s")],
    ),
    ("response.function_call_arguments.delta", INPUT_DELTA),
    ("response.function_call_arguments.done", &[("item_id", "s"), ("output_index", "i"), ("arguments", "s")]),
    ("response.custom_tool_call_input.delta", INPUT_DELTA),
    ("response.custom_tool_call_input.done", &[("item_id", "s"), ("output_index", "i"), ("input", "s")]),
];

/// Checks a response object.
pub(super) fn check_response(response: &Value) {
    assert_eq!(RESPONSE.len(), 31);
    check_shape(response, RESPONSE);
    assert_eq!(response["object"], "response");
    check_optional(&response["incomplete_details"], &[("reason", "s")]);
    check_optional(&response["error"], &[("code", "s"), ("message", "s")]);
    check_optional(&response["reasoning"], &[("effort", "s?"), ("summary", "s?")]);
    check_usage(&response["usage"]);
    check_text(&response["text"]);
    check_choice(&response["tool_choice"]);
    for tool in response["tools"].as_array().unwrap() {
        if tool["type"] == "function" {
            let shape = &[("name", "s"), ("description", "s?"), ("parameters", "o?"), ("strict", "b?")];
            check_shape(tool, shape);
        }
    }
    response["output"].as_array().unwrap().iter().for_each(check_item);
}

fn check_usage(usage: &Value) {
    let shape = &[
        ("input_tokens", "i"),
        ("output_tokens", "i"),
        ("total_tokens", "i"),
        ("input_tokens_details", "o"),
        ("output_tokens_details", "o"),
    ];
    check_optional(usage, shape);
    check_optional(&usage["input_tokens_details"], &[("cached_tokens", "i")]);
    check_optional(&usage["output_tokens_details"], &[("reasoning_tokens", "i")]);
}

fn check_text(text: &Value) {
    check_shape(&text["format"], &[("type", "s")]);
    if text["format"]["type"] == "json_schema" {
        check_shape(
            &text["format"],
            &[("name", "s"), ("description", "s?"), ("schema", "*"), ("strict", "b")],
        );
    }
    let verbosity = text.get("verbosity");
    assert!(
        verbosity.is_none_or(|word| ["low", "medium", "high"].iter().any(|known| word == known)),
        "{text}"
    );
}

fn check_choice(choice: &Value) {
    match choice {
        Value::String(word) => assert!(["none", "auto", "required"].contains(&word.as_str()), "{word}"),
        choice if choice["type"] == "allowed_tools" => check_shape(choice, &[("tools", "a"), ("mode", "s")]),
        choice => check_shape(choice, &[("type", "s")]),
    }
}

/// Checks an item of an answer.
pub(super) fn check_item(item: &Value) {
    check_shape(item, &[("type", "s"), ("id", "s"), ("status", "s")]);
    match item["type"].as_str().unwrap() {
        "message" => {
            check_shape(item, &[("role", "s"), ("content", "a")]);
            item["content"].as_array().unwrap().iter().for_each(check_part);
        }
        "function_call" => check_shape(item, &[("call_id", "s"), ("name", "s"), ("arguments", "s")]),
        "custom_tool_call" => check_shape(item, &[("call_id", "s"), ("name", "s"), ("input", "s")]),
        "reasoning" => {
            check_shape(item, &[("summary", "a")]);
            item["summary"].as_array().unwrap().iter().for_each(check_part);
            let optional = |name| item.get(name).cloned();
            assert!(optional("content").is_none_or(|content| content.is_array()), "{item}");
            assert!(optional("encrypted_content").is_none_or(|sealed| sealed.is_string()), "{item}");
        }
        _ => {}
    }
}

fn check_part(part: &Value) {
    match part["type"].as_str().unwrap() {
        "output_text" => check_shape(part, &[("text", "s"), ("annotations", "a")]),
        "refusal" => check_shape(part, &[("refusal", "s")]),
        "summary_text" | "reasoning_text" => check_shape(part, &[("text", "s")]),
        other => panic!("no part of an answer: {other}"),
    }
}

fn check_optional(value: &Value, shape: Shape) {
    if !value.is_null() {
        check_shape(value, shape);
    }
}

fn check_shape(value: &Value, shape: Shape) {
    for (name, kind) in shape {
        let field = value.get(name).unwrap_or_else(|| panic!("{name} is missing in {value}"));
        let fits = match kind.trim_end_matches('?') {
            "s" => field.is_string(),
            "i" => field.is_u64(),
            "n" => field.is_number(),
            "b" => field.is_boolean(),
            "a" => field.is_array(),
            "o" => field.is_object(),
            _ => true,
        };
        assert!(fits || (kind.ends_with('?') && field.is_null()), "{name} is {field}, not {kind}");
    }
}

/// What a stream has said so far.
#[derive(Default)]
struct Seen {
    items: Vec<SeenItem>,
    /// By item, kind of part and index: what was said in pieces, and whether it was closed.
    texts: BTreeMap<(usize, &'static str, u64), (String, bool)>,
}

struct SeenItem {
    id: String,
    done: Option<Value>,
}

/// Checks a whole stream and returns its final response.
pub(super) fn check_stream(out: &[Outgoing]) -> Value {
    let (end, events) = out.split_last().expect("a stream says something");
    assert_eq!((end.name, end.data.as_str()), (None, "[DONE]"));
    let mut seen = Seen::default();
    let mut last = Value::Null;
    for (number, outgoing) in events.iter().enumerate() {
        let event: Value = serde_json::from_str(&outgoing.data).expect("every event is JSON");
        assert_eq!(event["type"].as_str(), outgoing.name);
        assert_eq!(event["sequence_number"], number, "{event}");
        let name = outgoing.name.unwrap();
        let known = EVENTS.iter().find(|(known, _)| *known == name);
        check_shape(&event, known.unwrap_or_else(|| panic!("no event is called {name}")).1);
        let expected = [Some("response.created"), Some("response.in_progress")];
        assert!(number >= 2 || expected[number] == Some(name), "{name} at {number}");
        seen.take(name, &event, number + 1 == events.len());
        last = event;
    }
    assert!(seen.texts.values().all(|(_, closed)| *closed), "a part was never closed");
    let output = last["response"]["output"].as_array().unwrap();
    let done: Vec<Value> =
        seen.items.into_iter().map(|item| item.done.expect("every item is done")).collect();
    assert_eq!(output, &done);
    last["response"].clone()
}

impl Seen {
    fn take(&mut self, name: &'static str, event: &Value, is_last: bool) {
        let is_terminal = ["response.completed", "response.incomplete", "response.failed"].contains(&name);
        assert_eq!(is_terminal, is_last, "{name} is not where it belongs");
        match name {
            _ if event.get("response").is_some() => check_response(&event["response"]),
            "response.output_item.added" => self.add_item(event),
            "response.output_item.done" => self.finish_item(event),
            "response.output_text.annotation.added" => {}
            _ if name.ends_with("_part.added") => {
                check_part(&event["part"]);
                let key = self.key(event, name);
                assert!(self.texts.insert(key, (String::new(), false)).is_none(), "{event} came twice");
            }
            _ if name.ends_with("_part.done") => self.finish_part(name, event),
            _ if name.ends_with(".delta") => {
                let key = self.key(event, name);
                // The input of a call is no part, so nothing announces it.
                let text = match key.1 {
                    "input" => self.texts.entry(key).or_default(),
                    _ => self.texts.get_mut(&key).expect("a delta belongs to a part"),
                };
                assert!(!text.1, "{event} is behind the end of its part");
                text.0.push_str(event["delta"].as_str().unwrap());
            }
            _ => {
                let key = self.key(event, name);
                let whole =
                    ["text", "refusal", "arguments", "input"].iter().find_map(|field| event.get(field));
                let text = self.texts.entry(key).or_default();
                assert_eq!(whole.unwrap(), &text.0, "the whole differs from its pieces");
                text.1 |= key.1 == "input";
            }
        }
    }

    fn key(&self, event: &Value, name: &str) -> (usize, &'static str, u64) {
        let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
        let item = &self.items[index];
        assert_eq!(event["item_id"], item.id, "{name}");
        assert!(item.done.is_none(), "{name} behind the end of its item");
        match (event.get("content_index"), event.get("summary_index")) {
            (Some(at), _) => (index, "content", at.as_u64().unwrap()),
            (_, Some(at)) => (index, "summary", at.as_u64().unwrap()),
            _ => (index, "input", 0),
        }
    }

    fn add_item(&mut self, event: &Value) {
        check_item(&event["item"]);
        assert_eq!(event["output_index"], self.items.len(), "items are numbered in turn");
        self.items.push(SeenItem { id: event["item"]["id"].as_str().unwrap().to_owned(), done: None });
    }

    fn finish_part(&mut self, name: &'static str, event: &Value) {
        check_part(&event["part"]);
        let key = self.key(event, name);
        let text = self.texts.get_mut(&key).expect("only what was begun can end");
        assert!(!std::mem::replace(&mut text.1, true), "{event} came twice");
        assert_eq!(text_of(event["part"].as_object().unwrap()), text.0);
    }

    fn finish_item(&mut self, event: &Value) {
        check_item(&event["item"]);
        let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
        let item = &mut self.items[index];
        assert_eq!(event["item"]["id"], item.id);
        assert_ne!(event["item"]["status"], "in_progress");
        assert!(item.done.replace(event["item"].clone()).is_none(), "{event} came twice");
        for (key, field) in [("content", "content"), ("summary", "summary")] {
            let parts = event["item"].get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            for (at, part) in parts.iter().enumerate() {
                let (text, _) = &self.texts[&(index, key, at as u64)];
                assert_eq!(&text_of(part.as_object().unwrap()), text);
            }
        }
        let input = event["item"].get("arguments").or_else(|| event["item"].get("input"));
        if event["item"]["call_id"].is_string()
            && let Some(input) = input
        {
            assert_eq!(input, &self.texts[&(index, "input", 0)].0);
        }
    }
}

fn text_of(part: &Map<String, Value>) -> String {
    let text = part.get("text").or_else(|| part.get("refusal"));
    text.and_then(Value::as_str).unwrap().to_owned()
}
