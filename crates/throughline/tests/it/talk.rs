//! What an agent says and hears, in the three dialects: bodies, answers that came to their end, and what is in them.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Returns where a dialect is spoken.
pub fn path(dialect: &str) -> &'static str {
    match dialect {
        "chat" => "/v1/chat/completions",
        "messages" => "/v1/messages",
        _ => "/v1/responses",
    }
}

/// Returns a request that resends a history, with a tool to read files.
pub fn body(dialect: &str, model: &str, stream: bool, history: &[Value]) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    match dialect {
        "chat" => json!({"model": model, "stream": stream, "messages": history, "tools": [
            {"type": "function", "function": {"name": "read_file", "parameters": schema}}]}),
        "messages" => json!({"model": model, "stream": stream, "max_tokens": 4096, "messages": history,
            "tools": [{"name": "read_file", "input_schema": schema}]}),
        _ => json!({"model": model, "stream": stream, "input": history, "tools": [
            {"type": "function", "name": "read_file", "parameters": schema, "strict": false}]}),
    }
}

/// Returns the result of a call, as a message or an item.
pub fn result_of(dialect: &str, call: &str, result: &str) -> Value {
    match dialect {
        "chat" => json!({"role": "tool", "tool_call_id": call, "content": result}),
        "messages" => json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": result}]}),
        _ => json!({"type": "function_call_output", "call_id": call, "output": result}),
    }
}

/// Returns an answer as it is sent back with the next request.
pub fn resent(dialect: &str, answer: Value) -> Vec<Value> {
    match dialect {
        "chat" => vec![answer],
        "messages" => vec![json!({"role": "assistant", "content": answer["content"]})],
        _ => answer["output"].as_array().cloned().unwrap_or_default(),
    }
}

/// Sends a request and returns head and body, however far the body came; `None` if there is no head.
///
/// HTTP/1.0, so that the body is not in chunks and ends with the connection.
pub fn exchange(address: &str, method: &str, path: &str, body: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).ok()?;
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n{body}")
        .ok()?;
    let mut answer = Vec::new();
    // A killed gateway resets the connection; what came before counts.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_ascii_lowercase(), body.to_owned()))
}

/// Returns an answer that came to its end; of a chat answer, the message.
pub fn whole(dialect: &str, stream: bool, body: &str) -> Option<Value> {
    if stream {
        return joined(dialect, body);
    }
    let answer: Value = serde_json::from_str(body).ok()?;
    Some(if dialect == "chat" { answer["choices"][0]["message"].clone() } else { answer })
}

/// Returns the answer of a stream that came to its end, whole, in the shape of one that was not streamed.
fn joined(dialect: &str, raw: &str) -> Option<Value> {
    let last = if dialect == "messages" { "data: {\"type\":\"message_stop\"}" } else { "data: [DONE]" };
    if !raw.ends_with("\n\n") || !raw.trim_end().ends_with(last) {
        return None;
    }
    let data = raw.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    Some(match dialect {
        "chat" => joined_chat(&events),
        "messages" => joined_messages(&events),
        _ => events.last()?["response"].clone(),
    })
}

fn joined_chat(events: &[Value]) -> Value {
    let (mut content, mut calls) = (String::new(), BTreeMap::<u64, Value>::new());
    for delta in events.iter().map(|event| &event["choices"][0]["delta"]) {
        content += delta["content"].as_str().unwrap_or_default();
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let call = calls.entry(piece["index"].as_u64().unwrap()).or_insert_with(|| {
                json!({"id": piece["id"], "type": "function", "function": {"name": piece["function"]["name"], "arguments": ""}})
            });
            append(&mut call["function"]["arguments"], &piece["function"]["arguments"]);
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into_values().collect();
    }
    message
}

fn joined_messages(events: &[Value]) -> Value {
    let (mut blocks, mut input) = (Vec::<Value>::new(), json!(""));
    for event in events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"].clone()),
            "content_block_delta" if event["delta"]["text"].is_string() => {
                append(&mut blocks.last_mut().unwrap()["text"], &event["delta"]["text"]);
            }
            "content_block_delta" => append(&mut input, &event["delta"]["partial_json"]),
            "content_block_stop" if blocks.last().unwrap()["type"] == "tool_use" => {
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(input.as_str().unwrap()).unwrap();
                input = json!("");
            }
            _ => {}
        }
    }
    json!({"content": blocks})
}

fn append(to: &mut Value, more: &Value) {
    *to = json!(to.as_str().unwrap_or_default().to_owned() + more.as_str().unwrap_or_default());
}

/// Returns the call and the text of an answer.
pub fn said(dialect: &str, answer: &Value) -> (Option<String>, String) {
    let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let (calls, texts): (Vec<Value>, Vec<Value>) = match dialect {
        "chat" => (
            list(&answer["tool_calls"]).iter().map(|call| call["id"].clone()).collect(),
            vec![answer["content"].clone()],
        ),
        "messages" => {
            let blocks = list(&answer["content"]);
            let uses = blocks.iter().filter(|block| block["type"] == "tool_use");
            (
                uses.map(|block| block["id"].clone()).collect(),
                blocks.iter().map(|block| block["text"].clone()).collect(),
            )
        }
        _ => {
            let items = list(&answer["output"]);
            (
                items.iter().filter_map(|item| item.get("call_id").cloned()).collect(),
                items
                    .iter()
                    .flat_map(|item| list(&item["content"]))
                    .map(|part| part["text"].clone())
                    .collect(),
            )
        }
    };
    let text = texts.iter().filter_map(Value::as_str).collect();
    (calls.first().and_then(Value::as_str).map(str::to_owned), text)
}
