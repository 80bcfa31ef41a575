//! Handovers: who takes over, why, what they are shown, and that it stays so.

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_sim::{Script, SimOptions};
use throughline_store::{History, Memory};

const CONTENT: &str = "alpha, 96.50 exactly\n";
const BEGIN: &str = "[CONTEXT FROM PREVIOUS SESSION]";

fn two() -> Vec<Room> {
    vec![Room::new("a", Dialect::Messages), Room::new("b", Dialect::Chat)]
}

async fn with(mode: &str, rooms: Vec<Room>, history: Arc<dyn History>) -> House {
    House::with_lines(rooms, history, &format!("[handover]\n{mode}")).await
}

/// Returns a client whose conversation has read a file on backend `a`.
async fn has_read(house: &House, dialect: Dialect, content: &str) -> (Client, Answer) {
    let mut client = Client::new(&house.url, dialect);
    client.say("Please read the file notes.txt");
    let answer = client.ask("a").await;
    client.result(&answer.calls(dialect)[0].id, content);
    let answer = client.ask("a").await;
    (client, answer)
}

/// Returns the messages that a chat or messages backend was last sent.
fn last_sent(house: &House, backend: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(&house.recorded(backend).pop().unwrap().body).unwrap();
    body["messages"].as_array().unwrap().clone()
}

