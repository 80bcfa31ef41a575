//! State that a backend keeps: used where it is, and dropped as soon as it is not (R26).

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_sim::Script;
use throughline_store::{History, Memory};

const CONTENT: &str = "what the file says";

fn keeper(name: &'static str, lines: &'static str) -> Room {
    Room { lines, ..Room::new(name, Dialect::Responses) }
}

/// Returns the status and the body of each request for an answer.
fn sent(house: &House, backend: &str) -> Vec<(u16, Value)> {
    let recorded = house.recorded(backend).into_iter().filter(|recorded| recorded.method == "POST");
    recorded.map(|recorded| (recorded.status, serde_json::from_str(&recorded.body).unwrap())).collect()
}

fn statuses(house: &House, backend: &str) -> Vec<u16> {
    sent(house, backend).iter().map(|(status, _)| *status).collect()
}

/// Returns what kinds of items a request had.
fn kinds(body: &Value) -> Vec<&str> {
    let items = body["input"].as_array().into_iter().flatten();
    items.map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap()).collect()
}

const WHOLE: [&str; 3] = ["user", "function_call", "function_call_output"];

async fn verdict(history: &dyn History) -> Option<(String, String)> {
    let standing = history.standing().await.unwrap();
    let learned = standing.learned.iter().find(|learned| learned.capability == "server_state")?;
    Some((learned.verdict.to_string(), learned.reason.to_string()))
}

fn asked(house: &House) -> Client {
    let mut client = Client::new(&house.url, Dialect::Responses);
    client.say("Please read the file notes.txt");
    client
}

/// Goes on from an answer, with the results of its calls and nothing else.
fn go_on(client: &mut Client, answer: &Answer) {
    client.history.clear();
    for call in answer.calls(Dialect::Responses) {
        client.result(&call.id, CONTENT);
    }
    client.extra = json!({"previous_response_id": answer.body["id"]});
}

