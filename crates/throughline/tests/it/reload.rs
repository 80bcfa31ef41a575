//! A gateway whose configuration changes while it serves.

use crate::cli::scratch;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

const BACKEND: &str = "dialect = \"chat\"\nbase_url = \"sim:\"\napi_key = \"none\"\ndefault_model = \"m\"\n";

/// A gateway that runs, and its log.
struct Served {
    folder: PathBuf,
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: String,
}

impl Served {
    fn start(name: &str) -> Self {
        let folder = scratch(&format!("reload-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("throughline.toml"), config(&["one", "two"])).unwrap();
        Self::start_in(folder, &["--config", "throughline.toml"])
    }

    fn start_in(folder: PathBuf, args: &[&str]) -> Self {
        let mut child = command(&folder, &["serve", "--listen", "127.0.0.1:0", "--data", "data"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").unwrap().1.split(',').next().unwrap().to_owned();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { folder, child, log, address }
    }

    fn write(&self, text: &str) {
        std::fs::write(self.folder.join("throughline.toml"), text).unwrap();
    }

    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }

    /// Waits for a line of the log that holds these words, and returns it.
    fn logged(&mut self, words: &str) -> String {
        let line = self.log.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        line.unwrap_or_else(|| panic!("the log ended without {words}")).unwrap()
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
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
    command.args(args).current_dir(folder).env_clear().env("HOME", folder);
    command.stdin(Stdio::null());
    command
}

fn config(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[backends]]\nname = \"{name}\"\n{BACKEND}")).collect()
}

#[test]
fn a_hangup_reloads_and_a_bad_file_is_refused() {
    let mut served = Served::start("hangup");
    served.write(&config(&["one", "two", "three"]));
    served.hang_up();
    served.logged("the configuration was reloaded");
    assert!(served.get("/api/backends").contains("\"three\""));

    served.write("[[backends]]\nname = \"four\"\ndialct = \"chat\"\n");
    served.hang_up();
    let line = served.logged("the configuration was refused");
    assert!(line.contains("throughline.toml:3") && line.contains("did you mean `dialect`?"), "{line}");
    let backends = served.get("/api/backends");
    assert!(backends.contains("\"three\"") && !backends.contains("\"four\""), "{backends}");
    let metrics = served.get("/metrics");
    assert!(metrics.contains(r#"throughline_reloads_total{outcome="refused"} 1"#), "{metrics}");
}

#[test]
fn a_changed_file_is_noticed_and_a_switch_outlives_it() {
    let mut served = Served::start("change");
    assert!(
        command(&served.folder, &["use", "two", "--data", "data", "--config", "throughline.toml"])
            .output()
            .unwrap()
            .status
            .success()
    );
    served.write(&format!("limits = {{ concurrent_requests = 3 }}\n{}", config(&["three", "two"])));
    let line = served.logged("needs a restart");
    assert!(line.contains("limits.concurrent_requests"), "{line}");
    served.logged("the configuration was reloaded");
    let backends = served.get("/api/backends");
    assert!(backends.contains("\"three\"") && !backends.contains("\"one\""), "{backends}");
    assert!(backends.contains("\"switched\":\"two\""), "{backends}");
}

#[test]
fn backends_are_asked_for_their_models_at_the_start_and_after_a_reload() {
    let mut served = Served::start("listing");
    for _ in 0..2 {
        served.logged("models listed");
    }
    assert!(served.get("/v1/models").contains("\"one/sim-mini\""));
    served.write(&config(&["one", "three"]));
    served.hang_up();
    assert!(served.logged("models listed").contains("three"), "those that did not change are left alone");
    let models = served.get("/v1/models");
    assert!(models.contains("\"three/sim-mini\"") && !models.contains("\"two/sim-mini\""), "{models}");
}

#[test]
fn a_file_that_was_found_is_taken_again_only_once_it_is_trusted() {
    let folder = scratch("reload-trusted");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("throughline.toml"), config(&["one", "two"])).unwrap();
    let trust = || assert!(command(&folder, &["trust"]).output().unwrap().status.success());
    trust();
    let mut served = Served::start_in(folder.clone(), &[]);
    assert!(served.get("/api/backends").contains("\"two\""));

    // Noticed by itself, and when somebody asks for it.
    served.write(&config(&["one", "three"]));
    let line = served.logged("the configuration was not reloaded");
    assert!(line.contains("changed since it was trusted") && line.contains("throughline trust"), "{line}");
    served.hang_up();
    served.logged("the configuration was not reloaded");
    assert!(!served.get("/api/backends").contains("\"three\""));
    assert!(served.get("/metrics").contains(r#"throughline_reloads_total{outcome="refused"} 2"#));

    trust();
    served.logged("the configuration was reloaded");
    assert!(served.get("/api/backends").contains("\"three\""));

    std::fs::remove_file(folder.join("throughline.toml")).unwrap();
    served.logged("is gone from the working directory");
    assert!(served.get("/api/backends").contains("\"three\""));
}

#[test]
fn a_file_that_appears_beside_a_gateway_is_ignored_until_it_is_trusted() {
    let folder = scratch("reload-appears");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join(".config/throughline")).unwrap();
    std::fs::write(folder.join(".config/throughline/throughline.toml"), config(&["own"])).unwrap();
    let mut served = Served::start_in(folder.clone(), &[]);
    served.write(&config(&["evil"]));
    let line = served.logged("ignored;");
    assert!(line.contains("it is not trusted"), "{line}");
    let backends = served.get("/api/backends");
    assert!(backends.contains("\"own\"") && !backends.contains("\"evil\""), "{backends}");
}
