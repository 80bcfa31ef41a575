//! OpenAI's Responses API.
//!
//! The tables follow the OpenResponses schema and OpenAI's published request types, which add the items and
//! tools of its own clients. Those additions are recognised but not looked into. One thing is stricter than
//! both: a reasoning item with a filled `content` fits the types, yet the service answers 400.

#[cfg(test)]
mod tests;

use super::shape::Kind::{
    Any, Filled, FilledList, Flag, List, Name, Number, Object, OneOf, Text, TextOrList, TextOrObject, Whole,
};
use super::shape::{
    Extras, Field, Node, Report, Rule, Variant, check_fields, check_metadata, check_stream_options,
    check_variant, maybe, opt, req,
};
use serde_json::Value;

const STRICT: Extras = Extras::Refused("Unknown parameter");
const LONGEST: usize = 10_485_760;

/// Fields of OpenResponses, then OpenAI's own, then what its clients send.
const REQUEST: &[Field] = &[
    maybe("model", Filled(usize::MAX)),
    maybe("input", TextOrList),
    maybe("previous_response_id", Filled(usize::MAX)),
    maybe("include", List),
    maybe("tools", List),
    maybe("tool_choice", TextOrObject),
    maybe("metadata", Object),
    maybe("text", Object),
    maybe("temperature", Number(0.0, 2.0)),
    maybe("top_p", Number(0.0, 1.0)),
    maybe("presence_penalty", Number(-2.0, 2.0)),
    maybe("frequency_penalty", Number(-2.0, 2.0)),
    maybe("parallel_tool_calls", Flag),
    maybe("stream", Flag),
    maybe("stream_options", Object),
    maybe("background", Flag),
    maybe("max_output_tokens", Whole(16)),
    maybe("max_tool_calls", Whole(1)),
    maybe("reasoning", Object),
    maybe("safety_identifier", Filled(64)),
    maybe("prompt_cache_key", Filled(64)),
    maybe("truncation", OneOf(&["auto", "disabled"])),
    maybe("instructions", Text),
    maybe("store", Flag),
    maybe("service_tier", Text),
    maybe("top_logprobs", Number(0.0, 20.0)),
    maybe("conversation", TextOrObject),
    maybe("prompt", Object),
    maybe("user", Text),
    maybe("moderation", Object),
    maybe("context_management", List),
    maybe("prompt_cache_options", Object),
    maybe("prompt_cache_retention", Text),
    maybe("client_metadata", Object),
    maybe("generate", Flag),
];

const ID: Field = maybe("id", Text);
const STATUS: Field = maybe("status", OneOf(&["in_progress", "completed", "incomplete"]));
const CALLER: Field = maybe("caller", Object);
const CALL_ID: Field = req("call_id", Filled(64));
const NAMESPACE: Field = maybe("namespace", Text);
const OUTPUT: Field = req("output", TextOrList);

const MESSAGE: &[Field] =
    &[req("role", OneOf(ROLES)), req("content", TextOrList), maybe("phase", Text), ID, STATUS];
const ROLES: &[&str] = &["user", "system", "developer", "assistant"];
const FUNCTION_CALL: &[Field] =
    &[CALL_ID, req("name", Name(64)), req("arguments", Text), NAMESPACE, CALLER, ID, STATUS];
const CUSTOM_CALL: &[Field] =
    &[CALL_ID, req("name", Name(64)), req("input", Text), NAMESPACE, CALLER, ID, STATUS];
const CALL_OUTPUT: &[Field] = &[CALL_ID, OUTPUT, maybe("name", Text), NAMESPACE, CALLER, ID, STATUS];
const REASONING: &[Field] =
    &[req("summary", List), maybe("content", List), maybe("encrypted_content", Text), ID, STATUS];

const ITEMS: &[Variant] = &[
    strict("message", MESSAGE),
    strict("function_call", FUNCTION_CALL),
    strict("function_call_output", CALL_OUTPUT),
    strict("custom_tool_call", CUSTOM_CALL),
    strict("custom_tool_call_output", CALL_OUTPUT),
    strict("reasoning", REASONING),
    strict("compaction", &[req("encrypted_content", Filled(LONGEST)), ID]),
    strict("item_reference", &[req("id", Filled(usize::MAX))]),
    loose("compaction_trigger", &[]),
    loose("additional_tools", &[req("tools", List)]),
    loose("file_search_call", &[]),
    loose("web_search_call", &[]),
    loose("computer_call", &[CALL_ID]),
    loose("computer_call_output", &[CALL_ID]),
    loose("tool_search_call", &[]),
    loose("tool_search_output", &[]),
    loose("image_generation_call", &[]),
    loose("code_interpreter_call", &[]),
    loose("local_shell_call", &[]),
    loose("local_shell_call_output", &[]),
    loose("shell_call", &[CALL_ID]),
    loose("shell_call_output", &[CALL_ID]),
    loose("apply_patch_call", &[CALL_ID]),
    loose("apply_patch_call_output", &[CALL_ID]),
    loose("mcp_list_tools", &[]),
    loose("mcp_approval_request", &[]),
    loose("mcp_approval_response", &[]),
    loose("mcp_call", &[]),
    loose("program", &[]),
    loose("program_output", &[]),
];

