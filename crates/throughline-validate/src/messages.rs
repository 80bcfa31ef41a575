//! Anthropic's Messages API.
//!
//! The tables follow the request types published with the provider's SDKs. The rules on empty text follow
//! what callers measured, which is milder than the documentation in two places: a whitespace-only text
//! block passes beside another block, and a tool result may be empty. Consecutive messages of one role
//! are one turn ("will be combined into a single turn"), so calls and results are paired by turn.

#[cfg(test)]
mod tests;

use super::shape::Kind::{
    Any, Filled, FilledList, Flag, List, Name, Number, Object, OneOf, Text, TextOrList, Whole,
};
use super::shape::{
    Extras, Field, Node, Report, Rule, Variant, check_fields, check_variant, is_blank, is_name, maybe, opt,
    req,
};
use serde_json::Value;

const STRICT: Extras = Extras::Refused("Extra inputs are not permitted");
const CACHE: Field = maybe("cache_control", Object);
const ANY_LENGTH: usize = usize::MAX;

/// Fields of the stable API, then those that need a beta header.
const REQUEST: &[Field] = &[
    req("model", Filled(256)),
    // Zero is documented: it fills the prompt cache without an answer.
    req("max_tokens", Whole(0)),
    req("messages", FilledList),
    opt("system", TextOrList),
    opt("temperature", Number(0.0, 1.0)),
    opt("top_p", Number(0.0, 1.0)),
    opt("top_k", Whole(0)),
    opt("stream", Flag),
    opt("stop_sequences", List),
    opt("metadata", Object),
    opt("tools", List),
    opt("tool_choice", Object),
    opt("thinking", Object),
    opt("output_config", Object),
    opt("service_tier", OneOf(&["auto", "standard_only"])),
    maybe("container", Any),
    maybe("inference_geo", Text),
    CACHE,
    maybe("context_management", Object),
    opt("mcp_servers", List),
    maybe("output_format", Object),
    maybe("speed", OneOf(&["standard", "fast"])),
    maybe("diagnostics", Object),
    maybe("fallbacks", Any),
    maybe("fallback_credit_token", Any),
];

// No length limit on tool ids is published, so none is checked.
const BLOCKS: &[Variant] = &[
    strict("text", &[req("text", Text), maybe("citations", List), CACHE]),
    strict("image", &[req("source", Object), CACHE]),
    strict("document", DOCUMENT),
    strict("search_result", SEARCH_RESULT),
    strict("thinking", &[req("thinking", Text), req("signature", Text)]),
    strict("redacted_thinking", &[req("data", Filled(ANY_LENGTH))]),
    strict(
        "tool_use",
        &[req("id", Text), req("name", Filled(200)), req("input", Object), opt("caller", Object), CACHE],
    ),
    strict(
        "tool_result",
        &[req("tool_use_id", Text), opt("content", TextOrList), opt("is_error", Flag), CACHE],
    ),
    loose("server_tool_use"),
    loose("web_search_tool_result"),
    loose("web_fetch_tool_result"),
    loose("code_execution_tool_result"),
    loose("bash_code_execution_tool_result"),
    loose("text_editor_code_execution_tool_result"),
    loose("tool_search_tool_result"),
    loose("advisor_tool_result"),
    loose("mcp_tool_use"),
    loose("mcp_tool_result"),
    loose("container_upload"),
    loose("compaction"),
    loose("fallback"),
    loose("tool_addition"),
    loose("tool_removal"),
    loose("mid_conv_system"),
];

const DOCUMENT: &[Field] =
    &[req("source", Object), maybe("title", Text), maybe("context", Text), maybe("citations", Object), CACHE];
const SEARCH_RESULT: &[Field] =
    &[req("content", List), req("source", Text), req("title", Text), opt("citations", Object), CACHE];
const RESULT_BLOCKS: &[&str] = &["text", "image", "document", "search_result", "tool_reference"];
const ASSISTANT_ONLY: &[&str] =
    &["thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"];
const USER_ONLY: &[&str] = &["tool_result"];

const IMAGE_SOURCES: &[Variant] = &[
    strict("base64", &[req("media_type", OneOf(IMAGE_TYPES)), req("data", Filled(ANY_LENGTH))]),
    strict("url", &[req("url", Filled(ANY_LENGTH))]),
    strict("file", &[req("file_id", Filled(ANY_LENGTH))]),
];
const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
const DOCUMENT_SOURCES: &[Variant] = &[
    strict("base64", &[req("media_type", OneOf(&["application/pdf"])), req("data", Filled(ANY_LENGTH))]),
    strict("text", &[req("media_type", OneOf(&["text/plain"])), req("data", Text)]),
    strict("content", &[req("content", TextOrList)]),
    strict("url", &[req("url", Filled(ANY_LENGTH))]),
    strict("file", &[req("file_id", Filled(ANY_LENGTH))]),
];

