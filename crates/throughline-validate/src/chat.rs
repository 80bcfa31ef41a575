//! Chat Completions, in three profiles: OpenAI's own, Mistral's, and a strict local server's.
//!
//! OpenAI's tables follow its published request types, Mistral's those of its client and the order of
//! roles in its open validator. OpenAI takes 40 characters for a tool call id; it was seen to take more of some
//! models, and to refuse it of others. OpenAI drops fields it does not know inside a message (`reasoning_content` is
//! not on record as refused), so only Mistral's profile refuses them.

#[cfg(test)]
mod tests;

use super::shape::Kind::{
    Any, Filled, FilledList, Flag, List, Name, Number, Object, OneOf, Text, TextOrFilledList, TextOrList,
    TextOrObject, Whole,
};
use super::shape::{
    Extras, Field, Node, Report, Rule, Variant, check_fields, check_metadata, check_stream_options,
    check_variant, maybe, opt, req,
};
use serde_json::Value;

/// What one server makes of the dialect.
pub(super) struct Profile {
    pub(super) request: &'static [Field],
    pub(super) extras: Extras,
    pub(super) roles: &'static [Role],
    pub(super) message_extras: Extras,
    pub(super) parts: &'static [Variant],
    pub(super) arguments: Field,
    pub(super) is_call_id: fn(&str) -> bool,
    pub(super) call_id_says: &'static str,
    pub(super) rules: &'static [Rule],
}

/// What a message of one role may hold: its fields, and the kinds of its content parts.
pub(super) struct Role {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) parts: &'static [&'static str],
}

pub(super) const OPENAI: Profile = Profile {
    request: OPENAI_REQUEST,
    extras: Extras::Refused("Unrecognized request argument supplied"),
    roles: OPENAI_ROLES,
    message_extras: Extras::Ignored,
    parts: OPENAI_PARTS,
    arguments: req("arguments", Text),
    is_call_id: |id| (1..=40).contains(&id.chars().count()),
    call_id_says: "Expected a string with minimum length 1 and maximum length 40",
    rules: OPENAI_RULES,
};

pub(super) const MISTRAL: Profile = Profile {
    request: MISTRAL_REQUEST,
    extras: MISTRAL_STRICT,
    roles: MISTRAL_ROLES,
    message_extras: MISTRAL_STRICT,
    parts: MISTRAL_PARTS,
    arguments: req("arguments", TextOrObject),
    is_call_id: |id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    call_id_says: "Tool call id must be a-z, A-Z, 0-9, with a length of 9.",
    rules: &[mistral_order, mistral_last, mistral_filled],
};

pub(super) const STRICT: Profile = Profile {
    request: STRICT_REQUEST,
    extras: Extras::Ignored,
    roles: STRICT_ROLES,
    message_extras: Extras::Ignored,
    parts: OPENAI_PARTS,
    arguments: req("arguments", Text),
    is_call_id: |id| (1..=40).contains(&id.chars().count()),
    call_id_says: "Expected a string with minimum length 1 and maximum length 40",
    rules: &[check_stream_options, tool_choice_needs_tools, strict_order, json_arguments],
};

const OPENAI_RULES: &[Rule] = &[
    check_metadata,
    check_stream_options,
    tool_choice_needs_tools,
    tool_choice,
    parallel_needs_tools,
    response_format,
    one_token_limit,
    logprobs,
    stop,
    few_tools,
    names,
];

const OPENAI_REQUEST: &[Field] = &[
    req("model", Filled(usize::MAX)),
    req("messages", FilledList),
    opt("stream", Any),
    maybe("stream_options", Object),
    maybe("temperature", Number(0.0, 2.0)),
    maybe("top_p", Number(0.0, 1.0)),
    maybe("n", Whole(1)),
    maybe("max_tokens", Whole(1)),
    maybe("max_completion_tokens", Whole(1)),
    maybe("presence_penalty", Number(-2.0, 2.0)),
    maybe("frequency_penalty", Number(-2.0, 2.0)),
    maybe("logit_bias", Object),
    maybe("logprobs", Flag),
    maybe("top_logprobs", Number(0.0, 20.0)),
    maybe("stop", TextOrList),
    maybe("seed", Any),
    opt("user", Text),
    maybe("store", Flag),
    maybe("metadata", Object),
    maybe("service_tier", Text),
    maybe("safety_identifier", Filled(64)),
    maybe("prompt_cache_key", Text),
    opt("prompt_cache_options", Object),
    maybe("prompt_cache_retention", Text),
    maybe("reasoning_effort", Text),
    maybe("verbosity", OneOf(&["low", "medium", "high"])),
    opt("tools", FilledList),
    opt("tool_choice", TextOrObject),
    opt("parallel_tool_calls", Flag),
    opt("functions", FilledList),
    opt("function_call", TextOrObject),
    opt("response_format", Object),
    maybe("modalities", List),
    maybe("audio", Object),
    maybe("moderation", Object),
    maybe("prediction", Object),
    opt("web_search_options", Object),
];

