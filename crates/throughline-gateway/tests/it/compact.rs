//! Compaction: readable, reversible, and taken back as input by every backend.

use crate::client::Client;
use crate::conformance::framed;
use crate::house::{House, one_of_each};
use crate::socket::Socket;
use crate::stream::{check_response, check_stream};
use serde_json::{Value, json};
use throughline_core::Dialect;

const READ_FILE: &str = "Please read the file notes.txt";
const RESULT: &str = "what the file says, word for word";

/// Leads a conversation with a tool in it, and returns what the client has of it.
async fn conversation(house: &House, backend: Dialect) -> (Client, String) {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say(READ_FILE);
    let called = client.ask(backend.name()).await;
    client.result(&called.calls(Dialect::Responses)[0].id, RESULT);
    let answer = client.ask(backend.name()).await;
    let id = answer.header("x-throughline-conversation").to_owned();
    (client, id)
}

async fn compact(house: &House, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().post(format!("{}/v1/responses/compact", house.url));
    let response = request.body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Asserts that this is a compaction object, and returns its items.
fn check_compaction(compacted: &Value) -> Vec<Value> {
    assert_eq!(compacted["object"], "response.compaction", "{compacted}");
    assert!(compacted["id"].is_string() && compacted["created_at"].is_u64(), "{compacted}");
    for count in ["input_tokens", "output_tokens", "total_tokens"] {
        assert!(compacted["usage"][count].is_u64(), "{compacted}");
    }
    assert!(compacted["usage"]["input_tokens_details"]["cached_tokens"].is_u64(), "{compacted}");
    assert!(compacted["usage"]["output_tokens_details"]["reasoning_tokens"].is_u64(), "{compacted}");
    let items = compacted["output"].as_array().unwrap().clone();
    let (last, messages) = items.split_last().unwrap();
    assert_eq!(last["type"], "compaction", "{compacted}");
    assert!(last["id"].as_str().unwrap().starts_with("cmp_") && last["encrypted_content"].is_string());
    for message in messages {
        assert_eq!((&message["type"], &message["role"]), (&json!("message"), &json!("user")));
        assert!(message["id"].is_string() && message["status"].is_string(), "{message}");
        assert!(message["content"].is_array(), "{message}");
    }
    items
}

#[tokio::test]
async fn a_compaction_is_readable_and_goes_on_in_the_same_conversation_over_every_backend() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let (client, id) = conversation(&house, backend).await;
        let asked = house.recorded(backend.name()).len();
        let (status, compacted) =
            compact(&house, &json!({"model": backend.name(), "input": client.history})).await;
        assert_eq!(status, 200, "{compacted}");
        let items = check_compaction(&compacted);
        assert_eq!(house.recorded(backend.name()).len(), asked, "no model was asked");
        let content = items.last().unwrap()["encrypted_content"].as_str().unwrap();
        assert!(content.contains("1 tool calls") && content.contains("notes.txt"), "{content}");
        assert!(items[0]["content"][0]["text"] == READ_FILE, "what the user said is kept word for word");

        for other in Dialect::ALL {
            let mut next = Client::new(&house.url, Dialect::Responses);
            next.history.clone_from(&items);
            next.say("Where were we?");
            next.extra = json!({"tools": []});
            let answer = next.ask(other.name()).await;
            assert_eq!(answer.header("x-throughline-conversation"), id, "{backend} to {other}");
            let sent = house.recorded(other.name()).pop().unwrap().body;
            assert!(sent.contains("1 tool calls") && sent.contains("notes.txt"), "{sent}");
            assert!(
                !sent.contains("encrypted_content") && !sent.contains("throughline-compaction"),
                "{sent}"
            );
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn the_record_outranks_what_the_item_says_and_the_item_stands_in_for_a_record_that_is_gone() {
    let house = House::new(one_of_each()).await;
    let (client, _) = conversation(&house, Dialect::Chat).await;
    let (_, compacted) = compact(&house, &json!({"model": "chat", "input": client.history})).await;
    let item = check_compaction(&compacted).pop().unwrap();
    let content = item["encrypted_content"].as_str().unwrap();
    let forged = content.replace("notes.txt", "forged.txt");
    let elsewhere = forged.replacen(" entry=", " entry=0000", 1);
    for (content, shown, hidden) in
        [(&forged, "notes.txt", "forged.txt"), (&elsewhere, "forged.txt", "notes.txt")]
    {
        let mut next = Client::new(&house.url, Dialect::Responses);
        next.history.push(json!({"type": "compaction", "id": item["id"], "encrypted_content": content}));
        next.say("Where were we?");
        next.extra = json!({"tools": []});
        next.ask("chat").await;
        let sent = house.recorded("chat").pop().unwrap().body;
        assert!(sent.contains(shown) && !sent.contains(hidden), "{sent}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_compaction_of_a_compaction_keeps_both() {
    let house = House::new(one_of_each()).await;
    let (client, id) = conversation(&house, Dialect::Messages).await;
    let (_, first) = compact(&house, &json!({"model": "messages", "input": client.history})).await;
    let mut next = Client::new(&house.url, Dialect::Responses);
    next.history = check_compaction(&first);
    next.say("Please read the file more.txt");
    let called = next.ask("messages").await;
    next.result(&called.calls(Dialect::Responses)[0].id, RESULT);
    let (status, second) = compact(&house, &json!({"model": "messages", "input": next.history})).await;
    assert_eq!(status, 200, "{second}");
    let items = check_compaction(&second);
    let content = items.last().unwrap()["encrypted_content"].as_str().unwrap();
    assert!(content.contains("notes.txt") && content.contains("more.txt"), "{content}");
    assert!(content.contains(&id), "one conversation, whatever was compacted: {content}");
    let mut last = Client::new(&house.url, Dialect::Responses);
    last.history = items;
    last.say("Where were we?");
    last.extra = json!({"tools": []});
    last.ask("chat").await;
    let sent = house.recorded("chat").pop().unwrap().body;
    assert!(sent.contains("Read: notes.txt") && sent.contains("Read: more.txt"), "{sent}");
    house.stop().await;
}

#[tokio::test]
async fn what_a_response_stands_for_can_be_compacted() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("what was asked first");
    let answer = client.ask("chat").await;
    let body = json!({"model": "chat", "previous_response_id": answer.body["id"]});
    let (status, compacted) = compact(&house, &body).await;
    assert_eq!(status, 200, "{compacted}");
    assert!(check_compaction(&compacted)[0].to_string().contains("what was asked first"));
    let body = json!({"model": "chat", "previous_response_id": compacted["id"], "input": "on"});
    let (status, refused) = compact(&house, &body).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    house.stop().await;
}

#[tokio::test]
async fn a_compaction_without_a_model_is_refused() {
    let house = House::new(one_of_each()).await;
    let (status, refused) = compact(&house, &json!({"input": "Hello"})).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("model")), "{refused}");
    house.stop().await;
}

#[tokio::test]
async fn a_foreign_compaction_goes_to_its_own_dialect_and_no_other() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.history.push(json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAB"}));
    client.say("Where were we?");
    client.extra = json!({"tools": []});
    let answer = client.ask("chat").await;
    assert!(answer.header("x-throughline-report").contains("dropped=1"), "{:?}", answer.headers);
    assert!(!house.recorded("chat").pop().unwrap().body.contains("gAAAAAB"));
    client.post(&client.body("responses")).await;
    assert!(house.recorded("responses").pop().unwrap().body.contains("gAAAAAB"));
    house.stop().await;
}

#[tokio::test]
async fn a_trigger_in_the_input_is_answered_with_one_compaction_item() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        for stream in [false, true] {
            let (mut client, id) = conversation(&house, backend).await;
            let asked = house.recorded(backend.name()).len();
            client.history.push(json!({"type": "compaction_trigger"}));
            client.stream = stream;
            client.extra = json!({"store": false});
            let answer = client.post(&client.body(backend.name())).await;
            assert_eq!(answer.status, 200, "{}", answer.raw);
            let response = if stream { check_stream(&framed(&answer.raw)) } else { answer.body.clone() };
            check_response(&response);
            let [item] = response["output"].as_array().unwrap().as_slice() else { panic!("{response}") };
            assert_eq!(item["type"], "compaction", "{response}");
            assert!(item["encrypted_content"].as_str().unwrap().contains(&id), "{item}");
            assert_eq!(house.recorded(backend.name()).len(), asked, "no model was asked");
            let mut next = Client::new(&house.url, Dialect::Responses);
            next.history.push(item.clone());
            next.say("Where were we?");
            next.ask(backend.name()).await;
            assert!(house.recorded(backend.name()).pop().unwrap().body.contains("notes.txt"));
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_chain_over_a_websocket_begins_with_a_compaction() {
    let house = House::new(one_of_each()).await;
    let (client, _) = conversation(&house, Dialect::Chat).await;
    let (_, compacted) = compact(&house, &json!({"model": "chat", "input": client.history})).await;
    let mut input = check_compaction(&compacted);
    input.push(json!({"role": "user", "content": "Where were we?"}));
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL {
        let frame =
            json!({"type": "response.create", "model": backend.name(), "input": input, "store": false});
        socket.ask(&frame).await.completed();
        assert!(house.recorded(backend.name()).pop().unwrap().body.contains("notes.txt"));
    }
    house.stop().await;
}
