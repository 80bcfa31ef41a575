//! What a person is asked to agree to.

use crate::bench::Bench;
use serde_json::{Value, json};
use throughline_tools::{Effect, Preview};

async fn preview(bench: &Bench, tool: &str, arguments: Value) -> Preview {
    let call = bench.toolbox.check(tool, &arguments.to_string()).expect("the arguments are good");
    bench.toolbox.preview(&call).await
}

#[tokio::test]
async fn changes_are_shown_as_a_diff_and_not_made() {
    let bench = Bench::new();
    bench.put("a", "1\n2\n3\n");
    let shown = preview(&bench, "edit", json!({"path": "a", "old_string": "2", "new_string": "two"})).await;
    assert_eq!(shown.line, "edit a");
    assert_eq!(shown.diff.as_deref(), Some("--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"));
    let shown = preview(&bench, "write", json!({"path": "new", "content": "x\n"})).await;
    assert_eq!(shown.diff.as_deref(), Some("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"));
    let patch = "*** Begin Patch\n*** Delete File: a\n*** Add File: b\n+x\n*** End Patch";
    let shown = preview(&bench, "apply_patch", json!({"patch": patch})).await;
    assert_eq!(shown.line, "apply_patch a, b");
    assert_eq!(
        shown.diff.as_deref(),
        Some(
            "--- a/a\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-1\n-2\n-3\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n"
        )
    );
    assert_eq!(bench.names("."), ["a"]);
    assert_eq!(bench.content("a"), "1\n2\n3\n");
}

#[tokio::test]
async fn what_would_fail_is_told_beforehand() {
    let bench = Bench::new();
    let shown =
        preview(&bench, "edit", json!({"path": "gone", "old_string": "2", "new_string": "two"})).await;
    assert_eq!((shown.diff, shown.problem.as_deref()), (None, Some("\"gone\" does not exist")));
    let shown = preview(&bench, "write", json!({"path": "../x", "content": ""})).await;
    assert!(shown.problem.unwrap().contains("outside of the working directory"));
}

#[tokio::test]
async fn a_command_is_shown_whole() {
    let bench = Bench::new();
    let shown = preview(&bench, "bash", json!({"command": "echo a\nrm -r b\n"})).await;
    assert_eq!(shown.line, "bash: echo a (and 1 more line)");
    assert_eq!(shown.whole.as_deref(), Some("echo a\nrm -r b\n"));
    let shown = preview(&bench, "bash", json!({"command": "cargo test", "cwd": "sub"})).await;
    assert_eq!((shown.line.as_str(), shown.whole), ("bash in sub: cargo test", None));
    let long = format!("echo {}; rm -rf ~", "x".repeat(5_000));
    let shown = preview(&bench, "bash", json!({"command": long})).await;
    assert!(shown.line.ends_with("x…") && shown.whole.as_deref() == Some(&*long), "{}", shown.line);
}

#[tokio::test]
async fn nothing_can_hide_from_the_person() {
    let bench = Bench::new();
    let hidden = "rm x \u{1b}[2K\rls\u{202e}";
    let shown = preview(&bench, "bash", json!({"command": hidden})).await;
    assert_eq!(shown.line, "bash: rm x <U+001B>[2K<U+000D>ls<U+202E>");
    let shown = preview(&bench, "write", json!({"path": "a", "content": "\u{1b}[8mevil\n"})).await;
    assert!(shown.diff.unwrap().contains("+<U+001B>[8mevil"));
    let shown = preview(&bench, "write", json!({"path": "a\n+++ b/other", "content": "x\n"})).await;
    assert!(shown.diff.unwrap().contains("+++ b/a<U+000A>+++ b/other\n"));
}

#[test]
fn calls_are_classed_by_what_they_may_do() {
    let bench = Bench::new();
    let effect =
        |tool: &str, arguments: Value| bench.toolbox.check(tool, &arguments.to_string()).unwrap().effect();
    assert_eq!(effect("read", json!({"path": "a"})), Effect::Reads);
    assert_eq!(effect("grep", json!({"pattern": "a"})), Effect::Reads);
    assert_eq!(effect("glob", json!({"pattern": "a"})), Effect::Reads);
    assert_eq!(effect("ls", json!({})), Effect::Reads);
    assert_eq!(effect("write", json!({"path": "a", "content": ""})), Effect::Edits);
    assert_eq!(effect("edit", json!({"path": "a", "old_string": "x", "new_string": ""})), Effect::Edits);
    assert_eq!(effect("apply_patch", json!({"patch": ""})), Effect::Edits);
    assert_eq!(effect("bash", json!({"command": "ls"})), Effect::Runs);
    assert_eq!(effect("shell", json!({"command": ["apply_patch", "x"]})), Effect::Edits);
    assert!(Effect::Reads < Effect::Edits && Effect::Edits < Effect::Runs);
}