const MISTRAL_STRICT: Extras = Extras::Refused("Extra inputs are not permitted");
const MISTRAL_REQUEST: &[Field] = &[
    req("model", Filled(usize::MAX)),
    req("messages", FilledList),
    opt("stream", Flag),
    maybe("temperature", Number(0.0, 1.5)),
    maybe("top_p", Number(0.0, 1.0)),
    maybe("n", Whole(1)),
    maybe("max_tokens", Whole(0)),
    maybe("presence_penalty", Number(-2.0, 2.0)),
    maybe("frequency_penalty", Number(-2.0, 2.0)),
    maybe("stop", TextOrList),
    maybe("random_seed", Whole(0)),
    maybe("metadata", Object),
    maybe("tools", List),
    opt("tool_choice", TextOrObject),
    opt("parallel_tool_calls", Flag),
    opt("response_format", Object),
    opt("prediction", Object),
    maybe("reasoning_effort", Text),
    maybe("prompt_mode", Text),
    maybe("prompt_cache_key", Text),
    maybe("guardrails", List),
    opt("safe_prompt", Flag),
];

pub(super) const STRICT_REQUEST: &[Field] = &[
    req("model", Filled(usize::MAX)),
    req("messages", FilledList),
    maybe("tools", FilledList),
    maybe("tool_choice", TextOrObject),
    maybe("max_tokens", Whole(1)),
];

const NAME: Field = opt("name", Text);
pub(super) const TOLD: &[Field] = &[req("role", Text), req("content", TextOrFilledList), NAME];
const ANSWER: &[Field] = &[req("role", Text), req("content", TextOrFilledList), req("tool_call_id", Text)];
const FUNCTION_ANSWER: &[Field] = &[req("role", Text), req("name", Name(64)), maybe("content", Text)];
pub(super) const SAID: &[Field] = &[
    req("role", Text),
    maybe("content", TextOrFilledList),
    opt("tool_calls", FilledList),
    maybe("function_call", Object),
    maybe("refusal", Text),
    maybe("audio", Object),
    NAME,
];
pub(super) const USER_PARTS: &[&str] = &["text", "image_url", "input_audio", "file"];

pub(super) const OPENAI_ROLES: &[Role] = &[
    Role { name: "system", fields: TOLD, parts: &["text"] },
    Role { name: "developer", fields: TOLD, parts: &["text"] },
    Role { name: "user", fields: TOLD, parts: USER_PARTS },
    Role { name: "assistant", fields: SAID, parts: &["text", "refusal"] },
    Role { name: "tool", fields: ANSWER, parts: &["text"] },
    Role { name: "function", fields: FUNCTION_ANSWER, parts: &[] },
];

pub(super) const STRICT_ROLES: &[Role] = &[
    Role { name: "system", fields: TOLD, parts: &["text"] },
    Role { name: "user", fields: TOLD, parts: USER_PARTS },
    Role { name: "assistant", fields: SAID, parts: &["text"] },
    Role { name: "tool", fields: &[req("content", Text), req("tool_call_id", Text)], parts: &[] },
];

// Mistral refuses even `name` on a user message; its tool messages may carry the name of the tool.
const MISTRAL_TOLD: &[Field] = &[req("role", Text), req("content", TextOrList)];
const MISTRAL_SAID: &[Field] =
    &[req("role", Text), maybe("content", TextOrList), maybe("tool_calls", List), opt("prefix", Flag)];
const MISTRAL_ANSWER: &[Field] =
    &[req("role", Text), req("content", TextOrList), req("tool_call_id", Text), maybe("name", Name(64))];
const MISTRAL_USER_PARTS: &[&str] =
    &["text", "image_url", "document_url", "reference", "file", "input_audio"];

