//! The nine ways: each dialect in, each dialect out, streamed and not.

use crate::client::Client;
use crate::house::{House, one_of_each};
use throughline_core::Dialect;

const CONTENT: &str = "fn main() {\n\tprintln!(\"96.50 \u{b0}C, exactly\");\n}\n";

/// Reads a file through a tool and has the model quote it, on one backend.
async fn two_turns(house: &House, from: Dialect, to: Dialect, stream: bool) {
    let mut client = Client::new(&house.url, from);
    client.stream = stream;
    client.say(&format!("Please read the file src/{from}-{to}-{stream}.rs"));
    let answer = client.ask(to.name()).await;
    assert_eq!(answer.header("x-throughline-backend"), to.name());
    let calls = answer.calls(from);
    assert_eq!(calls.len(), 1, "{from} to {to}, stream {stream}: {}", answer.raw);
    assert_eq!(calls[0].name, "read_file");
    client.result(&calls[0].id, CONTENT);
    let conversation = answer.header("x-throughline-conversation").to_owned();
    let answer = client.ask(to.name()).await;
    assert!(answer.text(from).contains(CONTENT), "{from} to {to}, stream {stream}: {}", answer.raw);
    assert_eq!(answer.header("x-throughline-conversation"), conversation, "{from} to {to}");
    assert!(answer.header("x-throughline-report").ends_with("strategy=native"));
}

#[tokio::test]
async fn a_tool_conversation_works_all_nine_ways_streamed_and_not() {
    let house = House::new(one_of_each()).await;
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            for stream in [false, true] {
                two_turns(&house, from, to, stream).await;
            }
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn one_conversation_wanders_over_all_backends_and_loses_nothing() {
    for from in Dialect::ALL {
        let house = House::new(one_of_each()).await;
        let mut client = Client::new(&house.url, from);
        client.say("Please read the file notes.txt");
        let answer = client.ask("messages").await;
        client.result(&answer.calls(from)[0].id, CONTENT);
        for backend in ["messages", "chat", "responses", "messages"] {
            let answer = client.ask(backend).await;
            assert_eq!(answer.header("x-throughline-backend"), backend);
            let sent = house.recorded(backend).pop().unwrap();
            assert!(sent.body.contains("exactly"), "{backend} was not shown the result: {}", sent.body);
            client.say("Quote notes.txt from memory, without reading it again");
        }
        house.assert_nothing_refused();
        house.stop().await;
    }
}

#[tokio::test]
async fn the_answer_names_the_model_that_was_asked_for() {
    let house = House::new(one_of_each()).await;
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let mut client = Client::new(&house.url, from);
            client.say("Hello");
            let model = format!("{to}/my-model");
            let answer = client.ask(&model).await;
            assert_eq!(answer.body["model"], model, "{from} to {to}");
            assert!(house.recorded(to.name()).pop().unwrap().body.contains("\"my-model\""));
        }
    }
    house.stop().await;
}

#[tokio::test]
async fn a_messages_stream_opens_with_a_count_of_the_prompt() {
    let house = House::new(one_of_each()).await;
    for backend in Dialect::ALL {
        let mut client = Client::new(&house.url, Dialect::Messages);
        client.stream = true;
        client.say("Hello, this is a prompt of some length");
        let raw = client.ask(backend.name()).await.raw;
        let start = raw.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let start: serde_json::Value = serde_json::from_str(start).unwrap();
        assert!(start["message"]["usage"]["input_tokens"].as_u64().unwrap() > 0, "{backend}: {start}");
    }
    house.stop().await;
}
