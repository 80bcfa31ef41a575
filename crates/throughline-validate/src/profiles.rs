//! Chat Completions as others than OpenAI and Mistral take it.
//!
//! Written from what the providers document and from the error texts that are reported in public: routers demand what the strictest
//! of those behind them does; DeepSeek and Kimi want reasoning back beside tool calls; Gemini 3 wants a signature
//! with each step's first call; servers of one's own apply a template, which wants roles in turn and plain text.

use super::chat::{
    OPENAI_PARTS, OPENAI_ROLES, Profile, Role, SAID, STRICT_REQUEST, STRICT_ROLES, TOLD, USER_PARTS,
    json_arguments, strict_order, tool_choice_needs_tools,
};
use super::shape::Kind::{Filled, FilledList, Text, TextOrObject, Whole};
use super::shape::{Extras, Field, Node, Report, check_stream_options, maybe, req};

pub(super) const ROUTER: Profile = Profile {
    request: OPEN_REQUEST,
    extras: Extras::Ignored,
    roles: OPENAI_ROLES,
    message_extras: Extras::Ignored,
    parts: OPENAI_PARTS,
    arguments: req("arguments", Text),
    is_call_id: is_word_of_64,
    call_id_says: "String should match pattern '^[a-zA-Z0-9_-]+$'",
    rules: &[tool_choice_needs_tools, json_arguments, only_functions, unique_ids, filled],
};

pub(super) const DEEPSEEK: Profile = Profile {
    roles: PLAIN_ROLES,
    rules: &[tool_choice_needs_tools, only_functions, reasoning_with_calls],
    ..ROUTER
};

pub(super) const KIMI: Profile =
    Profile { rules: &[tool_choice_needs_tools, only_functions, reasoning_with_calls, filled], ..DEEPSEEK };

pub(super) const GLM: Profile =
    Profile { rules: &[tool_choice_needs_tools, only_functions, filled, user_or_tool_last], ..DEEPSEEK };

pub(super) const GEMINI: Profile = Profile {
    rules: &[tool_choice_needs_tools, only_functions, json_arguments, signed_calls, user_or_tool_last],
    ..DEEPSEEK
};

pub(super) const LOCAL: Profile = Profile {
    request: STRICT_REQUEST,
    roles: STRICT_ROLES,
    rules: &[
        check_stream_options,
        tool_choice_needs_tools,
        strict_order,
        json_arguments,
        only_functions,
        filled,
        user_or_tool_last,
    ],
    ..ROUTER
};

const OPEN_REQUEST: &[Field] = &[
    req("model", Filled(usize::MAX)),
    req("messages", FilledList),
    maybe("tools", FilledList),
    maybe("tool_choice", TextOrObject),
    maybe("max_tokens", Whole(1)),
];

/// No developer, and results in plain text.
const PLAIN_ROLES: &[Role] = &[
    Role { name: "system", fields: TOLD, parts: &["text"] },
    Role { name: "user", fields: TOLD, parts: USER_PARTS },
    Role { name: "assistant", fields: SAID, parts: &["text", "refusal"] },
    Role { name: "tool", fields: &[req("content", Text), req("tool_call_id", Text)], parts: &[] },
];

fn is_word_of_64(id: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&id.len()) && id.bytes().all(is_word)
}

fn only_functions(report: &mut Report, body: &Node<'_>) {
    let calls = body.get("messages").items();
    let calls = calls.iter().flat_map(|message| message.get("tool_calls").items());
    for each in body.get("tools").items().into_iter().chain(calls) {
        let holds = matches!(each.kind(), "function" | "");
        report.require(holds, &each, "unknown-tool-type", "only tools of type 'function' are supported");
    }
}

fn unique_ids(report: &mut Report, body: &Node<'_>) {
    let messages = body.get("messages").items();
    let ids: Vec<_> = messages
        .iter()
        .flat_map(|message| message.get("tool_calls").items())
        .map(|call| call.get("id"))
        .collect();
    report.require_unique(&ids, "duplicate-tool-call-id", "`tool_use` ids must be unique");
}

fn reasoning_with_calls(report: &mut Report, body: &Node<'_>) {
    for message in body.get("messages").items().iter().filter(|message| message.has("tool_calls")) {
        let holds = message.get("reasoning_content").value.is_string();
        let text = "The `reasoning_content` in the thinking mode must be passed back to the API.";
        report.require(holds, message, "reasoning-missing", text);
    }
}

fn signed_calls(report: &mut Report, body: &Node<'_>) {
    for message in body.get("messages").items() {
        let Some(call) = message.get("tool_calls").items().into_iter().next() else { continue };
        let signature = call.get("extra_content").get("google").get("thought_signature");
        let text = "Function call is missing a thought_signature in functionCall parts.";
        report.require(!signature.text().is_empty(), &call, "signature-missing", text);
    }
}

fn filled(report: &mut Report, body: &Node<'_>) {
    for message in body.get("messages").items() {
        let is_told = matches!(message.str("role"), "system" | "user");
        let content = message.get("content");
        let holds = !is_told || !content.value.is_string() || !content.text().trim().is_empty();
        report.require(holds, &message, "blank-content", "message content must not be empty");
    }
}

fn user_or_tool_last(report: &mut Report, body: &Node<'_>) {
    if let Some(last) = body.get("messages").items().last() {
        let text = "the last message must be the user's or a tool's";
        report.require(last.str("role") != "assistant", last, "last-message-from-assistant", text);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Provider, validate};
    use serde_json::{Value, json};

    fn rules_broken(provider: Provider, call: &Value, result: &Value) -> Vec<&'static str> {
        let mut said = json!({"role": "assistant", "content": "", "tool_calls": [call]});
        if provider == Provider::DeepSeek && call.get("thinks").is_some() {
            said["reasoning_content"] = json!("");
        }
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}, said,
            {"role": "tool", "tool_call_id": call["id"], "content": result}]});
        validate(provider, &body).into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn each_profile_refuses_what_its_provider_does() {
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let text = json!("done");
        assert_eq!(rules_broken(Provider::OpenRouter, &call("c"), &text), Vec::<&str>::new());
        assert!(rules_broken(Provider::OpenRouter, &call("a:b"), &text).contains(&"invalid-tool-call-id"));
        assert_eq!(rules_broken(Provider::DeepSeek, &call("c"), &text), ["reasoning-missing"]);
        let mut thinks = call("c");
        thinks["thinks"] = json!(true);
        assert_eq!(rules_broken(Provider::DeepSeek, &thinks, &text), Vec::<&str>::new());
        assert!(
            !rules_broken(Provider::DeepSeek, &thinks, &json!([{"type": "text", "text": "a"}])).is_empty()
        );
        assert_eq!(rules_broken(Provider::Gemini, &call("c"), &text), ["signature-missing"]);
        let custom = json!({"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}});
        assert!(rules_broken(Provider::Ollama, &custom, &text).contains(&"unknown-tool-type"));
    }

    #[test]
    fn names_lead_to_providers_and_back() {
        for (provider, name) in Provider::ALL {
            assert_eq!(Provider::from_name(name), Some(provider));
        }
        assert_eq!(Provider::from_name("nobody"), None);
    }
}
