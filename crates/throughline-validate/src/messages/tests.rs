//! One test for each rule of the Messages API.

#![expect(clippy::needless_pass_by_value, reason = "tests read better with JSON passed as written")]

use crate::testing::{assert_clean, assert_rule, patched};
use crate::{Provider, validate};
use serde_json::{Value, json};

/// A plain request with `patch` applied.
fn request(patch: Value) -> Value {
    let base = json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]});
    patched(base, patch)
}

/// A request whose last user message, after a first word from the user, is `messages`.
fn talk(messages: Value) -> Value {
    let tools = json!([{"name": "read", "input_schema": {"type": "object"}}]);
    let mut all = vec![json!({"role": "user", "content": "hi"})];
    all.extend(messages.as_array().unwrap().clone());
    request(json!({"messages": all, "tools": tools}))
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
}

#[track_caller]
fn rule(name: &str, bad: &Value, good: &Value) {
    assert_rule(Provider::Anthropic, name, bad, good);
}

/// The same rule, for a user message with these blocks.
#[track_caller]
fn block_rule(name: &str, bad: Value, good: Value) {
    rule(name, &talk(json!([user(json!([bad]))])), &talk(json!([user(json!([good]))])));
}

#[track_caller]
fn tool_rule(name: &str, bad: Value, good: Value) {
    rule(name, &request(json!({"tools": bad})), &request(json!({"tools": good})));
}

fn schema() -> Value {
    json!({"type": "object"})
}

#[test]
fn a_whole_tool_loop_is_clean() {
    let body = talk(json!([
        assistant(json!([thought(), text("\n\n"), call("a"), call("b")])),
        user(json!([result("b"), result("a"), text("go on")])),
        assistant(json!("well")),
        user(json!("thanks")),
    ]));
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let body = patched(body, json!({"thinking": thinking, "system": [text("be brief")], "stream": true}));
    assert_clean(Provider::Anthropic, &body);
}

#[test]
fn a_violation_names_its_place() {
    let found = validate(Provider::Anthropic, &talk(json!([user(json!([text("a"), text("")]))])));
    let places: Vec<_> = found.iter().map(|violation| violation.place.as_str()).collect();
    assert_eq!(places, ["messages[1].content[1].text"]);
}

#[test]
fn required_fields() {
    for key in ["model", "max_tokens", "messages"] {
        rule("missing-field", &request(json!({key: null})), &request(json!({})));
    }
}

#[test]
fn types_and_ranges() {
    rule("wrong-type", &request(json!({"max_tokens": "9"})), &request(json!({"max_tokens": 9})));
    rule("out-of-range", &request(json!({"max_tokens": -1})), &request(json!({"max_tokens": 1})));
    rule("out-of-range", &request(json!({"temperature": 1.5})), &request(json!({"temperature": 1.0})));
    rule("empty-list", &request(json!({"messages": []})), &request(json!({})));
    rule(
        "value-not-allowed",
        &request(json!({"service_tier": "x"})),
        &request(json!({"service_tier": "auto"})),
    );
}

#[test]
fn unknown_fields_are_refused_everywhere() {
    rule("unknown-field", &request(json!({"seed": 1})), &request(json!({})));
    let extra = json!([{"role": "user", "content": "hi", "reasoning_details": []}]);
    rule("unknown-field", &request(json!({"messages": extra})), &request(json!({})));
    block_rule("unknown-field", json!({"type": "text", "text": "a", "id": "x"}), text("a"));
    let metadata = |value| request(json!({"metadata": value}));
    rule("unknown-field", &metadata(json!({"trace": "x"})), &metadata(json!({"user_id": "x"})));
}

#[test]
fn thinking_takes_no_cache_mark() {
    let marked = patched(thought(), json!({"cache_control": {"type": "ephemeral"}}));
    let body = |block| talk(json!([assistant(json!([block, text("so")])), user(json!("and?"))]));
    rule("unknown-field", &body(marked), &body(thought()));
}

#[test]
fn roles() {
    let system = talk(json!([{"role": "system", "content": "be brief"}, user(json!("go"))]));
    rule("role-not-allowed", &system, &talk(json!([user(json!("go"))])));
    let first = request(json!({"messages": [assistant(json!("hello")), user(json!("hi"))]}));
    rule("first-message-not-user", &first, &request(json!({})));
    let compacted = assistant(json!([{"type": "compaction", "content": "so far"}, text("so")]));
    assert_clean(Provider::Anthropic, &request(json!({"messages": [compacted, user(json!("hi"))]})));
}

