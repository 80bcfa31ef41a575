//! A gateway that is killed at random moments, again and again, keeps what its clients saw completed.
//!
//! Clients of all three dialects have tool conversations, streamed and not, with a `throughline serve` that
//! is killed after so many completed answers, wherever the others are just then, and started again on the
//! same data. An answer counts as completed when its last event, or the last byte of its body, arrived.

use crate::cli::scratch;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

/// Fifty in all: two tests of twenty-five, so that each is done in a few seconds.
const ROUNDS: u64 = 25;
/// One for each dialect, streamed and not.
const CLIENTS: [(&str, bool); 6] = [
    ("chat", false),
    ("chat", true),
    ("messages", false),
    ("messages", true),
    ("responses", false),
    ("responses", true),
];

/// A gateway that runs until it is killed.
struct Victim {
    child: Child,
    address: String,
}

/// An answer of which a client saw the end.
struct Completed {
    conversation: String,
    call: Option<String>,
    text: String,
    /// What the client had told the gateway that the tool returned.
    result: Option<String>,
}

/// A client, and what it has seen completed.
struct Client<'a> {
    address: &'a str,
    dialect: &'static str,
    stream: bool,
    history: Vec<Value>,
    done: Sender<Completed>,
}

impl Victim {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data", "data"])
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("it did not start: {line:?}"));
        let address = rest.split(',').next().unwrap().trim().to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str) -> Value {
        let (head, body) = exchange(&self.address, "GET", path, "").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Sends SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Client<'_> {
    /// Has tool conversations until the gateway is gone.
    fn talk(mut self, name: &str) {
        for number in 0.. {
            self.history =
                vec![json!({"role": "user", "content": format!("Read the file {name}-{number}.txt")})];
            let Some(call) = self.ask(None) else { return };
            let result = format!("what {name}-{number} says");
            let call = call.unwrap_or_else(|| panic!("{name} was not called upon: {:?}", self.history));
            self.history.push(match self.dialect {
                "chat" => json!({"role": "tool", "tool_call_id": call, "content": result}),
                "messages" => json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": call, "content": result}]}),
                _ => json!({"type": "function_call_output", "call_id": call, "output": result}),
            });
            if self.ask(Some(result)).is_none() {
                return;
            }
        }
    }

    /// Sends the conversation; `None` when the answer did not come to its end, else the call in it.
    fn ask(&mut self, result: Option<String>) -> Option<Option<String>> {
        let path = match self.dialect {
            "chat" => "/v1/chat/completions",
            "messages" => "/v1/messages",
            _ => "/v1/responses",
        };
        let (head, body) = exchange(self.address, "POST", path, &self.body().to_string())?;
        let answer = whole(self.dialect, self.stream, &body)?;
        assert!(head.contains(" 200 "), "{head} {body}");
        let conversation = head.lines().find_map(|line| line.strip_prefix("x-throughline-conversation: "));
        let conversation = conversation.unwrap_or_else(|| panic!("{head}")).to_owned();
        let (call, text) = said(self.dialect, &answer);
        match self.dialect {
            "chat" => self.history.push(answer),
            "messages" => self.history.push(json!({"role": "assistant", "content": answer["content"]})),
            _ => self.history.extend(answer["output"].as_array().unwrap().iter().cloned()),
        }
        // Nobody listens any more once enough was seen.
        let _ = self.done.send(Completed { conversation, call: call.clone(), text, result });
        Some(call)
    }

    fn body(&self) -> Value {
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let (history, stream, model) = (&self.history, self.stream, self.dialect);
        match self.dialect {
            "chat" => json!({"model": model, "stream": stream, "messages": history, "tools": [
                {"type": "function", "function": {"name": "read_file", "parameters": schema}}]}),
            "messages" => json!({"model": model, "stream": stream, "max_tokens": 4096, "messages": history,
                "tools": [{"name": "read_file", "input_schema": schema}]}),
            _ => json!({"model": model, "stream": stream, "input": history, "tools": [
                {"type": "function", "name": "read_file", "parameters": schema, "strict": false}]}),
        }
    }
}

/// Sends a request and returns head and body, however far the body came; `None` if there is no head.
///
/// HTTP/1.0, so that the body is not in chunks and ends with the connection.
fn exchange(address: &str, method: &str, path: &str, body: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
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
fn whole(dialect: &str, stream: bool, body: &str) -> Option<Value> {
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
fn said(dialect: &str, answer: &Value) -> (Option<String>, String) {
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

/// Lets the clients talk until so many answers are completed, kills the gateway, and returns them all.
fn one_round(folder: &Path, round: u64, answers: usize) -> Vec<Completed> {
    let victim = Victim::start(folder);
    let address = victim.address.clone();
    let (done, seen) = channel();
    std::thread::scope(|scope| {
        for (dialect, stream) in CLIENTS {
            let (address, done) = (&address, done.clone());
            let client = Client { address, dialect, stream, history: Vec::new(), done };
            scope.spawn(move || client.talk(&format!("{dialect}-{stream}-{round}")));
        }
        drop(done);
        let mut completed: Vec<Completed> = seen.iter().take(answers).collect();
        victim.kill();
        // What came through before it died counts, too.
        completed.extend(seen);
        assert!(completed.len() >= answers, "the gateway ended by itself");
        completed
    })
}

/// Asserts that the record has an answer, and with it the pair that led to it.
fn check(victim: &Victim, completed: &Completed) {
    let id = &completed.conversation;
    let whole = victim.get(&format!("/api/conversations/{id}"));
    let entries = whole["entries"].as_array().unwrap();
    let has = |field: &str, value: &str| entries.iter().any(|entry| entry[field] == value);
    if !completed.text.is_empty() {
        assert!(has("text", &completed.text), "{id} lacks {:?}: {whole}", completed.text);
    }
    if let Some(call) = &completed.call {
        assert!(has("call_id", call), "{id} lacks {call}: {whole}");
    }
    let Some(result) = &completed.result else { return };
    let pairs = victim.get(&format!("/api/conversations/{id}/pairs"));
    let pairs = pairs["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 1, "{id}: {pairs:?}");
    assert_eq!(
        (&pairs[0]["state"], &pairs[0]["result"]["text"]),
        (&json!("ok"), &json!(result)),
        "{id}: {pairs:?}"
    );
    assert_eq!(pairs[0]["call"]["call_id"], pairs[0]["result"]["call_id"], "{id}");
}

fn fresh(name: &str) -> PathBuf {
    let folder = scratch(&format!("killed-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let backend = |dialect: &str| {
        format!(
            "[[backends]]\nname = \"{dialect}\"\ndialect = \"{dialect}\"\nbase_url = \"sim:\"\napi_key = \"none\"\ndefault_model = \"m\"\n"
        )
    };
    let config: String = ["chat", "messages", "responses"].map(backend).concat();
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    folder
}

fn kill_again_and_again(name: &str, seed: u64) {
    let folder = fresh(name);
    let mut random = seed;
    let mut completed = Vec::new();
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let answers = 1 + usize::try_from(random >> 33).unwrap() % 24;
        completed.extend(one_round(&folder, round, answers));
    }
    let victim = Victim::start(&folder);
    completed.iter().for_each(|completed| check(&victim, completed));
    victim.kill();
}

#[test]
fn nothing_completed_is_missing_after_a_gateway_was_killed() {
    kill_again_and_again("first", 1);
}

#[test]
fn nothing_completed_is_missing_after_a_gateway_was_killed_at_other_moments() {
    kill_again_and_again("second", 2);
}
