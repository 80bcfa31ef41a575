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

#[tokio::test]
async fn a_client_says_itself_that_a_summary_is_on_the_side() {
    let house = House::new(vec![Room::new("a", Dialect::Responses), Room::new("b", Dialect::Messages)]).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.headers = vec![("x-throughline-conversation", "editor-1".to_owned())];
    client.say("Please read the file a.txt");
    let answer = client.ask("a").await;
    client.result(&answer.calls(Dialect::Responses)[0].id, "alpha");
    client.ask("a").await;
    // The whole history comes again, with tools, to be put into words.
    let mut summary = Client::new(&house.url, Dialect::Responses);
    summary.headers = [client.headers.clone(), vec![("x-throughline-side", "true".to_owned())]].concat();
    summary.history.clone_from(&client.history);
    summary.say("Summarize the conversation in <summary> tags.");
    let side = summary.ask("b").await;
    assert_eq!(side.status, 200, "{}", side.raw);
    assert_ne!(side.header("x-throughline-conversation"), "editor-1");
    assert!(!side.header("x-throughline-report").contains("handover"), "{:?}", side.headers);
    // Whoever answers the conversation answers beside it.
    let switch = reqwest::Client::new().put(format!("{}/api/conversations/editor-1/backend", house.url));
    assert_eq!(switch.body(r#"{"backend":"b"}"#).send().await.unwrap().status(), 200);
    let mut body = summary.body("b");
    body.as_object_mut().unwrap().remove("model");
    assert_eq!(summary.post(&body).await.header("x-throughline-backend"), "b");
    let back = reqwest::Client::new().put(format!("{}/api/conversations/editor-1/backend", house.url));
    assert_eq!(back.body(r#"{"backend":null}"#).send().await.unwrap().status(), 200);
    client.say("Go on.");
    let answer = client.ask("a").await;
    assert_eq!(answer.header("x-throughline-conversation"), "editor-1");
    assert!(
        !answer.header("x-throughline-report").contains("handover"),
        "the summary's backend took nothing over"
    );
    let listed = house.gateway.history.conversations(Conversations::All(Paging::first(9))).await.unwrap();
    let mut ways: Vec<String> = listed.items.iter().map(|each| each.identified.to_string()).collect();
    ways.sort();
    assert_eq!(ways, ["header", "questions on the side"]);
    house.stop().await;
}
