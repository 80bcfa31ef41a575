//! What prompts take, as clients are told, and what the gateway learns about it.

use crate::client::Client;
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::gauges::Gauges;
use throughline_store::{History, Learned, Memory};

/// Asks how many tokens a prompt would take.
async fn count(house: &House, path: &str, body: Value) -> u64 {
    let url = format!("{}/v1/{path}", house.url);
    let sent = reqwest::Client::new().post(url).body(body.to_string()).send().await.unwrap();
    let text = sent.text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    answer["input_tokens"].as_u64().unwrap_or_else(|| panic!("{text}"))
}

async fn learned(history: &Memory) -> Vec<Learned> {
    let all = history.standing().await.unwrap().learned.clone();
    all.into_iter().filter(|learned| learned.capability == "token_factor").collect()
}

#[tokio::test]
async fn a_prompt_is_counted_by_the_vocabulary_of_its_model() {
    let house = House::new(one_of_each()).await;
    let messages =
        |model: &str, text: &str| json!({"model": model, "messages": [{"role": "user", "content": text}]});
    // Two tokens, four around a message, three for every prompt.
    assert_eq!(count(&house, "messages/count_tokens", messages("chat/gpt-4o", "hello world")).await, 9);
    let responses = json!({"model": "messages/gpt-4o", "input": "hello world"});
    assert_eq!(count(&house, "responses/input_tokens", responses).await, 9);
    let camel = "getURLOfHTMLElement";
    let o200k = count(&house, "messages/count_tokens", messages("chat/gpt-5", camel)).await;
    let cl100k = count(&house, "messages/count_tokens", messages("chat/gpt-4", camel)).await;
    assert_ne!(o200k, cl100k);
    // A model of unknown vocabulary is taken to need a fifth more.
    assert_eq!(count(&house, "messages/count_tokens", messages("chat/other", "hello world")).await, 11);
    house.stop().await;
}

#[tokio::test]
async fn tools_and_pictures_count() {
    let house = House::new(one_of_each()).await;
    let content = json!([{"type": "text", "text": "hello world"}]);
    let plain = json!({"model": "chat/gpt-4o", "messages": [{"role": "user", "content": content}]});
    let bare = count(&house, "messages/count_tokens", plain.clone()).await;
    let mut tools = plain.clone();
    tools["tools"] =
        json!([{"name": "read", "description": "hello world", "input_schema": {"type": "object"}}]);
    assert!(count(&house, "messages/count_tokens", tools).await > bare + 10);
    let mut picture = plain;
    let data = "iVBORw0KGgoAAAANSUhEUgAAB4AAAAQ4CAYAAADo08FD";
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    picture["messages"][0]["content"].as_array_mut().unwrap().push(image);
    assert_eq!(count(&house, "messages/count_tokens", picture).await, bare + 1105);
    house.stop().await;
}

#[tokio::test]
async fn the_factor_of_a_model_is_learned_from_what_its_backend_reports_and_kept() {
    Gauges::load();
    let history = Arc::new(Memory::new());
    let rooms = || vec![Room::new("one", Dialect::Messages)];
    let text = "It was the best of times, it was the worst of times, it was the age of wisdom. ".repeat(30);
    let asked = json!({"model": "one/other-20250101", "max_tokens": 9, "messages": [{"role": "user", "content": text}]});

    let house = House::with_history(rooms(), Arc::clone(&history) as Arc<dyn History>).await;
    let before = count(&house, "messages/count_tokens", asked.clone()).await;
    let mut reported = 0;
    for stream in [false, true, false] {
        let mut client = Client::new(&house.url, Dialect::Messages);
        client.stream = stream;
        client.say(&text);
        let answer = client.ask("one/other-20250101").await;
        if !stream {
            reported = answer.body["usage"]["input_tokens"].as_u64().unwrap();
        }
    }
    let kept = learned(&history).await;
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!((&*kept[0].backend, &*kept[0].model), ("one", "other"));
    assert!(kept[0].reason.starts_with("3 answers: "), "{kept:?}");
    let after = count(&house, "messages/count_tokens", asked.clone()).await;
    assert!(after.abs_diff(reported) < before.abs_diff(reported), "{before} {after} {reported}");
    assert!(after.abs_diff(reported) * 20 < reported, "{after} {reported}");
    house.stop().await;

    let house = House::with_history(rooms(), Arc::clone(&history) as Arc<dyn History>).await;
    assert_eq!(count(&house, "messages/count_tokens", asked).await, after, "it outlives the gateway");
    house.stop().await;
}

#[tokio::test]
async fn nothing_is_learned_about_a_public_vocabulary() {
    Gauges::load();
    let history = Arc::new(Memory::new());
    let rooms = vec![Room::new("one", Dialect::Chat)];
    let house = House::with_history(rooms, Arc::clone(&history) as Arc<dyn History>).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say(&"It was the season of light. ".repeat(60));
    client.ask("one/gpt-4o").await;
    assert_eq!(learned(&history).await, []);
    house.stop().await;
}

#[tokio::test]
async fn a_translated_stream_opens_with_the_same_count_that_is_told() {
    Gauges::load();
    let house = House::new(one_of_each()).await;
    let text = "It was the spring of hope, it was the winter of despair.";
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.stream = true;
    client.say(text);
    let asked = client.body("chat/gpt-4o");
    let raw = client.ask("chat/gpt-4o").await.raw;
    let start = raw.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let start: Value = serde_json::from_str(start).unwrap();
    let told = count(&house, "messages/count_tokens", asked).await;
    assert_eq!(start["message"]["usage"]["input_tokens"], told, "{start}");
    house.stop().await;
}
