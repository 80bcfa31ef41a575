//! Edits and patches on files.

use crate::bench::Bench;
use serde_json::json;
use std::fs;

#[tokio::test]
async fn an_edit_replaces_the_one_place() {
    let bench = Bench::new();
    bench.put("a", "one two three\n");
    let told = bench.done("edit", json!({"path": "a", "old_string": "two", "new_string": "2"})).await;
    assert_eq!(told, json!({"changed": [{"path": "a", "change": "edited", "added": 1, "removed": 1}]}));
    assert_eq!(bench.content("a"), "one 2 three\n");
}

#[tokio::test]
async fn an_edit_that_fits_nowhere_shows_what_comes_nearest() {
    let bench = Bench::new();
    bench.put("a.rs", "fn main() {\n    let answer = 41;\n}\n");
    let error = bench
        .failed("edit", json!({"path": "a.rs", "old_string": "    let answer = 42;\n", "new_string": "x"}))
        .await;
    assert_eq!(
        error,
        "\"a.rs\": old_string does not stand in the file; nearest lines: 2: \"    let answer = 41;\""
    );
    assert_eq!(bench.content("a.rs"), "fn main() {\n    let answer = 41;\n}\n");
}

#[tokio::test]
async fn an_edit_that_fits_twice_says_where() {
    let bench = Bench::new();
    bench.put("a", "x\ny\nx\n");
    let error = bench.failed("edit", json!({"path": "a", "old_string": "x", "new_string": "z"})).await;
    assert!(error.contains("stands in the file 2 times, first on lines 1, 3;"), "{error}");
    bench.done("edit", json!({"path": "a", "old_string": "x", "new_string": "z", "replace_all": true})).await;
    assert_eq!(bench.content("a"), "z\ny\nz\n");
}

#[tokio::test]
async fn edits_of_a_list_are_all_or_nothing() {
    let bench = Bench::new();
    bench.put("a", "one\ntwo\n");
    let good = json!({"old_string": "one", "new_string": "1"});
    let bad = json!({"old_string": "three", "new_string": "3"});
    bench.failed("MultiEdit", json!({"path": "a", "edits": [good, bad]})).await;
    assert_eq!(bench.content("a"), "one\ntwo\n");
    bench
        .done(
            "MultiEdit",
            json!({"path": "a", "edits": [good, {"old_string": "1\ntwo", "new_string": "12"}]}),
        )
        .await;
    assert_eq!(bench.content("a"), "12\n");
}

