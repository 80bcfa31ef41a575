//! Sessions of agents, in and out: what is imported twice is there once, and what comes back is the same.

use crate::cli::{Run, scratch, throughline};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub const CLAUDE: &str = r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-16T04:52:27.000Z","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326"}
{"uuid":"1","parentUuid":null,"isSidechain":false,"type":"user","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","cwd":"/home/you/project","version":"2.1.197","timestamp":"2026-11-16T04:52:27.376Z","message":{"role":"user","content":"read it"}}
{"uuid":"2","parentUuid":"1","isSidechain":false,"type":"assistant","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:28.000Z","message":{"id":"m","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"cat notes.txt"}}]}}
not a line at all
{"uuid":"3","parentUuid":"2","isSidechain":false,"type":"user","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:29.000Z","toolUseResult":{"stdout":"alpha"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"alpha\nbeta"}]}}
"#;

const MORE: &str = r#"{"uuid":"4","parentUuid":"3","isSidechain":false,"type":"assistant","sessionId":"0b8c057c-60c2-4dcf-9f61-2e09133f1326","timestamp":"2026-11-16T04:52:30.000Z","message":{"id":"n","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"It says alpha."}]}}
"#;

pub const ID: &str = "0b8c057c-60c2-4dcf-9f61-2e09133f1326";

/// A user with agents of their own.
pub struct User {
    pub folder: PathBuf,
}

