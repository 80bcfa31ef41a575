//! Codex's files, of the present and of older versions.

use crate::sessions::{Session, read};
use throughline_carry::{Agent, Contents, read_document};

fn item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-11-16T04:52:42.867Z","type":"response_item","payload":{payload}}}"#)
}

fn user(words: &str) -> String {
    item(&format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{words}"}}]}}"#
    ))
}

const META: &str = r#"{"timestamp":"2026-11-16T04:52:42.804Z","type":"session_meta","payload":{"id":"t","timestamp":"2026-11-16T04:52:42.744Z","cwd":"/p","cli_version":"0.166.0"}}"#;

#[test]
fn a_session_of_today_is_read() {
    let lines = [
        META.to_owned(),
        r#"{"type":"turn_context","payload":{"model":"gpt-5-codex","cwd":"/p"}}"#.to_owned(),
        user("<environment_context>here</environment_context>"),
        user("go"),
        item(
            r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"content":null,"encrypted_content":"e"}"#,
        ),
        item(
            r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c","internal_chat_message_metadata_passthrough":{"turn_id":"t"}}"#,
        ),
        r#"{"type":"event_msg","payload":{"type":"token_count"}}"#.to_owned(),
        item(r#"{"type":"function_call_output","call_id":"c","output":"a\nb"}"#),
        item(r#"{"type":"custom_tool_call","call_id":"d","name":"apply_patch","input":"*** Begin"}"#),
        item(r#"{"type":"custom_tool_call_output","call_id":"d","output":"ok"}"#),
        r#"{"type":"world_state","payload":{"full":true}}"#.to_owned(),
    ];
    let session = read(Agent::Codex, &lines.join("\n"));
    assert_eq!(
        session.story()[1..],
        [
            "User: go",
            "thought [] sealed true",
            r#"called exec_command c {"cmd":"ls"}"#,
            "returned c Ok a\nb",
            "called apply_patch d *** Begin",
            "returned d Ok ok",
        ]
    );
    let call = &session.told()[3].entry;
    assert!(
        !call.wire.as_ref().unwrap().text.contains("internal_chat"),
        "Codex's own fields are no part of it"
    );
    assert_eq!(call.origin.as_ref().unwrap().model, "gpt-5-codex");
    let facts = session.facts;
    assert_eq!((facts.id.as_deref(), facts.turns, facts.title.as_deref()), (Some("t"), 1, Some("go")));
    assert_eq!((facts.calls, facts.results), (2, 2));
}

#[test]
fn older_files_of_bare_items_are_read() {
    let lines = [
        r#"{"id":"t","timestamp":"2025-05-07T17:24:21.597Z","instructions":null}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#,
        r#"{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
        r#"{"type":"function_call_output","call_id":"c","output":{"content":"no","success":false}}"#,
    ];
    let session = read(Agent::Codex, &lines.join("\n"));
    assert_eq!(
        session.story(),
        ["User: go", r#"called local_shell c {"type":"exec","command":["ls"]}"#, "returned c Error no",]
    );
    assert_eq!(session.facts.id.as_deref(), Some("t"));
}

#[test]
fn the_oldest_files_are_one_document() {
    let text = r#"{"session":{"id":"t","timestamp":"2025-04-17T10:00:00Z"},"items":[
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
        {"type":"function_call","call_id":"c","name":"shell","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"done"}]}"#;
    let Contents { facts, pieces, damaged } = read_document(Agent::Codex, text).unwrap();
    assert_eq!((facts.id.as_deref(), facts.calls, facts.results, pieces.len()), (Some("t"), 1, 1, 3));
    assert!(damaged.is_empty(), "{damaged:?}");
}

#[test]
fn of_a_damaged_document_the_rest_is_read() {
    let text = r#"{"session":{"id":"t","timestamp":"2025-04-17T10:00:00Z"},"items":[
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
        {"type":"function_call","call_id":"c","name":7,"arguments":"{}"},
        7,
        {"type":"message","role":"user","content":[{"type":"input_text","text":"on"}]},
        {"type":"message","role":"user","content":[{"type":"inp"#;
    let session = Session::from(read_document(Agent::Codex, text).unwrap());
    assert_eq!(session.story(), ["User: go", "User: on"]);
    let damaged: Vec<&str> = session.damaged.iter().map(|(_, damage)| damage.0.as_str()).collect();
    let [cut, name, number] = damaged[..] else { panic!("{damaged:?}") };
    assert!(cut.starts_with("it breaks off in element 5 of its list"), "{cut}");
    assert!(name.starts_with("items[1]: ") && name.contains("name"), "{name}");
    assert_eq!(number, "items[2]: an item must be an object");
}

#[test]
fn turns_that_were_taken_back_are_a_branch() {
    let back = r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#;
    let lines = [META.to_owned(), user("one"), user("two"), back.to_owned(), user("three")];
    let session = read(Agent::Codex, &lines.join("\n"));
    assert_eq!(session.story(), ["User: one", "User: three"]);
    assert_eq!(session.pieces.len(), 3);
}

#[test]
fn a_compaction_is_a_summary_unless_only_its_provider_can_read_it() {
    let readable = r#"{"type":"compacted","payload":{"message":"so far","replacement_history":[]}}"#;
    let sealed = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"compaction","encrypted_content":"e"}]}}"#;
    let lines = [META.to_owned(), user("one"), readable.to_owned(), sealed.to_owned(), user("two")];
    let session = read(Agent::Codex, &lines.join("\n"));
    assert_eq!(session.story(), ["User: one", "summary of 1: so far", "User: two"]);
}

#[test]
fn damaged_lines_are_named_and_nothing_else_is_lost() {
    let lines = [
        META.to_owned(),
        user("one"),
        "{".to_owned(),
        item(r#"{"type":"function_call","name":7}"#),
        item("7"),
        user("two"),
    ];
    let session = read(Agent::Codex, &lines.join("\n"));
    assert_eq!(session.story(), ["User: one", "User: two"]);
    assert_eq!(session.damaged.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 4, 5]);
}
