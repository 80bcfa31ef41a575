//! One test for each rule of the Chat Completions profiles.

#![expect(clippy::needless_pass_by_value, reason = "tests read better with JSON passed as written")]

use crate::Provider::{self, Mistral, OpenAiChat, StrictChat};
use crate::testing::{assert_clean, assert_rule, patched};
use serde_json::{Value, json};

const ALL: [Provider; 3] = [OpenAiChat, Mistral, StrictChat];

/// A plain request with `patch` applied.
fn request(patch: Value) -> Value {
    patched(json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}), patch)
}

/// A request with these messages after a first word from the user.
fn talk(messages: Value) -> Value {
    let mut all = vec![json!({"role": "user", "content": "hi"})];
    all.extend(messages.as_array().unwrap().clone());
    request(json!({"messages": all}))
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

/// An assistant message that calls `read` once for each id.
fn calls(ids: &[&str]) -> Value {
    calls_with(ids, "{}")
}

fn calls_with(ids: &[&str], arguments: &str) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn answer(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

const A: &str = "aaaaaaaa1";
const B: &str = "bbbbbbbb2";

#[track_caller]
fn rule(name: &str, bad: &Value, good: &Value) {
    assert_rule(OpenAiChat, name, bad, good);
}

#[track_caller]
fn rule_of_all(name: &str, bad: &Value, good: &Value) {
    for provider in ALL {
        assert_rule(provider, name, bad, good);
    }
}

#[test]
fn a_whole_tool_loop_is_clean() {
    let body = talk(
        json!([calls(&[A, B]), answer(B), answer(A), {"role": "assistant", "content": "so"}, user(json!("ok"))]),
    );
    let tools = json!([{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]);
    let body = patched(body, json!({"tools": tools, "tool_choice": "auto"}));
    for provider in ALL {
        assert_clean(provider, &body);
    }
}

#[test]
fn required_fields() {
    rule_of_all("missing-field", &request(json!({"model": null})), &request(json!({})));
    rule_of_all("missing-field", &request(json!({"messages": null})), &request(json!({})));
    rule_of_all("empty-list", &request(json!({"messages": []})), &request(json!({})));
    let silent = request(json!({"messages": [{"role": "user"}]}));
    rule_of_all("missing-field", &silent, &request(json!({})));
}

#[test]
fn unknown_fields_at_the_top() {
    rule("unknown-field", &request(json!({"thinking": {}})), &request(json!({"reasoning_effort": "low"})));
    let limit = |key: &str| request(json!({key: 100}));
    assert_rule(Mistral, "unknown-field", &limit("max_completion_tokens"), &limit("max_tokens"));
    assert_clean(StrictChat, &request(json!({"chat_template_kwargs": {}})));
}

#[test]
fn unknown_fields_in_a_message() {
    let said = |key: &str| talk(json!([{"role": "assistant", "content": "a", key: "b"}, user(json!("c"))]));
    let plain = talk(json!([{"role": "assistant", "content": "a"}, user(json!("c"))]));
    assert_rule(Mistral, "unknown-field", &said("reasoning_content"), &plain);
    assert_clean(OpenAiChat, &said("reasoning_content"));
}

#[test]
fn roles() {
    let told = |role: &str| request(json!({"messages": [{"role": role, "content": "a"}, user(json!("b"))]}));
    rule("role-not-allowed", &told("root"), &told("developer"));
    for provider in [Mistral, StrictChat] {
        assert_rule(provider, "role-not-allowed", &told("developer"), &told("system"));
    }
}

#[test]
fn an_assistant_says_something() {
    let body = |said: Value| talk(json!([said, user(json!("b"))]));
    let good = body(json!({"role": "assistant", "content": "a"}));
    rule_of_all("assistant-without-content", &body(json!({"role": "assistant", "content": null})), &good);
    let empty = body(json!({"role": "assistant", "content": ""}));
    assert_rule(Mistral, "assistant-without-content", &empty, &good);
    assert_clean(OpenAiChat, &empty);
}

#[test]
fn lists_are_filled() {
    rule("empty-list", &talk(json!([user(json!([]))])), &talk(json!([user(json!("a"))])));
    let said = |calls: Value| {
        talk(json!([patched(json!({"role": "assistant", "content": "a"}), json!({"tool_calls": calls}))]))
    };
    rule("empty-list", &said(json!([])), &said(Value::Null));
    rule("empty-list", &request(json!({"tools": []})), &request(json!({})));
}

#[test]
fn null_tool_calls_are_refused() {
    let said = json!({"role": "assistant", "content": "a", "tool_calls": null});
    rule("wrong-type", &talk(json!([said])), &talk(json!([{"role": "assistant", "content": "a"}])));
}

#[test]
fn images_come_from_the_user() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.example/b.png"}});
    let answer_with = |part: &Value| json!({"role": "tool", "tool_call_id": A, "content": [part]});
    let body = |part: &Value| talk(json!([calls(&[A]), answer_with(part)]));
    let text = json!({"type": "text", "text": "a"});
    rule("part-not-allowed", &body(&image), &body(&text));
    let said = talk(json!([{"role": "assistant", "content": [image]}, user(json!("b"))]));
    rule_of_all("part-not-allowed", &said, &request(json!({"messages": [user(json!([image]))]})));
}

#[test]
fn parts_have_their_data() {
    let body = |part: Value| request(json!({"messages": [user(json!([part]))]}));
    let image = |url: &str| body(json!({"type": "image_url", "image_url": {"url": url}}));
    rule("invalid-image-url", &image("iVBORw0="), &image("data:image/png;base64,iVBORw0="));
    let file = |key: &str| body(json!({"type": "file", "file": {key: "x"}}));
    rule("file-without-data", &file("filename"), &file("file_id"));
    let audio =
        |format: &str| body(json!({"type": "input_audio", "input_audio": {"data": "x", "format": format}}));
    rule("value-not-allowed", &audio("ogg"), &audio("wav"));
    rule(
        "part-not-allowed",
        &body(json!({"type": "input_text", "text": "a"})),
        &body(json!({"type": "text", "text": "a"})),
    );
}

#[test]
fn a_strict_server_takes_plain_text_from_tools() {
    let body =
        |content: Value| talk(json!([calls(&[A]), {"role": "tool", "tool_call_id": A, "content": content}]));
    let parts = body(json!([{"type": "text", "text": "a"}]));
    let found = crate::validate(StrictChat, &parts);
    assert!(found.iter().any(|violation| violation.rule == "wrong-type"), "{found:#?}");
    assert_clean(StrictChat, &body(json!("a")));
    assert_clean(OpenAiChat, &parts);
}

#[test]
fn call_ids_have_a_form_for_each_profile() {
    let body = |id: &str| talk(json!([calls(&[id]), answer(id)]));
    rule("invalid-tool-call-id", &body(&"a".repeat(41)), &body(&"a".repeat(40)));
    assert_rule(StrictChat, "invalid-tool-call-id", &body(&"a".repeat(41)), &body(&"a".repeat(40)));
    for bad in ["call_1234", "aaaaaaaa", "aaaaaaaaaa"] {
        assert_rule(Mistral, "invalid-tool-call-id", &body(bad), &body(A));
    }
}

#[test]
fn call_ids_of_one_message_differ() {
    let good = talk(json!([calls(&[A, B]), answer(A), answer(B)]));
    rule_of_all("duplicate-tool-call-id", &talk(json!([calls(&[A, A]), answer(A)])), &good);
}

#[test]
fn an_id_may_return_in_a_later_turn() {
    assert_clean(OpenAiChat, &talk(json!([calls(&[A]), answer(A), calls(&[A]), answer(A)])));
}

#[test]
fn each_call_is_answered_at_once() {
    let good = talk(json!([calls(&[A, B]), answer(A), answer(B)]));
    rule_of_all("tool-call-without-answer", &talk(json!([calls(&[A, B]), answer(A)])), &good);
    let late = talk(json!([calls(&[A]), user(json!("wait")), {"role": "assistant", "content": "b"}]));
    rule("tool-call-without-answer", &late, &good);
}

#[test]
fn each_answer_has_its_call() {
    let good = talk(json!([calls(&[A]), answer(A)]));
    rule_of_all("tool-answer-without-call", &talk(json!([calls(&[A]), answer(A), answer(B)])), &good);
    rule("tool-answer-without-call", &talk(json!([answer(A)])), &good);
    rule("tool-answer-without-call", &request(json!({"messages": [answer(A)]})), &good);
}

#[test]
fn one_answer_for_one_call() {
    let good = talk(json!([calls(&[A]), answer(A)]));
    rule_of_all("duplicate-tool-answer", &talk(json!([calls(&[A]), answer(A), answer(A)])), &good);
}

#[test]
fn names_of_functions() {
    let body = |name: &str| request(json!({"tools": [{"type": "function", "function": {"name": name}}]}));
    rule_of_all("invalid-name", &body("fs.read"), &body("fs_read"));
    rule_of_all("invalid-name", &body(&"a".repeat(65)), &body(&"a".repeat(64)));
    let call = |name: &str| {
        let call = json!({"id": A, "type": "function", "function": {"name": name, "arguments": "{}"}});
        talk(json!([{"role": "assistant", "tool_calls": [call]}, answer(A)]))
    };
    rule_of_all("invalid-name", &call("fs.read"), &call("fs_read"));
}

#[test]
fn tools_are_wrapped() {
    let flat = request(json!({"tools": [{"type": "function", "name": "read", "parameters": {}}]}));
    rule(
        "wrong-type",
        &flat,
        &request(json!({"tools": [{"type": "function", "function": {"name": "read"}}]})),
    );
}

#[test]
fn arguments_are_a_string() {
    let body = |arguments: Value| {
        let call = json!({"id": A, "type": "function", "function": {"name": "read", "arguments": arguments}});
        talk(json!([{"role": "assistant", "tool_calls": [call]}, answer(A)]))
    };
    rule("wrong-type", &body(json!({})), &body(json!("{}")));
    assert_clean(Mistral, &body(json!({})));
}

#[test]
fn a_strict_server_parses_arguments() {
    let body = |arguments: &str| talk(json!([calls_with(&[A], arguments), answer(A)]));
    for bad in ["", "[1]", "{\"a\": "] {
        assert_rule(StrictChat, "arguments-not-an-object", &body(bad), &body("{\"a\": 1}"));
        assert_clean(OpenAiChat, &body(bad));
    }
}

fn with_tool(patch: Value) -> Value {
    let tools = json!([{"type": "function", "function": {"name": "read"}}]);
    patched(request(json!({"tools": tools})), patch)
}

#[test]
fn settings_that_need_tools() {
    let choice = json!({"tool_choice": "none"});
    rule("tool-choice-without-tools", &request(choice.clone()), &with_tool(choice));
    let parallel = json!({"parallel_tool_calls": false});
    rule("parallel-calls-without-tools", &request(parallel.clone()), &with_tool(parallel));
}

#[test]
fn tool_choice() {
    let body = |choice: Value| with_tool(json!({"tool_choice": choice}));
    let good = body(json!({"type": "function", "function": {"name": "read"}}));
    rule("tool-choice-unknown", &body(json!({"type": "function", "function": {"name": "write"}})), &good);
    rule("unknown-tool-choice", &body(json!({"type": "function", "name": "read"})), &good);
    rule("unknown-tool-choice", &body(json!("any")), &body(json!("required")));
}

#[test]
fn response_format() {
    let body = |format: Value| request(json!({"response_format": format}));
    let good = body(json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}));
    rule("unknown-response-format", &body(json!({"type": "json"})), &good);
    rule("wrong-type", &body(json!({"type": "json_schema", "name": "a", "schema": {}})), &good);
}

