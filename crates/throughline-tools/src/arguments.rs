//! Arguments as models write them, read into calls.
//!
//! Each field is known under the spellings of several agents, so that a model keeps working that was trained on
//! another agent's tools. What is wrong comes back all at once, in words that the model can act on: which field, what
//! was expected, what came. A field that nobody knows is an error too: a misspelt option that does nothing would
//! mislead the model.

use crate::call::{ApplyPatch, Bash, Call, Edit, EditStep, Glob, Grep, GrepMode, Ls, Read, Write};
use crate::catalog::{Builtin, folded};
use crate::outcome::Outcome;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// Why a call is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such tool.
    #[error("there is no tool \"{name}\"; the tools are {}", known.join(", "))]
    UnknownTool {
        /// The name that was called.
        name: String,
        /// The names of the tools there are.
        known: Vec<String>,
    },
    /// The arguments are no JSON object.
    #[error("the arguments of {tool} must be a JSON object: {reason}")]
    NoObject {
        /// The tool.
        tool: String,
        /// What came instead.
        reason: String,
    },
    /// Some fields are wrong.
    #[error("the arguments of {tool} cannot be used: {}", listed(problems))]
    BadFields {
        /// The tool.
        tool: String,
        /// What is wrong, one for each field.
        problems: Vec<Problem>,
    },
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which field.
    pub field: String,
    /// What was expected.
    pub expected: String,
    /// What came; nothing if the field was missing.
    pub came: Option<String>,
}

/// The fields of one call while they are read.
struct Fields {
    tool: &'static str,
    values: Map<String, Value>,
    problems: Vec<Problem>,
}

/// What agents let models add for people to read; it changes nothing.
const REMARKS: &[&str] =
    &["description", "explanation", "reason", "reasoning", "justification", "summary", "thought"];

const PATH: &[&str] = &["path", "file_path", "filename", "file", "filepath", "absolute_path", "target_file"];
const FOLDER: &[&str] =
    &["path", "dir_path", "directory", "dir", "dir_name", "relative_workspace_path", "search_path", "cwd"];
const OLD: &[&str] = &["old_string", "old_str", "old_text", "old", "search", "find", "original"];
const NEW: &[&str] = &["new_string", "new_str", "new_text", "new", "replace", "replacement"];
const ALL: &[&str] = &["replace_all", "all", "allow_multiple", "global"];
const IGNORED: &[&str] = &["ignored", "include_ignored", "no_ignore"];

impl Refused {
    /// Returns what the model is told.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::failed(self.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.came {
            None => write!(f, "`{}` is missing: expected {}", self.field, self.expected),
            Some(came) => write!(f, "`{}`: expected {}, but {came} came", self.field, self.expected),
        }
    }
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Reads the arguments of a call of `tool`.
pub(crate) fn read(tool: Builtin, arguments: &str) -> Result<Call, Refused> {
    if tool == Builtin::ApplyPatch && crate::patch::looks_like_one(arguments) {
        // Some agents declare it as a tool that takes free text.
        return Ok(Call::ApplyPatch(ApplyPatch { patch: arguments.to_owned() }));
    }
    let fields = Fields::parse(tool.name(), arguments)?;
    match tool {
        Builtin::Read => read_read(fields).map(Call::Read),
        Builtin::Write => read_write(fields).map(Call::Write),
        Builtin::Edit => read_edit(fields).map(Call::Edit),
        Builtin::ApplyPatch => read_patch(fields).map(Call::ApplyPatch),
        Builtin::Bash => read_bash(fields),
        Builtin::Glob => read_glob(fields).map(Call::Glob),
        Builtin::Grep => read_grep(fields).map(Call::Grep),
        Builtin::Ls => read_ls(fields).map(Call::Ls),
        Builtin::Editor => read_editor(fields),
    }
}

