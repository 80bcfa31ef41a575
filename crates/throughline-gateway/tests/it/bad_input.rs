//! Bad input: the client's own envelope, the right status, the field by name; and nothing breaks.

use crate::house::{House, one_of_each};
use serde_json::Value;

/// Path, body, and the field that is to be named.
const BAD: &[(&str, &str, &str)] = &[
    ("chat/completions", "", ""),
    ("chat/completions", "{", ""),
    ("chat/completions", "[]", ""),
    ("chat/completions", "null", ""),
    ("chat/completions", "{} {}", ""),
    ("chat/completions", r#"{"messages": 7}"#, "messages"),
    ("chat/completions", r#"{"messages": {}}"#, "messages"),
    ("chat/completions", r#"{"messages": [7]}"#, "messages[0]"),
    ("chat/completions", r#"{"messages": [{"role": 7}]}"#, "messages[0].role"),
    ("chat/completions", r#"{"messages": [{"role": "user", "content": 7}]}"#, "messages[0].content"),
    ("chat/completions", r#"{"messages": [{"role": "user", "content": [7]}]}"#, "messages[0].content[0]"),
    ("chat/completions", r#"{"messages": [{"role":"assistant","tool_calls": 7}]}"#, "messages[0].tool_calls"),
    ("chat/completions", r#"{"messages": [], "model": 7}"#, "model"),
    ("chat/completions", r#"{"messages": [], "tools": 7}"#, "tools"),
    ("chat/completions", r#"{"messages": [], "stream": "yes"}"#, "stream"),
    ("chat/completions", r#"{"messages": [], "temperature": "hot"}"#, "temperature"),
    ("messages", "", ""),
    ("messages", "\u{7f}", ""),
    ("messages", "[1]", ""),
    ("messages", r#"{"messages": "hi"}"#, "messages"),
    ("messages", r#"{"messages": [[]]}"#, "messages[0]"),
    ("messages", r#"{"messages": [{"role": null}]}"#, "messages[0]"),
    ("messages", r#"{"messages": [{"role": "user", "content": {}}]}"#, "messages[0].content"),
    ("messages", r#"{"messages": [{"role": "user", "content": [{"type": 7}]}]}"#, "messages[0].content[0]"),
    (
        "messages",
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}"#,
        "messages[0].content[0].text",
    ),
    ("messages", r#"{"messages": [], "max_tokens": "many"}"#, "max_tokens"),
    ("messages", r#"{"messages": [], "system": 7}"#, "system"),
    ("messages", r#"{"messages": [], "tools": {}}"#, "tools"),
    ("messages", r#"{"messages": [], "tools": [7]}"#, "tools[0]"),
    ("messages", r#"{"messages": [], "stream": 1}"#, "stream"),
    ("messages", r#"{"messages": [], "stop_sequences": 7}"#, "stop_sequences"),
    ("responses", "", ""),
    ("responses", "{\"input\":", ""),
    ("responses", "7", ""),
    ("responses", r#"{"input": 7}"#, "input"),
    ("responses", r#"{"input": [7]}"#, "input[0]"),
    ("responses", r#"{"input": [{"type": 7}]}"#, "input[0]"),
    ("responses", r#"{"input": [{"role": "user", "content": 7}]}"#, "input[0].content"),
    (
        "responses",
        r#"{"input": [{"type": "function_call", "call_id": 7, "name": "a", "arguments": ""}]}"#,
        "input[0].call_id",
    ),
    (
        "responses",
        r#"{"input": [{"type": "function_call_output", "call_id": "c", "output": 7}]}"#,
        "input[0].output",
    ),
    ("responses", r#"{"input": "x", "instructions": 7}"#, "instructions"),
    ("responses", r#"{"input": "x", "tools": 7}"#, "tools"),
    ("responses", r#"{"input": "x", "max_output_tokens": "many"}"#, "max_output_tokens"),
    ("responses", r#"{"input": "x", "stream": "yes"}"#, "stream"),
    ("responses", r#"{"input": "x", "previous_response_id": 7}"#, "previous_response_id"),
];

#[tokio::test]
async fn bad_input_is_refused_in_the_clients_own_words() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (path, body, field) in BAD {
        let response = http.post(format!("{}/v1/{path}", house.url)).body(*body).send().await.unwrap();
        assert_eq!(response.status(), 400, "{path} {body}");
        let text = response.text().await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let error = &answer["error"];
        assert!(
            error["code"].as_str().is_some_and(|code| code.starts_with("throughline_")),
            "{path} {body}: {text}"
        );
        assert!(error["message"].as_str().unwrap().contains(field), "{path} {body}: {text}");
        assert_eq!(answer["type"] == "error", *path == "messages", "{path} {body}: {text}");
    }
    for sim in house.sims.values() {
        assert_eq!(sim.recorded().len(), 0, "bad input reached a backend");
    }
    house.stop().await;
}

#[tokio::test]
async fn unknown_paths_backends_and_encodings_say_what_is_wrong() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    let missing = http.get(format!("{}/v1/nothing", house.url)).send().await.unwrap();
    assert_eq!(missing.status(), 404);
    let body = r#"{"model":"x","input":"hello"}"#;
    let request = http.post(format!("{}/v1/responses", house.url)).body(body);
    let unknown = request.header("x-throughline-backend", "nobody").send().await.unwrap();
    assert_eq!(unknown.status(), 400);
    assert!(unknown.text().await.unwrap().contains("messages"), "names the backends that there are");
    let request = http.post(format!("{}/v1/responses", house.url)).body(body);
    let packed = request.header("content-encoding", "br").send().await.unwrap();
    assert_eq!(packed.status(), 400);
    let request = http.post(format!("{}/v1/responses", house.url)).body(body);
    let laden = request.header("x-ballast", "b".repeat(70_000)).send().await.unwrap();
    assert_eq!(laden.status(), 413);
    let request = http.post(format!("{}/v1/responses", house.url)).body(body);
    let elsewhere = request.header("host", "evil.example").send().await.unwrap();
    assert_eq!(elsewhere.status(), 403);
    house.stop().await;
}
