//! Paths: one name for a file that a session calls by several.
//!
//! `./src/a.rs`, `src/a.rs`, `/srv/app/src/a.rs` and `~/app/src/a.rs` are one file if the session works in `/srv/app`. Where it
//! works is known from what agents say about it, and from commands. Symbolic links are not known, but for the one that
//! everybody meets: `/tmp` and `/var` stand below `/private` on some systems.

use super::shell;
use super::survey::Pair;
use crate::{Entry, Kind, joined_text};
use std::fmt::Write as _;

/// Where a session works.
#[derive(Debug, Default)]
pub(super) struct Directories {
    working: Option<String>,
    home: Option<String>,
}

/// What agents put in front of the directory that they work in.
const SAID_BEFORE: &[&str] = &[
    "Working directory: ",
    "<cwd>",
    "Current working directory: ",
    "current working directory is ",
    "\"cwd\":\"",
];

/// Members of arguments that name the directory of a command.
const MEMBERS: &[&str] = &["workdir", "cwd", "working_directory"];

/// How much of a message is looked through.
const CHARS_MAX: usize = 20_000;

impl Directories {
    pub fn find(entries: &[Entry], pairs: &[Pair]) -> Self {
        let said = entries.iter().find_map(said_directory);
        let called = || {
            pairs.iter().find_map(|pair| {
                let call = entries[pair.call?].as_call()?;
                let text = call.input.text();
                let leaves = super::arguments::leaves(text)?;
                let member = super::arguments::member(text, &leaves, MEMBERS).map(|(_, value)| value);
                member
                    .filter(|directory| directory.starts_with('/'))
                    .or_else(|| shell::directory(pair.usage.key.as_deref()?))
            })
        };
        let working = said.or_else(called).map(|directory| plain(directory.trim_end_matches('/')));
        let files = pairs.iter().flat_map(|pair| &pair.usage.files).map(String::as_str);
        let home = working.as_deref().into_iter().chain(files).find_map(home);
        Self { working, home }
    }

    /// Returns the one name of a file.
    pub fn resolve(&self, path: &str) -> String {
        let path = path.trim();
        let path = path.strip_prefix("file://").unwrap_or(path);
        let absolute = match (path.strip_prefix("~/"), &self.home, &self.working) {
            (Some(rest), Some(home), _) => format!("{home}/{rest}"),
            (None, _, Some(working)) if !path.starts_with('/') => format!("{working}/{path}"),
            _ => path.to_owned(),
        };
        plain(&absolute)
    }
}

/// Says whether two names may stand for one file, where it is not known in which directory one of them is.
pub(super) fn may_be_same(one: &str, other: &str) -> bool {
    let ends_with = |long: &str, short: &str| {
        let short = short.strip_prefix("~/").unwrap_or(short);
        !short.starts_with('/')
            && !short.is_empty()
            && long.strip_suffix(short).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    one == other || ends_with(one, other) || ends_with(other, one)
}

/// Says whether `directory` is above `file`, or a name of it.
pub(super) fn holds(directory: &str, file: &str) -> bool {
    if may_be_same(directory, file) {
        return true;
    }
    let directory = directory.trim_end_matches('/');
    let below = |at: usize| {
        let (before, rest) = (&file[..at], &file[at + directory.len()..]);
        (before.is_empty() || before.ends_with('/')) && rest.starts_with('/')
    };
    !directory.is_empty() && file.match_indices(directory).any(|(at, _)| below(at))
}

fn said_directory(entry: &Entry) -> Option<String> {
    let Kind::Said(said) = &entry.kind else { return None };
    let text = joined_text(&said.parts);
    let text = &text[..text.floor_char_boundary(CHARS_MAX)];
    SAID_BEFORE.iter().find_map(|before| {
        let (_, behind) = text.split_once(before)?;
        let end = behind
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '"' | '`' | ','))
            .unwrap_or(behind.len());
        behind[..end].starts_with('/').then(|| behind[..end].trim_end_matches('.').to_owned())
    })
}

/// Returns the home directory that a path is below.
fn home(path: &str) -> Option<String> {
    let mut parts = path.split('/').skip(1);
    match (parts.next()?, parts.next()) {
        ("root", _) => Some("/root".to_owned()),
        (top @ ("home" | "Users"), Some(user)) if !user.is_empty() => Some(format!("/{top}/{user}")),
        _ => None,
    }
}

/// Returns a path without steps that lead nowhere.
fn plain(path: &str) -> String {
    let path = match path.strip_prefix("/private") {
        Some(rest) if rest.starts_with("/tmp") || rest.starts_with("/var") => rest,
        _ => path,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut out = String::with_capacity(path.len());
    let start = if path.starts_with('/') { "/" } else { "" };
    let _ = write!(out, "{start}{}", parts.join("/"));
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::user;
    use super::*;

    #[test]
    fn a_file_has_one_name() {
        let entries = [user("<env>\nWorking directory: /home/mia/shop\n</env>")];
        let directories = Directories::find(&entries, &[]);
        for path in
            ["src/a.rs", "./src/a.rs", "/home/mia/shop/src/a.rs", "~/shop/src/a.rs", "src/../src//a.rs"]
        {
            assert_eq!(directories.resolve(path), "/home/mia/shop/src/a.rs", "{path}");
        }
        assert_eq!(Directories::default().resolve("./src/a.rs"), "src/a.rs");
        assert_eq!(Directories::default().resolve("/private/tmp/a"), "/tmp/a");
    }

    #[test]
    fn names_that_may_stand_for_one_file_are_known() {
        assert!(may_be_same("/w/src/a.rs", "src/a.rs") && may_be_same("~/src/a.rs", "/home/u/src/a.rs"));
        assert!(!may_be_same("/w/src/a.rs", "/v/src/a.rs") && !may_be_same("/w/src/aa.rs", "a.rs"));
        assert!(
            holds("src", "/w/src/a.rs") && holds("/w/src/", "/w/src/a.rs") && !holds("src", "/w/mysrc/a.rs")
        );
    }
}
