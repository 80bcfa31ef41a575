//! The question whether a call may be run, on a terminal: what is shown, and what counts as an answer.

use crate::pty::Pty;
use crate::run::{Scene, call};
use serde_json::{Value, json};
use std::process::Command;

const QUESTION: &str = "Allow it? ";

/// Returns a scene whose model runs these commands, one after the other.
fn scene(name: &str, commands: &[&str]) -> Scene {
    let turn = |command: &&str| json!({"calls": [call("bash", json!({"command": command}))]});
    let mut turns: Vec<Value> = commands.iter().map(turn).collect();
    turns.push(json!({"text": "Done."}));
    Scene::new(name, "chat", &Value::Array(turns))
}

fn command(scene: &Scene, pager: &str) -> Command {
    let mut command = scene.command(&["run", "--cwd", "work", "Do it"]);
    command.env("THROUGHLINE_PAGER", pager);
    command
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let scene = scene("typed-ahead", &["touch first", "touch second", "touch third"]);
    // A whole line before anything is asked, and half of one.
    let mut terminal = Pty::start(command(&scene, ""), "y\ny");
    terminal.until(QUESTION);
    // The rest of the half line alone is no yes.
    terminal.type_in("\n");
    terminal.until(QUESTION);
    // The second line was typed before the third question.
    terminal.type_in("y\ny\n");
    terminal.until(QUESTION);
    terminal.type_in("not that one\n");
    let (shown, status) = terminal.end();
    assert!(status.success() && shown.contains("Done."), "{shown}");
    let is_there = |name: &str| scene.folder.join("work").join(name).exists();
    assert_eq!(["first", "second", "third"].map(is_there), [false, true, false]);
    let last = scene.bodies().pop().unwrap();
    assert!(last.contains("the user did not allow this: not that one"), "{last}");
}

#[test]
fn a_long_command_is_shown_whole_with_a_pager_and_without() {
    let long = format!("echo {}; touch hidden-at-the-end", "x".repeat(5_000));
    for (name, pager) in [("long", ""), ("paged", "sed s/^/paged:/")] {
        let scene = scene(name, &[&long]);
        let mut terminal = Pty::start(command(&scene, pager), "");
        let shown = terminal.until(QUESTION);
        assert!(shown.contains(&long), "{shown}");
        assert_eq!(shown.contains("paged:"), !pager.is_empty(), "{shown}");
        if !pager.is_empty() {
            assert!(shown.contains(&format!("(1 line, {} characters)", long.len())), "{shown}");
            terminal.type_in("v\n");
            assert!(terminal.until(QUESTION).contains(&long), "it is shown again");
        }
        terminal.type_in("n\n");
        assert!(terminal.end().1.success());
        assert!(!scene.folder.join("work/hidden-at-the-end").exists());
    }
}

#[test]
fn what_a_terminal_would_obey_or_hide_is_seen() {
    let scene = scene("escapes", &["rm -rf x\u{1b}[2K\recho ok\u{202e}\u{200b}\nls"]);
    let mut terminal = Pty::start(command(&scene, ""), "");
    let shown = terminal.until(QUESTION);
    let wanted = "rm -rf x<U+001B>[2K<U+000D>echo ok<U+202E><U+200B>";
    assert!(shown.contains(&format!("  {wanted}\r\n  ls")), "{shown}");
    assert!(!shown.contains("x\u{1b}[2K") && !shown.contains(['\u{202e}', '\u{200b}']), "{shown}");
    assert!(
        shown.contains("every later command, whatever it is, without asking, until the program ends"),
        "{shown}"
    );
    terminal.type_in("n\n");
    let (shown, _) = terminal.end();
    assert!(!shown.contains("x\u{1b}[2K"), "{shown}");
}

#[test]
fn a_line_that_was_typed_for_a_prompt_reaches_it() {
    let scene = scene("chat", &["touch first"]);
    let mut command = scene.command(&["chat", "--cwd", "work"]);
    command.env("THROUGHLINE_PAGER", "");
    // What is typed ahead of a prompt is meant for it; behind it stands what would be an answer.
    let mut terminal = Pty::start(command, "Do it\ny\n");
    terminal.until(QUESTION);
    terminal.type_in("n\n");
    terminal.until("Done.");
    terminal.until("> ");
    terminal.type_in("/exit\n");
    let (shown, status) = terminal.end();
    assert!(status.success(), "{shown}");
    assert!(!scene.folder.join("work/first").exists());
}

#[test]
fn without_somebody_to_see_the_question_nothing_is_agreed_to() {
    let scene = scene("unseen", &["touch first"]);
    // The input is a terminal, but what is asked goes elsewhere.
    let script = format!(
        "exec {} run --cwd work --config throughline.toml --data data 'Do it' 2>remarks",
        env!("CARGO_BIN_EXE_throughline")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(&scene.folder).env("OWN_KEY", "sk-do-not-tell");
    let mut terminal = Pty::start(shell, "y\ny\n");
    terminal.until("Done.");
    assert!(terminal.end().1.success());
    assert!(!scene.folder.join("work/first").exists());
}
