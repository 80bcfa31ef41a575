//! The Responses dialect over a WebSocket: the demands of OpenResponses and the needs of Codex, each a test.

use crate::conformance::cut_off;
use crate::house::{House, Room, one_of_each};
use crate::socket::Socket;
use crate::stream::{check_response, check_stream};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::Dialect;
use throughline_gateway::gateway::Gateway;
use throughline_sim::Script;
use throughline_store::Memory;
use tokio_tungstenite::tungstenite::Message;

fn create(backend: Dialect, input: &str) -> Value {
    json!({"type": "response.create", "model": backend.name(), "input": input, "store": false})
}

fn continuing(backend: Dialect, input: &str, previous: &Value) -> Value {
    let mut frame = create(backend, input);
    frame["previous_response_id"] = previous["id"].clone();
    frame
}

async fn scripted(script: &str) -> House {
    let mut room = Room::new("chat", Dialect::Chat);
    room.options.script = Some(Script::parse(script).unwrap());
    House::new(vec![room]).await
}

#[tokio::test]
async fn frames_are_the_events_and_keep_their_laws_turn_after_turn() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL.into_iter().chain(Dialect::ALL) {
        let turn = socket.ask(&create(backend, "Hello")).await;
        assert_eq!(check_stream(&turn.0)["status"], "completed");
    }
    house.stop().await;
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_one_after_the_other() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    let all: Vec<Dialect> = (0..3).flat_map(|_| Dialect::ALL).collect();
    for backend in &all {
        socket.send(&create(*backend, "Hello")).await;
    }
    for backend in &all {
        let response = check_stream(&socket.turn().await.0);
        assert_eq!(response["model"], backend.name());
    }
    house.stop().await;
}

#[tokio::test]
async fn a_chain_works_although_nothing_is_to_be_stored() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL {
        let first = socket.ask(&create(backend, "the first question")).await;
        let second = socket.ask(&continuing(backend, "the second", first.completed())).await;
        let third = socket.ask(&continuing(backend, "the third", second.completed())).await;
        assert_eq!(third.completed()["previous_response_id"], second.completed()["id"]);
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(["the first question", "the second", "the third"].iter().all(|text| sent.contains(text)));
    }
    house.stop().await;
}

#[tokio::test]
async fn another_connection_knows_only_what_was_stored() {
    let house = House::new(one_of_each()).await;
    let backend = Dialect::Chat;
    let unstored = Socket::open(&house.url).await.ask(&create(backend, "Hello")).await;
    let mut kept = create(backend, "Hello");
    kept["store"] = json!(true);
    let stored = Socket::open(&house.url).await.ask(&kept).await;
    let mut socket = Socket::open(&house.url).await;
    let turn = socket.ask(&continuing(backend, "on", unstored.completed())).await;
    assert_eq!(turn.code(), "previous_response_not_found");
    assert_eq!(turn.last()["error"]["param"], "previous_response_id");
    socket.ask(&continuing(backend, "on", stored.completed())).await.completed();
    house.stop().await;
}

#[tokio::test]
async fn an_unknown_previous_response_is_not_found_and_the_connection_goes_on() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    let first = socket.ask(&create(Dialect::Chat, "Hello")).await;
    let turn = socket.ask(&continuing(Dialect::Chat, "on", &json!({"id": "resp_nobody"}))).await;
    assert_eq!(turn.code(), "previous_response_not_found");
    // What the connection remembers is another response, and stays.
    socket.ask(&continuing(Dialect::Chat, "on", first.completed())).await.completed();
    house.stop().await;
}

