//! `throughline config`, as its users and their scripts see it.

use crate::cli::{Run, root, scratch};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use throughline_gateway::config::keys::{KEYS, variable};
use throughline_gateway::config::providers::PROVIDERS;

/// A folder of this test's own, which is home and working directory at once.
struct Place(PathBuf, bool);

impl Place {
    fn new(name: &str) -> Self {
        let folder = scratch(&format!("config-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder, false)
    }

    /// Returns the place with a file that every command is told of.
    fn with(self, text: &str) -> Self {
        std::fs::write(self.0.join("throughline.toml"), text).unwrap();
        Self(self.0, true)
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(args)
            .current_dir(&self.0)
            .env_clear()
            .env("HOME", &self.0)
            .envs(self.1.then_some(("THROUGHLINE_CONFIG", "throughline.toml")))
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
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the line of `config show` about a key, with single spaces.
fn line(run: &Run, key: &str) -> String {
    let found = run.stdout.lines().find(|line| line.split_whitespace().next() == Some(key));
    let words: Vec<&str> =
        found.unwrap_or_else(|| panic!("{key}: {}", run.stdout)).split_whitespace().collect();
    words.join(" ")
}

#[test]
fn init_writes_a_file_that_check_accepts_and_that_is_not_overwritten() {
    let place = Place::new("init");
    let keys = [("ANTHROPIC_API_KEY", "sk-hush"), ("OPENROUTER_API_KEY", "sk-hush")];
    let run = place.run(&["config", "init"], &keys);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(place.0.join("throughline.toml")).unwrap();
    assert!(text.contains("env:ANTHROPIC_API_KEY") && !text.contains("sk-hush"), "{text}");
    let run = place.run(&["config", "check"], &keys);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, "throughline.toml: valid; backends: anthropic, openrouter; active: anthropic\n");
    let run = place.run(&["config", "init"], &keys);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("there is one already") && run.stderr.contains("--force"), "{}", run.stderr);
    assert_eq!(place.run(&["config", "init", "--force"], &[]).code, 0);
    assert_eq!(place.run(&["--config", "other.toml", "config", "init"], &[]).code, 0);
    assert!(place.0.join("other.toml").exists());
}

#[test]
fn without_anything_the_simulated_backend_is_used_and_that_is_said() {
    let place = Place::new("nothing");
    let run = place.run(&["config", "show"], &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("the simulated backend answers"), "{}", run.stderr);
    assert_eq!(line(&run, "active"), "active = sim # default");
    assert_eq!(line(&run, "backends.sim.base_url"), "backends.sim.base_url = sim: # default");
    assert_eq!(json(&place.run(&["config", "check", "--json"], &[]).stdout)["simulated"], true);
}

#[test]
fn show_names_the_source_of_each_value_and_no_secret() {
    let place = Place::new("show").with(
        "[auth]\nkeys = [\"sk-hush\"]\n\n[[backends]]\nname = \"a\"\ndialect = \"chat\"\n\
         base_url = \"http://localhost:1/v1\"\napi_key = \"env:KEY\"\n",
    );
    let variables =
        [("KEY", "sk-hush"), ("THROUGHLINE_HISTORY_BUDGET", "5000"), ("THROUGHLINE_HANDOVER_MODE", "brief")];
    let run = place.run(&["config", "show", "--data", "here"], &variables);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for expected in [
        "data = here # --data",
        "listen = 127.0.0.1:4141 # default",
        "history.budget = 5000 # THROUGHLINE_HISTORY_BUDGET",
        "backends.a.dialect = chat # throughline.toml:6",
        "backends.a.api_key = env:KEY # throughline.toml:8",
        "auth.keys = [(hidden)] # throughline.toml:2",
    ] {
        assert_eq!(line(&run, expected.split(' ').next().unwrap()), expected);
    }
    let json_run = place.run(&["--json", "config", "show"], &variables);
    let shown = json(&json_run.stdout);
    assert_eq!(shown["file"], "throughline.toml");
    let values = shown["values"].as_array().unwrap();
    let budget = values.iter().find(|value| value["key"] == "history.budget").unwrap();
    assert_eq!((&budget["value"], &budget["source"]), (&"5000".into(), &"THROUGHLINE_HISTORY_BUDGET".into()));
    assert!(!shown["warnings"].as_array().unwrap().is_empty());
    for text in [run.stdout, run.stderr, json_run.stdout, json_run.stderr] {
        assert!(!text.contains("sk-hush"), "{text}");
    }
}

#[test]
fn every_mistake_is_named_with_its_line_and_the_exit_code_is_2() {
    let place = Place::new("wrong").with("lisen = \"x\"\n[stor]\n");
    let run = place.run(&["config", "check"], &[]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("throughline.toml:1: lisen: unknown key; did you mean `listen`?"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("throughline.toml:2: stor: unknown key; did you mean `store`?"),
        "{}",
        run.stderr
    );
    let run = place.run(&["config", "check", "--json"], &[]);
    assert_eq!(run.code, 2);
    let report = json(&run.stdout);
    assert_eq!((&report["valid"], &report["errors"][0]["key"]), (&false.into(), &"lisen".into()));
    assert_eq!(report["errors"][0]["hint"], "did you mean `listen`?");
    assert_eq!(place.run(&["config", "show"], &[]).code, 2);
}

#[test]
fn a_named_file_has_to_be_there() {
    let place = Place::new("named");
    let run = place.run(&["config", "check", "--config", "nope.toml"], &[]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("nope.toml"), "{}", run.stderr);
}

#[test]
fn options_that_a_command_does_not_read_are_refused() {
    let place = Place::new("idle");
    for option in [vec!["--config", "x"], vec!["--data", "x"], vec!["--json"]] {
        let mut args = option.clone();
        args.extend(["completions", "bash"]);
        let run = place.run(&args, &[]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{option:?}");
        assert!(run.stderr.contains(option[0]), "{}", run.stderr);
    }
}

#[test]
fn every_variable_and_provider_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let mentions = |word: &str| assert!(page.contains(word), "docs/configuration.md does not mention {word}");
    KEYS.iter().filter_map(|key| variable(key.path)).for_each(|variable| mentions(&variable));
    for provider in PROVIDERS {
        mentions(&format!("`{}`", provider.name));
        provider.variables.iter().for_each(|variable| mentions(variable));
    }
    ["THROUGHLINE_CONFIG", "THROUGHLINE_DATA"].into_iter().for_each(mentions);
}

#[test]
fn a_key_that_is_not_set_stops_only_what_asks_a_backend() {
    let backend = "[[backends]]\nname = \"far\"\ndialect = \"chat\"\nbase_url = \"https://example.com/v1\"\n";
    let place = Place::new("unset").with(&format!("{backend}api_key = \"env:UNSET_KEY\"\n"));
    let data = ["--data", "data"];
    let run = |args: &[&str]| place.run(&[args, &data].concat(), &[]);
    for (args, code) in [
        (vec!["ls"], 0),
        (vec!["config", "show"], 0),
        (vec!["env", "codex"], 0),
        (vec!["use", "far"], 0),
        (vec!["store", "stats"], 0),
        (vec!["store", "check"], 0),
        (vec!["backends"], 0),
        (vec!["search", "anything"], 1),
        (vec!["show", "nothing"], 1),
        (vec!["doctor"], 1),
    ] {
        let run = run(&args);
        assert_eq!(run.code, code, "{args:?}: {}{}", run.stdout, run.stderr);
    }
    assert!(run(&["backends"]).stdout.contains("far cannot be asked: the variable UNSET_KEY is not set"));
    let told = json(&run(&["backends", "--json"]).stdout);
    assert_eq!(told["backends"][0]["lacks"], "the variable UNSET_KEY is not set");
    let shown = run(&["config", "show"]);
    assert!(
        shown.stderr.contains("backends[0].api_key: the variable UNSET_KEY is not set"),
        "{}",
        shown.stderr
    );
    let doctor = run(&["doctor", "--probe"]);
    assert!(doctor.stdout.contains("UNSET_KEY is not set") && doctor.code == 1, "{}", doctor.stdout);
    for args in [vec!["serve", "--listen", "127.0.0.1:0"], vec!["run", "a task"], vec!["config", "check"]] {
        let run = run(&args);
        let named = run.stderr.contains("the variable UNSET_KEY is not set");
        assert!(run.code == 2 && named, "{args:?}: {} {}", run.code, run.stderr);
    }
}
