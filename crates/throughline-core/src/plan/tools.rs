//! Tool rules: what kind of tool a name stands for, and which argument says what it was used on (R17).
//!
//! Agents call the same thing by many names. The built-in table knows those of the common ones; rules of the
//! user come first. A name is tried as it is, then without the prefixes that gateways and tool servers put in
//! front of it (`mcp__files__read_file`, `functions.read_file`), whatever its case.

use super::arguments::{self, Leaf, Member};
use crate::{Call, Input, Text};

/// What a tool does, as far as its history is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolKind {
    /// Shows a file: a later look at the same supersedes it.
    Read,
    /// Changes a file: the last operation on it counts.
    Write,
    /// Runs a command: a later run of the same supersedes it, unless it has side effects.
    Command,
    /// Searches: every result is kept.
    Search,
    /// Anything else: every result is kept.
    Other,
}

/// A rule of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRule {
    /// The names of the tools.
    pub tools: Vec<Text>,
    /// What they do.
    pub kind: ToolKind,
    /// The argument that says on what; without it, the usual ones of that kind are tried.
    pub key: Option<Text>,
}

/// The rules of a user, in front of the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    rules: Vec<ToolRule>,
}

/// What a call does, by the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub kind: ToolKind,
    /// The file, the command or the query.
    pub key: Option<String>,
    /// What else was asked for (a range of lines, say), as a number that is the same for the same.
    pub rest: u64,
    /// The files that it reads or writes, as it names them.
    pub files: Vec<String>,
    /// Whether it is about the whole content of its files: a look at all of one, a write of all of one.
    pub is_whole: bool,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Command, Self::Search, Self::Other];

    /// Returns the name that the configuration knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Command => "command",
            Self::Search => "search",
            Self::Other => "other",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the arguments that say on what a tool of this kind is used, in the order in which they are tried.
    const fn usual_keys(self) -> &'static [&'static str] {
        match self {
            Self::Read | Self::Write => FILE_KEYS,
            Self::Command => &["command", "cmd", "script", "code", "input", "keystrokes"],
            Self::Search => {
                &["pattern", "query", "regex", "search_term", "search_query", "q", "url", "path", "dir"]
            }
            Self::Other => &["path", "file_path", "url", "name", "id"],
        }
    }
}

pub(super) const FILE_KEYS: &[&str] = &[
    "file_path",
    "path",
    "filename",
    "file_name",
    "notebook_path",
    "target_file",
    "filePath",
    "absolute_path",
    "file",
    "relative_workspace_path",
    "uri",
    "filepath",
];

