//! What goes as it should: calls, their results, and what the backend is sent in between.

use super::{Stage, call, read, scripted, workbench};
use serde_json::{Value, json};
use throughline_core::{Dialect, Outcome};
use throughline_gateway::config::Approve;
use throughline_gateway::turn::{self, Minted, Nobody};
use throughline_sim::SimOptions;

#[tokio::test]
async fn a_single_call_is_run_and_its_result_reaches_the_model() {
    for dialect in Dialect::ALL {
        let stage = Stage::new(dialect, json!([{"calls": [read("a.txt")]}, {"quote": true}])).await;
        let (finished, log) = stage.run("Read a.txt").await;
        assert_eq!(log, ["ask", "run read", "ok read", "ask"], "{dialect}");
        assert_eq!((finished.conclusion.word(), finished.calls, finished.answers), ("completed", 1, 2));
        let returned = stage.returned().await;
        assert_eq!(returned, [(Outcome::Ok, r#"{"path":"a.txt","content":"alpha\n"}"#.to_owned())]);
        assert!(stage.answer().await.contains("alpha"), "{dialect}: {}", stage.answer().await);
        stage.house.assert_nothing_refused();
        assert!(finished.usage.total().is_some());
    }
}

#[tokio::test]
async fn several_calls_of_one_answer_run_in_their_order() {
    for dialect in Dialect::ALL {
        let calls = json!([read("b.txt"), read("a.txt"), read("c.txt")]);
        let turns = json!([{"text": "Three.", "calls": calls}, {"text": "Done."}]);
        let stage = Stage::new(dialect, turns).await;
        let (_, log) = stage.run("Read them").await;
        assert_eq!(log[..4], ["ask", "run read", "ok read", "run read"], "{dialect}");
        let returned: Vec<String> = stage.returned().await.into_iter().map(|(_, text)| text).collect();
        assert!(
            returned[0].contains("beta") && returned[1].contains("alpha") && returned[2].contains("gamma")
        );
        stage.house.assert_nothing_refused();
        stage.assert_settled().await;
    }
}

#[tokio::test]
async fn a_backend_with_state_is_sent_only_what_is_new_and_one_without_it_everything() {
    for (dialect, stateless) in
        [(Dialect::Responses, false), (Dialect::Responses, true), (Dialect::Chat, false)]
    {
        let turns = json!([{"calls": [read("a.txt")]}, {"calls": [read("b.txt")]}, {"text": "Done."}]);
        let options = SimOptions { stateless, ..scripted(&turns) };
        let stage = Stage::with(dialect, options, "").await;
        stage.run("Read both").await;
        let sent = stage.sent();
        assert_eq!(sent.len(), 3);
        let items = |body: &Value| {
            body["input"].as_array().or(body["messages"].as_array()).map(Vec::len).unwrap_or_default()
        };
        if dialect == Dialect::Responses && !stateless {
            assert!(sent[1]["previous_response_id"].is_string() && items(&sent[1]) == 1, "{}", sent[1]);
            assert!(sent[2]["previous_response_id"].is_string() && items(&sent[2]) == 1);
        } else {
            assert!(sent.iter().all(|body| body["previous_response_id"].is_null()));
            assert!(items(&sent[1]) >= 3 && items(&sent[2]) >= 5, "{}", sent[2]);
        }
        let refused = stage.house.recorded("own").iter().filter(|it| it.status == 404).count();
        // What was learned holds: the second time it is not tried.
        assert_eq!(refused, usize::from(stateless), "{dialect} {stateless}");
    }
}

#[tokio::test]
async fn every_request_declares_the_tools_and_their_limits() {
    let stage = Stage::new(Dialect::Responses, json!([{"calls": [read("a.txt")]}, {"text": "x"}])).await;
    stage.run("Read a.txt").await;
    for body in stage.sent() {
        assert_eq!(body["tools"].as_array().unwrap().len(), 9);
        assert_eq!((&body["parallel_tool_calls"], &body["max_tool_calls"]), (&json!(false), &json!(20)));
        assert_eq!(body["instructions"], "Work in this directory.");
    }
}

#[tokio::test]
async fn a_backend_that_takes_no_tool_history_is_told_it_as_text() {
    for dialect in Dialect::ALL {
        let turns = json!([{"calls": [read("a.txt")]}, {"quote": true}]);
        let options = SimOptions { reject_native: true, ..scripted(&turns) };
        let stage = Stage::with(dialect, options, "").await;
        let (finished, _) = stage.run("Read a.txt").await;
        assert_eq!(finished.conclusion.word(), "completed");
        assert!(stage.answer().await.contains("alpha"), "{dialect}: {}", stage.answer().await);
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_told_to_the_model() {
    for dialect in Dialect::ALL {
        let calls = json!([
            call("launch", json!({})),
            call("read", json!({"path": 7})),
            call("read", json!({"path": "../outside"})),
            call("read", json!({"path": "missing.txt"})),
            call("bash", json!({"command": "exec sleep 60", "timeout_ms": 100})),
        ]);
        let stage = Stage::new(dialect, json!([{"calls": calls}, {"text": "I see."}])).await;
        let (finished, log) = stage.run("Try").await;
        assert_eq!(finished.conclusion.word(), "completed");
        let returned = stage.returned().await;
        let outcomes: Vec<Outcome> = returned.iter().map(|(outcome, _)| *outcome).collect();
        use Outcome::{Error, Interrupted};
        assert_eq!(outcomes, [Error, Error, Error, Error, Interrupted], "{dialect} {log:?}");
        for ((_, text), word) in
            returned.iter().zip(["launch", "path", "outside", "missing.txt", "time limit"])
        {
            assert!(text.contains(word), "{dialect}: {word}: {text}");
        }
        stage.house.assert_nothing_refused();
    }
}

#[tokio::test]
async fn what_nobody_agrees_to_is_not_done() {
    for (approve, edits) in
        [(Approve::None, Outcome::Denied), (Approve::Ask, Outcome::Denied), (Approve::Edits, Outcome::Ok)]
    {
        let calls = json!([
            call("write", json!({"path": "new.txt", "content": "x"})),
            call("bash", json!({"command": "touch ran"})),
            read("a.txt"),
        ]);
        let mut stage = Stage::new(Dialect::Messages, json!([{"calls": calls}, {"text": "I see."}])).await;
        stage.hands = Box::new(workbench(&stage.dir, approve));
        stage.run("Try").await;
        let outcomes: Vec<Outcome> = stage.returned().await.into_iter().map(|(outcome, _)| outcome).collect();
        assert_eq!(outcomes, [edits, Outcome::Denied, Outcome::Ok], "{approve:?}");
        assert_eq!(stage.dir.path().join("new.txt").exists(), edits == Outcome::Ok);
        assert!(!stage.dir.path().join("ran").exists());
    }
}

#[tokio::test]
async fn long_output_is_shown_in_part_and_the_rest_can_be_had() {
    for dialect in Dialect::ALL {
        let turns = json!([
            {"calls": [call("bash", json!({"command": "seq 1 40000"}))]},
            {"calls": [call("artifact", json!({"name": "stdout", "from_line": 20000, "to_line": 20001}))]},
            {"calls": [call("artifact", json!({"name": "stdout", "query": "31415"}))]},
            {"calls": [call("artifact", json!({"name": "stdout", "back": 1}))]},
            {"text": "Done."},
        ]);
        let stage = Stage::new(dialect, turns).await;
        stage.run("Count").await;
        let returned = stage.returned().await;
        assert!(returned[0].1.contains("artifacts") && !returned[0].1.contains("20000\\n"), "{dialect}");
        assert_eq!(returned[1].1, r#"{"content":"20000\n20001\n"}"#);
        assert!(returned[2].1.contains("31415: 31415"), "{}", returned[2].1);
        assert_eq!(returned[3].0, Outcome::Error);
    }
}

#[tokio::test]
async fn a_second_model_composes_the_answer_and_the_raw_results_stay() {
    for dialect in Dialect::ALL {
        let turns =
            json!([{"calls": [read("a.txt")]}, {"text": "A draft."}, {"text": "The composed answer."}]);
        let lines = "\n[compose]\nenabled = true\nmodel = \"writer\"\ntemperature = 0.5\nmax_tokens = 77\n";
        let stage = Stage::with(dialect, scripted(&turns), lines).await;
        let (finished, log) = stage.run("Read a.txt").await;
        assert_eq!((log.len(), finished.answers, finished.conclusion.word()), (5, 3, "completed"));
        assert_eq!(stage.answer().await, "The composed answer.");
        assert!(stage.returned().await[0].1.contains("alpha"));
        let last = stage.sent().pop().unwrap();
        assert_eq!((&last["model"], &last["temperature"]), (&json!("writer"), &json!(0.5)), "{last}");
        let limit = [&last["max_tokens"], &last["max_output_tokens"], &last["max_completion_tokens"]];
        assert!(limit.contains(&&json!(77)), "{dialect} {last}");
        let choice = &last["tool_choice"];
        assert!(
            last["tools"].is_null() || *choice == json!({"type": "none"}) || choice == "none",
            "{dialect}"
        );
        stage.house.assert_nothing_refused();
    }
}

#[tokio::test]
async fn what_is_to_be_taken_out_of_the_record_is_taken_out_of_what_tools_return() {
    for dialect in Dialect::ALL {
        let turns = json!([{"calls": [read("a.txt")]}, {"text": "Done."}]);
        let lines = "\n[[privacy.redact]]\nname = \"letter\"\npattern = \"alpha\"\n";
        let stage = Stage::with(dialect, scripted(&turns), lines).await;
        let task = stage.task("Read a.txt").await;
        let (gateway, mut watch) = (&stage.house.gateway, Nobody);
        let driven = turn::drive(gateway, &task, &*stage.hands, &mut Minted, &mut watch, &stage.cancel).await;
        assert_eq!(driven.unwrap().conclusion.word(), "completed", "{dialect}");
        assert!(stage.sent()[1].to_string().contains("alpha"), "{dialect}: the model is told");
        let returned = stage.returned().await;
        assert_eq!(returned.len(), 1, "{dialect}");
        assert!(returned[0].1.contains("[redacted:letter]"), "{dialect}: {returned:?}");
        assert!(!stage.events().await.iter().any(|event| event.data.contains("alpha")), "{dialect}");
    }
}
