//! Reading, writing and listing.

use crate::bench::{Bench, told};
use serde_json::json;
use std::fs;
use throughline_tools::{Context, Limits, OutcomeKind, Shell};

#[tokio::test]
async fn a_file_is_read_as_it_is() {
    let bench = Bench::new();
    bench.put("a.txt", "one\r\ntwo\n");
    let outcome = bench.call("read", json!({"path": "a.txt"})).await;
    assert_eq!(outcome.output, r#"{"path":"a.txt","content":"one\r\ntwo\n"}"#);
    let again = bench.call("Read", json!({"file_path": bench.path("a.txt")})).await;
    assert_eq!(again, outcome, "an absolute path in the working directory means the same");
    let dotted = bench.call("read", json!({"path": "./x/../a.txt"})).await;
    assert_eq!(dotted, outcome);
}

#[tokio::test]
async fn a_part_of_a_file_is_read_by_lines() {
    let bench = Bench::new();
    bench.put("a.txt", "1\n2\n3\n4\n5");
    let read = bench.done("read", json!({"path": "a.txt", "offset": 2, "limit": 2})).await;
    assert_eq!(read, json!({"path": "a.txt", "shown": "lines 2 to 3 of 5", "content": "2\n3\n"}));
    let read = bench.done("read", json!({"path": "a.txt", "offset": 5})).await;
    assert_eq!(read["content"], "5");
    let error = bench.failed("read", json!({"path": "a.txt", "offset": 6})).await;
    assert_eq!(error, "\"a.txt\" has 5 lines, so there is no line 6");
}

#[tokio::test]
async fn an_empty_file_is_empty() {
    let bench = Bench::new();
    bench.put("empty", "");
    assert_eq!(bench.done("read", json!({"path": "empty"})).await, json!({"path": "empty", "content": ""}));
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let bench = Bench::new();
    bench.put("dir/README.md", "x").put("binary", b"\x7fELF\0\0").put("file", "x");
    let cases = [
        ("nowhere.txt", "\"nowhere.txt\" does not exist"),
        ("dir/readme.md", "\"dir/readme.md\" does not exist; did you mean \"dir/README.md\"?"),
        ("dir", "\"dir\" is a directory; use ls to see what is in it"),
        (".", "\".\" is a directory; use ls to see what is in it"),
        ("binary", "\"binary\" is binary (6 bytes); look at it with a command such as `file` or `xxd`"),
        ("file/inner", "\"file/inner\" is not a directory"),
        ("", "\"\" is no path"),
    ];
    for (path, wanted) in cases {
        assert_eq!(bench.failed("read", json!({"path": path})).await, wanted);
    }
}

#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap();
    assert!(made.success());
    let error = bench.failed("read", json!({"path": "pipe"})).await;
    assert_eq!(error, "\"pipe\" is neither a file nor a directory");
    assert_eq!(bench.done("grep", json!({"pattern": "x"})).await["matches"], 0);
}

#[cfg(unix)]
#[tokio::test]
async fn an_unreadable_file_is_denied() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.put("locked", "secret");
    fs::set_permissions(bench.path("locked"), fs::Permissions::from_mode(0o0)).unwrap();
    let outcome = bench.call("read", json!({"path": "locked"})).await;
    // Root may read everything, and then reading it is right.
    let wanted = match fs::read(bench.path("locked")) {
        Ok(_) => json!({"path": "locked", "content": "secret"}),
        Err(_) => json!({"error": "permission denied for \"locked\""}),
    };
    assert_eq!(told(&outcome), wanted);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_and_noted() {
    let bench = Bench::new();
    bench.put("latin1", b"caf\xe9\n");
    let read = bench.done("read", json!({"path": "latin1"})).await;
    assert_eq!(read["content"], "caf\u{fffd}\n");
    assert_eq!(read["notes"], json!(["content: 1 sequences that are not UTF-8 are shown as \u{fffd}"]));
}

#[tokio::test]
async fn a_long_file_is_shown_in_part_and_kept_whole() {
    let bench = Bench::with(Limits { preview_bytes_max: 300, ..Limits::default() }, Shell::direct().unwrap());
    let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
    bench.put("long", &text);
    let outcome = bench.call("read", json!({"path": "long"})).await;
    let told = told(&outcome);
    let content = told["content"].as_str().unwrap();
    assert!(
        content.starts_with("line 1\nline 2\n") && content.ends_with("line 499\nline 500\n"),
        "{content}"
    );
    assert!(
        content
            .contains("lines, left out here; the whole is kept as artifact \"content\" and can be recalled")
    );
    assert_eq!(told["artifacts"], json!([{"name": "content", "bytes": text.len()}]));
    assert_eq!(outcome.artifacts[0].bytes, text.as_bytes());
    assert!(content.len() < 500, "{}", content.len());
}