const MISTRAL_ROLES: &[Role] = &[
    Role { name: "system", fields: MISTRAL_TOLD, parts: &["text"] },
    Role { name: "user", fields: MISTRAL_TOLD, parts: MISTRAL_USER_PARTS },
    Role { name: "assistant", fields: MISTRAL_SAID, parts: &["text", "thinking", "reference"] },
    Role { name: "tool", fields: MISTRAL_ANSWER, parts: MISTRAL_USER_PARTS },
];

pub(super) const OPENAI_PARTS: &[Variant] = &[
    part("text", &[req("text", Text)]),
    part("refusal", &[req("refusal", Text)]),
    part("image_url", &[req("image_url", Object)]),
    part("input_audio", &[req("input_audio", Object)]),
    part("file", &[req("file", Object)]),
];
const MISTRAL_PARTS: &[Variant] = &[
    part("text", &[req("text", Text)]),
    part("image_url", &[req("image_url", TextOrObject)]),
    part("document_url", &[req("document_url", Text)]),
    part("reference", &[req("reference_ids", List)]),
    part("thinking", &[req("thinking", List)]),
    part("input_audio", &[req("input_audio", TextOrObject)]),
    part("file", &[req("file_id", Text)]),
];

const fn part(kind: &'static str, fields: &'static [Field]) -> Variant {
    Variant { kind, fields, extras: Extras::Ignored }
}

pub(super) fn check(report: &mut Report, body: &Node<'_>, profile: &Profile) {
    check_fields(report, body, profile.request, profile.extras);
    for message in body.get("messages").items() {
        check_message(report, &message, profile);
    }
    pairs(report, &body.get("messages").items());
    tools(report, body);
    for rule in profile.rules {
        rule(report, body);
    }
}

fn check_message(report: &mut Report, message: &Node<'_>, profile: &Profile) {
    let Some(role) = profile.roles.iter().find(|role| role.name == message.str("role")) else {
        let text = format!("Invalid value: '{}' is not a known role", message.str("role"));
        return report.add(&message.get("role"), "role-not-allowed", text);
    };
    check_fields(report, message, role.fields, profile.message_extras);
    for part in message.get("content").items() {
        check_part(report, &part, role, profile);
    }
    let said =
        ["content", "tool_calls", "function_call", "refusal", "audio"].iter().any(|key| message.has(key));
    let text = "Invalid value for 'content': expected a string, got null.";
    report.require(said || role.name != "assistant", message, "assistant-without-content", text);
    for call in message.get("tool_calls").items() {
        check_call(report, &call, profile);
    }
    check_call_id(report, &message.get("tool_call_id"), profile);
    let ids: Vec<_> = message.get("tool_calls").items().iter().map(|call| call.get("id")).collect();
    report.require_unique(&ids, "duplicate-tool-call-id", "Duplicate tool call id in assistant message");
}

fn check_part(report: &mut Report, part: &Node<'_>, role: &Role, profile: &Profile) {
    if !role.parts.contains(&part.kind()) {
        let text = format!("'{}' parts are not allowed for messages with role '{}'", part.kind(), role.name);
        return report.add(part, "part-not-allowed", text);
    }
    check_variant(report, part, profile.parts, "part-not-allowed");
    let inner = part.get(part.kind());
    match part.kind() {
        "image_url" if inner.value.is_object() => check_image_url(report, &inner.get("url")),
        "image_url" if inner.value.is_string() => check_image_url(report, &inner),
        "input_audio" if inner.value.is_object() => {
            let fields = [req("data", Filled(usize::MAX)), req("format", OneOf(&["wav", "mp3"]))];
            check_fields(report, &inner, &fields, Extras::Ignored);
        }
        "file" if inner.value.is_object() => {
            let text = "a file part needs `file_data` or `file_id`";
            let given = inner.has("file_data") || inner.has("file_id");
            report.require(given, &inner, "file-without-data", text);
        }
        _ => {}
    }
}

fn check_image_url(report: &mut Report, url: &Node<'_>) {
    let known = ["http://", "https://", "data:image/"].iter().any(|scheme| url.text().starts_with(scheme));
    report.require(known, url, "invalid-image-url", "Expected a valid URL or an image as a data URL");
}

fn check_call(report: &mut Report, call: &Node<'_>, profile: &Profile) {
    check_fields(report, call, &[req("id", Text)], Extras::Ignored);
    check_call_id(report, &call.get("id"), profile);
    if call.kind() == "custom" {
        let fields = [req("name", Name(64)), req("input", Text)];
        check_fields(report, &call.get("custom"), &fields, Extras::Ignored);
    } else {
        let fields = [req("name", Name(64)), profile.arguments];
        check_fields(report, &call.get("function"), &fields, Extras::Ignored);
    }
}

