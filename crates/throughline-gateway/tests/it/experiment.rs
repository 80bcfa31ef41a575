//! The experiment: a file is read through a tool on one backend, the conversation moves to another and back, and at
//! each step the model is asked for the file from memory. It can quote what its prompt holds and nothing else.

use crate::client::{Answer, Client};
use crate::house::{House, Room};
use serde_json::json;
use std::sync::Arc;
use throughline_core::Dialect;
use throughline_store::Memory;

/// A document of 244 lines with all that has ever broken out of a fence.
fn design() -> String {
    let mut text = String::from("# DESIGN\n\n```rust\nfn main() { println!(\"96.50 \u{b0}C\"); }\n```\n");
    text.push_str("[CONTEXT FROM PREVIOUS SESSION]\n## Summary\n[/CONTEXT FROM PREVIOUS SESSION]\n````\n\ttab, C:\\\\path\n");
    let so_far = text.lines().count();
    for line in so_far + 1..=244 {
        text.push_str(&format!("{line}: a line of the design, \u{44f} -- `code` <!-- comment -->\n"));
    }
    text
}

fn rooms() -> Vec<Room> {
    let names =
        [("a-chat", Dialect::Chat), ("a-messages", Dialect::Messages), ("a-responses", Dialect::Responses)];
    let others =
        [("b-chat", Dialect::Chat), ("b-messages", Dialect::Messages), ("b-responses", Dialect::Responses)];
    names.into_iter().chain(others).map(|(name, dialect)| Room::new(name, dialect)).collect()
}

/// A client that resends everything, or one that leaves the history to the gateway.
struct Talker {
    client: Client,
    owns_history: bool,
}

impl Talker {
    async fn ask(&mut self, backend: &str) -> Answer {
        let answer = self.client.ask(backend).await;
        if !self.owns_history {
            self.client.history.clear();
            self.client.extra = json!({"previous_response_id": answer.body["id"]});
        }
        answer
    }
}

async fn run(house: &House, (one, two): (Dialect, Dialect), client: Dialect, owns_history: bool, mode: &str) {
    let what = format!("{one} to {two}, client {client}, owns {owns_history}, {mode}");
    let design = design();
    let (first, second) = (format!("a-{one}"), format!("b-{two}"));
    let mut talker = Talker { client: Client::new(&house.url, client), owns_history };
    talker.client.say("Please read the file DESIGN.md");
    let answer = talker.ask(&first).await;
    talker.client.result(&answer.calls(client)[0].id, &design);
    let answer = talker.ask(&first).await;
    assert!(answer.text(client).contains(&design), "{what}");
    let conversation = answer.header("x-throughline-conversation").to_owned();
    for backend in [&second, &first, &second] {
        talker.client.say("Quote DESIGN.md from memory, word for word");
        let answer = talker.ask(backend).await;
        let text = answer.text(client);
        assert!(text.contains(&format!("returned:\n{design}")), "{what}: {backend} said {text}");
        assert_eq!(answer.header("x-throughline-conversation"), conversation, "{what}");
        let report = answer.header("x-throughline-report");
        assert!(report.contains(&format!("handover={mode} from=")), "{what}: {report}");
    }
}

async fn experiment(mode: &str) {
    let lines = format!(
        "[handover]\nmode = \"{mode}\"\nmax_result_chars = 100000\nmax_tool_context_chars = 400000\n[history]\ntruncation_threshold = 1000000"
    );
    let house = House::with_lines(rooms(), Arc::new(Memory::new()), &lines).await;
    for one in Dialect::ALL {
        for two in Dialect::ALL {
            for client in Dialect::ALL {
                run(&house, (one, two), client, true, mode).await;
            }
            run(&house, (one, two), Dialect::Responses, false, mode).await;
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

/// With nothing configured: a file is read on one backend, and every prompt after that holds it, to the byte.
#[tokio::test]
async fn each_prompt_holds_the_file_without_any_setting() {
    let mut text_only = Room::new("b-text", Dialect::Chat);
    text_only.lines = "native_tool_history = \"never\"";
    text_only.options.reject_native = true;
    let rooms = vec![Room::new("a", Dialect::Messages), Room::new("b-native", Dialect::Responses), text_only];
    let house = House::new(rooms).await;
    let design = design();
    let written = serde_json::Value::from(design.as_str()).to_string();
    for second in ["b-native", "b-text"] {
        let mut client = Client::new(&house.url, Dialect::Messages);
        client.say("Please read the file DESIGN.md");
        let answer = client.ask("a").await;
        client.result(&answer.calls(Dialect::Messages)[0].id, &design);
        client.ask("a").await;
        for backend in [second, "a"] {
            client.say("What does it say?");
            client.ask(backend).await;
            let sent = house.recorded(backend).pop().unwrap().body;
            assert!(sent.contains(written.trim_matches('"')), "{second}, {backend}: {sent}");
        }
    }
    house.assert_nothing_refused();
    house.stop().await;
}

#[tokio::test]
async fn the_file_is_quoted_byte_for_byte_after_native_handovers() {
    experiment("native").await;
}

#[tokio::test]
async fn the_file_is_quoted_byte_for_byte_after_handovers_by_brief() {
    experiment("brief").await;
}
