//! `context_management`: what clients ask to have done with their history, by the backend or else here.

use crate::budget::{PAIRS, whole, with_pairs};
use crate::client::{Answer, Client};
use crate::house::{House, Room, one_of_each};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_sim::Script;
use throughline_store::Memory;

fn sent(house: &House, backend: &str) -> String {
    house.recorded(backend).last().unwrap().body.clone()
}

fn clear_calls(more: &Value) -> Value {
    let mut edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 10}});
    edit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"edits": [edit]})
}

/// Returns what an answer says was done, whole or streamed.
fn applied(answer: &Answer, stream: bool) -> Vec<Value> {
    let told = if stream {
        let data = answer.raw.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let last = events.rev().find(|event| event["type"] == "message_delta").unwrap();
        last["context_management"].clone()
    } else {
        answer.body["context_management"].clone()
    };
    told["applied_edits"].as_array().unwrap_or_else(|| panic!("{}", answer.raw)).clone()
}

#[tokio::test]
async fn old_results_are_cleared_for_every_backend_and_the_client_is_told() {
    let house = House::new(one_of_each()).await;
    for (backend, stream) in Dialect::ALL.into_iter().flat_map(|backend| [(backend, false), (backend, true)])
    {
        let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
        client.stream = stream;
        client.extra = json!({"context_management": clear_calls(&json!({}))});
        let answer = client.ask(backend.name()).await;
        let body = sent(&house, backend.name());
        assert_eq!((whole(&body, 0..PAIRS), whole(&body, PAIRS - 3..PAIRS)), (3, 3), "{backend}: {body}");
        assert!(!body.contains("context_management") && body.contains("; recall "), "{body}");
        assert!(answer.header("x-throughline-report").contains(&format!("shortened={}", PAIRS - 3)));
        let [edit] = applied(&answer, stream).try_into().unwrap();
        assert_eq!(edit["type"], "clear_tool_uses_20250919");
        assert_eq!(edit["cleared_tool_uses"], PAIRS - 3);
        assert!(edit["cleared_input_tokens"].as_u64().unwrap() > 5000, "{edit}");
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn each_part_of_what_is_asked_for_decides_something() {
    let house = House::new(one_of_each()).await;
    let tokens = |count: u64| json!({"type": "input_tokens", "value": count});
    for (more, left, inputs) in [
        (json!({"trigger": tokens(100_000)}), PAIRS, PAIRS),
        (json!({"trigger": tokens(2_000)}), 3, PAIRS),
        (json!({"keep": {"type": "tool_uses", "value": 7}}), 7, PAIRS),
        (json!({"clear_at_least": tokens(1_000_000)}), PAIRS, PAIRS),
        (json!({"clear_at_least": tokens(1_000)}), 3, PAIRS),
        (json!({"exclude_tools": ["read_file"]}), PAIRS, PAIRS),
        (json!({"exclude_tools": ["other"]}), 3, PAIRS),
        (json!({"clear_tool_inputs": true}), 3, 3),
        (json!({"clear_tool_inputs": ["read_file"]}), 3, 3),
        (json!({"clear_tool_inputs": ["other"]}), 3, PAIRS),
    ] {
        let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
        // What was cleared in one conversation stays so; these are several.
        client.headers.push(("x-throughline-conversation", more.to_string()));
        client.extra = json!({"context_management": clear_calls(&more)});
        let answer = client.ask("chat").await;
        let body = sent(&house, "chat");
        assert_eq!(whole(&body, 0..PAIRS), left, "{more}: {body}");
        assert_eq!(
            (0..PAIRS).filter(|file| body.contains(&format!("src/{file}.rs"))).count(),
            inputs,
            "{more}"
        );
        assert_eq!(applied(&answer, false).is_empty(), left == PAIRS, "{}", answer.raw);
    }
    house.stop().await;
}

#[tokio::test]
async fn a_backend_that_knows_the_field_is_sent_it_as_it_came() {
    let rooms =
        || one_of_each().into_iter().map(|room| Room { lines: "context_management = \"always\"", ..room });
    let house = House::new(rooms().collect()).await;
    let edits = clear_calls(&json!({}));
    let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
    client.extra = json!({"context_management": edits});
    client.ask("messages").await;
    let body: Value = serde_json::from_str(&sent(&house, "messages")).unwrap();
    assert_eq!(body["context_management"], edits);
    assert_eq!(whole(&body.to_string(), 0..PAIRS), PAIRS);
    // Another dialect has no such field, whatever the backend knows.
    let mut client = with_pairs(&house.url, Dialect::Messages, PAIRS);
    client.headers.push(("x-throughline-conversation", "another".to_owned()));
    client.extra = json!({"context_management": edits});
    client.ask("chat").await;
    assert_eq!(whole(&house.recorded("chat")[0].body, 0..PAIRS), 3);
    let mut client = with_pairs(&house.url, Dialect::Responses, PAIRS);
    let edits = json!([{"type": "compaction", "compact_threshold": 5000}]);
    client.extra = json!({"context_management": edits});
    client.ask("responses").await;
    let body: Value = serde_json::from_str(&sent(&house, "responses")).unwrap();
    assert_eq!((&body["context_management"], whole(&body.to_string(), 0..PAIRS)), (&edits, PAIRS));
    house.stop().await;
}

#[tokio::test]
async fn a_history_is_compacted_above_the_threshold_of_the_client() {
    let house = House::new(one_of_each()).await;
    for (dialect, edits) in [
        (Dialect::Responses, json!([{"type": "compaction", "compact_threshold": 5000}])),
        (
            Dialect::Messages,
            json!({"edits": [
            {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 5000}}]}),
        ),
    ] {
        for backend in Dialect::ALL {
            let mut client = with_pairs(&house.url, dialect, PAIRS);
            client.extra = json!({"context_management": edits});
            client.ask(backend.name()).await;
            let body = sent(&house, backend.name());
            assert!(whole(&body, 0..PAIRS) < PAIRS / 2 && body.len() < 20_000, "{dialect} {backend}: {body}");
            assert!(!body.contains("context_management"), "{body}");
        }
        // A threshold below what may never be shortened is no reason to fail.
        let mut client = with_pairs(&house.url, dialect, 3);
        client.say(&"These are the user's own words. ".repeat(2000));
        client.extra = json!({"context_management": edits});
        client.ask("chat").await;
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn what_was_cleared_stays_so_over_requests_and_restarts_and_the_prefix_with_it() {
    for dialect in Dialect::ALL {
        let history = Arc::new(Memory::new());
        let mut client = with_pairs("http://nowhere", Dialect::Messages, 12);
        client.extra = json!({"context_management": clear_calls(&json!({}))});
        let mut before: Option<Vec<Value>> = None;
        for turn in 0..3 {
            let house = House::with_history(vec![Room::new("own", dialect)], history.clone()).await;
            client = client.at(&house.url);
            let answer = client.ask("own").await;
            assert_eq!(applied(&answer, false)[0]["cleared_tool_uses"], 9, "{dialect}, turn {turn}");
            let body: Value = serde_json::from_str(&sent(&house, "own")).unwrap();
            let list = if dialect == Dialect::Responses { "input" } else { "messages" };
            let list = body[list].as_array().unwrap().clone();
            if let Some(before) = before.replace(list.clone()) {
                assert_eq!(list[..before.len()], before, "{dialect}, turn {turn}");
            }
            client.say("And now?");
            house.assert_nothing_refused();
            house.stop().await;
        }
    }
}

#[tokio::test]
async fn reasoning_of_earlier_turns_is_cleared() {
    let turn = json!({"reasoning": "I think so.", "text": "Yes."});
    let mut room = Room::new("own", Dialect::Messages);
    room.options.script =
        Some(Script::parse(&json!({"turns": [turn], "then": "repeat"}).to_string()).unwrap());
    let house = House::new(vec![room]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    let thinking = json!({"type": "enabled", "budget_tokens": 2048});
    client.extra = json!({"thinking": thinking});
    for _ in 0..3 {
        client.say("Is it so?");
        client.ask("own").await;
    }
    let thoughts = || sent(&house, "own").matches("\"type\":\"thinking\"").count();
    client.say("And now?");
    for (keep, left) in [
        (json!("all"), 3),
        (json!({"type": "thinking_turns", "value": 2}), 2),
        (json!({"type": "thinking_turns", "value": 1}), 1),
    ] {
        let edit = json!({"type": "clear_thinking_20251015", "keep": keep});
        client.extra = json!({"thinking": thinking, "context_management": {"edits": [edit]}});
        let answer = client.post(&client.body("own")).await;
        assert_eq!(answer.status, 200, "{}", answer.raw);
        assert_eq!(thoughts(), left, "{keep}");
        let told = applied(&answer, false);
        assert_eq!(
            told.first().map_or(0, |edit| edit["cleared_thinking_turns"].as_u64().unwrap()),
            3 - left as u64
        );
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn what_nobody_knows_is_said_to_be_left_out() {
    let house = House::new(one_of_each()).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    client.extra = json!({"context_management": {"edits": [{"type": "forget_20990101"}]}, "tools": []});
    let answer = client.ask("messages").await;
    assert!(answer.header("x-throughline-report").contains("dropped=1"), "{:?}", answer.headers);
    assert!(!sent(&house, "messages").contains("forget_20990101"));
    assert!(applied(&answer, false).is_empty());
    house.stop().await;
}