#[test]
fn only_a_final_assistant_message_may_be_empty() {
    for empty in [json!(""), json!([])] {
        let middle = talk(json!([assistant(empty.clone()), user(json!("go"))]));
        rule("empty-content", &middle, &talk(json!([assistant(empty)])));
        rule("empty-content", &talk(json!([user(json!([]))])), &talk(json!([user(json!("a"))])));
    }
}

#[test]
fn text_is_not_empty() {
    block_rule("empty-text", text(""), text("a"));
    let system = |text: &str| request(json!({"system": [{"type": "text", "text": text}]}));
    rule("empty-text", &system(""), &system("be brief"));
}

#[test]
fn text_is_not_blank_when_alone() {
    let beside = talk(json!([user(json!([text(" "), text("a")]))]));
    rule("blank-text", &talk(json!([user(json!([text(" ")]))])), &beside);
    rule("blank-text", &request(json!({"system": "  "})), &request(json!({"system": ""})));
}

#[test]
fn a_result_may_be_empty() {
    for content in [json!(""), json!([]), json!([text("")])] {
        let empty = json!({"type": "tool_result", "tool_use_id": "a", "content": content});
        let body = talk(json!([assistant(json!([call("a")])), user(json!([empty]))]));
        assert_clean(Provider::Anthropic, &body);
    }
}

#[test]
fn block_types() {
    block_rule("unknown-block-type", json!({"type": "input_text", "text": "a"}), text("a"));
    let nested = |inner: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [inner]});
        talk(json!([assistant(json!([call("a")])), user(json!([result]))]))
    };
    rule("unknown-result-block-type", &nested(thought()), &nested(text("a")));
}

#[test]
fn blocks_keep_to_their_role() {
    let good = talk(json!([assistant(json!([thought(), text("a")])), user(json!("b"))]));
    rule("block-in-wrong-role", &talk(json!([user(json!([thought(), text("a")]))])), &good);
}

#[test]
fn thinking_is_signed() {
    let body = |signature| {
        let block = patched(thought(), json!({"signature": signature}));
        talk(json!([assistant(json!([block, text("so")])), user(json!("and?"))]))
    };
    rule("thinking-without-signature", &body(json!("")), &body(json!("c2ln")));
    rule("missing-field", &body(Value::Null), &body(json!("c2ln")));
}

#[test]
fn redacted_thinking_has_data() {
    let body = |data: &str| {
        let block = json!({"type": "redacted_thinking", "data": data});
        talk(json!([assistant(json!([block, text("so")])), user(json!("and?"))]))
    };
    rule("empty-string", &body(""), &body("xx"));
}

#[test]
fn images() {
    let image = |source: Value| json!({"type": "image", "source": source});
    let inline =
        |media: &str, data: &str| image(json!({"type": "base64", "media_type": media, "data": data}));
    let good = inline("image/png", "iVBORw0=");
    block_rule("value-not-allowed", inline("image/bmp", "iVBORw0="), good.clone());
    block_rule("invalid-base64", inline("image/png", "data:image/png;base64,iVBORw0="), good.clone());
    block_rule("unknown-source-type", image(json!({"type": "image_url"})), good);
    let remote = |url: &str| image(json!({"type": "url", "url": url}));
    block_rule("url-not-https", remote("http://a.example/b.png"), remote("https://a.example/b.png"));
}

#[test]
fn documents() {
    let document = |media: &str| json!({"type": "document", "source": {"type": "base64", "media_type": media, "data": "JVBERi0="}});
    block_rule("value-not-allowed", document("text/html"), document("application/pdf"));
}

#[test]
fn tool_use_ids_have_a_pattern() {
    let body = |id: &str| talk(json!([assistant(json!([call(id)])), user(json!([result(id)]))]));
    rule("invalid-tool-use-id", &body("functions.Bash:0"), &body("functions_Bash_0"));
    assert_clean(Provider::Anthropic, &body(&"a".repeat(300)));
}

