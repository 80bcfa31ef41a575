//! `throughline doctor`, as its users and their scripts see it.

use crate::cli::{Run, scratch};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use throughline_store::{Postgres, PostgresOptions};

fn folder(name: &str, config: &str) -> PathBuf {
    let folder = scratch(&format!("doctor-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    folder
}

fn doctor(folder: &PathBuf, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.arg("doctor").args(args).args(["--data", "data"]).current_dir(folder).env_clear();
    let output = command
        .env("HOME", folder)
        .env("SECRET", "hush-hush")
        .env("THROUGHLINE_CONFIG", "throughline.toml")
        .output()
        .unwrap();
    Run {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

fn backend(name: &str, base_url: &str) -> String {
    format!(
        "[[backends]]\nname = \"{name}\"\ndialect = \"chat\"\nbase_url = \"{base_url}\"\napi_key = \"env:SECRET\"\n"
    )
}

#[test]
fn all_is_well_with_a_backend_that_answers() {
    let folder = folder("well", &backend("sim", "sim:"));
    let run = doctor(&folder, &["--probe"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    for words in [
        "ok     configuration: throughline.toml; active: sim",
        "not there yet",
        "with a key",
        "reachable; lists",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("hush-hush"), "{}", run.stdout);
}

#[test]
fn a_backend_that_is_not_there_is_wrong_and_only_if_it_is_asked() {
    // Nobody listens on the port of `discard` here; a connection is refused at once.
    let folder = folder("away", &backend("away", "http://127.0.0.1:9/v1"));
    assert_eq!(doctor(&folder, &[]).code, 0);
    let run = doctor(&folder, &["--probe", "--json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(told["well"], false);
    let wrong = told["findings"].as_array().unwrap().iter().find(|each| each["state"] == "wrong").unwrap();
    assert_eq!(wrong["subject"], "backend away");
    assert_eq!(wrong["advice"], "check its base_url, and whether it runs");
}

/// Answers one request with that status, and returns the base URL to ask at.
fn answering(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = BufReader::new(stream.try_clone().unwrap()).lines();
        assert!(head.map_while(Result::ok).any(|line| line.is_empty()));
        let body = r#"{"error": {"message": "said no"}}"#;
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
    });
    url
}

#[test]
fn a_refusal_is_told_with_its_status_and_what_to_do() {
    let refusing = folder("refused", &backend("shut", &answering("401 Unauthorized")));
    let run = doctor(&refusing, &["--probe"]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let told = "wrong  backend shut: refused with 401: said no\n       check its api_key\n";
    assert!(run.stdout.contains(told), "{}", run.stdout);
}

#[test]
fn a_backend_without_a_listing_is_there() {
    let folder = folder("unlisted", &backend("odd", &answering("404 Not Found")));
    let run = doctor(&folder, &["--probe"]);
    assert!(run.code == 0 && run.stdout.contains("it lists no models"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn a_configuration_that_is_not_valid_is_wrong() {
    let folder = folder("bad", "lisen = 1\n");
    let run = doctor(&folder, &[]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("wrong  configuration: throughline.toml:1: lisen"), "{}", run.stdout);
    assert!(run.stderr.contains("1 thing is wrong"), "{}", run.stderr);
}

#[test]
fn a_postgresql_that_is_not_there_is_named_without_its_password() {
    let store = "[store]\nurl = \"postgres://user:hush-hush@127.0.0.1:9/history\"\n";
    let folder = folder("no-postgres", &format!("{store}{}", backend("sim", "sim:")));
    let run = doctor(&folder, &[]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("PostgreSQL: the history cannot be reached: 127.0.0.1:9/history"),
        "{}",
        run.stdout
    );
    let mut serve = Command::new(env!("CARGO_BIN_EXE_throughline"));
    serve.args(["serve", "--data", "data", "--config", "throughline.toml"]).current_dir(&folder).env_clear();
    let output = serve.env("HOME", &folder).env("SECRET", "hush-hush").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("127.0.0.1:9/history") && !told.contains("hush-hush"), "{told}");
    assert!(!run.stdout.contains("hush-hush"), "{}", run.stdout);
}

#[test]
fn a_postgresql_that_is_there_is_told_of() {
    // ./test starts one; without it, the store's tests say that they were skipped.
    let Ok(url) = std::env::var("THROUGHLINE_TEST_POSTGRES") else { return };
    let folder = folder("postgres", &format!("[store]\nurl = \"{url}\"\n{}", backend("sim", "sim:")));
    // Looking makes nothing; what adds to a history makes its tables.
    drop(Postgres::open(&url, PostgresOptions::default()).unwrap());
    let run = doctor(&folder, &[]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("ok     history: PostgreSQL "), "{}", run.stdout);
    let format = format!("opens; format {}, ", Postgres::FORMAT);
    assert!(run.stdout.contains(&format), "{}", run.stdout);
    let password = url.split(['@', ':']).nth(2).unwrap();
    assert!(!run.stdout.contains(password), "{}", run.stdout);
}

#[test]
fn what_confines_commands_is_shown() {
    let folder = folder("commands", &backend("sim", "sim:"));
    let run = doctor(&folder, &[]);
    assert!(run.stdout.contains("commands: commands are "), "{}", run.stdout);
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
    command.args(["doctor", "--data", "data"]).current_dir(&folder).env_clear();
    let off = command.env("THROUGHLINE_TOOLS_CONFINEMENT", "off").output().unwrap();
    let off = String::from_utf8(off.stdout).unwrap();
    assert!(off.contains("confinement is turned off") && off.contains("they may use the network"), "{off}");
}
