//! Holds every command line in the documentation to the command line as it is read: what is shown can be typed.
//!
//! Whole lines in `sh` and `console` blocks must parse. What stands in the running text may have placeholders, so of
//! that the commands and the options must exist.

use super::Args;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::path::{Path, PathBuf};

/// How the program is started where it is not installed.
const FROM_SOURCE: [&str; 4] = ["cargo", "run", "--release", "--"];

/// Returns README and the pages of `docs`, each with its path.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/clients", "docs/decisions"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    pages.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// What a page tells, each with the number of its line.
#[derive(Default)]
struct Told<'p> {
    /// The commands in its blocks.
    lines: Vec<(usize, String)>,
    /// The code in its text.
    codes: Vec<(usize, &'p str)>,
}

fn told(page: &str) -> Told<'_> {
    let Told { mut lines, mut codes } = Told::default();
    let mut language: Option<&str> = None;
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(begun) = line.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(begun) };
            lines.extend(open.take());
            continue;
        }
        let Some(language) = language else {
            codes.extend(line.split('`').skip(1).step_by(2).map(|code| (number, code)));
            continue;
        };
        let typed = match language {
            "sh" => Some(line),
            "console" => line.strip_prefix("$ "),
            _ => None,
        };
        match (open.as_mut(), typed) {
            (Some((_, text)), _) if text.ends_with(['\\', '|']) => {
                *text = format!("{} {}", text.trim_end_matches('\\'), line.trim());
            }
            (_, Some(typed)) => lines.extend(open.replace((number, typed.trim_end().to_owned()))),
            (_, None) => lines.extend(open.take()),
        }
    }
    Told { lines, codes }
}

/// Returns the words of each command on a line, as a shell would part them.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.replace("\"$(", ";").replace("$(", ";").replace(")\"", ";").replace('`', ";");
    let mut all = vec![Vec::new()];
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    for c in line.chars().chain(['\n']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\n' | '|' | '&' | ';' | '<' | '>') => {
                all.last_mut().into_iter().for_each(|words: &mut Vec<String>| words.extend(word.take()));
                if c != ' ' {
                    all.push(Vec::new());
                }
            }
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    all.iter().filter_map(|words| ours(words)).collect()
}

/// Returns the arguments of a command, if it is this program's.
fn ours(words: &[String]) -> Option<Vec<String>> {
    let is_set = |word: &&String| word.contains('=') && !word.starts_with('-');
    let words = &words[words.iter().take_while(is_set).count()..];
    let is_installed = words.first().is_some_and(|word| word == "throughline");
    let from_source =
        words.len() > 4 && words.iter().zip(FROM_SOURCE).all(|(word, expected)| word == expected);
    match (is_installed, from_source) {
        (true, _) => Some(words[1..].to_vec()),
        (_, true) => Some(words[4..].to_vec()),
        _ => None,
    }
}

/// Says what is wrong with code in the running text, if it is a command with placeholders.
fn wrong(code: &str) -> Option<String> {
    let words = code.strip_prefix("throughline ")?.replace(['[', ']', '|', '\\', ','], " ");
    let root = Args::command();
    let mut command = &root;
    for word in words.split_whitespace().filter(|word| *word != "…") {
        if let Some(name) = word.strip_prefix("--").map(|flag| flag.split('=').next().unwrap_or(flag)) {
            let has = |command: &Command| {
                let mut arguments = command.get_arguments();
                arguments.any(|known| {
                    let aliases = known.get_visible_aliases().unwrap_or_default();
                    known.get_long() == Some(name) || aliases.contains(&name)
                })
            };
            if !has(command) && !has(&root) && !["help", "version"].contains(&name) {
                return Some(format!("{} has no option --{name}", command.get_name()));
            }
        } else if let Some(below) = command.find_subcommand(word) {
            command = below;
        } else if command.has_subcommands() && !word.chars().all(char::is_uppercase) {
            return Some(format!("{} has no command {word}", command.get_name()));
        }
    }
    None
}

#[test]
fn every_command_line_in_the_documentation_can_be_typed() {
    let (mut typed, mut named) = (0, 0);
    for (path, page) in pages() {
        let Told { lines, codes } = told(&page);
        for (number, line) in lines {
            for words in commands(&line) {
                let parsed = Args::try_parse_from(std::iter::once("throughline".to_owned()).chain(words));
                let refused = parsed.err().filter(|error| {
                    !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
                });
                assert!(refused.is_none(), "{}:{number}: {line}\n{}", path.display(), refused.unwrap());
                typed += 1;
            }
        }
        for (number, code) in codes {
            let wrong = wrong(code);
            assert!(wrong.is_none(), "{}:{number}: `{code}`: {}", path.display(), wrong.unwrap());
            named += usize::from(code.starts_with("throughline "));
        }
    }
    assert!(typed > 50 && named > 60, "only {typed} lines and {named} commands were found");
}

/// Returns the examples in the help of a command and of those below it.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let own = help.lines().filter(|line| line.starts_with("  ")).map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(examples)).collect()
}

#[test]
fn every_example_of_the_help_can_be_typed() {
    let examples = examples(&Args::command());
    assert!(examples.len() > 20, "{examples:?}");
    for line in examples {
        let words = commands(&line);
        assert_eq!(words.len(), 1, "{line}");
        let parsed = Args::try_parse_from(std::iter::once("throughline".to_owned()).chain(words[0].clone()));
        assert!(parsed.is_ok(), "{line}\n{}", parsed.unwrap_err());
    }
}

#[test]
fn what_cannot_be_typed_is_found() {
    assert_eq!(
        commands("A=1 throughline ls --json | jq '.a | .b' && eval \"$(throughline env curl)\" # so"),
        [vec!["ls", "--json"], vec!["env", "curl"]]
    );
    assert_eq!(commands("cargo run --release -- demo --once"), [["demo", "--once"]]);
    let page = "```sh\nhead x |\n    throughline compact\n```\n`throughline ls` and\n```console\n$ throughline a\nout\n```\n";
    let Told { lines, codes } = told(page);
    assert_eq!(lines, [(2, "head x | throughline compact".to_owned()), (7, "throughline a".to_owned())]);
    assert_eq!(codes, [(5, "throughline ls")]);
    assert!(wrong("throughline lss").is_some() && wrong("throughline ls --limits 3").is_some());
    assert!(
        wrong("throughline store chek").is_some()
            && wrong("throughline store prune --older-than AGE").is_none()
    );
    assert!(wrong("throughline use BACKEND[/MODEL] [--conversation ID]").is_none());
}
