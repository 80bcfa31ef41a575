//! The house rules, run as tests.
//!
//! What a reviewer would have to remember is checked here, so that the gate is `./test` and nothing else. A
//! check reads the tree as text and returns its findings; each finding names the file and the line. The
//! rules and the reasons for them are in `CONTRIBUTING.md`.

mod cycles;
mod documents;
mod manifests;
mod sources;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// One breach of a house rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Fails with one line per finding.
#[track_caller]
fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{} breaches of a house rule\n{}", findings.len(), lines.join("\n"));
}

/// A text file of the tree, named by its path from the root, with `/` on every system.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|extension| extension.to_str()).unwrap_or("")
    }

    /// Whether people write and read this file, as opposed to fixtures, snapshots and the lock file.
    fn is_prose_or_code(&self) -> bool {
        matches!(self.extension(), "rs" | "md" | "toml" | "sh" | "yml" | "yaml")
            || matches!(self.path.as_str(), "justfile" | "test" | ".ci/run" | ".gitignore")
    }

    fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.split('\n').enumerate().map(|(index, line)| (index + 1, line))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads every text file of the tree, sorted by path.
fn tree() -> Vec<Source> {
    let mut sources = Vec::new();
    collect(&root(), "", &mut sources);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// Reads every Rust file of the tree.
fn rust_files() -> Vec<Source> {
    tree().into_iter().filter(|source| source.extension() == "rs").collect()
}

fn collect(folder: &Path, prefix: &str, sources: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).expect("a folder of the tree can be listed");
    for entry in entries {
        let entry = entry.expect("an entry of the tree can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type().expect("an entry of the tree has a type");
        if kind.is_dir() {
            if !is_generated_folder(&path) {
                collect(&entry.path(), &path, sources);
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            sources.push(Source { path, text });
        }
    }
}

/// The folders that git ignores, and git's own.
fn is_generated_folder(path: &str) -> bool {
    path.ends_with("node_modules")
        || matches!(path, ".git" | "target" | "fuzz/target" | "fuzz/corpus" | "fuzz/artifacts")
}

#[test]
fn the_tree_is_found() {
    let paths: Vec<String> = tree().into_iter().map(|source| source.path).collect();
    assert!(paths.iter().any(|path| path == "Cargo.toml"));
    assert!(paths.iter().any(|path| path == "crates/throughline-testkit/tests/it/tidy.rs"));
}
