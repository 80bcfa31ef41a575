//! `throughline run` and `replay`, as a user has them: a scratch repository, a scripted model, a record.

use crate::cli::{Run, scratch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use throughline_sim::{Script, Sim, SimOptions};

/// A directory to work in, a model, and a place for the record.
pub struct Scene {
    pub folder: PathBuf,
    runtime: tokio::runtime::Runtime,
    sim: Option<Sim>,
}

const KEY: &str = "sk-do-not-tell";

impl Scene {
    pub fn new(name: &str, dialect: &str, turns: &Value) -> Self {
        let folder = scratch(&format!("run-{name}-{dialect}"));
        let _ = std::fs::remove_dir_all(&folder);
        for (path, text) in [
            ("work/src/add.sh", "add() { echo $(($1 - $2)); }\n"),
            (
                "work/test.sh",
                ". src/add.sh\n[ \"$(add 2 3)\" = 5 ] && echo passed || { echo failed; exit 1; }\n",
            ),
            ("work/AGENTS.md", "Run test.sh before you answer.\n"),
            ("outside/secret.txt", "the secret\n"),
        ] {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let script = Script::parse(&json!({"turns": turns, "then": "last"}).to_string()).unwrap();
        let options = SimOptions { script: Some(script), key: Some(KEY.to_owned()), ..SimOptions::default() };
        let sim = runtime.block_on(Sim::start(options)).unwrap();
        let config = format!(
            "[[backends]]\nname = \"own\"\ndialect = \"{dialect}\"\nbase_url = \"{}\"\napi_key = \"env:OWN_KEY\"\n\
             default_model = \"m\"\nprices = {{ input = 3.0, output = 15.0 }}\n",
            sim.base_url()
        );
        std::fs::write(folder.join("throughline.toml"), config).unwrap();
        Self { folder, runtime, sim: Some(sim) }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        command
            .args(args)
            .args(["--config", "throughline.toml", "--data", "data"])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("OWN_KEY", KEY)
            .stdin(Stdio::null());
        command
    }

    fn throughline(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().unwrap();
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut all = vec!["run", "--cwd", "work"];
        all.extend_from_slice(args);
        self.throughline(&all)
    }

    /// Returns the frames of a run.
    fn frames(&self, args: &[&str]) -> Vec<Value> {
        let mut all = vec!["--json"];
        all.extend_from_slice(args);
        let run = self.run(&all);
        run.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    pub fn bodies(&self) -> Vec<String> {
        self.sim.as_ref().unwrap().recorded().into_iter().map(|recorded| recorded.body).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(sim) = self.sim.take() {
            self.runtime.block_on(sim.stop());
        }
    }
}

pub fn call(name: &str, arguments: Value) -> Value {
    let mut call = json!({"name": name});
    call["arguments"] = arguments;
    call
}

/// The work of an agent that mends a program.
fn mending() -> Value {
    json!([
        {"text": "I look.", "calls": [call("Read", json!({"file_path": "src/add.sh"})), call("grep", json!({"pattern": "add"}))]},
        {"calls": [call("bash", json!({"command": "sh test.sh"}))]},
        {"calls": [call("edit", json!({"path": "src/add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"}))]},
        {"calls": [call("bash", json!({"command": "sh test.sh"}))]},
        {"text": "It subtracted. Now it adds, and the test passes."}
    ])
}

fn of_kind<'f>(frames: &'f [Value], kind: &str) -> Vec<&'f Value> {
    frames.iter().filter(|frame| frame["frame"] == kind).collect()
}

#[test]
fn an_agent_reads_greps_edits_tests_and_answers_and_all_of_it_is_in_the_record() {
    for dialect in ["responses", "messages", "chat"] {
        let scene = Scene::new("mending", dialect, &mending());
        let run = scene.run(&["--approve", "all", "Mend add.sh"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stdout, "I look.\nIt subtracted. Now it adds, and the test passes.\n", "{dialect}");
        for line in [
            "• Read src/add.sh  ok",
            "• bash sh test.sh  exit code 1",
            "• edit src/add.sh  ok",
            "5 tool calls",
            ", $",
        ] {
            assert!(run.stderr.contains(line), "{dialect}: {line}: {}", run.stderr);
        }
        let mended = std::fs::read_to_string(scene.folder.join("work/src/add.sh")).unwrap();
        assert_eq!(mended, "add() { echo $(($1 + $2)); }\n");
        assert!(scene.bodies()[0].contains("Run test.sh before you answer."), "AGENTS.md is told");
        let id = run.stderr.split("conversation ").nth(1).unwrap().trim().to_owned();
        let talk = scene.throughline(&["show", &id, "--view", "talk"]).stdout;
        assert!(talk.contains("the test passes") && !talk.contains("$1 - $2"), "{dialect}: {talk}");
        let full = scene.throughline(&["show", &id, "--view", "full"]).stdout;
        for part in ["echo $(($1 - $2))", "called grep", "called edit", "passed", "failed", "the test passes"]
        {
            assert!(full.contains(part), "{dialect}: {part}: {full}");
        }
        assert_eq!(full.matches("Run test.sh before you answer.").count(), 1, "{dialect}: {full}");
        for form in ["messages", "chat", "responses"] {
            let export = scene.throughline(&["export", &id, "--to", form]);
            assert_eq!(
                export.stdout.matches("Run test.sh before you answer.").count(),
                1,
                "{}",
                export.stdout
            );
            assert!(!export.stdout.contains("System message:"), "{dialect} {form}: {}", export.stdout);
            assert!(!export.stderr.contains("repaired:"), "{dialect} {form}: {}", export.stderr);
        }
        let replayed = scene.throughline(&["replay", &id]);
        assert_eq!(replayed.code, 0, "{dialect}: {}{}", replayed.stdout, replayed.stderr);
        assert!(replayed.stdout.contains("identical (5 requests,"), "{}", replayed.stdout);
    }
}

#[test]
fn a_program_is_given_frames() {
    let scene = Scene::new("frames", "messages", &mending());
    let frames = scene.frames(&["--approve", "all", "Mend add.sh"]);
    assert_eq!(frames[0]["frame"], "begun");
    let cwd = scene.folder.join("work").canonicalize().unwrap();
    assert_eq!(frames[0]["cwd"], cwd.to_str().unwrap(), "from the root on, as it was typed from here on");
    assert!(frames[0]["confinement"].as_str().unwrap().starts_with("commands are"));
    assert_eq!(of_kind(&frames, "called").len(), 5);
    let settled = of_kind(&frames, "settled");
    assert_eq!((&settled[2]["exit_code"], &settled[2]["outcome"]), (&json!(1), &json!("ok")));
    assert!(settled[0]["output"].as_str().unwrap().contains("$1 - $2"));
    let text: String = of_kind(&frames, "text").iter().map(|frame| frame["text"].as_str().unwrap()).collect();
    assert!(text.ends_with("and the test passes."), "{text}");
    assert!(of_kind(&frames, "provider_event").len() > 20);
    let last = frames.last().unwrap();
    assert_eq!(
        (&last["frame"], &last["conclusion"], &last["complete"]),
        (&json!("finished"), &json!("completed"), &json!(true))
    );
    assert!(last["cost_usd"].as_f64().unwrap() > 0.0 && last["tool_calls"] == 5);
}

#[test]
fn what_is_done_is_logged_on_demand_and_nothing_of_what_is_said() {
    let scene = Scene::new("verbose", "messages", &json!([{"text": "Spoken."}]));
    let silent = scene.run(&["--json", "Hear me"]);
    assert_eq!((silent.code, &*silent.stderr), (0, ""));
    let run = scene.run(&["-v", "--json", "Hear me"]);
    for said in ["\"file\":\"throughline.toml\"", "opening the history", "placed", "sending", "attempt ended"]
    {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
    let every = scene.run(&["-vv", "--json", "Hear me"]).stderr;
    assert!(every.contains("\"level\":\"trace\"") && !run.stderr.contains("\"level\":\"trace\""), "{every}");
    for secret in [KEY, "Hear me", "Spoken"] {
        assert!(!every.contains(secret), "{secret}: {every}");
    }
    let lines = every.lines().all(|line| line.contains("\"target\":\"throughline"));
    assert!(lines, "nothing but what this program says: {every}");
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let turns =
        json!([{"calls": [call("read", json!({"path": "src/add.sh"}))]}, {"text": "Read."}, {"quote": true}]);
    let scene = Scene::new("continued", "responses", &turns);
    let first = scene.frames(&["Read it"]);
    let id = first.last().unwrap()["conversation"].as_str().unwrap().to_owned();
    let run = scene.run(&["--continue", &id, "What did it say?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("$1 - $2"), "{}", run.stdout);
    let both = scene.throughline(&["replay", &id]);
    assert_eq!((both.code, both.stdout.lines().count()), (0, 2), "{}{}", both.stdout, both.stderr);
}

#[test]
fn escapes_are_refused_and_no_tool_sees_a_key() {
    let script = "echo x > ../outside/new; cat ../outside/secret.txt; env; echo \"key=$OWN_KEY\"; cat /proc/$PPID/environ";
    let turns = json!([
        {"calls": [
            call("read", json!({"path": "../outside/secret.txt"})),
            call("read", json!({"path": "/etc/hostname"})),
            call("read", json!({"path": "link/secret.txt"})),
            call("write", json!({"path": "link/new", "content": "x"})),
            call("bash", json!({"command": script})),
            call("glob", json!({"pattern": "**/secret*"})),
        ]},
        {"text": "I see."}
    ]);
    let scene = Scene::new("escapes", "chat", &turns);
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside", scene.folder.join("work/link")).unwrap();
    let frames = scene.frames(&["--approve", "all", "Try to get out"]);
    let settled = of_kind(&frames, "settled");
    for refused in &settled[..4] {
        assert_eq!(refused["outcome"], "error", "{refused}");
    }
    assert!(!scene.folder.join("outside/new").exists());
    let confined = frames[0]["confinement"].as_str().unwrap().contains("Landlock");
    let bash = settled[4]["output"].as_str().unwrap();
    assert!(bash.contains("key=\\n") || bash.contains("key=\n"), "{bash}");
    for body in scene.bodies() {
        assert!(!body.contains(KEY), "the key is in a prompt");
        assert!(!confined || !body.contains("the secret"), "{body}");
    }
}

#[test]
fn protected_files_are_not_written_whatever_is_approved() {
    let turns = json!([
        {"calls": [
            call("write", json!({"path": ".envrc", "content": "evil"})),
            call("bash", json!({"command": "echo evil > .envrc", "protected": [".envrc"]})),
            call("bash", json!({"command": "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit"})),
            call("write", json!({"path": "plain", "content": "fine"})),
        ]},
        {"text": "I see."}
    ]);
    let scene = Scene::new("protected", "chat", &turns);
    let frames = scene.frames(&["--approve", "all", "Try"]);
    let settled = of_kind(&frames, "settled");
    for denied in &settled[..2] {
        assert_eq!(denied["outcome"], "denied", "{denied}");
        let output = denied["output"].as_str().unwrap();
        assert!(output.contains(".envrc is protected (shells run it when"), "{output}");
        assert!(output.contains("nobody is there to agree to it, and no setting does"), "{output}");
    }
    assert!(
        settled[2]["output"].as_str().unwrap().contains("pre-commit.throughline-quarantined"),
        "{}",
        settled[2]
    );
    assert!(
        !scene.folder.join("work/.git/hooks/pre-commit").exists()
            && !scene.folder.join("work/.envrc").exists()
    );
    assert_eq!(settled[3]["outcome"], "ok");
}

#[test]
#[cfg(target_os = "linux")]
fn commands_do_not_reach_the_gateway_or_its_backends_unless_they_may() {
    let probe = call("bash", json!({"command": "exec 3<>/dev/tcp/127.0.0.1/$(cat port)"}));
    let turns = json!([{"calls": [probe]}, {"text": "I see."}]);
    for (name, flag, expected) in [("offline", None, 1), ("online", Some("--network"), 0)] {
        let scene = Scene::new(name, "chat", &turns);
        let url = scene.sim.as_ref().unwrap().base_url();
        let port: String = url.chars().skip_while(|c| *c != '1').collect();
        let port = port.split([':', '/']).nth(1).unwrap().to_owned();
        std::fs::write(scene.folder.join("work/port"), port).unwrap();
        let frames = scene.frames(&flag.into_iter().chain(["--approve", "all", "Try"]).collect::<Vec<_>>());
        let settled = of_kind(&frames, "settled");
        assert_eq!(settled[0]["exit_code"], expected, "{name}: {}", settled[0]);
    }
}

#[test]
fn what_is_not_confined_is_said_even_to_those_who_want_silence() {
    let turns = json!([{"calls": [call("bash", json!({"command": "echo ran"}))]}, {"text": "I see."}]);
    let scene = Scene::new("policies", "chat", &turns);
    let run = |policy: &str| {
        let mut command =
            scene.command(&["run", "--cwd", "work", "--json", "--quiet", "--approve", "all", "Try"]);
        let output = command.env("THROUGHLINE_TOOLS_CONFINEMENT", policy).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // What the user turned off is no news.
    let (stdout, stderr) = run("off");
    assert!(stdout.contains("confinement is turned off") && stdout.contains("ran"), "{stdout}");
    assert_eq!(stderr, "");
    let (stdout, stderr) = run("best-effort");
    let is_confined = stdout.contains("commands are confined by Landlock");
    assert_eq!(stderr.contains("warning: commands are not confined"), !is_confined, "{stderr}");
    let (stdout, _) = run("required");
    assert_eq!(stdout.contains("commands are refused"), !is_confined, "{stdout}");
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_a_tool_goes_on_without_repeating_it() {
    let sleep = call("bash", json!({"command": "echo ran >> trace; exec sleep 60"}));
    let turns = json!([{"calls": [sleep]}, {"text": "I will look first."}]);
    let scene = Scene::new("killed", "messages", &turns);
    let mut child: Child = scene
        .command(&["run", "--json", "--cwd", "work", "--approve", "all", "Write"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&scene.folder.join("work/trace"), &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = scene.throughline(&["ls", "--json"]).stdout;
    let listed: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = listed["id"].as_str().unwrap();
    let run = scene.run(&["--continue", id, "--approve", "all", "And now?"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("unknown  left open by an earlier run"), "{}", run.stderr);
    assert!(scene.bodies().pop().unwrap().contains("nobody knows whether this was run"));
    assert_eq!(std::fs::read_to_string(scene.folder.join("work/trace")).unwrap(), "ran\n");
    let replayed = scene.throughline(&["replay", id]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert!(replayed.stdout.contains("the run was cut off"), "{}", replayed.stdout);
}

/// Waits until a file is there; a program that ended meanwhile has failed.
fn wait_for(path: &Path, child: &mut Child) {
    while !std::fs::read_to_string(path).is_ok_and(|text| text == "ran\n") {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        pause();
    }
}

/// Leaves the processor to what is waited for.
#[expect(clippy::disallowed_methods, reason = "another process is waited for, which cannot tell")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(5));
}

#[test]
fn what_nobody_agrees_to_is_not_done_and_says_how_to_allow_it() {
    let turns =
        json!([{"calls": [call("write", json!({"path": "new", "content": "x"}))]}, {"text": "Then not."}]);
    let scene = Scene::new("denied", "chat", &turns);
    let run = scene.run(&["Write"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("• write new  denied"), "{}", run.stderr);
    assert!(scene.bodies().pop().unwrap().contains("--approve edits would allow it"));
    assert!(!scene.folder.join("work/new").exists());
}

#[test]
fn the_exit_code_says_how_it_ended() {
    let limited =
        json!([{"calls": [call("ls", json!({})), call("ls", json!({}))]}, {"text": "That is all."}]);
    let scene = Scene::new("limited", "chat", &limited);
    let run = scene.run(&["--max-tool-calls", "1", "List"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "That is all.\n"), "{}", run.stderr);
    let scene = Scene::new("failed", "chat", &json!([{"error": {"status": 400, "message": "No such luck"}}]));
    let run = scene.run(&["Go"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stderr.contains("No such luck"), "{}", run.stderr);
    assert_eq!(scene.run(&[""]).code, 2);
    let run = scene.run(&["--max-tool-calls", "0", "Go"]);
    assert!(run.code == 2 && run.stderr.contains("a number from 1 on"), "{}", run.stderr);
    assert_eq!(scene.run(&["--image", "work/AGENTS.md", "See"]).code, 2);
}

#[test]
fn settings_of_the_tools_take_effect() {
    let turns = json!([
        {"calls": [
            call("bash", json!({"command": "echo $SHOWN_X$HIDDEN_X$OWN_KEY > out"})),
            call("bash", json!({"command": "true"})),
        ]},
        {"text": "That is all."}
    ]);
    let scene = Scene::new("settings", "messages", &turns);
    let file = scene.folder.join("throughline.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let tools = "[tools]\nmax_calls = 1\napprove = \"all\"\npass = [\"SHOWN_*\", \"OWN_KEY\"]\n";
    std::fs::write(&file, format!("{config}{tools}")).unwrap();
    let mut command = scene.command(&["run", "--cwd", "work", "Try"]);
    let output = command.env("SHOWN_X", "shown").env("HIDDEN_X", "hidden").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("denied  the limit of tool calls"), "{stderr}");
    assert_eq!(std::fs::read_to_string(scene.folder.join("work/out")).unwrap(), "shown\n");
    std::fs::write(&file, format!("{config}[[mcp]]\nname = \"docs\"\ncommand = \"/no/such/server\"\n"))
        .unwrap();
    let run = scene.run(&["Go"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("mcp: the server \"docs\" cannot be started"), "{}", run.stderr);
}

#[test]
fn a_command_ends_at_the_configured_time() {
    let turns =
        json!([{"calls": [call("bash", json!({"command": "exec sleep 60"}))]}, {"text": "Too long."}]);
    let scene = Scene::new("timeout", "messages", &turns);
    let file = scene.folder.join("throughline.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let tools = "[tools]\napprove = \"all\"\ncommand_timeout = \"100ms\"\n";
    std::fs::write(&file, format!("{config}{tools}")).unwrap();
    let run = scene.run(&["Try"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("interrupted"), "{}", run.stderr);
}

#[test]
fn without_a_configuration_the_simulated_backend_answers() {
    let folder = scratch("run-unconfigured");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.args(["run", "--data", "data", "--approve", "none", "Say hello"]).current_dir(&folder);
    let output = command.env_clear().env("HOME", &folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!output.stdout.is_empty(), "{stderr}");
}

#[test]
fn replay_shows_what_other_settings_would_have_sent() {
    let turns = json!([{"calls": [call("read", json!({"path": "src/add.sh"}))]}, {"text": "Read."}]);
    let scene = Scene::new("against", "chat", &turns);
    let frames = scene.frames(&["Read it"]);
    let id = frames[0]["run"].as_str().unwrap();
    let config = std::fs::read_to_string(scene.folder.join("throughline.toml")).unwrap();
    let other = format!("{config}native_tool_history = \"never\"\n");
    std::fs::write(scene.folder.join("other.toml"), other).unwrap();
    assert_eq!(scene.throughline(&["replay", id]).code, 0);
    let run = scene.throughline(&["replay", id, "--against", "other.toml"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("request 2: the body of the request differs at messages"), "{}", run.stdout);
    let own = scene.throughline(&["replay", id, "--against", env!("CARGO_BIN_EXE_throughline")]);
    assert_eq!((own.code, own.stdout.contains("identical")), (0, true), "{}{}", own.stdout, own.stderr);
    assert_eq!(scene.throughline(&["replay", "run_missing"]).code, 2);
    // What would be sent is shown: a line for each value, and all of both bodies for programs.
    for line in ["--- recorded", "+++ replayed", "-      \"tool_calls\": [", "error: under these settings"] {
        assert!(format!("{}{}", run.stdout, run.stderr).contains(line), "{line}: {}", run.stdout);
    }
    let full = scene.throughline(&["replay", id, "--against", "other.toml", "--full"]);
    assert_eq!(full.stdout, run.stdout, "it is short, so nothing was left out");
    let json = scene.throughline(&["replay", id, "--against", "other.toml", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let bodies =
        ["recorded_body", "replayed_body"].map(|name| json["differences"][0][name].as_str().unwrap());
    assert_eq!(bodies[0], scene.bodies()[1], "to the byte");
    assert!(bodies[1].contains("Context (tool result)"), "{}", bodies[1]);
    // Another name is another target, and nothing else.
    std::fs::write(scene.folder.join("named.toml"), config.replace("\"own\"", "\"zz\"")).unwrap();
    let run = scene.throughline(&["replay", id, "--against", "named.toml"]);
    assert_eq!(
        run.stdout.lines().skip(1).collect::<Vec<_>>(),
        [
            "request 1: the target of the request differs",
            "- own (chat, m)",
            "+ zz (chat, m)",
            "and 1 more difference; --full shows it"
        ]
    );
    let run = scene.throughline(&["replay", id, "--against", "/nonexist"]);
    assert!(run.code == 2 && run.stderr.contains("--against /nonexist"), "{}", run.stderr);
}

#[test]
fn one_flipped_bit_in_the_database_is_told_by_the_replay_and_by_the_check() {
    let scene = Scene::new("flipped", "chat", &mending());
    let run = scene.run(&["--approve", "all", "Mend add.sh"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let id = run.stderr.split("conversation ").nth(1).unwrap().trim();
    let database = rusqlite::Connection::open(scene.folder.join("data/history.db")).unwrap();
    let change = |table: &str, n: i64, bytes: &[u8]| {
        let sql = format!("UPDATE {table} SET bytes = ?2 WHERE n = ?1");
        assert_eq!(database.execute(&sql, (n, bytes)).unwrap(), 1);
    };
    // Requests of clients and reports are kept beside what was sent; a replay compares what was sent.
    let is_replayed = |table: &str, n: i64| {
        let sent = "SELECT EXISTS (SELECT 1 FROM documents WHERE body = ?1 AND kind = 0)";
        table != "bodies" || database.query_row(sent, [n], |row| row.get(0)).unwrap()
    };
    // What was sent, what came, and what was said: a replay reads all of it.
    for table in ["bodies", "events", "blobs"] {
        let sql = format!("SELECT n, bytes FROM {table} ORDER BY n");
        let rows = database
            .prepare(&sql)
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<Vec<(i64, Vec<u8>)>, _>>()
            .unwrap();
        assert!(rows.len() >= 5, "{table}: {}", rows.len());
        for (n, bytes) in rows {
            let mut flipped = bytes.clone();
            flipped[bytes.len() / 2] ^= 1;
            change(table, n, &flipped);
            let replay = scene.throughline(&["replay", id]);
            let is_told = [1, 2, 4].contains(&replay.code) || !is_replayed(table, n);
            assert!(is_told, "{table} {n}: {}{}", replay.stdout, replay.stderr);
            let check = scene.throughline(&["store", "check"]);
            assert_eq!(check.code, 1, "{table} {n}: {}{}", check.stdout, check.stderr);
            let is_named =
                [&replay.stderr, &check.stdout, &check.stderr].iter().any(|it| it.contains("entry "));
            assert!(table != "blobs" || is_named, "{n}: which one? {}{}", replay.stderr, check.stdout);
            change(table, n, &bytes);
        }
    }
    assert_eq!(scene.throughline(&["store", "check"]).code, 0, "as it was, it is sound");
    assert_eq!(scene.throughline(&["replay", id]).code, 0, "and identical");
}

#[test]
fn tools_of_an_mcp_server_are_run_kept_and_replayed_without_it() {
    let server = Path::new(env!("CARGO_BIN_EXE_throughline")).with_file_name("examples").join("mcp_server");
    assert!(
        server.exists(),
        "built by: cargo build -p throughline-tools --example mcp_server --profile test"
    );
    let turns = json!([
        {"calls": [call("example__echo", json!({"text": "from afar"})), call("example__fail", json!({}))]},
        {"calls": [call("example__exit", json!({}))]},
        {"text": "It is gone."}
    ]);
    let scene = Scene::new("mcp", "messages", &turns);
    let path = scene.folder.join("throughline.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let with_server = format!("{config}[[mcp]]\nname = \"example\"\ncommand = {server:?}\n");
    std::fs::write(&path, &with_server).unwrap();
    let run = scene.run(&["--approve", "all", "Ask it"]);
    assert_eq!((run.code, &*run.stdout), (0, "It is gone.\n"), "{}", run.stderr);
    let bodies = scene.bodies();
    assert!(bodies[0].contains("Says the text again."), "its tools are declared: {}", bodies[0]);
    for result in ["from afar", "it went wrong"] {
        assert!(bodies[1].contains(result), "{result}: {}", bodies[1]);
    }
    assert_eq!(bodies.len(), 3, "a server that ends in the middle of a call is a result, not the end");
    // Nothing outside is touched when it is replayed: the server need not be there.
    std::fs::write(&path, config).unwrap();
    let id = run.stderr.split("conversation ").nth(1).unwrap().trim();
    let replayed = scene.throughline(&["replay", id]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    // One that cannot be reached is told at the start, by its name.
    std::fs::write(&path, with_server.replace("mcp_server", "no_such_server")).unwrap();
    let run = scene.run(&["Ask it"]);
    assert!(run.code != 0 && run.stderr.contains("example"), "{}", run.stderr);
}

#[test]
fn a_conversation_is_had_line_by_line() {
    use std::io::Write;
    let turns = json!([{"text": "One."}, {"text": "Two."}]);
    let scene = Scene::new("chat", "messages", &turns);
    let mut command = scene.command(&["chat", "--cwd", "work"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"First\n\n/help\n/compact\nSecond\n/exit\nThird\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "One.\nTwo.\n");
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("/exit, /quit") && told.contains("/compact means nothing here"), "{told}");
    assert_eq!(scene.bodies().len(), 2, "neither is for the model");
    assert!(scene.bodies()[1].contains("One."), "the second line sees the first");
}