fn check_call_id(report: &mut Report, id: &Node<'_>, profile: &Profile) {
    let valid = !id.value.is_string() || (profile.is_call_id)(id.text());
    report.require(valid, id, "invalid-tool-call-id", format!("'{}': {}", id.text(), profile.call_id_says));
}

/// Checks that each call is answered once, before any message that is not an answer, and the reverse.
fn pairs(report: &mut Report, messages: &[Node<'_>]) {
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        let answers = after.iter().take_while(|next| next.str("role") == "tool").count();
        let ids: Vec<_> = after[..answers].iter().map(|answer| answer.get("tool_call_id")).collect();
        check_answers(report, &message.get("tool_calls").items(), &ids);
        rest = &after[answers..];
    }
    if let Some(first) = messages.first().filter(|message| message.str("role") == "tool") {
        check_answers(report, &[], &[first.get("tool_call_id")]);
    }
}

fn check_answers(report: &mut Report, calls: &[Node<'_>], answers: &[Node<'_>]) {
    for call in calls {
        let text = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
             'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            call.str("id")
        );
        let answered = answers.iter().any(|answer| answer.text() == call.str("id"));
        report.require(answered, call, "tool-call-without-answer", text);
    }
    for answer in answers {
        let text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
        let known = calls.iter().any(|call| call.str("id") == answer.text());
        report.require(known, answer, "tool-answer-without-call", text);
    }
    report.require_unique(answers, "duplicate-tool-answer", "Duplicate value for 'tool_call_id'");
}

fn tools(report: &mut Report, body: &Node<'_>) {
    for tool in body.get("tools").items() {
        check_fields(report, &tool, &[req("type", OneOf(&["function", "custom"]))], Extras::Ignored);
        if matches!(tool.kind(), "function" | "custom") {
            let fields = [req("name", Name(64)), maybe("parameters", Object), maybe("description", Text)];
            check_fields(report, &tool.get(tool.kind()), &fields, Extras::Ignored);
        }
    }
}

pub(super) fn tool_choice_needs_tools(report: &mut Report, body: &Node<'_>) {
    let text = "'tool_choice' is only allowed when 'tools' are specified.";
    let holds = !body.has("tool_choice") || body.has("tools");
    report.require(holds, &body.get("tool_choice"), "tool-choice-without-tools", text);
}

fn tool_choice(report: &mut Report, body: &Node<'_>) {
    let choice = body.get("tool_choice");
    let named = choice.get(choice.kind()).str("name");
    let known = match (choice.text(), choice.kind()) {
        ("none" | "auto" | "required", _) => true,
        ("", "function" | "custom") => !named.is_empty(),
        ("", "allowed_tools") => choice.has("allowed_tools"),
        _ => !choice.value.is_string() && !choice.value.is_object(),
    };
    report.require(known, &choice, "unknown-tool-choice", "'tool_choice' is invalid.");
    let tools = body.get("tools").items();
    let found = named.is_empty() || tools.iter().any(|tool| tool.get(tool.kind()).str("name") == named);
    let text = format!("Tool choice '{named}' not found in 'tools' parameter.");
    report.require(found || tools.is_empty(), &choice, "tool-choice-unknown", text);
}

fn parallel_needs_tools(report: &mut Report, body: &Node<'_>) {
    let text = "'parallel_tool_calls' is only allowed when 'tools' are specified.";
    let holds = !body.has("parallel_tool_calls") || body.has("tools");
    report.require(holds, &body.get("parallel_tool_calls"), "parallel-calls-without-tools", text);
}

fn response_format(report: &mut Report, body: &Node<'_>) {
    let format = body.get("response_format");
    match format.kind() {
        "text" | "json_object" => {}
        "json_schema" => {
            let fields = [req("name", Name(64)), opt("schema", Object), maybe("strict", Flag)];
            check_fields(report, &format.get("json_schema"), &fields, Extras::Ignored);
        }
        kind => {
            let text =
                format!("Invalid value: '{kind}'. Supported values are: text, json_object, json_schema");
            report.require(!format.value.is_object(), &format, "unknown-response-format", text);
        }
    }
}

