//! `throughline sim`, as its users and their scripts see it.

use crate::cli::{root, scratch, throughline};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Starts the simulated backend, and returns where it is.
fn start(options: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["sim", "--listen", "127.0.0.1:0"])
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("the simulated backend is ready on http://").unwrap();
    (child, address.strip_suffix("/v1").unwrap().to_owned())
}

/// Sends a request whose further headers and body are given, and returns the whole answer.
fn ask(address: &str, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn stop(mut child: Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_says_where_it_is_answers_and_stops_when_told() {
    let (child, address) = start(&["--model", "one"]);
    let answer = ask(&address, "GET /v1/models", "", "");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(r#""id":"one""#), "{answer}");
    stop(child);
}

#[test]
fn a_key_is_asked_for_in_the_words_of_each_provider() {
    let (child, address) = start(&["--key", "let-me-in"]);
    let chat = r#"{"model":"sim","messages":[{"role":"user","content":"hi"}],"max_tokens":50}"#;
    for (path, body, unnamed, wrong) in [
        ("chat/completions", chat, "You didn't provide an API key.", "Incorrect API key provided."),
        ("messages", chat, "x-api-key header is required", "invalid x-api-key"),
        (
            "responses",
            r#"{"model":"sim","input":"hi"}"#,
            "You didn't provide an API key.",
            "Incorrect API key provided.",
        ),
    ] {
        let line = format!("POST /v1/{path}");
        let with = |key: &str| ask(&address, &line, &format!("anthropic-version: 2023-06-01\r\n{key}"), body);
        for (key, said) in [("", unnamed), ("authorization: Bearer nobody\r\n", wrong)] {
            let answer = with(key);
            assert!(answer.starts_with("HTTP/1.1 401") && answer.contains(said), "{path}: {answer}");
            assert_eq!(answer.contains(r#""type":"error""#), path == "messages", "{path}: {answer}");
        }
        for key in ["authorization: Bearer let-me-in\r\n", "x-api-key: let-me-in\r\n"] {
            let answer = with(key);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
    }
    stop(child);
}

#[test]
fn a_bad_script_is_named_with_what_is_wrong_in_it() {
    let file = scratch("script.json");
    std::fs::write(&file, r#"{"turns":[{"text":"a"},{}]}"#).unwrap();
    let run = throughline(&["sim", "--script", file.to_str().unwrap()], b"");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("script.json: turns[1]: says nothing"), "{}", run.stderr);
    let run = throughline(&["sim", "--script", "no-such-file.json"], b"");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("no-such-file.json"), "{}", run.stderr);
}

#[test]
fn every_option_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/sim.md")).unwrap();
    let help = throughline(&["sim", "--help"], b"").stdout;
    let global = ["--color", "--quiet", "--verbose", "--help", "--config", "--data", "--json", "--no-pager"];
    for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = word.trim_end_matches([',', '.', ']']);
        assert!(global.contains(&option) || page.contains(option), "docs/sim.md does not mention {option}");
    }
}
