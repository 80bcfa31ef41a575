//! Claude Code's files: trees, sub-agents, compactions, and what is odd in them.

use crate::sessions::{Session, read, story};
use throughline_carry::{Agent, Spot};

fn line(id: &str, parent: &str, kind: &str, more: &str, message: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"uuid":"{id}","parentUuid":{parent},"isSidechain":false,"type":"{kind}","sessionId":"s","cwd":"/p","version":"2.1","timestamp":"2026-11-16T04:52:27.376Z"{more},"message":{message}}}"#
    )
}

fn user(id: &str, parent: &str, words: &str) -> String {
    line(id, parent, "user", "", &format!(r#"{{"role":"user","content":"{words}"}}"#))
}

fn answer(id: &str, parent: &str, message: &str, block: &str) -> String {
    let message = format!(
        r#"{{"id":"{message}","role":"assistant","model":"m","content":[{block}],"usage":{{"input_tokens":1}}}}"#
    );
    line(id, parent, "assistant", "", &message)
}

fn call(id: &str, parent: &str, message: &str, call: &str) -> String {
    answer(
        id,
        parent,
        message,
        &format!(r#"{{"type":"tool_use","id":"{call}","name":"Read","input":{{"file_path":"/{call}"}}}}"#),
    )
}

fn result(id: &str, parent: &str, call: &str) -> String {
    let block = format!(r#"{{"type":"tool_result","tool_use_id":"{call}","content":"of {call}"}}"#);
    line(
        id,
        parent,
        "user",
        r#","toolUseResult":{"stdout":"x"}"#,
        &format!(r#"{{"role":"user","content":[{block}]}}"#),
    )
}

fn session(lines: &[String]) -> Session {
    read(Agent::ClaudeCode, &lines.join("\n"))
}

#[test]
fn results_of_calls_made_side_by_side_are_all_on_the_branch() {
    // As 2.1.197 writes them: the first result hangs on the first call, beside the second call.
    let lines = [
        user("1", "", "go"),
        call("2", "1", "m1", "a"),
        call("3", "2", "m1", "b"),
        result("4", "2", "a"),
        result("5", "3", "b"),
        answer("6", "5", "m2", r#"{"type":"text","text":"done"}"#),
    ];
    let expected = [
        "User: go",
        r#"called Read a {"file_path":"/a"}"#,
        r#"called Read b {"file_path":"/b"}"#,
        "returned a Ok of a",
        "returned b Ok of b",
        "Assistant: done",
    ];
    assert_eq!(session(&lines).story(), expected);
    // And when the answer goes on behind the result that came first, or a result comes late.
    let mut late = lines.clone();
    late.swap(4, 5);
    let told = session(&late).told();
    let pairs = crate::sessions::pairs(&told);
    assert_eq!(pairs[0].1.as_deref(), Some("of a"));
    assert_eq!(pairs[1].1.as_deref(), Some("of b"));
}

#[test]
fn a_user_who_goes_back_makes_a_branch() {
    let lines = [
        user("1", "", "go"),
        answer("2", "1", "m1", r#"{"type":"text","text":"one"}"#),
        user("3", "2", "left"),
        user("4", "2", "right"),
    ];
    let session = session(&lines);
    assert_eq!(session.story(), ["User: go", "Assistant: one", "User: right"]);
    assert_eq!(story(&session.branch(Some(Spot(2)))), ["User: go", "Assistant: one", "User: left"]);
    assert_eq!(session.facts.turns, 3);
}

#[test]
fn what_brings_nothing_still_links() {
    let lines = [
        user("1", "", "go"),
        r#"{"uuid":"2","parentUuid":"1","type":"attachment","attachment":{"type":"new-in-a-later-version"}}"#
            .to_owned(),
        r#"{"type":"file-history-snapshot","messageId":"1"}"#.to_owned(),
        answer("3", "2", "m1", r#"{"type":"text","text":"one"}"#),
    ];
    assert_eq!(session(&lines).story(), ["User: go", "Assistant: one"]);
}

#[test]
fn damaged_lines_are_named_and_nothing_else_is_lost() {
    let lines = [
        user("1", "", "go"),
        r#"{"uuid":"2","parentUuid":"1","type":"user","mess"#.to_owned(),
        answer("3", "2", "m1", r#"{"type":"text","text":"one"}"#),
        "[]".to_owned(),
        line("4", "3", "user", "", r#"{"role":"user","content":[{"type":"text","text":7}]}"#),
        line("5", "3", "user", "", "7"),
    ];
    let session = session(&lines);
    assert_eq!(session.story(), ["User: go", "Assistant: one"]);
    assert_eq!(session.damaged.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 4, 5, 6]);
}

#[test]
fn sub_agents_in_the_same_file_are_threads_of_their_own() {
    let side = |line: String| line.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    let lines = [
        user("1", "", "go"),
        call("2", "1", "m1", "a"),
        side(user("x", "", "look around")),
        side(answer("y", "x", "m2", r#"{"type":"text","text":"looked"}"#)),
        result("3", "2", "a"),
    ];
    let session = session(&lines);
    assert_eq!(session.story(), ["User: go", r#"called Read a {"file_path":"/a"}"#, "returned a Ok of a"]);
    let threads: Vec<_> = session.pieces.iter().map(|piece| piece.thread.as_deref()).collect();
    assert_eq!(threads, [None, None, Some("x"), Some("x"), None]);
    assert_eq!(story(&session.branch(Some(Spot(3)))), ["User: look around", "Assistant: looked"]);
}

#[test]
fn a_file_of_a_sub_agent_is_a_session_that_names_its_parent() {
    let line =
        user("1", "", "look").replace(r#""isSidechain":false"#, r#""isSidechain":true,"agentId":"7f""#);
    let session = session(&[line]);
    assert_eq!(session.facts.id.as_deref(), Some("s.7f"));
    assert_eq!(session.facts.parent.as_deref(), Some("s"));
    assert_eq!(session.story(), ["User: look"]);
}

#[test]
fn a_compaction_is_a_summary_on_the_same_branch() {
    let boundary = r#"{"uuid":"3","parentUuid":null,"logicalParentUuid":"2","type":"system","subtype":"compact_boundary"}"#;
    let summary = |parent: &str| {
        line("4", parent, "user", r#","isCompactSummary":true"#, r#"{"role":"user","content":"so far"}"#)
    };
    let before = [user("1", "", "go"), answer("2", "1", "m1", r#"{"type":"text","text":"one"}"#)];
    let new = [before[0].clone(), before[1].clone(), boundary.to_owned(), summary("3"), user("5", "4", "on")];
    let expected = ["User: go", "Assistant: one", "summary of 2: so far", "User: on"];
    assert_eq!(session(&new).story(), expected);
    // Older versions name no parent at all.
    let old = [before[0].clone(), before[1].clone(), summary(""), user("5", "4", "on")];
    assert_eq!(session(&old).story(), expected);
}

#[test]
fn thinking_keeps_its_signature_and_its_model() {
    let block = r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#;
    let session = session(&[user("1", "", "go"), answer("2", "1", "m1", block)]);
    assert_eq!(session.story(), ["User: go", r#"thought ["hm"] sealed true"#]);
    assert_eq!(session.told()[1].entry.origin.as_ref().unwrap().model, "m");
}

#[test]
fn the_facts_are_those_of_the_session() {
    let title = r#"{"type":"ai-title","aiTitle":"A title","sessionId":"s"}"#.to_owned();
    let session = session(&[user("1", "", "go on then"), call("2", "1", "m1", "a"), title]);
    let facts = session.facts;
    assert_eq!((facts.id.as_deref(), facts.cwd.as_deref()), (Some("s"), Some("/p")));
    assert_eq!((facts.title.as_deref(), facts.version.as_deref()), (Some("A title"), Some("2.1")));
    assert_eq!((facts.turns, facts.calls, facts.results), (1, 1, 0));
    assert_eq!(facts.started, Some(1_794_804_747_376));
}

#[test]
fn a_session_that_has_grown_is_read_as_before_and_on() {
    let lines = [
        user("1", "", "go"),
        call("2", "1", "m1", "a"),
        call("3", "2", "m1", "b"),
        result("4", "2", "a"),
        result("5", "3", "b"),
        user("6", "5", "more"),
        user("7", "1", "back"),
    ];
    let whole = session(&lines).pieces;
    for count in 0..lines.len() {
        assert_eq!(session(&lines[..count]).pieces, whole[..count]);
    }
}
