//! What OpenResponses demands of a server, and what real clients need beyond it, over HTTP: each demand a
//! test, against backends of all three dialects.

use crate::client::{Answer, Client};
use crate::house::{House, Room, one_of_each};
use crate::stream::{check_response, check_stream};
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_sim::Script;

const READ_FILE: &str = "Please read the file notes.txt";

fn asking(house: &House, text: &str, stream: bool) -> Client {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.stream = stream;
    client.say(text);
    client
}

/// Returns the events of a raw stream, after checking how they are framed.
pub fn framed(raw: &str) -> Vec<Value> {
    assert!(!raw.contains('\r'), "lines end with LF alone");
    let mut events: Vec<&str> = raw.strip_suffix("\n\n").unwrap().split("\n\n").collect();
    assert_eq!(events.pop(), Some("data: [DONE]"));
    let event = |event: &&str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
        data
    };
    events.iter().map(event).collect()
}

/// Has a backend of each dialect follow a script, and hands over what each answers.
async fn scripted(script: &str, stream: bool, check: impl Fn(Dialect, Answer)) {
    let mut rooms = one_of_each();
    for room in &mut rooms {
        room.options.script = Some(Script::parse(script).unwrap());
    }
    let house = House::new(rooms).await;
    for backend in Dialect::ALL {
        let client = asking(&house, "Hello", stream);
        check(backend, client.post(&client.body(backend.name())).await);
    }
    house.stop().await;
}

/// Returns a script whose first answer breaks off when a word of it has come.
pub fn cut_off(dialect: Dialect) -> Script {
    let events = if dialect == Dialect::Chat { 3 } else { 5 };
    let turn = json!({"text": "a somewhat longer answer, to be cut", "cut_off": events});
    Script::parse(&json!({"turns": [turn]}).to_string()).unwrap()
}

