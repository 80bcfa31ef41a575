//! A gateway that is killed at random moments, again and again, keeps what its clients saw completed.
//!
//! Clients of all three dialects have tool conversations, streamed and not, with a `throughline serve` that
//! is killed after so many completed answers, wherever the others are just then, and started again on the
//! same data. An answer counts as completed when its last event, or the last byte of its body, arrived.

use crate::cli::scratch;
use crate::talk::{body, exchange, path, resent, result_of, said, whole};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

/// Fifty in all: two tests of twenty-five, so that each is done in a few seconds.
const ROUNDS: u64 = 25;
/// One for each dialect, streamed and not.
const CLIENTS: [(&str, bool); 6] = [
    ("chat", false),
    ("chat", true),
    ("messages", false),
    ("messages", true),
    ("responses", false),
    ("responses", true),
];

/// A gateway that runs until it is killed.
struct Victim {
    child: Child,
    address: String,
}

/// An answer of which a client saw the end.
struct Completed {
    conversation: String,
    call: Option<String>,
    text: String,
    /// What the client had told the gateway that the tool returned.
    result: Option<String>,
}

/// A client, and what it has seen completed.
struct Client<'a> {
    address: &'a str,
    dialect: &'static str,
    stream: bool,
    history: Vec<Value>,
    done: Sender<Completed>,
}

impl Victim {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--config", "throughline.toml"])
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("it did not start: {line:?}"));
        let address = rest.split(',').next().unwrap().trim().to_owned();
        Self { child, address }
    }

    fn get(&self, path: &str) -> Value {
        let (head, body) = exchange(&self.address, "GET", path, "").unwrap();
        assert!(head.contains(" 200 "), "{path}: {head} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Sends SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Client<'_> {
    /// Has tool conversations until the gateway is gone.
    fn talk(mut self, name: &str) {
        for number in 0.. {
            self.history =
                vec![json!({"role": "user", "content": format!("Read the file {name}-{number}.txt")})];
            let Some(call) = self.ask(None) else { return };
            let result = format!("what {name}-{number} says");
            let call = call.unwrap_or_else(|| panic!("{name} was not called upon: {:?}", self.history));
            self.history.push(result_of(self.dialect, &call, &result));
            if self.ask(Some(result)).is_none() {
                return;
            }
        }
    }

    /// Sends the conversation; `None` when the answer did not come to its end, else the call in it.
    fn ask(&mut self, result: Option<String>) -> Option<Option<String>> {
        let path = path(self.dialect);
        let (head, body) = exchange(
            self.address,
            "POST",
            path,
            &body(self.dialect, self.dialect, self.stream, &self.history).to_string(),
        )?;
        let answer = whole(self.dialect, self.stream, &body)?;
        assert!(head.contains(" 200 "), "{head} {body}");
        let conversation = head.lines().find_map(|line| line.strip_prefix("x-throughline-conversation: "));
        let conversation = conversation.unwrap_or_else(|| panic!("{head}")).to_owned();
        let (call, text) = said(self.dialect, &answer);
        self.history.extend(resent(self.dialect, answer));
        // Nobody listens any more once enough was seen.
        let _ = self.done.send(Completed { conversation, call: call.clone(), text, result });
        Some(call)
    }
}

/// Lets the clients talk until so many answers are completed, kills the gateway, and returns them all.
fn one_round(folder: &Path, round: u64, answers: usize) -> Vec<Completed> {
    let victim = Victim::start(folder);
    let address = victim.address.clone();
    let (done, seen) = channel();
    std::thread::scope(|scope| {
        for (dialect, stream) in CLIENTS {
            let (address, done) = (&address, done.clone());
            let client = Client { address, dialect, stream, history: Vec::new(), done };
            scope.spawn(move || client.talk(&format!("{dialect}-{stream}-{round}")));
        }
        drop(done);
        let mut completed: Vec<Completed> = seen.iter().take(answers).collect();
        victim.kill();
        // What came through before it died counts, too.
        completed.extend(seen);
        assert!(completed.len() >= answers, "the gateway ended by itself");
        completed
    })
}

/// Asserts that the record has an answer, and with it the pair that led to it.
fn check(victim: &Victim, completed: &Completed) {
    let id = &completed.conversation;
    let whole = victim.get(&format!("/api/conversations/{id}"));
    let entries = whole["entries"].as_array().unwrap();
    let has = |field: &str, value: &str| entries.iter().any(|entry| entry[field] == value);
    if !completed.text.is_empty() {
        assert!(has("text", &completed.text), "{id} lacks {:?}: {whole}", completed.text);
    }
    if let Some(call) = &completed.call {
        assert!(has("call_id", call), "{id} lacks {call}: {whole}");
    }
    let Some(result) = &completed.result else { return };
    let pairs = victim.get(&format!("/api/conversations/{id}/pairs"));
    let pairs = pairs["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 1, "{id}: {pairs:?}");
    assert_eq!(
        (&pairs[0]["state"], &pairs[0]["result"]["text"]),
        (&json!("ok"), &json!(result)),
        "{id}: {pairs:?}"
    );
    assert_eq!(pairs[0]["call"]["call_id"], pairs[0]["result"]["call_id"], "{id}");
}

fn fresh(name: &str) -> PathBuf {
    let folder = scratch(&format!("killed-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let backend = |dialect: &str| {
        format!(
            "[[backends]]\nname = \"{dialect}\"\ndialect = \"{dialect}\"\nbase_url = \"sim:\"\napi_key = \"none\"\ndefault_model = \"m\"\n"
        )
    };
    let config: String = ["chat", "messages", "responses"].map(backend).concat();
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    folder
}

fn kill_again_and_again(name: &str, seed: u64) {
    let folder = fresh(name);
    let mut random = seed;
    let mut completed = Vec::new();
    for round in 0..ROUNDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let answers = 1 + usize::try_from(random >> 33).unwrap() % 24;
        completed.extend(one_round(&folder, round, answers));
    }
    let victim = Victim::start(&folder);
    completed.iter().for_each(|completed| check(&victim, completed));
    victim.kill();
}

#[test]
fn nothing_completed_is_missing_after_a_gateway_was_killed() {
    kill_again_and_again("first", 1);
}

#[test]
fn nothing_completed_is_missing_after_a_gateway_was_killed_at_other_moments() {
    kill_again_and_again("second", 2);
}