#[test]
fn tool_use_ids_are_unique() {
    let body = |second: &str| {
        talk(json!([
            assistant(json!([call("a")])),
            user(json!([result("a")])),
            assistant(json!([call(second)])),
            user(json!([result(second)])),
        ]))
    };
    rule("duplicate-tool-use-id", &body("a"), &body("b"));
}

#[test]
fn tool_use_input_is_an_object_and_its_name_short() {
    let body = |patch: Value| {
        talk(json!([assistant(json!([patched(call("a"), patch)])), user(json!([result("a")]))]))
    };
    rule("wrong-type", &body(json!({"input": "{}"})), &body(json!({"input": {}})));
    rule("string-too-long", &body(json!({"name": "a".repeat(201)})), &body(json!({"name": "a".repeat(200)})));
}

#[test]
fn each_call_has_its_result_next() {
    let good =
        talk(json!([assistant(json!([call("a"), call("b")])), user(json!([result("a"), result("b")]))]));
    let part = talk(json!([assistant(json!([call("a"), call("b")])), user(json!([result("a")]))]));
    rule("tool-use-without-result", &part, &good);
    let last = talk(json!([assistant(json!([call("a")]))]));
    rule("tool-use-without-result", &last, &good);
}

#[test]
fn results_split_over_messages_are_one_turn() {
    let calls = assistant(json!([call("a"), call("b")]));
    let body = talk(json!([calls, user(json!([result("a")])), user(json!([result("b")]))]));
    assert_clean(Provider::Anthropic, &body);
}

#[test]
fn each_result_has_its_call_before() {
    let good = talk(json!([assistant(json!([call("a")])), user(json!([result("a")]))]));
    let stray = talk(json!([assistant(json!([call("a")])), user(json!([result("a"), result("z")]))]));
    rule("tool-result-without-use", &stray, &good);
    rule("tool-result-without-use", &talk(json!([user(json!([result("a")]))])), &good);
}

#[test]
fn one_result_for_one_call() {
    let good = talk(json!([assistant(json!([call("a")])), user(json!([result("a")]))]));
    let twice = talk(json!([assistant(json!([call("a")])), user(json!([result("a"), result("a")]))]));
    rule("duplicate-tool-result", &twice, &good);
}

#[test]
fn results_come_first() {
    let body = |content: Value| talk(json!([assistant(json!([call("a")])), user(content)]));
    let bad = body(json!([text("note"), result("a")]));
    rule("tool-result-not-first", &bad, &body(json!([result("a"), text("note")])));
}

#[test]
fn used_tools_are_declared() {
    let good = talk(json!([assistant(json!([call("a")])), user(json!([result("a")]))]));
    rule("tools-not-declared", &patched(good.clone(), json!({"tools": null})), &good);
}

#[test]
fn the_assistant_does_not_end_in_whitespace() {
    let body = |end: &str| talk(json!([assistant(json!([text(end)]))]));
    rule("trailing-whitespace", &body("The answer is "), &body("The answer is"));
    let plain = |end: &str| talk(json!([assistant(json!(end))]));
    rule("trailing-whitespace", &plain("The answer is\n"), &plain("The answer is"));
}

fn thinking(patch: Value) -> Value {
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 2048}});
    patched(request(thinking), patch)
}

#[test]
fn thinking_stays_below_max_tokens() {
    let body = |max: u32| thinking(json!({"max_tokens": max}));
    rule("budget-not-below-max-tokens", &body(2048), &body(2049));
    let budget = |tokens: u32| thinking(json!({"thinking": {"type": "enabled", "budget_tokens": tokens}}));
    rule("out-of-range", &budget(1023), &budget(1024));
    rule("unknown-thinking-type", &thinking(json!({"thinking": {"type": "auto"}})), &budget(1024));
}

#[test]
fn thinking_forbids_sampling_and_forced_tools() {
    let tools = json!([{"name": "read", "input_schema": schema()}]);
    let choice = |kind: &str| thinking(json!({"tools": tools.clone(), "tool_choice": {"type": kind}}));
    rule("forbidden-with-thinking", &choice("any"), &choice("auto"));
    rule("forbidden-with-thinking", &thinking(json!({"top_k": 5})), &request(json!({"top_k": 5})));
    let warm = |value: f64| thinking(json!({"temperature": value}));
    rule("forbidden-with-thinking", &warm(0.5), &warm(1.0));
    let nucleus = |value: f64| thinking(json!({"top_p": value}));
    rule("forbidden-with-thinking", &nucleus(0.5), &nucleus(0.95));
}