#[tokio::test]
async fn an_empty_old_string_creates_and_does_not_overwrite() {
    let bench = Bench::new();
    bench.put("there", "x");
    bench.done("edit", json!({"path": "new", "old_string": "", "new_string": "hello"})).await;
    assert_eq!(bench.content("new"), "hello");
    let error = bench.failed("edit", json!({"path": "there", "old_string": "", "new_string": "hello"})).await;
    assert!(error.contains("old_string is empty, but the file is not"), "{error}");
    let error = bench.failed("edit", json!({"path": "gone", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(error, "\"gone\" does not exist");
    let error = bench.failed("edit", json!({"path": "there", "old_string": "x", "new_string": "x"})).await;
    assert!(error.contains("are the same"), "{error}");
}

#[tokio::test]
async fn line_endings_survive_an_edit() {
    let bench = Bench::new();
    bench.put("dos", "a\r\nb\r\nc\r\n").put("mixed", "a\r\nb\nc\n");
    bench.done("edit", json!({"path": "dos", "old_string": "a\nb", "new_string": "x\ny"})).await;
    assert_eq!(bench.content("dos"), "x\r\ny\r\nc\r\n");
    bench.done("edit", json!({"path": "mixed", "old_string": "b\nc", "new_string": "y\nz"})).await;
    assert_eq!(bench.content("mixed"), "a\r\ny\nz\n");
    let insert = json!({"command": "insert", "path": "dos", "insert_line": 1, "new_str": "new"});
    bench.done("str_replace_editor", insert).await;
    assert_eq!(bench.content("dos"), "x\r\nnew\r\ny\r\nc\r\n");
}

#[tokio::test]
async fn bytes_around_an_edit_survive() {
    let bench = Bench::new();
    bench.put("latin1", b"caf\xe9 old \xff");
    bench.done("edit", json!({"path": "latin1", "old_string": "old", "new_string": "new"})).await;
    assert_eq!(fs::read(bench.path("latin1")).unwrap(), b"caf\xe9 new \xff");
}

#[tokio::test]
async fn a_patch_adds_updates_moves_and_deletes() {
    let bench = Bench::new();
    bench.put("a.txt", "1\n2\n3\n4\n5\n").put("old.txt", "x\n").put("from.txt", "keep\nchange\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n 1\n-2\n+two\n 3\n*** Add File: dir/new.txt\n+hello\n+world\n*** Delete File: old.txt\n*** Update File: from.txt\n*** Move to: to.txt\n@@\n keep\n-change\n+changed\n*** End Patch\n";
    let told = bench.done("apply_patch", json!({"patch": patch})).await;
    assert_eq!(
        told["changed"],
        json!([
            {"path": "a.txt", "change": "edited", "added": 1, "removed": 1},
            {"path": "dir/new.txt", "change": "created", "lines": 2},
            {"path": "old.txt", "change": "deleted"},
            {"path": "to.txt", "change": "moved", "from": "from.txt", "added": 1, "removed": 1},
        ])
    );
    assert_eq!(bench.content("a.txt"), "1\ntwo\n3\n4\n5\n");
    assert_eq!(bench.content("dir/new.txt"), "hello\nworld\n");
    assert_eq!(bench.content("to.txt"), "keep\nchanged\n");
    assert_eq!(bench.names("."), ["a.txt", "dir", "to.txt"]);
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let bench = Bench::new();
    bench.put("a", "1\n").put("b", "x\ny\n");
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Add File: c\n+c\n*** Update File: b\n@@\n x\n-z\n+w\n*** End Patch";
    let error = bench.failed("apply_patch", json!({"patch": patch})).await;
    assert!(error.starts_with("\"b\": hunk 1 does not fit: "), "{error}");
    assert!(error.contains("[\"x\", \"z\"]") && error.ends_with("; nothing was changed"), "{error}");
    assert_eq!(
        (bench.content("a"), bench.names(".")),
        ("1\n".to_owned(), vec!["a".to_owned(), "b".to_owned()])
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_patch_that_cannot_be_written_is_undone() {
    let bench = Bench::new();
    bench.put("a", "1\n").put("m", "x\n");
    // The last of the files would go below one that is no directory, which shows only when it is written.
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Update File: m\n*** Move to: n\n-x\n+y\n*** Add File: z\n+z\n*** Add File: z/inner\n+no\n*** End Patch";
    let error = bench.failed("apply_patch", json!({"patch": patch})).await;
    assert!(error.ends_with("; nothing was changed"), "{error}");
    assert_eq!(bench.names("."), ["a", "m"]);
    assert_eq!((bench.content("a"), bench.content("m")), ("1\n".to_owned(), "x\n".to_owned()));
}

#[tokio::test]
async fn a_patch_does_not_overwrite_what_it_adds() {
    let bench = Bench::new();
    bench.put("a", "1\n").put("b", "2\n");
    for patch in [
        "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
        "*** Begin Patch\n*** Update File: b\n*** Move to: a\n-2\n+3\n*** End Patch",
    ] {
        let error = bench.failed("apply_patch", json!({"patch": patch})).await;
        assert_eq!(error, "\"a\" exists already; update it instead of adding it; nothing was changed");
    }
    let patch = "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch";
    bench.done("apply_patch", json!({"patch": patch})).await;
    assert_eq!(bench.content("a"), "x\n", "what the patch itself deletes can be added again");
    let error = bench
        .failed("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: c\n*** End Patch"}))
        .await;
    assert_eq!(error, "\"c\" does not exist");
}

#[tokio::test]
async fn unified_diffs_are_patches_too() {
    let bench = Bench::new();
    bench.put("src/a.txt", "1\n2\n3\n").put("gone", "x\n");
    let patch = "diff --git a/src/a.txt b/src/a.txt\nindex 123..456 100644\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\\ No newline at end of file\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    bench.done("apply_patch", json!({"input": patch})).await;
    assert_eq!(bench.content("src/a.txt"), "1\ntwo\n3\n");
    assert_eq!(bench.content("new"), "n");
    assert_eq!(bench.names("."), ["new", "src"]);
}
