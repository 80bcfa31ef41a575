//! Requests written for this dialect, from all three.

use super::*;
use crate::messages::decode_request;
use crate::messages::goldens::json_goldens;
use serde_json::{Value, json};
use throughline_core::{
    Ask, Call, Dialect, File, Format, Image, Input, Media, Outcome, Reasoning, Return, Rules, Settings,
    Target, Thought, Tool, ToolChoice, ToolForm, prepare,
};

/// Returns a request of another dialect, with nothing in it but what it is given.
fn foreign(entries: Vec<Entry>) -> Ask {
    let settings = Settings { max_output_tokens: Some("4096".into()), ..Settings::default() };
    Ask { model: Some("claude-sonnet-4-5".into()), settings, ..Ask::of(Dialect::Responses, entries) }
}

fn rules() -> Rules {
    Rules::of_dialect(Dialect::Messages)
}

fn encoded(ask: &Ask) -> (Value, Report) {
    let rules = rules();
    let (prompt, mut report) = prepare(ask, &Target::new(&rules));
    let body = encode_request(&prompt, &mut report);
    (serde_json::from_str(&body).expect("valid JSON"), report)
}

fn asked(body: &str) -> Ask {
    decode_request(&Document::parse(body).unwrap()).unwrap()
}

/// Encodes a prompt that was changed by hand, as the normaliser would.
fn encoded_after(ask: &Ask, change: impl FnOnce(&mut Prompt<'_>)) -> Value {
    let rules = rules();
    let (mut prompt, mut report) = prepare(ask, &Target::new(&rules));
    change(&mut prompt);
    serde_json::from_str(&encode_request(&prompt, &mut report)).expect("valid JSON")
}

fn reasons(report: &Report) -> String {
    report
        .changes
        .iter()
        .map(|change| format!("{:?} {:?}: {}\n", change.action, change.subject, change.reason))
        .collect()
}

fn tool(name: &str) -> Tool {
    let form = ToolForm::Function { schema: Some(r#"{"type":"object"}"#.into()), strict: None };
    Tool { name: name.into(), namespace: None, description: None, form, wire: None, intact: true }
}

fn call(id: &str, arguments: &str) -> Entry {
    Entry::new(Kind::Called(Call {
        id: id.into(),
        item_id: None,
        name: "f".into(),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    }))
}

fn returned(id: &str, parts: Vec<Part>, outcome: Outcome) -> Entry {
    let call_id = Some(id.into());
    Entry::new(Kind::Returned(Return { call_id, item_id: None, name: None, parts, outcome, freeform: false }))
}

/// Returns the prompt that a request becomes where nothing needs mending.
fn untouched<'a>(ask: &'a Ask, rules: &'a Rules) -> Prompt<'a> {
    let target = Target::new(rules);
    Prompt {
        entries: ask.entries.clone(),
        tools: ask.tools.clone(),
        tool_choice: ask.tool_choice.clone(),
        without_reasoning: false,
        ..prepare(ask, &target).0
    }
}

#[test]
fn an_untouched_request_goes_back_equal() {
    let mut rules = rules();
    rules.system = SystemRule::BesideOrWithin;
    let mut compared = 0;
    for (name, body) in json_goldens("requests") {
        let ask = asked(&body);
        // A call whose input is no object cannot go back, and results go back in one message.
        let is_split = name == "results-split-over-users";
        if is_split || ask.entries.iter().any(|entry| !entry.intact) {
            continue;
        }
        let mut report = Report::default();
        let again = encode_request(&untouched(&ask, &rules), &mut report);
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(parse(&again), parse(&body), "{name}");
        assert_eq!(report.changes, [], "{name}");
        compared += 1;
    }
    assert!(compared > 50);
}

#[test]
fn an_untouched_message_keeps_its_bytes() {
    let ask = asked(r#"{"messages" : [{"role":"user", "content":"a\u0062"}], "model":"m", "x" : 1.10}"#);
    let rules = rules();
    let (prompt, mut report) = prepare(&ask, &Target::new(&rules));
    let body = encode_request(&prompt, &mut report);
    assert_eq!(body, r#"{"messages":[{"role":"user", "content":"a\u0062"}],"model":"m","x":1.10}"#);
}

#[test]
fn a_block_that_was_not_altered_keeps_its_marks() {
    let ask = asked(
        r#"{"messages":[{"role":"user","x_seen":true,"content":[
            {"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}]}"#,
    );
    let body = encoded_after(&ask, |prompt| {
        let said = prompt.entries[0].as_said().unwrap().clone();
        let parts = said.parts[..1].to_vec();
        prompt.entries[0] = prompt.entries[0].altered(Kind::Said(Said { parts, ..said }));
    });
    let text = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    assert_eq!(body["messages"], json!([{"role": "user", "content": [text], "x_seen": true}]));
}

#[test]
fn max_tokens_is_required_and_gets_a_default() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Hi")]);
    ask.settings = Settings::default();
    let (body, report) = encoded(&ask);
    let expected = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 8192, "messages": [{"role": "user", "content": "Hi"}],
    });
    assert_eq!(body, expected);
    assert_eq!(report.count(Action::Translated), 1);
}

#[test]
fn leading_system_entries_go_beside() {
    let ask = foreign(vec![
        Entry::said(Role::System, "One."),
        Entry::said(Role::Developer, "Two."),
        Entry::said(Role::User, "Hi"),
    ]);
    let (body, _) = encoded(&ask);
    let system = body["system"].as_array().unwrap();
    assert_eq!(system.iter().map(|block| &block["text"]).collect::<Vec<_>>(), ["One.", "Two."]);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn a_tool_pair_is_built_from_another_dialect() {
    let image = Content::Image(Image {
        media: Media::Inline { media_type: "image/png".into(), base64: "iVBO".into() },
        detail: None,
    });
    let parts = vec![Part::text("seen"), Part { content: image, wire: None }];
    let mut ask = foreign(vec![
        Entry::said(Role::User, "Look."),
        Entry::said(Role::Assistant, "Looking."),
        call("1", r#"{"a": 1.10}"#),
        call("2", ""),
        returned("1", parts, Outcome::Ok),
        returned("2", vec![Part::text("no such file")], Outcome::Error),
    ]);
    ask.tools = vec![tool("f")];
    let (body, _) = encoded(&ask);
    let messages = &body["messages"];
    assert_eq!(messages[1]["content"][1]["input"], json!({"a": 1.10}));
    assert_eq!(messages[1]["content"][2]["input"], json!({}));
    assert_eq!(messages[2]["content"][0]["content"][1]["source"]["data"], "iVBO");
    let failed =
        json!({"type": "tool_result", "tool_use_id": "2", "content": "no such file", "is_error": true});
    assert_eq!(messages[2]["content"][1], failed);
}

#[test]
fn results_come_before_what_the_user_says() {
    let mut ask = foreign(vec![
        Entry::said(Role::User, "Go."),
        call("1", "{}"),
        Entry::said(Role::User, "And then?"),
        returned("1", vec![Part::text("done")], Outcome::Ok),
    ]);
    ask.tools = vec![tool("f")];
    let body = encoded_after(&ask, |prompt| prompt.entries = ask.entries.clone());
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["type"], "tool_result");
}

#[test]
fn white_space_at_the_very_end_is_trimmed() {
    let ask = asked(r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b \n"}]}"#);
    let (body, report) = encoded(&ask);
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "b"}));
    assert!(reasons(&report).contains("white space"), "{}", reasons(&report));
}

#[test]
fn an_empty_message_is_never_written() {
    let ask = foreign(vec![
        Entry::said(Role::User, "a"),
        Entry::said(Role::Assistant, ""),
        Entry::said(Role::User, "b"),
    ]);
    let (body, _) = encoded(&ask);
    assert!(body["messages"].as_array().unwrap().iter().all(|message| message["content"] != ""));
}

#[test]
fn a_refusal_is_retold_as_text_and_a_stored_file_leaves_a_line() {
    let refusal = Part { content: Content::Refusal("No.".into()), wire: None };
    let stored = File { media: Media::Stored("file-1".into()), name: Some("a.pdf".into()) };
    let said = |role, part| Entry::new(Kind::Said(Said { role, parts: vec![part], standing: false }));
    let ask = foreign(vec![
        said(Role::User, Part { content: Content::File(stored), wire: None }),
        said(Role::Assistant, refusal),
        Entry::said(Role::User, "Why?"),
    ]);
    let body = encoded_after(&ask, |prompt| prompt.entries = ask.entries.clone());
    assert_eq!(body["messages"][0]["content"][0]["text"], "[file a.pdf left out]");
    assert_eq!(body["messages"][1]["content"], "No.");
}

#[test]
fn thinking_excludes_sampling_and_forced_calls() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Prove it.")]);
    ask.tools = vec![tool("f")];
    ask.tool_choice = Some(ToolChoice::Required);
    ask.settings.temperature = Some("0.7".into());
    ask.settings.reasoning = Some(Reasoning { effort: Some("medium".into()), ..Reasoning::default() });
    let (body, report) = encoded(&ask);
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(body["tool_choice"], json!({"type": "auto"}));
    assert_eq!(body.get("temperature"), None);
    assert!(reasons(&report).contains("cannot be forced"), "{}", reasons(&report));
    let body = encoded_after(&ask, |prompt| prompt.without_reasoning = true);
    assert_eq!((body.get("thinking"), &body["temperature"]), (None, &json!(0.7)));
}

#[test]
fn newer_models_are_asked_to_think_by_effort() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Prove it.")]);
    ask.model = Some("claude-opus-5".into());
    ask.settings.temperature = Some("0.7".into());
    ask.settings.reasoning =
        Some(Reasoning { effort: Some("high".into()), summary: Some("auto".into()), budget: None });
    let (body, report) = encoded(&ask);
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(body["output_config"], json!({"effort": "high"}));
    assert!(reasons(&report).contains("no sampling"), "{}", reasons(&report));
}

