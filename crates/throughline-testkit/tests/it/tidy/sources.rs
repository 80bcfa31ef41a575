//! What Rust files and the other hand-written files look like.

use super::{Finding, Source, assert_none, rust_files, tree};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;

/// Functions that may be longer, as `path::name`. Each needs a reason beside it.
const LONG_FUNCTIONS: &[&str] = &[];

/// Files that may be longer. Each needs a reason beside it.
const LONG_FILES: &[&str] = &[];

/// Words that say nothing about what a type or a module does.
const EMPTY_WORDS: &[&str] =
    &["manager", "managers", "helper", "helpers", "util", "utils", "processor", "processors"];

// Written in two halves, so that this file passes its own check.
const UNFINISHED: &[&str] = &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// A function as the indentation shows it.
#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

#[test]
fn every_rust_file_says_what_it_is_for() {
    assert_none(&each(&rust_files(), header));
}

#[test]
fn functions_stay_short() {
    assert_none(&each(&rust_files(), long_functions));
}

#[test]
fn files_stay_short() {
    assert_none(&each(&rust_files(), file_length));
}

#[test]
fn exceptions_are_still_needed() {
    let files = rust_files();
    let mut findings = Vec::new();
    for exception in LONG_FILES {
        if !files.iter().any(|file| file.path == *exception && file_lines(&file.text) > FILE_LINES_MAX) {
            findings.push(Finding::new(exception, 1, "is no longer long: take it out of LONG_FILES"));
        }
    }
    for exception in LONG_FUNCTIONS {
        let still_long = |file: &Source| {
            functions(before_tests(&file.text)).iter().any(|function| {
                function.lines > FUNCTION_LINES_MAX && full_name(file, function) == *exception
            })
        };
        if !files.iter().any(still_long) {
            findings.push(Finding::new(exception, 1, "is no longer long: take it out of LONG_FUNCTIONS"));
        }
    }
    assert_none(&findings);
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

fn long_functions(file: &Source) -> Vec<Finding> {
    functions(before_tests(&file.text))
        .iter()
        .filter(|function| function.lines > FUNCTION_LINES_MAX)
        .filter(|function| !LONG_FUNCTIONS.contains(&full_name(file, function).as_str()))
        .map(|function| {
            let what = format!("`{}` has {} lines, over {FUNCTION_LINES_MAX}", function.name, function.lines);
            Finding::new(&file.path, function.line, what)
        })
        .collect()
}

fn full_name(file: &Source, function: &Function<'_>) -> String {
    format!("{}::{}", file.path, function.name)
}

fn file_length(file: &Source) -> Vec<Finding> {
    let lines = file_lines(&file.text);
    if lines <= FILE_LINES_MAX || LONG_FILES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    vec![Finding::new(&file.path, lines, format!("{lines} lines before its tests, over {FILE_LINES_MAX}"))]
}

fn file_lines(text: &str) -> usize {
    before_tests(text).lines().count()
}

/// Returns the text up to its module of tests; a mere `mod tests;` is not one.
fn before_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(found) = text[from..].find("\n#[cfg(test)]\n") {
        let at = from + found;
        let after = &text[at + "\n#[cfg(test)]\n".len()..];
        let next = after.lines().next().unwrap_or("");
        if next.starts_with("mod ") && next.ends_with('{') {
            return &text[..=at];
        }
        from = at + 1;
    }
    text
}

/// Finds functions by their indentation, which rustfmt keeps reliable.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = function_name(line) {
            found.push(Function { name, line: index + 1, lines: function_lines(&lines[index..]) });
        }
    }
    found
}

/// Returns the name when the line begins the definition of a function.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(scoped) = rest.strip_prefix("pub(") {
        rest = scoped.split_once(") ")?.1;
    }
    while let Some((word, after)) = rest.split_once(' ') {
        match word {
            "fn" => return after.split(['(', '<']).next(),
            "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"" => rest = after,
            _ => return None,
        }
    }
    None
}

/// Counts from the first of `lines` to the brace that closes it.
fn function_lines(lines: &[&str]) -> usize {
    let indent = indentation(lines[0]);
    let mut opened = false;
    for (index, line) in lines.iter().enumerate() {
        let here = indentation(line) == indent;
        let closes = here && (line.trim() == "}" || (index == 0 && line.ends_with('}')));
        let is_declaration_only = !opened && line.ends_with(';');
        if closes || is_declaration_only {
            return index + 1;
        }
        opened |= here && line.ends_with('{');
    }
    lines.len()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
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
    fn a_long_function() {
        let body = "        step();\n".repeat(69);
        let text =
            format!("impl A {{\n    pub(crate) fn long<T>(\n        t: T,\n    ) {{\n{body}    }}\n}}\n");
        let found = functions(&text);
        assert_eq!(found, [Function { name: "long", line: 2, lines: 73 }]);
        assert_eq!(lines(&long_functions(&file("a.rs", &text))), [2]);
    }

    #[test]
    fn no_length_in_declarations_and_one_liners() {
        let text =
            "trait A {\n    fn a(\n        &self,\n    ) -> B;\n    fn b(&self) {}\n}\nconst fn c() {\n}\n";
        let found: Vec<(&str, usize)> = functions(text).iter().map(|f| (f.name, f.lines)).collect();
        assert_eq!(found, [("a", 3), ("b", 1), ("c", 2)]);
    }

    #[test]
    fn a_long_file_without_counting_its_tests() {
        let code = "const A: u8 = 1;\n".repeat(FILE_LINES_MAX);
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(file_length(&file("a.rs", &format!("{code}{tests}"))), []);
        assert_eq!(lines(&file_length(&file("a.rs", &format!("{code}//\n{tests}")))), [801]);
        assert_eq!(before_tests("a\n#[cfg(test)]\nmod tests;\nb\n"), "a\n#[cfg(test)]\nmod tests;\nb\n");
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
