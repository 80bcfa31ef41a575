//! Reasoning, and the seals that only their issuer accepts.

use crate::client::{Client, path, request};
use serde_json::{Value, json};
use throughline_core::Dialect::{self, Messages, Responses};
use throughline_core::{Kind, Thought};
use throughline_sim::SimOptions;

async fn thoughts(client: &Client, dialect: Dialect, body: &Value) -> Vec<Thought> {
    let reply = client.ask(dialect, body).await;
    let thoughts = reply.entries.iter().filter_map(|entry| match &entry.kind {
        Kind::Thought(thought) => Some(thought.clone()),
        _ => None,
    });
    thoughts.collect()
}

fn thinking(stream: bool) -> Value {
    let mut body = request(Messages, "Read a.txt", stream);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    body
}

/// Returns the request that goes on after an answer with thinking and a call.
fn continued(content: &Value) -> Value {
    let mut body = thinking(false);
    let id = content[1]["id"].clone();
    body["messages"].as_array_mut().expect("a list").extend([
        json!({"role": "assistant", "content": content}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}),
    ]);
    body
}

#[tokio::test]
async fn a_signature_comes_back_and_is_accepted_only_unaltered() {
    let client = Client::new(SimOptions::default()).await;
    let content = client.post(path(Messages), &thinking(false)).await.json()["content"].clone();
    assert_eq!(content[0]["type"], "thinking");
    assert_eq!(client.post(path(Messages), &continued(&content)).await.status, 200);

    let mut altered = content.clone();
    altered[0]["thinking"] = json!("something else");
    let said = client.post(path(Messages), &continued(&altered)).await.refusal(400);
    assert_eq!(said, "messages.1.content.0: Invalid `signature` in `thinking` block");
    let mut other_model = continued(&content);
    other_model["model"] = json!("sim-mini");
    client.post(path(Messages), &other_model).await.refusal(400);

    let other = Client::new(SimOptions { seed: "other".into(), ..SimOptions::default() }).await;
    other.post(path(Messages), &continued(&content)).await.refusal(400);
    let lenient = SimOptions { seed: "other".into(), strict: false, ..SimOptions::default() };
    assert_eq!(Client::new(lenient).await.post(path(Messages), &continued(&content)).await.status, 200);
}

#[tokio::test]
async fn a_streamed_thought_is_the_same_thought() {
    let client = Client::new(SimOptions::default()).await;
    let whole = thoughts(&client, Messages, &thinking(false)).await;
    assert_eq!(whole, thoughts(&client, Messages, &thinking(true)).await);
    assert!(whole[0].seal.is_some() && !whole[0].content.is_empty());
}

#[tokio::test]
async fn redacted_thinking_is_sealed_too() {
    let client = Client::scripted(
        r#"{"turns":[{"reasoning":"hidden","redacted":true,"calls":[{"name":"read_file"}]}]}"#,
    )
    .await;
    let content = client.post(path(Messages), &thinking(false)).await.json()["content"].clone();
    assert_eq!(content[0]["type"], "redacted_thinking");
    assert_eq!(client.post(path(Messages), &continued(&content)).await.status, 200);
    let mut altered = content.clone();
    altered[0]["data"] = json!("AAAA");
    let said = client.post(path(Messages), &continued(&altered)).await.refusal(400);
    assert!(said.ends_with("Invalid `data` in `redacted_thinking` block"), "{said}");
}

#[tokio::test]
async fn encrypted_reasoning_is_given_on_request_and_verified() {
    let client = Client::new(SimOptions::default()).await;
    let mut body = request(Responses, "Read a.txt", false);
    body["reasoning"] = json!({"effort": "low", "summary": "auto"});
    body["store"] = json!(false);
    let plain = thoughts(&client, Responses, &body).await;
    assert_eq!((plain[0].seal.is_some(), plain[0].summary.len()), (false, 1));
    body["include"] = json!(["reasoning.encrypted_content"]);
    let output = client.post(path(Responses), &body).await.json()["output"].clone();
    let items = body["input"].as_array_mut().unwrap();
    items.extend(output.as_array().unwrap().iter().cloned());
    items.push(json!({"type": "function_call_output", "call_id": output[1]["call_id"], "output": "x"}));
    assert_eq!(client.post(path(Responses), &body).await.status, 200);
    body["input"][1]["encrypted_content"] = json!("gAAAAABforeign");
    let answer = client.post(path(Responses), &body).await;
    assert_eq!(answer.json()["error"]["code"], "invalid_encrypted_content");
    assert!(answer.refusal(400).contains("gAAAAABf... could not be verified"));
}
