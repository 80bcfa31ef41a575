//! Recall: what was taken out is had back within the turn, and the client sees nothing of it.

use crate::budget::{PAIRS, whole, with_pairs};
use crate::client::{Answer, Client};
use crate::conformance::framed;
use crate::house::{House, Room};
use crate::stream::check_stream;
use serde_json::{Value, json};
use throughline_core::Dialect;
use throughline_core::plan::Handle;
use throughline_sim::{Script, SimOptions};
use throughline_wire::decode_request;

const LINES: &str = "history = { budget = 7000 }";

/// The file that is recalled: an old one, which is not shown whole.
const FILE: usize = 3;

fn ways() -> impl Iterator<Item = (Dialect, Dialect, bool)> {
    let pairs = Dialect::ALL.into_iter().flat_map(|one| Dialect::ALL.map(|two| (one, two)));
    pairs.flat_map(|(one, two)| [(one, two, false), (one, two, true)])
}

/// Returns the handle of what the file of that number gave, as markers write it.
fn handle(client: &Client) -> String {
    let ask = decode_request(client.dialect, client.body("m").to_string()).unwrap();
    let id = format!("call_{FILE}");
    let call = ask.entries.iter().find(|entry| entry.as_call().is_some_and(|call| *call.id == *id));
    let result = ask.entries.iter().find(|entry| {
        entry.as_return().is_some_and(|returned| returned.call_id.as_ref() == Some(&id.as_str().into()))
    });
    Handle::of(call, result).short().to_string()
}

fn recall(arguments: &Value) -> Value {
    json!({"name": "recall", "arguments": arguments})
}

/// Sets up a backend that says what it is told to, and a client with a history that does not fit it.
async fn scripted(
    (client, backend, stream): (Dialect, Dialect, bool),
    lines: &'static str,
    script: impl FnOnce(&Client) -> Value,
) -> (House, Client) {
    let mut client = with_pairs("http://nowhere", client, PAIRS);
    client.stream = stream;
    let script = Some(Script::parse(&script(&client).to_string()).unwrap());
    let options = SimOptions { script, ..SimOptions::default() };
    let house = House::new(vec![Room { options, lines, ..Room::new("own", backend) }]).await;
    let client = client.at(&house.url);
    (house, client)
}

fn bodies(house: &House) -> Vec<String> {
    house.recorded("own").into_iter().map(|recorded| recorded.body).collect()
}

fn offered(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned();
    body["tools"].as_array().unwrap().iter().map(name).collect()
}

/// Says whether a prompt names a handle, or the range that a digest stands for.
fn leads_back(body: &str, handle: &str) -> bool {
    let names_range =
        |behind: &str| behind.get(4..6) == Some("..") && behind[10..].starts_with(" lists them");
    body.contains(&format!("recall {handle}")) || body.split("recall ").skip(1).any(names_range)
}

/// Asserts that an answer is over, without calls, and that nothing in it tells of what happened.
fn assert_over(answer: &Answer, dialect: Dialect) {
    assert!(answer.calls(dialect).is_empty(), "{}", answer.raw);
    // The simulated model names the tool that it quotes.
    let raw = answer.raw.replace("recall returned", "");
    assert!(!raw.contains("recall"), "{raw}");
    let (end, other) = match dialect {
        Dialect::Chat => ("\"finish_reason\":\"stop\"", "\"finish_reason\":\"tool_calls\""),
        Dialect::Messages => ("\"stop_reason\":\"end_turn\"", "\"stop_reason\":\"tool_use\""),
        Dialect::Responses => ("\"status\":\"completed\"", "\"status\":\"failed\""),
    };
    assert!(answer.raw.contains(end) && !answer.raw.contains(other), "{}", answer.raw);
    let starts = match dialect {
        Dialect::Chat => 0,
        Dialect::Messages => answer.raw.matches("event: message_start").count(),
        Dialect::Responses => answer.raw.matches("event: response.created").count(),
    };
    assert!(starts <= 1, "one answer begins once: {}", answer.raw);
    assert_valid(&answer.raw, dialect);
}