#[tokio::test]
async fn a_whole_answer_is_json_with_every_field() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        for text in ["Hello", READ_FILE] {
            let answer = asking(&house, text, false).ask(backend.name()).await;
            assert!(answer.header("content-type").contains("application/json"));
            check_response(&answer.body);
            assert_eq!(answer.body["status"], "completed");
            assert!(!answer.body["output"].as_array().unwrap().is_empty());
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn a_stream_is_framed_as_demanded_and_keeps_its_laws() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        for text in ["Hello", READ_FILE] {
            let answer = asking(&house, text, true).ask(backend.name()).await;
            assert!(answer.header("content-type").contains("text/event-stream"));
            let response = check_stream(&framed(&answer.raw));
            assert_eq!(response["status"], "completed");
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn a_request_that_fails_before_the_first_event_is_a_plain_error() {
    let script = r#"{"turns": [{"error": {"status": 400, "message": "no"}}], "then": "last"}"#;
    scripted(script, true, |backend, answer| {
        assert_eq!(answer.status, 400, "{backend}: {}", answer.raw);
        assert!(answer.header("content-type").contains("application/json"));
        let error: Value = serde_json::from_str(&answer.raw).unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error", "{backend}");
        assert!(error["error"].get("code").is_some() && error["error"].get("param").is_some());
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_a_failed_response() {
    let mut rooms = one_of_each();
    for room in &mut rooms {
        room.options.script = Some(cut_off(room.dialect));
    }
    let house = House::new(rooms).await;
    for backend in Dialect::ALL {
        let client = asking(&house, "Hello", false);
        let mut body = client.body(backend.name());
        body["stream"] = json!(true);
        let raw = client.post(&body).await.raw;
        let mut data =
            raw.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        let last: Value = serde_json::from_str(data.next_back().unwrap()).unwrap();
        assert_eq!(last["type"], "response.failed", "{backend}: {raw}");
        assert!(last["sequence_number"].is_u64(), "{backend}: {last}");
        check_response(&last["response"]);
        assert!(
            last["response"]["error"]["code"].is_string() && last["response"]["error"]["message"].is_string()
        );
    }
    house.stop().await;
}

#[tokio::test]
async fn an_answer_that_hits_its_limit_is_incomplete_and_says_why() {
    let script = r#"{"turns": [{"text": "cut", "stop": "max_tokens"}], "then": "last"}"#;
    for stream in [false, true] {
        scripted(script, stream, |backend, answer| {
            assert_eq!(answer.body["status"], "incomplete", "{backend}: {}", answer.raw);
            assert_eq!(answer.body["incomplete_details"]["reason"], "max_output_tokens", "{backend}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_continuation_is_shown_input_output_and_new_input_in_order() {
    // What a backend keeps by itself cannot be seen in what it is sent.
    let whole = |room| Room { lines: "server_state = \"never\"", ..room };
    let house = House::new(one_of_each().into_iter().map(whole).collect()).await;
    for backend in Dialect::ALL {
        let mut client = asking(&house, "the first question", false);
        client.extra = json!({"tools": []});
        let answer = client.ask(backend.name()).await;
        let said = answer.text(Dialect::Responses);
        client.history.clear();
        client.say("the second question");
        client.extra = json!({"tools": [], "previous_response_id": answer.body["id"]});
        let again = client.ask(backend.name()).await;
        assert_eq!(again.body["previous_response_id"], answer.body["id"], "{backend}");
        let sent = house.recorded(backend.name()).pop().unwrap().body;
        let at = |text: &str| sent.find(text).unwrap_or_else(|| panic!("{text}: {sent}"));
        let output = &said[..said.len().min(12)];
        assert!(at("the first question") < at(output) && at(output) < at("the second question"), "{sent}");
    }
    house.stop().await;
}

#[tokio::test]
async fn what_codex_sends_is_taken() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let mut client = asking(&house, "Hello", true);
        client.extra = json!({
            "store": false, "tool_choice": "auto", "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "thread", "client_metadata": {"a": "b"}, "parallel_tool_calls": true,
            "instructions": "Be brief.", "text": {"verbosity": "low"},
        });
        let response = check_stream(&framed(&client.ask(backend.name()).await.raw));
        assert!(response["id"].as_str().unwrap().starts_with("resp_"), "{response}");
        assert_eq!(response["store"], false, "{backend}");
        for item in response["output"].as_array().unwrap() {
            let id = item["id"].as_str().unwrap();
            assert!(["msg_", "rs_", "fc_"].iter().any(|prefix| id.starts_with(prefix)), "{backend}: {id}");
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn what_a_response_was_given_is_listed_in_pages() {
    let house = House::new(one_of_each()).await;
    let http = reqwest::Client::new();
    let list = async |id: &Value, query: &str| -> Value {
        let url = format!("{}/v1/responses/{}/input_items{query}", house.url, id.as_str().unwrap());
        serde_json::from_str(&http.get(url).send().await.unwrap().text().await.unwrap()).unwrap()
    };
    for backend in Dialect::ALL {
        let mut client = asking(&house, READ_FILE, false);
        client.extra = json!({"instructions": "Be brief."});
        let answer = client.ask(backend.name()).await;
        client.result(&answer.calls(Dialect::Responses)[0].id, "what the file says");
        let id = client.ask(backend.name()).await.body["id"].clone();
        let all = list(&id, "?order=asc").await;
        let types: Vec<&Value> = all["data"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
        assert_eq!(types, ["message", "function_call", "function_call_output"], "{backend}: {all}");
        assert_eq!(all["object"], "list");
        assert_eq!(all["has_more"], false);
        assert_eq!(all["data"][0]["content"], json!([{"type": "input_text", "text": READ_FILE}]));
        let latest = list(&id, "?limit=2").await;
        assert_eq!(latest["has_more"], true);
        assert_eq!(latest["first_id"], all["last_id"]);
        let rest = list(&id, &format!("?limit=2&after={}", latest["last_id"].as_str().unwrap())).await;
        assert_eq!(rest["data"], json!([all["data"][0]]), "{backend}");
        assert_eq!(rest["has_more"], false);
        for (query, param) in [("?limit=x", "limit"), ("?order=up", "order"), ("?after=nobody", "after")] {
            assert_eq!(list(&id, query).await["error"]["param"], param);
        }
    }
    assert_eq!(list(&json!("resp_nobody"), "").await["error"]["type"], "not_found");
    house.stop().await;
}

#[tokio::test]
async fn only_a_response_in_the_background_can_be_cancelled() {
    let house = House::new(vec![Room::new("chat", Dialect::Chat)]).await;
    let id = asking(&house, "Hello", false).ask("chat").await.body["id"].as_str().unwrap().to_owned();
    let http = reqwest::Client::new();
    for (id, status) in [(id.as_str(), 400), ("resp_nobody", 404)] {
        let url = format!("{}/v1/responses/{id}/cancel", house.url);
        assert_eq!(http.post(url).send().await.unwrap().status(), status);
    }
    house.stop().await;
}
