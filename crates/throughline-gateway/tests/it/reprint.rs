//! Clients that parse what they are given and print it anew, as every SDK does: white space, escapes, digits and the
//! order of members change, and the conversation stays the one that it is.

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::{Value, json};
use std::fmt::Write as _;
use throughline_core::Dialect;
use throughline_sim::{Script, SimOptions};

/// As the model wrote it.
const WRITTEN: &str = r#"{"path":"é\/😀.rs","lines":[1.10,2e1],"of":{"b":null,"a":"x"}}"#;

/// Prints a value in no way in which anybody here would: members backwards, with white space, in ASCII alone.
fn printed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{} : {}", printed(&json!(name)), printed(value));
            format!("{{ {} }}", members.iter().rev().map(member).collect::<Vec<_>>().join(" ,\t"))
        }
        Value::Array(list) => format!("[ {} ]", list.iter().map(printed).collect::<Vec<_>>().join(", ")),
        Value::String(text) => {
            let mut out = String::from("\"");
            for unit in text.encode_utf16() {
                match u8::try_from(unit) {
                    Ok(byte) if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
                    _ => write!(out, "\\u{unit:04X}").unwrap(),
                }
            }
            out + "\""
        }
        other => other.to_string(),
    }
}

/// Prints the arguments anew that a client has as text.
fn reprint(history: &mut Value) {
    match history {
        Value::Object(members) => {
            for (name, value) in members {
                if let (true, Some(text)) = (name == "arguments", value.as_str()) {
                    *value = json!(printed(&serde_json::from_str(text).unwrap()));
                } else {
                    reprint(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(reprint),
        _ => {}
    }
}

async fn entries(house: &House, answer: &Answer) -> Vec<Value> {
    let id = answer.header("x-throughline-conversation");
    let shown = reqwest::get(format!("{}/api/conversations/{id}", house.url)).await.unwrap();
    let shown: Value = serde_json::from_str(&shown.text().await.unwrap()).unwrap();
    shown["entries"].as_array().unwrap().clone()
}

/// Has a conversation with a call in it, printed anew before each request, and then on another backend.
async fn converse(house: &House, mut client: Client, other: &str) {
    let dialect = client.dialect;
    client.print = printed;
    client.say("Please read the file é.rs");
    let first = client.ask("a").await;
    client.history.iter_mut().for_each(reprint);
    client.result(&first.calls(dialect)[0].id, "alpha");
    let second = client.ask("a").await;
    client.history.iter_mut().for_each(reprint);
    client.say("Go on.");
    let third = client.ask(other).await;
    let id = first.header("x-throughline-conversation");
    for answer in [&second, &third] {
        assert_eq!(answer.header("x-throughline-conversation"), id, "{dialect}");
    }
    let report = third.header("x-throughline-report");
    assert!(report.contains("dropped=1") && report.contains("handover=native from=a"), "{dialect}: {report}");
    let kept = entries(house, &third).await;
    let kinds: Vec<&str> = kept.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    let wanted = ["said", "thought", "called", "returned", "said", "said", "handed over", "said"];
    assert_eq!(kinds, wanted, "{dialect}: one branch, each entry once");
    assert_eq!(kept[2]["input"], WRITTEN, "{dialect}: the record has what the model wrote");
}

#[tokio::test]
async fn what_clients_print_anew_is_the_same_conversation() {
    let turns = [
        json!({"reasoning": "a deep thought", "calls": [{"name": "read_file", "arguments": WRITTEN}]}),
        json!({"text": "Done."}),
    ];
    let script = json!({"turns": turns.iter().cycle().take(24).collect::<Vec<_>>()}).to_string();
    let mut a = Room::new("a", Dialect::Messages);
    a.options = SimOptions { script: Some(Script::parse(&script).unwrap()), ..a.options };
    let rooms = vec![a, Room::new("chat", Dialect::Chat), Room::new("responses", Dialect::Responses)];
    let house = House::new(rooms).await;
    for dialect in Dialect::ALL {
        let other = if dialect == Dialect::Chat { "responses" } else { "chat" };
        for (named, stream) in [(true, false), (false, false), (true, true), (false, true)] {
            let mut client = Client::new(&house.url, dialect);
            client.stream = stream;
            if named {
                client.headers = vec![("x-throughline-conversation", format!("conv_{dialect}_{stream}"))];
            }
            converse(&house, client, other).await;
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}
