//! Patches: the two forms, what is forgiven, and the law that a diff takes a text to the other.

use proptest::prelude::*;
use similar::TextDiff;
use throughline_tools::patch::{FilePatch, HunkError, PatchError, apply, parse};

/// Applies a patch of the one file to `text`.
fn patched(text: &str, body: &str) -> Result<String, HunkError> {
    let patch = parse(&format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch\n")).expect(body);
    let [FilePatch::Update { hunks, .. }] = &patch.files[..] else { panic!("one update: {patch:?}") };
    apply(text.as_bytes(), hunks).map(|bytes| String::from_utf8(bytes).expect("text stays text"))
}

#[test]
fn hunks_find_their_places() {
    let text = "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n";
    let changed = patched(text, "@@ class B:\n     def f(self):\n-        pass\n+        return 1").unwrap();
    assert_eq!(
        changed,
        text.replace("B:\n    def f(self):\n        pass", "B:\n    def f(self):\n        return 1")
    );
    let nested = patched(text, "@@ class B:\n@@     def f(self):\n-        pass\n+        return 2").unwrap();
    assert!(
        nested.ends_with("return 2\n") && nested.contains("A:\n    def f(self):\n        pass"),
        "{nested}"
    );
    let two = patched("a\nb\nc\nd\n", " a\n-b\n+B\n@@\n-d\n+D").unwrap();
    assert_eq!(two, "a\nB\nc\nD\n");
    let second = patched("x\ny\nx\n", "-x\n+z\n*** End of File").unwrap();
    assert_eq!(second, "x\ny\nz\n");
}

#[test]
fn lines_are_inserted_where_nothing_is_removed() {
    assert_eq!(patched("a\nb\n", "+c").unwrap(), "a\nb\nc\n");
    assert_eq!(patched("a\nb\n", "@@ a\n+x").unwrap(), "a\nx\nb\n");
    assert_eq!(patched("", "+c").unwrap(), "c\n");
    assert_eq!(patched("a", "+c").unwrap(), "a\nc\n");
}

#[test]
fn white_space_and_marks_are_forgiven_and_kept() {
    assert_eq!(patched("a  \nb\n", " a\n-b\n+c").unwrap(), "a  \nc\n");
    assert_eq!(patched("\ta\nb\n", " a\n-b\n+c").unwrap(), "\ta\nc\n");
    assert_eq!(
        patched("say \u{201c}hi\u{201d} \u{2013} now\nb\n", " say \"hi\" - now\n-b\n+c").unwrap(),
        "say \u{201c}hi\u{201d} \u{2013} now\nc\n"
    );
    assert_eq!(patched("a\r\nb\r\nc\r\n", " a\n-b\n+x\n+y").unwrap(), "a\r\nx\r\ny\r\nc\r\n");
}

#[test]
fn wrong_lines_at_the_edge_are_forgiven() {
    let text = "one\ntwo\nthree\nfour\nfive\n";
    assert_eq!(patched(text, " eins\n two\n-three\n+3\n four").unwrap(), "one\ntwo\n3\nfour\nfive\n");
    let error = patched(text, " two\n-drei\n+3").unwrap_err();
    assert!(matches!(error, HunkError::NoPlace { hunk: 1, .. }), "{error}");
    assert!(matches!(patched(text, "@@ class X\n-two\n+2"), Err(HunkError::NoLineAbove { .. })));
}

#[test]
fn a_line_that_looks_like_a_head_is_a_line_where_the_counts_say_so() {
    let patch = parse("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n x\n--- old\n+++ new\n").unwrap();
    let [FilePatch::Update { hunks, .. }] = &patch.files[..] else { panic!("{patch:?}") };
    assert_eq!(apply(b"x\n-- old\n", hunks).unwrap(), b"x\n++ new\n");
}

#[test]
fn wrong_counts_are_not_believed() {
    let patch = parse("--- a/f\n+++ b/f\n@@ -10,9 +10,1 @@\n a\n-b\n+c\n\n").unwrap();
    let [FilePatch::Update { hunks, .. }] = &patch.files[..] else { panic!("{patch:?}") };
    assert_eq!(apply(b"0\na\nb\nz\n", hunks).unwrap(), b"0\na\nc\nz\n");
}

#[test]
fn the_place_that_a_diff_names_is_preferred() {
    let patch = parse("--- a/f\n+++ b/f\n@@ -4 +4 @@\n-x\n+y\n").unwrap();
    let [FilePatch::Update { hunks, .. }] = &patch.files[..] else { panic!("{patch:?}") };
    assert_eq!(apply(b"x\n1\n2\nx\n", hunks).unwrap(), b"x\n1\n2\ny\n");
}

#[test]
fn what_is_no_patch_says_why() {
    let cases = [
        ("hello", "this is no patch"),
        ("*** Begin Patch\n*** Update File: a\n-x\n", "does not end with \"*** End Patch\""),
        ("*** Begin Patch\n*** End Patch", "changes nothing"),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "line 3 of the patch: the update of \"a\" above changes nothing",
        ),
        (
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "line 3 of the patch: a line of a new file must begin with \"+\"",
        ),
        (
            "*** Begin Patch\n*** Rename File: a\n*** End Patch",
            "line 2 of the patch: \"*** Rename File:\" is not known",
        ),
        ("*** Begin Patch\n*** Update File:\n*** End Patch", "line 2 of the patch: the path is missing"),
        ("*** Begin Patch\nx\n*** End Patch", "line 2 of the patch: expected \"*** Add File:\""),
        (
            "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch",
            "line 4 of the patch: a line of a change must begin with",
        ),
        ("*** Begin Patch\n*** Move to: a\n*** End Patch", "line 2 of the patch: \"*** Move to:\" belongs"),
        ("--- a\nnothing follows", "changes nothing"),
        ("--- a\n+++ a\n", "changes nothing"),
    ];
    for (text, wanted) in cases {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text:?}\n{error}");
    }
    assert_eq!(parse(""), Err(PatchError::Neither));
}

fn any_text() -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(vec!["a", "b", "  c", "", "-- d", "++ e", "*** f", "@@ g", "\\ h", " i "]);
    (prop::collection::vec(line, 0..20), any::<bool>()).prop_map(|(lines, ends)| {
        let text = lines.join("\n");
        if ends && !text.is_empty() { text + "\n" } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The law: the difference of two texts, applied to the first, is the second.
    #[test]
    fn a_diff_takes_a_text_to_the_other(before in any_text(), after in any_text(), radius in 1_usize..4) {
        prop_assume!(before != after && !before.is_empty() && !after.is_empty());
        let diff = TextDiff::from_lines(&before, &after);
        let text = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        let patch = parse(&text).expect(&text);
        let [FilePatch::Update { hunks, .. }] = &patch.files[..] else { panic!("{text}") };
        let applied = apply(before.as_bytes(), hunks).expect(&text);
        prop_assert_eq!(String::from_utf8(applied).unwrap(), after, "{}", text);
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: a|Delete File: a|Move to: b|End of File)\n|@@ ?[a-z]?\n|[-+ ][a-z]?\n|--- a\n|\\+\\+\\+ b\n|diff --git a b\n|@@ -[0-9]{1,20},[0-9] \\+1 @@\n|\n|x\n){0,20}") {
        if let Ok(patch) = parse(&text) {
            for file in patch.files {
                if let FilePatch::Update { hunks, .. } = file {
                    let _ = apply(b"a\nb\nx\n", &hunks);
                }
            }
        }
    }
}
