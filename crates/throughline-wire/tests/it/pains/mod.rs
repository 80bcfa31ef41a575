//! The 29 pains: what users of gateways and agents lost, one test for each.
//!
//! Each takes a small body or stream like the ones in the reports, sends it on, and checks three things: no
//! provider would refuse it (by the independent validators), what used to get lost is there, and the
//! report names the repair. The numbers are those of the list that the pains were collected in.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its own bodies has failed")]

mod content;
mod ids;
mod pairs;
mod reasoning;
mod streams;
mod whole;

use serde_json::{Value, json};
use throughline_core::{Action, Ask, Call, Dialect, Entry, Origin, Report, Return, Rules, Target, prepare};
use throughline_testkit::validate::{Provider, Violation, validate};
use throughline_wire::{decode_request, encode_request, path};

/// Every rule set, so that a test can say "everywhere".
const EVERYWHERE: [&str; 6] =
    ["openai-responses", "anthropic", "openai-chat", "deepseek", "mistral", "strict-chat"];

/// A request on its way to a backend.
struct Sent {
    ask: Ask,
    rules: Rules,
    text: String,
    body: Value,
    report: Report,
}

#[track_caller]
fn ask(dialect: Dialect, body: &Value) -> Ask {
    decode_request(dialect, body.to_string()).unwrap()
}

/// Sends a request to the backend with the rules of that name, which must have nothing to complain about.
#[track_caller]
fn send(ask: &Ask, rules: &str) -> Sent {
    let rules = Rules::from_name(rules).unwrap();
    send_to(ask, &Target::new(&rules))
}

/// Sends a request to a backend, which must have nothing to complain about.
#[track_caller]
fn send_to(ask: &Ask, target: &Target<'_>) -> Sent {
    let sent = send_unchecked(ask, target);
    let violations = sent.violations();
    assert!(violations.is_empty(), "{} refuses {}\n{violations:#?}", sent.rules.name, sent.text);
    sent
}

fn send_unchecked(ask: &Ask, target: &Target<'_>) -> Sent {
    let (prompt, mut report) = prepare(ask, target);
    let text = encode_request(&prompt, &mut report);
    let body = serde_json::from_str(&text).unwrap();
    Sent { ask: ask.clone(), rules: target.rules.clone(), text, body, report }
}

impl Sent {
    fn violations(&self) -> Vec<Violation> {
        validate(provider(&self.rules), &self.body)
    }

    /// Returns what was sent as the backend's own dialect reads it.
    fn read_back(&self) -> Ask {
        decode_request(self.rules.dialect, self.text.as_str()).unwrap()
    }

    fn calls(&self) -> Vec<Call> {
        self.read_back().entries.iter().filter_map(Entry::as_call).cloned().collect()
    }

    fn results(&self) -> Vec<Return> {
        self.read_back().entries.iter().filter_map(Entry::as_return).cloned().collect()
    }

    /// Returns the texts of the results, by the names of the calls that they answer.
    fn answers(&self) -> Vec<(String, String)> {
        let calls = self.calls();
        let answer = |returned: &Return| {
            let call = calls.iter().find(|call| Some(&call.id) == returned.call_id.as_ref());
            let call = call.unwrap_or_else(|| panic!("{returned:?} answers nothing"));
            (call.input.text().to_string(), throughline_core::joined_text(&returned.parts).to_string())
        };
        self.results().iter().map(answer).collect()
    }

    /// Fails unless the report has a change of that kind, at that path, for that reason.
    #[track_caller]
    fn assert_reported(&self, action: Action, at: &str, reason: &str) {
        let is_it = |change: &&throughline_core::Change| {
            change.action == action
                && path(self.ask.dialect, &change.subject) == at
                && change.reason.contains(reason)
        };
        let found = self.report.changes.iter().find(is_it);
        assert!(found.is_some(), "no `{} {at}: {reason}` in {:#?}", action.name(), self.report.changes);
    }

    #[track_caller]
    fn assert_silent(&self) {
        assert!(self.report.changes.is_empty(), "{:#?}", self.report.changes);
    }

    /// Returns every string in the body that holds `text`.
    fn strings_with(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        strings(&self.body, &mut found);
        found.retain(|string| string.contains(text));
        found
    }

    #[track_caller]
    fn assert_says(&self, text: &str) {
        assert!(!self.strings_with(text).is_empty(), "{text:?} is not in {}", self.text);
    }

    #[track_caller]
    fn assert_never_says(&self, text: &str) {
        assert!(self.strings_with(text).is_empty(), "{text:?} is in {}", self.text);
    }
}

fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, found)),
        _ => {}
    }
}

fn provider(rules: &Rules) -> Provider {
    Provider::from_name(&rules.name).unwrap_or_else(|| panic!("no provider for {}", rules.name))
}

fn origin(backend: &str, dialect: Dialect, model: &str) -> Origin {
    Origin { backend: backend.into(), dialect, model: model.into() }
}

/// Marks everything that the model said as coming from `origin`, as the gateway does from its record.
fn issued_by(mut ask: Ask, origin: &Origin) -> Ask {
    for entry in &mut ask.entries {
        if entry.side() == throughline_core::Side::Assistant {
            entry.origin = Some(origin.clone());
        }
    }
    ask
}

/// Returns a request in the Messages dialect with one tool.
fn messages(messages: &Value) -> Value {
    json!({
        "model": "claude-sonnet-5", "max_tokens": 1024, "messages": messages,
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
    })
}

/// Returns a request in the Chat dialect with one tool.
fn chat(messages: &Value) -> Value {
    json!({
        "model": "gpt-5.5", "messages": messages,
        "tools": [{"type": "function", "function": {
            "name": "read", "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {}},
        }}],
    })
}

/// Returns a request in the Responses dialect with one tool.
fn responses(input: &Value) -> Value {
    json!({
        "model": "gpt-5.5", "input": input, "store": false,
        "tools": [{
            "type": "function", "name": "read", "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {}}, "strict": false,
        }],
    })
}

/// Returns a call in the Chat dialect.
fn chat_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}})
}

/// Returns an assistant message of calls in the Chat dialect.
fn chat_calls(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn chat_result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}