/// The names that common agents use, in lower case; the names of a line stand for one tool.
const BUILT_IN: &[(ToolKind, &[&str])] = &[
    (
        ToolKind::Read,
        &[
            "read",
            "read_file",
            "readfile",
            "view",
            "view_file",
            "cat",
            "open",
            "open_file",
            "get_file_contents",
            "read_text_file",
            "read_many_files",
            "show_file",
            "fs_read",
            "find_file_content",
            "view_range",
            "goto",
            "file_read",
            "view_source",
        ],
    ),
    (ToolKind::Read, &["notebookread", "notebook_read", "read_notebook"]),
    (ToolKind::Read, &["view_image"]),
    (
        ToolKind::Write,
        &[
            "write",
            "create",
            "write_file",
            "create_file",
            "write_to_file",
            "fs_write",
            "save_file",
            "file_write",
            "append_file",
        ],
    ),
    (
        ToolKind::Write,
        &[
            "edit",
            "multiedit",
            "multi_edit",
            "edit_file",
            "replace",
            "str_replace",
            "insert",
            "replace_in_file",
            "search_replace",
            "edit_block",
            "insert_content",
            "search_and_replace",
            "replace_string_in_file",
            "insert_edit_into_file",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "text_editor",
            "file_editor",
        ],
    ),
    (ToolKind::Write, &["apply_patch", "apply_diff", "patch"]),
    (ToolKind::Write, &["notebookedit", "notebook_edit"]),
    (ToolKind::Write, &["delete_file"]),
    (
        ToolKind::Command,
        &[
            "bash",
            "shell",
            "execute_bash",
            "run_command",
            "exec",
            "exec_command",
            "container.exec",
            "terminal",
            "run_shell_command",
            "execute_command",
            "run_terminal_cmd",
            "run_in_terminal",
            "local_shell",
            "shell_command",
            "execute",
            "run",
            "cmd",
            "execute_bash_command",
            "bash_tool",
            "run_terminal_command",
            "launch-process",
            "unified_exec",
            "powershell",
        ],
    ),
    (ToolKind::Command, &["python"]),
    (
        ToolKind::Search,
        &[
            "grep",
            "search",
            "search_files",
            "search_file_content",
            "codebase_search",
            "grep_search",
            "search_dir",
            "search_file",
            "semantic_search",
            "rg",
            "ripgrep",
            "search_code",
        ],
    ),
    (ToolKind::Search, &["glob", "find", "file_search", "find_file", "find_files"]),
    (ToolKind::Search, &["ls", "list", "list_dir", "list_directory", "list_files", "directory_tree"]),
    (ToolKind::Search, &["websearch", "web_search", "google_web_search"]),
    (ToolKind::Search, &["webfetch", "web_fetch", "fetch"]),
    (ToolKind::Search, &["list_code_usages", "list_code_definition_names"]),
];

impl ToolRules {
    /// Returns these rules in front of the built-in ones.
    #[must_use]
    pub const fn new(rules: Vec<ToolRule>) -> Self {
        Self { rules }
    }

    /// Returns what a tool of that name does.
    #[must_use]
    pub fn kind(&self, name: &str) -> ToolKind {
        self.rule(name).0
    }

    fn rule(&self, name: &str) -> (ToolKind, Option<&Text>) {
        let bare = bare(name);
        let names = |rule: &&ToolRule| rule.tools.iter().any(|tool| *tool == name || *tool == bare);
        if let Some(rule) = self.rules.iter().find(names) {
            return (rule.kind, rule.key.as_ref());
        }
        (built_in(name).map_or(ToolKind::Other, |at| BUILT_IN[at].0), None)
    }

    /// Returns the command that a call runs, also where that is to apply a patch.
    pub(super) fn command(&self, call: &Call) -> Option<String> {
        let (kind, key) = self.rule(&call.name);
        let text = call.input.text();
        let leaves = arguments::leaves(text)?;
        let names = key.map_or_else(|| kind.usual_keys().to_vec(), |key| vec![key.as_str()]);
        key_of(text, &leaves, &names).map(|(_, command)| command)
    }

    /// Returns what a call does.
    pub(super) fn usage(&self, call: &Call) -> Use {
        let (kind, key) = self.rule(&call.name);
        let text = call.input.text();
        let parsed = match &call.input {
            Input::Arguments(_) => arguments::leaves(text).zip(arguments::members(text)),
            Input::Freeform(_) => None,
        };
        let Some((leaves, members)) = parsed else { return of_free_text(kind, text) };

        let names = match key {
            Some(key) => vec![key.as_str()],
            None => kind.usual_keys().to_vec(),
        };
        let found = key_of(text, &leaves, &names);
        if let Some(patched) = patch_of(kind, text, &leaves, found.as_ref()) {
            return patched;
        }

        let kind = editor_kind(kind, text, &leaves);
        let (key_name, key) = found.unzip();
        let others: Vec<&Member> = members
            .iter()
            .filter(|member| {
                is_telling(text, member) && Some(&text[member.name.clone()]) != key_name.as_deref()
            })
            .collect();
        let is_whole = match kind {
            ToolKind::Read => others.iter().all(|member| text[member.name.clone()] == *"command"),
            ToolKind::Write => writes_whole(text, &members),
            _ => false,
        };
        let files = match kind {
            ToolKind::Read | ToolKind::Write => key.iter().cloned().collect(),
            _ => Vec::new(),
        };
        let rest = if key.is_some() { rest(text, &others) } else { 0 };
        Use { kind, key, rest, files, is_whole }
    }
}

