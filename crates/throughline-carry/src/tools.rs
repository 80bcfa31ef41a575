//! Tools of different agents that are one and the same, as data.
//!
//! A call goes by the other agent's name only if every argument it has is one that the other tool takes, in the same
//! sense and with the same value: then it is what happened, in other words. Whatever else a tool can do keeps a call
//! under its own name. An edit is not a patch: a patch says more than the edit did.

use crate::Agent;
use throughline_wire::json::{Document, Kind};

/// One tool, under the name that each agent has for it.
struct Same {
    /// For each agent, the name, and the names of the arguments in a fixed order.
    forms: &'static [(Agent, &'static str, &'static [&'static str])],
}

const TOOLS: [Same; 6] = [
    Same {
        forms: &[
            (Agent::ClaudeCode, "Bash", &["command"]),
            (Agent::Codex, "exec_command", &["cmd"]),
            // The name that Codex had for it before.
            (Agent::Codex, "shell_command", &["command"]),
            (Agent::Opencode, "bash", &["command"]),
        ],
    },
    Same {
        forms: &[
            (Agent::ClaudeCode, "Bash", &["command", "description", "timeout"]),
            (Agent::Opencode, "bash", &["command", "description", "timeout"]),
        ],
    },
    // Where a file is to be read from is counted differently.
    Same { forms: &[(Agent::ClaudeCode, "Read", &["file_path"]), (Agent::Opencode, "read", &["filePath"])] },
    Same {
        forms: &[
            (Agent::ClaudeCode, "Write", &["file_path", "content"]),
            (Agent::Opencode, "write", &["filePath", "content"]),
        ],
    },
    Same {
        forms: &[
            (Agent::ClaudeCode, "Edit", &["file_path", "old_string", "new_string", "replace_all"]),
            (Agent::Opencode, "edit", &["filePath", "oldString", "newString", "replaceAll"]),
        ],
    },
    Same {
        forms: &[
            (Agent::ClaudeCode, "Glob", &["pattern", "path"]),
            (Agent::Opencode, "glob", &["pattern", "path"]),
        ],
    },
];

/// Returns the name and the arguments that a call has with another agent, if it is a call of the same tool.
///
/// Nothing of the arguments is written anew but the names that differ.
#[must_use]
pub fn counterpart(to: Agent, name: &str, arguments: &str) -> Option<(&'static str, String)> {
    let is_own = |form: &&(Agent, &str, &[&str])| form.0 == to;
    TOOLS.iter().find_map(|same| {
        let (agent, _, from) = same.forms.iter().find(|(_, tool, _)| *tool == name)?;
        let (_, tool, into) = same.forms.iter().find(is_own).filter(|_| *agent != to)?;
        Some((*tool, renamed(arguments, from, into)?))
    })
}

/// Returns a JSON object with other names for its fields; nothing, if it has one that is not listed, or one twice.
fn renamed(object: &str, from: &[&str], into: &[&str]) -> Option<String> {
    let document = Document::parse(object).ok()?;
    let root = document.root();
    if root.kind() != Kind::Object {
        return None;
    }
    let (mut out, mut copied, mut seen) = (String::with_capacity(object.len() + 16), 0, Vec::new());
    for (name, value) in root.fields() {
        let at = from.iter().position(|listed| *listed == name)?;
        if seen.contains(&at) {
            return None;
        }
        seen.push(at);
        // The key stands right before its value, with nothing but a colon and white space between.
        let key = format!("\"{name}\"");
        let start = object[copied..value.offset()].rfind(&key)? + copied;
        let end = start + key.len();
        if !object[end..value.offset()].trim().starts_with(':') {
            return None;
        }
        out.push_str(&object[copied..start]);
        out.push_str(&format!("\"{}\"", into[at]));
        copied = end;
    }
    out.push_str(&object[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(to: Agent, name: &str, arguments: &str, expected: Option<(&str, &str)>) {
        let found = counterpart(to, name, arguments);
        assert_eq!(found.as_ref().map(|(name, arguments)| (*name, arguments.as_str())), expected);
    }

    #[test]
    fn a_call_goes_by_another_name_only_if_it_is_the_same() {
        check(Agent::Codex, "Bash", r#"{"command":"ls"}"#, Some(("exec_command", r#"{"cmd":"ls"}"#)));
        check(Agent::Codex, "Bash", r#"{"command":"ls","description":"List"}"#, None);
        check(Agent::Codex, "Bash", "not JSON", None);
        check(Agent::Codex, "Bash", r#"{"command":"a","command":"b"}"#, None);
        check(Agent::Codex, "exec_command", r#"{"cmd":"ls"}"#, None);
        check(Agent::ClaudeCode, "exec_command", r#"{"cmd":"ls","workdir":"/"}"#, None);
        check(
            Agent::ClaudeCode,
            "shell_command",
            r#"{"command":"ls"}"#,
            Some(("Bash", r#"{"command":"ls"}"#)),
        );
        check(Agent::Opencode, "Read", r#"{"file_path":"/a","offset":3}"#, None);
        check(Agent::Opencode, "Edit", r#"{"file_path":"/a"}"#, Some(("edit", r#"{"filePath":"/a"}"#)));
        check(Agent::Codex, "Edit", r#"{"file_path":"/a"}"#, None);
    }

    #[test]
    fn everything_but_the_names_stays_as_it_is() {
        let arguments = "{ \"command\" :\t\"echo \\\"command\\\" : é\" }";
        let there = counterpart(Agent::Codex, "Bash", arguments).unwrap();
        assert_eq!(there.1, "{ \"cmd\" :\t\"echo \\\"command\\\" : é\" }");
        assert_eq!(counterpart(Agent::ClaudeCode, there.0, &there.1).unwrap().1, arguments);
    }
}