/// Returns the arguments of a tool that checks them itself; they must be an object.
#[cfg(feature = "mcp")]
pub(crate) fn read_object(tool: &str, arguments: &str) -> Result<String, Refused> {
    let refused = |reason: String| Refused::NoObject { tool: tool.to_owned(), reason };
    if arguments.trim().is_empty() {
        return Ok("{}".to_owned());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(_)) => Ok(arguments.to_owned()),
        Ok(other) => Err(refused(format!("{} came", described(&other)))),
        Err(error) => Err(refused(format!("this is no JSON ({error})"))),
    }
}

fn read_read(mut fields: Fields) -> Result<Read, Refused> {
    let path = fields.text(PATH, "a string, the path of a file");
    let range = fields.take(&["view_range", "line_range", "range"]);
    let mut offset = fields.whole(&["offset", "start_line", "start", "line_start", "from_line"], 0);
    let mut limit = fields.whole(&["limit", "max_lines", "num_lines", "count"], 1);
    let last = fields.whole(&["end_line", "end", "line_end", "to_line"], 1);
    if let Some((name, value)) = range {
        (offset, limit) = fields.view_range(&name, &value);
    } else if let Some(last) = last {
        limit = Some((last + 1).saturating_sub(offset.unwrap_or(1).max(1)).max(1));
    }
    fields.finish(Read { path, offset, limit })
}

fn read_write(mut fields: Fields) -> Result<Write, Refused> {
    let path = fields.text(PATH, "a string, the path of a file");
    let content = fields.text(
        &["content", "contents", "text", "file_text", "body", "code_edit"],
        "a string, the whole new content",
    );
    fields.finish(Write { path, content })
}

fn read_edit(mut fields: Fields) -> Result<Edit, Refused> {
    let path = fields.text(PATH, "a string, the path of a file");
    let steps = match fields.take(&["edits", "changes", "replacements"]) {
        Some((name, list)) => fields.steps(&name, list),
        None => vec![fields.replacement()],
    };
    fields.finish(Edit { path, steps })
}

fn read_patch(mut fields: Fields) -> Result<ApplyPatch, Refused> {
    let patch = fields.text(&["patch", "input", "diff", "patch_text", "content"], "a string, the patch");
    fields.finish(ApplyPatch { patch })
}

fn read_bash(mut fields: Fields) -> Result<Call, Refused> {
    let command = fields.command();
    let cwd = fields.text_or(&["cwd", "workdir", "working_directory", "dir_path", "directory"]);
    let seconds = fields.whole(&["timeout_seconds", "timeout_secs", "timeout_s"], 1);
    let millis = fields.whole(&["timeout_ms", "timeout_millis"], 1);
    // Agents disagree about the unit. No command is given less than a second or more than a quarter of an hour
    // in these places, so the number tells.
    let bare = fields.whole(&["timeout", "time_limit"], 1);
    let time_limit = seconds
        .map(Duration::from_secs)
        .or(millis.map(Duration::from_millis))
        .or(bare.map(|n| if n < 1_000 { Duration::from_secs(n) } else { Duration::from_millis(n) }));
    if fields.flag(&["run_in_background", "is_background", "background"]) {
        fields.problem(
            "run_in_background",
            "false: a command ends before the next call",
            Some("true".to_owned()),
        );
    }
    fields.drop_any(&[
        "login",
        "shell",
        "tty",
        "yield_time_ms",
        "max_output_tokens",
        "sandbox_permissions",
        "with_escalated_permissions",
    ]);
    if let Some(patch) = patch_of_command(&command) {
        return fields.finish(Call::ApplyPatch(ApplyPatch { patch }));
    }
    let command = script(&command);
    let protected = fields.texts(&["protected", "protected_paths"]);
    fields.finish(Call::Bash(Bash { command, cwd, time_limit, protected }))
}

fn read_glob(mut fields: Fields) -> Result<Glob, Refused> {
    let pattern = fields.text(&["pattern", "glob", "glob_pattern", "query", "name"], "a string, the pattern");
    let path = fields.text_or(FOLDER);
    let ignored = fields.flag(IGNORED);
    fields.finish(Glob { pattern, path, ignored })
}

