//! Answers that are generated in the background: queued, followed, come back to, called off, and what a restart
//! makes of them.

use crate::client::Client;
use crate::conformance::framed;
use crate::hang_up::{WORD, answer_until_hung_up, opening, read_request};
use crate::house::{House, Room, one_of_each};
use crate::stream::{check_response, check_stream};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_sim::Script;
use throughline_store::Memory;
use tokio::net::TcpListener;

const QUESTION: &str = "What is behind the curtain?";

fn asking(house: &House, extra: &Value) -> Client {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say(QUESTION);
    client.extra = json!({"background": true, "tools": []});
    client.extra.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    client
}

async fn get(house: &House, path: &str) -> String {
    let response = reqwest::get(format!("{}/v1/responses/{path}", house.url)).await.unwrap();
    response.text().await.unwrap()
}

async fn cancel(house: &House, id: &str) -> (u16, Value) {
    let url = format!("{}/v1/responses/{id}/cancel", house.url);
    let response = reqwest::Client::new().post(url).send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Asks for a response over and over until its status is another than these.
async fn past(house: &House, id: &str, statuses: &[&str]) -> Value {
    loop {
        let response: Value = serde_json::from_str(&get(house, id).await).unwrap();
        check_response(&response);
        assert_eq!(response["id"], id);
        assert_eq!(response["background"], true);
        if !statuses.contains(&response["status"].as_str().unwrap()) {
            return response;
        }
    }
}

fn id_of(response: &Value) -> String {
    response["id"].as_str().unwrap().to_owned()
}

/// Returns a gateway whose only backend is a socket, and that socket.
async fn with_socket(dialect: Dialect) -> (House, TcpListener) {
    with_socket_and_history(dialect, Arc::new(Memory::new())).await
}

async fn with_socket_and_history(dialect: Dialect, history: Arc<Memory>) -> (House, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut room = Room::new("slow", dialect);
    room.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    (House::with_history(vec![room], history).await, listener)
}

#[tokio::test]
async fn a_response_is_queued_at_once_and_there_in_the_end() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let client = asking(&house, &json!({}));
        let queued = client.post(&client.body(backend.name())).await;
        assert_eq!(queued.status, 200, "{}", queued.raw);
        check_response(&queued.body);
        assert_eq!((&queued.body["status"], &queued.body["output"]), (&json!("queued"), &json!([])));
        assert!(!queued.header("x-throughline-conversation").is_empty());
        let id = id_of(&queued.body);
        let response = past(&house, &id, &["queued", "in_progress"]).await;
        assert_eq!(response["status"], "completed", "{backend}: {response}");
        assert!(response["output"].to_string().contains("curtain"), "{response}");
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(!sent.contains("background"), "that is none of the backend's business: {sent}");
        let items: Value = serde_json::from_str(&get(&house, &format!("{id}/input_items")).await).unwrap();
        assert_eq!(items["data"][0]["content"][0]["text"], QUESTION);
        let on = asking(&house, &json!({"background": false, "previous_response_id": id}));
        assert_eq!(on.post(&on.body(backend.name())).await.status, 200);
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_stream_of_the_background_keeps_the_laws_and_can_be_come_back_to() {
    for backend in Dialect::ALL {
        let history = Arc::new(Memory::new());
        let house = House::with_history(one_of_each(), history.clone()).await;
        let mut client = asking(&house, &json!({}));
        client.stream = true;
        let answer = client.post(&client.body(backend.name())).await;
        let events = framed(&answer.raw);
        assert_eq!(events[0]["response"]["status"], "queued");
        let response = check_stream(&events);
        assert_eq!(response["status"], "completed", "{backend}");
        let id = id_of(&response);
        assert_eq!(past(&house, &id, &[]).await, response);
        let all = framed(&get(&house, &format!("{id}?stream=true")).await);
        assert_eq!(all, events);
        let rest = framed(&get(&house, &format!("{id}?stream=true&starting_after=2")).await);
        assert_eq!(rest, events[3..]);
        let wrong: Value =
            serde_json::from_str(&get(&house, &format!("{id}?stream=true&starting_after=x")).await).unwrap();
        assert_eq!(wrong["error"]["param"], "starting_after");

        // Another process knows what came of it, and tells it as a stream again.
        let later = House::with_history(one_of_each(), history).await;
        let whole = framed(&get(&later, &format!("{id}?stream=true")).await);
        assert_eq!(check_stream(&whole), response);
        let types: Vec<&str> = whole.iter().filter_map(|event| event["type"].as_str()).collect();
        assert!(types.contains(&"response.output_text.delta"), "{types:?}");
        let rest = framed(&get(&later, &format!("{id}?stream=true&starting_after=2")).await);
        assert_eq!(rest, whole[3..]);
        later.stop().await;
        house.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_end_it() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let mut client = asking(&house, &json!({}));
        client.stream = true;
        let conversation = client.hang_up_after(backend.name(), "response.created").await;
        let url = format!("{}/api/conversations/{conversation}", house.url);
        let read = loop {
            let text = reqwest::get(&url).await.unwrap().text().await.unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            if read["exchanges"][0]["ended"].is_string() {
                break read;
            }
        };
        assert_eq!(read["exchanges"][0]["ending"], "end_turn", "{backend}: {read}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_response_is_called_off_and_the_backend_is_let_go() {
    for dialect in Dialect::ALL {
        let (house, listener) = with_socket(dialect).await;
        let opening = opening(dialect);
        let backend = tokio::spawn(async move { answer_until_hung_up(listener, &opening).await });
        let mut client = asking(&house, &json!({"stream": true}));
        client.stream = true;
        // The stream lasts as long as the response, so somebody else has to read it.
        let following = tokio::spawn(async move { client.post(&client.body("slow")).await });
        let url = format!("{}/api/conversations", house.url);
        let conversation = loop {
            let text = reqwest::get(&url).await.unwrap().text().await.unwrap();
            let read: Value = serde_json::from_str(&text).unwrap();
            if let Some(id) = read["conversations"][0]["id"].as_str() {
                break id.to_owned();
            }
        };
        let id = format!("resp_{}", conversation.strip_prefix("conv_").unwrap());
        let running = past(&house, &id, &["queued"]).await;
        assert_eq!(running["status"], "in_progress", "{dialect}");

        // What continues it has to wait.
        let on = asking(&house, &json!({"background": false, "previous_response_id": id}));
        let early = on.post(&on.body("slow")).await;
        assert_eq!(early.status, 400, "{}", early.raw);
        assert_eq!(early.body["error"]["param"], "previous_response_id");

        let (status, cancelled) = cancel(&house, &id).await;
        assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")), "{dialect}: {cancelled}");
        backend.await.unwrap();
        assert_eq!(past(&house, &id, &[]).await, cancelled);
        assert_eq!(cancel(&house, &id).await, (200, cancelled), "{dialect}: once is as good as twice");
        let events = framed(&following.await.unwrap().raw);
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.failed", "{dialect}");
        assert_eq!(last["response"]["error"]["code"], "throughline_cancelled");
        assert!(events.iter().any(|event| event["delta"] == WORD), "{dialect}: {events:?}");
        let text = reqwest::get(format!("{url}/{conversation}")).await.unwrap().text().await.unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["exchanges"][0]["ending"], "cancelled", "{dialect}: {read}");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_response_is_called_off_before_the_backend_says_anything() {
    let (house, listener) = with_socket(Dialect::Chat).await;
    let client = asking(&house, &json!({}));
    let id = id_of(&client.post(&client.body("slow")).await.body);
    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await;
    assert_eq!(cancel(&house, &id).await.1["status"], "cancelled");
    assert_eq!(past(&house, &id, &[]).await["status"], "cancelled");
    house.stop().await;
}

#[tokio::test]
async fn a_response_that_has_ended_is_not_called_off() {
    let house = House::new(one_of_each()).await;
    let client = asking(&house, &json!({}));
    let id = id_of(&client.post(&client.body("chat")).await.body);
    let completed = past(&house, &id, &["queued", "in_progress"]).await;
    assert_eq!(cancel(&house, &id).await, (200, completed));
    house.stop().await;
}

#[tokio::test]
async fn a_response_that_is_forgotten_is_called_off() {
    let (house, listener) = with_socket(Dialect::Chat).await;
    let client = asking(&house, &json!({}));
    let id = id_of(&client.post(&client.body("slow")).await.body);
    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await;
    let url = format!("{}/v1/responses/{id}", house.url);
    assert_eq!(reqwest::Client::new().delete(&url).send().await.unwrap().status(), 200);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 404);
    house.stop().await;
}

#[tokio::test]
async fn a_backend_that_fails_makes_a_failed_response() {
    for stream in [false, true] {
        let mut rooms = one_of_each();
        for room in &mut rooms {
            let script = r#"{"turns": [{"error": {"status": 400, "message": "not today"}}], "then": "last"}"#;
            room.options.script = Some(Script::parse(script).unwrap());
        }
        let house = House::new(rooms).await;
        for backend in Dialect::ALL {
            let mut client = asking(&house, &json!({}));
            client.stream = stream;
            let answer = client.post(&client.body(backend.name())).await;
            assert_eq!(answer.status, 200, "the queue took it: {}", answer.raw);
            let id = id_of(&answer.body);
            let failed = past(&house, &id, &["queued", "in_progress"]).await;
            assert_eq!(failed["status"], "failed", "{backend}");
            assert!(failed["error"]["message"].as_str().unwrap().contains("not today"), "{failed}");
            if stream {
                assert_eq!(framed(&answer.raw).last().unwrap()["type"], "response.failed");
            }
        }
        house.stop().await;
    }
}

#[tokio::test]
async fn a_response_that_ran_when_its_process_died_has_failed() {
    for dialect in Dialect::ALL {
        let history = Arc::new(Memory::new());
        let (before, listener) = with_socket_and_history(dialect, history.clone()).await;
        let client = asking(&before, &json!({}));
        let id = id_of(&client.post(&client.body("slow")).await.body);
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;

        // Another process on the same history knows what one that was started again would know.
        let after = House::with_history(one_of_each(), history).await;
        let failed = past(&after, &id, &["queued", "in_progress"]).await;
        assert_eq!(failed["status"], "failed", "{dialect}");
        assert_eq!(failed["error"]["code"], "throughline_stopped");
        assert_eq!(past(&after, &id, &[]).await, failed, "and stays so");
        assert_eq!(cancel(&after, &id).await, (200, failed));
        let on = asking(&after, &json!({"background": false, "previous_response_id": id}));
        assert_eq!(on.post(&on.body("chat")).await.status, 200, "what was asked is still there");
        after.stop().await;
        cancel(&before, &id).await;
        before.stop().await;
    }
}

#[tokio::test]
async fn what_cannot_be_in_the_background_is_refused_by_name() {
    let house = House::new(one_of_each()).await;
    for (extra, param) in [(json!({"store": false}), "store"), (json!({"background": "yes"}), "background")] {
        let client = asking(&house, &extra);
        let answer = client.post(&client.body("chat")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        assert_eq!(answer.body["error"]["param"], param);
    }
    assert!(house.recorded("chat").is_empty());
    house.stop().await;
}

#[tokio::test]
async fn the_gateway_stops_when_what_runs_in_the_background_is_there() {
    let mut room = Room::new("chat", Dialect::Chat);
    let script = r#"{"turns": [{"text": "one two three", "slow_ms": 20}], "then": "last"}"#;
    room.options.script = Some(Script::parse(script).unwrap());
    let history = Arc::new(Memory::new());
    let house = House::with_history(vec![room], history.clone()).await;
    let mut client = asking(&house, &json!({}));
    client.stream = true;
    let conversation = client.hang_up_after("chat", "response.created").await;
    house.stop().await;
    let later = House::with_history(one_of_each(), history).await;
    let id = format!("resp_{}", conversation.strip_prefix("conv_").unwrap());
    assert_eq!(past(&later, &id, &[]).await["status"], "completed");
    later.stop().await;
}
