//! Conversations as objects: begun, described, added to, listed, and taken out of use.

use crate::client::Client;
use crate::house::{House, one_of_each};
use reqwest::Method;
use serde_json::{Value, json};
use throughline_core::Dialect;

async fn send(house: &House, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = reqwest::Client::new().request(method, format!("{}/v1/conversations{path}", house.url));
    let request = match body {
        Some(body) => request.body(body.to_string()),
        None => request,
    };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[tokio::test]
async fn a_conversation_is_begun_described_and_gone_on_with_over_every_backend() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let body = json!({"items": [said("what was said first")], "metadata": {"topic": "demo"}});
        let (status, begun) = send(&house, Method::POST, "", Some(body)).await;
        assert_eq!(status, 200, "{begun}");
        assert_eq!((&begun["object"], &begun["metadata"]["topic"]), (&json!("conversation"), &json!("demo")));
        assert!(begun["created_at"].as_u64().unwrap() > 0);
        let id = begun["id"].as_str().unwrap();
        assert_eq!(send(&house, Method::GET, &format!("/{id}"), None).await, (200, begun.clone()));

        let mut client = Client::new(&house.url, Dialect::Responses);
        client.say("what was said then");
        client.extra = json!({"tools": [], "conversation": id});
        let answer = client.ask(backend.name()).await;
        assert_eq!(answer.body["conversation"]["id"], id);
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(sent.find("what was said first") < sent.find("what was said then"), "{sent}");

        let more = json!({"items": [said("what was added"), said("and more")]});
        let (status, added) = send(&house, Method::POST, &format!("/{id}/items"), Some(more)).await;
        assert_eq!((status, added["data"].as_array().unwrap().len()), (200, 2), "{added}");
        let (_, items) = send(&house, Method::GET, &format!("/{id}/items?order=asc"), None).await;
        let texts: Vec<&Value> =
            items["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
        assert_eq!(texts.len(), 5, "{items}");
        assert_eq!((texts[0], texts[4]), (&json!("what was said first"), &json!("and more")));
        assert_eq!(items["data"][4]["id"], added["data"][1]["id"], "an item keeps its id");
        let (_, page) = send(&house, Method::GET, &format!("/{id}/items?limit=2"), None).await;
        assert_eq!((&page["has_more"], &page["first_id"]), (&json!(true), &items["last_id"]));
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn single_items_are_had_and_taken_out() {
    let house = House::new(one_of_each()).await;
    let body = json!({"items": [said("what was said first"), said("what was a mistake")]});
    let (_, begun) = send(&house, Method::POST, "", Some(body)).await;
    let id = begun["id"].as_str().unwrap();
    let (_, items) = send(&house, Method::GET, &format!("/{id}/items?order=asc"), None).await;
    let mistake = &items["data"][1];
    let path = format!("/{id}/items/{}", mistake["id"].as_str().unwrap());
    assert_eq!(send(&house, Method::GET, &path, None).await, (200, mistake.clone()));
    let (status, answered) = send(&house, Method::DELETE, &path, None).await;
    assert_eq!((status, &answered["id"]), (200, &json!(id)), "{answered}");
    assert_eq!(send(&house, Method::GET, &path, None).await.0, 404);
    assert_eq!(send(&house, Method::DELETE, &path, None).await.0, 404);
    let (_, left) = send(&house, Method::GET, &format!("/{id}/items?order=asc"), None).await;
    assert_eq!(left["data"].as_array().unwrap().len(), 1, "{left}");

    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("Go on.");
    client.extra = json!({"conversation": id});
    client.ask("chat").await;
    let sent = house.recorded("chat").pop().unwrap().body;
    assert!(sent.contains("what was said first") && !sent.contains("what was a mistake"), "{sent}");
    house.stop().await;
}

#[tokio::test]
async fn what_is_said_about_a_conversation_can_be_changed() {
    let house = House::new(one_of_each()).await;
    let (_, begun) = send(&house, Method::POST, "", None).await;
    assert_eq!(begun["metadata"], json!({}), "a body is not needed");
    let path = format!("/{}", begun["id"].as_str().unwrap());
    for metadata in [json!({"a": "1"}), json!({"b": "2"})] {
        let (status, changed) = send(&house, Method::POST, &path, Some(json!({"metadata": metadata}))).await;
        assert_eq!((status, &changed["metadata"]), (200, &metadata));
        assert_eq!(changed["created_at"], begun["created_at"]);
        assert_eq!(send(&house, Method::GET, &path, None).await, (200, changed));
    }
    house.stop().await;
}

#[tokio::test]
async fn a_conversation_that_a_request_began_can_be_had_as_well() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    let id = client.ask("chat").await.header("x-throughline-conversation").to_owned();
    let (status, shown) = send(&house, Method::GET, &format!("/{id}"), None).await;
    assert_eq!((status, &shown["id"]), (200, &json!(id)), "{shown}");
    let (_, items) = send(&house, Method::GET, &format!("/{id}/items?order=asc"), None).await;
    assert_eq!(items["data"][0]["content"][0]["text"], "Hello", "{items}");
    let (status, _) = send(&house, Method::DELETE, &format!("/{id}"), None).await;
    assert_eq!(status, 200);
    assert_eq!(send(&house, Method::GET, &format!("/{id}"), None).await.0, 404);
    house.stop().await;
}

#[tokio::test]
async fn a_conversation_out_of_use_is_not_found_and_its_history_stays() {
    let house = House::new(one_of_each()).await;
    let body = json!({"items": [said("what was said first")]});
    let (_, begun) = send(&house, Method::POST, "", Some(body)).await;
    let id = begun["id"].as_str().unwrap();
    let path = format!("/{id}");
    let (status, gone) = send(&house, Method::DELETE, &path, None).await;
    assert_eq!((status, gone), (200, json!({"id": id, "object": "conversation.deleted", "deleted": true})));
    let items = format!("{path}/items");
    for (method, path, body) in [
        (Method::GET, &path, None),
        (Method::DELETE, &path, None),
        (Method::POST, &path, Some(json!({"metadata": {}}))),
        (Method::GET, &items, None),
        (Method::POST, &items, Some(json!({"items": []}))),
    ] {
        let (status, error) = send(&house, method, path, body).await;
        assert_eq!((status, &error["error"]["type"]), (404, &json!("not_found")), "{error}");
    }
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("on");
    client.extra = json!({"conversation": id});
    assert_eq!(client.post(&client.body("chat")).await.status, 404);
    let record = reqwest::get(format!("{}/api/conversations/{id}", house.url)).await.unwrap();
    assert!(record.text().await.unwrap().contains("what was said first"));
    house.stop().await;
}

#[tokio::test]
async fn bad_bodies_are_refused_by_name() {
    let house = House::new(one_of_each()).await;
    let bad = [
        (json!({"items": 7}), "items"),
        (json!({"items": [{"role": "user", "content": 7}]}), "items[0].content"),
        (json!({"metadata": "x"}), "metadata"),
        (json!([]), ""),
    ];
    for (body, param) in bad {
        let (status, error) = send(&house, Method::POST, "", Some(body.clone())).await;
        assert_eq!(status, 400, "{body}: {error}");
        assert_eq!(error["error"]["param"].as_str().unwrap_or_default(), param, "{body}: {error}");
    }
    assert_eq!(send(&house, Method::GET, "/conv_nobody", None).await.0, 404);
    house.stop().await;
}
