//! Bad input: the client's own envelope, the right status, the field by name; and nothing breaks.

use crate::bad_fields::{CHAT, MESSAGES, RESPONSES};
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

/// A body, packed.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\x4d\x2d\x2e\x4e\x4c\x4f\x2d\x56\xb2\x8a\x8e\xd5\x51\xca\xcc\x2b\x28\x2d\x51\xb2\x52\xaa\x50\xaa\x05\x00\x47\x4e\xa8\x6c\x1b\x00\x00\x00";

/// Bytes that are no text, no JSON, or packed as they are not; with what is said about them.
fn bodies() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let with = |value: &str| format!(r#"{{"messages":[],"input":"x","x":{value}}}"#).into_bytes();
    let mut not_text = with("\"?\"");
    let at = not_text.iter().position(|byte| *byte == b'?').unwrap();
    not_text[at] = 0xff;
    let invalid = "throughline_invalid_request";
    vec![
        (not_text, "throughline_invalid_body", "not UTF-8 (at byte"),
        (with(&format!("{}{}", "[".repeat(200), "]".repeat(200))), invalid, "nested deeper than 128"),
        (with(&"{\"a\":".repeat(200)), invalid, "nested deeper than 128"),
        (with("01"), invalid, "invalid number"),
        (with("1."), invalid, "invalid number"),
        (with("-"), invalid, "invalid number"),
        (with("NaN"), invalid, "expected a value"),
        (with("\"\n\""), invalid, "must be escaped"),
        (with(r#""\q""#), invalid, "invalid escape"),
        (with("1").iter().copied().chain(*b"x").collect(), invalid, "(at byte"),
    ]
}

pub const PATHS: [&str; 3] = ["chat/completions", "messages", "responses"];

/// Asserts that a request was refused in the client's own envelope, and returns the error in it.
pub async fn refused(path: &str, response: reqwest::Response, body: &str) -> Value {
    assert_eq!(response.status(), 400, "{path} {body}");
    let text = response.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(answer["type"] == "error", path == "messages", "{path} {body}: {text}");
    assert_eq!(answer["error"]["type"], "invalid_request_error", "{path} {body}: {text}");
    let code = answer["error"]["code"].as_str();
    assert!(code.is_some_and(|code| code.starts_with("throughline_")), "{path} {body}: {text}");
    answer["error"].clone()
}

pub fn assert_nothing_sent(house: &House) {
    for sim in house.sims.values() {
        assert_eq!(sim.recorded().len(), 0, "bad input reached a backend");
    }
}

#[tokio::test]
async fn bad_input_is_refused_in_the_clients_own_words() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (path, body, field) in BAD {
        let response = http.post(format!("{}/v1/{path}", house.url)).body(*body).send().await.unwrap();
        let error = refused(path, response, body).await;
        assert!(error["message"].as_str().unwrap().contains(field), "{path} {body}: {error}");
    }
    assert_nothing_sent(&house);
    house.stop().await;
}

#[tokio::test]
async fn what_is_wrong_deep_inside_is_named_to_the_letter() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (path, table) in PATHS.into_iter().zip([CHAT, MESSAGES, RESPONSES]) {
        for (body, field) in table {
            let response = http.post(format!("{}/v1/{path}", house.url)).body(*body).send().await.unwrap();
            let error = refused(path, response, body).await;
            assert_eq!(error["code"], "throughline_invalid_request", "{path} {body}");
            let message = error["message"].as_str().unwrap();
            assert_eq!(message.split(": ").next(), Some(*field), "{path} {body}: {message}");
            // The envelope of messages has no place for it but the message.
            if path != "messages" {
                assert_eq!(error["param"], *field, "{path} {body}");
            }
        }
    }
    assert_nothing_sent(&house);
    house.stop().await;
}

#[tokio::test]
async fn what_is_no_json_is_refused_with_the_place() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for path in PATHS {
        for (body, code, words) in bodies() {
            let shown = String::from_utf8_lossy(&body).into_owned();
            let response = http.post(format!("{}/v1/{path}", house.url)).body(body).send().await.unwrap();
            let error = refused(path, response, &shown).await;
            assert_eq!(error["code"], code, "{path} {shown}");
            assert!(error["message"].as_str().unwrap().contains(words), "{path} {shown}: {error}");
        }
        for (encoding, packed) in [("gzip", &GZIP[..GZIP.len() - 9]), ("gzip", b"{}"), ("zstd", b"{}")] {
            let request = http.post(format!("{}/v1/{path}", house.url)).body(packed);
            let response = request.header("content-encoding", encoding).send().await.unwrap();
            let error = refused(path, response, encoding).await;
            assert_eq!(error["code"], "throughline_invalid_body");
            assert!(error["message"].as_str().unwrap().contains(encoding), "{path}: {error}");
        }
    }
    assert_nothing_sent(&house);
    house.stop().await;
}

#[tokio::test]
async fn half_a_surrogate_pair_is_no_reason_to_refuse() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    for (path, field) in PATHS.into_iter().zip(["messages", "messages", "input"]) {
        for to in ["chat", "messages", "responses"] {
            let body = format!(
                r#"{{"model":"{to}","max_tokens":99,"{field}":[{{"role":"user","content":"half \ud83d here"}}]}}"#
            );
            let body = if path == "responses" { body.replace("\"max_tokens\":99,", "") } else { body };
            let request = http.post(format!("{}/v1/{path}", house.url)).body(body);
            let response = request.send().await.unwrap();
            let sent = house.recorded(to).pop().expect("it was not sent").body;
            assert_eq!(response.status(), 200, "{path} to {to}: {sent}");
            assert!(sent.contains("half \u{fffd} here"), "{path} to {to}: {sent}");
        }
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
