//! Clients of the three dialects, as small as they can be.

use serde_json::{Value, json};
use throughline_core::Dialect;

/// A conversation as a client of a dialect keeps it.
pub struct Client {
    pub dialect: Dialect,
    url: String,
    http: reqwest::Client,
    /// The messages or items so far.
    pub history: Vec<Value>,
    pub stream: bool,
    /// Further fields of each request.
    pub extra: Value,
    /// Further headers of each request.
    pub headers: Vec<(&'static str, String)>,
    /// How it prints what it sends.
    pub print: fn(&Value) -> String,
}

/// What came back.
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// The whole answer, put together if it was streamed.
    pub body: Value,
    /// The exact bytes.
    pub raw: String,
}

/// A call as the client sees it.
#[derive(Debug)]
pub struct Seen {
    pub id: String,
    pub name: String,
}

impl Client {
    pub fn new(url: &str, dialect: Dialect) -> Self {
        Self {
            dialect,
            url: url.to_owned(),
            http: reqwest::Client::new(),
            history: Vec::new(),
            stream: false,
            extra: json!({}),
            headers: Vec::new(),
            print: Value::to_string,
        }
    }

    /// Returns the client as it is, with another gateway to talk to.
    pub fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    pub fn say(&mut self, text: &str) {
        self.history.push(json!({"role": "user", "content": text}));
    }

    /// Adds the result of a call.
    pub fn result(&mut self, id: &str, text: &str) {
        self.history.push(match self.dialect {
            Dialect::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Dialect::Messages => json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": text}]}),
            Dialect::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
        });
    }

    pub fn body(&self, model: &str) -> Value {
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let description = "Reads a file.";
        let mut body = match self.dialect {
            Dialect::Chat => json!({"model": model, "messages": self.history, "tools": [
                {"type": "function", "function": {"name": "read_file", "description": description, "parameters": schema}}]}),
            Dialect::Messages => {
                json!({"model": model, "max_tokens": 4096, "messages": self.history, "tools": [
                {"name": "read_file", "description": description, "input_schema": schema}]})
            }
            Dialect::Responses => json!({"model": model, "input": self.history, "tools": [
                {"type": "function", "name": "read_file", "description": description, "parameters": schema, "strict": false}]}),
        };
        let fields = body.as_object_mut().unwrap();
        if self.stream {
            fields.insert("stream".into(), json!(true));
        }
        fields.extend(self.extra.as_object().unwrap().clone());
        body
    }

    /// Sends the conversation and adds the answer to it.
    pub async fn ask(&mut self, model: &str) -> Answer {
        let answer = self.post(&self.body(model)).await;
        assert_eq!(answer.status, 200, "{}", answer.raw);
        match self.dialect {
            Dialect::Chat => self.history.push(answer.body["choices"][0]["message"].clone()),
            Dialect::Messages => {
                self.history.push(json!({"role": "assistant", "content": answer.body["content"]}));
            }
            Dialect::Responses => self.history.extend(answer.body["output"].as_array().unwrap().clone()),
        }
        answer
    }

    pub async fn post(&self, body: &Value) -> Answer {
        let response = self.request(body).send().await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let raw = response.text().await.unwrap();
        let streamed = self.stream && status == 200;
        let body = if streamed {
            joined(self.dialect, &raw)
        } else {
            serde_json::from_str(&raw).unwrap_or_default()
        };
        Answer { status, headers, body, raw }
    }

