//! Holds the documentation to what the binary does.

use crate::cli::{root, throughline};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Returns the pages of the documentation, each with its path.
pub fn pages() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/clients"] {
        let files = std::fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().path());
        let is_page = |file: &Path| file.extension().is_some_and(|extension| extension == "md");
        let names = files
            .filter(|file| is_page(file))
            .map(|file| format!("{folder}/{}", file.file_name().unwrap().to_str().unwrap()));
        pages.extend(names);
    }
    pages.sort();
    pages
        .into_iter()
        .map(|path| (path.clone(), std::fs::read_to_string(root().join(&path)).unwrap()))
        .collect()
}

#[test]
fn every_command_of_the_help_is_documented() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let help = throughline(&["--help"], b"").stdout;
    // Commands stand four spaces in, below the names of their groups.
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").take_while(|line| *line != "Options:");
    let names: Vec<&str> = commands
        .filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.contains(&"convert"));
    for name in names {
        assert!(readme.contains(&format!("throughline {name}")), "README.md does not mention {name}");
    }
}

#[test]
fn every_option_of_convert_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/convert.md")).unwrap();
    let help = throughline(&["convert", "--help"], b"").stdout;
    for word in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let option = word.trim_end_matches([',', '.', ']']);
        assert!(page.contains(option), "docs/convert.md does not mention {option}");
    }
}

#[test]
fn a_completion_script_is_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let run = throughline(&["completions", shell], b"");
        assert_eq!(run.code, 0);
        assert!(run.stdout.contains("THROUGHLINE_COMPLETE"), "{shell}");
    }
}

/// What a fenced block may be, and how each kind is held to the code.
const LANGUAGES: [(&str, &str); 8] = [
    (
        "sh",
        "parsed word by word (src/args/documented.rs); run and compared where its output follows (ways.rs)",
    ),
    ("console", "parsed in the same way; run and compared on the pages in COMPARED, else as in BY_HAND"),
    ("toml", "read as a configuration (documented.rs)"),
    ("json", "parsed here"),
    ("text", "output of the block before it, or a form to look at"),
    ("rust", "compiled by rustdoc, where it is the example of a crate"),
    ("python", "run by the tests of the SDKs, as is the block below it"),
    ("js", "run by hand, with the output below it"),
];

/// The pages whose consoles are run here; what stands for `…` may be anything.
const COMPARED: [&str; 10] = [
    "docs/clients/README.md",
    "docs/clients/aider.md",
    "docs/clients/claude-code.md",
    "docs/clients/codex.md",
    "docs/clients/curl.md",
    "docs/clients/opencode.md",
    "docs/clients/vscode.md",
    "docs/compaction.md",
    "docs/convert.md",
    "docs/sim.md",
];

/// The pages whose consoles were run by hand, and why.
const BY_HAND: [(&str, &str); 8] = [
    (
        "docs/carry.md",
        "needs three agents and their sessions; sessions.rs has the same with sessions of its own",
    ),
    ("docs/clients/ai-sdk.md", "needs Node and a package"),
    ("docs/clients/anthropic-python.md", "needs the SDK; the gate runs the SDKs"),
    ("docs/clients/langchain.md", "needs the SDK"),
    ("docs/clients/openai-python.md", "needs the SDK; the gate runs the SDKs"),
    ("docs/replay.md", "names a run; run.rs replays runs of its own"),
    ("docs/run.md", "names a run; run.rs has the same with a script of its own"),
    ("docs/ways.md", "starts what the blocks below it are run against, which ways.rs does itself"),
];

/// Programs that the tests may run; commands of others are those of clients.
const PROGRAMS: [&str; 4] = ["throughline", "curl", "echo", "head"];