#[tokio::test]
async fn a_second_turn_brings_only_what_is_new() {
    for stream in [false, true] {
        let history = Arc::new(Memory::new());
        let house = House::with_history(vec![keeper("own", "")], history.clone()).await;
        let mut client = asked(&house);
        client.stream = stream;
        let first = client.ask("own").await;
        go_on(&mut client, &first);
        let second = client.ask("own").await;
        assert!(second.text(Dialect::Responses).contains(CONTENT), "{}", second.raw);
        assert_eq!(second.body["previous_response_id"], first.body["id"]);
        assert!(second.header("x-throughline-report").ends_with("strategy=native state=provider"));

        let sent = sent(&house, "own");
        let (_, body) = &sent[1];
        assert_eq!(body["previous_response_id"], first.body["id"]);
        assert_eq!(kinds(body), ["function_call_output"]);
        assert_eq!(body["tools"][0]["name"], "read_file", "tools are declared in every request");
        assert_eq!(sent.len(), 2);
        assert_eq!(verdict(&*history).await.unwrap().0, "yes");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_backend_that_keeps_nothing_is_sent_everything_at_once_and_then_from_the_start() {
    for stream in [false, true] {
        let history = Arc::new(Memory::new());
        let mut room = keeper("own", "");
        room.options.stateless = true;
        let house = House::with_history(vec![room], history.clone()).await;
        let mut client = asked(&house);
        client.stream = stream;
        let first = client.ask("own").await;
        go_on(&mut client, &first);
        let second = client.ask("own").await;
        assert!(second.text(Dialect::Responses).contains(CONTENT), "{}", second.raw);
        assert_eq!(second.body["previous_response_id"], first.body["id"], "the client notices nothing");
        assert!(second.header("x-throughline-report").ends_with("strategy=native"));
        assert_eq!(statuses(&house, "own"), [200, 404, 200]);
        let whole = &sent(&house, "own")[2].1;
        assert_eq!(kinds(whole), WHOLE);
        assert!(whole.get("previous_response_id").is_none());
        let (verdict, reason) = verdict(&*history).await.unwrap();
        assert_eq!((&*verdict, &*reason), ("no", "tried: it does not have its own answer"));

        go_on(&mut client, &second);
        client.say("And now?");
        client.ask("own").await;
        assert_eq!(statuses(&house, "own"), [200, 404, 200, 200], "no failing attempt");
        house.stop().await;
    }
}

#[tokio::test]
async fn state_is_found_again_by_another_gateway_over_the_same_history() {
    let history = Arc::new(Memory::new());
    let house = House::with_history(vec![keeper("own", "")], history.clone()).await;
    let mut client = asked(&house);
    let first = client.ask("own").await;
    let there = Room { base_url: Some(house.sims["own"].base_url()), ..keeper("own", "") };
    let other = House::with_history(vec![there], history).await;
    let mut client = asked(&other);
    go_on(&mut client, &first);
    let second = client.ask("own").await;
    assert!(second.text(Dialect::Responses).contains(CONTENT), "{}", second.raw);
    assert_eq!(kinds(&sent(&house, "own")[1].1), ["function_call_output"]);
    other.stop().await;
    house.stop().await;
}

#[tokio::test]
async fn what_another_backend_has_said_meanwhile_is_sent_whole() {
    let house = House::new(vec![keeper("one", ""), keeper("two", "")]).await;
    let mut client = asked(&house);
    let mut answer = client.ask("one").await;
    for backend in ["two", "one", "one"] {
        go_on(&mut client, &answer);
        client.say("Go on.");
        answer = client.ask(backend).await;
    }
    let (one, two) = (sent(&house, "one"), sent(&house, "two"));
    assert_eq!(kinds(&two[0].1), ["user", "function_call", "function_call_output", "user"]);
    let back = &one[1].1;
    assert!(back.get("previous_response_id").is_none());
    assert_eq!(kinds(back)[..4], ["user", "function_call", "function_call_output", "user"]);
    assert!(kinds(back).len() > 5, "what the other backend said is there: {back}");
    assert_eq!(kinds(&one[2].1).last(), Some(&"user"));
    assert!(one[2].1.get("previous_response_id").is_some(), "and from there on only what is new");
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_gone_is_made_up_for() {
    let house = House::new(vec![keeper("own", "")]).await;
    let mut client = asked(&house);
    let first = client.ask("own").await;
    let id = first.body["id"].as_str().unwrap();
    let url = format!("{}/responses/{id}", house.sims["own"].base_url());
    assert!(reqwest::Client::new().delete(url).send().await.unwrap().status().is_success());
    go_on(&mut client, &first);
    assert!(client.ask("own").await.text(Dialect::Responses).contains(CONTENT));
    assert_eq!(statuses(&house, "own"), [200, 400, 200]);
    let metrics = reqwest::get(format!("{}/metrics", house.url)).await.unwrap().text().await.unwrap();
    let line = r#"throughline_fallbacks_total{backend="own",kind="full_history"} 1"#;
    assert!(metrics.lines().any(|each| each == line), "{metrics}");
    house.stop().await;
}

#[tokio::test]
async fn a_call_that_nobody_answered_is_closed_in_a_whole_history() {
    let house = House::new(vec![keeper("own", "")]).await;
    let mut client = asked(&house);
    let first = client.ask("own").await;
    client.history.clear();
    client.say("Never mind.");
    client.extra = json!({"previous_response_id": first.body["id"]});
    let second = client.ask("own").await;
    assert!(second.header("x-throughline-report").starts_with("repaired=1"));
    assert_eq!(kinds(&sent(&house, "own")[1].1), ["user", "function_call", "function_call_output", "user"]);
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn a_client_that_owns_its_history_is_forwarded_as_it_is() {
    for lines in ["server_state = \"always\"", "server_state = \"auto\""] {
        let house = House::new(vec![keeper("own", lines)]).await;
        let mut client = asked(&house);
        let first = client.ask("own").await;
        client.result(&first.calls(Dialect::Responses)[0].id, CONTENT);
        client.ask("own").await;
        let body = &sent(&house, "own")[1].1;
        assert_eq!(body["input"], json!(client.history[..3]));
        assert!(body.get("previous_response_id").is_none() && body.get("store").is_none());
        house.stop().await;
    }
}

#[tokio::test]
async fn a_conversation_that_is_named_goes_on_from_its_last_answer() {
    for stream in [false, true] {
        let house = House::new(vec![keeper("own", "")]).await;
        let mut client = asked(&house);
        client.stream = stream;
        let first = client.ask("own").await;
        go_on(&mut client, &first);
        client.extra = json!({"conversation": first.header("x-throughline-conversation")});
        let second = client.ask("own").await;
        assert!(second.text(Dialect::Responses).contains(CONTENT), "{}", second.raw);
        assert_eq!(second.body["previous_response_id"], Value::Null, "{}", second.raw);
        let body = &sent(&house, "own")[1].1;
        assert_eq!(kinds(body), ["function_call_output"]);
        assert_eq!(body["previous_response_id"], first.body["id"]);
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn never_is_never() {
    let house = House::new(vec![keeper("own", "server_state = \"never\"")]).await;
    let mut client = asked(&house);
    let first = client.ask("own").await;
    go_on(&mut client, &first);
    client.ask("own").await;
    assert_eq!(kinds(&sent(&house, "own")[1].1), WHOLE);
    house.stop().await;
}

/// Has a client of another dialect talk to a backend for two turns, and returns what that was sent.
async fn two_turns(
    dialect: Dialect,
    stream: bool,
    lines: &'static str,
    extra: Value,
) -> (House, Client, Vec<(u16, Value)>) {
    let house = House::new(vec![keeper("own", lines)]).await;
    let mut client = Client::new(&house.url, dialect);
    client.extra = extra;
    client.stream = stream;
    if dialect == Dialect::Chat {
        client.history.push(json!({"role": "system", "content": "Be brief."}));
    }
    client.say("Please read the file notes.txt");
    let first = client.ask("own").await;
    client.result(&first.calls(dialect)[0].id, CONTENT);
    let second = client.ask("own").await;
    assert!(second.text(dialect).contains(CONTENT), "{}", second.raw);
    house.assert_nothing_refused();
    let sent = sent(&house, "own");
    (house, client, sent)
}

#[tokio::test]
async fn a_client_of_another_dialect_has_its_history_kept_where_that_is_configured() {
    let system =
        json!({"system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]});
    for (dialect, extra) in [(Dialect::Messages, system), (Dialect::Chat, json!({}))] {
        for stream in [false, true] {
            let always = "server_state = \"always\"";
            let (house, client, sent) = two_turns(dialect, stream, always, extra.clone()).await;
            let (first, second) = (&sent[0].1, &sent[1].1);
            assert_eq!(first["store"], true);
            assert!(first["instructions"].as_str().unwrap().starts_with("Be brief."), "{first}");
            assert_eq!(second["instructions"], first["instructions"], "instructions are in every request");
            assert!(second["previous_response_id"].is_string(), "{second}");
            assert_eq!(kinds(second), ["function_call_output"]);
            assert_eq!(second["tools"], first["tools"]);
            rewritten(&house, client).await;
            house.stop().await;
        }
    }
}

/// A past that the client has rewritten is not the one that the backend keeps.
async fn rewritten(house: &House, mut client: Client) {
    let at = client.history.iter().position(|message| message["role"] == "user").unwrap();
    client.history[at]["content"] = json!("Please read the file other.txt");
    client.say("Go on.");
    client.ask("own").await;
    let last = sent(house, "own").pop().unwrap().1;
    assert!(last.get("previous_response_id").is_none(), "{last}");
    assert_eq!(kinds(&last)[..3], ["message", "function_call", "function_call_output"]);
}

#[tokio::test]
async fn nothing_is_kept_of_a_client_that_does_not_want_it_or_that_nobody_asked() {
    for (lines, extra) in [("server_state = \"always\"", json!({"store": false})), ("", json!({}))] {
        let (house, _, sent) = two_turns(Dialect::Chat, false, lines, extra).await;
        for (_, body) in &sent {
            assert_eq!(body["store"], false);
            assert!(body.get("previous_response_id").is_none());
        }
        house.stop().await;
    }
}

#[tokio::test]
async fn a_backend_that_must_not_store_is_not_asked_to_again() {
    let refusal = json!({"error": {"status": 400, "message": "Store must be set to false"}});
    let script = json!({"turns": [refusal, {"text": "One."}, {"text": "Two."}]});
    let mut room = keeper("own", "");
    room.options.script = Some(Script::parse(&script.to_string()).unwrap());
    let house = House::new(vec![room]).await;
    let mut client = asked(&house);
    let first = client.ask("own").await;
    go_on(&mut client, &first);
    client.say("And then?");
    let second = client.ask("own").await;
    assert_eq!(second.text(Dialect::Responses), "Two.", "{}", second.raw);
    let stores: Vec<(u16, Value)> =
        sent(&house, "own").into_iter().map(|(status, body)| (status, body["store"].clone())).collect();
    assert_eq!(stores, [(400, Value::Null), (200, json!(false)), (200, json!(false))]);
    house.stop().await;
}