impl User {
    pub fn new(name: &str) -> Self {
        let folder = scratch(&format!("sessions-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("claude/projects/-home-you-project")).unwrap();
        Self { folder }
    }

    /// Installs a program for this user: a script for the shell.
    pub fn program(&self, name: &str, script: &str) {
        let folder = self.folder.join("bin");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub fn session(&self) -> PathBuf {
        self.folder.join(format!("claude/projects/-home-you-project/{ID}.jsonl"))
    }

    /// Returns a command with a history of that name.
    pub fn command(&self, data: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command
            .args(args)
            .arg("--data")
            .arg(self.folder.join(data))
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("XDG_DATA_HOME", &self.folder)
            .env("PATH", self.folder.join("bin"))
            .env("CLAUDE_CONFIG_DIR", self.folder.join("claude"))
            .env("CODEX_HOME", self.folder.join("codex"));
        command
    }

    /// Runs a command with a history of that name.
    pub fn run_with(&self, data: &str, args: &[&str]) -> Run {
        let output = self.command(data, args).output().unwrap();
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with("data", args)
    }

    pub fn shown(&self, args: &[&str]) -> String {
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

/// Writes a session of Claude Code in which the user asks something and has files read, over and over.
fn long_session(prompts: &[&str], reads: usize) -> String {
    let (mut out, mut last) = (String::new(), "null".to_owned());
    let mut line = |kind: &str, message: Value| {
        let id = format!("\"u{}\"", out.lines().count());
        out.push_str(&format!(
            r#"{{"uuid":{id},"parentUuid":{last},"isSidechain":false,"type":"{kind}","sessionId":"{ID}","cwd":"/home/you/project","version":"2.1.197","timestamp":"2026-11-16T04:52:27.376Z","message":{message}}}"#
        ));
        out.push('\n');
        last = id;
    };
    for (number, prompt) in prompts.iter().enumerate() {
        line("user", json!({"role": "user", "content": prompt}));
        for read in 0..reads {
            let (id, answer) = (format!("toolu_{number}_{read}"), format!("m_{number}_{read}"));
            let input = json!({"file_path": format!("/src/{number}_{read}.rs")});
            line(
                "assistant",
                json!({"id": answer, "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "tool_use", "id": id, "name": "Read", "input": input}]}),
            );
            let words = format!("line {read} of a file that is long enough to count\n").repeat(12);
            line(
                "user",
                json!({"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": words}]}),
            );
        }
        line(
            "assistant",
            json!({"id": format!("m_{number}"), "role": "assistant",
            "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "Read."}]}),
        );
    }
    out
}

#[test]
fn what_the_user_said_is_shown_however_small_the_budget_is() {
    const PROMPTS: [&str; 3] =
        ["Mend the parser of dates.", "Now the one of times.", "Then write the tests."];
    let user = User::new("words");
    // What it is given is gone afterwards.
    user.program("opencode", "/bin/cp \"$2\" imported.json");
    std::fs::write(user.session(), long_session(&PROMPTS, 20)).unwrap();
    for (agent, mark) in [
        ("codex", r#""type":"compacted""#),
        ("claude-code", "compact_boundary"),
        ("opencode", r#""summary":true"#),
    ] {
        let carried = user.shown(&[
            "carry",
            "claude-code",
            "--session",
            ID,
            "--to",
            agent,
            "--budget",
            "2000",
            "--json",
        ]);
        let carried: Value = serde_json::from_str(&carried).unwrap();
        let file = carried["file"].as_str().unwrap_or("imported.json");
        let written = std::fs::read_to_string(user.folder.join(file)).unwrap();
        assert!(written.contains("[Earlier in this session"), "{agent}: a digest stands for the first calls");
        // What stands behind the last mark is what the agent sends to its model.
        let sent = written.rsplit(mark).next().unwrap();
        for prompt in PROMPTS {
            assert!(sent.contains(prompt), "{agent} does not show {prompt:?}: {sent}");
        }
        let data = format!("again-{agent}");
        let imported = user.run_with(&data, &["import", agent, file, "--json"]);
        let imported: Value = serde_json::from_str(&imported.stdout).unwrap();
        let body =
            user.run_with(&data, &["export", imported["conversation"].as_str().unwrap(), "--to", "messages"]);
        for prompt in PROMPTS {
            assert_eq!(body.stdout.matches(prompt).count(), 1, "{agent} and back: {}", body.stdout);
        }
    }
}

#[test]
fn another_budget_makes_another_session() {
    let user = User::new("budgets");
    std::fs::write(user.session(), long_session(&["Go."], 20)).unwrap();
    let sessions: std::collections::BTreeSet<String> = ["100000", "2000", "1500", "1500"]
        .map(|budget| user.shown(&["carry", "claude-code", "--to", "codex", "--budget", budget]))
        .into();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
}

#[test]
fn what_is_shortened_says_where_all_of_it_is_if_recall_is_on() {
    let user = User::new("recall");
    std::fs::write(user.session(), long_session(&["Go."], 20)).unwrap();
    let carry = |options: &[&str]| {
        let args = [&["carry", "claude-code", "--to", "codex", "--json"], options].concat();
        let carried: Value = serde_json::from_str(&user.shown(&args)).unwrap();
        std::fs::read_to_string(carried["file"].as_str().unwrap()).unwrap()
    };
    let told = carry(&["--budget", "1500"]);
    let data = user.folder.join("data");
    let command = format!("`throughline show conv_{ID} --view pairs --data {}`", data.display());
    assert!(told.contains(&command) && !told.contains("; recall "), "{told}");
    assert!(!carry(&["--budget", "100000"]).contains("throughline show"), "nothing was shortened");
    let config = "active = \"a\"\n[[backends]]\nname = \"a\"\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                  [history]\nrecall = false\n";
    std::fs::write(user.folder.join("throughline.toml"), config).unwrap();
    assert!(
        !carry(&["--budget", "1400", "--config", "throughline.toml"]).contains("throughline show"),
        "recall is off"
    );
}

#[test]
fn what_stays_behind_and_what_goes_by_another_name_is_in_the_report() {
    let user = User::new("behind");
    let side = CLAUDE.lines().nth(1).unwrap().replace(r#""uuid":"1""#, r#""uuid":"s""#);
    let side = side.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    let asked = MORE.replace(r#""parentUuid":"3""#, r#""parentUuid":"1""#);
    let asked = asked.replace(r#""uuid":"4""#, r#""uuid":"8""#).replace(r#""id":"n""#, r#""id":"o""#);
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}{side}\n{asked}")).unwrap();
    let carried = user.run(&["carry", "claude-code", "--to", "codex"]);
    assert!(
        carried.stderr.contains("branches: dropped: 3 entries of other branches stay"),
        "{}",
        carried.stderr
    );
    assert!(carried.stderr.contains("sub-agents: dropped: 1 of them stay"), "{}", carried.stderr);
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    let carried = user.run_with("other", &["carry", "claude-code", "--to", "codex"]);
    let renamed = "entry 1 (called Bash): renamed: Bash is exec_command with codex";
    assert!(carried.stderr.contains(renamed) && !carried.stderr.contains("branches"), "{}", carried.stderr);
}

#[test]
fn what_was_done_to_many_entries_alike_is_one_line() {
    let user = User::new("alike");
    std::fs::write(user.session(), long_session(&["Go."], 5)).unwrap();
    let carried = user.run(&["carry", "claude-code", "--to", "codex", "--report", "report.jsonl"]);
    assert_eq!(carried.code, 0, "{}", carried.stderr);
    user.program("opencode", "exit 0");
    let carried = user.run(&["carry", "claude-code", "--to", "opencode", "--report", "report.jsonl"]);
    let line = "entries 1, 3, 5 and 2 more (called Read): renamed: Read is read with opencode";
    assert!(carried.stderr.contains(line), "{}", carried.stderr);
    let report = std::fs::read_to_string(user.folder.join("report.jsonl")).unwrap();
    assert_eq!(report.lines().filter(|line| line.contains("renamed")).count(), 5, "{report}");
}

#[test]
fn what_cannot_go_on_is_not_begun() {
    let user = User::new("begun");
    std::fs::write(user.session(), format!("{CLAUDE}{MORE}")).unwrap();
    let here = user.folder.to_str().unwrap();
    let missing = user.run(&["carry", "claude-code", "--to", "codex", "--start", "--cwd", here]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("codex is not installed"), "{}", missing.stderr);
    let nowhere = user.run(&["carry", "claude-code", "--to", "codex", "--cwd", "gone"]);
    assert_eq!((nowhere.code, nowhere.stderr.contains("--cwd")), (1, true), "{}", nowhere.stderr);
    assert!(!user.folder.join("codex").exists(), "nothing was written");
    user.program("codex", "echo \"$@\"");
    let started = user.run(&["carry", "claude-code", "--to", "codex", "--start", "--cwd", here]);
    assert!(started.stdout.starts_with("resume "), "{}{}", started.stdout, started.stderr);
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

#[test]
fn an_import_brings_tokens_models_projects_failures_and_sub_agents_along() {
    let user = User::new("used");
    let usage = |input: u64, read: u64, output: u64| json!({"input_tokens": input, "cache_read_input_tokens": read, "cache_creation_input_tokens": 0, "output_tokens": output});
    let line = |uuid: &str, parent: Option<&str>, kind: &str, message: Value| {
        json!({"uuid": uuid, "parentUuid": parent, "isSidechain": false, "type": kind, "sessionId": ID,
            "cwd": "/home/you/bakery", "version": "2.1.197", "timestamp": "2026-11-16T04:52:27.000Z", "message": message})
    };
    let answer = |id: &str, block: Value, usage: Value| json!({"id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage});
    let refused = json!({"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529 overloaded"}]});
    let mut failed = line("5", Some("3"), "assistant", refused);
    failed["isApiErrorMessage"] = true.into();
    let side = json!({"uuid": "9", "parentUuid": null, "isSidechain": true, "type": "user", "sessionId": ID,
        "timestamp": "2026-11-16T04:52:28.000Z", "message": {"role": "user", "content": "look around"}});
    let lines = [
        line("1", None, "user", json!({"role": "user", "content": "fix the oven"})),
        // One answer takes several lines, and only the last one has all its tokens.
        line(
            "2",
            Some("1"),
            "assistant",
            answer("m", json!({"type": "text", "text": "On it."}), usage(10, 90, 1)),
        ),
        line(
            "3",
            Some("2"),
            "assistant",
            answer("m", json!({"type": "text", "text": "Done."}), usage(10, 90, 50)),
        ),
        failed,
        side,
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(user.session(), text).unwrap();
    for _ in 0..2 {
        let imported = user.run(&["import", "claude-code", "--latest"]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
    }

    let shown = |args: &[&str]| -> Vec<Value> {
        let run = user.run(args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let listed = shown(&["ls", "--json", "--project", "bakery"]);
    let own = listed.iter().find(|each| each["parent"].is_null()).unwrap();
    assert_eq!(
        (&own["title"], &own["project"]),
        (&"fix the oven".into(), &"/home/you/bakery".into()),
        "{own}"
    );
    assert_eq!(
        (&own["usage_total"]["input"], &own["usage_total"]["output"]),
        (&100.into(), &50.into()),
        "{own}"
    );
    assert!(own["cost"].as_f64().unwrap() > 0.0, "priced as its provider lists it: {own}");
    let agent = listed.iter().find(|each| !each["parent"].is_null()).unwrap();
    assert_eq!(agent["parent"], own["id"], "{agent}");
    assert_eq!(shown(&["ls", "--json", "--failed"])[0]["id"], own["id"]);
    let talk = user.run(&["show", own["id"].as_str().unwrap()]).stdout;
    assert!(
        talk.contains("✗ request failed at claude-code (claude-sonnet-4-5): API Error: 529 overloaded"),
        "{talk}"
    );
    let used = &shown(&["usage", "--by", "project", "--json"])[0];
    assert_eq!(
        (&used["rows"][0]["key"], &used["total"]["requests"]),
        (&"/home/you/bakery".into(), &2.into()),
        "{used}"
    );
}

#[test]
fn many_sessions_are_summed_up_in_a_few_lines() {
    let user = User::new("many");
    for number in 0..12 {
        let id = format!("0b8c057c-60c2-4dcf-9f61-2e09133f13{number:02}");
        std::fs::write(user.session().with_file_name(format!("{id}.jsonl")), CLAUDE.replace(ID, &id))
            .unwrap();
    }
    let imported = user.run(&["import", "--all"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    assert_eq!(
        imported.stdout,
        "12 sessions, 0 sub-agents, in 1 project: 36 new entries, 12 calls\n\
         12 lines or parts could not be read and were left out; -v names each\n"
    );
    assert_eq!(imported.stderr, "");
    assert_eq!(user.run(&["import", "--all", "--json"]).stdout.lines().count(), 12, "programs get every one");
}

#[test]
fn an_agent_is_started_through_the_gateway_and_its_files_are_left_alone() {
    let user = User::new("start");
    user.program("claude", "echo \"url=$ANTHROPIC_BASE_URL token=$ANTHROPIC_AUTH_TOKEN args=$*\"; exit 3");
    let start = |args: &[&str]| {
        // Before the agent's name: what stands behind it is the agent's.
        let output =
            user.command("data", &[]).args(["start", "--listen", "127.0.0.1:0"]).args(args).output().unwrap();
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    };
    let run = start(&["claude", "--resume", "x"]);
    assert_eq!(run.code, 3, "the agent's own exit code: {}", run.stderr);
    assert!(run.stdout.starts_with("url=http://127.0.0.1:"), "{}", run.stdout);
    assert!(run.stdout.trim_end().ends_with("token=throughline args=--resume x"), "{}", run.stdout);
    assert!(run.stderr.contains("a simulated model answers"), "{}", run.stderr);
    assert!(run.stderr.contains("nothing came through the gateway"), "{}", run.stderr);

    // Who is logged in stays so: no token is put in the place of theirs.
    std::fs::write(user.folder.join("claude/.credentials.json"), "{}").unwrap();
    let run = start(&["claude"]);
    assert!(run.stdout.trim_end().ends_with("token= args="), "{}", run.stdout);

    user.program("codex", "for each in \"$@\"; do echo \"[$each]\"; done");
    let run = start(&["codex", "exec", "hello"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout
            .starts_with("[-c]\n[model_provider=\"throughline\"]\n[-c]\n[model_providers.throughline.name="),
        "{}",
        run.stdout
    );
    assert!(run.stdout.ends_with("[exec]\n[hello]\n"), "{}", run.stdout);

    let run = start(&["emacs"]);
    assert_eq!(
        (run.code, run.stderr.contains("claude, codex, opencode, aider")),
        (2, true),
        "{}",
        run.stderr
    );
    let run = start(&["opencode"]);
    assert_eq!((run.code, run.stderr.contains("not installed, or not in PATH")), (2, true), "{}", run.stderr);
}