async fn api(house: &House, path: &str) -> Value {
    let response = reqwest::get(format!("{}/api/{path}", house.url)).await.unwrap();
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

async fn put(house: &House, path: &str, backend: &str) {
    let request = reqwest::Client::new().put(format!("{}/api/{path}", house.url));
    let response = request.body(json!({"backend": backend}).to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
}

/// Returns the handovers of a conversation, as the interface shows them.
async fn handovers(house: &House, answer: &Answer) -> Vec<Value> {
    let id = answer.header("x-throughline-conversation");
    let shown = api(house, &format!("conversations/{id}")).await;
    let entries = shown["entries"].as_array().unwrap().clone();
    entries.into_iter().filter(|entry| entry["kind"] == "handed over").collect()
}

#[tokio::test]
async fn a_switch_is_an_entry_with_who_when_from_to_and_why() {
    let house = House::new(two()).await;
    let (mut client, answer) = has_read(&house, Dialect::Responses, CONTENT).await;
    assert!(handovers(&house, &answer).await.is_empty(), "one backend hands nothing over");
    client.say("Go on.");
    let answer = client.ask("b/model-of-b").await;
    assert!(answer.header("x-throughline-report").ends_with(" handover=native from=a by=model"));
    let id = answer.header("x-throughline-conversation").to_owned();
    put(&house, &format!("conversations/{id}/backend"), "a").await;
    client.say("Go on.");
    client.ask("some-model").await;
    put(&house, "active", "b").await;
    put(&house, &format!("conversations/{id}/backend"), "b").await;
    client.say("Go on.");
    let answer = client.ask("some-model").await;
    let told: Vec<(String, String, String)> = handovers(&house, &answer)
        .await
        .iter()
        .map(|each| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            assert!(each["at"].as_str().unwrap().starts_with("20"), "{each}");
            (text(&each["from"]["backend"]), text(&each["to"]["backend"]), text(&each["by"]))
        })
        .collect();
    let of = |from: &str, to: &str, by: &str| (from.to_owned(), to.to_owned(), by.to_owned());
    assert_eq!(told, [of("a", "b", "model"), of("b", "a", "http"), of("a", "b", "http")]);
    client.say("Go on.");
    let answer = client.ask("some-model").await;
    assert_eq!(handovers(&house, &answer).await.len(), 3, "who goes on takes nothing over");
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_brief_is_given_once_and_stays_the_same_over_requests_and_restarts() {
    for dialect in Dialect::ALL {
        let history: Arc<dyn History> = Arc::new(Memory::new());
        let house = with("mode = \"brief\"", two(), Arc::clone(&history)).await;
        let (mut client, _) = has_read(&house, dialect, CONTENT).await;
        client.say("Quote notes.txt from memory");
        let answer = client.ask("b").await;
        assert!(answer.text(dialect).contains(CONTENT), "{dialect}: {}", answer.raw);
        assert!(
            answer.header("x-throughline-report").contains("strategy=brief handover=brief from=a by=model")
        );
        let given = last_sent(&house, "b");
        assert_eq!(given.len(), 1, "{given:?}");
        let text = given[0]["content"].as_str().unwrap();
        assert!(text.starts_with(BEGIN) && text.ends_with("\n\nQuote notes.txt from memory"), "{text}");
        // Later turns are native behind it, tools included.
        client.say("Please read the file other.txt");
        let answer = client.ask("b").await;
        client.result(&answer.calls(dialect)[0].id, "beta");
        let answer = client.ask("b").await;
        assert!(answer.header("x-throughline-report").contains("strategy=brief"));
        assert!(!answer.header("x-throughline-report").contains("handover"));
        let before = last_sent(&house, "b");
        assert_eq!(before[0], given[0]);
        assert!(before.iter().any(|message| message["role"] == "tool"), "{before:?}");
        house.assert_nothing_refused();
        house.stop().await;
        let later = with("mode = \"native\"", two(), history).await;
        let mut client = client.at(&later.url);
        client.say("Quote notes.txt from memory");
        let answer = client.ask("b").await;
        assert!(answer.text(dialect).contains(CONTENT), "{dialect}: {}", answer.raw);
        let after = last_sent(&later, "b");
        assert_eq!(&after[..before.len()], &before[..], "the same bytes after a restart");
        assert_eq!(json!(after).to_string().matches(BEGIN).count(), 1);
        // Back where it came from, everything is native.
        client.say("Quote notes.txt from memory");
        let answer = client.ask("a").await;
        assert!(answer.header("x-throughline-report").contains("strategy=native handover=native from=b"));
        assert!(!json!(last_sent(&later, "a")).to_string().contains(BEGIN));
        later.assert_nothing_refused();
        later.stop().await;
    }
}

#[tokio::test]
async fn who_cannot_take_tool_history_takes_over_with_a_brief_and_goes_on_with_text() {
    let room = |mut room: Room, lines| {
        room.lines = lines;
        room
    };
    let never = "native_tool_history = \"never\"";
    let rooms = vec![Room::new("a", Dialect::Messages), room(Room::new("b", Dialect::Chat), never)];
    let house = House::new(rooms).await;
    let (mut client, _) = has_read(&house, Dialect::Messages, CONTENT).await;
    client.say("Please read the file other.txt");
    let answer = client.ask("b").await;
    assert!(answer.header("x-throughline-report").contains("strategy=brief"));
    assert_eq!(last_sent(&house, "b").len(), 1);
    client.result(&answer.calls(Dialect::Messages)[0].id, "beta");
    client.ask("b").await;
    let sent = json!(last_sent(&house, "b")).to_string();
    assert!(sent.contains(BEGIN) && sent.contains("Context (tool result):\\nbeta"), "{sent}");
    assert!(!sent.contains("tool_calls"), "{sent}");
    // A conversation that is its own from the start has nothing to be briefed about.
    let mut own = Client::new(&house.url, Dialect::Messages);
    own.say("Please read the file notes.txt");
    let answer = own.ask("b").await;
    own.result(&answer.calls(Dialect::Messages)[0].id, CONTENT);
    let answer = own.ask("b").await;
    assert!(answer.header("x-throughline-report").ends_with("strategy=text-embed"));
    house.stop().await;
}

#[tokio::test]
async fn what_does_not_fit_even_when_shortened_is_handed_over_as_a_brief() {
    let small = || {
        let mut b = Room::new("b", Dialect::Chat);
        b.lines = "history = { budget = 3000, policy = \"off\" }";
        vec![Room::new("a", Dialect::Messages), b]
    };
    let content = "a line that takes some tokens\n".repeat(2_000);
    let house = House::new(small()).await;
    let (mut client, _) = has_read(&house, Dialect::Messages, &content).await;
    client.say("Quote notes.txt from memory");
    let answer = client.ask("b").await;
    let report = answer.header("x-throughline-report");
    assert!(report.contains("strategy=brief handover=brief"), "{report}");
    let sent = json!(last_sent(&house, "b")).to_string();
    assert!(sent.contains("characters cut; recall "), "{sent}");
    house.stop().await;
    let house = with("mode = \"native\"", small(), Arc::new(Memory::new())).await;
    let (mut client, _) = has_read(&house, Dialect::Messages, &content).await;
    client.say("Quote notes.txt from memory");
    let answer = client.post(&client.body("b")).await;
    assert_eq!(answer.status, 400, "{}", answer.raw);
    house.stop().await;
}

#[tokio::test]
async fn the_limits_of_a_brief_are_those_of_the_configuration() {
    let limits = "mode = \"brief\"\nsummary = \"off\"\nmax_result_chars = 10\nmax_tool_context_chars = 900";
    let house = with(limits, two(), Arc::new(Memory::new())).await;
    let (mut client, _) = has_read(&house, Dialect::Chat, &"x".repeat(5_000)).await;
    client.say("Go on.");
    client.ask("b").await;
    let text = last_sent(&house, "b")[0]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("xxxxx\n[.. 4990 characters cut; recall "), "{text}");
    assert!(!text.contains("## Summary"), "{text}");
    let few = "mode = \"brief\"\nmax_result_chars = 5000\nmax_tool_context_chars = 900";
    let house = with(few, two(), Arc::new(Memory::new())).await;
    let (mut client, _) = has_read(&house, Dialect::Chat, &"x".repeat(5_000)).await;
    client.say("Go on.");
    client.ask("b").await;
    let text = last_sent(&house, "b")[0]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("[left out: 5000 characters; recall "), "{text}");
    assert!(text.contains("## Summary\n- User: Please read the file notes.txt"), "{text}");
    house.stop().await;
}