const TOOL: &[Field] = &[
    maybe("type", OneOf(&["custom"])),
    req("name", Name(128)),
    req("input_schema", Object),
    opt("description", Text),
    opt("strict", Flag),
    opt("defer_loading", Flag),
    opt("allowed_callers", List),
    maybe("eager_input_streaming", Flag),
    opt("input_examples", List),
    CACHE,
];

const SERIAL: Field = opt("disable_parallel_tool_use", Flag);
const TOOL_CHOICES: &[Variant] = &[
    strict("auto", &[SERIAL]),
    strict("any", &[SERIAL]),
    strict("tool", &[req("name", Text), SERIAL]),
    strict("none", &[]),
];

const THINKING: &[Variant] = &[
    strict("enabled", &[req("budget_tokens", Whole(1024)), maybe("display", Text)]),
    strict("adaptive", &[maybe("display", Text)]),
    strict("disabled", &[]),
];

const RULES: &[Rule] = &[
    system,
    metadata,
    stop_sequences,
    tools,
    tool_choice,
    thinking_settings,
    messages,
    content,
    tool_ids,
    pairs,
    tools_declared,
    thinking_first,
    final_text,
    cache_marks,
];

const fn strict(kind: &'static str, fields: &'static [Field]) -> Variant {
    Variant { kind, fields, extras: STRICT }
}

const fn loose(kind: &'static str) -> Variant {
    Variant { kind, fields: &[], extras: Extras::Ignored }
}

pub(super) fn check(report: &mut Report, body: &Node<'_>) {
    check_fields(report, body, REQUEST, STRICT);
    for rule in RULES {
        rule(report, body);
    }
}

fn system(report: &mut Report, body: &Node<'_>) {
    let system = body.get("system");
    for block in system.items() {
        check_variant(report, &block, &BLOCKS[..1], "unknown-block-type");
    }
    check_text(report, &system);
}

fn metadata(report: &mut Report, body: &Node<'_>) {
    if body.has("metadata") {
        check_fields(report, &body.get("metadata"), &[maybe("user_id", Filled(256))], STRICT);
    }
}

fn stop_sequences(report: &mut Report, body: &Node<'_>) {
    for sequence in body.get("stop_sequences").items() {
        let message = "stop_sequences: each stop sequence must contain non-whitespace";
        report.require(!is_blank(sequence.text()), &sequence, "blank-stop-sequence", message);
    }
}

fn tools(report: &mut Report, body: &Node<'_>) {
    let tools = body.get("tools").items();
    let names: Vec<_> = tools.iter().map(|tool| tool.get("name")).collect();
    report.require_unique(&names, "duplicate-tool-name", "tools: Tool names must be unique");
    for tool in &tools {
        if matches!(tool.kind(), "" | "custom") {
            check_fields(report, tool, TOOL, STRICT);
            input_schema(report, &tool.get("input_schema"));
        } else {
            let message = format!("Input tag '{}' does not match any of the expected tags", tool.kind());
            report.require(is_provider_tool(tool.kind()), tool, "unknown-tool-type", message);
        }
    }
}

/// The provider's own tools carry the date of their definition: `bash_20250124`.
fn is_provider_tool(kind: &str) -> bool {
    let dated = |(_, date): (&str, &str)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    kind == "mcp_toolset" || kind.rsplit_once('_').is_some_and(dated)
}

fn input_schema(report: &mut Report, schema: &Node<'_>) {
    let Some(members) = schema.value.as_object() else { return };
    let message = "input_schema.type: Input should be 'object'";
    report.require(schema.kind() == "object", schema, "schema-not-object", message);
    let message = "input_schema does not support oneOf, allOf, or anyOf at the top level";
    let plain = !["oneOf", "allOf", "anyOf"].iter().any(|word| members.contains_key(*word));
    report.require(plain, schema, "schema-combined-at-top", message);
    let properties = schema.get("properties");
    for key in properties.value.as_object().into_iter().flat_map(|properties| properties.keys()) {
        let message = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
        report.require(is_name(&key.replace('.', "_"), 64), &properties, "invalid-property-name", message);
    }
}

