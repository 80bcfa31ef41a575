//! A client of the simulated backend, in any dialect.

use serde_json::{Value, json};
use throughline_core::{Assembler, Call, Dialect, Reply};
use throughline_sim::{Script, Sim, SimOptions};
use throughline_wire::{StreamDecoder, decode_reply};

/// A running backend and a client of it.
pub struct Client {
    pub sim: Sim,
    http: reqwest::Client,
}

/// An answer, whatever it is.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// The body, as far as it came.
    pub body: Vec<u8>,
    /// Whether it came to its end.
    pub is_whole: bool,
}

impl Client {
    pub async fn new(options: SimOptions) -> Self {
        Self { sim: Sim::start(options).await.expect("a free port"), http: reqwest::Client::new() }
    }

    pub async fn scripted(script: &str) -> Self {
        let script = Script::parse(script).expect("a valid script");
        Self::new(SimOptions { script: Some(script), ..SimOptions::default() }).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(reqwest::Method::POST, path).body(body.to_string())).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(reqwest::Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(reqwest::Method::DELETE, path)).await
    }

    pub fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.sim.address());
        let request = self.http.request(method, url).header("content-type", "application/json");
        if path.starts_with("/v1/messages") {
            request.header("anthropic-version", "2023-06-01")
        } else {
            request
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let mut response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        let is_whole = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        Answer { status, headers, body, is_whole }
    }

    /// Asks in a dialect, and reads the answer.
    pub async fn ask(&self, dialect: Dialect, body: &Value) -> Reply {
        let answer = self.post(path(dialect), body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        if body["stream"] == true { answer.streamed(dialect) } else { answer.reply(dialect) }
    }
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn reply(&self, dialect: Dialect) -> Reply {
        decode_reply(dialect, self.text()).expect("an answer of the dialect")
    }

    pub fn streamed(&self, dialect: Dialect) -> Reply {
        let mut decoder = StreamDecoder::new(dialect);
        let mut frames = Vec::new();
        decoder.feed(&self.body, &mut frames).expect("no event is too large");
        decoder.finish(&mut frames);
        let mut assembler = Assembler::new(dialect);
        frames.iter().for_each(|frame| assembler.handle_frame(frame));
        assembler.finish()
    }

    /// Returns the error message, wherever the dialect has it, if this is a refusal with that status.
    #[track_caller]
    pub fn refusal(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["error"]["message"].as_str().expect("an error envelope").to_owned()
    }
}

pub const fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Messages => "/v1/messages",
        Dialect::Responses => "/v1/responses",
    }
}

/// Returns a request in which the user says something, with a tool that reads files.
pub fn request(dialect: Dialect, text: &str, stream: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let said = json!([{"role": "user", "content": text}]);
    match dialect {
        Dialect::Chat if stream => json!({
            "model": "sim", "stream": true, "stream_options": {"include_usage": true}, "messages": said,
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": schema}}],
        }),
        Dialect::Chat => json!({
            "model": "sim", "messages": said,
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": schema}}],
        }),
        Dialect::Messages => json!({
            "model": "sim", "stream": stream, "max_tokens": 4096, "messages": said,
            "tools": [{"name": "read_file", "input_schema": schema}],
        }),
        Dialect::Responses => json!({
            "model": "sim", "stream": stream, "input": said,
            "tools": [{"type": "function", "name": "read_file", "parameters": schema, "strict": false}],
        }),
    }
}

/// Returns the field of a request that holds the conversation.
pub const fn list(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
    }
}

/// Adds calls and their results to a request.
pub fn add_pairs(dialect: Dialect, body: &mut Value, pairs: &[(&Call, &str)]) {
    let list = body[list(dialect)].as_array_mut().expect("a list of messages or items");
    let called = |of: fn(&Call) -> Value| pairs.iter().map(|(call, _)| of(call)).collect::<Vec<_>>();
    match dialect {
        Dialect::Chat => {
            let calls = called(|call| {
                json!({"id": *call.id, "type": "function",
                    "function": {"name": *call.name, "arguments": **call.input.text()}})
            });
            list.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            list.extend(
                pairs.iter().map(
                    |(call, result)| json!({"role": "tool", "tool_call_id": *call.id, "content": result}),
                ),
            );
        }
        Dialect::Messages => {
            let calls = called(|call| {
                let input: Value = serde_json::from_str(call.input.text()).expect("arguments are JSON");
                json!({"type": "tool_use", "id": *call.id, "name": *call.name, "input": input})
            });
            list.push(json!({"role": "assistant", "content": calls}));
            let results: Vec<_> = pairs
                .iter()
                .map(|(call, result)| json!({"type": "tool_result", "tool_use_id": *call.id, "content": result}))
                .collect();
            list.push(json!({"role": "user", "content": results}));
        }
        Dialect::Responses => {
            list.extend(called(|call| {
                json!({"type": "function_call", "call_id": *call.id, "name": *call.name,
                    "arguments": **call.input.text()})
            }));
            list.extend(pairs.iter().map(|(call, result)| {
                json!({"type": "function_call_output", "call_id": *call.id, "output": result})
            }));
        }
    }
}

/// Returns the calls of an answer.
pub fn calls(reply: &Reply) -> Vec<&Call> {
    reply.entries.iter().filter_map(|entry| entry.as_call()).collect()
}

/// Returns what an answer says.
pub fn words(reply: &Reply) -> String {
    let said = reply.entries.iter().filter_map(|entry| entry.as_said());
    said.map(|said| throughline_core::joined_text(&said.parts).to_string()).collect()
}
