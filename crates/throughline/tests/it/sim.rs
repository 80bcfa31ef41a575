//! `throughline sim`, as its users and their scripts see it.

use crate::cli::{root, scratch, throughline};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn it_says_where_it_is_answers_and_stops_when_told() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["sim", "--listen", "127.0.0.1:0", "--model", "one"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("the simulated backend is ready on http://").unwrap();
    let address = address.strip_suffix("/v1").unwrap();

    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /v1/models HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(r#""id":"one""#), "{answer}");

    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
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
    let global = ["--color", "--quiet", "--help", "--config", "--data", "--json"];
    for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = word.trim_end_matches([',', '.', ']']);
        assert!(global.contains(&option) || page.contains(option), "docs/sim.md does not mention {option}");
    }
}