fn one_token_limit(report: &mut Report, body: &Node<'_>) {
    let text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
    let both = body.has("max_tokens") && body.has("max_completion_tokens");
    report.require(!both, &body.get("max_tokens"), "two-token-limits", text);
}

fn logprobs(report: &mut Report, body: &Node<'_>) {
    let asked = body.get("logprobs").value == &Value::Bool(true);
    let top = body.get("top_logprobs");
    let holds = asked || !body.has("top_logprobs");
    report.require(
        holds,
        &top,
        "top-logprobs-without-logprobs",
        "'logprobs' must be true for 'top_logprobs'.",
    );
}

fn stop(report: &mut Report, body: &Node<'_>) {
    let text = "array too long. Expected an array with maximum length 4";
    report.require(body.get("stop").items().len() <= 4, &body.get("stop"), "too-many-stops", text);
}

fn few_tools(report: &mut Report, body: &Node<'_>) {
    let text = "array too long. Expected an array with maximum length 128";
    report.require(body.get("tools").items().len() <= 128, &body.get("tools"), "too-many-tools", text);
}

fn names(report: &mut Report, body: &Node<'_>) {
    for message in body.get("messages").items().iter().filter(|message| message.get("name").value.is_string())
    {
        let name = message.get("name");
        let plain = |c: char| !c.is_whitespace() && !matches!(c, '<' | '|' | '\\' | '/' | '>');
        let valid = (1..=64).contains(&name.text().chars().count()) && name.text().chars().all(plain);
        let text = "Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.";
        report.require(valid, &name, "invalid-message-name", text);
    }
}

/// Checks Mistral's table of which role may follow which.
///
/// The open validator has come to allow `user` after `tool`; the service still answers 400.
fn mistral_order(report: &mut Report, body: &Node<'_>) {
    for pair in body.get("messages").items().windows(2) {
        let (before, role) = (pair[0].str("role"), pair[1].str("role"));
        let allowed: &[&str] = match before {
            "system" => &["system", "user", "assistant"],
            "user" => &["assistant", "system", "user"],
            "assistant" => &["assistant", "user", "tool"],
            "tool" => &["assistant", "tool"],
            _ => continue,
        };
        let text = format!("Unexpected role '{role}' after role '{before}'");
        report.require(allowed.contains(&role), &pair[1], "role-out-of-order", text);
    }
}

fn mistral_last(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    for (index, message) in messages.iter().enumerate() {
        let prefix = message.get("prefix").value == &Value::Bool(true);
        let last = index + 1 == messages.len();
        let text = "Assistant message with prefix True must be last message";
        report.require(last || !prefix, message, "prefix-not-last", text);
        let text =
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
        let holds = !last || prefix || message.str("role") != "assistant";
        report.require(holds, message, "last-message-from-assistant", text);
    }
}

fn mistral_filled(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    for message in
        messages.iter().filter(|message| message.value.get("content").is_some_and(Value::is_string))
    {
        let filled = !message.lacks("content") || !message.lacks("tool_calls");
        let text = "Assistant message must have either content or tool_calls, but not none.";
        report.require(
            filled || message.str("role") != "assistant",
            message,
            "assistant-without-content",
            text,
        );
    }
}

/// Checks the order that common chat templates demand: one system message, then user and assistant in turn.
pub(super) fn strict_order(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    let skip = usize::from(messages.first().is_some_and(|message| message.str("role") == "system"));
    let mut before = "system";
    let known = |message: &&Node<'_>| STRICT_ROLES.iter().any(|role| role.name == message.str("role"));
    for message in messages[skip..].iter().filter(known) {
        let role = message.str("role");
        let allowed: &[&str] = match before {
            "user" => &["assistant"],
            "assistant" => &["user", "tool"],
            "tool" => &["tool", "assistant", "user"],
            _ => &["user"],
        };
        let text = "After the optional system message, conversation roles must alternate user and assistant";
        report.require(allowed.contains(&role), message, "role-out-of-order", text);
        before = role;
    }
}

/// Templates print arguments as an object, so a server that applies one parses them first.
pub(super) fn json_arguments(report: &mut Report, body: &Node<'_>) {
    for call in body.get("messages").items().iter().flat_map(|message| message.get("tool_calls").items()) {
        let arguments = call.get("function").get("arguments");
        let object = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
        let holds = !arguments.value.is_string() || object(arguments.text());
        report.require(holds, &arguments, "arguments-not-an-object", "arguments should be a JSON object");
    }
}
