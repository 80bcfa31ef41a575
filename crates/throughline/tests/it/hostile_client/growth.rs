//! Requests that are built to take long: with the square of their length each of these would take minutes. They are
//! stopped by the time that a test may take, and nobody else waits for them.

use super::{Answer, Gateway, request};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MANY: usize = 20_000;

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn called(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn returned(id: &str, number: usize) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": number.to_string()})
}

fn chat(messages: impl IntoIterator<Item = Value>) -> String {
    let messages: Vec<Value> = messages.into_iter().collect();
    json!({"model": "m", "messages": messages}).to_string()
}

/// Sends requests, while others look after the gateway's health.
fn answered(gateway: &Gateway, requests: Vec<(&str, &str, String)>) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                assert_eq!(gateway.get("/healthz").status, 200);
            }
        });
        for (what, path, body) in requests {
            let answer = gateway.post(path, &[], body.as_bytes());
            answer.is_orderly();
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
        }
        is_over.store(true, Ordering::SeqCst);
        watcher.join().unwrap();
    });
}

#[test]
fn very_many_results_and_calls_of_one_id_are_paired_and_written() {
    let gateway = Gateway::start("one-id", "");
    let user = || std::iter::once(json!({"role": "user", "content": "go on"}));
    let results = || (0..MANY).map(|number| returned("x", number));
    let turns = || (0..MANY / 4).flat_map(|number| [called(&[call("x")]), returned("x", number)]);
    let batch = || std::iter::once(called(&vec![call("x"); MANY / 2]));
    let path = "/v1/chat/completions";
    let requests = vec![
        ("results", path, chat(user().chain([called(&[call("x")])]).chain(results()))),
        ("calls and results", path, chat(user().chain(batch()).chain(results()))),
        ("results that come again", path, chat(user().chain(turns()).chain(results().take(MANY / 2)))),
        ("results before their calls", path, chat(user().chain(results()).chain(batch()))),
    ];
    answered(&gateway, requests);
    gateway.came_through();
}

#[test]
fn very_many_of_anything_are_read_in_time() {
    let gateway = Gateway::start("very-many", "");
    let user = json!({"role": "user", "content": "go on"});
    let tool = |name: String| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    let names: Vec<Value> =
        (0..MANY / 2).map(|at| json!({"type": "function", "function": {"name": format!("f{at}")}})).collect();
    let tools: Vec<Value> = (0..MANY).map(|at| tool(format!("f{at}"))).collect();
    let odd: Vec<Value> = (0..MANY).map(|at| tool(format!("odd name {at}"))).collect();
    let same: Vec<Value> = (0..MANY).map(|_| tool("f".to_owned())).collect();
    let choice = json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": names}});
    let with_tools = |tools: &[Value], choice: Value| {
        json!({"model": "m", "messages": [user], "tools": tools, "tool_choice": choice}).to_string()
    };
    let fields: serde_json::Map<String, Value> = (0..MANY).map(|at| (format!("x{at}"), json!(1))).collect();
    let mut unknown = json!({"model": "m", "messages": [user]});
    unknown.as_object_mut().unwrap().extend(fields);
    let path = "/v1/chat/completions";
    let marks = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    let marked =
        json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": vec![marks; MANY]}]});
    let instructions = (0..MANY).map(|at| json!({"role": "system", "content": at.to_string()}));
    let requests = vec![
        ("messages", path, chat(vec![user.clone(); MANY])),
        ("instructions", path, chat(instructions.chain([user.clone()]))),
        ("tools that are allowed", path, with_tools(&tools[..MANY / 2], choice)),
        ("tools of odd names", path, with_tools(&odd, json!("auto"))),
        ("tools of one name", path, with_tools(&same, json!("auto"))),
        ("unknown fields", path, unknown.to_string()),
        ("marks", "/v1/messages", marked.to_string()),
        ("combining characters", path, request(&format!("e{}", "\u{301}".repeat(2 << 20)))),
    ];
    answered(&gateway, requests);
    gateway.came_through();
}

#[test]
fn text_without_an_end_is_counted_in_time() {
    let gateway = Gateway::start("one-letter", "");
    let letters = request(&"a".repeat(13 << 20));
    let spaces = request(&" ".repeat(13 << 20));
    let counted = |text: &str| {
        json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text}]}).to_string()
    };
    let path = "/v1/chat/completions";
    let requests = vec![
        ("letters", path, letters),
        ("spaces", path, spaces),
        ("letters that are only counted", "/v1/messages/count_tokens", counted(&"A".repeat(13 << 20))),
    ];
    answered(&gateway, requests);
    gateway.came_through();
}

#[test]
fn searches_for_odd_things_end() {
    let gateway = Gateway::start("searches", "");
    let results = (0..5_000).map(|number| returned("x", number));
    let call = call("x");
    let opening = [json!({"role": "user", "content": "look"}), called(&[call])];
    let stored =
        gateway.post("/v1/chat/completions", &[], chat(opening.into_iter().chain(results)).as_bytes());
    assert_eq!(stored.status, 200, "{stored:?}");
    for query in [
        "q=%25%25%25%25%25_____",
        "q=%2A%2A%2A%2A%2A%2A%22%22%22%22",
        "q=((((((((((((((((((((",
        "q=a%20OR%20a%20NEAR%20a%20NOT%20%22",
        &format!("q={}", "a%20".repeat(2_000)),
        &format!("q={}", "%22".repeat(5_000)),
        &format!("q={}", "e%CC%81".repeat(3_000)),
        "path=nothing",
        "command=nothing",
        "path=%2A%2A%2F%2A%2A%2F%2A%2A%2F%2A%2A%2F%2A%2A%2Fx",
        "q=go&limit=4294967295",
        "q=go&limit=99999999999999999999",
        "q=go&after=zzzz",
        "failed=true&tool=%5B%5B%5B",
    ] {
        gateway.get(&format!("/api/search?{query}")).is_orderly();
    }
    for path in ["/api/conversations?limit=4294967295", "/api/conversations/%00", "/api/runs/%F0%9F/replay"] {
        Answer::is_orderly(&gateway.get(path));
    }
    gateway.came_through();
}
