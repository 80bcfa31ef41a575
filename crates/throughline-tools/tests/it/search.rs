//! Finding files and lines.

use crate::bench::{Bench, told};
use serde_json::{Value, json};
use throughline_tools::{Context, Limits, OutcomeKind, Shell};

fn project() -> Bench {
    let bench = Bench::new();
    bench
        .put("src/main.rs", "fn main() {\n    run();\n}\n")
        .put("src/lib/run.rs", "pub fn run() {\r\n    todo();\r\n}\r\n")
        .put("README.md", "# Run\n")
        .put("target/debug/main.rs", "fn main() {}\n")
        .put("src/lib/generated.rs", "fn generated() {}\n")
        .put(".gitignore", "target/\n*.log\n")
        .put("src/lib/.gitignore", "generated.rs\n!kept.log\n")
        .put("src/lib/kept.log", "fn kept\n")
        .put("a.log", "fn log\n")
        .put(".git/config", "fn git\n")
        .put(".github/ci.yml", "fn: ci\n");
    bench
}

async fn files(bench: &Bench, arguments: Value) -> Value {
    bench.done("glob", arguments).await["files"].clone()
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let bench = project();
    assert_eq!(files(&bench, json!({"pattern": "**/*.rs"})).await, json!(["src/lib/run.rs", "src/main.rs"]));
    assert_eq!(files(&bench, json!({"pattern": "*.rs"})).await, json!(["src/lib/run.rs", "src/main.rs"]));
    assert_eq!(files(&bench, json!({"pattern": "src/*.rs"})).await, json!(["src/main.rs"]));
    assert_eq!(
        files(&bench, json!({"pattern": "*.{md,log}"})).await,
        json!(["README.md", "src/lib/kept.log"])
    );
    assert_eq!(files(&bench, json!({"pattern": "*.rs", "path": "src/lib"})).await, json!(["src/lib/run.rs"]));
    assert_eq!(
        files(&bench, json!({"pattern": "lib/*", "path": "src"})).await,
        json!(["src/lib/.gitignore", "src/lib/kept.log", "src/lib/run.rs"])
    );
    assert_eq!(files(&bench, json!({"pattern": "*.yml"})).await, json!([".github/ci.yml"]));
    assert_eq!(files(&bench, json!({"pattern": "nothing*"})).await, json!([]));
    let absolute = format!("{}/src/*.rs", bench.path("").canonicalize().unwrap().display());
    assert_eq!(files(&bench, json!({"pattern": absolute})).await, json!(["src/main.rs"]));
    let ignored = files(&bench, json!({"pattern": "main.rs", "ignored": true})).await;
    assert_eq!(ignored, json!(["src/main.rs", "target/debug/main.rs"]));
}

#[tokio::test]
async fn a_directory_that_is_ignored_can_be_named() {
    let bench = project();
    assert_eq!(
        files(&bench, json!({"pattern": "*", "path": "target/debug"})).await,
        json!(["target/debug/main.rs"])
    );
}

#[tokio::test]
async fn a_bad_pattern_says_so() {
    let bench = project();
    let error = bench.failed("glob", json!({"pattern": "src/[a"})).await;
    assert!(error.starts_with("\"src/[a\" is no pattern: "), "{error}");
    let error = bench.failed("grep", json!({"pattern": "fn("})).await;
    assert!(error.starts_with("\"fn(\" is no regular expression: "), "{error}");
    let error = bench.failed("glob", json!({"pattern": "*", "path": "nowhere"})).await;
    assert_eq!(error, "\"nowhere\" does not exist");
}

