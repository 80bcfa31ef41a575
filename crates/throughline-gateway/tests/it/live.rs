//! The history as it grows.

use crate::client::Client;
use crate::house::{House, one_of_each};
use throughline_core::Dialect;

#[tokio::test]
async fn whoever_looks_on_is_told_of_what_is_added() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Before anybody looked on");
    client.ask("chat").await;
    let mut events = reqwest::get(format!("{}/api/events", house.url)).await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let mut seen = String::new();
    let mut wait_for = async |word: &str| {
        while !seen.contains(word) {
            seen += std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap();
        }
        seen.clone()
    };
    wait_for(": open").await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Something new to see");
    let id = client.ask("messages").await.header("x-throughline-conversation").to_owned();
    let seen = wait_for("Something new to see").await;
    assert!(seen.contains("event: conversation\n") && seen.contains(&id), "{seen}");
    assert!(!seen.contains("Before anybody looked on"), "{seen}");
    // A stream that is open does not keep the gateway from stopping, and ends with it.
    house.stop().await;
    while events.chunk().await.unwrap().is_some() {}
}
