//! `throughline convert`, as its users and their scripts see it.

use crate::cli::{root, scratch, throughline};
use serde_json::Value;

const CHAT: &str = r#"{"model":"m","messages":[
  {"role":"user","content":"Read it."},
  {"role":"assistant","content":null,"tool_calls":[
    {"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"limit\": 1.10, \"path\":\"a\"}"}}]},
  {"role":"tool","tool_call_id":"call_1","content":"hello"}],
 "tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}]}"#;

fn convert(args: &[&str], input: &str) -> crate::cli::Run {
    let args: Vec<&str> = std::iter::once("convert").chain(args.iter().copied()).collect();
    throughline(&args, input.as_bytes())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_pair_crosses_with_the_exact_text_of_its_arguments() {
    let run = convert(&["--from", "chat", "--to", "messages"], CHAT);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains(r#""input":{"limit": 1.10, "path":"a"}"#), "{}", run.stdout);
    let body = json(&run.stdout);
    assert_eq!(body["messages"][1]["content"][0]["type"], "tool_use");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "call_1");
    assert_eq!(body["messages"][2]["content"][0]["content"], "hello");
}

#[test]
fn the_same_dialect_is_equal_as_json() {
    let run = convert(&["--from", "chat", "--to", "chat"], CHAT);
    assert_eq!(json(&run.stdout), json(CHAT));
    assert_eq!(run.stderr, "");
}

#[test]
fn bad_json_names_the_offset_and_prints_nothing() {
    let run = convert(&["--from", "chat", "--to", "messages"], r#"{"messages": [}"#);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("at byte 14"), "{}", run.stderr);
}

#[test]
fn a_bad_field_is_named_with_its_path_and_offset() {
    let body = r#"{"messages":[{"role":"user","content":7}]}"#;
    for to in ["chat", "messages", "responses"] {
        let run = convert(&["--from", "chat", "--to", to], body);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.contains("messages[0].content"), "{}", run.stderr);
        assert!(run.stderr.contains("at byte 38"), "{}", run.stderr);
    }
}

#[test]
fn input_that_is_not_utf_8_names_the_offset() {
    let run = throughline(&["convert", "--from", "chat", "--to", "chat"], b"{\"a\":\"\xff\"}");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("not UTF-8 (at byte 6)"), "{}", run.stderr);
}

#[test]
fn no_input_is_an_error() {
    let run = convert(&["--from", "chat", "--to", "chat"], " \n");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("the input is empty"), "{}", run.stderr);
}

#[test]
fn a_missing_file_is_named() {
    let run = convert(&["--from", "chat", "--to", "chat", "no-such-file.json"], "");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("no-such-file.json"), "{}", run.stderr);
}

#[test]
fn several_documents_are_json_lines_and_one_bad_one_prints_nothing() {
    let one = CHAT.replace('\n', " ");
    let run = convert(&["--from", "chat", "--to", "responses"], &format!("{one}\n{one}\n"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 2);
    run.stdout.lines().for_each(|line| drop(json(line)));
    let run = convert(&["--from", "chat", "--to", "responses"], &format!("{one}\n{{\"messages\":7}}\n"));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("document 2") && run.stderr.contains("messages"), "{}", run.stderr);
}

#[test]
fn the_report_lists_each_change_with_place_and_reason() {
    let body = r#"{"messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"lost?"}],"seed":7}"#;
    let file = scratch("report.json");
    let run = convert(&["--from", "chat", "--to", "messages", "--report", file.to_str().unwrap()], body);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = json(&std::fs::read_to_string(&file).unwrap());
    let places: Vec<&str> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["place"].as_str().unwrap())
        .collect();
    assert!(places.contains(&"messages[1]") && places.contains(&"seed"), "{places:?}");
    assert_eq!(report["strategy"], "native");
    assert_eq!(report["rules"], "anthropic");
    assert!(run.stdout.contains("lost?"));
}

#[test]
fn text_embed_leaves_the_result_and_no_call() {
    let run = convert(&["--from", "chat", "--to", "responses", "--strategy", "text-embed"], CHAT);
    assert!(run.stdout.contains(r"Context (tool result):\nhello"), "{}", run.stdout);
    assert!(!run.stdout.contains("function_call") && !run.stdout.contains("call_1"), "{}", run.stdout);
    let run = convert(
        &["--from", "chat", "--to", "responses", "--strategy", "text-embed", "--embed", "comments"],
        CHAT,
    );
    assert!(run.stdout.contains("<!-- prior-tool: read | id: call_1 | args: "), "{}", run.stdout);
}

#[test]
fn rules_decide_the_form_of_ids() {
    let run = convert(&["--from", "chat", "--to", "chat", "--rules", "mistral"], CHAT);
    let body = json(&run.stdout);
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    assert_eq!(body["messages"][2]["tool_call_id"], id);
}

#[test]
fn unknown_or_unfitting_rules_are_refused_with_the_names_that_fit() {
    let run = convert(&["--from", "chat", "--to", "chat", "--rules", "nobody"], CHAT);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("openai-chat") && run.stderr.contains("mistral"), "{}", run.stderr);
    let run = convert(&["--from", "chat", "--to", "messages", "--rules", "mistral"], CHAT);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn an_unknown_dialect_is_a_usage_error() {
    let run = convert(&["--from", "chat", "--to", "latin"], CHAT);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
}

#[test]
fn another_model_can_be_named() {
    let run = convert(&["--from", "chat", "--to", "messages", "--model", "other"], CHAT);
    assert_eq!(json(&run.stdout)["model"], "other");
}

#[test]
fn the_example_of_the_readme_converts() {
    let file = root().join("examples/parallel.chat.json");
    let run = convert(&["--from", "chat", "--to", "messages", file.to_str().unwrap()], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("repaired") && run.stderr.contains("renamed"), "{}", run.stderr);
    let run = convert(&["--quiet", "--from", "chat", "--to", "messages", file.to_str().unwrap()], "");
    assert_eq!(run.stderr, "");
}