/// How the id of an item begins, where that is on record.
const ID_PREFIXES: &[(&str, &str)] = &[
    ("message", "msg"),
    ("function_call", "fc"),
    ("function_call_output", "fc"),
    ("custom_tool_call", "ctc"),
    ("custom_tool_call_output", "ctc"),
    ("reasoning", "rs"),
    ("web_search_call", "ws"),
];

/// Which output answers which calls: Codex answers a local shell call with a function call output.
const ANSWERS: &[(&str, &[&str])] = &[
    ("function_call_output", &["function_call", "local_shell_call"]),
    ("custom_tool_call_output", &["custom_tool_call"]),
    ("shell_call_output", &["shell_call"]),
    ("apply_patch_call_output", &["apply_patch_call"]),
    ("computer_call_output", &["computer_call"]),
];

const PARTS: &[Variant] = &[
    loose("input_text", &[req("text", Text)]),
    loose("input_image", &[maybe("image_url", Filled(20_971_520)), maybe("detail", OneOf(DETAILS))]),
    loose("input_file", &[maybe("filename", Text)]),
    loose("input_audio", &[req("input_audio", Object)]),
    loose("output_text", &[req("text", Text), maybe("annotations", List)]),
    loose("refusal", &[req("refusal", Text)]),
];
const DETAILS: &[&str] = &["auto", "low", "high", "original"];

const TOOLS: &[Variant] = &[
    loose("function", &[req("name", Name(64)), maybe("parameters", Object), maybe("strict", Flag)]),
    loose("custom", &[req("name", Name(64)), opt("format", Object)]),
    loose("namespace", &[req("name", Name(64)), req("tools", FilledList)]),
    loose("file_search", &[req("vector_store_ids", List)]),
    loose("mcp", &[req("server_label", Text)]),
    loose("code_interpreter", &[req("container", Any)]),
    loose("web_search", &[]),
    loose("web_search_2025_08_26", &[]),
    loose("web_search_preview", &[]),
    loose("web_search_preview_2025_03_11", &[]),
    loose("computer", &[]),
    loose("computer_use_preview", &[]),
    loose("image_generation", &[]),
    loose("programmatic_tool_calling", &[]),
    loose("local_shell", &[]),
    loose("shell", &[]),
    loose("apply_patch", &[]),
    loose("tool_search", &[]),
];

const FORMATS: &[Variant] = &[
    loose("text", &[]),
    loose("json_object", &[]),
    strict(
        "json_schema",
        &[req("name", Name(64)), req("schema", Object), maybe("description", Text), maybe("strict", Flag)],
    ),
];

const RULES: &[Rule] = &[
    check_metadata,
    check_stream_options,
    given,
    items,
    item_ids,
    persisted,
    calls,
    answers,
    reasoning,
    tools,
    tool_choice,
    text_format,
];

const fn strict(kind: &'static str, fields: &'static [Field]) -> Variant {
    Variant { kind, fields, extras: STRICT }
}

const fn loose(kind: &'static str, fields: &'static [Field]) -> Variant {
    Variant { kind, fields, extras: Extras::Ignored }
}

pub(super) fn check(report: &mut Report, body: &Node<'_>) {
    check_fields(report, body, REQUEST, STRICT);
    for rule in RULES {
        rule(report, body);
    }
}

/// Checks what may be left out only when something else stands in for it.
fn given(report: &mut Report, body: &Node<'_>) {
    let message = "Missing required parameter: 'model'.";
    report.require(body.has("model") || body.has("prompt"), &body.get("model"), "missing-field", message);
    let continues = body.has("previous_response_id") || body.has("conversation") || body.has("prompt");
    let message =
        "One of \"input\", \"previous_response_id\", \"prompt\" or \"conversation\" must be provided.";
    report.require(continues || body.has("input"), &body.get("input"), "missing-field", message);
    let empty = body.get("input").value.as_array().is_some_and(Vec::is_empty);
    let message = "empty array. Expected an array with minimum length 1";
    report.require(continues || !empty, &body.get("input"), "empty-list", message);
    let message = "'previous_response_id' cannot be used in conjunction with 'conversation'.";
    let both = body.has("previous_response_id") && body.has("conversation");
    report.require(!both, &body.get("conversation"), "two-histories", message);
}