#[test]
fn settings_out_of_range_or_without_counterpart_are_reported() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Hi")]);
    ask.settings = Settings {
        max_output_tokens: Some("16".into()),
        temperature: Some("1.7".into()),
        presence_penalty: Some("0.0".into()),
        seed: Some("7".into()),
        stop: vec!["\n".into(), "END".into()],
        metadata: Some(r#"{"a":"b"}"#.into()),
        user: Some("ida".into()),
        service_tier: Some("flex".into()),
        store: Some(false),
        format: Some(Format::JsonObject),
        ..Settings::default()
    };
    let (body, report) = encoded(&ask);
    assert_eq!((&body["temperature"], &body["stop_sequences"]), (&json!(1), &json!(["END"])));
    assert_eq!(body["metadata"], json!({"user_id": "ida"}));
    let said = reasons(&report);
    for name in ["temperature", "seed", "stop", "metadata", "service_tier", "format"] {
        assert!(said.contains(&format!("Field(\"{name}\")")), "{name} is not in\n{said}");
    }
    assert!(!said.contains("penalty") && !said.contains("store"), "{said}");
}

#[test]
fn a_schema_for_the_answer_goes_into_output_config() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Hi")]);
    ask.settings.format = Some(Format::JsonSchema {
        name: Some("n".into()),
        description: None,
        schema: r#"{"a":1.10}"#.into(),
        strict: None,
    });
    let (body, _) = encoded(&ask);
    assert_eq!(body["output_config"]["format"], json!({"type": "json_schema", "schema": {"a": 1.10}}));
}

