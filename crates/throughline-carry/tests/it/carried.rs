//! Sessions carried from one agent to another and back: every pair, word for word.

use crate::sessions::{Session, pairs, read, story};
use proptest::prelude::*;
use throughline_carry::{Agent, Header, Told, fit, read_document, write_session};
use throughline_core::{
    Call, Content, Entry, Handover, Image, Input, Kind, Media, Origin, Outcome, Part, Report, Return, Role,
    Seal, Summary, Text, Thought,
};

fn header(agent: Agent) -> Header {
    Header {
        id: "0b8c057c-60c2-4dcf-9f61-2e09133f1326".into(),
        cwd: "/home/you/project".into(),
        title: "A title".into(),
        model: Some("m".into()),
        version: agent.name().into(),
        started: 1_794_804_747_376,
    }
}

fn carried(told: &[Told], to: Agent) -> (Vec<Told>, Report) {
    let fitted = fit(told, to, Report::default());
    let text = write_session(to, &header(to), &fitted.entries);
    let session = match to {
        Agent::Opencode => Session::from(read_document(to, &text).unwrap()),
        _ => read(to, &text),
    };
    assert!(session.damaged.is_empty(), "{:?}", session.damaged);
    (session.told(), fitted.report)
}

fn told(entries: Vec<Entry>) -> Vec<Told> {
    (0..)
        .zip(entries)
        .map(|(number, entry)| Told {
            entry,
            at: 1_794_804_747_376 + i64::from(number),
            number: Some(number),
        })
        .collect()
}

fn call(id: &str, name: &str, arguments: &str) -> Entry {
    Entry::new(Kind::Called(Call {
        id: id.into(),
        item_id: None,
        name: name.into(),
        namespace: None,
        input: Input::Arguments(arguments.into()),
    }))
}

fn returned(id: &str, outcome: Outcome, parts: Vec<Part>) -> Entry {
    Entry::new(Kind::Returned(Return {
        call_id: Some(id.into()),
        item_id: None,
        name: None,
        parts,
        outcome,
        freeform: false,
    }))
}

