//! One test for each rule of the Responses API.

#![expect(clippy::needless_pass_by_value, reason = "tests read better with JSON passed as written")]

use crate::Provider::OpenAiResponses;
use crate::testing::{assert_clean, assert_rule, patched};
use serde_json::{Value, json};

/// A plain request with `patch` applied.
fn request(patch: Value) -> Value {
    patched(json!({"model": "m", "input": "hi"}), patch)
}

/// A request with these items after a first word from the user.
fn talk(items: Value) -> Value {
    let mut all = vec![json!({"role": "user", "content": "hi"})];
    all.extend(items.as_array().unwrap().clone());
    request(json!({"input": all}))
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn said() -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]})
}

fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xx"})
}

#[track_caller]
fn rule(name: &str, bad: &Value, good: &Value) {
    assert_rule(OpenAiResponses, name, bad, good);
}

#[test]
fn a_whole_tool_loop_is_clean() {
    let items = json!([thought(), call("a"), call("b"), output("b"), output("a"), said()]);
    let settings = json!({"store": false, "stream": true, "tool_choice": "auto", "parallel_tool_calls": true,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "client_metadata": {}});
    assert_clean(OpenAiResponses, &patched(talk(items), settings));
}

#[test]
fn what_codex_sends_is_clean() {
    let tools = json!([{"type": "namespace", "name": "fs", "tools": [{"type": "function", "name": "read"}]},
        {"type": "custom", "name": "patch", "format": {"type": "grammar"}}, {"type": "web_search"}]);
    let custom =
        json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x", "id": "ctc_1"});
    let items = json!([
        {"type": "message", "role": "developer", "id": "msg_1", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "additional_tools", "role": "developer", "tools": tools},
        custom,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
        {"type": "local_shell_call", "call_id": "s", "status": "completed", "action": {}},
        {"type": "function_call_output", "call_id": "s", "output": "ok"},
        {"type": "compaction", "encrypted_content": "xx"},
    ]);
    assert_clean(OpenAiResponses, &talk(items));
}

#[test]
fn required_fields() {
    rule(
        "missing-field",
        &request(json!({"model": null})),
        &request(json!({"model": null, "prompt": {"id": "p"}})),
    );
    rule("missing-field", &request(json!({"input": null})), &request(json!({})));
    let chained = request(json!({"input": [], "previous_response_id": "resp_1"}));
    rule("empty-list", &request(json!({"input": []})), &chained);
}

#[test]
fn types_and_ranges() {
    rule(
        "out-of-range",
        &request(json!({"max_output_tokens": 15})),
        &request(json!({"max_output_tokens": 16})),
    );
    rule("wrong-type", &request(json!({"instructions": []})), &request(json!({"instructions": "be brief"})));
    let key = |length| request(json!({"prompt_cache_key": "a".repeat(length)}));
    rule("string-too-long", &key(65), &key(64));
    rule("value-not-allowed", &request(json!({"truncation": "on"})), &request(json!({"truncation": "auto"})));
    let metadata = |count: usize| {
        let pairs: serde_json::Map<_, _> = (0..count).map(|key| (key.to_string(), json!("a"))).collect();
        request(json!({"metadata": pairs}))
    };
    rule("metadata-too-large", &metadata(17), &metadata(16));
}

#[test]
fn unknown_fields_are_refused() {
    rule("unknown-field", &request(json!({"messages": []})), &request(json!({})));
    let parsed = patched(call("a"), json!({"parsed_arguments": {}}));
    rule("unknown-field", &talk(json!([parsed, output("a")])), &talk(json!([call("a"), output("a")])));
}

#[test]
fn one_history() {
    let id = json!({"previous_response_id": "resp_1", "conversation": "conv_1"});
    rule("two-histories", &request(id), &request(json!({"conversation": "conv_1"})));
}

#[test]
fn stream_options_need_stream() {
    let options = json!({"stream_options": {"include_obfuscation": false}});
    rule(
        "stream-options-without-stream",
        &request(options.clone()),
        &patched(request(options), json!({"stream": true})),
    );
}

#[test]
fn item_types() {
    rule("unknown-item-type", &talk(json!([{"type": "tool_use", "id": "x"}])), &talk(json!([said()])));
}

#[test]
fn parts_belong_to_their_role() {
    let body =
        |role: &str, part: &str| talk(json!([{"role": role, "content": [{"type": part, "text": "a"}]}]));
    rule("part-not-allowed", &body("assistant", "input_text"), &body("assistant", "output_text"));
    rule("part-not-allowed", &body("user", "output_text"), &body("user", "input_text"));
    rule("part-not-allowed", &body("developer", "text"), &body("developer", "input_text"));
}

#[test]
fn parts_have_their_data() {
    let body = |part: Value| talk(json!([{"role": "user", "content": [part]}]));
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0="});
    rule("part-without-data", &body(json!({"type": "input_image", "image_url": null})), &body(image));
    let file = json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="});
    rule("part-without-data", &body(json!({"type": "input_file", "filename": "a.pdf"})), &body(file));
}

#[test]
fn outputs_are_text_or_input_parts() {
    let body = |output: Value| {
        talk(json!([call("a"), {"type": "function_call_output", "call_id": "a", "output": output}]))
    };
    rule("wrong-type", &body(json!({"ok": true})), &body(json!("{\"ok\":true}")));
    rule("wrong-type", &body(Value::Null), &body(json!("")));
    let part = |kind: &str| body(json!([{"type": kind, "text": "a"}]));
    rule("part-not-allowed", &part("output_text"), &part("input_text"));
}

