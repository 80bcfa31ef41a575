//! The inspector's page, and what it asks for besides what the commands show.

use crate::client::Client;
use crate::house::{House, Room, one_of_each};
use serde_json::Value;
use throughline_core::Dialect;
use throughline_sim::SimOptions;

async fn json(url: &str) -> Value {
    let response = reqwest::get(url).await.unwrap();
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

/// Has a file read, and asks about it; returns the id of the conversation.
async fn has_read(client: &mut Client, backend: &str, contents: &str) -> String {
    client.say("Please read the file notes.txt");
    let answer = client.ask(backend).await;
    let call = answer.calls(client.dialect).remove(0);
    client.result(&call.id, contents);
    client.ask(backend).await.header("x-throughline-conversation").to_owned()
}

#[tokio::test]
async fn the_page_and_its_parts_are_served_under_a_strict_policy() {
    let house = House::new(one_of_each()).await;
    for path in ["/", "/inspector/main.js", "/inspector/inspector.css", "/inspector/vendor/htm-preact.js"] {
        let response = reqwest::get(format!("{}{path}", house.url)).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let tag = response.headers()["etag"].clone();
        let again = reqwest::Client::new().get(format!("{}{path}", house.url)).header("if-none-match", tag);
        assert_eq!(again.send().await.unwrap().status(), 304, "{path}");
    }
    let nothing = reqwest::get(format!("{}/inspector/../Cargo.toml", house.url)).await.unwrap();
    assert_eq!(nothing.status(), 404);
    house.stop().await;
}

#[tokio::test]
async fn texts_come_cut_and_an_entry_whole() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    let contents = "é".repeat(700);
    let id = has_read(&mut client, "chat", &contents).await;
    let url = format!("{}/api/conversations/{id}", house.url);
    let cut = json(&format!("{url}?preview=100")).await;
    let result = cut["entries"].as_array().unwrap().iter().find(|each| each["kind"] == "returned").unwrap();
    assert_eq!(result["text"].as_str().unwrap().chars().count(), 100);
    assert_eq!(result["chars"], 700);
    assert_eq!(cut["conversation"]["ending"], "end_turn");
    assert_eq!(cut["conversation"]["answering"], false);
    let whole = json(&format!("{url}/entries/{}", result["id"].as_str().unwrap())).await;
    assert_eq!(whole["text"], contents);
    for path in ["entries/nothing", "seen/9", "seen/x"] {
        let missing = reqwest::get(format!("{url}/{path}")).await.unwrap();
        assert_eq!(missing.status(), 404, "{path}");
    }
    let wrong = reqwest::get(format!("{url}?preview=much")).await.unwrap();
    assert_eq!(wrong.status(), 400);
    house.stop().await;
}

#[tokio::test]
async fn what_was_shortened_stands_beside_what_was_kept() {
    let small = Room { lines: "context_window = 3000", ..Room::new("small", Dialect::Messages) };
    let house = House::new(vec![small]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    let contents: String = (0..1500).map(|line| format!("line {line} says nothing new\n")).collect();
    let mut id = has_read(&mut client, "small", &contents).await;
    for question in ["What now?", "And then?"] {
        client.say(question);
        id = client.ask("small").await.header("x-throughline-conversation").to_owned();
    }
    let exchanges = json(&format!("{}/api/conversations/{id}", house.url)).await["exchanges"].clone();
    let last = exchanges.as_array().unwrap().len();
    let seen = json(&format!("{}/api/conversations/{id}/seen/{last}?preview=80", house.url)).await;
    let rows = seen["rows"].as_array().unwrap();
    let result = rows.iter().find(|row| row["kept"]["kind"] == "returned").unwrap();
    assert_eq!(result["mark"], "shortened", "{seen}");
    assert!(result["reason"].as_str().unwrap().contains("to keep within the budget"), "{result}");
    assert!(result["handle"].as_str().unwrap().len() == 4, "{result}");
    assert!(result["tokens_kept"].as_u64() > result["tokens_sent"].as_u64(), "{result}");
    let results = &seen["tokens"]["result"];
    assert!(results["kept"].as_u64() > results["sent"].as_u64(), "{results}");
    assert!(rows.iter().any(|row| row["mark"] == "same" && row.get("sent").is_none()), "{seen}");
    house.stop().await;
}

#[tokio::test]
async fn what_was_told_as_text_is_found_in_the_text() {
    let options = SimOptions { reject_native: true, ..SimOptions::default() };
    let house = House::new(vec![Room { options, ..Room::new("plain", Dialect::Chat) }]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    let id = has_read(&mut client, "plain", "what the notes say").await;
    let seen = json(&format!("{}/api/conversations/{id}/seen/2", house.url)).await;
    let rows = seen["rows"].as_array().unwrap();
    let result = rows.iter().find(|row| row["kept"]["kind"] == "returned").unwrap();
    assert_eq!(result["mark"], "retold", "{seen}");
    let call = rows.iter().find(|row| row["kept"]["kind"] == "called").unwrap();
    assert_eq!(call["mark"], "retold", "{seen}");
    assert_eq!(call["reason"], "told as text: the call is left out beside its result", "{seen}");
    house.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_have_nothing_done() {
    let house = House::new(vec![Room::new("plain", Dialect::Chat)]).await;
    let ask = |origin: &str| {
        let origin = origin.to_owned();
        let request = reqwest::Client::new().post(format!("{}/api/runs/run_none/replay", house.url));
        async move { request.header("origin", origin).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(ask("https://evil.example").await, 403);
    assert_eq!(ask("http://127.0.0.1:1").await, 403, "another port is another origin");
    assert_eq!(ask(&house.url).await, 404, "our own page may, and there is no such run");
    house.stop().await;
}

#[tokio::test]
async fn only_so_many_runs_are_replayed_at_once() {
    let house = House::new(vec![Room::new("plain", Dialect::Chat)]).await;
    let ask = || async {
        let request = reqwest::Client::new().post(format!("{}/api/runs/run_none/replay", house.url));
        request.send().await.unwrap().status().as_u16()
    };
    let held = house.gateway.replays.acquire_many(2).await.unwrap();
    assert_eq!(ask().await, 503, "two go on already");
    drop(held);
    assert_eq!(ask().await, 404, "and there is no such run");
    house.stop().await;
}