fn tool_choice(report: &mut Report, body: &Node<'_>) {
    let choice = body.get("tool_choice");
    if !choice.value.is_object() {
        return;
    }
    check_variant(report, &choice, TOOL_CHOICES, "unknown-tool-choice");
    let message = "tool_choice may only be specified while providing tools";
    report.require(!body.lacks("tools"), &choice, "tool-choice-without-tools", message);
    let known = body.get("tools").items().iter().any(|tool| tool.str("name") == choice.str("name"));
    let message = format!("Tool '{}' not found in provided tools", choice.str("name"));
    let named = choice.kind() == "tool" && !body.lacks("tools");
    report.require(known || !named, &choice, "tool-choice-unknown", message);
}

/// Checks `thinking` and what it forbids beside it.
fn thinking_settings(report: &mut Report, body: &Node<'_>) {
    let thinking = body.get("thinking");
    if !thinking.value.is_object() {
        return;
    }
    check_variant(report, &thinking, THINKING, "unknown-thinking-type");
    if thinking.kind() != "enabled" {
        return;
    }
    let budget = thinking.get("budget_tokens");
    // The interleaved-thinking beta lifts this; nothing in the body shows whether it is on.
    let within = budget.value.as_i64() < body.get("max_tokens").value.as_i64();
    let message = "`max_tokens` must be greater than `thinking.budget_tokens`";
    report.require(within, &budget, "budget-not-below-max-tokens", message);
    let at_least = |key, least| body.get(key).value.as_f64().is_none_or(|number| number >= least);
    let beside = [
        (
            "temperature",
            at_least("temperature", 1.0),
            "`temperature` may only be set to 1 when thinking is enabled",
        ),
        ("top_p", at_least("top_p", 0.95), "`top_p` must be at least 0.95 or unset when thinking is enabled"),
        ("top_k", !body.has("top_k"), "`top_k` must be unset when thinking is enabled"),
        (
            "tool_choice",
            matches!(body.get("tool_choice").kind(), "" | "auto" | "none"),
            "Thinking may not be enabled when tool_choice forces tool use",
        ),
    ];
    for (key, holds, message) in beside {
        report.require(holds, &body.get(key), "forbidden-with-thinking", message);
    }
}

fn messages(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    for message in &messages {
        check_fields(report, message, &[req("role", Text), req("content", TextOrList)], STRICT);
        // Only the newest models take `system` here, and the older ones refuse the whole request.
        let known = matches!(message.str("role"), "user" | "assistant") || !message.has("role");
        let text = format!("Unexpected role \"{}\": use \"user\" or \"assistant\"", message.str("role"));
        report.require(known, &message.get("role"), "role-not-allowed", text);
    }
    // No current document states this one; the error text is on record and no report of its end is known.
    // What stood before a compaction block may be dropped, so its message may come first.
    if let Some(first) = messages.first() {
        let compacted =
            first.get("content").items().first().is_some_and(|block| block.kind() == "compaction");
        let text = "messages: first message must use the \"user\" role";
        let holds = compacted || first.str("role") != "assistant";
        report.require(holds, first, "first-message-not-user", text);
    }
}

fn content(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    for (index, message) in messages.iter().enumerate() {
        let may_be_empty = index + 1 == messages.len() && message.str("role") == "assistant";
        let missing =
            !message.value.get("content").is_some_and(|content| content.is_string() || content.is_array());
        let text = "all messages must have non-empty content except for the optional final assistant message";
        let filled = missing || may_be_empty || !message.lacks("content");
        report.require(filled, &message.get("content"), "empty-content", text);
        check_text(report, &message.get("content"));
        for block in message.get("content").items() {
            check_block(report, &block);
            check_role(report, &block, message.str("role"));
        }
    }
}

/// Checks that text is not empty, nor blank when it is all there is.
fn check_text(report: &mut Report, content: &Node<'_>) {
    let blocks = content.items();
    for block in blocks.iter().filter(|block| block.kind() == "text") {
        let text = block.get("text");
        let message = "text content blocks must be non-empty";
        report.require(text.value != &Value::from(""), &text, "empty-text", message);
    }
    let blank = |block: &Node<'_>| block.kind() == "text" && is_blank(block.str("text"));
    let empty = |block: &Node<'_>| block.str("text").is_empty();
    let all_blank = !blocks.is_empty() && blocks.iter().all(blank) && !blocks.iter().any(empty);
    let blank_text = !content.text().is_empty() && is_blank(content.text());
    let message = "text content blocks must contain non-whitespace text";
    report.require(!all_blank && !blank_text, content, "blank-text", message);
}