#[test]
fn settings_that_need_each_other() {
    let both = request(json!({"max_tokens": 1, "max_completion_tokens": 1}));
    rule("two-token-limits", &both, &request(json!({"max_completion_tokens": 1})));
    let logprobs = request(json!({"top_logprobs": 2}));
    rule("top-logprobs-without-logprobs", &logprobs, &request(json!({"top_logprobs": 2, "logprobs": true})));
    let options = json!({"stream_options": {"include_usage": true}});
    rule(
        "stream-options-without-stream",
        &request(options.clone()),
        &patched(request(options), json!({"stream": true})),
    );
}

#[test]
fn limits_of_size() {
    let stops = |count| request(json!({"stop": vec!["a"; count]}));
    rule("too-many-stops", &stops(5), &stops(4));
    let tool = json!({"type": "function", "function": {"name": "read"}});
    let tools = |count| request(json!({"tools": vec![tool.clone(); count]}));
    rule("too-many-tools", &tools(129), &tools(128));
    let metadata = |length| request(json!({"metadata": {"key": "a".repeat(length)}}));
    rule("metadata-too-large", &metadata(513), &metadata(512));
}

#[test]
fn names_of_speakers() {
    let body = |name: &str| request(json!({"messages": [{"role": "user", "content": "a", "name": name}]}));
    rule("invalid-message-name", &body("A B"), &body("A_B"));
}

