//! `throughline mcp` as an agent has it: started by its command, over sessions that were imported, with no gateway.

use crate::sessions::{CLAUDE, ID, User};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client of the protocol version that has a handshake, line by line.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(user: &User) -> Self {
        let mut command = user.command("data", &["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, input, output, next: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "throughline", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(id) {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn sessions_that_are_imported_later_are_found_word_for_word() {
    let user = User::new("mcp");
    let mut client = Client::start(&user);
    let nothing = client.call("search_history", &json!({"query": "alpha"}));
    assert!(nothing.starts_with("Nothing was found"), "{nothing}");

    // Nothing was recorded when the server was started.
    std::fs::write(user.session(), CLAUDE).unwrap();
    user.shown(&["import", "claude-code", "--all", "--quiet"]);
    let found = client.call("search_history", &json!({"query": "What did notes.txt say?"}));
    assert!(found.starts_with("1. Bash: cat notes.txt ["), "{found}");
    assert!(found.contains("in \"read it\", claude-code"), "{found}");
    let id = found.split(['[', ']']).nth(1).unwrap();
    assert!(id.starts_with(&ID[24..]), "{id}");
    let read = client.call("get_tool_result", &json!({"id": id}));
    assert!(read.ends_with("\n\nalpha\nbeta\n"), "{read}");

    let listed = client.call("list_sessions", &json!({}));
    assert!(listed.contains(&format!("[{}] read it (claude-code", &ID[24..])), "{listed}");
    let resources = client.ask("resources/list", &json!({}));
    let uri = resources["result"]["resources"][0]["uri"].as_str().unwrap();
    let conversation = client.ask("resources/read", &json!({"uri": uri}));
    let text = conversation["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("Bash: cat notes.txt"), "{text}");
    assert_eq!(client.end(), 0);
}

#[test]
fn a_client_is_told_how_to_start_it() {
    let user = User::new("mcp-env");
    let program = env!("CARGO_BIN_EXE_throughline");
    let claude = user.shown(&["env", "claude-code", "--mcp"]);
    let data = user.folder.join("data");
    let line =
        format!("claude mcp add --scope user throughline -- {program} mcp --data {}\n", data.display());
    assert!(claude.ends_with(&line), "{claude}");
    let codex = user.shown(&["env", "codex", "--mcp"]);
    assert!(codex.contains("\ncodex mcp add throughline -- "), "{codex}");
    for client in ["opencode", "vscode"] {
        let printed = user.shown(&["env", client, "--mcp"]);
        let (_, json) = printed.split_once('\n').unwrap();
        let json: Value = serde_json::from_str(json).unwrap();
        assert!(json.to_string().contains(program), "{json}");
    }
    assert_eq!(user.run(&["env", "curl", "--mcp"]).code, 1);
}

#[test]
fn by_http_only_whom_the_gateway_would_let_in_may_ask() {
    let user = User::new("mcp-http");
    let refused = user.run(&["mcp", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("without keys, only this machine"), "{}", refused.stderr);

    let mut command = user.command("data", &["mcp", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line
        .trim()
        .trim_start_matches("the history is served on http://")
        .trim_end_matches("/mcp")
        .to_owned();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let post = |headers: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let body = hello.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        std::io::read_to_string(stream).unwrap()
    };
    let answer = post("");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"throughline\""), "{answer}");
    let page = post("origin: http://evil.example\r\n");
    assert!(page.starts_with("HTTP/1.1 403"), "{page}");
    child.kill().unwrap();
    child.wait().unwrap();
}
