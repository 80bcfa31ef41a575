//! What prompts take, as clients are told, and what the gateway learns about it.

use crate::client::Client;
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_gateway::token_counters::TokenCounters;
use throughline_store::{History, Learned, Memory};

/// Asks how many tokens a prompt would take.
async fn count(house: &House, path: &str, body: Value) -> u64 {
    count_with(house, path, body, &[]).await
}

async fn count_with(house: &House, path: &str, body: Value, headers: &[(&'static str, String)]) -> u64 {
    let url = format!("{}/v1/{path}", house.url);
    let request = reqwest::Client::new().post(url).body(body.to_string());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    let sent = request.send().await.unwrap();
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
    TokenCounters::load();
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
    TokenCounters::load();
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
    TokenCounters::load();
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

#[tokio::test]
async fn a_brief_that_would_be_sent_counts() {
    TokenCounters::load();
    for (dialect, path) in
        [(Dialect::Messages, "messages/count_tokens"), (Dialect::Responses, "responses/input_tokens")]
    {
        let house = House::new(one_of_each()).await;
        let mut old = Client::new(&house.url, Dialect::Chat);
        old.say("Please read the file notes.txt");
        let call = old.ask("chat/gpt-4o").await.calls(Dialect::Chat).remove(0);
        old.result(&call.id, &"It was the season of darkness. ".repeat(60));
        let id = old.ask("chat/gpt-4o").await.header("x-throughline-conversation").to_owned();
        let mut client = Client::new(&house.url, dialect);
        client.say("Go on.");
        let bare = count(&house, path, client.body("chat/gpt-4o")).await;
        client.headers = vec![("x-throughline-continue", id)];
        let told = count_with(&house, path, client.body("chat/gpt-4o"), &client.headers).await;
        let unknown = [("x-throughline-continue", "conv_nobody".to_owned())];
        let url = format!("{}/v1/{path}", house.url);
        let request = reqwest::Client::new().post(url).header(unknown[0].0, &unknown[0].1);
        let refused = request.body(client.body("chat/gpt-4o").to_string()).send().await.unwrap();
        assert_eq!(refused.status(), 404, "{dialect}");
        client.ask("chat/gpt-4o").await;
        let sent = house.recorded("chat").pop().unwrap().body;
        assert!(sent.contains("CONTEXT FROM PREVIOUS SESSION"), "{sent}");
        let sent = serde_json::from_str::<Value>(&sent).unwrap();
        let brief = sent["messages"][0]["content"].clone();
        let mut whole = Client::new(&house.url, dialect);
        whole.say(brief.as_str().unwrap());
        let wanted = count(&house, path, whole.body("chat/gpt-4o")).await;
        assert!(told > bare + 200, "{dialect}: {bare} {told}");
        assert!(told.abs_diff(wanted) < 10, "{dialect}: {told}, and what was sent has {wanted}");
        house.stop().await;
    }
}

#[tokio::test]
async fn reasoning_and_what_is_gone_on_from_count() {
    let turn = json!({"reasoning": "I think that it is so, on the whole. ".repeat(40), "text": "Yes."});
    let script = json!({"turns": [turn], "then": "repeat"}).to_string();
    for dialect in [Dialect::Messages, Dialect::Responses] {
        let mut room = Room::new("own", dialect);
        room.options.script = Some(throughline_sim::Script::parse(&script).unwrap());
        let house = House::new(vec![room]).await;
        let mut client = Client::new(&house.url, dialect);
        client.extra = match dialect {
            Dialect::Messages => json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
            _ => json!({"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}),
        };
        client.say("Is it so?");
        let answer = client.ask("own/gpt-4o").await;
        client.say("Sure?");
        let path =
            if dialect == Dialect::Messages { "messages/count_tokens" } else { "responses/input_tokens" };
        let all = count(&house, path, client.body("own/gpt-4o")).await;
        let is_thought = |value: &Value| ["thinking", "reasoning"].iter().any(|kind| value["type"] == **kind);
        let mut without = client.body("own/gpt-4o");
        let list = if dialect == Dialect::Messages { "messages" } else { "input" };
        let list = without[list].as_array_mut().unwrap();
        list.retain(|item| !is_thought(item));
        for message in list {
            if let Some(blocks) = message["content"].as_array_mut() {
                blocks.retain(|block| !is_thought(block));
            }
        }
        let less = count(&house, path, without).await;
        assert!(all > less + 50, "{dialect}: {all} {less}");
        if dialect == Dialect::Responses {
            let goes_on =
                json!({"model": "own/gpt-4o", "input": "Sure?", "previous_response_id": answer.body["id"]});
            let alone = json!({"model": "own/gpt-4o", "input": "Sure?"});
            assert!(count(&house, path, goes_on).await > count(&house, path, alone).await + 10);
        }
        house.stop().await;
    }
}

#[tokio::test]
async fn what_a_client_has_cleared_is_counted_before_and_after() {
    let house = House::new(one_of_each()).await;
    let mut client = crate::budget::with_pairs(&house.url, Dialect::Messages, 12);
    let plain = count(&house, "messages/count_tokens", client.body("chat/gpt-4o")).await;
    let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 5}});
    client.extra = json!({"context_management": {"edits": [edit]}});
    let url = format!("{}/v1/messages/count_tokens", house.url);
    let body = client.body("chat/gpt-4o").to_string();
    let text = reqwest::Client::new().post(url).body(body).send().await.unwrap().text().await.unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["context_management"]["original_input_tokens"], plain, "{told}");
    assert!(told["input_tokens"].as_u64().unwrap() < plain / 2, "{told}");
    house.stop().await;
}

#[tokio::test]
async fn a_compaction_is_counted_by_the_vocabulary_of_its_model() {
    let house = House::new(one_of_each()).await;
    let url = format!("{}/v1/responses/compact", house.url);
    let body = json!({"model": "chat/gpt-4o", "input": "hello world"}).to_string();
    let text = reqwest::Client::new().post(url).body(body).send().await.unwrap().text().await.unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    // Two tokens, four around a message, three for every prompt.
    assert_eq!(told["usage"]["input_tokens"], 9, "{told}");
    house.stop().await;
}