fn read_grep(mut fields: Fields) -> Result<Grep, Refused> {
    let pattern =
        fields.text(&["pattern", "regex", "query", "search", "regexp"], "a string, the regular expression");
    let path = fields.text_or(&[FOLDER, &["file", "file_path"]].concat());
    let glob = fields.text_or(&["glob", "include", "include_pattern", "file_pattern", "include_glob"]);
    let ignore_case = fields.flag(&["ignore_case", "-i", "case_insensitive"]);
    let case_sensitive = fields.take(&["case_sensitive"]);
    let mode = fields.mode();
    let around = fields.whole(&["context", "-C", "context_lines"], 0).unwrap_or(0);
    let before = fields.whole(&["before", "-B", "before_context"], 0).unwrap_or(around);
    let after = fields.whole(&["after", "-A", "after_context"], 0).unwrap_or(around);
    let limit = fields.whole(&["limit", "head_limit", "max_results", "max_matches", "-m"], 1);
    let ignored = fields.flag(IGNORED);
    fields.drop_any(&["-n", "line_numbers"]);
    let ignore_case = ignore_case || matches!(case_sensitive, Some((_, Value::Bool(false))));
    fields.finish(Grep { pattern, path, glob, ignore_case, mode, before, after, limit, ignored })
}

fn read_ls(mut fields: Fields) -> Result<Ls, Refused> {
    let path = fields.text_or(FOLDER);
    let ignored = fields.flag(&[IGNORED, &["all", "show_hidden"]].concat());
    fields.finish(Ls { path, ignored })
}

/// Reads a call of the editor that is one tool with several commands.
fn read_editor(mut fields: Fields) -> Result<Call, Refused> {
    let expected = "one of view, create, str_replace, insert";
    match fields.text(&["command"], expected).as_str() {
        "view" => read_read(fields).map(Call::Read),
        "create" => read_write(fields).map(Call::Write),
        "str_replace" => read_edit(fields).map(Call::Edit),
        "insert" => {
            let path = fields.text(PATH, "a string, the path of a file");
            let line = fields.whole(&["insert_line", "line"], 0);
            if line.is_none() {
                fields.problem("insert_line", "a whole number, the line to insert behind", None);
            }
            let text = fields.text(&["insert_text", "new_str", "text"], "a string, the lines to insert");
            let step = EditStep::Insert { line: line.unwrap_or(0), text };
            fields.finish(Call::Edit(Edit { path, steps: vec![step] }))
        }
        "" => fields.finish(Call::Ls(Ls { path: None, ignored: false })),
        other => {
            let came = quoted(other);
            fields.values.clear();
            fields.problem("command", expected, Some(came));
            fields.finish(Call::Ls(Ls { path: None, ignored: false }))
        }
    }
}

/// Returns the patch of a command that applies one, which some models write as if it were a program.
fn patch_of_command(words: &[String]) -> Option<String> {
    if let [program, patch] = words
        && folded(program) == "applypatch"
    {
        return Some(patch.clone());
    }
    let script = script(words);
    let rest = script.trim().strip_prefix("apply_patch")?.trim_start().strip_prefix("<<")?.trim_start();
    // Only with a quoted delimiter is the text taken by a shell as it stands.
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (delimiter, rest) = rest[1..].split_once(quote)?;
    let patch = rest.strip_prefix('\n')?.strip_suffix(delimiter)?;
    (!delimiter.is_empty() && patch.ends_with('\n') && crate::patch::looks_like_one(patch))
        .then(|| patch.to_owned())
}

/// Returns the words of a command as one script.
fn script(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        [shell, flag, script]
            if is_shell(shell) && matches!(flag.as_str(), "-c" | "-lc" | "-ec" | "-lec") =>
        {
            script.clone()
        }
        words => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("bash" | "sh" | "zsh" | "dash"))
}

