//! Requests that lean on what is in the record: conversations, references to items, and results whose call is
//! not there.

use crate::client::{Answer, Client};
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::{ConversationId, Dialect};
use throughline_store::Memory;

const READ_FILE: &str = "Please read the file notes.txt";

fn saying(house: &House, text: &str, extra: Value) -> Client {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say(text);
    client.extra = extra;
    client
}

/// Returns the error of an answer that must be one.
fn refused(answer: &Answer, status: u16, param: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.raw);
    let error: Value = serde_json::from_str(&answer.raw).unwrap();
    assert_eq!(error["error"]["param"], param, "{error}");
    error["error"].clone()
}

#[tokio::test]
async fn a_conversation_goes_on_from_what_was_last_said_in_it() {
    // What a backend keeps by itself cannot be seen in what it is sent.
    let whole = |room| Room { lines: "server_state = \"never\"", ..room };
    let house = House::new(one_of_each().into_iter().map(whole).collect()).await;
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = saying(&house, "the first question", json!({"tools": []}));
            let first = client.ask(backend.name()).await;
            assert_eq!(first.body.get("conversation"), None, "only where one was named");
            let id = first.header("x-throughline-conversation").to_owned();
            for conversation in [json!(id), json!({"id": id})] {
                client.history.clear();
                client.say("the next question");
                client.stream = stream;
                client.extra = json!({"tools": [], "conversation": conversation});
                let next = client.ask(backend.name()).await;
                assert_eq!(next.body["conversation"], json!({"id": id}), "{backend} {stream}: {}", next.raw);
                assert_eq!(next.header("x-throughline-conversation"), id);
                let sent = house.recorded(backend.name()).pop().unwrap().body;
                assert!(sent.find("the first question") < sent.find("the next question"), "{sent}");
                assert!(!sent.contains(&id), "no backend knows our conversations: {sent}");
            }
            let sent = house.recorded(backend.name()).pop().unwrap().body;
            assert!(sent.matches("the next question").count() >= 2, "{sent}");
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_conversation_that_nobody_knows_is_not_found() {
    let house = House::new(one_of_each()).await;
    for conversation in [json!("conv_nobody"), json!({"id": "conv_nobody"})] {
        let client = saying(&house, "Hello", json!({"conversation": conversation}));
        let error = refused(&client.post(&client.body("chat")).await, 404, "conversation");
        assert!(error["message"].as_str().unwrap().contains("conv_nobody"), "{error}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_request_has_one_past() {
    let house = House::new(one_of_each()).await;
    let first = saying(&house, "Hello", json!({})).ask("chat").await;
    let extra = json!({"previous_response_id": first.body["id"],
        "conversation": first.header("x-throughline-conversation")});
    let client = saying(&house, "on", extra);
    refused(&client.post(&client.body("chat")).await, 400, "conversation");
    house.stop().await;
}

#[tokio::test]
async fn a_result_of_a_call_that_is_not_in_what_is_continued_is_refused() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let first = saying(&house, "Hello", json!({})).ask(backend.name()).await;
        let asked = house.recorded(backend.name()).len();
        let pasts = [
            json!({"previous_response_id": first.body["id"]}),
            json!({"conversation": first.header("x-throughline-conversation")}),
        ];
        for past in pasts {
            let mut client = saying(&house, "And now?", past);
            client.result("call_nobody", "out of nowhere");
            let error = refused(&client.post(&client.body(backend.name())).await, 400, "input[1].call_id");
            let message = "No tool call found for function call output with call_id call_nobody.";
            assert_eq!(error["message"], message);
        }
        assert_eq!(house.recorded(backend.name()).len(), asked, "no backend was asked");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_result_without_its_call_in_a_history_of_the_clients_own_is_repaired_and_reported() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let mut client = saying(&house, "Hello", json!({}));
        client.result("call_nobody", "out of nowhere");
        let answer = client.ask(backend.name()).await;
        assert!(answer.header("x-throughline-report").contains("repaired=1"), "{backend}");
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(sent.contains("out of nowhere"), "{backend}: {sent}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_item_can_be_referred_to_by_the_id_that_the_client_was_given() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let mut client = saying(&house, READ_FILE, json!({}));
            client.stream = stream;
            let answer = client.ask(backend.name()).await;
            let call = answer.calls(Dialect::Responses).remove(0);
            client.result(&call.id, "what the file says");
            let answered = client.ask(backend.name()).await;
            for item in client.history.iter_mut().filter(|item| item["id"].is_string()) {
                *item = json!({"type": "item_reference", "id": item["id"]});
            }
            client.say("And now?");
            let sent = {
                client.ask(backend.name()).await;
                house.recorded(backend.name()).pop().unwrap().body
            };
            let said = answered.text(Dialect::Responses);
            for text in [call.name.as_str(), call.id.as_str(), &said[..12]] {
                assert!(sent.contains(text), "{backend} {stream}: {text}: {sent}");
            }
            assert!(!sent.contains("item_reference"), "{sent}");
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_item_can_be_referred_to_by_the_id_that_a_list_gives_it() {
    let house = House::new(one_of_each()).await;
    let first = saying(&house, "what was asked first", json!({"tools": []})).ask("chat").await;
    let url = format!("{}/v1/responses/{}/input_items", house.url, first.body["id"].as_str().unwrap());
    let listed: Value =
        serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap();
    let mut client = saying(&house, "And now?", json!({"tools": []}));
    client.history.insert(0, json!({"type": "item_reference", "id": listed["data"][0]["id"]}));
    client.ask("chat").await;
    let sent = house.recorded("chat").pop().unwrap().body;
    assert!(sent.contains("what was asked first"), "{sent}");
    client.history[0]["id"] = json!("msg_nobody");
    refused(&client.post(&client.body("chat")).await, 404, "input");
    house.stop().await;
}

#[tokio::test]
async fn instructions_that_a_client_says_with_each_request_are_in_the_record_once() {
    let secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAA";
    for by_response in [true, false] {
        let history = Arc::new(Memory::new());
        let room = Room { lines: "[privacy]\nsecrets = true\n", ..Room::new("own", Dialect::Responses) };
        let house = House::with_history(vec![room], history.clone()).await;
        let said = [format!("Be brief, {secret}"), format!("Be brief, {secret}"), "Be long".to_owned()];
        let mut past = json!({});
        let mut conversation = String::new();
        for instructions in said {
            let mut extra = past.clone();
            extra["instructions"] = json!(instructions);
            let answer = saying(&house, "on", extra).ask("own").await;
            conversation = answer.header("x-throughline-conversation").to_owned();
            past = match by_response {
                true => json!({"previous_response_id": answer.body["id"]}),
                false => json!({"conversation": conversation}),
            };
            let sent = house.recorded("own").pop().unwrap().body;
            assert!(sent.contains(&instructions), "every request has its own: {sent}");
        }
        let id = ConversationId::new(conversation);
        let kept = throughline_gateway::view::latest_branch(&*history, &id).await.unwrap();
        let standing: Vec<usize> = (0..kept.len()).filter(|at| kept[*at].entry.is_standing()).collect();
        assert_eq!((standing, kept.len()), (vec![0, 5], 8), "{by_response}");
        house.stop().await;
    }
}