    /// Sends a request and returns the status and the exact bytes of the answer, whatever they are.
    pub async fn post_raw(&self, body: &Value) -> (u16, String) {
        let response = self.request(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Sends the conversation, hangs up as soon as that word has come, and returns the conversation's id.
    pub async fn hang_up_after(&self, model: &str, word: &str) -> String {
        let mut response = self.request(&self.body(model)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let id = response.headers()["x-throughline-conversation"].to_str().unwrap().to_owned();
        let mut seen = String::new();
        while !seen.contains(word) {
            seen += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
        }
        id
    }

    fn request(&self, body: &Value) -> reqwest::RequestBuilder {
        let path = match self.dialect {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Messages => "/v1/messages",
            Dialect::Responses => "/v1/responses",
        };
        let request = self.http.post(format!("{}{path}", self.url)).body((self.print)(body));
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }
}

impl Answer {
    /// Returns the text that the answer holds.
    pub fn text(&self, dialect: Dialect) -> String {
        let texts = |list: &Value, field: &str| -> String {
            list.as_array().into_iter().flatten().filter_map(|part| part[field].as_str()).collect()
        };
        match dialect {
            Dialect::Chat => {
                self.body["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
            }
            Dialect::Messages => texts(&self.body["content"], "text"),
            Dialect::Responses => {
                let items = self.body["output"].as_array().into_iter().flatten();
                items.map(|item| texts(&item["content"], "text")).collect()
            }
        }
    }

    /// Returns the calls that the answer holds.
    pub fn calls(&self, dialect: Dialect) -> Vec<Seen> {
        let seen = |id: &Value, name: &Value| Seen {
            id: id.as_str().unwrap().to_owned(),
            name: name.as_str().unwrap().to_owned(),
        };
        let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
        match dialect {
            Dialect::Chat => list(&self.body["choices"][0]["message"]["tool_calls"])
                .iter()
                .map(|call| seen(&call["id"], &call["function"]["name"]))
                .collect(),
            Dialect::Messages => list(&self.body["content"])
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| seen(&block["id"], &block["name"]))
                .collect(),
            Dialect::Responses => list(&self.body["output"])
                .iter()
                .filter(|item| item["type"] == "function_call")
                .map(|item| seen(&item["call_id"], &item["name"]))
                .collect(),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
    }
}

/// Returns the data of each event.
fn events(raw: &str) -> Vec<Value> {
    let data = raw.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Puts a streamed answer together, independently of the gateway's own code.
fn joined(dialect: Dialect, raw: &str) -> Value {
    match dialect {
        Dialect::Chat => joined_chat(raw),
        Dialect::Messages => joined_messages(raw),
        Dialect::Responses => {
            let last = events(raw).pop().unwrap();
            assert!(raw.trim_end().ends_with("data: [DONE]"), "{raw}");
            last["response"].clone()
        }
    }
}

fn joined_chat(raw: &str) -> Value {
    assert!(raw.trim_end().ends_with("data: [DONE]"), "{raw}");
    let mut content = String::new();
    let mut calls: Vec<Value> = Vec::new();
    for event in events(raw) {
        let delta = &event["choices"][0]["delta"];
        content += delta["content"].as_str().unwrap_or_default();
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if calls.len() <= index {
                calls.push(piece.clone());
                continue;
            }
            let so_far = calls[index]["function"]["arguments"].as_str().unwrap().to_owned();
            let more = piece["function"]["arguments"].as_str().unwrap_or_default();
            calls[index]["function"]["arguments"] = json!(so_far + more);
        }
    }
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({"choices": [{"message": message}]})
}

fn joined_messages(raw: &str) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let events = events(raw);
    assert_eq!(events.last().unwrap()["type"], "message_stop", "{raw}");
    for event in events {
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                for (field, delta_field) in
                    [("text", "text"), ("thinking", "thinking"), ("signature", "signature")]
                {
                    if let Some(more) = delta[delta_field].as_str() {
                        let so_far = block[field].as_str().unwrap_or_default().to_owned();
                        block[field] = json!(so_far + more);
                    }
                }
                *inputs.last_mut().unwrap() += delta["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" => {
                let input = inputs.last().unwrap();
                if !input.is_empty() {
                    blocks.last_mut().unwrap()["input"] = serde_json::from_str(input).unwrap();
                }
            }
            _ => {}
        }
    }
    json!({"content": blocks})
}
