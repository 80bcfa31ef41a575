//! opencode's documents.

use crate::sessions::{Session, pairs};
use throughline_carry::{Agent, join_opencode, read_document};

const INFO: &str = r#"{"id":"ses_1","title":"A title","directory":"/p","version":"1.18.33","time":{"created":1000,"updated":2000}}"#;

fn session(messages: &[(&str, &[&str])]) -> Session {
    let messages: Vec<(String, Vec<String>)> = messages
        .iter()
        .map(|(info, parts)| ((*info).to_owned(), parts.iter().map(|part| (*part).to_owned()).collect()))
        .collect();
    read_document(Agent::Opencode, &join_opencode(INFO, &messages)).unwrap().into()
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

#[test]
fn parts_that_cannot_be_read_are_named_and_nothing_else_is_lost() {
    let session = session(&[
        (QUESTION, &[r#"{"type":"text","text":7}"#, r#"{"type":"text","text":"go"}"#, "7"]),
        (
            ANSWER,
            &[
                r#"{"type":"tool","tool":"read","state":{"status":"completed","output":"text"}}"#,
                r#"{"type":"tool","tool":"read","callID":"a","state":{"status":"completed","output":7}}"#,
                r#"{"type":"file","mime":"image/png"}"#,
                r#"{"type":"step-start"}"#,
                r#"{"type":"text","text":"done"}"#,
            ],
        ),
        ("{}", &[]),
    ]);
    assert_eq!(session.story(), ["User: go", "called read a {}", "Assistant: done"]);
    let damaged: Vec<&str> = session.damaged.iter().map(|(_, damage)| damage.0.as_str()).collect();
    assert_eq!(
        damaged,
        [
            "messages[0].parts[0]: a text has `text`",
            "messages[0].parts[2]: a part has a `type`",
            "messages[1].parts[0]: a call has `callID` and `tool`",
            "messages[1].parts[1]: a result has `output`",
            "messages[1].parts[2]: a file has `url` and `mime`",
        ]
    );
}
