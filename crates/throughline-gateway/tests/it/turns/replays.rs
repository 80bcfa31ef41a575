//! Replay: identical as long as nothing was touched, and telling where something was.

use super::{Log, Stage, call, read, scripted};
use bytes::Bytes;
use serde_json::json;
use std::sync::Arc;
use throughline_core::{Dialect, Kind, Part};
use throughline_gateway::turn::replay::{self, Place, Replayed, Tape};
use throughline_gateway::turn::{self, Minted, settings};
use throughline_sim::Script;
use throughline_sim::SimOptions;
use throughline_store::{Conversations, History, Paging, Sqlite, SqliteOptions};

/// How many calls the long turn makes.
const CALLS: usize = 200;

async fn long_turn(dialect: Dialect) -> (Stage, String) {
    let rules =
        json!({"rules": [{"call": "read", "until": CALLS, "at_once": 1, "arguments": {"path": "a.txt"}}]});
    let script = Some(Script::parse(&rules.to_string()).unwrap());
    let mut stage = Stage::with(dialect, SimOptions { script, ..SimOptions::default() }, "").await;
    stage.manner.max_tool_calls = 300;
    let task = stage.task("Read it many times").await;
    let mut log = Log::default();
    let gateway = &stage.house.gateway;
    let finished =
        turn::drive(gateway, &task, &*stage.hands, &mut Minted, &mut log, &stage.cancel).await.unwrap();
    assert_eq!((finished.conclusion.word(), finished.calls), ("completed", u32::try_from(CALLS).unwrap()));
    (stage, task.id.to_string())
}

async fn again(history: &dyn History, tape: &Tape) -> Replayed {
    replay::replay(history, tape, None).await.unwrap()
}

#[tokio::test]
async fn a_turn_of_two_hundred_calls_is_replayed_identically_time_and_again() {
    let (stage, turn) = long_turn(Dialect::Chat).await;
    let tapes = replay::find(&*stage.history, &turn).await.unwrap();
    for _ in 0..3 {
        let replayed = again(&*stage.history, &tapes[0]).await;
        assert!(replayed.differences.is_empty(), "{:#?}", replayed.differences);
        assert_eq!((replayed.calls, replayed.requests), (CALLS, CALLS + 1));
    }
}

/// A short turn, with its tape.
async fn short(dialect: Dialect) -> (Stage, Tape) {
    let turns = json!([{"text": "So.", "calls": [read("a.txt"), call("bash", json!({"command": "seq 1 30000"}))]}, {"text": "Done."}]);
    let stage = Stage::new(dialect, turns).await;
    stage.run("Read a.txt").await;
    let tape = replay::find(&*stage.history, stage.conversation.as_str()).await.unwrap().pop().unwrap();
    (stage, tape)
}

#[tokio::test]
async fn one_flipped_byte_is_found_and_shown_wherever_it_is() {
    for dialect in Dialect::ALL {
        let (stage, mut tape) = short(dialect).await;
        // In a request.
        let sent = &mut tape.exchanges[1].1.sent[0].1;
        let untouched = sent.clone();
        let at = sent.windows(5).position(|window| window == b"alpha").unwrap();
        let mut bytes = sent.to_vec();
        bytes[at] ^= 1;
        *sent = Bytes::from(bytes);
        let replayed = again(&*stage.history, &tape).await;
        let first = &replayed.differences[0];
        assert_eq!((first.request, first.place), (Some(2), Place::Request), "{dialect}");
        assert!(first.recorded.contains("`lpha") && first.replayed.contains("alpha"), "{first:?}");
        assert!(first.path.starts_with("input") || first.path.starts_with("messages"), "{first:?}");
        tape.exchanges[1].1.sent[0].1 = untouched;
        // In an event, even in a field that means nothing to us.
        let event =
            tape.exchanges[0].1.events.iter().position(|(_, event)| event.data.contains("So.")).unwrap();
        let untouched = tape.exchanges[0].1.events[event].1.data.clone();
        tape.exchanges[0].1.events[event].1.data = untouched.replace('{', "{ ").into();
        let replayed = again(&*stage.history, &tape).await;
        assert_eq!(replayed.differences[0].place, Place::Events, "{dialect} {:?}", replayed.differences);
        tape.exchanges[0].1.events[event].1.data = untouched;
        // In what a tool returned.
        let untouched = tape.done[0].1.parts[0].clone();
        tape.done[0].1.parts[0] = Part::text(untouched.as_text().unwrap().replace("alpha", "alphb"));
        let replayed = again(&*stage.history, &tape).await;
        assert_eq!(replayed.differences[0].place, Place::Request, "{dialect}");
        tape.done[0].1.parts[0] = untouched;
        // In an artifact.
        tape.done[1].1.kept[0].bytes[7] ^= 1;
        let replayed = again(&*stage.history, &tape).await;
        assert_eq!(replayed.differences[0].place, Place::Note, "{dialect}");
        tape.done[1].1.kept[0].bytes[7] ^= 1;
        let replayed = again(&*stage.history, &tape).await;
        assert!(replayed.differences.is_empty(), "{dialect} {:?}", replayed.differences);
    }
}