fn check_block(report: &mut Report, block: &Node<'_>) {
    check_variant(report, block, BLOCKS, "unknown-block-type");
    match block.kind() {
        "image" => check_source(report, &block.get("source"), IMAGE_SOURCES),
        "document" => check_source(report, &block.get("source"), DOCUMENT_SOURCES),
        "thinking" => {
            let signature = block.get("signature");
            let message = "Invalid `signature` in `thinking` block";
            report.require(
                signature.value != &Value::from(""),
                &signature,
                "thinking-without-signature",
                message,
            );
        }
        "tool_result" => {
            for inner in block.get("content").items() {
                check_result_block(report, &inner);
            }
        }
        _ => {}
    }
}

fn check_result_block(report: &mut Report, inner: &Node<'_>) {
    if RESULT_BLOCKS.contains(&inner.kind()) {
        if inner.kind() != "tool_reference" {
            check_block(report, inner);
        }
    } else {
        let message = format!("Input tag '{}' does not match any of the expected tags", inner.kind());
        report.add(inner, "unknown-result-block-type", message);
    }
}

fn check_source(report: &mut Report, source: &Node<'_>, sources: &[Variant]) {
    if !source.value.is_object() {
        return;
    }
    check_variant(report, source, sources, "unknown-source-type");
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let encoded = source.kind() != "base64" || source.str("data").bytes().all(base64);
    report.require(encoded, &source.get("data"), "invalid-base64", "Invalid base64 data");
    let secure = source.kind() != "url" || source.str("url").starts_with("https://");
    report.require(secure, &source.get("url"), "url-not-https", "Only HTTPS URLs are supported.");
}

fn check_role(report: &mut Report, block: &Node<'_>, role: &str) {
    let misplaced = (role == "user" && ASSISTANT_ONLY.contains(&block.kind()))
        || (role == "assistant" && USER_ONLY.contains(&block.kind()));
    let message = format!("`{}` blocks can not be in `{role}` messages", block.kind());
    report.require(!misplaced, block, "block-in-wrong-role", message);
}

fn tool_ids(report: &mut Report, body: &Node<'_>) {
    let blocks: Vec<_> = turns(body).into_iter().flat_map(|turn| turn.blocks).collect();
    let uses: Vec<_> =
        blocks.iter().filter(|block| block.kind() == "tool_use").map(|b| b.get("id")).collect();
    report.require_unique(&uses, "duplicate-tool-use-id", "`tool_use` ids must be unique");
    let results = blocks.iter().filter(|block| block.kind() == "tool_result").map(|b| b.get("tool_use_id"));
    for id in uses.into_iter().chain(results) {
        let valid = !id.value.is_string() || is_name(id.text(), ANY_LENGTH);
        let message = "String should match pattern '^[a-zA-Z0-9_-]+$'";
        report.require(valid, &id, "invalid-tool-use-id", message);
    }
}

/// Consecutive messages of one role.
struct Turn<'a> {
    role: &'a str,
    /// Their blocks; a string stands for itself.
    blocks: Vec<Node<'a>>,
}

impl<'a> Turn<'a> {
    fn ids(&self, kind: &str, key: &str) -> Vec<Node<'a>> {
        self.blocks.iter().filter(|block| block.kind() == kind).map(|block| block.get(key)).collect()
    }

    fn opens_with_thinking(&self) -> bool {
        let first = self.blocks.first().map(Node::kind);
        matches!(first, Some("thinking" | "redacted_thinking"))
    }
}

fn turns<'a>(body: &Node<'a>) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in body.get("messages").items() {
        let content = message.get("content");
        let blocks = if content.text().is_empty() { content.items() } else { vec![content] };
        match turns.last_mut() {
            Some(turn) if turn.role == message.str("role") => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role: message.str("role"), blocks }),
        }
    }
    turns
}

/// Checks that each `tool_use` has one `tool_result`, at the start of the next turn, and the reverse.
fn pairs(report: &mut Report, body: &Node<'_>) {
    let turns = turns(body);
    for (index, turn) in turns.iter().enumerate() {
        let results =
            turns.get(index + 1).map(|next| next.ids("tool_result", "tool_use_id")).unwrap_or_default();
        for call in turn.ids("tool_use", "id") {
            let message = format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {}",
                call.text()
            );
            let answered = results.iter().any(|result| result.text() == call.text());
            report.require(answered, &call, "tool-use-without-result", message);
        }
    }
    for (index, turn) in turns.iter().enumerate().filter(|(_, turn)| turn.role == "user") {
        let before =
            index.checked_sub(1).map(|before| turns[before].ids("tool_use", "id")).unwrap_or_default();
        check_results(report, turn, &before);
    }
}

