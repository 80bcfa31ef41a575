//! What the simulated backend keeps of what it was sent.

use crate::client::{Client, path, request};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::{SimOptions, fingerprint};

#[tokio::test]
async fn the_exact_body_is_kept_and_no_secret() {
    let client = Client::new(SimOptions::default()).await;
    let body =
        r#"{ "model":"sim",  "temperature":1.10, "messages":[{"role":"user","content":"caf\u00e9"}] }"#;
    let post = client.request(reqwest::Method::POST, path(Dialect::Chat)).body(body);
    client.send(post.header("authorization", "Bearer sk-secret").header("x-trace", "t")).await;
    client.post(path(Dialect::Chat), &json!({})).await.refusal(400);
    let recorded = client.sim.recorded();
    let [first, second] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert_eq!((first.body.as_str(), first.status, first.completed), (body, 200, true));
    assert_eq!(first.header("authorization"), Some(fingerprint("sk-secret").as_str()));
    assert_eq!(first.header("x-trace"), Some("t"));
    assert_eq!((second.path.as_str(), second.status), ("/v1/chat/completions", 400));
    assert!(!format!("{recorded:?}").contains("sk-secret"));
}

#[tokio::test]
async fn other_processes_read_the_record_as_json_lines() {
    let client = Client::new(SimOptions::default()).await;
    let body = request(Dialect::Chat, "hi", true);
    client.post(path(Dialect::Chat), &body).await;
    client.get("/v1/models").await;
    let lines = client.get("/__recorded").await;
    let lines: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["body"], body.to_string());
    assert_eq!((&lines[0]["status"], &lines[0]["completed"]), (&json!(200), &json!(true)));
    assert_eq!((&lines[1]["method"], &lines[1]["path"]), (&json!("GET"), &json!("/v1/models")));
}

#[tokio::test]
async fn a_stopped_backend_answers_no_more() {
    let client = Client::new(SimOptions::default()).await;
    client.get("/v1/models").await;
    let url = format!("{}/models", client.sim.base_url());
    let other = reqwest::Client::new();
    assert!(other.get(&url).send().await.is_ok());
    client.sim.stop().await;
    assert!(other.get(&url).send().await.is_err());
}

#[tokio::test]
async fn a_long_history_is_taken_as_providers_take_it() {
    let client = Client::new(SimOptions::default()).await;
    let text = "a line of a very long log\n".repeat(200_000);
    let body = json!({"model": "sim", "messages": [{"role": "user", "content": text}], "max_tokens": 8});
    assert_eq!(client.post("/v1/chat/completions", &body).await.status, 200);
}
