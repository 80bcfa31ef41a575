//! `throughline compact`, as its users and their scripts see it.

use crate::cli::{Run, root, scratch, throughline};
use serde_json::{Value, json};
use throughline_testkit::validate::{Provider, validate};

fn compact(args: &[&str], input: &str) -> Run {
    let args: Vec<&str> = std::iter::once("compact").chain(args.iter().copied()).collect();
    throughline(&args, input.as_bytes())
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns what a file of that number holds: about 300 tokens, no line like another.
fn content(file: usize) -> String {
    (0..16)
        .map(|line| format!("fn handler_{file}_{line}() -> Value_{file} {{ compute({line}) }}\n"))
        .collect()
}

const PAIRS: usize = 30;

/// Returns a request with as many calls and results, in a dialect.
fn request(dialect: &str) -> String {
    let mut list = vec![json!({"role": "user", "content": "Please read all the files"})];
    for file in 0..PAIRS {
        let (id, path, text) =
            (format!("call_{file}"), json!({"path": format!("src/{file}.rs")}), content(file));
        match dialect {
            "chat" => list.extend([
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                    "function": {"name": "read_file", "arguments": path.to_string()}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": text}),
            ]),
            "messages" => list.extend([
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": id, "name": "read_file", "input": path}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": text}]}),
            ]),
            _ => list.extend([
                json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": path.to_string()}),
                json!({"type": "function_call_output", "call_id": id, "output": text}),
            ]),
        }
    }
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let body = match dialect {
        "chat" => json!({"model": "gpt-4o", "messages": list, "tools": [
            {"type": "function", "function": {"name": "read_file", "parameters": schema}}]}),
        "messages" => json!({"model": "gpt-4o", "max_tokens": 9, "messages": list, "tools": [
            {"name": "read_file", "input_schema": schema}]}),
        _ => json!({"model": "gpt-4o", "input": list, "tools": [
            {"type": "function", "name": "read_file", "parameters": schema, "strict": false}]}),
    };
    body.to_string()
}

/// Returns the report that a run writes.
fn reported(name: &str, args: &[&str], input: &str) -> (Run, Value) {
    let file = scratch(name);
    let run = compact(&[args, &["--report", file.to_str().unwrap()]].concat(), input);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report = read(&std::fs::read_to_string(&file).unwrap());
    (run, report)
}

