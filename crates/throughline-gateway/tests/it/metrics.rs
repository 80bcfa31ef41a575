//! What is counted of real exchanges, and who may read it.

use crate::client::Client;
use crate::house::{House, Room};
use throughline_core::Dialect;
use throughline_sim::Script;

async fn metrics(house: &House) -> String {
    let response = reqwest::get(format!("{}/metrics", house.url)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    response.text().await.unwrap()
}

#[track_caller]
fn assert_counted(text: &str, line: &str) {
    assert!(text.lines().any(|each| each == line), "{line} is not in\n{text}");
}

#[tokio::test]
async fn exchanges_attempts_and_fallbacks_are_counted() {
    let mut old = Room::new("old", Dialect::Chat);
    old.options.reject_native = true;
    let mut poor = Room::new("poor", Dialect::Chat);
    let script = r#"{"turns": [{"error": {"status": 500, "message": "out of order"}}]}"#;
    poor.options.script = Some(Script::parse(script).unwrap());
    poor.lines = "fallback = [\"old\"]";
    let house = House::new(vec![old, poor]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Please read the file notes.txt");
    let answer = client.ask("old").await;
    client.result(&answer.calls(Dialect::Messages)[0].id, "a line");
    client.ask("old").await;
    let mut other = Client::new(&house.url, Dialect::Responses);
    other.say("Hello");
    other.ask("poor").await;
    assert_eq!(other.post(&serde_json::json!({"input": 7})).await.status, 400);

    let text = metrics(&house).await;
    for line in [
        r#"throughline_requests_total{dialect="messages",backend="old",ending="tool_calls"} 1"#,
        r#"throughline_requests_total{dialect="messages",backend="old",ending="end_turn"} 1"#,
        r#"throughline_requests_total{dialect="responses",backend="none",ending="rejected"} 1"#,
        r#"throughline_attempts_total{backend="old",outcome="answered"} 3"#,
        r#"throughline_attempts_total{backend="old",outcome="refused"} 1"#,
        r#"throughline_attempts_total{backend="poor",outcome="refused"} 1"#,
        r#"throughline_fallbacks_total{backend="old",kind="text_embed"} 1"#,
        r#"throughline_fallbacks_total{backend="old",kind="failover"} 1"#,
        r#"throughline_exchange_duration_seconds_count{backend="old"} 3"#,
        "throughline_added_seconds_count 3",
    ] {
        assert_counted(&text, line);
    }
    assert!(text.contains(r#"throughline_tokens_total{backend="old",direction="output"}"#), "{text}");
    house.stop().await;
}

#[tokio::test]
async fn metrics_are_for_those_who_are_let_in() {
    let house = House::new(vec![Room::new("one", Dialect::Chat)]).await;
    let request = reqwest::Client::new().get(format!("{}/metrics", house.url));
    assert_eq!(request.header("host", "evil.example").send().await.unwrap().status(), 403);
    house.stop().await;
}
