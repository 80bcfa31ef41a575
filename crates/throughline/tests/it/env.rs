//! `throughline env`, as its users and their shells see it.

use crate::cli::{Run, root, scratch};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const CLIENTS: [&str; 10] = [
    "claude-code",
    "codex",
    "opencode",
    "aider",
    "vscode",
    "openai-python",
    "anthropic-python",
    "ai-sdk",
    "langchain",
    "curl",
];

const WITH_KEY: &str = r#"
listen = "0.0.0.0:4999"
[auth]
keys = ["env:TEAM_KEY"]
[[backends]]
name = "sim"
dialect = "chat"
base_url = "sim:"
default_model = "sim-large"
"#;

fn folder(name: &str, config: &str) -> PathBuf {
    let folder = scratch(&format!("env-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    folder
}

fn env(folder: &PathBuf, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.arg("env").args(args).current_dir(folder).env_clear().env("HOME", folder);
    let output =
        command.env("TEAM_KEY", "hush-hush").env("THROUGHLINE_CONFIG", "throughline.toml").output().unwrap();
    Run {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

fn told(folder: &PathBuf, client: &str) -> String {
    let run = env(folder, &[client]);
    assert_eq!(run.code, 0, "{client}: {}", run.stderr);
    run.stdout
}

/// Returns what a shell knows that was told what is printed.
fn evaluated(printed: &str, word: &str) -> String {
    let mut shell = Command::new("bash");
    let output =
        shell.arg("-c").arg(format!("set -e\n{printed}\nprintf %s {word}")).env("TEAM_KEY", "hush-hush");
    String::from_utf8(output.output().unwrap().stdout).unwrap()
}

#[test]
fn variables_can_be_evaluated() {
    let open = folder("open", "");
    let keyed = folder("keyed", WITH_KEY);
    for (client, address, suffix, key) in [
        ("claude-code", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_AUTH_TOKEN"),
        ("claude", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_AUTH_TOKEN"),
        ("aider", "OPENAI_API_BASE", "/v1", "OPENAI_API_KEY"),
        ("openai-python", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
        ("anthropic-python", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
        ("langchain", "OPENAI_API_BASE", "/v1", "OPENAI_API_KEY"),
        ("langchain", "ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
    ] {
        let word = format!("\"${address} ${key}\"");
        let without = evaluated(&told(&open, client), &word);
        assert_eq!(without, format!("http://127.0.0.1:4141{suffix} throughline"), "{client}");
        let with = evaluated(&told(&keyed, client), &word);
        assert_eq!(with, format!("http://127.0.0.1:4999{suffix} hush-hush"), "{client}");
    }
}

#[test]
fn files_refer_to_the_key_and_name_the_model() {
    let keyed = folder("files", WITH_KEY);
    let codex = told(&keyed, "codex");
    for line in [
        "# for ~/.codex/config.toml, or config.toml in $CODEX_HOME:",
        "model = \"sim-large\"",
        "base_url = \"http://127.0.0.1:4999/v1\"",
        "wire_api = \"responses\"",
        "env_key = \"TEAM_KEY\"",
    ] {
        assert!(codex.lines().any(|each| each == line), "{line}: {codex}");
    }
    let opencode = told(&keyed, "opencode");
    let json: String = opencode.lines().filter(|line| !line.starts_with("//")).collect();
    let json: Value = serde_json::from_str(&json).unwrap();
    let provider = &json["provider"]["throughline"];
    assert_eq!(provider["options"]["apiKey"], "{env:TEAM_KEY}");
    assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:4999/v1");
    assert!(provider["models"]["sim-large"].is_object());
    let vscode = told(&keyed, "vscode");
    let json: String = vscode.lines().filter(|line| !line.starts_with("//")).collect();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["models"][0]["url"], "http://127.0.0.1:4999/v1/responses");
    assert!(told(&keyed, "ai-sdk").contains("apiKey: process.env.TEAM_KEY,"));
}

#[test]
fn no_key_is_ever_printed() {
    let hidden = WITH_KEY.replace("env:TEAM_KEY", "sk-written-out");
    let folders = [folder("secret", WITH_KEY), folder("hidden", &hidden)];
    for folder in &folders {
        for client in CLIENTS {
            for args in [&[client][..], &[client, "--json"][..]] {
                let run = env(folder, args);
                assert_eq!(run.code, 0, "{client}: {}", run.stderr);
                let all = format!("{}{}", run.stdout, run.stderr);
                assert!(!all.contains("hush-hush") && !all.contains("written-out"), "{client}: {all}");
            }
        }
    }
    let claude = told(&folders[1], "claude-code");
    assert!(claude.contains(r#"ANTHROPIC_AUTH_TOKEN="${THROUGHLINE_KEY:?"#), "{claude}");
}

#[test]
fn a_client_whose_own_key_is_passed_on_keeps_it() {
    let own = "[[backends]]\nname = \"a\"\ndialect = \"messages\"\nbase_url = \"https://a.test/v1\"\napi_key = \"passthrough\"\n";
    let printed = told(&folder("own", own), "claude-code");
    assert!(printed.contains("ANTHROPIC_BASE_URL") && !printed.contains("ANTHROPIC_AUTH_TOKEN"), "{printed}");
}

#[test]
fn scripts_get_json() {
    let keyed = folder("json", WITH_KEY);
    let run = env(&keyed, &["claude", "--json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(told["client"], "claude-code");
    assert_eq!(told["url"], "http://127.0.0.1:4999");
    assert_eq!(told["variables"]["ANTHROPIC_BASE_URL"], "http://127.0.0.1:4999");
    assert_eq!(told["variables"]["ANTHROPIC_AUTH_TOKEN"]["from"], "env:TEAM_KEY");
    assert_eq!(told["file"], Value::Null);
    let run = env(&keyed, &["codex", "--json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(told["file"]["text"].as_str().unwrap().contains("[model_providers.throughline]"));
}

#[test]
fn the_known_are_listed_and_the_unknown_is_told_the_nearest() {
    let folder = folder("list", "");
    let list = env(&folder, &[]);
    let lines = env(&folder, &["--json"]).stdout;
    for client in CLIENTS {
        assert!(list.stdout.lines().any(|line| line.starts_with(client)), "{client}: {}", list.stdout);
        assert!(lines.contains(&format!("\"client\":\"{client}\"")), "{client}: {lines}");
        assert!(root().join(format!("docs/clients/{client}.md")).exists(), "{client} has no page");
    }
    let run = env(&folder, &["cluade-code"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("no client is called `cluade-code`; did you mean `claude-code`?"),
        "{}",
        run.stderr
    );
    let run = env(&folder, &["emacs"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`throughline env` lists"), "{}", run.stderr);
}

#[test]
fn an_address_without_a_port_is_no_address() {
    let folder = folder("port", "listen = \"127.0.0.1:0\"");
    let run = env(&folder, &["curl"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--listen"), "{}", run.stderr);
    let run = env(&folder, &["curl", "--listen", "127.0.0.1:4545"]);
    assert!(run.stdout.contains("export THROUGHLINE_URL='http://127.0.0.1:4545'"), "{}", run.stdout);
}

#[test]
fn a_clients_configuration_is_edited_in_place_and_is_as_it_was_afterwards() {
    let folder = folder("install", "");
    let settings = "{\n  \"theme\":  \"dark\",\n  \"env\": {\n    \"EDITOR\": \"vi\"\n  }\n}\n";
    let codex = "model = \"gpt-5\"  # mine\nmodel_provider = \"azure\"\n\n[tui]\nnotifications = true\n";
    for (client, file, text, told) in [
        (
            "claude-code",
            ".claude/settings.json",
            settings,
            "\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:4141\"",
        ),
        ("codex", ".codex/config.toml", codex, "base_url = \"http://127.0.0.1:4141/v1\""),
        ("opencode", ".config/opencode/opencode.json", "{\"theme\": \"x\"}\n", "\"throughline\": {"),
    ] {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        for _ in 0..2 {
            let run = env(&folder, &[client, "--install"]);
            assert_eq!(run.code, 0, "{client}: {}", run.stderr);
            assert!(
                run.stderr.contains("--uninstall") && run.stderr.contains("throughline-backup"),
                "{}",
                run.stderr
            );
        }
        let installed = std::fs::read_to_string(&path).unwrap();
        assert!(installed.contains(told), "{client}: {installed}");
        for line in
            text.lines().filter(|line| line.contains("mine") || line.contains("dark") || line.contains("vi"))
        {
            assert!(installed.contains(line.trim()), "{client}: {installed}");
        }
        assert_eq!(env(&folder, &[client, "--uninstall"]).code, 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{client}");
        assert_eq!(env(&folder, &[client, "--uninstall"]).code, 1, "{client}: nothing is left to take out");
    }

    // What somebody changed meanwhile stays.
    let path = folder.join(".claude/settings.json");
    env(&folder, &["claude-code", "--install"]);
    let changed = std::fs::read_to_string(&path).unwrap().replace("dark", "light");
    std::fs::write(&path, changed).unwrap();
    env(&folder, &["claude-code", "--uninstall"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), settings.replace("dark", "light"));

    // What cannot be edited is left alone.
    let path = folder.join(".config/opencode/opencode.json");
    std::fs::write(&path, "{ // mine\n}\n").unwrap();
    let run = env(&folder, &["opencode", "--install"]);
    assert_eq!((run.code, run.stderr.contains("nothing was changed")), (2, true), "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ // mine\n}\n");
    let run = env(&folder, &["aider", "--install"]);
    assert_eq!(
        (run.code, run.stderr.contains("claude-code, codex and opencode")),
        (2, true),
        "{}",
        run.stderr
    );
}
