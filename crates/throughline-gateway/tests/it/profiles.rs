//! The matrix: one history with all that is awkward in it, for each profile, before the simulated backend that is as
//! strict as that profile's provider.

use crate::client::Client;
use crate::house::{House, Room};
use serde_json::{Value, json};
use throughline_core::{Dialect, Rules};
use throughline_sim::{Provider, Script, SimOptions};

/// A picture of one point.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Backends of three vendors that think, and call two tools at once.
fn vendors() -> Vec<Room> {
    let turn = json!({"reasoning": "I had better look at both.", "text": "Both.", "calls": [
        {"name": "read_file", "arguments": {"path": "a.txt"}}, {"name": "read_file", "arguments": {"path": "b.txt"}}]});
    let room = |name: &'static str, dialect, chat_rules, lines| {
        let script = Some(Script::parse(&json!({"turns": [turn.clone()]}).to_string()).unwrap());
        let options = SimOptions { script, chat_rules, seed: name.to_owned(), ..SimOptions::default() };
        Room { options, lines, ..Room::new(name, dialect) }
    };
    vec![
        room("thinker-one", Dialect::Messages, Provider::OpenAiChat, ""),
        room("thinker-two", Dialect::Responses, Provider::OpenAiChat, ""),
        room("thinker-three", Dialect::Chat, Provider::DeepSeek, "profile = \"deepseek\""),
    ]
}

/// A backend for each profile, set to it.
fn profiles() -> Vec<Room> {
    let room = |rules: Rules| {
        let name: &'static str = Box::leak(rules.name.to_string().into_boxed_str());
        let lines: &'static str = Box::leak(format!("profile = \"{name}\"").into_boxed_str());
        let provider = Provider::from_name(name).unwrap_or_else(|| panic!("{name} has no validator"));
        let chat_rules = if provider.is_chat() { provider } else { Provider::OpenAiChat };
        let options = SimOptions { chat_rules, ..SimOptions::default() };
        Room { options, lines, ..Room::new(name, rules.dialect) }
    };
    Rules::built_in().into_iter().map(room).collect()
}

/// Returns a client whose history opens with ids that nobody else would take, a failure and a picture.
fn awkward(house: &House, dialect: Dialect) -> Client {
    let mut client = Client::new(&house.url, dialect);
    let (long, odd) = (format!("call_{}", "x".repeat(90)), "functions.read_file:0|a");
    let arguments = r#"{"path":"old.txt"}"#;
    client.say("Look at what is there.");
    client.history.extend(match dialect {
        Dialect::Chat => {
            let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}});
            let url = format!("data:image/png;base64,{PNG}");
            vec![
                json!({"role": "assistant", "content": null, "tool_calls": [call(&long), call(odd)]}),
                json!({"role": "tool", "tool_call_id": long, "content": "[tool error]\nno such file"}),
                json!({"role": "tool", "tool_call_id": odd, "content": ""}),
                json!({"role": "user", "content": [{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": url}}]}),
            ]
        }
        Dialect::Messages => {
            let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
            let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "old.txt"}});
            vec![
                json!({"role": "assistant", "content": [call(&long), call(odd)]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": long, "is_error": true, "content": "no such file"},
                    {"type": "tool_result", "tool_use_id": odd, "content": [image]}]}),
            ]
        }
        Dialect::Responses => {
            let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": arguments});
            let url = format!("data:image/png;base64,{PNG}");
            vec![
                call(&long),
                call(odd),
                json!({"type": "function_call_output", "call_id": long, "output": "[tool error]\nno such file"}),
                json!({"type": "function_call_output", "call_id": odd, "output": [{"type": "input_image", "image_url": url}]}),
            ]
        }
    });
    if dialect != Dialect::Chat {
        client.history.push(match dialect {
            Dialect::Messages => json!({"role": "assistant", "content": "There is little."}),
            _ => json!({"role": "assistant", "content": "There is little."}),
        });
    }
    client
}

fn thinking(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat => json!({"reasoning_effort": "high"}),
        Dialect::Messages => json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        Dialect::Responses => {
            json!({"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]})
        }
    }
}

#[tokio::test]
async fn one_awkward_history_is_accepted_by_every_profile() {
    for dialect in Dialect::ALL {
        let house = House::new(vendors().into_iter().chain(profiles()).collect()).await;
        let mut client = awkward(&house, dialect);
        client.extra = thinking(dialect);
        for vendor in ["thinker-one", "thinker-two", "thinker-three"] {
            client.say("Please look at both files.");
            let answer = client.ask(vendor).await;
            let calls = answer.calls(dialect);
            assert_eq!(calls.len(), 2, "{vendor}: {}", answer.raw);
            client.result(&calls[0].id, "alpha, 96.50 exactly");
            client.result(&calls[1].id, "beta");
        }
        let asked = client.history.len();
        for rules in Rules::built_in() {
            // In the middle of the turn, and with a word of the user's behind it.
            for says in [false, true] {
                client.history.truncate(asked);
                if says {
                    client.say("Quote a.txt from memory.");
                }
                let answer = client.post(&client.body(&rules.name)).await;
                assert_eq!(answer.status, 200, "{dialect} to {}: {}", rules.name, answer.raw);
                assert!(
                    answer.text(dialect).contains("96.50 exactly"),
                    "{dialect} to {}: {}",
                    rules.name,
                    answer.raw
                );
            }
        }
        house.assert_nothing_refused();
        house.stop().await;
    }
}