/// Returns what free text does: a patch, or a command.
fn of_free_text(kind: ToolKind, text: &str) -> Use {
    let is_patch = kind == ToolKind::Write || kind == ToolKind::Command && is_patch(text);
    if is_patch {
        return of_patch(text);
    }
    let (key, rest) = match kind {
        ToolKind::Command => (Some(text.to_owned()), 0),
        _ => (None, super::handle::hash(text)),
    };
    Use { kind, key, rest, files: Vec::new(), is_whole: false }
}

/// Returns what a patch does. It writes, also where a shell is given it.
fn of_patch(text: &str) -> Use {
    let files: Vec<String> = patched_files(text).collect();
    let key = if let [file] = files.as_slice() { Some(file.clone()) } else { None };
    let is_whole = !files.is_empty() && text.lines().all(|line| !line.starts_with("*** Update File: "));
    Use { kind: ToolKind::Write, key, rest: 0, is_whole: is_whole && is_patch(text), files }
}

/// Returns what a patch does that stands in a member of any name, or in a command.
fn patch_of(kind: ToolKind, text: &str, leaves: &[Leaf], key: Option<&(String, String)>) -> Option<Use> {
    match (kind, key) {
        (ToolKind::Command, Some((_, command))) if is_patch(command) => Some(of_patch(command)),
        (ToolKind::Write, None) => {
            let values = leaves.iter().map(|leaf| arguments::unescaped(&text[leaf.raw.clone()]));
            values.map(|value| of_patch(&value)).find(|usage| !usage.files.is_empty())
        }
        _ => None,
    }
}

/// Says whether a text holds a patch that `apply_patch` takes.
fn is_patch(text: &str) -> bool {
    text.contains("*** Begin Patch") && text.contains(" File: ")
}

/// Members that say why something is called, or for how long: they do not make it another call.
const REMARKS: &[&str] = &[
    "description",
    "explanation",
    "justification",
    "reason",
    "thought",
    "title",
    "toolSummary",
    "timeout",
    "timeout_ms",
    "should_read_entire_file",
];

/// Says whether a member makes a call another one.
fn is_telling(text: &str, member: &Member) -> bool {
    !REMARKS.contains(&&text[member.name.clone()]) && text[member.value.clone()] != *"null"
}

/// Members that hold the whole content of a file.
const CONTENTS: &[&str] =
    &["content", "contents", "file_text", "new_content", "file_content", "text", "code", "source"];

/// Members by which only a part of a file is written.
const PARTS: &[&str] = &[
    "old_string",
    "old_str",
    "old_text",
    "new_string",
    "new_str",
    "edits",
    "insert_line",
    "diff",
    "patch",
    "search",
    "start_line",
    "line",
    "offset",
    "position",
    "mode",
    "append",
    "instructions",
    "anchor",
];

fn writes_whole(text: &str, members: &[Member]) -> bool {
    let has = |names: &[&str]| members.iter().any(|member| names.contains(&&text[member.name.clone()]));
    has(CONTENTS) && !has(PARTS)
}

/// Says whether two names stand for the same tool: whatever their case and the prefixes that gateways and tool servers put
/// in front, and if common agents call it by both.
#[must_use]
pub fn is_same_tool(one: &str, other: &str) -> bool {
    let alike = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    alike(one, other)
        || alike(bare(one), bare(other))
        || built_in(one).is_some_and(|known| built_in(other) == Some(known))
}

/// Returns which of the built-in tools a name stands for.
fn built_in(name: &str) -> Option<usize> {
    let names = [name.to_ascii_lowercase(), bare(name).to_ascii_lowercase()];
    names.iter().find_map(|name| BUILT_IN.iter().position(|(_, names)| names.contains(&name.as_str())))
}

