//! What happens when a backend cannot take what it is sent, or fails.

use crate::client::Client;
use crate::house::{House, Room, one_of_each};
use serde_json::json;
use throughline_core::Dialect;
use throughline_sim::Script;

const CONTENT: &str = "the only line of the file";

fn statuses(house: &House, backend: &str) -> Vec<u16> {
    house.recorded(backend).iter().map(|recorded| recorded.status).collect()
}

#[tokio::test]
async fn a_backend_that_rejects_tool_items_is_shown_text_and_that_is_remembered() {
    for to in Dialect::ALL {
        let mut room = Room::new("old", to);
        room.options.reject_native = true;
        let house = House::new(vec![room]).await;
        let mut client = Client::new(&house.url, Dialect::Chat);
        client.say("Please read the file notes.txt");
        let answer = client.ask("old").await;
        client.result(&answer.calls(Dialect::Chat)[0].id, CONTENT);
        let answer = client.ask("old").await;
        assert!(answer.header("x-throughline-report").ends_with("strategy=text-embed"));
        assert_eq!(statuses(&house, "old"), [200, 400, 200], "{to}");
        let sent = house.recorded("old").pop().unwrap().body;
        assert!(sent.contains("Context (tool result):") && sent.contains(CONTENT), "{sent}");
        client.say("Thank you");
        client.ask("old").await;
        assert_eq!(statuses(&house, "old"), [200, 400, 200, 200], "no second failing attempt: {to}");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_backend_that_fails_hands_over_with_the_whole_tool_history() {
    let script = r#"{"turns": [
        {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
        {"error": {"status": 500, "message": "out of order"}}]}"#;
    let mut first = Room::new("first", Dialect::Messages);
    first.options.script = Some(Script::parse(script).unwrap());
    first.lines = "fallback = [\"second\"]";
    let house = House::new(vec![first, Room::new("second", Dialect::Responses)]).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.say("Please read the file notes.txt");
    let answer = client.ask("first").await;
    client.result(&answer.calls(Dialect::Chat)[0].id, CONTENT);
    let answer = client.ask("first").await;
    assert_eq!(answer.header("x-throughline-backend"), "second");
    assert!(answer.text(Dialect::Chat).contains(CONTENT), "{}", answer.raw);
    house.stop().await;
}

#[tokio::test]
async fn an_error_that_is_the_requests_own_reaches_the_client_as_it_is() {
    let house = House::new(one_of_each()).await;
    for from in Dialect::ALL {
        let client = Client::new(&house.url, from);
        let mut body = client.body("messages");
        body["temperature"] = json!(7);
        let mut told = Client::new(&house.url, from);
        told.say("Hello");
        body = {
            let mut with = told.body("responses");
            with["temperature"] = body["temperature"].clone();
            with
        };
        let answer = told.post(&body).await;
        assert_eq!(answer.status, 400, "{from}: {}", answer.raw);
        assert!(answer.body["error"]["message"].is_string(), "{from}: {}", answer.raw);
    }
    house.stop().await;
}

#[tokio::test]
async fn own_reasoning_comes_back_to_its_issuer_after_a_detour_and_a_restart() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("seals");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let open = || {
        let options = throughline_store::SqliteOptions::default();
        std::sync::Arc::new(throughline_store::Sqlite::open(&folder.join("history.db"), options).unwrap())
    };
    let house = House::with_history(one_of_each(), open()).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.extra = json!({"reasoning_effort": "high"});
    client.say("Please read the file notes.txt");
    let answer = client.ask("messages").await;
    client.result(&answer.calls(Dialect::Chat)[0].id, CONTENT);
    client.ask("chat").await;
    let history = client.history.clone();
    house.stop().await;

    let house = House::with_history(one_of_each(), open()).await;
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.history = history;
    client.extra = json!({"reasoning_effort": "high"});
    client.say("Quote notes.txt from memory");
    client.ask("messages").await;
    house.assert_nothing_refused();
    let sent = house.recorded("messages").pop().unwrap().body;
    assert!(sent.contains("\"signature\""), "its own reasoning did not come back: {sent}");
    house.stop().await;
}