/// Asserts that a streamed answer is one that the dialect's own provider could have sent.
fn assert_valid(raw: &str, dialect: Dialect) {
    if raw.starts_with('{') {
        return;
    }
    let data = raw.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    match dialect {
        Dialect::Responses => drop(check_stream(&framed(raw))),
        Dialect::Chat => {
            let endings = events.iter().filter(|event| event["choices"][0]["finish_reason"].is_string());
            assert_eq!(endings.count(), 1, "{raw}");
            assert!(events.iter().all(|event| event["id"] == events[0]["id"]), "{raw}");
            assert!(events.iter().all(|event| event["object"] == "chat.completion.chunk"), "{raw}");
        }
        Dialect::Messages => {
            let (mut open, mut next) = (None, 0);
            for event in &events {
                let index = event["index"].as_u64();
                match event["type"].as_str().unwrap() {
                    "content_block_start" => {
                        assert_eq!((open, index), (None, Some(next)), "{raw}");
                        open = index;
                        next += 1;
                    }
                    "content_block_delta" => assert_eq!(open, index, "{raw}"),
                    "content_block_stop" => assert_eq!(open.take(), index, "{raw}"),
                    kind => assert_eq!(open, None, "{kind} within a block: {raw}"),
                }
            }
            let kinds = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
            assert_eq!(
                (kinds("message_start"), kinds("message_delta"), kinds("message_stop")),
                (1, 1, 1),
                "{raw}"
            );
            assert_eq!(events.last().unwrap()["type"], "message_stop", "{raw}");
        }
    }
}