/// Returns the fenced blocks of a page: line, language and text.
fn blocks(page: &str) -> Vec<(usize, String, String)> {
    let mut blocks: Vec<(usize, String, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(page.lines()) {
        match line.strip_prefix("```") {
            Some(language) if !is_open => blocks.push((number, language.to_owned(), String::new())),
            Some(_) => {}
            None if is_open => blocks.last_mut().unwrap().2.push_str(&format!("{line}\n")),
            None => {}
        }
        is_open ^= line.starts_with("```");
    }
    blocks
}

#[test]
fn every_block_is_of_a_kind_that_is_checked() {
    for (path, page) in pages() {
        for (line, language, text) in blocks(&page) {
            let is_known = LANGUAGES.iter().any(|(known, _)| *known == language);
            assert!(is_known, "{path}:{line}: a block of `{language}`");
            if language == "json" {
                let parsed = serde_json::from_str::<serde_json::Value>(&text);
                assert!(parsed.is_ok() || text.contains('…'), "{path}:{line}: {}", parsed.unwrap_err());
            }
            if language == "console" {
                let by_hand = BY_HAND.iter().any(|(page, _)| *page == path);
                assert!(by_hand || COMPARED.contains(&path.as_str()), "{path}:{line}: who runs it?");
            }
        }
    }
}

/// Returns the commands of a console, each with what the page says it prints.
fn consoles(page: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (_, _, text) in blocks(page).into_iter().filter(|(_, language, _)| language == "console") {
        let mut is_open = false;
        for line in text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                all.push((format!("{command}\n"), String::new()));
                is_open = true;
                continue;
            }
            let (command, output) = all.last_mut().expect("a console begins with a command");
            // What belongs to the command is indented.
            is_open &= line.starts_with("    ");
            if is_open { command } else { output }.push_str(&format!("{line}\n"));
        }
    }
    all
}

/// Says whether something was printed as the page has it, up to `…` and where lines are broken.
fn is_as_told(printed: &str, told: &str) -> bool {
    let joined = |text: &str| text.replace('\n', "");
    let printed = joined(printed);
    let mut rest = printed.as_str();
    let pieces: Vec<String> = told.split('…').map(joined).collect();
    let last = pieces.len() - 1;
    for (number, piece) in pieces.iter().enumerate() {
        let is_here = |at: &usize| number > 0 || *at == 0;
        let found = if number == last && last > 0 { rest.rfind(piece) } else { rest.find(piece) };
        let Some(at) = found.filter(is_here) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.is_empty()
}

#[test]
fn consoles_print_what_the_pages_say() {
    let folder = crate::cli::scratch("consoles");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let config = "[[backends]]\nname = \"sim\"\ndialect = \"responses\"\nbase_url = \"sim:\"\n\
                  api_key = \"none\"\ndefault_model = \"sim\"\n";
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    std::os::unix::fs::symlink(root().join("crates"), folder.join("crates")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_throughline")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    let sim = Simulated::start();
    let mut compared = 0;
    for (page, text) in pages().into_iter().filter(|(page, _)| COMPARED.contains(&page.as_str())) {
        for (command, told) in consoles(&text) {
            let program = command.split_whitespace().next().unwrap_or_default();
            let is_shown = !told.is_empty() && !command.starts_with("throughline sim");
            if !PROGRAMS.contains(&program) || !is_shown || program == "curl" && !has_curl {
                continue;
            }
            let command = command.replace("127.0.0.1:4142", &sim.address);
            let run = Command::new("bash")
                .args(["-c", &format!("{{ {command} }} 2>&1")])
                .current_dir(&folder)
                .env_clear()
                .envs([("PATH", path.as_str()), ("HOME", folder.to_str().unwrap())])
                .env("THROUGHLINE_CONFIG", "throughline.toml")
                .output();
            let printed = String::from_utf8(run.unwrap().stdout).unwrap();
            assert!(is_as_told(&printed, &told), "{page}: {command}{printed}\nbut the page says\n{told}");
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} were compared");
}

#[test]
fn what_is_left_out_may_be_anything_and_nothing_else() {
    assert!(is_as_told("{\"id\":\"x1\",\"a\":2}\n", "{\"id\":\"…\",\n\"a\":2}\n"));
    assert!(!is_as_told("{\"id\":\"x1\",\"a\":3}\n", "{\"id\":\"…\",\"a\":2}\n"));
    assert!(is_as_told("a\nb\nc\n", "a\n…\n") && !is_as_told("a\nb\n", "a\n"));
}

/// The simulated backend, which is gone with the test.
struct Simulated {
    child: Child,
    address: String,
}

impl Simulated {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throughline"))
            .args(["sim", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_versions_of_the_schema_are_those_of_the_code() {
    let page = std::fs::read_to_string(root().join("docs/history.md")).unwrap();
    let (sqlite, postgres) = (throughline_store::Sqlite::FORMAT, throughline_store::Postgres::FORMAT);
    let told = format!("`PRAGMA user_version` (now {sqlite}) or the table `format` (now {postgres})");
    assert!(page.contains(&told), "docs/history.md does not say: {told}");
}
