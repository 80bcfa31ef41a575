//! The built-in tools: their names, what models are told about them, and the names that other agents use.
//!
//! Descriptions and schemas are exact texts: they are sent with every request, and a byte that differs would cost the
//! provider's prompt cache. Aliases are compared without regard to case, `_`, `-` and `.`.

use std::borrow::Cow;

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does, in words for the model.
    pub description: Cow<'static, str>,
    /// The JSON schema of its arguments, as text.
    pub schema: Cow<'static, str>,
}

/// A built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Read,
    Write,
    Edit,
    ApplyPatch,
    Bash,
    Glob,
    Grep,
    Ls,
    /// The editor that some agents have as one tool. It is not declared, and a call of it is one of the others.
    Editor,
}

struct Listing {
    tool: Builtin,
    name: &'static str,
    /// Other names, folded.
    aliases: &'static [&'static str],
    description: &'static str,
    schema: &'static str,
}

impl Builtin {
    /// Returns the tool that `name` means, as we call it or as others do.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let name = folded(name);
        if EDITOR.contains(&name.as_str()) {
            return Some(Self::Editor);
        }
        let known = |it: &&Listing| folded(it.name) == name || it.aliases.contains(&name.as_str());
        LISTINGS.iter().find(known).map(|it| it.tool)
    }

    /// Returns the tool's own name.
    pub(crate) fn name(self) -> &'static str {
        LISTINGS.iter().find(|it| it.tool == self).map_or("edit", |it| it.name)
    }

    /// Returns what models are told about the built-in tools, always in the same order.
    pub(crate) fn declarations() -> impl Iterator<Item = Declaration> {
        LISTINGS.iter().map(|it| Declaration {
            name: it.name.into(),
            description: it.description.into(),
            schema: it.schema.into(),
        })
    }
}

/// Returns a name without what people write differently: case and separators.
pub(crate) fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

const EDITOR: &[&str] =
    &["strreplaceeditor", "strreplacebasededittool", "texteditor", "editor", "fileeditor"];

