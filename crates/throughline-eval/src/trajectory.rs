//! Recorded runs: Chat Completions messages, one run on each line of a file, taken apart into units.

use crate::python::{dumps, is_space, is_word};
use serde_json::Value;

/// A run.
#[derive(Debug)]
pub struct Trajectory {
    /// Its units, in their order.
    pub units: Vec<Unit>,
    /// Where each of the model's turns begins, and the arguments of its calls.
    pub turns: Vec<Turn>,
}

/// A turn of the model.
#[derive(Debug)]
pub struct Turn {
    /// The first unit that is not before it.
    pub unit: usize,
    /// The arguments of its calls.
    pub arguments: Vec<String>,
    /// What it says.
    pub said: String,
}

/// A piece of a prompt.
#[derive(Debug)]
pub struct Unit {
    /// What it is.
    pub kind: Kind,
    /// The number of the call that it is or answers.
    pub pair: Option<usize>,
    /// The tool's name, or the role.
    pub name: String,
    /// What it says: the arguments of a call.
    pub text: String,
    /// How many results came before, if it is one.
    pub result: Option<usize>,
    /// What makes two calls the same: by rules for tools, and by name and arguments.
    pub keys: [Option<String>; 2],
    /// The id of the call that it is or answers.
    pub id: String,
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Instructions.
    System,
    /// The user's words.
    User,
    /// The model's words.
    Assistant,
    /// A call.
    Call,
    /// A result.
    Result,
}

/// Why a line is not a run.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Something is missing.
    #[error("no {0}")]
    Missing(&'static str),
}

const READS: [&str; 7] = ["Read", "read_file", "open", "view", "cat", "NotebookRead", "View"];
const WRITES: [&str; 7] =
    ["Edit", "Write", "MultiEdit", "create", "write_file", "str_replace_editor", "NotebookEdit"];
const SHELLS: [&str; 7] =
    ["Bash", "bash", "shell", "execute_bash", "run_command", "container.exec", "exec_command"];
const PATHS: [&str; 5] = ["file_path", "path", "filename", "notebook_path", "target_file"];

/// Commands that change something, as words that stand alone; a space is any white space.
const CHANGING: [&str; 23] = [
    "git commit",
    "git push",
    "git checkout",
    "git reset",
    "git apply",
    "git stash",
    "git merge",
    "git rebase",
    "git add",
    "rm",
    "mv",
    "cp",
    "mkdir",
    "touch",
    "pip install",
    "npm i",
    "tee",
    "sed -i",
    "patch",
    "curl -X",
    "docker",
    "kill",
    "chmod",
];

impl Trajectory {
    /// Reads a run.
    ///
    /// # Errors
    /// When the line is not one.
    pub fn parse(line: &str) -> Result<Self, TrajectoryError> {
        let value: Value = serde_json::from_str(line)?;
        let messages = value["messages"].as_array().ok_or(TrajectoryError::Missing("messages"))?;
        let mut reader = Reader::default();
        for message in messages {
            reader.handle_message(message)?;
        }
        let results = reader.units.iter_mut().filter(|unit| unit.kind == Kind::Result);
        results.enumerate().for_each(|(number, unit)| unit.result = Some(number));
        Ok(Self { units: reader.units, turns: reader.turns })
    }

    /// Returns how many results there are.
    #[must_use]
    pub fn results(&self) -> usize {
        self.units.iter().filter(|unit| unit.kind == Kind::Result).count()
    }
}

#[derive(Default)]
struct Reader {
    units: Vec<Unit>,
    turns: Vec<Turn>,
    /// The ids of all calls so far, by their numbers.
    ids: Vec<String>,
}

impl Reader {
    fn handle_message(&mut self, message: &Value) -> Result<(), TrajectoryError> {
        let role = message["role"].as_str().ok_or(TrajectoryError::Missing("role"))?;
        let text = match &message["content"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(items) if items.is_empty() => String::new(),
            other => dumps(other),
        };
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if role == "assistant" {
            let arguments = calls.iter().map(|call| arguments(call).to_owned()).collect();
            self.turns.push(Turn { unit: self.units.len(), arguments, said: text.clone() });
        }
        match role {
            "exit" => {}
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let pair = self.ids.iter().rposition(|known| known == id);
                let name = message["name"].as_str().unwrap_or_default();
                self.push(Kind::Result, pair, name, text, id);
            }
            _ => {
                if !text.is_empty() || calls.is_empty() {
                    let kind = match role {
                        "assistant" => Kind::Assistant,
                        "user" => Kind::User,
                        _ => Kind::System,
                    };
                    self.push(kind, None, role, text, "");
                }
                calls.iter().try_for_each(|call| self.handle_call(call))?;
            }
        }
        Ok(())
    }

    fn handle_call(&mut self, call: &Value) -> Result<(), TrajectoryError> {
        let name = call["function"]["name"].as_str().ok_or(TrajectoryError::Missing("function.name"))?;
        let id = call["id"].as_str().ok_or(TrajectoryError::Missing("tool_calls.id"))?;
        let number = self.ids.len();
        self.ids.push(id.to_owned());
        self.push(Kind::Call, Some(number), name, arguments(call).to_owned(), id);
        if let Some(unit) = self.units.last_mut() {
            unit.keys = keys(name, &unit.text);
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, pair: Option<usize>, name: &str, text: String, id: &str) {
        let (name, id) = (name.to_owned(), id.to_owned());
        self.units.push(Unit { kind, pair, name, text, result: None, keys: [None, None], id });
    }
}

