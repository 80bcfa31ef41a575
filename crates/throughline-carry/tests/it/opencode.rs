//! opencode's documents.

use crate::sessions::{Session, pairs};
use throughline_carry::{Agent, join_opencode, read_document};

const INFO: &str = r#"{"id":"ses_1","title":"A title","directory":"/p","version":"1.18.33","time":{"created":1000,"updated":2000}}"#;

fn session(messages: &[(&str, &[&str])]) -> Session {
    let messages: Vec<(String, Vec<String>)> = messages
        .iter()
        .map(|(info, parts)| ((*info).to_owned(), parts.iter().map(|part| (*part).to_owned()).collect()))
        .collect();
    let (facts, pieces) = read_document(Agent::Opencode, &join_opencode(INFO, &messages)).unwrap();
    Session { pieces, facts, damaged: Vec::new() }
}

const QUESTION: &str = r#"{"id":"msg_1","role":"user","time":{"created":1000}}"#;
const ANSWER: &str =
    r#"{"id":"msg_2","role":"assistant","modelID":"m","providerID":"p","time":{"created":1500}}"#;

#[test]
fn calls_and_results_come_out_of_one_part() {
    let session = session(&[
        (QUESTION, &[r#"{"type":"text","text":"go"}"#, r#"{"type":"text","text":"hidden","ignored":true}"#]),
        (
            ANSWER,
            &[
                r#"{"type":"step-start"}"#,
                r#"{"type":"reasoning","text":"hm"}"#,
                r#"{"type":"tool","tool":"read","callID":"a","state":{"status":"completed","input":{"filePath":"/a"},"output":"text"}}"#,
                r#"{"type":"tool","tool":"bash","callID":"b","state":{"status":"error","input":{"command":"x"},"error":"no"}}"#,
                r#"{"type":"tool","tool":"bash","callID":"c","state":{"status":"running","input":{"command":"y"}}}"#,
                r#"{"type":"text","text":"done"}"#,
            ],
        ),
    ]);
    assert_eq!(
        session.story(),
        [
            "User: go",
            r#"thought ["hm"] sealed false"#,
            r#"called read a {"filePath":"/a"}"#,
            r#"called bash b {"command":"x"}"#,
            r#"called bash c {"command":"y"}"#,
            "returned a Ok text",
            "returned b Error no",
            "Assistant: done",
        ]
    );
    assert_eq!(pairs(&session.told()).len(), 3);
    assert_eq!((session.facts.turns, session.facts.calls, session.facts.results), (1, 3, 2));
    assert_eq!(session.facts.cwd.as_deref(), Some("/p"));
}

#[test]
fn a_compaction_is_a_summary() {
    let summary = r#"{"id":"msg_2","role":"assistant","summary":true,"time":{"created":1500}}"#;
    let session = session(&[
        (QUESTION, &[r#"{"type":"text","text":"go"}"#]),
        (QUESTION, &[r#"{"type":"compaction","auto":true}"#]),
        (summary, &[r#"{"type":"text","text":"so far"}"#]),
    ]);
    assert_eq!(session.story(), ["User: go", "summary of 1: so far"]);
}
