//! The tool pairs of a request body, read from its JSON without the decoders under test.

use throughline_core::{Dialect, Part, joined_text, outcome};
use throughline_wire::json::{Document, Kind, Node};

/// A call and its result, by what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub name: String,
    /// The exact text that the tool was given; no arguments count as an empty object.
    pub given: String,
    /// The result's texts, joined by line breaks.
    pub text: String,
    /// The result's images and files, as data URLs or addresses.
    pub media: Vec<String>,
    pub is_error: bool,
}

/// A call that may still find its result.
struct Called {
    id: String,
    name: String,
    given: String,
}

/// Lists the pairs of a body in the order of their calls.
pub(super) fn pairs(dialect: Dialect, body: &str) -> Vec<Pair> {
    let document = Document::parse(body).expect("JSON");
    let (calls, results) = match dialect {
        Dialect::Chat => of_chat(document.root()),
        Dialect::Messages => of_messages(document.root()),
        Dialect::Responses => of_responses(document.root()),
    };
    let mut results: Vec<Option<(String, Node<'_>, bool)>> = results.into_iter().map(Some).collect();
    let mut found = Vec::new();
    for call in calls {
        let result = results.iter_mut().find(|result| result.as_ref().is_some_and(|(id, ..)| *id == call.id));
        let (_, content, is_error) = result.and_then(Option::take).expect("a result of the call");
        let (text, media) = told(content);
        // A mark may stand in front or inside; what matters is that it says the same.
        let (outcome, parts) =
            outcome::unmarked(vec![Part::text(text)], dialect == Dialect::Messages, is_error);
        let (text, is_error) = (joined_text(&parts).to_string(), outcome.is_error());
        let given = if call.given.is_empty() { "{}".to_owned() } else { call.given };
        found.push(Pair { name: call.name, given, text, media, is_error });
    }
    assert!(results.iter().all(Option::is_none), "a result without a call in {body}");
    found
}

type Found<'d> = (Vec<Called>, Vec<(String, Node<'d>, bool)>);

fn str(node: Node<'_>, name: &str) -> String {
    node.field(name).and_then(|value| value.as_str()).unwrap_or_default().into_owned()
}

fn of_chat(root: Node<'_>) -> Found<'_> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for message in root.field("messages").expect("messages").items() {
        for call in message.field("tool_calls").into_iter().flat_map(Node::items) {
            let (inner, given) = match &*str(call, "type") {
                "custom" => (call.field("custom"), "input"),
                _ => (call.field("function"), "arguments"),
            };
            let inner = inner.expect("what is called");
            calls.push(Called { id: str(call, "id"), name: str(inner, "name"), given: str(inner, given) });
        }
        if str(message, "role") == "tool" {
            results.push((str(message, "tool_call_id"), message.field("content").expect("content"), false));
        }
    }
    (calls, results)
}

fn of_messages(root: Node<'_>) -> Found<'_> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let messages = root.field("messages").expect("messages");
    for block in messages.items().filter_map(|message| message.field("content")).flat_map(Node::items) {
        match &*str(block, "type") {
            "tool_use" => {
                let given = block.field("input").expect("input").raw().to_owned();
                calls.push(Called { id: str(block, "id"), name: str(block, "name"), given });
            }
            "tool_result" => {
                let is_error = block.field("is_error").and_then(|flag| flag.as_bool()).unwrap_or(false);
                let content = block.field("content").unwrap_or(block);
                results.push((str(block, "tool_use_id"), content, is_error));
            }
            _ => {}
        }
    }
    (calls, results)
}

fn of_responses(root: Node<'_>) -> Found<'_> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for item in root.field("input").expect("input").items() {
        let given = match &*str(item, "type") {
            "function_call" => "arguments",
            "custom_tool_call" => "input",
            "function_call_output" | "custom_tool_call_output" => {
                results.push((str(item, "call_id"), item.field("output").expect("output"), false));
                continue;
            }
            _ => continue,
        };
        calls.push(Called { id: str(item, "call_id"), name: str(item, "name"), given: str(item, given) });
    }
    (calls, results)
}

/// Returns the texts and the media of a result's content.
fn told(content: Node<'_>) -> (String, Vec<String>) {
    if content.kind() == Kind::String {
        return (content.as_str().unwrap_or_default().into_owned(), Vec::new());
    }
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in content.items() {
        match &*str(part, "type") {
            "text" | "input_text" | "output_text" => texts.push(str(part, "text")),
            "image" | "document" => media.push(source(part.field("source").expect("source"))),
            "input_image" => media.push(str(part, "image_url")),
            "input_file" => media.push(str(part, "file_data")),
            kind => panic!("a {kind} in a result"),
        }
    }
    (texts.join("\n"), media)
}

fn source(source: Node<'_>) -> String {
    match &*str(source, "type") {
        "url" => str(source, "url"),
        _ => format!("data:{};base64,{}", str(source, "media_type"), str(source, "data")),
    }
}
