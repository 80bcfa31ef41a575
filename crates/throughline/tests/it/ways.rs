//! Runs the command lines of pages against a gateway, and compares what they print with the page.
//!
//! A page's first `toml` block is the configuration; each `sh` block is followed by a `text` block, its output.

use crate::cli::{root, scratch};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Returns the fenced blocks of a page, each with its language.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            blocks.push((language, inside.map(|line| format!("{line}\n")).collect()));
        }
    }
    blocks
}

/// A gateway that is gone with its test, however that ends.
pub struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a gateway in a folder of that name, and returns it with its address.
pub fn serve_in(name: &str, config: &str) -> (Served, String) {
    let folder = scratch(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    serve_at(&folder, "127.0.0.1:0")
}

/// Starts a gateway in a folder that has a configuration, at an address, and returns it with that.
pub fn serve_at(folder: &Path, listen: &str) -> (Served, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
        .args(["serve", "--listen", listen, "--data", "data", "--config", "throughline.toml"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let served = Served(child);
    let address = line.strip_prefix("throughline is ready on ").and_then(|rest| rest.split(',').next());
    (served, address.unwrap_or_else(|| panic!("{line}")).to_owned())
}

/// Runs the commands of a page, and says how many outputs were compared.
fn compared(page: &str) -> usize {
    let text = std::fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
    let blocks = blocks(&text);
    let (_, config) = blocks.iter().find(|(language, _)| *language == "toml").unwrap();
    let folder = scratch(page);
    let (_served, url) = serve_in(page, config);
    let binary = Path::new(env!("CARGO_BIN_EXE_throughline")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut compared = 0;
    for pair in blocks.windows(2).filter(|pair| pair[0].0 == "sh") {
        let (script, (language, expected)) = (&pair[0].1, &pair[1]);
        assert_eq!(*language, "text", "no output follows:\n{script}");
        let run = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(&folder)
            .env("THROUGHLINE_URL", &url)
            .env("THROUGHLINE_DATA", folder.join("data"))
            .env("THROUGHLINE_CONFIG", folder.join("throughline.toml"))
            .env("PATH", &path)
            .output();
        let run = run.unwrap();
        let printed = String::from_utf8(run.stdout).unwrap();
        assert_eq!(&printed, expected, "{script}{}", String::from_utf8_lossy(&run.stderr));
        compared += 1;
    }
    compared
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

#[test]
fn the_commands_on_the_page_of_ways_print_what_it_says() {
    if !has_curl() {
        eprintln!("skipped: curl is not installed, so that docs/ways.md cannot be run");
        return;
    }
    assert_eq!(compared("ways"), 9, "three clients with three blocks each, less one, and the errors");
}

#[test]
fn the_commands_on_the_page_of_switching_print_what_it_says() {
    if !has_curl() {
        eprintln!("skipped: curl is not installed, so that docs/switching.md cannot be run");
        return;
    }
    assert_eq!(compared("switching"), 6);
}