/// Returns the name without the prefixes of gateways and tool servers.
fn bare(name: &str) -> &str {
    let name = name.rsplit("__").next().unwrap_or(name);
    name.rsplit(['.', ':', '/']).next().unwrap_or(name)
}

/// Some editors are one tool for everything, and a `command` says whether it looks or writes.
fn editor_kind(kind: ToolKind, text: &str, leaves: &[Leaf]) -> ToolKind {
    match arguments::member(text, leaves, &["command"]) {
        Some((_, command)) if kind == ToolKind::Write && (command == "view" || command == "read") => {
            ToolKind::Read
        }
        _ => kind,
    }
}

/// Returns the key argument and its value; the words of an array (a command, say) are joined.
fn key_of(text: &str, leaves: &[Leaf], names: &[&str]) -> Option<(String, String)> {
    if let Some((name, value)) = arguments::member(text, leaves, names) {
        return Some((name.to_owned(), value));
    }
    names.iter().find_map(|name| {
        let words: Vec<_> = leaves
            .iter()
            .filter(|leaf| text[leaf.name.clone()] == **name)
            .map(|leaf| arguments::unescaped(&text[leaf.raw.clone()]))
            .collect();
        (!words.is_empty()).then(|| ((*name).to_owned(), words.join(" ")))
    })
}

/// Returns a number for what else was asked for: the same file in another range is another look.
fn rest(text: &str, others: &[&Member]) -> u64 {
    let mut others: Vec<(&str, String)> = others
        .iter()
        .map(|member| {
            let value = text[member.value.clone()].chars().filter(|c| !c.is_ascii_whitespace());
            (&text[member.name.clone()], value.collect())
        })
        .collect();
    others.sort_unstable();
    let words: Vec<String> = others.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
    super::handle::hash(&words.join(","))
}

