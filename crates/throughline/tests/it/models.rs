//! `throughline models`: what is known of models without anything being typed in.

use crate::cli::{Run, scratch};
use serde_json::Value;
use std::process::{Command, Stdio};

fn models(name: &str, args: &[&str], variables: &[(&str, &str)]) -> Run {
    let home = scratch(&format!("models-{name}"));
    std::fs::create_dir_all(&home).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(args)
        .current_dir(&home)
        .env_clear()
        .env("HOME", &home)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Run {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

fn lines(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn with_a_key_and_nothing_else_windows_and_prices_are_known() {
    let keys = [("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")];
    let run = models("keys", &["models", "--json"], &keys);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in lines(&run) {
        assert!(line["context_window"]["value"].as_u64().unwrap() >= 200_000, "{line}");
        assert_eq!(line["prices"]["source"], "catalogue", "{line}");
    }
    let shown = models("keys", &["config", "show"], &keys);
    assert!(shown.stdout.contains("catalogue of "), "{}", shown.stdout);
    assert!(!shown.stdout.contains("context_window = unknown"), "{}", shown.stdout);
}

#[test]
fn a_model_can_be_asked_for_by_any_of_its_names() {
    let keys = [("OPENROUTER_API_KEY", "k")];
    let run = models("names", &["models", "anthropic/claude-sonnet-4.5", "--json"], &keys);
    let line = &lines(&run)[0];
    assert!(run.code == 0 && line["context_window"]["value"].as_u64().unwrap() >= 200_000, "{line}");
    let run = models("names", &["models", "nobodys-model"], &keys);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stderr.contains("nobodys-model"), "{}", run.stderr);
    let all = models("names", &["models", "--all", "gpt-5", "--json"], &[]);
    assert!(lines(&all).len() > 10);
}