fn check_results(report: &mut Report, turn: &Turn<'_>, calls: &[Node<'_>]) {
    let known = |id: &str| calls.iter().any(|call| call.text() == id);
    let results = turn.ids("tool_result", "tool_use_id");
    for result in &results {
        let message = format!("unexpected `tool_use_id` found in `tool_result` blocks: {}", result.text());
        report.require(known(result.text()), result, "tool-result-without-use", message);
    }
    let message = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
    report.require_unique(&results, "duplicate-tool-result", message);
    let rest = turn.blocks.iter().skip_while(|block| block.kind() == "tool_result");
    let late = rest.filter(|block| block.kind() == "tool_result" && known(block.str("tool_use_id")));
    for block in late {
        let message = "`tool_result` blocks must come before any other content of their message";
        report.add(block, "tool-result-not-first", message);
    }
}

fn tools_declared(report: &mut Report, body: &Node<'_>) {
    let used = turns(body)
        .iter()
        .flat_map(|turn| &turn.blocks)
        .any(|b| matches!(b.kind(), "tool_use" | "tool_result"));
    let message = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
    report.require(!used || !body.lacks("tools"), &body.get("tools"), "tools-not-declared", message);
}

/// With thinking enabled, checks the assistant side of an unfinished tool loop, or of a prefill.
///
/// The loop counts as one assistant turn: it is enough that its first or its last message opens with
/// thinking, since without interleaving the model thinks only once.
fn thinking_first(report: &mut Report, body: &Node<'_>) {
    let turns = turns(body);
    let unfinished = turns.last().is_some_and(in_tool_loop);
    if body.get("thinking").kind() != "enabled" || !unfinished {
        return;
    }
    let rounds = turns.iter().rev().take_while(|turn| in_tool_loop(turn));
    let assistant: Vec<_> = rounds.filter(|turn| turn.role == "assistant").collect();
    let (Some(last), Some(first)) = (assistant.first(), assistant.last()) else { return };
    let Some(place) = last.blocks.first() else { return };
    let message = format!("Expected `thinking` or `redacted_thinking`, but found `{}`", place.kind());
    let holds = first.opens_with_thinking() || last.opens_with_thinking();
    report.require(holds, place, "thinking-not-first", message);
}

fn in_tool_loop(turn: &Turn<'_>) -> bool {
    turn.role == "assistant" || turn.blocks.iter().any(|block| block.kind() == "tool_result")
}

fn final_text(report: &mut Report, body: &Node<'_>) {
    let Some(last) = turns(body).pop().filter(|turn| turn.role == "assistant") else { return };
    let Some(block) = last.blocks.last() else { return };
    let text = if block.kind() == "text" { block.str("text") } else { block.text() };
    let message = "final assistant content cannot end with trailing whitespace";
    let trimmed = is_blank(text) || !text.ends_with(char::is_whitespace);
    report.require(trimmed, block, "trailing-whitespace", message);
}

/// Checks the cache marks in the order of the prompt: tools, system, messages.
fn cache_marks(report: &mut Report, body: &Node<'_>) {
    let mut holders = body.get("tools").items();
    holders.extend(body.get("system").items());
    for block in body.get("messages").items().iter().flat_map(|message| message.get("content").items()) {
        holders.extend(block.get("content").items());
        holders.push(block);
    }
    holders.push(body.clone());
    holders.retain(|holder| holder.get("cache_control").value.is_object());
    let message =
        format!("A maximum of 4 blocks with cache_control may be provided. Found {}.", holders.len());
    report.require(holders.len() <= 4, body, "too-many-cache-marks", message);
    let mut short_seen = false;
    for holder in &holders {
        let mark = holder.get("cache_control");
        let fields = [req("type", OneOf(&["ephemeral"])), opt("ttl", OneOf(&["5m", "1h"]))];
        check_fields(report, &mark, &fields, STRICT);
        let long = mark.str("ttl") == "1h";
        let message = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block";
        report.require(!(long && short_seen), &mark, "cache-ttl-order", message);
        short_seen |= !long;
    }
}
