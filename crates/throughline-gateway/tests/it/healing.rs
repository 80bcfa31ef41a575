//! Healing: what a refusal names is repaired and sent again, before the client has seen a byte.

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::{Script, SimOptions};

/// A backend that refuses the first request with these words, and then answers.
fn refusing(dialect: Dialect, error: &Value, lines: &'static str) -> Room {
    let turns = json!({"turns": [{"error": error}], "then": "think"});
    let script = Some(Script::parse(&turns.to_string()).unwrap());
    let room = Room::new("own", dialect);
    let options = SimOptions { script, ..room.options };
    Room { options, lines, ..room }
}

fn refusal(message: &str) -> Value {
    json!({"status": 400, "message": message})
}

fn bodies(house: &House) -> Vec<Value> {
    house.recorded("own").iter().map(|recorded| serde_json::from_str(&recorded.body).unwrap()).collect()
}

fn assert_healed(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.raw);
    let report = answer.header("x-throughline-report");
    assert!(!report.starts_with("repaired=0 "), "the report says so: {report}");
}

#[tokio::test]
async fn reasoning_that_cannot_be_verified_is_left_out_for_the_rest_of_the_conversation() {
    // The simulated backend knows a foreign signature by itself.
    let house = House::new(vec![Room::new("own", Dialect::Messages)]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.headers = vec![("x-throughline-conversation", "mine".to_owned())];
    client.say("Hello");
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "foreign"});
    client.history.push(json!({"role": "assistant", "content": [thinking, {"type": "text", "text": "Hi."}]}));
    client.say("And now?");
    let answer = client.ask("own").await;
    assert_healed(&answer);
    client.say("Go on.");
    assert_healed(&client.ask("own").await);
    let sent = bodies(&house);
    assert_eq!(sent.len(), 3, "refused once, healed, and the lesson held");
    let thinks: Vec<bool> = sent.iter().map(|body| body.to_string().contains("foreign")).collect();
    assert_eq!(thinks, [true, false, false]);
    house.stop().await;
}

#[tokio::test]
async fn items_that_are_not_stored_are_sent_without_their_ids() {
    // The simulated backend has no such item, and says so.
    let house = House::new(vec![Room::new("own", Dialect::Responses)]).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("Hello");
    client.history.push(json!({"type": "reasoning", "id": "rs_1", "summary": []}));
    client.history.push(json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]}));
    client.say("And now?");
    assert_healed(&client.ask("own").await);
    let sent = bodies(&house);
    let (first, second) = (sent[0].to_string(), sent[1].to_string());
    assert!(first.contains("rs_1") && first.contains("msg_1"), "{first}");
    assert!(!second.contains("rs_1") && !second.contains("msg_1") && second.contains("Hi."), "{second}");
    house.stop().await;
}

#[tokio::test]
async fn the_user_speaks_last_where_prefill_is_refused() {
    let error = refusal(
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
    let house = House::new(vec![refusing(Dialect::Messages, &error, "")]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    client.history.push(json!({"role": "assistant", "content": "I think"}));
    assert_healed(&client.post(&client.body("own")).await);
    let sent = bodies(&house);
    assert_eq!(sent[0]["messages"].as_array().unwrap().last().unwrap()["role"], "assistant");
    assert_eq!(sent[1]["messages"].as_array().unwrap().last().unwrap()["role"], "user");
    house.stop().await;
}

#[tokio::test]
async fn fields_of_messages_that_a_server_does_not_know_are_left_out() {
    let error = refusal("messages.2.tool.name: Extra inputs are not permitted");
    let house = House::new(vec![refusing(Dialect::Chat, &error, "")]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.history.push(json!({"role": "user", "content": [
        {"type": "text", "text": "Read it.", "cache_control": {"type": "ephemeral"}}]}));
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}});
    client.history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    client
        .history
        .push(json!({"role": "tool", "tool_call_id": "call_1", "name": "read_file", "content": "alpha"}));
    assert_healed(&client.post(&client.body("own")).await);
    let sent = bodies(&house);
    assert_eq!(sent[0]["messages"][2]["name"], "read_file");
    let second = sent[1]["messages"].to_string();
    assert_eq!(sent[1]["messages"][2].get("name"), None);
    assert!(!second.contains("cache_control") && second.contains("alpha"), "{second}");
    house.stop().await;
}

