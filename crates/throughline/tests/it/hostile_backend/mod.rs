//! A backend that means harm: whatever it sends, the client gets an answer or an error in its own dialect, the gateway
//! lives and stays small, and the next request is served.
//!
//! Each case is a line of a table: what it is called, and what the backend writes. Nothing here is timed but by limits
//! of the gateway itself, and by one generous limit beyond which a test is taken to hang.

mod backend;
mod floods;
mod secrets;
mod tricks;

use crate::talk::path;
use backend::{Act, Backend, Gateway, bytes};
use serde_json::{Value, json};

const DIALECTS: [&str; 3] = ["chat", "messages", "responses"];
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
const WORD: &str = "all is well";

/// A hostile backend of each dialect, and a gateway before them.
struct Scene {
    backend: Backend,
    gateway: Gateway,
}

impl Scene {
    /// Sets the scene; `lines` open the configuration, `own` goes to each backend, which is called by its dialect.
    fn new(name: &str, lines: &str, own: &str) -> Self {
        let backend = Backend::start();
        Self::before(backend, name, lines, own)
    }

    fn before(backend: Backend, name: &str, lines: &str, own: &str) -> Self {
        let mut toml = format!("active = \"chat\"\n{lines}\n");
        for dialect in DIALECTS {
            toml += &format!(
                "[[backends]]\nname = \"{dialect}\"\ndialect = \"{dialect}\"\nbase_url = \"http://{}/v1\"\ndefault_model = \"m\"\n{own}\n",
                backend.address
            );
        }
        let gateway = Gateway::start(name, &toml);
        Self { backend, gateway }
    }

    /// Has a client of one dialect ask a backend of another.
    fn ask(&self, client: &str, backend: &str, stream: bool) -> Told {
        self.ask_with(client, backend, stream, &[])
    }

    fn ask_with(&self, client: &str, backend: &str, stream: bool, headers: &[(&str, &str)]) -> Told {
        let body = request(client, backend, stream, "hello");
        let (status, head, body) = self.gateway.ask(path(client), headers, &body.to_string());
        Told { dialect: client.to_owned(), stream, status, head, body }
    }

    /// Asserts that a backend which behaves is passed on.
    fn assert_serves(&self, after: &str) {
        for dialect in DIALECTS {
            self.backend.act(fine(dialect));
            let told = self.ask(dialect, dialect, false);
            assert!(
                told.status == 200 && told.body.contains(WORD),
                "after {after}: {} {}",
                told.status,
                told.body
            );
        }
    }
}

fn request(client: &str, backend: &str, stream: bool, words: &str) -> Value {
    let history = json!([{"role": "user", "content": words}]);
    let mut body = json!({"model": format!("{backend}/m"), "stream": stream});
    match client {
        "responses" => body["input"] = history,
        _ => body["messages"] = history,
    }
    if client == "messages" {
        body["max_tokens"] = json!(100);
    }
    body
}

/// What a client was told.
struct Told {
    dialect: String,
    stream: bool,
    status: u16,
    head: String,
    body: String,
}

impl Told {
    /// Asserts that the client was told of a failure as its dialect has it, and not that the answer is complete.
    fn assert_failed(&self, case: &str) {
        let shown: String = self.body.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
        let case = format!("{case} ({}, stream {}): {} …{shown}", self.dialect, self.stream, self.status);
        if self.status >= 400 {
            let error: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {case}"));
            assert!(error["error"]["message"].is_string(), "{case}");
            assert_eq!(error["type"] == "error", self.dialect == "messages", "{case}");
            return;
        }
        assert_eq!(self.status, 200, "{case}");
        if !self.stream {
            // A response that failed is an answer of its dialect.
            let answer: Value =
                serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {case}"));
            assert_eq!(answer["status"], "failed", "{case}");
            return;
        }
        let last = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let last: Vec<&str> = last.filter(|data| *data != "[DONE]").collect();
        let last: Value = serde_json::from_str(last.last().expect("an event")).unwrap();
        let is_failure = match self.dialect.as_str() {
            "responses" => last["type"] == "response.failed" || last["type"] == "error",
            "messages" => last["type"] == "error",
            _ => last["error"].is_object(),
        };
        assert!(is_failure, "{case}");
        for word in ["\"finish_reason\":\"stop\"", "\"message_stop\"", "\"response.completed\""] {
            assert!(!self.body.contains(word), "{case}: {word}");
        }
    }
}

/// An answer as it should be.
fn fine(dialect: &str) -> Act {
    whole(&answer(dialect, "fine", WORD).to_string())
}

fn whole(body: &str) -> Act {
    bytes(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// A whole answer that says something.
fn answer(dialect: &str, id: &str, words: &str) -> Value {
    match dialect {
        "chat" => json!({"id": id, "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}),
        "messages" => json!({"id": id, "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": words}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}}),
        _ => {
            json!({"id": id, "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [
            {"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": words, "annotations": []}]}],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
        }
    }
}

/// The events of a streamed answer up to its first word, and what ends it.
fn streamed(dialect: &str, id: &str) -> (Vec<Value>, Vec<Value>) {
    match dialect {
        "chat" => (vec![delta(dialect, "")], vec![chunk(&json!({}), Some("stop"))]),
        "messages" => (
            vec![
                json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant",
                    "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ],
            vec![
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
                json!({"type": "message_stop"}),
            ],
        ),
        _ => {
            let response =
                json!({"id": id, "object": "response", "model": "m", "status": "in_progress", "output": []});
            let ended = json!({"id": id, "object": "response", "model": "m", "status": "completed"});
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
            (
                vec![
                    json!({"type": "response.created", "sequence_number": 0, "response": response}),
                    json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
                    json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0,
                        "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
                ],
                vec![json!({"type": "response.completed", "sequence_number": 9, "response": ended})],
            )
        }
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
}

/// A piece of text, as an event.
fn delta(dialect: &str, text: &str) -> Value {
    match dialect {
        "chat" => chunk(&json!({"content": text}), None),
        "messages" => json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}}),
        _ => json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
            "content_index": 0, "delta": text}),
    }
}

/// Writes events as a stream has them.
fn sse(events: &[Value]) -> String {
    let event = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}