/// The kind of an item; a role without a type means a message, an id alone a reference.
fn kind<'a>(item: &Node<'a>) -> &'a str {
    match item.kind() {
        "" if item.has("role") => "message",
        "" if item.has("id") => "item_reference",
        kind => kind,
    }
}

fn items(report: &mut Report, body: &Node<'_>) {
    for item in body.get("input").items() {
        match kind(&item) {
            "message" => message(report, &item),
            "item_reference" if item.kind().is_empty() => {
                check_fields(report, &item, &[maybe("type", Text), req("id", Text)], STRICT);
            }
            _ => check_variant(report, &item, ITEMS, "unknown-item-type"),
        }
        check_output(report, &item);
    }
}

fn message(report: &mut Report, item: &Node<'_>) {
    let fields: Vec<_> = MESSAGE.iter().copied().chain([maybe("type", Text)]).collect();
    check_fields(report, item, &fields, STRICT);
    let allowed: &[&str] = match item.str("role") {
        "assistant" => &["output_text", "refusal"],
        "user" => &["input_text", "input_image", "input_file", "input_audio"],
        _ => &["input_text"],
    };
    check_parts(report, &item.get("content"), allowed);
}

fn check_output(report: &mut Report, item: &Node<'_>) {
    if matches!(item.kind(), "function_call_output" | "custom_tool_call_output") {
        check_parts(report, &item.get("output"), &["input_text", "input_image", "input_file"]);
    }
}

fn check_parts(report: &mut Report, content: &Node<'_>, allowed: &[&str]) {
    for part in content.items() {
        if !allowed.contains(&part.kind()) {
            let message =
                format!("Invalid value: '{}'. Supported values are: {}", part.kind(), allowed.join(", "));
            report.add(&part, "part-not-allowed", message);
            continue;
        }
        check_variant(report, &part, PARTS, "part-not-allowed");
        let given = match part.kind() {
            "input_image" => part.has("image_url") || part.has("file_id"),
            "input_file" => part.has("file_data") || part.has("file_url") || part.has("file_id"),
            _ => true,
        };
        report.require(given, &part, "part-without-data", "the part names neither data, URL nor file id");
    }
}

fn item_ids(report: &mut Report, body: &Node<'_>) {
    let items = body.get("input").items();
    let with_id = |item: &&Node<'_>| item.has("id") && kind(item) != "item_reference";
    let ids: Vec<_> = items.iter().filter(with_id).map(|item| item.get("id")).collect();
    report.require_unique(&ids, "duplicate-item-id", "Duplicate item found with id");
    for item in items.iter().filter(with_id) {
        let id = item.get("id");
        let message = "string too long. Expected a string with maximum length 64";
        report.require(id.text().len() <= 64, &id, "item-id-too-long", message);
        let Some((_, prefix)) = ID_PREFIXES.iter().find(|(of, _)| *of == kind(item)) else { continue };
        let message = format!("'{}': Expected an ID that begins with '{prefix}'.", id.text());
        report.require(is_item_id(id.text(), prefix), &id, "invalid-item-id", message);
    }
}

/// An id is a prefix, an underscore and the rest: `msg-1` and `fcabc` were both refused.
fn is_item_id(id: &str, prefix: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let parts = id.split_once('_');
    parts.is_some_and(|(head, rest)| {
        head.starts_with(prefix) && !head.contains('-') && rest.bytes().all(known)
    })
}

/// Without `store`, an item that does not carry its own content cannot be found.
fn persisted(report: &mut Report, body: &Node<'_>) {
    let stateless = body.get("store").value == &Value::Bool(false);
    for item in body.get("input").items().iter().filter(|_| stateless) {
        let bare = kind(item) == "reasoning" && item.has("id") && item.lacks("encrypted_content");
        let message = format!(
            "Item with id '{}' not found. Items are not persisted when `store` is set to false.",
            item.str("id")
        );
        let absent = bare || kind(item) == "item_reference";
        report.require(!absent, item, "item-not-persisted", message);
    }
}

fn calls(report: &mut Report, body: &Node<'_>) {
    let items = body.get("input").items();
    for (output, call_kinds) in ANSWERS {
        let of_call = |item: &&Node<'_>| call_kinds.contains(&item.kind());
        let ids: Vec<_> = items.iter().filter(of_call).map(|item| item.get("call_id")).collect();
        report.require_unique(&ids, "duplicate-call-id", "Duplicate 'call_id'");
        for (index, call) in items.iter().enumerate().filter(|(_, item)| item.kind() == call_kinds[0]) {
            let matching =
                |item: &Node<'_>| item.kind() == *output && item.str("call_id") == call.str("call_id");
            let message = format!("No tool output found for function call {}.", call.str("call_id"));
            let answered = items[index..].iter().any(matching);
            report.require(answered, call, "call-without-output", message);
        }
    }
}