const LISTINGS: &[Listing] = &[
    Listing {
        tool: Builtin::Read,
        name: "read",
        aliases: &[
            "readfile",
            "fileread",
            "view",
            "viewfile",
            "cat",
            "openfile",
            "getfile",
            "viewimage",
            "readtextfile",
        ],
        description: "Reads a file in the working directory. Text comes back as it is; PNG, JPEG, GIF and WebP come back as an image. Of a long file, ask for a part with offset and limit.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the working directory."},"offset":{"type":"integer","minimum":1,"description":"The first line to read, counted from 1."},"limit":{"type":"integer","minimum":1,"description":"How many lines to read."}},"required":["path"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Write,
        name: "write",
        aliases: &["writefile", "filewrite", "createfile", "create", "savefile", "writetofile", "putfile"],
        description: "Writes a file in the working directory as a whole, and creates it and its directories if they are not there. To change a part of a file, use edit.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the working directory."},"content":{"type":"string","description":"The whole new content."}},"required":["path","content"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Edit,
        name: "edit",
        aliases: &[
            "editfile",
            "fileedit",
            "strreplace",
            "replace",
            "replaceinfile",
            "multiedit",
            "searchreplace",
            "update",
        ],
        description: "Replaces text in a file. old_string must stand in the file exactly, white space included, and only once unless replace_all is true; give it enough lines around to be unique. An empty old_string creates a file that is not there yet.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"The file, relative to the working directory."},"old_string":{"type":"string","description":"The exact text to replace."},"new_string":{"type":"string","description":"The text to put in its place."},"replace_all":{"type":"boolean","description":"Replace every occurrence. False if left out."}},"required":["path","old_string","new_string"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::ApplyPatch,
        name: "apply_patch",
        aliases: &["applydiff", "patch", "patchfile", "applypatchtool"],
        description: "Applies a patch to one or more files, all of it or nothing. Either a unified diff, or this form:\n*** Begin Patch\n*** Update File: path/to/file\n@@ a line above the change, such as the head of a function (may be left out)\n an unchanged line\n-a line to remove\n+a line to add\n*** Add File: path/to/new\n+its lines\n*** Delete File: path/to/old\n*** End Patch\nBelow an Update File line, \"*** Move to: path\" renames the file.",
        schema: r#"{"type":"object","properties":{"patch":{"type":"string","description":"The patch."}},"required":["patch"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Bash,
        name: "bash",
        aliases: &[
            "shell",
            "sh",
            "exec",
            "execcommand",
            "runcommand",
            "runshellcommand",
            "executecommand",
            "runterminalcmd",
            "runinterminal",
            "terminal",
            "localshell",
            "shellcommand",
            "containerexec",
            "command",
        ],
        description: "Runs a command with bash in the working directory and gives back stdout, stderr and the exit code. There is no terminal and no input. Files can be written in the working directory and in $TMPDIR only. There may be no network. Whatever the command leaves running is ended with it. Files that run something by themselves (.git/config, .git/hooks, .envrc, editors' task files and the like) are protected: what a command writes to them is undone, unless protected names them and the user agrees.",
        schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"The command line or script."},"cwd":{"type":"string","description":"The directory to run it in, relative to the working directory."},"timeout_seconds":{"type":"integer","minimum":1,"description":"How long it may take."},"protected":{"type":"array","items":{"type":"string"},"description":"Protected files or directories that the command writes. The user is asked."}},"required":["command"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Glob,
        name: "glob",
        aliases: &["findfiles", "globtool", "filesearch", "searchfiles", "find", "findfile", "globfiles"],
        description: "Finds files by a pattern such as **/*.rs or src/**/test_*.py, sorted by path. A pattern without a slash matches in every directory. What .gitignore names is left out.",
        schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"The pattern: *, **, ?, [a-z], {a,b}."},"path":{"type":"string","description":"The directory to look in, relative to the working directory."},"ignored":{"type":"boolean","description":"Include files that .gitignore names. False if left out."}},"required":["pattern"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Grep,
        name: "grep",
        aliases: &[
            "search",
            "ripgrep",
            "rg",
            "greptool",
            "grepsearch",
            "searchfilecontent",
            "codesearch",
            "searchtext",
            "searchcode",
            "grepfiles",
        ],
        description: "Finds lines that match a regular expression (Rust syntax: no look-around, no back-references). What .gitignore names and binary files are left out.",
        schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"The regular expression."},"path":{"type":"string","description":"The file or directory to look in, relative to the working directory."},"glob":{"type":"string","description":"Look only into files that match this pattern, such as *.rs."},"ignore_case":{"type":"boolean","description":"Take upper and lower case as the same. False if left out."},"mode":{"type":"string","enum":["content","files","count"],"description":"What to give back: the lines, the files, or the number of lines in each file. The lines if left out."},"before":{"type":"integer","minimum":0,"description":"How many lines to show before each match."},"after":{"type":"integer","minimum":0,"description":"How many lines to show after each match."},"limit":{"type":"integer","minimum":1,"description":"The most matches to give back."},"ignored":{"type":"boolean","description":"Include files that .gitignore names. False if left out."}},"required":["pattern"],"additionalProperties":false}"#,
    },
    Listing {
        tool: Builtin::Ls,
        name: "ls",
        aliases: &[
            "listdir",
            "listdirectory",
            "listfiles",
            "dir",
            "list",
            "readdir",
            "viewdirectory",
            "listdirectorycontents",
        ],
        description: "Lists a directory: names in order, directories with a slash behind them, links with an at sign. What .gitignore names is left out and counted.",
        schema: r#"{"type":"object","properties":{"path":{"type":"string","description":"The directory, relative to the working directory; that itself if left out."},"ignored":{"type":"boolean","description":"Include what .gitignore names. False if left out."}},"additionalProperties":false}"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_name_means_two_tools() {
        let mut seen = BTreeMap::new();
        for listing in LISTINGS {
            for name in listing.aliases.iter().map(|it| (*it).to_owned()).chain([folded(listing.name)]) {
                assert_eq!(folded(&name), name, "aliases are written folded");
                assert_eq!(seen.insert(name.clone(), listing.name), None, "{name} is listed twice");
                assert!(!EDITOR.contains(&name.as_str()));
            }
        }
    }

    #[test]
    fn schemas_are_json_in_its_shortest_form() {
        for declaration in Builtin::declarations() {
            let schema: serde_json::Value =
                serde_json::from_str(&declaration.schema).expect("a schema is JSON");
            assert_eq!(schema.to_string(), declaration.schema, "{}", declaration.name);
        }
    }
}
