//! Old rounds in the words of a model: asked for when nobody waits, used when the prompt changes anyway.

use crate::budget::{PAIRS, add_pair, content, with_pairs};
use crate::client::Client;
use crate::house::{House, Room};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use throughline_core::Dialect;
use throughline_sim::Script;
use throughline_store::Memory;

const WORDS: &str = "The user wants all files read; forty were, and nothing was found so far.";
const MODEL: &str = "handover = { summary = \"model\", summary_backend = \"teller\" }";

/// Sets up a backend whose window is small, and one that is asked for summaries and answers with `turn`.
async fn house(dialect: Dialect, turn: &Value, lines: &str, history: Arc<Memory>) -> House {
    let own = Room { lines: "history = { budget = 2600 }", ..Room::new("own", Dialect::Chat) };
    let mut teller = Room::new("teller", dialect);
    let script = json!({"turns": [turn], "then": "repeat"}).to_string();
    teller.options.script = Some(Script::parse(&script).unwrap());
    House::with_lines(vec![own, teller], history, lines).await
}

fn sent(house: &House) -> String {
    house.recorded("own").pop().unwrap().body
}

/// Grows a history until the next large step is due.
fn grow(client: &mut Client) {
    for file in PAIRS..PAIRS + 20 {
        add_pair(client, file, "read_file", &format!("src/{file}.rs"), &content(file));
    }
}

async fn summaries(house: &House, outcome: &str) -> u64 {
    let text = reqwest::get(format!("{}/metrics", house.url)).await.unwrap().text().await.unwrap();
    let name = format!("throughline_summaries_total{{outcome=\"{outcome}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn the_words_of_a_model_take_the_place_of_the_digest_with_the_next_step() {
    for dialect in Dialect::ALL {
        let history = Arc::new(Memory::new());
        let first = house(dialect, &json!({"text": WORDS}), MODEL, history.clone()).await;
        let mut client = with_pairs(&first.url, Dialect::Messages, PAIRS);
        client.ask("own").await;
        let digest = sent(&first);
        assert!(digest.contains("[Earlier in this session") && !digest.contains(WORDS), "{digest}");
        first.gateway.async_summaries.idle().await;
        let asked: Vec<String> = first.recorded("teller").into_iter().map(|it| it.body).collect();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(
            asked[0].contains("Please read all the files") && asked[0].contains("- Read: "),
            "{}",
            asked[0]
        );
        assert!(!asked[0].contains("fn handler_") && !asked[0].contains("\"tools\""), "{}", asked[0]);
        let is_kept_by_provider = dialect == Dialect::Responses && !asked[0].contains("\"store\":false");
        assert!(!is_kept_by_provider, "a provider is asked not to keep it: {}", asked[0]);
        assert_eq!(summaries(&first, "written").await, 1);

        // Until the next step the prompt begins as before.
        client.say("And now?");
        let id = client.ask("own").await.header("x-throughline-conversation").to_owned();
        let messages =
            |body: &str| serde_json::from_str::<Value>(body).unwrap()["messages"].as_array().unwrap().clone();
        let (before, now) = (messages(&digest), messages(&sent(&first)));
        assert_eq!(now[..before.len()], before, "{dialect}");
        assert_eq!(first.recorded("teller").len(), 1, "only a step is retold");
        let url = format!("{}/api/conversations/{id}/sent/1", first.url);
        let record: Value =
            serde_json::from_str(&reqwest::get(url).await.unwrap().text().await.unwrap()).unwrap();
        assert_eq!(record["attempts"][1]["strategy"], "summary", "what was asked is in the record: {record}");
        first.assert_nothing_refused();
        first.stop().await;

        // Another gateway goes on with the same words.
        let second = house(dialect, &json!({"text": "Later words."}), MODEL, history).await;
        client = client.at(&second.url);
        grow(&mut client);
        client.ask("own").await;
        assert!(sent(&second).contains(WORDS), "{dialect}: {}", sent(&second));
        second.gateway.async_summaries.idle().await;
        let asked = second.recorded("teller").pop().unwrap().body;
        assert!(asked.contains(WORDS), "the next summary goes on from it: {asked}");
        second.assert_nothing_refused();
        second.stop().await;
    }
}

#[tokio::test]
async fn a_model_that_fails_or_says_nothing_leaves_the_digest() {
    for turn in [
        json!({"error": {"status": 500, "message": "out of order"}}),
        json!({"text": " "}),
        json!({"malformed": "no JSON"}),
        json!({"calls": [{"name": "read_file", "arguments": {"path": "x"}}]}),
    ] {
        let house = house(Dialect::Chat, &turn, MODEL, Arc::new(Memory::new())).await;
        let mut client = with_pairs(&house.url, Dialect::Chat, PAIRS);
        client.ask("own").await;
        house.gateway.async_summaries.idle().await;
        assert_eq!((summaries(&house, "failed").await, summaries(&house, "written").await), (1, 0), "{turn}");
        grow(&mut client);
        client.ask("own").await;
        assert!(sent(&house).contains("[Earlier in this session"), "{}", sent(&house));
        house.stop().await;
    }
}

#[tokio::test]
async fn a_model_that_takes_too_long_is_not_waited_for() {
    let own = Room { lines: "history = { budget = 2600 }", ..Room::new("own", Dialect::Chat) };
    let mut teller = Room::new("teller", Dialect::Chat);
    teller.options.script = Some(Script::parse(r#"{"turns": [{"text": "x", "hang": 0}]}"#).unwrap());
    let alter = |gateway: &mut throughline_gateway::gateway::Gateway| {
        gateway.async_summary_lasts = Duration::from_millis(20);
    };
    let house = House::altered_with_lines(vec![own, teller], Arc::new(Memory::new()), MODEL, alter).await;
    let mut client = with_pairs(&house.url, Dialect::Chat, PAIRS);
    client.ask("own").await;
    house.gateway.async_summaries.idle().await;
    assert_eq!(summaries(&house, "timed_out").await, 1);
    house.stop().await;
}

#[tokio::test]
async fn no_model_is_asked_unless_one_is_wanted_and_without_a_name_it_is_the_one_that_answers() {
    for (lines, own, teller) in [
        ("handover = { summary = \"digest\", summary_backend = \"teller\" }", 1, 0),
        ("handover = { summary = \"off\", summary_backend = \"teller\" }", 1, 0),
        (MODEL, 1, 1),
        ("handover = { summary = \"model\" }", 2, 0),
    ] {
        let house = house(Dialect::Chat, &json!({"text": WORDS}), lines, Arc::new(Memory::new())).await;
        let mut client = with_pairs(&house.url, Dialect::Chat, PAIRS);
        client.stream = true;
        client.ask("own").await;
        house.gateway.async_summaries.idle().await;
        assert_eq!((house.recorded("own").len(), house.recorded("teller").len()), (own, teller), "{lines}");
        house.stop().await;
    }
}
