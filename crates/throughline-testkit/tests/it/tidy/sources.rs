//! What Rust files and the other hand-written files look like.

use super::{Finding, Source, assert_none, rust_files, tree};

/// Words that say nothing about what a type or a module does.
const EMPTY_WORDS: &[&str] =
    &["manager", "managers", "helper", "helpers", "util", "utils", "processor", "processors"];

// Written in two halves, so that this file passes its own check.
const UNFINISHED: &[&str] = &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

#[test]
fn every_rust_file_says_what_it_is_for() {
    assert_none(&each(&rust_files(), header));
}

#[test]
fn nothing_is_left_unfinished() {
    assert_none(&each(&rust_files(), |file| lines_with(file, UNFINISHED, "is unfinished work")));
}

#[test]
fn no_path_of_a_machine_is_named() {
    assert_none(&each(&tree(), machine_paths));
}

#[test]
fn white_space_is_plain() {
    assert_none(&each(&tree(), white_space));
}

#[test]
fn names_say_what_a_thing_does() {
    assert_none(&each(&rust_files(), empty_names));
}

fn each(files: &[Source], check: impl Fn(&Source) -> Vec<Finding>) -> Vec<Finding> {
    files.iter().flat_map(check).collect()
}

fn header(file: &Source) -> Vec<Finding> {
    let first = file.text.lines().next().unwrap_or("");
    let fine = first.starts_with("//! ") || first.contains("@generated");
    if fine { Vec::new() } else { vec![Finding::new(&file.path, 1, "opens without a `//!` header")] }
}

fn lines_with(file: &Source, words: &[&str], what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.numbered_lines() {
        for word in words.iter().filter(|word| line.contains(**word)) {
            findings.push(Finding::new(&file.path, number, format!("`{word}` {what}")));
        }
    }
    findings
}

fn machine_paths(file: &Source) -> Vec<Finding> {
    if !file.is_prose_or_code() {
        return Vec::new(); // A recorded request may well name such a path.
    }
    let mut findings = Vec::new();
    for (number, line) in file.numbered_lines() {
        for path in MACHINE_PATHS.iter().filter(|path| names_path(line, path)) {
            findings.push(Finding::new(&file.path, number, format!("names `{path}`, a path of one machine")));
        }
    }
    findings
}

/// Whether `line` holds `path` as the beginning of a path, not in the middle of another.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
    })
}

fn white_space(file: &Source) -> Vec<Finding> {
    if !file.is_prose_or_code() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.numbered_lines() {
        if line.trim_end() != line {
            findings.push(Finding::new(&file.path, number, "ends in white space"));
        }
        if file.extension() == "rs" && line.contains('\t') {
            findings.push(Finding::new(&file.path, number, "holds a tab"));
        }
    }
    if !file.text.ends_with('\n') {
        let last = file.text.lines().count().max(1);
        findings.push(Finding::new(&file.path, last, "ends without a newline"));
    }
    findings
}

fn empty_names(file: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for part in file.path.trim_end_matches(".rs").split('/') {
        if let Some(word) = empty_word(part) {
            findings.push(Finding::new(&file.path, 1, format!("the path says `{word}`")));
        }
    }
    for (number, line) in file.numbered_lines() {
        let named = defined_name(line);
        if let Some(word) = named.and_then(empty_word) {
            findings.push(Finding::new(&file.path, number, format!("the name says `{word}`")));
        }
    }
    findings
}

/// Returns the name of the type or module that the line defines.
fn defined_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    let name = words.next()?;
    let defines = matches!(keyword, "struct" | "enum" | "trait" | "type" | "mod" | "union");
    defines.then(|| name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(name))
}

/// Returns the empty word in a name, written either way: `ToolHelper` or `tool_helper`.
fn empty_word(name: &str) -> Option<&'static str> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() || c == '_' || c == '-' {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
    }
    EMPTY_WORDS.iter().copied().find(|empty| spaced.split(' ').any(|word| word == *empty))
}

mod the_checks_find {
    //! Each check against a few lines that break its rule.

    use super::*;

    fn file(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_missing_header() {
        assert_eq!(lines(&header(&file("a.rs", "use std::fmt;\n"))), [1]);
        assert_eq!(header(&file("a.rs", "//! What it is for.\n")), []);
    }

    #[test]
    fn a_path_of_a_machine_but_not_part_of_another_path() {
        let path = MACHINE_PATHS[0];
        assert!(names_path(&format!("see `{path}main`"), path));
        assert!(!names_path(&format!("https://example.com{path}main"), path));
    }

    #[test]
    fn stray_white_space() {
        let found = white_space(&file("a.rs", "a \n\tb\nc"));
        assert_eq!(lines(&found), [1, 2, 3]);
        assert_eq!(white_space(&file("a.json", "a \n\tb\nc")), []);
    }

    #[test]
    fn empty_words_in_names() {
        let text = "pub struct ToolHelper;\nmod utils {\npub(crate) enum Utility {}\nlet helper = 1;\n";
        assert_eq!(lines(&empty_names(&file("src/a.rs", text))), [1, 2]);
        assert_eq!(lines(&empty_names(&file("src/tool_util/mod.rs", ""))), [1]);
    }
}