#[tokio::test]
async fn a_refusal_that_repair_does_not_help_is_returned_as_it_came_first() {
    let turns = json!({"turns": [
        {"error": refusal("Invalid `signature` in `thinking` block: first")},
        {"error": refusal("Invalid `signature` in `thinking` block: second")},
    ]});
    let script = Some(Script::parse(&turns.to_string()).unwrap());
    let room = Room::new("own", Dialect::Messages);
    let house =
        House::new(vec![Room { options: SimOptions { script, ..SimOptions::default() }, ..room }]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Hello");
    let answer = client.post(&client.body("own")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.raw.contains("first") && !answer.raw.contains("second"), "{}", answer.raw);
    assert_eq!(bodies(&house).len(), 2);
    house.stop().await;
}

#[tokio::test]
async fn a_window_that_a_refusal_names_is_learned_and_the_same_request_fits_into_it_at_once() {
    let message =
        "This model's maximum context length is 3000 tokens. However, your messages have 9000 tokens.";
    let error = json!({"status": 400, "message": message, "code": "context_length_exceeded"});
    let house = House::new(vec![refusing(Dialect::Chat, &error, "")]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Read them.");
    for at in 0..6 {
        let call = json!({"id": format!("call_{at}"), "type": "function",
            "function": {"name": "read_file", "arguments": format!("{{\"path\":\"{at}\"}}")}});
        client.history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        client.result(&format!("call_{at}"), &"a line of some words\n".repeat(300));
    }
    client.say("Thanks. What is the first word?");
    let answer = client.ask("own").await;
    assert_healed(&answer);
    let lengths: Vec<usize> = house.recorded("own").iter().map(|recorded| recorded.body.len()).collect();
    assert!(lengths[1] * 2 < lengths[0] && lengths[1] < 3000 * 6, "{lengths:?}");
    client.say("And the second?");
    client.ask("own").await;
    let lengths: Vec<usize> = house.recorded("own").iter().map(|recorded| recorded.body.len()).collect();
    assert!(lengths[1..].iter().all(|length| *length < 3000 * 6), "the window is remembered: {lengths:?}");
    house.stop().await;
}

#[tokio::test]
async fn other_words_for_not_taking_tool_items_fall_back_to_text() {
    for error in [
        json!({"status": 400, "message": "Invalid input: expected string, received null"}),
        json!({"status": 400, "body": {"error": {"message": "Required", "param": "messages[1].content"}}}),
        json!({"status": 422, "body": {"detail": [{"type": "string_type", "loc": ["body", "messages", 1, "content"],
            "msg": "Input should be a valid string"}]}}),
        json!({"status": 500, "message": "Value is not callable: null in the chat template at row 3"}),
        json!({"status": 400, "body": ""}),
    ] {
        let house = House::new(vec![refusing(Dialect::Chat, &error, "")]).await;
        let mut client = Client::new(&house.url, Dialect::Chat);
        client.say("Read it.");
        let call =
            json!({"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}});
        client.history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        client.result("call_1", "alpha");
        let answer = client.post(&client.body("own")).await;
        assert_eq!(answer.status, 200, "{error}: {}", answer.raw);
        assert!(answer.header("x-throughline-report").contains("strategy=text-embed"), "{error}");
        assert!(bodies(&house).last().unwrap().to_string().contains("Context (tool result):"), "{error}");
        house.stop().await;
    }
}

#[tokio::test]
async fn halves_of_surrogate_pairs_are_repaired_and_reported() {
    for dialect in Dialect::ALL {
        let house = House::new(vec![Room::new("own", dialect)]).await;
        let mut client = Client::new(&house.url, dialect);
        client.print = |body| body.to_string().replace("CUT", "\\ud83d");
        client.say("Hello CUT there");
        let answer = client.post(&client.body("own")).await;
        assert_healed(&answer);
        let sent = house.recorded("own").pop().unwrap().body;
        assert!(!sent.contains("ud83d") && sent.contains('\u{fffd}'), "{sent}");
        house.stop().await;
    }
}

#[tokio::test]
async fn the_status_and_the_patience_of_a_provider_reach_the_client() {
    for (status, header) in [(500, None), (529, Some("7")), (503, Some("120"))] {
        let mut error = json!({"status": status, "message": "no"});
        if let Some(seconds) = header {
            error["headers"] = json!({"retry-after": seconds});
        }
        let turns = json!({"turns": [{"error": error}], "then": "last"});
        let script = Some(Script::parse(&turns.to_string()).unwrap());
        let room = Room::new("own", Dialect::Messages);
        let options = SimOptions { script, ..room.options };
        let house = House::altered(
            vec![Room { options, ..room }],
            std::sync::Arc::new(throughline_store::Memory::new()),
            |gateway| gateway.waits = false,
        )
        .await;
        let mut client = Client::new(&house.url, Dialect::Chat);
        client.say("Hello");
        let answer = client.post(&client.body("own")).await;
        assert_eq!(answer.status, status, "{}", answer.raw);
        let waits = answer.headers.get("retry-after").and_then(|value| value.to_str().ok());
        assert_eq!(waits, header, "{status}");
        house.stop().await;
    }
}