#[test]
fn names_are_mapped_only_where_the_arguments_are_the_same() {
    let history = told(vec![
        Entry::said(Role::User, "go"),
        call("a", "Bash", r#"{"command":"ls"}"#),
        call("b", "Bash", r#"{"command":"ls","description":"List"}"#),
        returned("a", Outcome::Ok, vec![Part::text("one")]),
        returned("b", Outcome::Error, vec![Part::text("two")]),
    ]);
    let (there, report) = carried(&history, Agent::Codex);
    assert_eq!(
        story(&there),
        [
            "User: go",
            r#"called exec_command a {"cmd":"ls"}"#,
            r#"called Bash b {"command":"ls","description":"List"}"#,
            "returned a Ok one",
            "returned b Error two",
        ]
    );
    assert_eq!(report.count(throughline_core::Action::Renamed), 1);
    let (back, _) = carried(&there, Agent::ClaudeCode);
    assert_eq!(story(&back), story(&history));
}

#[test]
fn what_is_not_for_the_other_agent_is_left_out_and_reported() {
    let mut synthetic = Entry::said(Role::Assistant, "API Error");
    let origin = |model: &str| Origin {
        backend: "claude-code".into(),
        dialect: throughline_core::Dialect::Messages,
        model: model.into(),
    };
    synthetic.origin = Some(origin("<synthetic>"));
    let handover = Handover {
        from: None,
        to: origin("m"),
        by: "cli".into(),
        reason: "asked".into(),
        brief: None,
        continues: None,
    };
    let history = told(vec![
        Entry::said(Role::Developer, "You are Codex."),
        Entry::said(Role::User, "<environment_context>x</environment_context>"),
        Entry::said(Role::User, "go"),
        synthetic,
        Entry::new(Kind::HandedOver(handover)),
        Entry::new(Kind::Thought(Thought {
            content: vec!["hm".into()],
            seal: Some(Seal::Encrypted("e".into())),
            ..Thought::default()
        })),
        call("a", "Read", "{}"),
    ]);
    let (there, report) = carried(&history, Agent::ClaudeCode);
    let story = story(&there);
    assert_eq!(story[..3], ["User: go", "Assistant: hm", "called Read a {}"]);
    assert!(
        story[3].starts_with("returned a Interrupted") || story[3].starts_with("returned a Unknown"),
        "{story:?}"
    );
    let numbers: Vec<String> =
        report.changes.iter().map(|change| format!("{:?} {}", change.subject, change.reason)).collect();
    for number in [0, 1, 3, 4, 5, 6] {
        assert!(
            numbers.iter().any(|line| line.contains(&format!("message: {number},"))),
            "{number}: {numbers:#?}"
        );
    }
}

#[test]
fn a_summary_hides_what_came_before_in_the_other_agents_own_way() {
    let summary = Entry::new(Kind::Summarised(Summary { text: "so far".into(), covers: 1 }));
    let history = told(vec![Entry::said(Role::User, "go"), summary, Entry::said(Role::User, "on")]);
    for agent in Agent::WRITABLE {
        let (there, _) = carried(&history, agent);
        assert_eq!(story(&there), ["User: go", "summary of 1: so far", "User: on"], "{agent}");
    }
}

#[test]
fn pictures_in_results_arrive() {
    let media = Media::Inline { media_type: "image/png".into(), base64: "aGk=".into() };
    let image = Part { content: Content::Image(Image { media, detail: None }), wire: None };
    let history = told(vec![
        Entry::said(Role::User, "look"),
        call("a", "Read", r#"{"file_path":"/a.png"}"#),
        returned("a", Outcome::Ok, vec![Part::text("a picture"), image]),
    ]);
    for agent in Agent::WRITABLE {
        let (there, _) = carried(&history, agent);
        let media =
            there.iter().filter_map(|told| told.entry.as_return()).flat_map(|returned| &returned.parts);
        let found = media.filter(|part| matches!(&part.content, Content::Image(Image { media: Media::Inline { base64, .. }, .. }) if base64 == "aGk="));
        assert_eq!(found.count(), 1, "{agent}");
    }
}

#[test]
fn an_agents_own_sealed_reasoning_goes_back_to_it() {
    let line = r#"{"uuid":"1","parentUuid":null,"type":"assistant","sessionId":"s","message":{"id":"m","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"done"}]}}"#;
    let session = read(Agent::ClaudeCode, line);
    let (there, _) = carried(&session.told(), Agent::ClaudeCode);
    assert!(story(&there).contains(&r#"thought ["hm"] sealed true"#.to_owned()), "{:?}", story(&there));
    let (elsewhere, _) = carried(&session.told(), Agent::Codex);
    assert!(story(&elsewhere).contains(&"Assistant: hm".to_owned()), "{:?}", story(&elsewhere));
}

/// A history of rounds: words, and calls made side by side, with their results.
fn history() -> impl Strategy<Value = Vec<Told>> {
    let name = prop::sample::select(vec!["Bash", "Read", "exec_command", "apply_patch", "mcp__x__y", "edit"]);
    let arguments = prop::sample::select(vec![
        r#"{"command":"ls"}"#,
        r#"{"cmd":"a \"b\" é"}"#,
        "{}",
        r#"{ "file_path" : "/a" }"#,
        r#"{"n":1.10,"deep":{"a":[1,2]}}"#,
    ]);
    // Nothing but white space is refused by some, and reported.
    let result = ("r[a-z\\n<>{}\" ü]{0,30}", prop::sample::select(vec![Outcome::Ok, Outcome::Error]));
    let calls = prop::collection::vec((name, arguments, result), 0..4);
    let round = ("[a-z ]{1,10}", calls, "[a-z\\n ]{0,10}[a-z]");
    prop::collection::vec(round, 1..5).prop_map(|rounds| {
        let mut entries = Vec::new();
        for (number, (words, calls, answer)) in rounds.into_iter().enumerate() {
            entries.push(Entry::said(Role::User, format!("q{words}")));
            let id = |call: usize| format!("call_{number}_{call}");
            for (at, (name, arguments, _)) in calls.iter().enumerate() {
                entries.push(call(&id(at), name, arguments));
            }
            for (at, (_, _, (words, outcome))) in calls.iter().enumerate() {
                entries.push(returned(&id(at), *outcome, vec![Part::text(words.as_str())]));
            }
            entries.push(Entry::said(Role::Assistant, answer));
        }
        told(entries)
    })
}

/// Returns the pairs with the names that Claude Code has for them.
fn as_claude_code(told: &[Told]) -> Vec<(String, Option<String>)> {
    pairs(&carried(told, Agent::ClaudeCode).0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_pair_survives_the_way_there_and_back(history in history()) {
        let expected = as_claude_code(&history);
        prop_assert_eq!(expected.len(), pairs(&history).len());
        for agent in Agent::WRITABLE {
            let (there, _) = carried(&history, agent);
            let results = |pairs: Vec<(String, Option<String>)>| pairs.into_iter().map(|pair| pair.1).collect::<Vec<_>>();
            prop_assert_eq!(results(pairs(&there)), results(pairs(&history)));
            prop_assert_eq!(as_claude_code(&there), expected.clone());
        }
    }
}

#[test]
fn an_id_that_the_other_agent_refuses_is_another_one_on_both_sides() {
    let long = "x".repeat(90);
    let history = told(vec![
        Entry::said(Role::User, "go"),
        call(&long, "Read", "{}"),
        returned(&long, Outcome::Ok, vec![Part::text("one")]),
    ]);
    let (there, _) = carried(&history, Agent::Codex);
    let id: Text = there[1].entry.as_call().unwrap().id.clone();
    assert!(id.len() <= 64);
    assert_eq!(pairs(&there), [("{}".to_owned(), Some("one".to_owned()))]);
}

#[test]
fn free_text_that_becomes_an_object_is_reported() {
    let patch = Call {
        id: "a".into(),
        item_id: None,
        name: "apply_patch".into(),
        namespace: None,
        input: Input::Freeform("*** Begin Patch".into()),
    };
    let history = told(vec![
        Entry::said(Role::User, "go"),
        Entry::new(Kind::Called(patch)),
        returned("a", Outcome::Ok, vec![Part::text("done")]),
    ]);
    for (agent, changes) in [(Agent::ClaudeCode, 1), (Agent::Opencode, 1), (Agent::Codex, 0)] {
        let (there, report) = carried(&history, agent);
        assert_eq!(report.changes.len(), changes, "{agent}: {report:?}");
        assert!(
            report.changes.iter().all(|change| change.reason.contains("free text")),
            "{agent}: {report:?}"
        );
        assert!(there[1].entry.as_call().unwrap().input.text().contains("*** Begin Patch"), "{agent}");
    }
}

#[test]
fn what_failed_by_its_own_words_arrives_as_a_failure_and_goes_back_as_it_was() {
    let words = "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nls: no such file";
    let history = told(vec![
        Entry::said(Role::User, "go"),
        call("a", "exec_command", r#"{"cmd":"ls x"}"#),
        returned("a", Outcome::Ok, vec![Part::text(words)]),
    ]);
    for agent in [Agent::ClaudeCode, Agent::Opencode] {
        let (there, report) = carried(&history, agent);
        assert_eq!(story(&there)[2], format!("returned a Error {words}"), "{agent}");
        assert_eq!(report.count(throughline_core::Action::Translated), 1, "{agent}: {report:?}");
        assert_eq!(story(&carried(&there, Agent::Codex).0), story(&history), "{agent}");
    }
}

#[test]
fn a_digest_that_a_plan_put_in_hides_nothing() {
    let digest = Entry::new(Kind::Summarised(Summary { text: "3 calls".into(), covers: 6 }));
    let mut history = told(vec![Entry::said(Role::User, "go"), digest, Entry::said(Role::Assistant, "on")]);
    history[1].number = None;
    for agent in Agent::WRITABLE {
        let (there, _) = carried(&history, agent);
        let story = story(&there);
        assert!(!story.iter().any(|line| line.starts_with("summary")), "{agent}: {story:?}");
        assert!(story[0].starts_with("User: go") && story.concat().contains("3 calls"), "{agent}: {story:?}");
    }
}
