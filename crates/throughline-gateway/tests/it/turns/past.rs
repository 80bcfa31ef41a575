//! Turns that follow others: the past is shown, shortened where it must be, and had back.

use super::{Stage, call, calls_of, read, scripted};
use serde_json::{Value, json};
use throughline_core::{Dialect, Entry, Kind};

#[tokio::test]
async fn a_later_turn_sees_what_the_tools_said_in_an_earlier_one() {
    for dialect in Dialect::ALL {
        let turns = json!([{"calls": [read("a.txt")]}, {"text": "Read."}, {"quote": true}]);
        let stage = Stage::new(dialect, turns).await;
        stage.run("Read a.txt").await;
        stage.run("What did it say?").await;
        assert!(stage.answer().await.contains("alpha"), "{dialect}: {}", stage.answer().await);
        stage.house.assert_nothing_refused();
    }
}

#[tokio::test]
async fn a_long_turn_is_shortened_and_what_was_taken_out_is_had_back() {
    for dialect in Dialect::ALL {
        let mut turns: Vec<Value> = Vec::new();
        for part in 0..12 {
            turns.push(
                json!({"calls": [call("bash", json!({"command": format!("echo part {part}; seq 1 900")}))]}),
            );
        }
        turns.push(json!({"calls": [call("recall", json!({"query": "part 3;"}))]}));
        turns.push(json!({"quote": true}));
        let lines =
            "server_state = \"never\"\nhistory = { truncation_threshold = 4000, recent_calls_to_keep = 2 }";
        let stage = Stage::with(dialect, scripted(&json!(turns)), lines).await;
        let (finished, log) = stage.run("Count").await;
        assert_eq!((finished.conclusion.word(), finished.calls), ("completed", 12), "{dialect}");
        assert!(!log.iter().any(|line| line.contains("recall")), "the gateway answers it itself");
        assert!(stage.answer().await.contains("echo part 3"), "{dialect}: {}", stage.answer().await);
        let longest = stage.sent().iter().map(|body| body.to_string().len()).max().unwrap();
        assert!(longest < 60_000, "{dialect}: {longest}");
        stage.house.assert_nothing_refused();
    }
}

/// Returns what the record has: `i` for instructions, `u` and `a` for what was said, `c` and `r` for calls and results.
async fn told(stage: &Stage) -> String {
    let letter = |entry: &Entry| match &entry.kind {
        Kind::Said(said) if said.standing => 'i',
        Kind::Said(said) if said.role == throughline_core::Role::User => 'u',
        Kind::Called(_) => 'c',
        Kind::Returned(_) => 'r',
        _ => 'a',
    };
    stage.branch().await.iter().map(|kept| letter(&kept.entry)).collect()
}

#[tokio::test]
async fn instructions_are_told_once_as_long_as_they_are_the_same() {
    for dialect in Dialect::ALL {
        let turns = json!([
            {"calls": [read("a.txt"), read("b.txt")]}, {"calls": [read("c.txt")]}, {"text": "Read."},
            {"calls": [read("a.txt")]}, {"text": "Again."}, {"calls": [read("a.txt")]}, {"text": "Well."}
        ]);
        let mut stage = Stage::new(dialect, turns).await;
        stage.run("Read them").await;
        assert_eq!(told(&stage).await, "iuccrrcra", "{dialect}");
        stage.run("And again").await;
        assert_eq!(told(&stage).await, "iuccrrcraucra", "{dialect}: by the next turn neither");
        stage.manner.instructions = Some("Work elsewhere.".into());
        stage.run("And again").await;
        assert_eq!(told(&stage).await, "iuccrrcraucraiucra", "{dialect}: others are told, and once");
        assert_eq!(calls_of(&stage.branch().await).len(), 5);
        for body in stage.sent() {
            let body = body.to_string();
            let said =
                body.matches("Work in this directory.").count() + body.matches("Work elsewhere.").count();
            assert_eq!(said, 1, "{dialect}: every request has its own: {body}");
        }
        stage.house.assert_nothing_refused();
    }
}