fn arguments(call: &Value) -> &str {
    call["function"]["arguments"].as_str().unwrap_or_default()
}

/// Returns what makes two calls the same; none where nothing does.
fn keys(name: &str, arguments: &str) -> [Option<String>; 2] {
    let value = serde_json::from_str::<Value>(arguments).ok();
    let canonical = value.as_ref().map_or_else(|| arguments.to_owned(), |value| dumps(&sorted(value)));
    let exact = Some(format!("x\0{name}\0{canonical}"));
    let field = |name: &str| value.as_ref().and_then(|value| value.get(name));
    let path = PATHS.iter().find_map(|name| field(name)?.as_str()).filter(|path| !path.is_empty());
    let printed = |name: &str| match field(name) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => dumps(other),
    };
    match path {
        Some(path) if READS.contains(&name) => {
            let range = printed("offset") + &printed("view_range");
            [Some(format!("r\0{path}\0{range}")), exact]
        }
        Some(path) if WRITES.contains(&name) => [Some(format!("w\0{path}")), exact],
        _ if SHELLS.contains(&name) => {
            let command = match field("command").or_else(|| field("cmd")) {
                Some(Value::String(command)) => command.clone(),
                Some(other) => dumps(other),
                None => canonical,
            };
            if changes_something(&command) { [None, None] } else { [Some(format!("b\0{command}")), exact] }
        }
        _ => [None, exact],
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(fields.into_iter().map(|(name, field)| (name.clone(), sorted(field))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Says whether a command writes somewhere, as far as its words tell.
fn changes_something(command: &str) -> bool {
    if command.contains(">>") || command.contains("<<") {
        return true;
    }
    let after_arrow = command.split_once('>').map(|(_, after)| after);
    if after_arrow.is_some_and(|after| after.chars().any(|c| !is_space(c))) {
        return true;
    }
    let mut before = None;
    for (at, c) in command.char_indices() {
        let at_boundary = before.is_none_or(|before| is_word(before) != is_word(c)) && is_word(c);
        if at_boundary && CHANGING.iter().any(|words| stands_at(&command[at..], words)) {
            return true;
        }
        before = Some(c);
    }
    false
}

/// Says whether words stand at the beginning of a text, and end where a word ends.
fn stands_at(text: &str, words: &str) -> bool {
    let mut rest = text;
    for (number, word) in words.split(' ').enumerate() {
        if number > 0 {
            let trimmed = rest.trim_start_matches(is_space);
            if trimmed.len() == rest.len() {
                return false;
            }
            rest = trimmed;
        }
        let Some(after) = rest.strip_prefix(word) else { return false };
        rest = after;
    }
    !rest.starts_with(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_write_are_told_from_those_that_look() {
        for command in
            ["rm x", "ls && git  commit -m x", "a > b", "cat <<E", "sed -i s/a/b/ c", "curl -X POST"]
        {
            assert!(changes_something(command), "{command}");
        }
        for command in ["ls", "npm install", "format", "curl -XPOST", "git log", "echo >", "sed -n 1p"] {
            assert!(!changes_something(command), "{command}");
        }
    }

    #[test]
    fn a_run_is_taken_apart_into_units() {
        let line = r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"ok","tool_calls":
            [{"id":"a","function":{"name":"Read","arguments":"{\"path\":\"x\"}"}}]},
            {"role":"tool","tool_call_id":"a","content":"found"},{"role":"assistant","content":""}]}"#;
        let run = Trajectory::parse(line).unwrap();
        let kinds: Vec<Kind> = run.units.iter().map(|unit| unit.kind).collect();
        assert_eq!(kinds, [Kind::User, Kind::Assistant, Kind::Call, Kind::Result, Kind::Assistant]);
        assert_eq!(run.units[3].pair, Some(0));
        assert_eq!(run.turns.iter().map(|turn| turn.unit).collect::<Vec<_>>(), [1, 4]);
    }
}