#[test]
fn a_budget_holds_in_every_dialect_and_each_entry_has_a_reason() {
    for dialect in ["chat", "messages", "responses"] {
        let input = request(dialect);
        let args = ["--dialect", dialect, "--budget", "4000"];
        let (run, report) = reported(&format!("compact-{dialect}.json"), &args, &input);
        let number = |name: &str| report[name].as_u64().unwrap();
        assert!(number("tokens_before") > 8000 && number("tokens_after") <= 4000, "{report}");
        assert_eq!(report["counted"], "exact");
        let entries = report["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1 + 2 * PAIRS);
        for entry in entries {
            assert!(!entry["reason"].as_str().unwrap().is_empty(), "{entry}");
            assert_eq!(entry["decision"] == "kept", entry["reason"] == "as it came", "{entry}");
            assert!(entry["place"].as_str().unwrap().contains('['), "{entry}");
        }
        let told: u64 =
            ["kept", "superseded", "excerpt", "masked", "summarised", "dropped"].map(number).iter().sum();
        assert_eq!(usize::try_from(told).unwrap(), entries.len());
        let escaped = |file| json!(content(file)).to_string();
        assert!(run.stdout.contains(&escaped(PAIRS - 1)) && !run.stdout.contains(&escaped(0)), "{dialect}");
        let provider = match dialect {
            "chat" => Provider::OpenAiChat,
            "messages" => Provider::Anthropic,
            _ => Provider::OpenAiResponses,
        };
        assert_eq!(validate(provider, &read(&run.stdout)), [], "{dialect}: {}", run.stdout);
        let first = run.stderr.lines().next().unwrap();
        assert!(first.contains(&format!("now {} of 4000", report["tokens_after"])), "{}", run.stderr);
    }
}

#[test]
fn what_fits_comes_out_as_it_went_in() {
    for dialect in ["chat", "messages", "responses"] {
        let input = request(dialect);
        let run = compact(&["--dialect", dialect, "--budget", "200000"], &input);
        assert_eq!((run.code, read(&run.stdout)), (0, read(&input)));
        assert!(run.stderr.contains("nothing was touched"), "{}", run.stderr);
        let quiet = compact(&["--quiet", "--dialect", dialect, "--budget", "200000"], &input);
        assert_eq!(quiet.stderr, "");
    }
}

#[test]
fn what_cannot_fit_ends_with_one_and_prints_nothing() {
    let input = request("chat");
    for args in [&["--budget", "40"][..], &["--budget", "4000", "--policy", "off"]] {
        let run = compact(&[&["--dialect", "chat"], args].concat(), &input);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        assert!(run.stderr.contains("does not fit"), "{}", run.stderr);
        assert_eq!(run.stderr.contains("the policy is `off`"), args.len() == 4, "{}", run.stderr);
    }
    let responses = request("responses").replacen('{', r#"{"truncation":"disabled","#, 1);
    let run = compact(&["--dialect", "responses", "--budget", "4000"], &responses);
    assert_eq!(run.code, 1, "the client asks for an error instead of a cut: {}", run.stderr);
    assert!(
        run.stderr.contains("`truncation` is `disabled`") && !run.stderr.contains("policy"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_number_that_decides_is_told_where_an_estimate_is_not_it() {
    let input = request("chat");
    let told = |budget: u64| {
        let args = ["--dialect", "chat", "--model", "some-other", "--budget", &budget.to_string()];
        reported("compact-margin.json", &args, &input)
    };
    let (_, report) = told(1_000_000);
    let (before, most) =
        (report["tokens_before"].as_u64().unwrap(), report["tokens_at_most_before"].as_u64().unwrap());
    assert!(most > before, "{report}");
    let (whole, _) = told(most);
    assert!(
        whole.stderr.contains(&format!("about {before} (at most {most}) tokens of {most}: nothing")),
        "{}",
        whole.stderr
    );
    let (cut, _) = told(most - 1);
    assert!(cut.stderr.contains(&format!("about {before} (at most {most}) tokens, now ")), "{}", cut.stderr);
    let args =
        ["--dialect", "chat", "--model", "some-other", "--policy", "off", "--budget", &before.to_string()];
    let refused = compact(&args, &input).stderr;
    assert!(
        refused.contains(&format!("has {most} tokens")) && refused.contains("an estimate, with "),
        "{refused}"
    );
}

#[test]
fn each_option_decides_something() {
    let input = request("chat");
    let told = |name: &str, args: &[&str]| {
        let args = [&["--dialect", "chat", "--budget", "6000"], args].concat();
        reported(&format!("compact-option-{name}.json"), &args, &input)
    };
    let (plain, report) = told("plain", &[]);
    let after = report["tokens_after"].as_u64().unwrap();
    assert!(report["excerpt"].as_u64() > Some(0) && report["recall"] == "recall");
    assert!(plain.stdout.contains("; recall ") && plain.stdout.contains(r#""name":"recall""#));

    let (masked, report) = told("mask", &["--policy", "mask"]);
    assert_eq!(report["excerpt"], 0, "{}", masked.stderr);
    let (without, report) = told("no-recall", &["--no-recall"]);
    assert!(!without.stdout.contains("recall") && report.get("recall").is_none());
    assert!(without.stdout.contains("left out"));
    let (_, report) = told("fill", &["--fill"]);
    let filled = report["tokens_after"].as_u64().unwrap();
    assert!(filled > after && filled <= 6000, "{filled} {after}");
    let (_, report) = told("threshold", &["--threshold", "1500"]);
    assert!(report["tool_tokens_after"].as_u64().unwrap() <= 1500, "{report}");
    let recent = |report: &Value| {
        let entries = report["entries"].as_array().unwrap().iter().rev();
        entries.take_while(|entry| entry["decision"] == "kept").count()
    };
    let (_, few) = told("keep-1", &["--keep", "1"]);
    let (_, many) = told("keep-9", &["--keep", "9"]);
    assert!(recent(&few) < recent(&many), "{} {}", recent(&few), recent(&many));
    let (_, other) = told("model", &["--model", "some-other"]);
    assert_eq!((&other["model"], &other["counted"]), (&json!("some-other"), &json!("estimate")));
}

#[test]
fn json_holds_the_body_and_the_report() {
    let run = compact(&["--json", "--dialect", "chat", "--budget", "4000"], &request("chat"));
    assert_eq!((run.code, run.stderr.as_str(), run.stdout.lines().count()), (0, "", 1));
    let all = read(&run.stdout);
    assert!(all["body"]["messages"].is_array() && all["entries"].is_array());
    assert!(all["tokens_after"].as_u64().unwrap() <= 4000);
}

#[test]
fn bad_input_is_named_and_prints_nothing() {
    for (input, word) in [
        ("", "the input is empty"),
        (r#"{"messages": [}"#, "at byte 14"),
        (r#"{"messages":[{"role":"user","content":7}]}"#, "messages[0].content"),
    ] {
        let run = compact(&["--dialect", "chat", "--budget", "100"], input);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{input}");
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    for args in [&["--dialect", "chat"][..], &["--dialect", "chat", "--budget", "0"], &["--budget", "9"]] {
        assert_eq!(compact(args, "{}").code, 2, "{args:?}");
    }
    let run = compact(&["--config", "x", "--dialect", "chat", "--budget", "9"], "{}");
    assert!(run.code == 2 && run.stderr.contains("--config: has no effect"), "{}", run.stderr);
}

#[test]
fn every_option_is_documented_and_the_run_of_the_documentation_works() {
    let page = std::fs::read_to_string(root().join("docs/compaction.md")).unwrap();
    let help = compact(&["--help"], "").stdout;
    let global =
        ["--help", "--version", "--color", "--quiet", "--verbose", "--config", "--data", "--no-pager"];
    for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = word.trim_end_matches([',', '.', ']', ';']);
        assert!(
            page.contains(option) || global.contains(&option),
            "docs/compaction.md does not mention {option}"
        );
    }
    let runs = std::fs::read_to_string(root().join("crates/throughline-eval/tests/it/bakery.jsonl")).unwrap();
    let run = compact(&["--dialect", "chat", "--budget", "2000"], runs.lines().next().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("of 2000; calls and results"), "{}", run.stderr);
}