#[tokio::test]
async fn what_a_brief_cut_can_be_recalled() {
    let turns = json!({"turns": [
        {"calls": [{"name": "recall", "arguments": {"query": "needle"}}]},
        {"text": "Found.", "quote": true},
    ]});
    let script = Some(Script::parse(&turns.to_string()).unwrap());
    let mut b = Room::new("b", Dialect::Chat);
    b.options = SimOptions { script, ..b.options };
    let rooms = vec![Room::new("a", Dialect::Messages), b];
    let house = with("mode = \"brief\"\nmax_result_chars = 2000", rooms, Arc::new(Memory::new())).await;
    let content = format!("{}needle in the middle\n{}", "hay\n".repeat(2_000), "hay\n".repeat(2_000));
    let (mut client, _) = has_read(&house, Dialect::Messages, &content).await;
    client.say("Where is it?");
    let answer = client.ask("b").await;
    assert!(answer.text(Dialect::Messages).contains("needle in the middle"), "{}", answer.raw);
    house.stop().await;
}

#[tokio::test]
async fn a_backend_that_takes_only_text_can_recall_too() {
    let turns = json!({"turns": [
        {"calls": [{"name": "recall", "arguments": {"query": "needle"}}]},
        {"text": "Found.", "quote": true},
    ]});
    let script = Some(Script::parse(&turns.to_string()).unwrap());
    let mut b = Room::new("b", Dialect::Chat);
    b.options = SimOptions { script, reject_native: true, ..b.options };
    b.lines = "native_tool_history = \"never\"";
    let rooms = vec![Room::new("a", Dialect::Messages), b];
    let house = with("max_result_chars = 2000", rooms, Arc::new(Memory::new())).await;
    let content = format!("{}needle in the middle\n{}", "hay\n".repeat(2_000), "hay\n".repeat(2_000));
    let (mut client, _) = has_read(&house, Dialect::Messages, &content).await;
    client.say("Where is it?");
    client.ask("b").await;
    let sent = json!(last_sent(&house, "b")).to_string();
    assert!(sent.contains("needle in the middle") && !sent.contains("tool_calls"), "{sent}");
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn tool_context_can_be_turned_off() {
    let house = with("mode = \"brief\"\ntool_context = false", two(), Arc::new(Memory::new())).await;
    let (mut client, _) = has_read(&house, Dialect::Messages, CONTENT).await;
    client.say("Go on.");
    client.ask("b").await;
    let sent = json!(last_sent(&house, "b")).to_string();
    assert!(sent.contains("## Summary") && !sent.contains("## Files Read"), "{sent}");
    house.stop().await;
}

#[tokio::test]
async fn a_model_may_write_the_summary_and_the_digest_stands_in_for_it() {
    for (turn, expected) in [
        (json!({"text": "They read the notes."}), "## Summary\nThey read the notes.\n"),
        (
            json!({"error": {"status": 500, "message": "tired"}}),
            "## Summary\n- User: Please read the file notes.txt\n",
        ),
    ] {
        let script = Some(Script::parse(&json!({"turns": [turn]}).to_string()).unwrap());
        let mut writer = Room::new("writer", Dialect::Responses);
        writer.options = SimOptions { script, ..writer.options };
        let rooms = two().into_iter().chain([writer]).collect();
        let lines = "mode = \"brief\"\nsummary = \"model\"\nsummary_backend = \"writer\"";
        let house = with(lines, rooms, Arc::new(Memory::new())).await;
        let (mut client, _) = has_read(&house, Dialect::Chat, CONTENT).await;
        client.say("Go on.");
        let answer = client.ask("b").await;
        let text = last_sent(&house, "b")[0]["content"].as_str().unwrap().to_owned();
        assert!(text.contains(expected), "{text}");
        let asked = house.recorded("writer").pop().unwrap().body;
        assert!(asked.contains("[USER]\\nPlease read the file notes.txt\\n[/USER]"), "{asked}");
        assert!(asked.contains("\"max_output_tokens\":800") && !asked.contains("function_call"), "{asked}");
        let id = answer.header("x-throughline-conversation");
        let shown = api(&house, &format!("conversations/{id}/sent/3")).await;
        assert_eq!(shown["attempts"][0]["strategy"], "summary", "{shown}");
        assert_eq!(shown["attempts"][1]["report"]["handover"]["mode"], "brief", "{shown}");
        house.stop().await;
    }
}

/// Returns a client with a history that no gateway has seen, in a conversation that it names.
fn with_own_history(house: &House, id: &str) -> Client {
    let mut client = Client::new(&house.url, Dialect::Chat);
    client.headers = vec![("x-throughline-conversation", id.to_owned())];
    client.say("Please read the file notes.txt");
    let function = json!({"name": "read_file", "arguments": "{\"path\":\"notes.txt\"}"});
    let call = json!({"id": "call_1", "type": "function", "function": function});
    client.history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    client.result("call_1", CONTENT);
    client
}

#[tokio::test]
async fn a_history_that_the_client_brought_is_handed_over_by_who_answered_last() {
    for (mode, handover) in [("native", "handover=native from=a by=http"), ("brief", "handover=brief from=a")]
    {
        let house = with(&format!("mode = \"{mode}\""), two(), Arc::new(Memory::new())).await;
        let mut client = with_own_history(&house, "conv_own");
        let first = client.post(&client.body("a")).await;
        assert!(!first.header("x-throughline-report").contains("handover"), "nobody answered before");
        put(&house, "conversations/conv_own/backend", "b").await;
        // What was answered is not in what is sent next.
        client.say("Quote notes.txt from memory");
        let second = client.ask("some-model").await;
        let report = second.header("x-throughline-report");
        assert!(report.contains(handover), "{mode}: {report}");
        assert!(second.text(Dialect::Chat).contains(CONTENT), "{}", second.raw);
        let told = handovers(&house, &second).await;
        assert_eq!((told.len(), &told[0]["from"]["backend"]), (1, &json!("a")), "{told:?}");
        client.say("Go on.");
        let third = client.ask("some-model").await;
        assert!(!third.header("x-throughline-report").contains("handover"), "who goes on takes nothing over");
        // Another question in the same conversation, which goes on from nothing in it.
        let mut aside = Client::new(&house.url, Dialect::Chat);
        aside.headers.clone_from(&client.headers);
        aside.say("Give this conversation a title.");
        let title = aside.ask("a/small").await;
        assert!(!title.header("x-throughline-report").contains("handover"), "{}", title.raw);
        house.stop().await;
    }
}

#[tokio::test]
async fn a_switch_of_the_model_alone_is_an_entry_too() {
    let house = House::new(two()).await;
    let (mut client, answer) = has_read(&house, Dialect::Messages, CONTENT).await;
    let id = answer.header("x-throughline-conversation").to_owned();
    // A client that asks another model has not switched: it may do so for a title.
    client.say("Go on.");
    let answer = client.ask("a/small").await;
    assert!(!answer.header("x-throughline-report").contains("handover"));
    client.say("Go on.");
    client.ask("a").await;
    put(&house, &format!("conversations/{id}/backend"), "a/other").await;
    client.say("Go on.");
    let answer = client.ask("some-model").await;
    let report = answer.header("x-throughline-report");
    assert!(report.ends_with(" handover=native from=a/model-of-a by=http"), "{report}");
    let told = handovers(&house, &answer).await;
    let models = |each: &Value| (each["from"]["model"].clone(), each["to"]["model"].clone());
    assert_eq!(told.iter().map(models).collect::<Vec<_>>(), [(json!("model-of-a"), json!("other"))]);
    client.say("Go on.");
    let answer = client.ask("some-model").await;
    assert!(!answer.header("x-throughline-report").contains("handover"), "once");
    put(&house, "active", "a/third").await;
    client.say("Go on.");
    let answer = client.ask("some-model").await;
    assert!(
        !answer.header("x-throughline-report").contains("handover"),
        "the conversation's own switch holds"
    );
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_failover_is_a_handover_that_says_what_failed() {
    let turns = json!({"turns": [
        {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
        {"error": {"status": 500, "message": "out of order"}},
    ]});
    let script = Some(Script::parse(&turns.to_string()).unwrap());
    let mut a = Room::new("a", Dialect::Messages);
    a.options = SimOptions { script, ..a.options };
    a.lines = "fallback = [\"b\"]";
    let house = House::new(vec![a, Room::new("b", Dialect::Chat)]).await;
    let mut client = Client::new(&house.url, Dialect::Messages);
    client.say("Please read the file notes.txt");
    let answer = client.ask("a").await;
    client.result(&answer.calls(Dialect::Messages)[0].id, CONTENT);
    let answer = client.ask("a").await;
    assert_eq!(answer.header("x-throughline-backend"), "b");
    assert!(answer.text(Dialect::Messages).contains(CONTENT));
    let told = handovers(&house, &answer).await;
    assert_eq!((told.len(), &told[0]["by"]), (1, &json!("failover")), "{told:?}");
    assert!(told[0]["reason"].as_str().unwrap().contains("out of order"), "{told:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_new_conversation_goes_on_from_an_old_one() {
    for dialect in Dialect::ALL {
        let house = House::new(two()).await;
        let (_, old) = has_read(&house, Dialect::Chat, CONTENT).await;
        let id = old.header("x-throughline-conversation").to_owned();
        let mut client = Client::new(&house.url, dialect);
        client.headers = vec![("x-throughline-continue", id.clone())];
        client.say("Quote notes.txt from memory");
        let answer = client.ask("b").await;
        assert!(answer.text(dialect).contains(CONTENT), "{dialect}: {}", answer.raw);
        assert_ne!(answer.header("x-throughline-conversation"), id);
        assert!(answer.header("x-throughline-report").contains("handover=brief from=a by=continue"));
        let given = last_sent(&house, "b");
        // The header may stay; whoever answers, now or later, knows what was before.
        for backend in ["b", "a"] {
            client.say("Quote notes.txt from memory");
            let answer = client.ask(backend).await;
            assert!(answer.text(dialect).contains(CONTENT), "{dialect}, {backend}: {}", answer.raw);
            let sent = json!(last_sent(&house, backend)).to_string();
            assert_eq!(sent.matches("CONTEXT FROM PREVIOUS SESSION").count(), 2, "{sent}");
        }
        assert_eq!(last_sent(&house, "b")[0], given[0]);
        let told = handovers(&house, &answer).await;
        assert_eq!(told[0]["continues"], json!(id), "{told:?}");
        // And so does one that goes on from that one.
        let mut third = Client::new(&house.url, dialect);
        third.headers =
            vec![("x-throughline-continue", answer.header("x-throughline-conversation").to_owned())];
        third.say("Quote notes.txt from memory");
        assert!(third.ask("b").await.text(dialect).contains(CONTENT));
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn a_continued_conversation_may_be_left_to_the_gateway() {
    let house = House::new(two()).await;
    let (_, old) = has_read(&house, Dialect::Messages, CONTENT).await;
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.headers = vec![("x-throughline-continue", old.header("x-throughline-conversation").to_owned())];
    client.say("Hello.");
    let answer = client.ask("b").await;
    client.history.clear();
    client.extra = json!({"previous_response_id": answer.body["id"]});
    client.say("Quote notes.txt from memory");
    let answer = client.ask("b").await;
    assert!(answer.text(Dialect::Responses).contains(CONTENT), "{}", answer.raw);
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn what_cannot_be_continued_is_refused_in_the_clients_own_words() {
    let house = House::new(two()).await;
    for dialect in Dialect::ALL {
        let mut client = Client::new(&house.url, dialect);
        client.headers = vec![("x-throughline-continue", "conv_nobody".to_owned())];
        client.say("Hello.");
        let answer = client.post(&client.body("a")).await;
        assert_eq!(answer.status, 404, "{}", answer.raw);
        assert!(answer.raw.contains("no conversation is called `conv_nobody`"), "{}", answer.raw);
        let error = &answer.body["error"];
        assert!(error["message"].is_string() && error["type"].is_string(), "{}", answer.raw);
        let (mut begun, old) = has_read(&house, dialect, CONTENT).await;
        begun.headers = vec![("x-throughline-continue", "conv_other".to_owned())];
        begun.say("Go on.");
        let answer = begun.post(&begun.body("a")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        assert!(answer.raw.contains("only a new conversation can continue another"), "{}", answer.raw);
        // Itself, and another than it continues already.
        let id = old.header("x-throughline-conversation").to_owned();
        let mut itself = Client::new(&house.url, dialect);
        itself.headers =
            vec![("x-throughline-conversation", id.clone()), ("x-throughline-continue", id.clone())];
        itself.say("Hello.");
        let answer = itself.post(&itself.body("a")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        assert!(
            answer.raw.contains("x-throughline-continue: ") && answer.raw.contains("cannot continue itself")
        );
        let mut later = Client::new(&house.url, dialect);
        later.headers = vec![("x-throughline-continue", id.clone())];
        later.say("Hello.");
        later.ask("a").await;
        later.headers = vec![("x-throughline-continue", "conv_other".to_owned())];
        later.say("Go on.");
        let answer = later.post(&later.body("a")).await;
        assert_eq!(answer.status, 400, "{}", answer.raw);
        assert!(answer.raw.contains(&format!("continues `{id}` already")), "{}", answer.raw);
    }
    house.stop().await;
}