#[test]
fn calls_one_by_one_and_some_tools_only() {
    let mut ask = foreign(vec![Entry::said(Role::User, "Hi")]);
    ask.tools = vec![tool("f"), tool("g")];
    ask.settings.parallel_calls = Some(false);
    let (body, _) = encoded(&ask);
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    ask.tool_choice = Some(ToolChoice::Allowed { names: vec!["f".into()], required: true });
    let (body, report) = encoded(&ask);
    assert_eq!(body["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    assert!(reasons(&report).contains("enforced on the answer"));
    ask.tools = Vec::new();
    assert_eq!(encoded(&ask).0.get("tool_choice"), None);
}

#[test]
fn without_reasoning_the_fields_that_need_it_go_too() {
    let ask = asked(
        r#"{"thinking":{"type":"enabled","budget_tokens":1024},"context_management":{"edits":[
            {"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]},
            "messages":[{"role":"user","content":"a"}]}"#,
    );
    let body = encoded_after(&ask, |prompt| prompt.without_reasoning = true);
    assert_eq!(body.get("thinking"), None);
    assert_eq!(body["context_management"], json!({"edits": [{"type": "clear_tool_uses_20250919"}]}));
}

#[test]
fn a_system_message_in_the_conversation_stays_there_if_the_backend_takes_it() {
    let ask = asked(
        r#"{"messages":[{"role":"system","content":[],"output_config":{"effort":"low"}},{"role":"user","content":"a"}]}"#,
    );
    let mut rules = rules();
    rules.system = SystemRule::BesideOrWithin;
    let prompt = untouched(&ask, &rules);
    let body: Value = serde_json::from_str(&encode_request(&prompt, &mut Report::default())).unwrap();
    assert_eq!(body["messages"][0]["output_config"], json!({"effort": "low"}));
    assert_eq!(body.get("system"), None);
}

#[test]
fn tools_that_changed_are_written_anew() {
    let ask = asked(
        r#"{"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
            "tool_choice":{"type":"tool","name":"f"},"messages":[{"role":"user","content":"a"}]}"#,
    );
    let body = encoded_after(&ask, |prompt| {
        prompt.tools[0].name = "g".into();
        prompt.tools[0].intact = false;
        prompt.tool_choice = Some(ToolChoice::Named("g".into()));
        prompt.tools.push(tool("recall"));
    });
    let first =
        json!({"name": "g", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}});
    assert_eq!(body["tools"], json!([first, {"name": "recall", "input_schema": {"type": "object"}}]));
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "g"}));
}

#[test]
fn nothing_makes_the_encoder_panic() {
    let opaque = Kind::Opaque { kind: "web_search_call".into() };
    let ask = foreign(vec![
        Entry::new(opaque),
        Entry::new(Kind::Thought(Thought::default())),
        Entry::new(Kind::Summarised(throughline_core::Summary { text: "s".into(), covers: 3 })),
    ]);
    let body = encoded_after(&ask, |prompt| prompt.entries = ask.entries.clone());
    assert_eq!(body["messages"][0]["content"][0]["text"], "s");
}

#[test]
fn a_directive_does_not_follow_its_message_into_another_role() {
    let directive = r#"{"role":"system","content":"Think.","output_config":{"effort":"high"}}"#;
    let ask = asked(&format!(r#"{{"messages":[{{"role":"user","content":"a","x_seen":1}},{directive}]}}"#));
    let (body, _) = encoded(&ask);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert_eq!((body["messages"][0].get("output_config"), &body["messages"][0]["x_seen"]), (None, &json!(1)));
}
