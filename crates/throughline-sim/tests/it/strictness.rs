//! What the providers refuse is refused, in their words.

use crate::client::{Client, path, request};
use serde_json::{Value, json};
use throughline_core::Dialect::{self, Chat, Messages, Responses};
use throughline_sim::SimOptions;
use throughline_validate::Provider;

async fn refusal(client: &Client, dialect: Dialect, body: &Value) -> String {
    client.post(path(dialect), body).await.refusal(400)
}

#[tokio::test]
async fn broken_pairs_are_refused_in_each_dialect() {
    let client = Client::new(SimOptions::default()).await;
    let mut chat = request(Chat, "hi", false);
    chat["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "tool", "tool_call_id": "c", "content": "x"}));
    assert!(
        refusal(&client, Chat, &chat).await.starts_with("Invalid parameter: messages with role 'tool' must")
    );
    let mut messages = request(Messages, "hi", false);
    let call = json!({"type": "tool_use", "id": "t", "name": "read_file", "input": {}});
    messages["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": [call]}));
    let said = refusal(&client, Messages, &messages).await;
    assert!(said.starts_with("messages.1.content.0.id: `tool_use` ids were found without"), "{said}");
    let output =
        json!({"model": "sim", "input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]});
    let said = refusal(&client, Responses, &output).await;
    assert_eq!(said, "No tool call found for function call output with call_id c.");
}

#[tokio::test]
async fn the_place_is_named_and_the_envelope_is_the_dialects_own() {
    let client = Client::new(SimOptions::default()).await;
    let answer = client.post(path(Messages), &json!({"model": "sim", "messages": []})).await;
    let body = answer.json();
    assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
    assert_eq!(answer.refusal(400), "max_tokens: this field is required");
    let body = json!({"model": "sim", "messages": [{"role": "user", "content": 7}]});
    let answer = client.post(path(Chat), &body).await;
    assert_eq!(answer.json()["error"]["param"], "messages[0].content");
    let said = answer.refusal(400);
    assert_eq!(said, "Invalid 'messages[0].content': a string or an array is expected.");
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    let client = Client::new(SimOptions::default()).await;
    for dialect in Dialect::ALL {
        for body in [&b"{"[..], b"\xff", b"[]"] {
            let request = client.request(reqwest::Method::POST, path(dialect)).body(body);
            client.send(request).await.refusal(400);
        }
    }
}

#[tokio::test]
async fn a_key_must_be_presented_where_one_is_set() {
    let client = Client::new(SimOptions { key: Some("k".into()), ..SimOptions::default() }).await;
    for dialect in Dialect::ALL {
        let body = request(dialect, "hi", false).to_string();
        let post = || client.request(reqwest::Method::POST, path(dialect)).body(body.clone());
        client.send(post()).await.refusal(401);
        client.send(post().header("authorization", "Bearer wrong")).await.refusal(401);
        assert_eq!(client.send(post().header("authorization", "Bearer k")).await.status, 200);
        assert_eq!(client.send(post().header("x-api-key", "k")).await.status, 200);
    }
    client.get("/v1/models").await.refusal(401);
}

#[tokio::test]
async fn messages_needs_its_version_header() {
    let client = Client::new(SimOptions::default()).await;
    let url = format!("{}/messages", client.sim.base_url());
    let request = reqwest::Client::new().post(url).body(request(Messages, "hi", false).to_string());
    assert_eq!(client.send(request).await.refusal(400), "anthropic-version: header is required");
}

#[tokio::test]
async fn other_rules_of_chat_completions_can_hold() {
    let mut body = request(Chat, "hi", false);
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "again"}));
    let strict = Client::new(SimOptions { chat_rules: Provider::StrictChat, ..SimOptions::default() }).await;
    assert!(refusal(&strict, Chat, &body).await.contains("roles must alternate"));
    let mistral = Client::new(SimOptions { chat_rules: Provider::Mistral, ..SimOptions::default() }).await;
    let reply = mistral.ask(Chat, &request(Chat, "Read a.txt", false)).await;
    assert_eq!(crate::client::calls(&reply)[0].id.len(), 9);
    body["messages"] = json!([{"role": "developer", "content": "x"}]);
    assert_eq!(mistral.post(path(Chat), &body).await.json()["object"], "error");
    let lenient = Client::new(SimOptions { strict: false, ..SimOptions::default() }).await;
    body["messages"] = json!([{"role": "tool", "tool_call_id": "c", "content": "x"}]);
    assert_eq!(lenient.post(path(Chat), &body).await.status, 200);
}

#[tokio::test]
async fn native_tool_history_can_be_refused() {
    let client = Client::new(SimOptions { reject_native: true, ..SimOptions::default() }).await;
    for dialect in Dialect::ALL {
        let mut body = request(dialect, "Read a.txt", false);
        let reply = client.ask(dialect, &body).await;
        let made = crate::client::calls(&reply);
        crate::client::add_pairs(dialect, &mut body, &[(made[0], "secret")]);
        assert_eq!(refusal(&client, dialect, &body).await, "Invalid input");
        let embedded = json!([
            {"role": "user", "content": "Read a.txt"},
            {"role": "user", "content": "Context (tool result):\nsecret"},
        ]);
        body[crate::client::list(dialect)] = embedded;
        assert_eq!(crate::client::words(&client.ask(dialect, &body).await), "The tool returned:\nsecret");
    }
}