#[tokio::test]
async fn lines_are_found_by_expression() {
    let bench = project();
    let found = bench.call("grep", json!({"pattern": r"fn \w+"})).await;
    assert_eq!(
        found.output,
        r#"{"matches":3,"files_matched":3,"lines":"src/lib/kept.log:1:fn kept\nsrc/lib/run.rs:1:pub fn run() {\nsrc/main.rs:1:fn main() {\n"}"#
    );
    let found = bench.done("grep", json!({"pattern": r"\{$", "glob": "*.rs"})).await;
    assert_eq!(found["matches"], 2, "a line ends before CR LF");
    let found =
        bench.done("grep", json!({"pattern": "RUN", "-i": true, "output_mode": "files_with_matches"})).await;
    assert_eq!(found["files"], "README.md\nsrc/lib/run.rs\nsrc/main.rs\n");
    let found = bench.done("grep", json!({"pattern": "r", "path": "src/lib", "output_mode": "count"})).await;
    assert_eq!(found["files"], "src/lib/.gitignore:1\nsrc/lib/run.rs:1\n");
    let found = bench.done("grep", json!({"pattern": "run", "path": "src/main.rs", "-B": 1})).await;
    assert_eq!(found["lines"], "src/main.rs-1-fn main() {\nsrc/main.rs:2:    run();\n");
    assert_eq!(
        bench.done("grep", json!({"pattern": "absent"})).await,
        json!({"matches": 0, "files_matched": 0, "lines": ""})
    );
    let found = bench.done("grep", json!({"pattern": "fn", "path": "src/lib/generated.rs"})).await;
    assert_eq!(found["matches"], 1, "a file that is named is searched even if it is ignored");
}

#[tokio::test]
async fn groups_of_lines_are_kept_apart() {
    let bench = Bench::new();
    bench.put("a", "x\n1\n2\n3\nx\n").put("b", "x\n");
    let found = bench.done("grep", json!({"pattern": "x", "-C": 1})).await;
    assert_eq!(found["lines"], "a:1:x\na-2-1\n--\na-4-3\na:5:x\n--\nb:1:x\n");
}

#[tokio::test]
async fn binary_files_and_long_lines_are_handled() {
    let bench = Bench::new();
    bench.put("binary", b"x\0x").put("long", format!("x{}\n", "y".repeat(2_000))).put("latin1", b"x \xe9\n");
    let found = bench.done("grep", json!({"pattern": "x"})).await;
    let lines = found["lines"].as_str().unwrap();
    assert!(lines.starts_with("latin1:1:x \u{fffd}\nlong:1:xyyy"), "{lines}");
    assert!(lines.ends_with("y [… 1501 more bytes in this line]\n"), "{lines}");
}

#[tokio::test]
async fn limits_are_kept_and_told() {
    let limits = Limits { matches_max: 3, entries_max: 8, ..Limits::default() };
    let bench = Bench::with(limits, Shell::direct().unwrap());
    for n in 0..6 {
        bench.put(&format!("f{n}"), "x\nx\n");
    }
    let found = bench.done("glob", json!({"pattern": "f*"})).await;
    assert_eq!(
        found,
        json!({"files": ["f0", "f1", "f2"], "notes": ["only the first 3 files are shown; use a narrower pattern"]})
    );
    let found = bench.done("grep", json!({"pattern": "x"})).await;
    assert_eq!(found["lines"], "f0:1:x\nf0:2:x\nf1:1:x\n");
    assert_eq!(found["notes"], json!(["stopped at the limit of 3: there are more matches"]));
    let found = bench.done("grep", json!({"pattern": "x", "mode": "files", "limit": 2})).await;
    assert_eq!(found["files"], "f0\nf1\n");
    let listed = bench.done("ls", json!({})).await;
    assert_eq!(listed["notes"], json!(["3 further entries are not shown; use glob with a pattern"]));
    for n in 0..6 {
        bench.put(&format!("g/{n}"), "");
    }
    let found = bench.done("glob", json!({"pattern": "nothing"})).await;
    assert_eq!(
        found["notes"],
        json!(["there are too many files: not all of them were looked at; name a narrower path"])
    );
}

#[tokio::test]
async fn exactly_as_many_as_the_limit_is_no_more() {
    let bench = Bench::with(Limits { matches_max: 2, ..Limits::default() }, Shell::direct().unwrap());
    bench.put("a", "x\n").put("b", "x\n");
    assert_eq!(bench.done("grep", json!({"pattern": "x"})).await["notes"], Value::Null);
    assert_eq!(bench.done("glob", json!({"pattern": "*"})).await["notes"], Value::Null);
}

#[tokio::test]
async fn a_search_that_is_called_off_says_so() {
    let bench = project();
    let context = Context { time_limit: Some(std::time::Duration::ZERO), ..Context::default() };
    context.cancel.cancel();
    let outcome = bench.call_in("grep", json!({"pattern": "x"}), &context).await;
    assert_eq!(outcome.kind, OutcomeKind::Cancelled, "{}", told(&outcome));
}
