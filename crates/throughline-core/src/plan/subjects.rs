//! What a call was about, for whoever looks for it: the files that it names, and the command that it runs.
//!
//! The planner asks for the one thing by which a later call supersedes an earlier one; who searches asks for all of
//! them, of tools of any kind.

use super::arguments::{self, Leaf};
use super::tools::{FILE_KEYS, ToolKind, ToolRules, patched_files};
use crate::{Call, Input};

/// What a call was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    /// The files and directories that it names.
    pub paths: Vec<String>,
    /// The command that it runs.
    pub command: Option<String>,
}

/// Members that name a directory, in tools that look around.
const FOLDER_KEYS: [&str; 6] = ["dir", "dir_path", "directory", "folder", "cwd", "workdir"];

/// Members that hold a command, where the name of the tool does not say that it runs one.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];

/// Members that hold a patch, or several files.
const LISTS: [&str; 4] = ["paths", "files", "file_paths", "targets"];

impl Subjects {
    /// Returns what a call was about, by its arguments and what is known of tools of that name.
    #[must_use]
    pub fn of(call: &Call) -> Self {
        let rules = ToolRules::default();
        let (kind, text) = (rules.kind(&call.name), call.input.text());
        match (&call.input, arguments::leaves(text)) {
            (Input::Arguments(_), Some(leaves)) => Self {
                paths: paths(kind, &rules, call, &leaves),
                command: match kind {
                    ToolKind::Command => rules.command(call),
                    ToolKind::Other => arguments::member(text, &leaves, &COMMAND_KEYS).map(|(_, it)| it),
                    _ => None,
                },
            },
            (_, _) if kind == ToolKind::Command => {
                Self { paths: rules.usage(call).files, command: Some(text.to_string()) }
            }
            _ => Self { paths: patched_files(text).collect(), command: None },
        }
    }
}

fn paths(kind: ToolKind, rules: &ToolRules, call: &Call, leaves: &[Leaf]) -> Vec<String> {
    let text = call.input.text();
    let name_of = |leaf: &Leaf| &text[leaf.name.clone()];
    let is_path = |leaf: &&Leaf| {
        leaf.is_member && (FILE_KEYS.contains(&name_of(leaf)) || FOLDER_KEYS.contains(&name_of(leaf)))
            || LISTS.contains(&name_of(leaf))
    };
    let value = |leaf: &Leaf| arguments::unescaped(&text[leaf.raw.clone()]);
    let mut paths: Vec<String> = leaves.iter().filter(is_path).map(value).collect();
    if kind == ToolKind::Write {
        // A patch stands in a member of any name.
        let patches = leaves.iter().filter(|leaf| leaf.is_member && text[leaf.raw.clone()].contains("*** "));
        paths.extend(patches.flat_map(|leaf| patched_files(&value(leaf)).collect::<Vec<_>>()));
    } else if kind == ToolKind::Command {
        // A shell may be given a patch.
        paths.extend(rules.usage(call).files);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::super::testing::call;
    use super::*;

    fn subjects(name: &str, arguments: &str) -> (Vec<String>, Option<String>) {
        let entry = call("1", name, arguments);
        let subjects = Subjects::of(entry.as_call().unwrap());
        (subjects.paths, subjects.command)
    }

    #[test]
    fn a_call_is_about_the_files_that_it_names_and_the_command_that_it_runs() {
        let patch =
            r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch"}"#;
        for (name, arguments, paths, command) in [
            ("Read", r#"{"file_path":"src/main.rs"}"#, vec!["src/main.rs"], None),
            ("Grep", r#"{"pattern":"x","path":"src"}"#, vec!["src"], None),
            ("apply_patch", patch, vec!["a.rs", "b.rs"], None),
            ("read_many_files", r#"{"paths":["a","b"]}"#, vec!["a", "b"], None),
            ("shell", r#"{"command":["bash","-lc","ls"],"workdir":"/w"}"#, vec!["/w"], Some("bash -lc ls")),
            ("mine", r#"{"command":"ls"}"#, vec![], Some("ls")),
            ("str_replace_editor", r#"{"command":"view","path":"a"}"#, vec!["a"], None),
            ("Bash", "not json", vec![], None),
        ] {
            let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
            let (found, ran) = subjects(name, arguments);
            assert_eq!(found, paths, "{name}");
            if arguments != "not json" {
                assert_eq!(ran.as_deref(), command, "{name}");
            }
        }
    }
}
