//! Turns that do not end well end as what they are, and leave nothing open behind them.

use super::{Log, Stage, call, read};
use serde_json::{Value, json};
use throughline_core::{Dialect, Outcome};

#[tokio::test]
async fn an_answer_that_fails_or_is_cut_short_is_never_taken_for_complete() {
    let refused = json!({"status": 400, "message": "No such thing"});
    let cases = [
        (json!([{"text": "Half", "calls": [read("a.txt")], "stop": "max_tokens"}]), "incomplete"),
        (json!([{"text": "Half", "stop": "max_tokens"}]), "incomplete"),
        (json!([{"error": refused}]), "failed"),
        (json!([{"refusal": "I will not."}]), "refused"),
    ];
    for dialect in Dialect::ALL {
        for (turns, word) in &cases {
            let stage = Stage::new(dialect, turns.clone()).await;
            let (finished, log) = stage.run("Go").await;
            let is_refusal = *word == "refused" && dialect != Dialect::Messages;
            if *word != "refused" || is_refusal {
                assert_eq!(finished.conclusion.word(), *word, "{dialect} {log:?}");
            }
            assert_eq!(finished.calls, 0, "{dialect}");
            stage.assert_settled().await;
        }
    }
}

/// An answer that breaks off in the middle of its text.
fn cut_off(dialect: Dialect) -> Value {
    let events = if dialect == Dialect::Chat { 3 } else { 6 };
    json!({"text": "This will not be said to its end, for the line is cut.", "cut_off": events})
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_and_no_tool_runs_twice() {
    for dialect in Dialect::ALL {
        let broken = cut_off(dialect);
        let turns = json!([{"calls": [read("a.txt")]}, broken, {"quote": true}]);
        let stage = Stage::new(dialect, turns).await;
        let (finished, log) = stage.run("Read a.txt").await;
        assert_eq!(log, ["ask", "run read", "ok read", "ask", "ask again"], "{dialect}");
        assert_eq!((finished.conclusion.word(), finished.calls), ("completed", 1));
        assert!(stage.answer().await.contains("alpha"));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_each_time_ends_as_broken() {
    for dialect in Dialect::ALL {
        let broken = cut_off(dialect);
        let stage = Stage::new(dialect, json!([broken])).await;
        let (finished, log) = stage.run("Go").await;
        assert_eq!(log, ["ask", "ask again", "ask again"], "{dialect}");
        assert_eq!(finished.conclusion.word(), "broken");
    }
}

#[tokio::test]
async fn the_cap_in_the_middle_of_a_batch_closes_the_rest() {
    for dialect in Dialect::ALL {
        let turns =
            json!([{"calls": [read("a.txt"), read("b.txt"), read("c.txt")]}, {"text": "That is all."}]);
        let mut stage = Stage::new(dialect, turns).await;
        stage.manner.max_tool_calls = 1;
        let (finished, log) = stage.run("Read them").await;
        assert_eq!(log, ["ask", "run read", "ok read", "denied read", "denied read", "ask"], "{dialect}");
        assert_eq!((finished.conclusion.word(), finished.calls), ("limited", 1));
        let outcomes: Vec<Outcome> = stage.returned().await.into_iter().map(|(outcome, _)| outcome).collect();
        assert_eq!(outcomes, [Outcome::Ok, Outcome::Denied, Outcome::Denied]);
        let choice = stage.sent().pop().unwrap()["tool_choice"].clone();
        assert!(choice == "none" || choice == json!({"type": "none"}), "{dialect}: {choice}");
        stage.house.assert_nothing_refused();
        stage.assert_settled().await;
    }
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_a_tool_stops_it_and_closes_the_rest() {
    for dialect in Dialect::ALL {
        let sleep = call("bash", json!({"command": "exec sleep 60", "timeout_seconds": 60}));
        let stage = Stage::new(dialect, json!([{"calls": [sleep, read("a.txt")]}, {"text": "Go on."}])).await;
        let log = Log { cancel_at_call: Some(stage.cancel.clone()), ..Log::default() };
        let (finished, log) = stage.run_with("Sleep", log).await;
        assert_eq!(finished.conclusion.word(), "cancelled", "{dialect} {log:?}");
        assert_eq!(log, ["ask", "run bash", "interrupted bash", "interrupted read"], "{dialect}");
        stage.assert_settled().await;
        // And the conversation goes on from there.
        let stage = Stage { cancel: Default::default(), ..stage };
        let (finished, _) = stage.run("And now?").await;
        assert_eq!(finished.conclusion.word(), "completed");
        stage.house.assert_nothing_refused();
    }
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_an_answer_keeps_what_had_come() {
    struct Impatient(tokio_util::sync::CancellationToken);
    impl throughline_gateway::turn::Watch for Impatient {
        fn see(&mut self, happening: throughline_gateway::turn::Happening<'_>) {
            if let throughline_gateway::turn::Happening::Heard { .. } = happening {
                self.0.cancel();
            }
        }
    }
    for dialect in Dialect::ALL {
        let stage =
            Stage::new(dialect, json!([{"text": "It begins and then nothing comes.", "hang": 5}])).await;
        let task = stage.task("Speak").await;
        let mut watch = Impatient(stage.cancel.clone());
        let mut names = throughline_gateway::turn::Minted;
        let driven = throughline_gateway::turn::drive(
            &stage.house.gateway,
            &task,
            &*stage.hands,
            &mut names,
            &mut watch,
            &stage.cancel,
        );
        let finished = driven.await.unwrap();
        assert_eq!(finished.conclusion.word(), "cancelled", "{dialect}");
        let replayed = stage.replay(&task.id).await;
        assert!(replayed.differences.is_empty(), "{dialect} {:#?}", replayed.differences);
    }
}

#[tokio::test]
async fn a_call_whose_result_was_lost_is_unknown_and_not_run_again() {
    for dialect in Dialect::ALL {
        let touch =
            call("bash", json!({"command": "echo ran >> trace; exec sleep 60", "timeout_seconds": 60}));
        let turns = json!([{"calls": [touch, read("a.txt")]}, {"text": "I will look first."}]);
        let stage = Stage::new(dialect, turns).await;
        let task = stage.task("Write").await;
        let trace = stage.dir.path().join("trace");
        let mut log = Log::default();
        let mut names = throughline_gateway::turn::Minted;
        let gateway = &stage.house.gateway;
        let driven = throughline_gateway::turn::drive(
            gateway,
            &task,
            &*stage.hands,
            &mut names,
            &mut log,
            &stage.cancel,
        );
        // The program ends as soon as the tool has done something: its future is dropped, and nothing is written.
        tokio::select! {
            finished = driven => panic!("{finished:?}"),
            () = async { while !std::fs::read_to_string(&trace).is_ok_and(|it| it == "ran\n") {
                tokio::task::yield_now().await;
            } } => {}
        }
        let (finished, log) = stage.run("And now?").await;
        assert_eq!(log, ["unknown bash", "unknown read", "ask"], "{dialect}");
        assert_eq!(finished.conclusion.word(), "completed");
        assert_eq!(std::fs::read_to_string(&trace).unwrap(), "ran\n", "it ran once");
        let returned = stage.returned().await;
        assert!(returned.iter().all(|(outcome, _)| *outcome == Outcome::Unknown), "{returned:?}");
        let last: Value = stage.sent().pop().unwrap();
        assert!(last.to_string().contains("nobody knows whether this was run"), "{dialect}");
        stage.house.assert_nothing_refused();
        // What there is of the turn that was cut off is replayed as far as it goes.
        let replayed = stage.replay(&task.id).await;
        assert!(replayed.differences.is_empty() && !replayed.is_finished, "{:#?}", replayed.differences);
    }
}
