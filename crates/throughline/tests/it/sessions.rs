//! Sessions of agents, in and out: what is imported twice is there once, and what comes back is the same.

use crate::cli::{Run, scratch, throughline};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const CLAUDE: &str = r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-16T04:52:27.000Z","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326"}
{"uuid":"1","parentUuid":null,"isSidechain":false,"type":"user","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","cwd":"/home/you/project","version":"2.1.197","timestamp":"2026-11-16T04:52:27.376Z","message":{"role":"user","content":"read it"}}
{"uuid":"2","parentUuid":"1","isSidechain":false,"type":"assistant","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:28.000Z","message":{"id":"m","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"cat notes.txt"}}]}}
not a line at all
{"uuid":"3","parentUuid":"2","isSidechain":false,"type":"user","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:29.000Z","toolUseResult":{"stdout":"alpha"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"alpha\nbeta"}]}}
"#;

const MORE: &str = r#"{"uuid":"4","parentUuid":"3","isSidechain":false,"type":"assistant","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:30.000Z","message":{"id":"n","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"It says alpha."}]}}
"#;

const ID: &str = "0b8c057c-60c2-4dcf-9f61-2e09133f1326";

/// A user with agents of their own.
struct User {
    folder: PathBuf,
}

impl User {
    fn new(name: &str) -> Self {
        let folder = scratch(&format!("sessions-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("claude/projects/-home-you-project")).unwrap();
        Self { folder }
    }

    fn session(&self) -> PathBuf {
        self.folder.join(format!("claude/projects/-home-you-project/{ID}.jsonl"))
    }

    /// Returns a command with a history of that name.
    fn command(&self, data: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command
            .args(args)
            .arg("--data")
            .arg(self.folder.join(data))
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("CLAUDE_CONFIG_DIR", self.folder.join("claude"))
            .env("CODEX_HOME", self.folder.join("codex"));
        command
    }

    /// Runs a command with a history of that name.
    fn run_with(&self, data: &str, args: &[&str]) -> Run {
        let output = self.command(data, args).output().unwrap();
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    fn run(&self, args: &[&str]) -> Run {
        self.run_with("data", args)
    }

    fn shown(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        run.stdout
    }
}

#[test]
fn what_is_imported_again_adds_only_what_is_new() {
    let user = User::new("again");
    std::fs::write(user.session(), CLAUDE).unwrap();
    let listed: Value = serde_json::from_str(&user.shown(&["import", "--json"])).unwrap();
    assert_eq!(listed["id"], ID);
    assert_eq!(
        (&listed["turns"], &listed["calls"], &listed["title"]),
        (&1.into(), &1.into(), &"read it".into())
    );
    let first = user.run(&["import", "claude-code", "--latest"]);
    assert!(
        first.stdout.contains("3 new entries; claude-code: 1 turn, 1 call, 1 result"),
        "{}",
        first.stdout
    );
    assert!(first.stderr.contains("line 4 could not be read and was left out"), "{}", first.stderr);
    let second = user.shown(&["import", "claude-code", ID, "--quiet"]);
    assert!(second.contains("nothing new"), "{second}");
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    let third = user.shown(&["import", "claude-code", "--all"]);
    assert!(third.contains("1 new entry"), "{third}");
    let pairs = user.shown(&["show", ID, "--view", "pairs"]);
    assert!(pairs.contains("alpha\n          beta"), "{pairs}");
    // A file in which nothing was said is no conversation.
    std::fs::write(user.session().with_file_name("journal.jsonl"), "{\"type\":\"started\"}\n").unwrap();
    user.shown(&["import", "claude-code", "--all"]);
    assert_eq!(user.shown(&["ls", "--json"]).lines().count(), 1);
    // Every line is there as it came, once, the damaged one included.
    let lines = user.shown(&["export", ID, "--to", "jsonl"]);
    for text in ["toolUseResult", "not a line at all", "It says alpha."] {
        let events =
            lines.lines().filter(|line| line.starts_with(r#"{"type":"event""#) && line.contains(text));
        assert_eq!(events.count(), 1, "{text}");
    }
}

#[test]
fn our_own_form_comes_back_byte_for_byte() {
    let user = User::new("own");
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    user.shown(&["import", "claude-code", "--all"]);
    let written = user.shown(&["export", ID, "--to", "jsonl"]);
    std::fs::write(user.folder.join("session.jsonl"), &written).unwrap();
    for _ in 0..2 {
        let imported = user.run_with("other", &["import", "session.jsonl"]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
        assert_eq!(user.run_with("other", &["export", ID, "--to", "jsonl"]).stdout, written);
    }
    // What was changed on the way is found out.
    std::fs::write(user.folder.join("forged.jsonl"), written.replace("It says alpha.", "It says omega."))
        .unwrap();
    let forged = user.run_with("third", &["import", "jsonl", "forged.jsonl"]);
    assert_eq!(forged.code, 2);
    assert!(forged.stderr.contains("line ") && forged.stderr.contains("has the id"), "{}", forged.stderr);
}

#[test]
fn a_session_is_carried_to_another_agent_and_back() {
    let user = User::new("carried");
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    let carried = user.run(&["carry", "claude-code", "--to", "codex", "--json"]);
    assert_eq!(carried.code, 0, "{}", carried.stderr);
    let carried: Value = serde_json::from_str(&carried.stdout).unwrap();
    assert_eq!(carried["directory"], "/home/you/project");
    let file = carried["file"].as_str().unwrap();
    let lines = std::fs::read_to_string(file).unwrap();
    assert!(lines.contains(r#""name":"exec_command","arguments":"{\"cmd\":\"cat notes.txt\"}""#), "{lines}");
    assert!(lines.contains(r#""output":"alpha\nbeta""#), "{lines}");
    // Carried again it is the same session, and what its agent added since is left alone.
    std::fs::write(file, format!("{lines}{{\"type\":\"event_msg\",\"payload\":{{}}}}\n")).unwrap();
    let again = user.run(&["carry", "claude-code", "--to", "codex"]);
    assert!(again.stdout.contains(carried["session"].as_str().unwrap()), "{}", again.stdout);
    assert!(again.stderr.contains("left as it is"), "{}", again.stderr);
    assert!(std::fs::read_to_string(file).unwrap().contains("event_msg\",\"payload\":{}"));
    let nowhere = user.run(&["carry", "claude-code", "--to", "codex", "--start", "--cwd", "gone"]);
    assert_eq!((nowhere.code, nowhere.stderr.contains("--cwd")), (1, true), "{}", nowhere.stderr);
    std::fs::remove_dir_all(user.folder.join("codex")).unwrap();
    user.shown(&["carry", "claude-code", "--to", "codex"]);
    let back = user.run(&["carry", "codex", "--to", "claude-code", "--json"]);
    let back: Value = serde_json::from_str(&back.stdout).unwrap();
    let lines = std::fs::read_to_string(back["file"].as_str().unwrap()).unwrap();
    assert!(lines.contains(r#""name":"Bash","input":{"command":"cat notes.txt"}"#), "{lines}");
}

#[test]
fn a_budget_shortens_and_the_report_says_what() {
    let user = User::new("budget");
    let long = "lorem ipsum dolor sit amet ".repeat(4_000);
    let lines = CLAUDE.replace("alpha\\nbeta", &long);
    std::fs::write(user.session(), format!("{lines}{MORE}")).unwrap();
    let args =
        ["carry", "claude-code", "--to", "codex", "--budget", "4000", "--json", "--report", "report.jsonl"];
    let carried = user.run(&args);
    assert_eq!(carried.code, 0, "{}", carried.stderr);
    let carried: Value = serde_json::from_str(&carried.stdout).unwrap();
    let file = std::fs::read_to_string(carried["file"].as_str().unwrap()).unwrap();
    assert!(file.len() < long.len() / 2, "{}", file.len());
    let report = std::fs::read_to_string(user.folder.join("report.jsonl")).unwrap();
    let changes: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(changes.iter().any(|change| change["action"] == "shortened" && change["entry"] == 2), "{report}");
    let too_small = user.run(&["carry", "claude-code", "--to", "codex", "--budget", "1"]);
    assert_eq!(too_small.code, 1);
    assert!(too_small.stderr.contains("--budget"), "{}", too_small.stderr);
}

#[test]
fn bodies_go_in_and_out() {
    let user = User::new("bodies");
    let body =
        r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":"gone"}]}"#;
    std::fs::write(user.folder.join("my.chat.json"), body).unwrap();
    let imported: Value = serde_json::from_str(&user.shown(&["import", "my.chat.json", "--json"])).unwrap();
    let id = imported["conversation"].as_str().unwrap();
    let same: Value =
        serde_json::from_str(&user.shown(&["import", "chat.json", "my.chat.json", "--json"])).unwrap();
    assert_eq!((same["conversation"].as_str(), &same["new_entries"]), (Some(id), &0.into()));
    let messages: Value = serde_json::from_str(&user.shown(&["export", id, "--to", "messages"])).unwrap();
    assert_eq!(messages["messages"][0]["content"], "go");
    assert!(user.shown(&["export", id, "--to", "markdown"]).contains("## Assistant"));
}

#[test]
fn bodies_of_one_agent_are_conversations_of_their_own_and_grow() {
    let user = User::new("agent-bodies");
    let import = |messages: &str| {
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"system","content":"You book."}},{messages}]}}"#);
        std::fs::write(user.folder.join("b.chat.json"), body).unwrap();
        let imported: Value =
            serde_json::from_str(&user.shown(&["import", "b.chat.json", "--json"])).unwrap();
        (imported["conversation"].as_str().unwrap().to_owned(), imported["new_entries"].as_u64().unwrap())
    };
    let (there, _) = import(r#"{"role":"user","content":"Fly me there."}"#);
    let (back, entries) = import(r#"{"role":"user","content":"Fly me back."}"#);
    assert!(there != back && entries == 2, "they share their instructions only: {there} {back} {entries}");
    let (grown, entries) =
        import(r#"{"role":"user","content":"Fly me there."},{"role":"assistant","content":"Where?"}"#);
    assert_eq!((grown, entries), (there, 1), "what was said since is added");
}

#[test]
fn sessions_that_are_followed_are_imported_as_they_grow() {
    let user = User::new("followed");
    std::fs::write(user.session(), CLAUDE).unwrap();
    let mut child = user
        .command("data", &["import", "claude-code", "--watch", "--quiet"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("3 new entries"), "{first}");
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    let second = lines.next().unwrap().unwrap();
    assert!(second.contains("1 new entry"), "{second}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_given_wrongly_is_said() {
    let user = User::new("wrong");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["import", "nonsense"], 2, "neither a file nor a kind"),
        (&["import", "codex", "nowhere"], 1, "no session of codex"),
        (&["import", "claude-code", "--latest"], 1, "no session to import"),
        (&["import", "jsonl"], 2, "which file"),
        (&["export", "none", "--to", "codex"], 1, "no conversation"),
        (&["carry", "codex", "--to", "claude-code"], 1, "no session of codex"),
        (&["carry", "none", "--to", "claude-code", "--session", "x"], 2, "--session"),
    ];
    for (args, code, words) in cases {
        let run = user.run(args);
        assert_eq!((run.code, run.stderr.contains(words)), (code, true), "{args:?}: {}", run.stderr);
    }
    assert!(throughline(&["carry", "--help"], b"").stdout.contains("--budget"));
}