#[tokio::test]
async fn a_continuation_that_fails_takes_what_it_continued_with_it() {
    let script = r#"{"turns": [{"text": "yes"}, {"error": {"status": 400, "message": "no"}}]}"#;
    let house = scripted(script).await;
    let mut socket = Socket::open(&house.url).await;
    let first = socket.ask(&create(Dialect::Chat, "Hello")).await;
    let failed = socket.ask(&continuing(Dialect::Chat, "on", first.completed())).await;
    assert_eq!(failed.last()["status"], 400, "{failed:?}");
    assert_eq!(failed.0.len(), 1);
    failed.code();
    let again = socket.ask(&continuing(Dialect::Chat, "on", first.completed())).await;
    assert_eq!(again.code(), "previous_response_not_found");
    socket.ask(&create(Dialect::Chat, "Hello")).await.completed();
    house.stop().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_ends_with_one_frame() {
    for dialect in Dialect::ALL {
        let mut room = Room::new(dialect.name(), dialect);
        room.options.script = Some(cut_off(dialect));
        let house = House::new(vec![room]).await;
        let mut socket = Socket::open(&house.url).await;
        let failed = socket.ask(&create(dialect, "Hello")).await;
        assert_eq!(failed.last()["type"], "response.failed", "{failed:?}");
        assert_eq!(failed.0[0]["type"], "response.created");
        let next = socket.ask(&create(dialect, "Hello")).await;
        assert_eq!(next.0[0]["type"], "response.created", "nothing is left over from the turn before");
        next.completed();
        house.stop().await;
    }
}

#[tokio::test]
async fn a_warm_up_asks_no_backend_and_can_be_continued() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL {
        let before = house.recorded(backend.name()).len();
        let mut frame = create(backend, "what was known before");
        for (name, value) in [
            ("generate", json!(false)),
            ("stream", json!(true)),
            ("stream_options", json!({"include_obfuscation": false})),
            ("client_metadata", json!({"a": "b"})),
        ] {
            frame[name] = value;
        }
        let warm = socket.ask(&frame).await;
        check_response(warm.completed());
        assert_eq!(warm.completed()["output"], json!([]));
        assert_eq!(house.recorded(backend.name()).len(), before);
        socket.ask(&continuing(backend, "the question", warm.completed())).await.completed();
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        assert!(sent.contains("what was known before") && sent.contains("the question"), "{sent}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_tool_conversation_works_over_one_connection() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    let tools = json!([{"type": "function", "name": "read_file", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]);
    for backend in Dialect::ALL {
        let mut frame = create(backend, "Please read the file notes.txt");
        frame["tools"] = tools.clone();
        let called = socket.ask(&frame).await;
        let output = called.completed()["output"].as_array().unwrap();
        let call = output.iter().find(|item| item["type"] == "function_call").unwrap();
        let mut frame = continuing(backend, "", called.completed());
        frame["tools"] = tools.clone();
        frame["input"] = json!([{"type": "function_call_output", "call_id": call["call_id"],
            "output": "what the file says"}]);
        let answer = socket.ask(&frame).await;
        assert!(answer.completed()["output"].to_string().contains("what the file says"), "{backend}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn bad_frames_are_refused_by_name_and_the_connection_goes_on() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    let bad = [
        (Message::binary(vec![1_u8, 2]), Value::Null),
        (Message::text("{"), Value::Null),
        (Message::text("[]"), Value::Null),
        (Message::text(r#"{"input": "x"}"#), json!("type")),
        (Message::text(r#"{"type": "response.cancel"}"#), json!("type")),
        (Message::text(r#"{"type": "response.create", "generate": 7}"#), json!("generate")),
        (Message::text(r#"{"type": "response.create", "input": 7}"#), json!("input")),
    ];
    for (message, param) in bad {
        let shown = format!("{message:?}");
        socket.send_message(message).await;
        let turn = socket.turn().await;
        assert_eq!(turn.code(), "throughline_invalid_request", "{shown}");
        assert_eq!(turn.last()["status"], 400, "{shown}");
        assert_eq!(turn.last()["error"]["param"], param, "{shown}");
    }
    socket.ask(&create(Dialect::Chat, "Hello")).await.completed();
    house.stop().await;
}

#[tokio::test]
async fn the_handshake_is_guarded() {
    let house = House::new(one_of_each()).await;
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "http://localhost:3000"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        assert_eq!(Socket::open_with(&house.url, &[(name, value)]).await.err(), Some(403), "{name}");
    }
    let beta = ("openai-beta", "responses_websockets=2026-02-06");
    assert!(Socket::open_with(&house.url, &[("origin", &house.url), beta]).await.is_ok());
    let plain = reqwest::get(format!("{}/v1/responses", house.url)).await.unwrap();
    assert_eq!(plain.status(), 400);
    assert!(plain.text().await.unwrap().contains("throughline_no_upgrade"));
    house.stop().await;
}

#[tokio::test]
async fn the_gateway_stops_when_the_turn_under_way_is_over() {
    let house = scripted(r#"{"turns": [{"text": "one two three", "slow_ms": 20}], "then": "last"}"#).await;
    let mut socket = Socket::open(&house.url).await;
    socket.send(&create(Dialect::Chat, "Hello")).await;
    assert_eq!(socket.frame().await["type"], "response.created");
    let stopping = tokio::spawn(house.stop());
    socket.turn().await.completed();
    assert_eq!(socket.closed().await, 1001);
    stopping.await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_closed_when_the_gateway_stops() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    socket.ask(&create(Dialect::Chat, "Hello")).await.completed();
    let stopping = tokio::spawn(house.stop());
    assert_eq!(socket.closed().await, 1001);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_frame_that_is_too_large_is_told_so_before_the_connection_is_closed() {
    let mut room = Room::new("chat", Dialect::Chat);
    room.lines = "[limits]\nbody_bytes = 2000\n";
    let house = House::new(vec![room]).await;
    let mut socket = Socket::open(&house.url).await;
    socket.ask(&create(Dialect::Chat, "Hello")).await.completed();
    let turn = socket.ask(&create(Dialect::Chat, &"x".repeat(2500))).await;
    assert_eq!(turn.code(), "throughline_body_too_large");
    assert_eq!(turn.last()["status"], 413);
    assert_eq!(socket.closed().await, 1009);
    house.stop().await;
}

#[tokio::test]
async fn a_connection_that_has_lasted_long_enough_is_told_so() {
    let alter = |gateway: &mut Gateway| gateway.socket_lasts = Duration::ZERO;
    let house = House::altered(one_of_each(), Arc::new(Memory::new()), alter).await;
    let mut socket = Socket::open(&house.url).await;
    let turn = socket.turn().await;
    assert_eq!(turn.code(), "websocket_connection_limit_reached");
    assert_eq!(socket.closed().await, 1000);
    house.stop().await;
}

#[tokio::test]
async fn fields_about_the_transport_are_passed_over() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL {
        let mut frame = create(backend, "Hello");
        for (name, value) in
            [("stream", json!(false)), ("background", json!(true)), ("stream_options", json!({}))]
        {
            frame[name] = value;
        }
        check_stream(&socket.ask(&frame).await.0);
    }
    house.stop().await;
}

#[tokio::test]
async fn a_continuation_with_a_result_of_no_call_fails_and_is_forgotten() {
    let house = House::new(one_of_each()).await;
    let mut socket = Socket::open(&house.url).await;
    for backend in Dialect::ALL {
        let first = socket.ask(&create(backend, "Hello")).await;
        let mut bad = continuing(backend, "", first.completed());
        bad["input"] = json!([{"type": "function_call_output", "call_id": "call_nobody", "output": "x"}]);
        let failed = socket.ask(&bad).await;
        assert_eq!(failed.last()["status"], 400, "{failed:?}");
        assert_eq!(failed.last()["error"]["param"], "input[0].call_id");
        let again = socket.ask(&continuing(backend, "on", first.completed())).await;
        assert_eq!(again.code(), "previous_response_not_found");
    }
    house.stop().await;
}
