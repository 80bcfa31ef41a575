//! Questions on the side: what an agent asks besides its work neither names its conversation nor disturbs it.

use crate::client::Client;
use crate::house::{House, Room};
use serde_json::json;
use throughline_core::Dialect;
use throughline_store::{Conversations, Paging};

/// Returns a client that asks on the side what to call the session.
fn titler(house: &House, session: &str) -> Client {
    let mut titler = Client::new(&house.url, Dialect::Messages);
    titler.headers = vec![("x-claude-code-session-id", session.to_owned())];
    titler.extra = json!({"tools": [], "system": "Write a title for this session."});
    titler.say("Title please: fix the tests");
    titler
}

#[tokio::test]
async fn a_title_request_is_a_record_of_its_own() {
    let house = House::new(vec![Room::new("a", Dialect::Messages), Room::new("b", Dialect::Chat)]).await;
    let mut side = titler(&house, "s").ask("b").await.header("x-throughline-conversation").to_owned();
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.headers = vec![("x-claude-code-session-id", "s".to_owned())];
    client.say("Please read the file a.txt");
    let answer = client.ask("a").await;
    let main = answer.header("x-throughline-conversation").to_owned();
    client.result(&answer.calls(Dialect::Messages)[0].id, "alpha");
    // In the middle of the turn, to another backend.
    let again = titler(&house, "s").ask("b").await.header("x-throughline-conversation").to_owned();
    assert_eq!(again, side, "one record for a session's questions on the side");
    assert_ne!(side, main);
    let answer = client.ask("a").await;
    assert_eq!(answer.header("x-throughline-conversation"), main);
    assert!(!answer.header("x-throughline-report").contains("handover"), "nothing was handed over");
    let listed = house.gateway.history.conversations(Conversations::All(Paging::first(9))).await.unwrap();
    let title = |id: &str| listed.items.iter().find(|each| each.id.as_str() == id).unwrap().title.clone();
    assert_eq!(title(&main).as_deref(), Some("Please read the file a.txt"));
    side = listed.items.iter().find(|each| each.id.as_str() == side).unwrap().identified.to_string();
    assert_eq!(side, "questions on the side");
    house.stop().await;
}

#[tokio::test]
async fn counting_tokens_leaves_no_trace() {
    let house = House::new(vec![Room::new("a", Dialect::Messages)]).await;
    let client = titler(&house, "s");
    let counted = reqwest::Client::new()
        .post(format!("{}/v1/messages/count_tokens", house.url))
        .header("x-claude-code-session-id", "s")
        .body(client.body("a").to_string());
    assert_eq!(counted.send().await.unwrap().status(), 200);
    let listed = house.gateway.history.conversations(Conversations::All(Paging::first(9))).await.unwrap();
    assert!(listed.items.is_empty(), "{listed:?}");
    house.stop().await;
}