#[tokio::test]
async fn a_model_has_back_what_was_taken_out_by_handle_and_by_search() {
    for way in ways() {
        let (dialect, _, _) = way;
        let (house, mut client) = scripted(way, LINES, |client| {
            let mut first = json!({"calls": [recall(&json!({"handle": handle(client)}))]});
            first["text"] = json!("Let me look.");
            let search = recall(&json!({"query": "HANDLER_3_7 compute(7)"}));
            json!({"turns": [first, {"calls": [search]}, {"quote": true}, {"text": "Bye."}], "then": "last"})
        })
        .await;
        let handle = handle(&client);
        let first = client.ask("own").await;
        house.assert_nothing_refused();
        assert_over(&first, dialect);
        let text = first.text(dialect);
        assert!(text.contains(&handle) && text.contains("fn handler_3_7()"), "{way:?}: {text}");
        assert!(text.contains("Let me look."), "{text}");
        // One text in Chat, where an empty line tells the two answers apart; several in the others.
        assert_eq!(text.contains("Let me look.\n\n"), dialect == Dialect::Chat, "{way:?}: {text}");
        let sent = bodies(&house);
        assert_eq!(sent.len(), 3, "{way:?}");
        assert!(
            leads_back(&sent[0], &handle) && whole(&sent[0], FILE..FILE + 1) == 0,
            "{way:?}: {}",
            sent[0]
        );
        assert_eq!(whole(&sent[1], FILE..FILE + 1), 1, "{way:?}: {}", sent[1]);
        assert!(sent.iter().all(|body| offered(body).contains(&"recall".to_owned())));

        client.say("And now?");
        let second = client.ask("own").await;
        assert_over(&second, dialect);
        let conversation = |answer: &Answer| answer.header("x-throughline-conversation").to_owned();
        assert_eq!(conversation(&first), conversation(&second), "{way:?}");
        assert_eq!(whole(bodies(&house).last().unwrap(), FILE..FILE + 1), 1, "{way:?}: it is shown again");
        let list = |body: &str| {
            let body: Value = serde_json::from_str(body).unwrap();
            body.get("input").or(body.get("messages")).unwrap().as_array().unwrap().clone()
        };
        let (before, now) = (list(&sent[0]), list(bodies(&house).last().unwrap()));
        assert_eq!(
            now[..before.len()],
            before,
            "{way:?}: what was decided before a recall is decided after it"
        );
        client.say("And then?");
        client.ask("own").await;
        assert_eq!(whole(bodies(&house).last().unwrap(), FILE..FILE + 1), 1, "{way:?}: and once more");
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn recall_beside_the_clients_own_calls() {
    for way in ways() {
        let (dialect, _, _) = way;
        let (house, mut client) = scripted(way, LINES, |client| {
            let own = json!({"name": "read_file", "arguments": {"path": "new.rs"}});
            let recall = recall(&json!({"handle": handle(client)}));
            json!({"turns": [{"calls": [own, recall]}, {"quote": true}]})
        })
        .await;
        let first = client.ask("own").await;
        let calls = first.calls(dialect);
        assert_eq!(calls.len(), 1, "{way:?}: {}", first.raw);
        assert!(calls[0].name == "read_file" && !first.raw.contains("recall"), "{}", first.raw);
        assert_valid(&first.raw, dialect);
        assert_eq!(bodies(&house).len(), 1);
        client.result(&calls[0].id, "the new file");
        let second = client.ask("own").await;
        house.assert_nothing_refused();
        assert_over(&second, dialect);
        assert!(second.text(dialect).contains("the new file"), "{way:?}: {}", second.raw);
        let sent = bodies(&house).pop().unwrap();
        assert_eq!(whole(&sent, FILE..FILE + 1), 1, "{way:?}: {sent}");
        assert_eq!(first.header("x-throughline-conversation"), second.header("x-throughline-conversation"));
        house.stop().await;
    }
}

#[tokio::test]
async fn a_response_with_a_hidden_call_can_be_continued_by_its_id() {
    for backend in Dialect::ALL {
        let (house, mut client) = scripted((Dialect::Responses, backend, false), LINES, |client| {
            let own = json!({"name": "read_file", "arguments": {"path": "new.rs"}});
            let recall = recall(&json!({"handle": handle(client)}));
            json!({"turns": [{"calls": [recall, own]}, {"quote": true}]})
        })
        .await;
        let first = client.ask("own").await;
        let calls = first.calls(Dialect::Responses);
        client.history.clear();
        client.result(&calls[0].id, "the new file");
        client.extra = json!({"previous_response_id": first.body["id"]});
        let second = client.ask("own").await;
        house.assert_nothing_refused();
        assert!(second.text(Dialect::Responses).contains("the new file"), "{}", second.raw);
        assert_eq!(whole(&bodies(&house).pop().unwrap(), FILE..FILE + 1), 1, "{backend}");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_stopped() {
    for way in ways().filter(|(client, backend, _)| client == backend) {
        let (house, mut client) = scripted(
            way,
            LINES,
            |_| json!({"turns": [{"calls": [recall(&json!({"query": "handler_3_7"}))]}], "then": "repeat"}),
        )
        .await;
        let answer = client.ask("own").await;
        assert_over(&answer, way.0);
        assert!(answer.text(way.0).starts_with("I have no answer"), "{way:?}: {}", answer.raw);
        let sent = bodies(&house);
        assert_eq!(sent.len(), 11, "eight are answered, two are refused, one is ignored");
        assert!(
            sent[10].contains(r#""tool_choice":"none""#)
                || sent[10].contains(r#""tool_choice":{"type":"none"}"#)
        );
        assert!(sent[9].contains("No more can be recalled") && !sent[8].contains("No more can be recalled"));
        assert!(offered(&sent[8]).contains(&"recall".to_owned()));
        assert_eq!(offered(&sent[9]), ["read_file"]);
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn nothing_is_offered_where_it_is_off_or_could_not_be_used() {
    let off = "history = { budget = 7000, recall = false }";
    for (dialect, lines, extra) in [
        (Dialect::Chat, off, json!({})),
        (Dialect::Messages, off, json!({})),
        (Dialect::Chat, LINES, json!({"tool_choice": "none"})),
        (Dialect::Chat, LINES, json!({"tool_choice": "required"})),
        (Dialect::Messages, LINES, json!({"tool_choice": {"type": "tool", "name": "read_file"}})),
        (Dialect::Responses, LINES, json!({"tool_choice": "none"})),
        (Dialect::Responses, LINES, json!({"tools": []})),
    ] {
        let way = (dialect, Dialect::Chat, false);
        let (house, mut client) = scripted(way, lines, |_| json!({"turns": [{"text": "Well."}]})).await;
        client.extra = extra;
        client.ask("own").await;
        let sent = bodies(&house).pop().unwrap();
        assert!(!sent.contains("recall") && sent.contains("left out"), "{sent}");
        house.stop().await;
    }
}

#[tokio::test]
async fn a_client_may_have_a_tool_of_that_name() {
    for stream in [false, true] {
        let way = (Dialect::Chat, Dialect::Messages, stream);
        let (house, mut client) = scripted(way, LINES, |client| {
            let hidden = json!({"name": "throughline_recall", "arguments": {"handle": handle(client)}});
            json!({"turns": [{"calls": [hidden]}, {"calls": [recall(&json!({"query": "mine"}))]}]})
        })
        .await;
        let parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}});
        let function =
            json!({"name": "recall", "description": "Recalls a product.", "parameters": parameters});
        client.extra = json!({"tools": [{"type": "function", "function": function}]});
        let answer = client.ask("own").await;
        house.assert_nothing_refused();
        let calls = answer.calls(Dialect::Chat);
        assert!(calls.len() == 1 && calls[0].name == "recall", "{}", answer.raw);
        assert!(!answer.raw.contains("throughline_recall"), "{}", answer.raw);
        assert_eq!(offered(&bodies(&house)[0]), ["recall", "throughline_recall"]);
        assert_eq!(whole(&bodies(&house)[1], FILE..FILE + 1), 1);
        house.stop().await;
    }
}

#[tokio::test]
async fn what_cannot_be_recalled_is_explained_to_the_model() {
    for (arguments, words) in [
        (json!({"handle": "aaaaaaaa"}), "nothing in this conversation has the handle"),
        (json!({}), "give a `handle`"),
    ] {
        let way = (Dialect::Messages, Dialect::Responses, true);
        let script = json!({"turns": [{"calls": [recall(&arguments)]}, {"quote": true}]});
        let (house, mut client) = scripted(way, LINES, |_| script).await;
        let text = client.ask("own").await.text(Dialect::Messages);
        assert!(text.contains(words), "{text}");
        house.assert_nothing_refused();
        house.stop().await;
    }
}

/// A client has what was said before and after a recall as one text; the record goes on behind it all the same,
/// and has it once.
#[tokio::test]
async fn an_answer_around_a_recall_is_recognised_and_not_recorded_anew() {
    for way in ways().filter(|(_, backend, _)| *backend == Dialect::Chat) {
        let (dialect, _, _) = way;
        let (house, mut client) = scripted(way, LINES, |client| {
            let own = json!({"name": "read_file", "arguments": {"path": "new.rs"}});
            let recalls =
                json!({"text": "Let me look.", "calls": [recall(&json!({"handle": handle(client)}))]});
            json!({"turns": [recalls, {"text": "One more file.", "calls": [own]}, {"quote": true}], "then": "last"})
        })
        .await;
        let first = client.ask("own").await;
        let calls = first.calls(dialect);
        client.result(&calls[0].id, "the new file");
        let second = client.ask("own").await;
        client.say("Go on.");
        client.ask("own").await;
        house.assert_nothing_refused();
        let id = second.header("x-throughline-conversation");
        let url = format!("{}/api/conversations/{id}", house.url);
        let record = reqwest::get(url).await.unwrap().text().await.unwrap();
        assert_eq!(record.matches("One more file.").count(), 1, "{way:?}: {record}");
        assert_eq!(record.matches("Let me look.").count(), 1, "{way:?}: {record}");
        house.stop().await;
    }
}

/// What follows a recall is asked for again like everything else, for as long as nothing of it has come.
#[tokio::test]
async fn the_rest_of_a_turn_falls_back_to_another_backend() {
    let pairs = [(Dialect::Chat, Dialect::Messages), (Dialect::Messages, Dialect::Responses)];
    let all = pairs.into_iter().chain([(Dialect::Responses, Dialect::Chat)]);
    for ((dialect, other), stream) in all.flat_map(|pair| [(pair, false), (pair, true)]) {
        let mut client = with_pairs("http://nowhere", dialect, PAIRS);
        client.stream = stream;
        let recalls = json!({"text": "Let me look.", "calls": [recall(&json!({"handle": handle(&client)}))]});
        let fails = json!({"error": {"status": 500, "message": "out of order"}});
        let script = |turns: Value| Script::parse(&json!({"turns": turns}).to_string()).unwrap();
        let mut first = Room::new("own", dialect);
        first.lines = "fallback = [\"other\"]\nhistory = { budget = 7000 }";
        first.options.script = Some(script(json!([recalls, fails])));
        let mut second = Room { lines: LINES, ..Room::new("other", other) };
        second.options.script = Some(script(json!([{"text": "So that is it."}])));
        let house = House::new(vec![first, second]).await;
        client = client.at(&house.url);
        let answer = client.ask("own").await;
        assert_over(&answer, dialect);
        let text = answer.text(dialect);
        assert!(
            text.contains("Let me look.") && text.contains("So that is it."),
            "{dialect} {stream}: {text}"
        );
        assert!(!answer.raw.contains("out of order"), "{}", answer.raw);
        let sent = house.recorded("other").pop().unwrap();
        assert_eq!((sent.status, whole(&sent.body, FILE..FILE + 1)), (200, 1), "{}", sent.body);
        house.stop().await;
    }
}

/// If nobody brings the rest, the client is told so, once, in its own dialect.
#[tokio::test]
async fn a_turn_whose_rest_does_not_come_fails() {
    for (dialect, stream) in Dialect::ALL.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)])
    {
        let (house, client) = scripted((dialect, dialect, stream), LINES, |client| {
            let recalls =
                json!({"text": "Let me look.", "calls": [recall(&json!({"handle": handle(client)}))]});
            json!({"turns": [recalls, {"error": {"status": 500, "message": "out of order"}}]})
        })
        .await;
        let request = client.body("own");
        let answer = client.post_raw(&request).await;
        assert_eq!(answer.0, if stream { 200 } else { 500 }, "{}", answer.1);
        assert_eq!(answer.1.matches("out of order").count(), usize::from(!stream).max(1), "{}", answer.1);
        assert!(!answer.1.contains("recall"), "{}", answer.1);
        house.stop().await;
    }
}