#[tokio::test]
async fn other_settings_show_what_would_have_been_sent_instead() {
    let (stage, tape) = short(Dialect::Chat).await;
    let other = tape.settings.replace("native_tool_history = \"auto\"", "native_tool_history = \"never\"");
    let config = settings::read(&other).unwrap();
    let replayed = replay::replay(&*stage.history, &tape, Some(config)).await.unwrap();
    let first = &replayed.differences[0];
    assert_eq!((first.request, first.place), (Some(2), Place::Request));
    assert_eq!(
        replayed.differences.len(),
        1,
        "nothing counts but what would be sent: {:?}",
        replayed.differences
    );
    let bodies = first.bodies.as_ref().unwrap();
    assert_eq!(bodies.recorded.as_bytes(), &*tape.exchanges[1].1.sent[0].1, "whole, to the byte");
    assert!(bodies.replayed.contains("alpha") && !bodies.replayed.contains("tool_call_id"), "{bodies:?}");
}

#[tokio::test]
async fn another_name_of_the_backend_is_another_target_and_nothing_else() {
    for dialect in Dialect::ALL {
        let (stage, tape) = short(dialect).await;
        let config = settings::read(&tape.settings.replace("\"own\"", "\"other\"")).unwrap();
        let replayed = replay::replay(&*stage.history, &tape, Some(config)).await.unwrap();
        let told = |it: &replay::Difference| (it.request, it.place, it.recorded.clone(), it.replayed.clone());
        let told: Vec<_> = replayed.differences.iter().map(told).collect();
        let wanted = |request| {
            let (own, other) =
                (format!("own ({dialect}, model-of-own)"), format!("other ({dialect}, model-of-own)"));
            (Some(request), Place::Target, own, other)
        };
        assert_eq!(told, [wanted(1), wanted(2)]);
    }
}

#[tokio::test]
async fn another_dialect_is_played_the_recorded_answers_in_it() {
    for from in Dialect::ALL {
        let (stage, tape) = short(from).await;
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            let other =
                tape.settings.replace(&format!("dialect = \"{from}\""), &format!("dialect = \"{to}\""));
            let rules = settings::read(&tape.settings).unwrap().backends[0].rules.name.clone();
            let other = other.replace(&format!("rules = \"{rules}\"\n"), "");
            let config = settings::read(&other).unwrap();
            let replayed = replay::replay(&*stage.history, &tape, Some(config)).await.unwrap();
            let places: Vec<_> = replayed.differences.iter().map(|it| (it.request, it.place)).collect();
            let both = |request| [(Some(request), Place::Request), (Some(request), Place::Target)];
            assert_eq!(places, [both(1), both(2)].concat(), "{from} {to}: {:#?}", replayed.differences);
            // The tools were called and returned as they did.
            let bodies = replayed.differences[2].bodies.as_ref().unwrap();
            assert!(bodies.replayed.contains("alpha"), "{from} {to}: {bodies:?}");
            // Who keeps its answers is sent nothing but what is new.
            assert_eq!(bodies.replayed.contains("So."), to != Dialect::Responses, "{from} {to}: {bodies:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_is_not_made_says_why() {
    let (stage, tape) = short(Dialect::Chat).await;
    let config = settings::read(&tape.settings).unwrap();
    let mut tape = tape;
    tape.exchanges[0].1.events.clear();
    let replayed = replay::replay(&*stage.history, &tape, Some(config)).await.unwrap();
    let last = replayed.differences.last().unwrap();
    assert_eq!((last.request, last.place), (Some(2), Place::Presence));
    assert!(last.replayed.starts_with("is not made: "), "{last:?}");
}

#[tokio::test]
async fn a_store_that_was_copied_elsewhere_is_enough() {
    let turns =
        json!([{"calls": [read("a.txt")]}, {"text": "Done."}, {"calls": [read("b.txt")]}, {"text": "Done."}]);
    let here = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Dialect::Responses, scripted(&turns), "").await;
    let file = here.path().join("history.db");
    let sqlite: Arc<dyn History> = Arc::new(Sqlite::open(&file, SqliteOptions::default()).unwrap());
    let room = crate::house::Room {
        options: scripted(&turns),
        ..crate::house::Room::new("own", Dialect::Responses)
    };
    stage.house = crate::house::House::with_history(vec![room], Arc::clone(&sqlite)).await;
    stage.history = sqlite;
    stage.run("Read a.txt").await;
    stage.run("And b.txt").await;
    let id = stage.conversation.to_string();
    drop(stage);
    let there = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(here.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, there.path().join(path.file_name().unwrap())).unwrap();
    }
    drop(here);
    let copy = Sqlite::open(&there.path().join("history.db"), SqliteOptions::default()).unwrap();
    let tapes = replay::find(&copy, &id).await.unwrap();
    assert_eq!(tapes.len(), 2);
    for tape in &tapes {
        let replayed = again(&copy, tape).await;
        assert!(replayed.differences.is_empty(), "{:#?}", replayed.differences);
    }
}