/// Returns `word` such that a shell takes it for one word.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Fields {
    fn parse(tool: &'static str, arguments: &str) -> Result<Self, Refused> {
        let refused = |reason: String| Refused::NoObject { tool: tool.to_owned(), reason };
        let text = arguments.trim();
        if text.is_empty() {
            // What a model that wants to say `{}` often sends.
            return Ok(Self { tool, values: Map::new(), problems: Vec::new() });
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Ok(Self { tool, values, problems: Vec::new() }),
            Ok(other) => Err(refused(format!("{} came", described(&other)))),
            Err(error) => Err(refused(format!("this is no JSON ({error})"))),
        }
    }

    fn problem(&mut self, field: &str, expected: &str, came: Option<String>) {
        self.problems.push(Problem { field: field.to_owned(), expected: expected.to_owned(), came });
    }

    /// Takes the value out that stands under one of the spellings.
    fn take(&mut self, spellings: &[&str]) -> Option<(String, Value)> {
        let same = |key: &str, spelling: &str| {
            key == spelling || (!key.starts_with('-') && folded(key) == folded(spelling))
        };
        let mut found: Option<(String, Value)> = None;
        for spelling in spellings {
            let keys: Vec<String> = self.values.keys().filter(|key| same(key, spelling)).cloned().collect();
            for key in keys {
                let Some(value) = self.values.shift_remove(&key) else { continue };
                match &found {
                    Some((first, earlier)) if *earlier != value && !value.is_null() => {
                        let expected = format!("nothing beside `{first}`, which means the same");
                        self.problem(&key, &expected, Some(described(&value)));
                    }
                    Some(_) => {}
                    None => found = Some((key, value)),
                }
            }
        }
        found.filter(|(_, value)| !value.is_null())
    }

    /// Takes out what is understood and means nothing here.
    fn drop_any(&mut self, spellings: &[&str]) {
        for spelling in spellings {
            self.take(&[spelling]);
        }
    }

    fn text(&mut self, spellings: &[&str], expected: &str) -> String {
        match self.take(spellings) {
            Some((_, Value::String(text))) => return text,
            Some((name, other)) => self.problem(&name, expected, Some(described(&other))),
            None => self.problem(spellings[0], expected, None),
        }
        String::new()
    }

    fn text_or(&mut self, spellings: &[&str]) -> Option<String> {
        match self.take(spellings)? {
            (_, Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
            (name, other) => {
                self.problem(&name, "a string", Some(described(&other)));
                None
            }
        }
    }

    /// Takes a list of strings; one string is a list of one.
    fn texts(&mut self, spellings: &[&str]) -> Vec<String> {
        match self.take(spellings) {
            None => Vec::new(),
            Some((_, Value::String(text))) => vec![text],
            Some((name, Value::Array(values))) => {
                let texts: Option<Vec<String>> =
                    values.iter().map(|it| it.as_str().map(str::to_owned)).collect();
                if texts.is_none() {
                    self.problem(&name, "a list of strings", Some(described(&Value::Array(values))));
                }
                texts.unwrap_or_default()
            }
            Some((name, other)) => {
                self.problem(&name, "a list of strings", Some(described(&other)));
                Vec::new()
            }
        }
    }

    fn whole(&mut self, spellings: &[&str], min: u64) -> Option<u64> {
        let (name, value) = self.take(spellings)?;
        let number = match &value {
            Value::Number(number) => number.as_u64().or_else(|| whole_float(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if number.is_none_or(|number| number < min) {
            self.problem(&name, &format!("a whole number of at least {min}"), Some(described(&value)));
        }
        number
    }

    fn flag(&mut self, spellings: &[&str]) -> bool {
        match self.take(spellings) {
            None => false,
            Some((_, Value::Bool(flag))) => flag,
            Some((_, Value::String(text))) if text == "true" || text == "false" => text == "true",
            Some((name, other)) => {
                self.problem(&name, "true or false", Some(described(&other)));
                false
            }
        }
    }

    fn mode(&mut self) -> GrepMode {
        match self.text_or(&["mode", "output_mode"]).as_deref() {
            None | Some("content") => GrepMode::Content,
            Some("files" | "files_with_matches") => GrepMode::Files,
            Some("count") => GrepMode::Count,
            Some(other) => {
                self.problem("mode", "one of content, files, count", Some(quoted(other)));
                GrepMode::Content
            }
        }
    }

    /// Returns the words of a command; a script is one word.
    fn command(&mut self) -> Vec<String> {
        let spellings = ["command", "cmd", "script", "input", "code"];
        let expected = "a string, the command line, or a list of words";
        match self.take(&spellings) {
            Some((_, Value::String(text))) if !text.trim().is_empty() => return vec![text],
            Some((name, Value::Array(words))) if !words.is_empty() => {
                let texts: Option<Vec<String>> =
                    words.iter().map(|it| it.as_str().map(str::to_owned)).collect();
                match texts {
                    Some(texts) => return texts,
                    None => {
                        self.problem(&name, expected, Some("a list with something else in it".to_owned()));
                    }
                }
            }
            Some((name, other)) => self.problem(&name, expected, Some(described(&other))),
            None => self.problem(spellings[0], expected, None),
        }
        Vec::new()
    }

    fn replacement(&mut self) -> EditStep {
        let old = self.text(OLD, "a string, the exact text to replace");
        let new = match self.take(NEW) {
            Some((_, Value::String(text))) => text,
            Some((name, other)) => {
                self.problem(&name, "a string, the text to put in its place", Some(described(&other)));
                String::new()
            }
            None => {
                self.problem(NEW[0], "a string, the text to put in its place", None);
                String::new()
            }
        };
        let all = self.flag(ALL);
        // Gemini's agent states how many it expects; one or more is what we check anyway.
        let expected = self.whole(&["expected_replacements"], 1);
        EditStep::Replace { old, new, all: all || expected.is_some_and(|n| n > 1) }
    }

    fn steps(&mut self, name: &str, list: Value) -> Vec<EditStep> {
        let expected = "a list of objects, each with old_string and new_string";
        let Value::Array(list) = list else {
            self.problem(name, expected, Some(described(&list)));
            return Vec::new();
        };
        if list.is_empty() {
            self.problem(name, expected, Some("an empty list".to_owned()));
        }
        let mut steps = Vec::new();
        for (index, item) in list.into_iter().enumerate() {
            let Value::Object(values) = item else {
                self.problem(&format!("{name}[{index}]"), expected, Some(described(&item)));
                continue;
            };
            let mut inner = Self { tool: self.tool, values, problems: Vec::new() };
            steps.push(inner.replacement());
            inner.complain_of_the_rest();
            self.problems.extend(inner.problems.into_iter().map(|mut problem| {
                problem.field = format!("{name}[{index}].{}", problem.field);
                problem
            }));
        }
        steps
    }

    /// Reads `[first, last]`, where -1 is the last line there is.
    fn view_range(&mut self, name: &str, value: &Value) -> (Option<u64>, Option<u64>) {
        let numbers: Option<Vec<i64>> =
            value.as_array().and_then(|list| list.iter().map(Value::as_i64).collect());
        match numbers.as_deref() {
            Some([first, -1]) if *first >= 1 => (Some(first.unsigned_abs()), None),
            Some([first, last]) if *first >= 1 && last >= first => {
                (Some(first.unsigned_abs()), Some((last - first + 1).unsigned_abs()))
            }
            _ => {
                self.problem(name, "two line numbers, the first and the last", Some(described(value)));
                (None, None)
            }
        }
    }

    fn complain_of_the_rest(&mut self) {
        for (key, value) in std::mem::take(&mut self.values) {
            if !REMARKS.contains(&key.as_str()) {
                self.problem(&key, &format!("no such field for {}", self.tool), Some(described(&value)));
            }
        }
    }

    fn finish<T>(mut self, call: T) -> Result<T, Refused> {
        self.complain_of_the_rest();
        if self.problems.is_empty() {
            return Ok(call);
        }
        Err(Refused::BadFields { tool: self.tool.to_owned(), problems: self.problems })
    }
}

/// Returns a number that is written as `2.0` and whole all the same.
fn whole_float(number: f64) -> Option<u64> {
    let fits = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and within bounds")]
    fits.then_some(number as u64)
}

/// Returns a value in words, short enough for an error.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 40;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => Value::from(format!("{}…", &text[..end])).to_string(),
        None => Value::from(text).to_string(),
    }
}
