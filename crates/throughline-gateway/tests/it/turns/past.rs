//! Turns that follow others: the past is shown, shortened where it must be, and had back.

use super::{Stage, call, read, scripted};
use serde_json::{Value, json};
use throughline_core::Dialect;

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
