//! Reading the record and switching, while a gateway serves: a conversation with a tool, and then every view.

use crate::cli::{Run, scratch};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const CONFIG: &str = r#"
active = "one"
[[backends]]
name = "one"
dialect = "chat"
base_url = "sim:"
api_key = "none"
default_model = "first-model"
[[backends]]
name = "two"
dialect = "messages"
base_url = "sim:"
api_key = "none"
default_model = "second-model"
"#;

/// A gateway that runs, with a folder of its own.
pub struct Served {
    pub folder: PathBuf,
    child: Child,
    address: String,
}

impl Served {
    pub fn start(name: &str) -> Self {
        let folder = scratch(&format!("record-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("throughline.toml"), CONFIG).unwrap();
        let mut child = command(&folder, &["serve", "--listen", "127.0.0.1:0", "--data", "data"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("http://").unwrap();
        let address = rest.split(',').next().unwrap().to_owned();
        Self { folder, child, address }
    }

    /// Runs a command beside the gateway.
    pub fn run(&self, args: &[&str]) -> Run {
        let args: Vec<&str> = args.iter().copied().chain(["--data", "data"]).collect();
        let output = command(&self.folder, &args).output().unwrap();
        Run {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    pub fn shown(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        run.stdout
    }

    pub fn lines(&self, args: &[&str]) -> Vec<Value> {
        self.shown(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs a command that has nothing to do with the history, and returns what it prints.
    pub fn lines_without_data(&self, args: &[&str]) -> Vec<Value> {
        let output = command(&self.folder, args).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), output.stderr);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sends a request and returns the status, the head and the body of the answer.
    pub fn http(&self, method: &str, path: &str, body: &str) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Returns the status of a request under another name than that of this machine.
    fn status_elsewhere(&self, method: &str, path: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.http("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Says something and returns the backend that answered, and the conversation.
    pub fn say(&self, messages: &[Value]) -> (Value, String, String) {
        let body = json!({"model": "any", "messages": messages, "tools": [{"type": "function", "function": {
            "name": "read_file",
            "description": "Read a file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        }}]});
        let (status, head, body) = self.http("POST", "/v1/chat/completions", &body.to_string());
        assert_eq!(status, 200, "{body}");
        let header = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{name}: {head}")).to_owned()
        };
        let message = body["choices"][0]["message"].clone();
        (message, header("x-throughline-backend"), header("x-throughline-conversation"))
    }

    /// Has a conversation of two turns with a tool in it, and returns its messages and its id.
    pub fn talk(&self) -> (Vec<Value>, String) {
        let mut messages = vec![json!({"role": "user", "content": "Read the file src/marmot.rs please."})];
        let (answer, _, id) = self.say(&messages);
        let call = answer["tool_calls"][0]["id"].as_str().unwrap().to_owned();
        messages.push(answer);
        messages.push(json!({"role": "tool", "tool_call_id": call, "content": "fn burrow() { /* dig */ }"}));
        let (answer, _, same) = self.say(&messages);
        assert!(answer["content"].as_str().unwrap().contains("burrow"), "{answer}");
        assert_eq!(id, same);
        messages.push(answer);
        (messages, id)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &PathBuf, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).stdin(Stdio::null());
    command.env("THROUGHLINE_CONFIG", "throughline.toml");
    command
}

#[test]
fn the_record_is_read_while_it_is_written() {
    let served = Served::start("read");
    let (_, id) = served.talk();

    let list = served.shown(&["ls"]);
    assert!(list.contains(&id) && list.contains("Read the file src/marmot.rs please."), "{list}");
    let listed = &served.lines(&["ls", "--json", "--limit", "1"])[0];
    assert_eq!((&listed["id"], &listed["backend"]), (&id.clone().into(), &"one".into()));
    assert_eq!((&listed["entries"], &listed["exchanges"]), (&4.into(), &2.into()));

    let talk = served.shown(&["show", &id]);
    assert!(talk.contains("user\n  Read the file src/marmot.rs please.\n"), "{talk}");
    assert!(talk.contains("\n  ▸ read_file src/marmot.rs  ✓ 1 line\n"), "{talk}");
    assert!(!talk.contains("called") && !talk.contains('\u{1b}'), "{talk}");
    let full = served.shown(&["show", &id, "--view", "full"]);
    for part in ["called read_file [", "returned ok [", "fn burrow() { /* dig */ }", "  one/"] {
        assert!(full.contains(part), "{part}: {full}");
    }
    let pairs = served.lines(&["show", &id, "--view", "pairs", "--json"]);
    assert_eq!((pairs.len(), &pairs[0]["state"]), (1, &"ok".into()));
    assert_eq!(pairs[0]["call"]["call_id"], pairs[0]["result"]["call_id"]);
    let pairs = served.shown(&["show", &id, "--view", "pairs"]);
    assert!(pairs.contains("read_file  ok") && pairs.contains("  result  fn burrow()"), "{pairs}");

    let found = served.shown(&["search", "burrow", "--tool", "read_file"]);
    assert!(found.contains(&id) && found.contains("returned read_file"), "{found}");
    assert_eq!(served.lines(&["search", "burrow", "--conversation", &id, "--json"]).len(), 2);
    assert_eq!(served.lines(&["search", "burrow", "--since", "1h", "--json"]).len(), 2);
    assert_eq!(served.run(&["search", "burrow", "--until", "2020-01-01T00:00:00+02:00"]).code, 1);
    assert_eq!(served.lines(&["search", "burrow", "--since", "yesterday", "--json"]).len(), 2);
    let run = served.run(&["search", "burrow", "--since", "soon"]);
    assert_eq!((run.code, run.stderr.contains("--since: invalid time `soon`")), (2, true), "{}", run.stderr);
    let run = served.run(&["search", "burrow", "--failed"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}

#[test]
fn what_was_sent_is_shown_to_the_byte() {
    let served = Served::start("sent");
    let (_, id) = served.talk();
    let exchanges = served.lines(&["show", &id, "--view", "sent", "--json"]);
    assert_eq!(exchanges.len(), 2);
    let text = served.shown(&["show", &id, "--view", "sent"]);
    for exchange in &exchanges {
        let attempt = &exchange["attempts"][0];
        assert_eq!((&attempt["backend"], &attempt["model"]), (&"one".into(), &"first-model".into()));
        assert_eq!((&attempt["strategy"], &attempt["status"]), (&"native".into(), &200.into()));
        let body = attempt["body"].as_str().unwrap();
        assert!(text.contains(body), "{body}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["messages"][0]["content"], "Read the file src/marmot.rs please.");
    }
    assert!(text.contains("attempt 1  one  chat first-model  native  200"), "{text}");
    let last = served.shown(&["show", &id, "--exchange", "2"]);
    assert!(last.starts_with("exchange 2  ") && text.ends_with(&last), "{last}");
    assert_eq!(served.shown(&["show", &id, "--exchange", "-1"]), last);
    let run = served.run(&["show", &id, "--exchange", "3"]);
    assert_eq!((run.code, run.stderr.contains("has 2 exchanges")), (1, true), "{}", run.stderr);
}

#[test]
fn a_conversation_goes_by_the_beginning_of_its_id() {
    let served = Served::start("prefix");
    let (_, id) = served.talk();
    let bare = id.strip_prefix("conv_").unwrap();
    assert_eq!(served.shown(&["show", &bare[..bare.len() - 3]]), served.shown(&["show", &id]));
    let run = served.run(&["show", "conv_nothing"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("no conversation id matches `conv_nothing`"), "{}", run.stderr);
    assert_eq!(served.shown(&["show", &bare[bare.len() - 12..]]), served.shown(&["show", &id]));
    assert_eq!(served.shown(&["show", &bare[bare.len() - 12..bare.len() - 4]]), served.shown(&["show"]));
    assert_eq!(served.shown(&["show", "@last"]), served.shown(&["show", &id]));
    served.say(&[json!({"role": "user", "content": "Something else."})]);
    let run = served.run(&["show", "conv_"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("several conversations begin with"), "{}", run.stderr);
    assert!(run.stderr.contains("Something else.") && run.stderr.contains("Read the file"), "{}", run.stderr);
}

#[test]
fn a_switch_holds_from_the_next_request_on() {
    let served = Served::start("switch");
    let (mut messages, id) = served.talk();
    served.shown(&["use", "two/third-model", "--conversation", &id]);
    messages.push(json!({"role": "user", "content": "And from memory, what did src/marmot.rs say?"}));
    let (answer, backend, same) = served.say(&messages);
    assert_eq!((backend.as_str(), &same), ("two", &id));
    assert!(answer["content"].as_str().unwrap().contains("burrow"), "{answer}");
    let exchanges = served.lines(&["show", &id, "--view", "sent", "--json"]);
    assert_eq!(exchanges[2]["attempts"][0]["model"], "third-model");

    let elsewhere = [json!({"role": "user", "content": "Hello."})];
    assert_eq!(served.say(&elsewhere).1, "one");
    served.shown(&["use", "two"]);
    assert_eq!(served.say(&elsewhere).1, "two");
    assert!(served.shown(&["backends"]).contains("active (switched to two)"));
    served.shown(&["use", "--clear"]);
    assert_eq!(served.say(&elsewhere).1, "one");

    let run = served.run(&["use", "nobody"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("there are: one, two"), "{}", run.stderr);
    assert_eq!(served.run(&["use", "two", "--conversation", "conv_nothing"]).code, 1);
}

#[test]
fn the_same_over_http() {
    let served = Served::start("http");
    let (messages, id) = served.talk();
    assert_eq!(served.get("/api/conversations?limit=5")["conversations"][0]["id"], *id);
    let whole = served.get(&format!("/api/conversations/{id}"));
    assert_eq!(whole["entries"].as_array().unwrap().len(), 4);
    assert_eq!(whole["exchanges"][1]["attempts"][0]["backend"], "one");
    let pairs = served.get(&format!("/api/conversations/{id}/pairs"));
    assert_eq!(pairs["pairs"][0]["result"]["text"], "fn burrow() { /* dig */ }");
    assert_eq!(served.get("/api/search?q=burrow&tool=read_file")["hits"][0]["conversation"], *id);

    let found =
        |when: &str| served.get(&format!("/api/search?q=burrow&{when}"))["hits"].as_array().unwrap().len();
    assert_eq!((found("since=1h"), found("until=1h"), found("since=2020-01-01&until=9999-12-31")), (2, 0, 2));
    let (status, _, body) = served.http("GET", "/api/search?q=burrow&until=soon", "");
    assert_eq!((status, &body["error"]["param"]), (400, &"until".into()), "{body}");

    let (status, ..) = served.http("PUT", "/api/active", r#"{"backend":"two"}"#);
    assert_eq!((status, served.say(&messages[..1]).1.as_str()), (200, "two"));
    let backends = served.get("/api/backends");
    assert_eq!((&backends["active"], &backends["switched"]), (&"one".into(), &"two".into()));
    let path = format!("/api/conversations/{id}/backend");
    assert_eq!(served.http("PUT", &path, r#"{"backend":"one/first-model"}"#).0, 200);
    assert_eq!(served.http("PUT", "/api/active", "null").0, 200);
    assert_eq!(served.get("/api/backends")["switched"], Value::Null);

    let (status, _, body) = served.http("PUT", "/api/active", r#"{"backend":"nobody"}"#);
    assert_eq!((status, &body["error"]["code"]), (400, &"throughline_unknown_backend".into()));
    assert!(body["error"]["message"].as_str().unwrap().contains("one, two"), "{body}");
    assert_eq!(served.http("PUT", "/api/active", r#"{"backend":7}"#).0, 400);
    for path in ["/api/active", &path] {
        for (wrong, param) in [
            (r#"{"backend":"two","model":"bar"}"#, "model"),
            (r#"{"backend":"two","by":"me"}"#, "by"),
            (r#"{"backend":null,"model":"bar"}"#, "model"),
            (r#"{"backend":"two/"}"#, "backend"),
        ] {
            let (status, _, body) = served.http("PUT", path, wrong);
            assert_eq!((status, &body["error"]["param"]), (400, &param.into()), "{wrong}: {body}");
        }
    }
    assert_eq!(served.get("/api/backends")["switched"], Value::Null, "nothing of that was done");
    assert_eq!(served.http("PUT", "/api/conversations/conv_x/backend", r#"{"backend":"two"}"#).0, 404);
    assert_eq!(served.http("GET", "/api/conversations/conv_x", "").0, 404);
    assert_eq!(served.http("GET", "/api/search", "").0, 400);
    assert_eq!(served.http("GET", "/api/conversations?after=x", "").0, 400);
}

/// A conversation in which a command failed, as tools of ours tell it.
fn failed_command(served: &Served) -> String {
    let call = json!({"id": "c1", "type": "function", "function": {
        "name": "bash", "arguments": "{\"command\":\"cargo test --workspace\",\"workdir\":\"crates/store\"}"
    }});
    let result = r#"{"stdout":"","stderr":"it broke","exit_code":101}"#;
    let messages = [
        json!({"role": "user", "content": "Run the tests."}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": result}),
    ];
    served.say(&messages).2
}

#[test]
fn what_tools_did_is_found_by_what_they_did_it_to() {
    let served = Served::start("filters");
    served.talk();
    let failed = failed_command(&served);
    let found = |args: &[&str]| served.lines(&[&["search"], args, &["--json"]].concat()).len();
    assert_eq!(found(&["--tool", "Bash"]), 2, "by any of its names");
    assert_eq!(found(&["--command", "cargo test"]), 2);
    assert_eq!(found(&["broke", "--command", "cargo te*"]), 1);
    assert_eq!(found(&["--path", "crates/store"]), 2);
    assert_eq!(found(&["--path", "marmot.rs"]), 2);
    assert_eq!(found(&["--failed"]), 1, "a command that failed");
    let shown = served.shown(&["search", "--failed"]);
    assert!(shown.contains("returned bash exit code 101"), "{shown}");
    let pairs = served.shown(&["show", &failed, "--view", "pairs"]);
    assert!(pairs.contains("bash  exit code 101") && !pairs.contains("  ok  "), "{pairs}");
    let full = served.shown(&["show", &failed, "--view", "full"]);
    assert!(full.contains("returned ok, exit code 101 [c1]"), "{full}");

    let first = served.run(&["search", "--tool", "bash", "--limit", "1", "--json"]);
    let place = first.stderr.split("--after ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let second = served.run(&["search", "--tool", "bash", "--limit", "1", "--json", "--after", place]);
    assert_eq!((second.code, second.stdout.lines().count(), second.stderr.as_str()), (0, 1, ""));
    assert_ne!(first.stdout, second.stdout);
    for args in [
        &["search"][..],
        &["search", "x", "--after", "nowhere"],
        &["search", "x", "--limit", "0"],
        &["ls", "--limit", "0"],
    ] {
        let run = served.run(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.stderr);
    }

    let hits = |query: &str| served.get(&format!("/api/search?{query}"))["hits"].as_array().unwrap().clone();
    assert_eq!(hits("command=cargo%20test").len(), 2);
    assert_eq!(hits("failed=true")[0]["exit_code"], 101);
    assert_eq!(hits("path=marmot.rs&q=").len(), 2);
    let whole = served.get(&format!("/api/conversations/{failed}?preview=10"));
    assert_eq!(whole["entries"][2]["exit_code"], 101, "{whole}");
    for (query, param) in [("failed=maybe", "failed"), ("q=x&limit=0", "limit"), ("q=x&tol=bash", "tol")] {
        let (status, _, body) = served.http("GET", &format!("/api/search?{query}"), "");
        assert_eq!((status, &body["error"]["param"]), (400, &param.into()), "{query}: {body}");
    }
    assert_eq!(served.http("GET", "/api/conversations?limit=0", "").0, 400);
    assert_eq!(served.http("GET", "/api/backends?x", "").0, 400);
}

#[test]
fn the_record_and_the_switch_are_behind_the_same_door() {
    let served = Served::start("door");
    for path in ["conversations", "conversations/x", "conversations/x/pairs", "search?q=x", "backends"] {
        assert_eq!(served.status_elsewhere("GET", &format!("/api/{path}")), 403, "{path}");
    }
    for path in ["active", "conversations/x/backend"] {
        assert_eq!(served.status_elsewhere("PUT", &format!("/api/{path}")), 403, "{path}");
    }
}

#[test]
fn conversations_are_filtered_in_the_record_and_over_http_alike() {
    let served = Served::start("listed");
    let (_, id) = served.talk();
    let other = served.say(&[json!({"role": "user", "content": "Something else."})]).2;
    let refused = json!({"model": "one/refused", "messages": "nonsense"}).to_string();
    assert_eq!(served.http("POST", "/v1/chat/completions", &refused).0, 400);
    let listed = |args: &[&str], query: &str| {
        let of = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let shown: Vec<String> = served.lines(&[&["ls", "--json"], args].concat()).iter().map(of).collect();
        let served = served.get(&format!("/api/conversations?{query}"));
        let served: Vec<String> = served["conversations"].as_array().unwrap().iter().map(of).collect();
        assert_eq!(shown, served, "{args:?}");
        shown
    };
    assert_eq!(listed(&["--backend", "one"], "backend=one"), [other.clone(), id.clone()]);
    assert_eq!(listed(&["--backend", "two"], "backend=two"), [""; 0]);
    assert_eq!(listed(&["--client", "nobody"], "client=nobody"), [""; 0]);
    assert_eq!(listed(&["--failed"], "failed=true"), [""; 0]);
    assert_eq!(listed(&["--sort", "exchanges"], "sort=exchanges"), [id.clone(), other.clone()]);
    assert_eq!(listed(&["--since", "yesterday", "-n", "1"], "since=yesterday&limit=1"), [other]);
    assert_eq!(served.run(&["ls", "--since", "soon"]).code, 2);
    assert_eq!(served.http("GET", "/api/conversations?sort=luck", "").0, 400);
    assert_eq!(served.get("/api/conversations?title=marmot")["conversations"][0]["id"], *id);
}

#[test]
fn what_was_used_is_added_up_alike_in_the_terminal_and_over_http() {
    let served = Served::start("used");
    served.talk();
    let report = &served.lines(&["usage", "--by", "model", "--json"])[0];
    assert_eq!(report["rows"][0]["key"], "first-model");
    assert_eq!((&report["total"]["requests"], &report["total"]["failed"]), (&2.into(), &0.into()));
    assert!(report["total"]["usage"]["input"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(served.get("/api/usage?by=model"), *report);
    assert_eq!(served.http("GET", "/api/usage?by=luck", "").0, 400);
    let shown = served.shown(&["usage"]);
    assert!(shown.starts_with("DAY ") && shown.lines().count() == 2, "{shown}");
    assert_eq!(served.shown(&["usage", "--since", "2100-01-01"]), "");
}

#[test]
fn a_running_gateway_is_found_and_its_page_named() {
    let served = Served::start("found");
    let (_, id) = served.talk();
    let listen = |address: &str| {
        std::fs::write(served.folder.join("at.toml"), format!("listen = \"{address}\"\n{CONFIG}"))
    };
    listen(&served.address).unwrap();
    let shown = served.shown(&["open", "@last", "--config", "at.toml"]);
    assert_eq!(shown, format!("http://{}/#/c/{id}\n", served.address));
    listen("127.0.0.1:1").unwrap();
    let run = served.run(&["open", "--config", "at.toml"]);
    assert_eq!((run.code, run.stderr.contains("throughline serve --open")), (1, true), "{}", run.stderr);
}

#[test]
fn a_conversation_is_one_page_that_needs_nothing_else() {
    let served = Served::start("page");
    let hostile = "Say <script>alert(1)</script> to ada@example.org";
    let (_, _, id) = served.say(&[json!({"role": "user", "content": hostile})]);
    let page = served.shown(&["export", &id, "--to", "html"]);
    assert!(page.contains("Say &lt;script&gt;alert(1)&lt;/script&gt; to ada@example.org"), "{page}");
    assert!(!page.contains("<script") && page.contains("default-src 'none'"), "{page}");
    for outside in ["src=\"http", "href=", "url("] {
        assert!(!page.contains(outside), "{outside}: {page}");
    }
    let redacted = served.shown(&["export", &id, "--to", "html", "--redact"]);
    assert!(redacted.contains("[redacted:email]") && !redacted.contains("ada@example.org"), "{redacted}");
    assert_eq!(served.run(&["export", &id, "--to", "jsonl", "--redact"]).code, 2);
}
