//! Chat sessions of VS Code.

use crate::sessions::{Session, pairs};
use serde_json::{Value, json};
use throughline_carry::{Agent, read_document};

fn session(requests: &Value) -> Session {
    let whole = json!({"version": 3, "creationDate": 1000, "sessionId": "s-1", "requests": requests});
    read_document(Agent::VsCode, &whole.to_string()).unwrap().into()
}

/// A result as the editor keeps it: a tree that the tool has rendered.
fn rendered(text: &str) -> Value {
    json!({"$mid": 20, "content": [{"$mid": 23, "value": {"node": {"type": 1, "children": [
        {"type": 1, "children": [{"type": 2, "text": text}]}]}}}]})
}

#[test]
fn rounds_have_their_calls_and_results() {
    let session = session(&json!([{
        "requestId": "r", "timestamp": 2000, "modelId": "throughline/active", "message": {"text": "Read it"},
        "response": [{"value": "shown"}],
        "result": {"metadata": {
            "toolCallRounds": [
                {"response": "Let me look.", "thinking": {"id": "t", "text": "Hm."}, "timestamp": 2100, "toolCalls": [
                    {"name": "read_file", "arguments": "{\"filePath\":\"/a\"}", "id": "call_1__vscode-17"},
                    {"name": "run_in_terminal", "arguments": "{}", "id": "call_2__vscode-18"}]},
                {"response": "Done.", "toolCalls": [], "timestamp": 2200}],
            "toolCallResults": {
                "call_1__vscode-17": rendered("ALPHA"),
                "call_2__vscode-18": {"content": [{"value": "ERROR while calling tool: no terminal"}]}}}}
    }]));
    assert_eq!(
        session.story(),
        [
            "User: Read it",
            r#"thought ["Hm."] sealed false"#,
            "Assistant: Let me look.",
            r#"called read_file call_1 {"filePath":"/a"}"#,
            "called run_in_terminal call_2 {}",
            "returned call_1 Ok ALPHA",
            "returned call_2 Error ERROR while calling tool: no terminal",
            "Assistant: Done.",
        ]
    );
    assert_eq!(pairs(&session.told()).len(), 2);
    let facts = &session.facts;
    assert_eq!((facts.id.as_deref(), facts.title.as_deref()), (Some("s-1"), Some("Read it")));
    assert_eq!((facts.model.as_deref(), facts.turns, facts.calls), (Some("throughline/active"), 1, 2));
    assert_eq!((facts.started, facts.updated), (Some(1000), Some(2200)));
}

#[test]
fn without_rounds_what_was_shown_is_read() {
    let session = session(&json!([{
        "timestamp": 2000, "message": {"text": "Rename it"},
        "response": [
            {"kind": "progressMessage", "content": {"value": "Working"}},
            {"value": "I rename it."},
            {"kind": "toolInvocationSerialized", "toolId": "vscode_rename", "toolCallId": "c", "isComplete": true,
                "invocationMessage": "Renaming", "pastTenseMessage": {"value": "Renamed 3"}},
            {"kind": "textEditGroup", "uri": {"path": "/a.rs"}, "edits": [[{"text": "b"}]]}],
        "result": {"errorDetails": {"message": "Canceled"}}
    }]));
    assert_eq!(
        session.story(),
        [
            "User: Rename it",
            "Assistant: I rename it.",
            r#"called vscode_rename c {"shown":"Renaming"}"#,
            "returned c Ok Renamed 3",
            r#"called text_edit edit_3 {"path":"/a.rs","edits":[[{"text":"b"}]]}"#,
            "returned edit_3 Ok applied",
            "Assistant: [The editor ended this turn: Canceled]",
        ]
    );
}

#[test]
fn a_summary_stands_behind_what_it_covers() {
    let session = session(&json!([
        {"timestamp": 1, "message": {"text": "Read it"}, "response": [{"value": "Read."}]},
        {"timestamp": 2, "message": {"text": "/compact"}, "response": [],
            "result": {"metadata": {"summary": {"text": "It was read."}}}},
    ]));
    assert_eq!(
        session.story(),
        ["User: Read it", "Assistant: Read.", "User: /compact", "summary of 3: It was read."]
    );
}

#[test]
fn a_log_of_changes_is_read_as_what_it_leads_to() {
    let log = [
        json!({"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": []}}),
        json!({"kind": 2, "k": ["requests"], "v": [{"timestamp": 5, "message": {"text": "Hi"}, "response": []}]}),
        json!({"kind": 1, "k": ["requests", 0, "result"], "v": {"metadata": {"toolCallRounds": [
            {"response": "Hello.", "toolCalls": []}]}}}),
        json!({"kind": 1, "k": ["requests", 9, "result"], "v": {}}),
        json!({"kind": 1, "k": ["customTitle"], "v": "Greetings"}),
    ];
    let log: Vec<String> = log.iter().map(Value::to_string).collect();
    let session = Session::from(read_document(Agent::VsCode, &log.join("\n")).unwrap());
    assert_eq!(session.story(), ["User: Hi", "Assistant: Hello."]);
    assert_eq!(session.facts.title.as_deref(), Some("Greetings"));
    assert_eq!(session.damaged.len(), 1);
}
