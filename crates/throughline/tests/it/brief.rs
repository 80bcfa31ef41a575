//! `throughline brief`, as its users and their scripts see it.

use crate::cli::{scratch, throughline};
use serde_json::Value;

const CALL: &str =
    r#"{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"a.rs\"}"}}"#;

fn chat(result: &str) -> String {
    let result = serde_json::to_string(result).unwrap();
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"Read a.rs."}},
        {{"role":"assistant","content":null,"tool_calls":[{CALL}]}},
        {{"role":"tool","tool_call_id":"c1","content":{result}}},
        {{"role":"assistant","content":"It has one function."}},{{"role":"user","content":"Rename it."}}]}}"#
    )
}

fn brief(args: &[&str], input: &str) -> crate::cli::Run {
    let args: Vec<&str> = ["brief", "--dialect"].iter().chain(args).copied().collect();
    throughline(&args, input.as_bytes())
}

#[test]
fn every_dialect_is_told_in_the_same_words() {
    let messages = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Read a.rs."},
        {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a.rs"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"fn a() {}"}]},
        {"role":"assistant","content":"It has one function."},{"role":"user","content":"Rename it."}]}"#;
    let responses = r#"{"model":"m","input":[{"role":"user","content":"Read a.rs."},
        {"type":"function_call","call_id":"c1","name":"Read","arguments":"{\"file_path\":\"a.rs\"}"},
        {"type":"function_call_output","call_id":"c1","output":"fn a() {}"},
        {"role":"assistant","content":"It has one function."},{"role":"user","content":"Rename it."}]}"#;
    let expected = "[CONTEXT FROM PREVIOUS SESSION]\n\n## Summary\n- User: Read a.rs.\n\
        - Assistant: It has one function.\n\n## Files Read\n### a.rs\n```rust\nfn a() {}\n```\n\n\
        [/CONTEXT FROM PREVIOUS SESSION]\n\nRename it.\n";
    for (dialect, body) in
        [("chat", chat("fn a() {}").as_str()), ("messages", messages), ("responses", responses)]
    {
        let run = brief(&[dialect], body);
        assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{dialect}: {}", run.stderr);
    }
}

#[test]
fn what_is_cut_says_so_in_the_text_in_the_report_and_beside_it() {
    let report = scratch("brief-report.json");
    let run =
        brief(&["chat", "--max-chars", "10", "--report", report.to_str().unwrap()], &chat(&"x".repeat(50)));
    assert!(run.stdout.contains("xxxxx\n[.. 40 characters cut; recall "), "{}", run.stdout);
    assert!(run.stderr.contains("shortened"), "{}", run.stderr);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let reasons = report["changes"].to_string();
    assert!(reasons.contains("told in the brief, 40 characters cut"), "{reasons}");
    let whole = brief(&["chat", "--max-chars", "100000"], &chat(&"x".repeat(90_000)));
    assert!(whole.stdout.contains(&"x".repeat(90_000)));
}

#[test]
fn a_bad_body_is_refused() {
    let run = brief(&["messages"], r#"{"messages":7}"#);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("messages"), "{}", run.stderr);
}