#[tokio::test]
async fn images_come_back_as_images() {
    let bench = Bench::with(Limits { image_bytes_max: 40, ..Limits::default() }, Shell::direct().unwrap());
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    bench
        .put("a.png", png)
        .put("b.jpg", b"\xff\xd8\xff\xe0\0")
        .put("c.gif", b"GIF89a\0\0")
        .put("d.webp", b"RIFF\0\0\0\0WEBPVP8 ");
    bench.put("large.png", [&png[..], &[0; 100]].concat()).put("named.png", "only its name says so");
    for (path, media_type) in
        [("a.png", "image/png"), ("b.jpg", "image/jpeg"), ("c.gif", "image/gif"), ("d.webp", "image/webp")]
    {
        let outcome = bench.call("read", json!({"path": path})).await;
        assert_eq!(outcome.images[0].media_type, media_type);
        assert_eq!(told(&outcome)["image"], media_type);
    }
    let outcome = bench.call("view_image", json!({"path": "a.png"})).await;
    assert_eq!(outcome.images[0].base64, "iVBORw0KGgoAAAANSUhEUg==");
    assert_eq!(outcome.output, r#"{"path":"a.png","image":"image/png","bytes":16}"#);
    let error = bench.failed("read", json!({"path": "large.png"})).await;
    assert!(error.contains("an image of 116 bytes, and at most 40 can be shown"), "{error}");
    assert!(bench.call("read", json!({"path": "named.png"})).await.images.is_empty());
}

#[tokio::test]
async fn a_file_is_written_with_its_directories() {
    let bench = Bench::new();
    let told = bench.done("write", json!({"path": "a/b/c.txt", "content": "1\n2\n"})).await;
    assert_eq!(told, json!({"changed": [{"path": "a/b/c.txt", "change": "created", "lines": 2}]}));
    assert_eq!(bench.content("a/b/c.txt"), "1\n2\n");
    let told = bench.done("write", json!({"path": "a/b/c.txt", "content": "1\n3\n"})).await;
    assert_eq!(
        told["changed"][0],
        json!({"path": "a/b/c.txt", "change": "edited", "added": 1, "removed": 1})
    );
    assert_eq!(bench.names("a/b"), ["c.txt"], "no draft is left behind");
    let told = bench.done("write", json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(told["changed"][0]["removed"], 2);
    assert_eq!(bench.content("a/b/c.txt"), "");
}

#[tokio::test]
async fn what_cannot_be_written_says_why_and_leaves_nothing() {
    let bench = Bench::new();
    bench.put("file", "x").put("dir/inner", "y");
    assert_eq!(
        bench.failed("write", json!({"path": "dir", "content": ""})).await,
        "\"dir\" is a directory; use ls to see what is in it"
    );
    let error = bench.failed("write", json!({"path": "file/inner", "content": ""})).await;
    assert!(error.contains("\"file/inner\""), "{error}");
    assert_eq!(bench.names("."), ["dir", "file"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_written_file_keeps_its_mode_and_its_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.put("bin/run.sh", "old");
    fs::set_permissions(bench.path("bin/run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("bin/run.sh", bench.path("link")).unwrap();
    bench.done("write", json!({"path": "link", "content": "new"})).await;
    bench.done("edit", json!({"path": "link", "old_string": "new", "new_string": "newer"})).await;
    assert_eq!(bench.content("bin/run.sh"), "newer");
    assert_eq!(fs::metadata(bench.path("bin/run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_directory_is_listed_in_order() {
    let bench = Bench::new();
    bench
        .put("b.txt", "")
        .put("a/x", "")
        .put(".hidden", "")
        .put("target/out", "")
        .put(".gitignore", "target/\n");
    let listed = bench.done("ls", json!({})).await;
    assert_eq!(listed["entries"], json!([".gitignore", ".hidden", "a/", "b.txt"]));
    assert_eq!(listed["notes"], json!(["1 entries that .gitignore names are not shown"]));
    let listed = bench.done("LS", json!({"path": ".", "ignored": true})).await;
    assert_eq!(listed["entries"], json!([".gitignore", ".hidden", "a/", "b.txt", "target/"]));
    assert_eq!(bench.done("ls", json!({"path": "a"})).await, json!({"path": "a", "entries": ["x"]}));
    assert_eq!(bench.failed("ls", json!({"path": "b.txt"})).await, "\"b.txt\" is not a directory");
}

#[tokio::test]
async fn a_call_that_is_called_off_changes_nothing() {
    let bench = Bench::new();
    let context = Context::default();
    context.cancel.cancel();
    let outcome = bench.call_in("write", json!({"path": "a", "content": "x"}), &context).await;
    assert_eq!(outcome.kind, OutcomeKind::Cancelled);
    assert!(bench.names(".").is_empty());
    let outcome = bench.call_in("bash", json!({"command": "touch b"}), &context).await;
    assert_eq!(outcome.kind, OutcomeKind::Cancelled);
    assert!(bench.names(".").is_empty());
}

#[tokio::test]
async fn a_call_that_is_called_off_at_any_moment_is_done_or_says_so() {
    let bench = Bench::new();
    for round in 0..200 {
        let context = Context::default();
        let name = format!("{round}");
        let call = bench.call_in("write", json!({"path": name, "content": "x"}), &context);
        // The work has begun on another thread when this calls it off, and may be anywhere.
        let (outcome, ()) = tokio::join!(call, async { context.cancel.cancel() });
        let written = bench.names(".").contains(&name);
        let expected = if written { OutcomeKind::Done } else { OutcomeKind::Cancelled };
        assert_eq!(outcome.kind, expected, "{}", told(&outcome));
    }
}

#[tokio::test]
async fn the_same_call_gives_the_same_bytes() {
    let bench = Bench::new();
    bench.put("a.rs", "fn main() {}\n").put("b/c.rs", "fn other() {}\n");
    let calls = [
        ("read", json!({"path": "a.rs"})),
        ("ls", json!({})),
        ("glob", json!({"pattern": "*.rs"})),
        ("grep", json!({"pattern": "fn", "-C": 1})),
        ("bash", json!({"command": "echo out; echo err >&2; mktemp -u; exit 3"})),
        ("read", json!({"path": "missing"})),
    ];
    for (tool, arguments) in calls {
        let first = bench.call(tool, arguments.clone()).await.output;
        let second = bench.call(tool, arguments).await.output;
        if tool == "bash" {
            // What mktemp draws is the command's own accident; the directory is none of it.
            assert!(first.contains(r#""stdout":"out\n$TMPDIR/tmp."#), "{first}");
        } else {
            assert_eq!(first, second);
        }
    }
}