#[test]
fn calls_have_well_formed_fields() {
    let body = |id: &str| talk(json!([call(id), output(id)]));
    rule("string-too-long", &body(&"a".repeat(65)), &body(&"a".repeat(64)));
    rule("empty-string", &body(""), &body("a"));
    let with = |patch: Value| talk(json!([patched(call("a"), patch), output("a")]));
    rule("invalid-name", &with(json!({"name": "fs.read"})), &with(json!({"name": "fs_read"})));
    rule("wrong-type", &with(json!({"arguments": {}})), &with(json!({"arguments": "{}"})));
}

#[test]
fn item_ids_begin_with_their_prefix() {
    let body = |id: &str| talk(json!([patched(call("a"), json!({"id": id})), output("a")]));
    for bad in ["call_1", "fcabc", "item_1", "fc-1"] {
        rule("invalid-item-id", &body(bad), &body("fc_1"));
    }
    let message = |id: &str| talk(json!([patched(said(), json!({"id": id}))]));
    rule("invalid-item-id", &message("msg-1"), &message("msg_1"));
    let long = |length: usize| message(&format!("msg_{}", "a".repeat(length)));
    rule("item-id-too-long", &long(61), &long(60));
}

#[test]
fn item_ids_are_unique() {
    let body = |second: &str| {
        talk(json!([patched(said(), json!({"id": "msg_1"})), patched(said(), json!({"id": second}))]))
    };
    rule("duplicate-item-id", &body("msg_1"), &body("msg_2"));
}

#[test]
fn unstored_items_carry_their_content() {
    let body = |content: Value| {
        let item = patched(thought(), json!({"encrypted_content": content}));
        patched(talk(json!([item, said()])), json!({"store": false}))
    };
    rule("item-not-persisted", &body(Value::Null), &body(json!("xx")));
    let reference = |store: bool| {
        patched(talk(json!([{"type": "item_reference", "id": "msg_1"}])), json!({"store": store}))
    };
    rule("item-not-persisted", &reference(false), &reference(true));
}

#[test]
fn each_call_has_an_output() {
    let good = talk(json!([call("a"), output("a")]));
    rule("call-without-output", &talk(json!([call("a"), said()])), &good);
}

#[test]
fn each_output_has_an_earlier_call() {
    let orphan = talk(json!([output("a")]));
    rule("output-without-call", &orphan, &patched(orphan.clone(), json!({"previous_response_id": "resp_1"})));
    let custom = json!({"type": "custom_tool_call_output", "call_id": "a", "output": "x"});
    let good = talk(json!([call("a"), output("a")]));
    rule("output-without-call", &talk(json!([call("a"), output("a"), custom])), &good);
}

#[test]
fn call_ids_are_used_once() {
    let good = talk(json!([call("a"), output("a"), call("b"), output("b")]));
    rule("duplicate-call-id", &talk(json!([call("a"), call("a"), output("a")])), &good);
    rule("duplicate-output", &talk(json!([call("a"), output("a"), output("a")])), &good);
}

#[test]
fn reasoning_is_followed_by_what_it_led_to() {
    let good = talk(json!([thought(), said()]));
    rule("reasoning-without-following-item", &talk(json!([thought()])), &good);
    let asked = json!({"role": "user", "content": "and?"});
    rule("reasoning-without-following-item", &talk(json!([thought(), asked])), &good);
    let second = patched(thought(), json!({"id": "rs_2"}));
    rule("reasoning-without-following-item", &talk(json!([thought(), second, said()])), &good);
}

#[test]
fn reasoning_shows_only_summaries() {
    let body = |patch: Value| talk(json!([patched(thought(), patch), said()]));
    let text = json!([{"type": "reasoning_text", "text": "hm"}]);
    rule("reasoning-content-not-empty", &body(json!({"content": text})), &body(json!({"content": []})));
    let summary = |kind: &str| body(json!({"summary": [{"type": kind, "text": "hm"}]}));
    rule("value-not-allowed", &summary("text"), &summary("summary_text"));
}

fn with_tool(patch: Value) -> Value {
    patched(request(json!({"tools": [{"type": "function", "name": "read", "parameters": {}}]})), patch)
}

#[test]
fn tools_are_flat() {
    let nested = request(json!({"tools": [{"type": "function", "function": {"name": "read"}}]}));
    rule("missing-field", &nested, &with_tool(json!({})));
    rule("unknown-tool-type", &request(json!({"tools": [{"type": "bash_20250124"}]})), &with_tool(json!({})));
}

#[test]
fn tool_choice() {
    let body = |choice: Value| with_tool(json!({"tool_choice": choice}));
    let good = body(json!({"type": "function", "name": "read"}));
    rule("tool-choice-unknown", &body(json!({"type": "function", "name": "write"})), &good);
    rule("unknown-tool-choice", &body(json!("any")), &good);
    rule("unknown-tool-choice", &body(json!({"type": "tool", "name": "read"})), &good);
    let allowed = |names: Value| body(json!({"type": "allowed_tools", "mode": "auto", "tools": names}));
    let read = json!([{"type": "function", "name": "read"}]);
    rule("tool-choice-unknown", &allowed(json!([{"type": "function", "name": "x"}])), &allowed(read.clone()));
    rule("unknown-tool-choice", &allowed(json!([])), &allowed(read));
    rule(
        "tool-choice-without-tools",
        &request(json!({"tool_choice": "required"})),
        &request(json!({"tool_choice": "auto"})),
    );
}

#[test]
fn text_format() {
    let body = |format: Value| request(json!({"text": {"format": format}}));
    let good = body(json!({"type": "json_schema", "name": "a", "schema": {}}));
    rule("unknown-text-format", &body(json!({"type": "json"})), &good);
    rule("missing-field", &body(json!({"type": "json_schema", "name": "a"})), &good);
}