#[tokio::test]
async fn results_are_in_the_history_once() {
    let (stage, _) = short(Dialect::Messages).await;
    let all = throughline_store::Entries::Conversation(stage.conversation.clone());
    let kept = stage.history.entries(all).await.unwrap();
    let returned = kept.iter().filter(|kept| matches!(kept.entry.kind, Kind::Returned(_))).count();
    assert_eq!((returned, kept.len()), (2, stage.branch().await.len()));
}

#[tokio::test]
async fn what_is_no_turn_is_not_replayed() {
    let stage = Stage::new(Dialect::Chat, json!([{"text": "Hello."}])).await;
    let missing = replay::find(&*stage.history, "run_missing").await.unwrap_err();
    assert!(missing.to_string().contains("run_missing"), "{missing}");
}

#[tokio::test]
async fn what_is_redacted_stays_redacted_and_the_turn_is_replayed() {
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    for dialect in Dialect::ALL {
        let turns = json!([{"text": "So.", "calls": [read("key.txt")]}, {"quote": true}]);
        let stage = Stage::with(dialect, scripted(&turns), "[privacy]\nsecrets = true\n").await;
        std::fs::write(stage.dir.path().join("key.txt"), format!("the key is {KEY}\n")).unwrap();
        // Runs it, and compares it with its replay.
        stage.run("Read key.txt").await;
        let (outcome, returned) = stage.returned().await.remove(0);
        assert_eq!(outcome, throughline_core::Outcome::Ok);
        assert!(returned.contains("[redacted:") && !returned.contains(KEY), "{dialect}: {returned}");
        assert!(!stage.answer().await.contains(KEY), "{dialect}");
        let sent = stage.house.recorded("own");
        assert!(
            sent.last().unwrap().body.contains(KEY),
            "{dialect}: the backend was sent what the tool returned"
        );
        let tapes = replay::find(&*stage.history, stage.conversation.as_str()).await.unwrap();
        assert!(!format!("{tapes:?}").contains(KEY), "{dialect}");
    }
}

#[tokio::test]
async fn what_was_shortened_before_it_was_redacted_is_replayed_identically() {
    let lines = "server_state = \"never\"\nhistory = { truncation_threshold = 4000, recent_calls_to_keep = 1 }\n\
        [[privacy.redact]]\nname = \"employee\"\npattern = \"EMP-[0-9]{6}\"\n";
    for dialect in Dialect::ALL {
        // Each prints what is shown in full, and the last what is kept as an artifact.
        let print = |lines: u32, mark: &str| {
            call("bash", json!({"command": format!("seq 1 {lines} | sed s/^/{mark}-/; echo EMP-123456")}))
        };
        let turns = json!([
            {"calls": [print(3000, "line")]}, {"calls": [print(3000, "lime")]},
            {"calls": [print(30_000, "long")]}, {"text": "Done."}
        ]);
        let stage = Stage::with(dialect, scripted(&turns), lines).await;
        // Runs it, and compares it with its replay.
        stage.run("Print").await;
        let tapes = replay::find(&*stage.history, stage.conversation.as_str()).await.unwrap();
        let mut attempts = tapes[0].exchanges.iter().flat_map(|(it, _)| &it.attempts);
        assert!(attempts.any(|attempt| attempt.plan.is_some()), "{dialect}: nothing was shortened");
        let artifacts = tapes[0].done.iter().flat_map(|(_, done)| &done.kept);
        let texts: Vec<&str> = artifacts.map(|kept| str::from_utf8(&kept.bytes).unwrap()).collect();
        assert!(texts.last().unwrap().ends_with("[redacted:employee]\n"), "{dialect}");
    }
}

#[tokio::test]
async fn a_turn_with_a_backend_that_is_not_kept_is_refused_and_nothing_is_written() {
    for lines in ["store = false\n", "store = false\n[compose]\nenabled = true\nbackend = \"own\"\n"] {
        let turns = json!([{"text": "Done."}]);
        let stage = Stage::with(Dialect::Chat, scripted(&turns), lines).await;
        let (gateway, task) = (&stage.house.gateway, stage.task("Hello").await);
        let driven =
            turn::drive(gateway, &task, &*stage.hands, &mut Minted, &mut Log::default(), &stage.cancel).await;
        let error = driven.err().unwrap().to_string();
        assert!(error.contains("`own` has `store = false`"), "{error}");
        assert!(stage.house.recorded("own").is_empty(), "nobody was asked");
        let page = stage.history.conversations(Conversations::All(Paging::default())).await.unwrap();
        assert!(page.items.is_empty(), "{:?}", page.items);
    }
}
