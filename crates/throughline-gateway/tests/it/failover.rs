//! One tool conversation that is handed from backend to backend in its middle, and back.

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::Script;

const CONTENTS: [&str; 3] = ["alpha, 96.50 exactly", "beta \u{b0}C", "gamma \"quoted\""];

/// A backend of each dialect; each calls for another file, and the first two fail while others answer.
fn rooms() -> Vec<Room> {
    let call = |path: &str, thinks: bool| {
        let mut turn = json!({"calls": [{"name": "read_file", "arguments": {"path": path}}]});
        if thinks {
            turn["reasoning"] = json!(format!("I had better look at {path}."));
        }
        turn
    };
    let error = json!({"error": {"status": 500, "message": "out of order"}});
    let room = |name, dialect, turns: Value, lines| {
        let mut room = Room::new(name, dialect);
        room.options.script = Some(Script::parse(&json!({"turns": turns}).to_string()).unwrap());
        room.lines = lines;
        room
    };
    let last = json!({"text": "All read.", "quote": true});
    vec![
        room(
            "first",
            Dialect::Messages,
            json!([call("a.txt", true), error, error, last]),
            "fallback = [\"second\", \"third\"]",
        ),
        room("second", Dialect::Chat, json!([call("b.txt", false), error]), ""),
        room("third", Dialect::Responses, json!([call("c.txt", true)]), ""),
    ]
}

fn thinking(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat => json!({"reasoning_effort": "high"}),
        Dialect::Messages => json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        Dialect::Responses => json!({"reasoning": {"effort": "high"}}),
    }
}

async fn turn(client: &mut Client, backend: &str) -> Answer {
    let answer = client.ask("first").await;
    assert_eq!(answer.header("x-throughline-backend"), backend, "{}", answer.raw);
    answer
}

fn statuses(house: &House, backend: &str) -> Vec<u16> {
    house.recorded(backend).iter().map(|recorded| recorded.status).collect()
}

/// Returns the signatures in what a messages backend was sent.
fn signatures(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.filter_map(|block| block["signature"].as_str().map(str::to_owned)).collect()
}

/// Asserts that the latest request of a backend holds each of those results as a result of its own.
fn assert_shown(house: &House, backend: &str, results: &[&str]) {
    let body = house.recorded(backend).pop().unwrap().body;
    for result in results {
        let quoted = Value::from(*result).to_string();
        assert!(body.contains(&quoted), "{backend} was not shown {result}: {body}");
    }
    assert!(!body.contains("Context (tool result)"), "{backend}: {body}");
}

async fn chain(from: Dialect, stream: bool) {
    let house = House::new(rooms()).await;
    let mut client = Client::new(&house.url, from);
    client.stream = stream;
    client.extra = thinking(from);
    client.say("Please read the files");
    for (at, backend) in ["first", "second", "third"].into_iter().enumerate() {
        let answer = turn(&mut client, backend).await;
        assert_shown(&house, backend, &CONTENTS[..at]);
        let calls = answer.calls(from);
        assert_eq!(calls.len(), 1, "{}", answer.raw);
        client.result(&calls[0].id, CONTENTS[at]);
    }
    let answer = turn(&mut client, "first").await;
    assert!(answer.text(from).contains(CONTENTS[2]), "{}", answer.raw);
    assert_shown(&house, "first", &CONTENTS);

    // What is refused is what the scripts refuse, and nothing else.
    assert_eq!(statuses(&house, "first"), [200, 500, 500, 200], "{from}");
    assert_eq!(statuses(&house, "second"), [200, 500], "{from}");
    assert_eq!(statuses(&house, "third"), [200], "{from}");
    let sent: Vec<Vec<String>> =
        house.recorded("first")[1..].iter().map(|recorded| signatures(&recorded.body)).collect();
    assert_eq!(sent[0].len(), 1, "its own reasoning came back: {from}");
    assert!(sent.iter().all(|signatures| *signatures == sent[0]), "{from}: {sent:?}");
    if from == Dialect::Messages {
        let given = client.history[1]["content"][0]["signature"].as_str().unwrap();
        assert_eq!(sent[0], [given], "byte for byte");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_tool_conversation_goes_from_messages_to_chat_to_responses_and_back() {
    for from in Dialect::ALL {
        for stream in [false, true] {
            chain(from, stream).await;
        }
    }
}