fn answers(report: &mut Report, body: &Node<'_>) {
    let items = body.get("input").items();
    let elsewhere = body.has("previous_response_id")
        || body.has("conversation")
        || items.iter().any(|item| kind(item) == "item_reference");
    for (output, call_kinds) in ANSWERS {
        let outputs: Vec<_> = items.iter().enumerate().filter(|(_, item)| item.kind() == *output).collect();
        let ids: Vec<_> = outputs.iter().map(|(_, item)| item.get("call_id")).collect();
        report.require_unique(&ids, "duplicate-output", "Duplicate output for 'call_id'");
        for (index, item) in outputs {
            let id = item.str("call_id");
            let matching = |call: &Node<'_>| call_kinds.contains(&call.kind()) && call.str("call_id") == id;
            let called = elsewhere || items[..index].iter().any(matching);
            let message = format!("No tool call found for function call output with call_id {id}.");
            report.require(called, item, "output-without-call", message);
        }
    }
}

fn reasoning(report: &mut Report, body: &Node<'_>) {
    let items = body.get("input").items();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.kind() == "reasoning") {
        let message = format!(
            "Item '{}' of type 'reasoning' was provided without its required following item.",
            item.str("id")
        );
        let followed = items.get(index + 1).is_some_and(is_said);
        report.require(followed, item, "reasoning-without-following-item", message);
        let message = "array too long. Expected an array with maximum length 0";
        report.require(item.lacks("content"), &item.get("content"), "reasoning-content-not-empty", message);
        for part in item.get("summary").items() {
            let fields = [req("type", OneOf(&["summary_text"])), req("text", Text)];
            check_fields(report, &part, &fields, Extras::Ignored);
        }
    }
}

/// Says whether the model itself produced the item, apart from reasoning.
fn is_said(item: &Node<'_>) -> bool {
    match kind(item) {
        "message" => item.str("role") == "assistant",
        "reasoning" | "additional_tools" | "compaction_trigger" | "mcp_approval_response" => false,
        kind => !kind.ends_with("_output"),
    }
}

fn tools(report: &mut Report, body: &Node<'_>) {
    for tool in declared(body) {
        check_variant(report, &tool, TOOLS, "unknown-tool-type");
        for inner in tool.get("tools").items().iter().filter(|_| tool.kind() == "namespace") {
            check_variant(report, inner, TOOLS, "unknown-tool-type");
        }
    }
}

fn declared<'a>(body: &Node<'a>) -> Vec<Node<'a>> {
    let mut tools = body.get("tools").items();
    let items = body.get("input").items();
    let added = items.iter().filter(|item| item.kind() == "additional_tools");
    tools.extend(added.flat_map(|item| item.get("tools").items()));
    tools
}

fn tool_choice(report: &mut Report, body: &Node<'_>) {
    let choice = body.get("tool_choice");
    let tools = declared(body);
    let wanted = match (choice.text(), choice.kind()) {
        ("none" | "auto" | "required", _) => vec![],
        ("", "function" | "custom") => vec![choice.clone()],
        ("", "allowed_tools") => choice.get("tools").items(),
        // A hosted tool is chosen by its type alone; `mcp` also names its server.
        ("", hosted) if TOOLS.iter().any(|tool| tool.kind == hosted) => vec![],
        _ if !choice.value.is_string() && !choice.value.is_object() => return,
        _ => return report.add(&choice, "unknown-tool-choice", "'tool_choice' is invalid."),
    };
    let forced = choice.text() == "required" || choice.value.is_object();
    let message = "Tool choices other than 'auto' and 'none' must be specified with 'tools' parameter.";
    report.require(!forced || !tools.is_empty(), &choice, "tool-choice-without-tools", message);
    let names =
        wanted.iter().filter(|want| matches!(want.kind(), "function" | "custom") && !tools.is_empty());
    for want in names {
        let known = tools.iter().any(|tool| tool.str("name") == want.str("name"));
        let message = format!("Tool choice '{}' not found in 'tools' parameter.", want.str("name"));
        report.require(known, want, "tool-choice-unknown", message);
    }
    let empty = choice.kind() == "allowed_tools" && wanted.is_empty();
    report.require(!empty, &choice, "unknown-tool-choice", "'allowed_tools' names no tools.");
}

fn text_format(report: &mut Report, body: &Node<'_>) {
    let format = body.get("text").get("format");
    if format.value.is_object() {
        check_variant(report, &format, FORMATS, "unknown-text-format");
    }
}