#[test]
fn an_open_tool_loop_starts_with_thinking() {
    let on = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    let body = |first: Value| {
        let open = talk(json!([assistant(first), user(json!([result("a")]))]));
        patched(open, on.clone())
    };
    rule("thinking-not-first", &body(json!([call("a")])), &body(json!([thought(), call("a")])));
    let settled = talk(json!([
        assistant(json!([call("a")])),
        user(json!([result("a")])),
        assistant(json!("ok")),
        user(json!("so"))
    ]));
    assert_clean(Provider::Anthropic, &patched(settled, on));
}

#[test]
fn without_interleaving_only_the_first_step_thinks() {
    let steps = talk(json!([
        assistant(json!([thought(), call("a")])),
        user(json!([result("a")])),
        assistant(json!([call("b")])),
        user(json!([result("b")])),
    ]));
    let on = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    assert_clean(Provider::Anthropic, &patched(steps, on));
}

#[test]
fn tool_definitions() {
    let tool = |name: &str, schema: Value| json!({"name": name, "input_schema": schema});
    let good = json!([tool("read", schema())]);
    tool_rule("invalid-name", json!([tool("fs.read", schema())]), good.clone());
    tool_rule(
        "invalid-name",
        json!([tool(&"a".repeat(129), schema())]),
        json!([tool(&"a".repeat(128), schema())]),
    );
    tool_rule("duplicate-tool-name", json!([tool("read", schema()), tool("read", schema())]), good.clone());
    tool_rule("schema-not-object", json!([tool("read", json!({}))]), good.clone());
    let combined = json!({"type": "object", "anyOf": []});
    tool_rule("schema-combined-at-top", json!([tool("read", combined)]), good.clone());
    let keyed = |key: &str| json!([tool("read", json!({"type": "object", "properties": {key: {}}}))]);
    tool_rule("invalid-property-name", keyed("a b"), keyed("a.b"));
    tool_rule(
        "unknown-tool-type",
        json!([{"type": "function", "name": "a"}]),
        json!([{"type": "bash_20250124", "name": "bash"}]),
    );
    tool_rule("missing-field", json!([{"name": "read"}]), good);
}

#[test]
fn tool_choice() {
    let tools = json!([{"name": "read", "input_schema": schema()}]);
    let body = |choice: Value| request(json!({"tools": tools.clone(), "tool_choice": choice}));
    let good = body(json!({"type": "tool", "name": "read"}));
    rule("tool-choice-unknown", &body(json!({"type": "tool", "name": "write"})), &good);
    rule("unknown-tool-choice", &body(json!({"type": "required"})), &good);
    rule("wrong-type", &body(json!("auto")), &good);
    rule("tool-choice-without-tools", &request(json!({"tool_choice": {"type": "any"}})), &good);
}

#[test]
fn stop_sequences_are_not_blank() {
    let body = |stop: &str| request(json!({"stop_sequences": [stop]}));
    rule("blank-stop-sequence", &body("\n"), &body("\nEND"));
}

fn marked(count: usize, ttl: &str) -> Vec<Value> {
    vec![json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": ttl}}); count]
}

#[test]
fn at_most_four_cache_marks() {
    let body = |count| request(json!({"system": marked(count, "5m")}));
    rule("too-many-cache-marks", &body(5), &body(4));
}

#[test]
fn cache_marks_are_well_formed_and_ordered() {
    let body =
        |mark: Value| request(json!({"system": [{"type": "text", "text": "a", "cache_control": mark}]}));
    rule(
        "unknown-field",
        &body(json!({"type": "ephemeral", "scope": "global"})),
        &body(json!({"type": "ephemeral"})),
    );
    rule("value-not-allowed", &body(json!({"type": "persistent"})), &body(json!({"type": "ephemeral"})));
    let order = |first: &str, second: &str| {
        request(json!({"system": marked(1, first), "messages": [user(json!(marked(1, second)))]}))
    };
    rule("cache-ttl-order", &order("5m", "1h"), &order("1h", "5m"));
}