#[test]
fn mistral_wants_an_assistant_after_a_tool() {
    let said = json!({"role": "assistant", "content": "so"});
    let good = talk(json!([calls(&[A]), answer(A), said, user(json!("go"))]));
    let bad = talk(json!([calls(&[A]), answer(A), user(json!("go"))]));
    assert_rule(Mistral, "role-out-of-order", &bad, &good);
    assert_clean(OpenAiChat, &bad);
    let system = talk(json!([said, {"role": "system", "content": "x"}, user(json!("go"))]));
    assert_rule(Mistral, "role-out-of-order", &system, &good);
}

#[test]
fn mistral_wants_the_last_word_from_elsewhere() {
    let last = |prefix: bool| talk(json!([{"role": "assistant", "content": "so", "prefix": prefix}]));
    assert_rule(Mistral, "last-message-from-assistant", &last(false), &last(true));
    let early = talk(json!([{"role": "assistant", "content": "so", "prefix": true}, user(json!("a"))]));
    assert_rule(Mistral, "prefix-not-last", &early, &last(true));
}

#[test]
fn a_strict_server_wants_roles_in_turn() {
    let said = json!({"role": "assistant", "content": "so"});
    let good = talk(json!([said, user(json!("b"))]));
    assert_rule(StrictChat, "role-out-of-order", &talk(json!([user(json!("b"))])), &good);
    assert_rule(
        StrictChat,
        "role-out-of-order",
        &request(json!({"messages": [said, user(json!("b"))]})),
        &good,
    );
    let system = json!({"role": "system", "content": "x"});
    let late = talk(json!([said, system]));
    assert_rule(
        StrictChat,
        "role-out-of-order",
        &late,
        &request(json!({"messages": [system, user(json!("b"))]})),
    );
    assert_clean(StrictChat, &talk(json!([calls(&[A]), answer(A), user(json!("b"))])));
}
