//! What the chat of VS Code sends to a custom endpoint, seen on the wire of 1.139 and in reports of the year before.
//!
//! Each request has the shape that the editor gives it; only texts and tools are fewer.

use crate::client::{Answer, Client};
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::Script;

const BACKENDS: [&str; 3] = ["responses", "messages", "chat"];

fn tool() -> Value {
    json!({"name": "read_file", "description": "Read a file.", "parameters": {"type": "object",
        "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}, "type": "function", "strict": false})
}

fn opening() -> Value {
    json!([
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "You are an assistant."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_info/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read the file notes.txt"}]},
    ])
}

/// A Responses request as the editor sends it: no `store`, `truncation` spelled out, everything streamed.
fn responses(backend: &str, input: &Value, previous: Option<&str>) -> Value {
    let mut body = json!({"model": format!("{backend}/sim"), "input": input, "stream": true,
        "max_output_tokens": 16000, "truncation": "disabled", "tools": [tool()]});
    if let Some(previous) = previous {
        body["previous_response_id"] = previous.into();
    }
    body
}

fn result(answer: &Answer, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": answer.calls(Dialect::Responses)[0].id, "output": text})
}

fn client(house: &House, dialect: Dialect) -> Client {
    let mut client = Client::new(&house.url, dialect);
    client.stream = true;
    client
}

fn id(answer: &Answer) -> String {
    answer.body["id"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_second_turn_goes_on_from_a_response_that_nobody_asked_to_store() {
    for backend in BACKENDS {
        let house = House::new(one_of_each()).await;
        let editor = client(&house, Dialect::Responses);
        let first = editor.post(&responses(backend, &opening(), None)).await;
        let only_new = json!([result(&first, "The word is THROUGHLINE-7.")]);
        let second = editor.post(&responses(backend, &only_new, Some(&id(&first)))).await;
        assert_eq!(second.status, 200, "{backend}: {}", second.raw);
        assert!(second.text(Dialect::Responses).contains("THROUGHLINE-7"), "{backend}: {}", second.raw);
        // The next turn of the user's, behind the answer.
        let asked = json!([{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "From memory: what does it say about THROUGHLINE-7?"}]}]);
        let third = editor.post(&responses(backend, &asked, Some(&id(&second)))).await;
        assert!(third.text(Dialect::Responses).contains("THROUGHLINE-7"), "{backend}: {}", third.raw);
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn a_summary_and_the_agent_go_on_from_the_same_response() {
    let house = House::new(one_of_each()).await;
    let editor = client(&house, Dialect::Responses);
    for backend in BACKENDS {
        let first = editor.post(&responses(backend, &opening(), None)).await;
        let previous = id(&first);
        let answered = json!([result(&first, "ALPHA-1")]);
        let agent = editor.post(&responses(backend, &answered, Some(&previous))).await;
        let asks_for_summary = json!([answered[0], {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Summarize the conversation in <summary> tags."}]}]);
        let mut summary = responses(backend, &asks_for_summary, Some(&previous));
        summary["tool_choice"] = "none".into();
        let summary = editor.post(&summary).await;
        assert_eq!((agent.status, summary.status), (200, 200), "{backend}: {} {}", agent.raw, summary.raw);
        assert!(summary.calls(Dialect::Responses).is_empty(), "{backend}: {}", summary.raw);
        // The agent's own branch knows nothing of the summary.
        let next = json!([{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "From memory: what about ALPHA-1?"}]}]);
        let next = editor.post(&responses(backend, &next, Some(&id(&agent)))).await;
        assert!(next.text(Dialect::Responses).contains("ALPHA-1"), "{backend}: {}", next.raw);
        let sent = house.recorded(backend).pop().unwrap().body;
        assert!(!sent.contains("<summary>"), "{backend}: {sent}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn items_come_back_with_ids_that_have_no_prefix() {
    let house = House::new(one_of_each()).await;
    let editor = client(&house, Dialect::Responses);
    for backend in BACKENDS {
        let mut input = opening();
        input.as_array_mut().unwrap().extend([
            json!({"type": "message", "role": "assistant", "id": "0", "status": "completed",
                "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]}),
            json!({"type": "function_call", "id": "f9a1", "call_id": "1", "name": "read_file",
                "arguments": "{\"filePath\":\"notes.txt\"}"}),
            json!({"type": "function_call_output", "call_id": "1", "output": "ALPHA-2"}),
        ]);
        let answer = editor.post(&responses(backend, &input, None)).await;
        assert_eq!(answer.status, 200, "{backend}: {}", answer.raw);
        assert!(answer.text(Dialect::Responses).contains("ALPHA-2"), "{backend}: {}", answer.raw);
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_response_that_nobody_knows_is_named_so_that_the_editor_sends_everything_again() {
    let house = House::new(vec![Room::new("responses", Dialect::Responses)]).await;
    let editor = client(&house, Dialect::Responses);
    let answer = editor.post(&responses("responses", &opening(), Some("resp_of_another_day"))).await;
    assert_eq!(answer.body["error"]["code"], "previous_response_not_found", "{}", answer.raw);
    house.stop().await;
}

/// Chat Completions as the editor sends it: an empty text beside calls, `n`, and usage asked for.
fn chat(backend: &str, messages: &Value) -> Value {
    let tool = tool();
    let function =
        json!({"name": tool["name"], "description": tool["description"], "parameters": tool["parameters"]});
    json!({"model": format!("{backend}/sim"), "messages": messages, "temperature": 0.1, "top_p": 1, "stream": true,
        "n": 1, "stream_options": {"include_usage": true}, "tools": [{"type": "function", "function": function}]})
}

#[tokio::test]
async fn empty_lists_of_calls_swallow_no_answer() {
    let house = House::new(one_of_each()).await;
    let editor = client(&house, Dialect::Chat);
    for backend in BACKENDS {
        let messages = json!([
            {"role": "system", "content": "You are an assistant."},
            {"role": "user", "content": "Read the file notes.txt"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function":
                {"name": "read_file", "arguments": "{\"filePath\":\"notes.txt\"}"}, "type": "function"}]},
            {"role": "tool", "content": "ALPHA-3", "tool_call_id": "call_1"},
            {"role": "assistant", "content": "It says ALPHA-3.", "tool_calls": []},
            {"role": "user", "content": "From memory: what about ALPHA-3?"},
        ]);
        let answer = editor.post(&chat(backend, &messages)).await;
        assert_eq!(answer.status, 200, "{backend}: {}", answer.raw);
        assert!(answer.text(Dialect::Chat).contains("ALPHA-3"), "{backend}: {}", answer.raw);
        assert!(answer.raw.contains("\"usage\""), "{backend}: the meter reads it: {}", answer.raw);
        assert!(house.recorded(backend).pop().unwrap().body.contains("It says ALPHA-3."));
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_backend_that_says_it_calls_nothing_is_heard() {
    // Some servers put `tool_calls: []` beside the words of an answer.
    let said = |delta: Value, finish: Value| {
        json!({"data": {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "sim",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}})
    };
    let script = json!({"turns": [{"events": [
        said(json!({"role": "assistant", "content": "It says ", "tool_calls": []}), Value::Null),
        said(json!({"content": "ALPHA-4.", "tool_calls": []}), Value::Null),
        said(json!({"tool_calls": []}), json!("stop")),
        {"data": "[DONE]"},
    ]}], "then": "repeat"});
    let mut room = Room::new("chat", Dialect::Chat);
    room.options.script = Some(Script::parse(&script.to_string()).unwrap());
    let house = House::new(vec![room]).await;
    let answer = client(&house, Dialect::Responses).post(&responses("chat", &opening(), None)).await;
    assert_eq!(answer.text(Dialect::Responses), "It says ALPHA-4.", "{}", answer.raw);
    assert!(answer.calls(Dialect::Responses).is_empty(), "{}", answer.raw);
    house.stop().await;
}

#[tokio::test]
async fn the_effort_of_a_messages_request_reaches_every_backend() {
    let house = House::new(one_of_each()).await;
    let editor = client(&house, Dialect::Messages);
    for (backend, expected) in
        [("responses", "\"effort\":\"high\""), ("chat", "\"reasoning_effort\":\"high\"")]
    {
        let body = json!({"model": format!("{backend}/sim"), "max_tokens": 16000, "stream": true,
            "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
            "system": [{"type": "text", "text": "You are an assistant."}],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]}]});
        let answer = editor.post(&body).await;
        assert_eq!(answer.status, 200, "{backend}: {}", answer.raw);
        let sent = house.recorded(backend).pop().unwrap().body;
        assert!(sent.contains(expected), "{backend}: {sent}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}