/// Returns the files that a patch in free text changes.
pub(super) fn patched_files(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        if let Some(file) = line.strip_prefix("+++ ") {
            let file = file.split('\t').next().unwrap_or(file).trim();
            let file = file.strip_prefix("b/").unwrap_or(file);
            return (file != "/dev/null").then(|| file.to_owned());
        }
        let line = line.strip_prefix("*** ")?;
        let (verb, file) = line.split_once(": ")?;
        ["Update File", "Add File", "Delete File", "Move to"].contains(&verb).then(|| file.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;

    fn usage(name: &str, arguments: &str) -> (ToolKind, Option<String>) {
        let call = call("1", name, arguments);
        let usage = ToolRules::default().usage(call.as_call().unwrap());
        (usage.kind, usage.key)
    }

    #[test]
    fn a_tool_is_the_same_by_any_of_its_names() {
        for (one, other) in [
            ("Bash", "bash"),
            ("bash", "functions.exec_command"),
            ("Read", "mcp__files__read_file"),
            ("ripgrep", "Grep"),
            ("Mine", "mine"),
            ("mcp__a__mine", "mine"),
        ] {
            assert!(is_same_tool(one, other) && is_same_tool(other, one), "{one} {other}");
        }
        for (one, other) in [("Read", "Write"), ("grep", "ls"), ("mine", "yours"), ("edit", "write")] {
            assert!(!is_same_tool(one, other), "{one} {other}");
        }
        let mut all: Vec<&str> = BUILT_IN.iter().flat_map(|(_, names)| *names).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "each name stands for one tool");
    }

    #[test]
    fn the_names_of_common_agents_are_known() {
        let cases = [
            ("Read", r#"{"file_path":"a.rs"}"#, ToolKind::Read, "a.rs"),
            ("mcp__files__read_file", r#"{"path":"a.rs"}"#, ToolKind::Read, "a.rs"),
            ("functions.exec_command", r#"{"cmd":"ls"}"#, ToolKind::Command, "ls"),
            ("shell", r#"{"command":["bash","-lc","ls -a"]}"#, ToolKind::Command, "bash -lc ls -a"),
            ("MultiEdit", r#"{"file_path":"a.rs","edits":[]}"#, ToolKind::Write, "a.rs"),
            ("str_replace_editor", r#"{"command":"view","path":"a"}"#, ToolKind::Read, "a"),
            ("str_replace_editor", r#"{"command":"create","path":"a"}"#, ToolKind::Write, "a"),
            ("Grep", r#"{"pattern":"x"}"#, ToolKind::Search, "x"),
            ("container.exec", r#"{"cmd":"ls"}"#, ToolKind::Command, "ls"),
        ];
        for (name, arguments, kind, key) in cases {
            assert_eq!(usage(name, arguments), (kind, Some(key.to_owned())), "{name}");
        }
        assert_eq!(usage("book_flight", "{}"), (ToolKind::Other, None));
    }

    #[test]
    fn rules_of_the_user_come_first() {
        let rule = ToolRule { tools: vec!["Read".into()], kind: ToolKind::Other, key: Some("who".into()) };
        let call = call("1", "Read", r#"{"file_path":"a","who":"me"}"#);
        let usage = ToolRules::new(vec![rule]).usage(call.as_call().unwrap());
        assert_eq!((usage.kind, usage.key.as_deref()), (ToolKind::Other, Some("me")));
    }

    #[test]
    fn another_range_is_another_look() {
        let rest = |arguments: &str| {
            ToolRules::default().usage(call("1", "Read", arguments).as_call().unwrap()).rest
        };
        assert_eq!(rest(r#"{"file_path":"a"}"#), rest(r#"{ "file_path": "b" }"#));
        assert_ne!(rest(r#"{"file_path":"a"}"#), rest(r#"{"file_path":"a","offset":10}"#));
    }

    #[test]
    fn a_remark_does_not_make_it_another_call() {
        let rest = |arguments: &str| {
            ToolRules::default().usage(call("1", "Bash", arguments).as_call().unwrap()).rest
        };
        let plain = rest(r#"{"command":"ls"}"#);
        assert_eq!(plain, rest(r#"{"description":"Lists files","command":"ls","timeout":5,"cwd":null}"#));
        assert_ne!(plain, rest(r#"{"command":"ls","cwd":"/w"}"#));
        assert_eq!(rest(r#"{"command":"ls","a":1,"b":2}"#), rest(r#"{"b":2,"command":"ls","a":1}"#));
    }

    #[test]
    fn a_patch_names_its_files_wherever_it_stands() {
        let patch =
            r"*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** Add File: b.rs\n+x\n*** End Patch";
        let shell = format!(r#"{{"command":["bash","-lc","apply_patch <<'EOF'\n{patch}\nEOF"]}}"#);
        let member = format!(r#"{{"input":"{patch}"}}"#);
        for (name, arguments) in [("shell", shell), ("apply_patch", member)] {
            let call = call("1", name, &arguments);
            let usage = ToolRules::default().usage(call.as_call().unwrap());
            assert_eq!((usage.kind, usage.key), (ToolKind::Write, None), "{name}");
            assert_eq!(usage.files, ["src/a.rs", "b.rs"], "{name}");
        }
        let files: Vec<String> = patched_files("--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@").collect();
        assert_eq!(files, ["x.rs"]);
    }

    #[test]
    fn a_whole_file_is_told_from_a_part_of_one() {
        let is_whole = |name: &str, arguments: &str| {
            ToolRules::default().usage(call("1", name, arguments).as_call().unwrap()).is_whole
        };
        assert!(is_whole("Read", r#"{"file_path":"a"}"#));
        assert!(is_whole("str_replace_editor", r#"{"command":"view","path":"a"}"#));
        assert!(!is_whole("Read", r#"{"file_path":"a","offset":9}"#));
        assert!(is_whole("Write", r#"{"file_path":"a","content":"x"}"#));
        assert!(is_whole("str_replace_editor", r#"{"command":"create","path":"a","file_text":"x"}"#));
        assert!(!is_whole("Edit", r#"{"file_path":"a","old_string":"x","new_string":"y"}"#));
    }
}
