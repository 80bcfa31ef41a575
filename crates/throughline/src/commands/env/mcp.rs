//! `throughline env CLIENT --mcp`: how a client asks the history as an MCP server.
//!
//! Claude Code and Codex have a command that adds a server, so a line for the shell is printed; of others, the part of
//! their file.

use super::find;
use super::key::quoted;
use crate::args::Args;
use crate::exit::CommandError;
use crate::output::{self, json_line};
use std::path::{Path, PathBuf};
use throughline_wire::json::quote;

/// How a client is told about a server.
enum Telling {
    /// By its own command, which is given the server's behind `--`.
    Command(&'static str),
    /// By a file.
    File { path: &'static str, fragment: fn(&[String]) -> String },
}

/// Prints how the client is told; without a client, which ones are known.
pub fn print(client: Option<&str>, args: &Args) -> Result<(), CommandError> {
    let Some(name) = client else {
        return Err(CommandError::bad_input("which client?")
            .hint("claude-code, codex, opencode and vscode are known; any other starts `throughline mcp`"));
    };
    let client = find(name)?;
    let Some(telling) = telling(client.name) else {
        return Err(CommandError::no(format!(
            "how {} is told about MCP servers is not known here",
            client.title
        ))
        .hint("let it start `throughline mcp`, or give it the address of `throughline mcp --listen ADDR`"));
    };
    let server = command(args);
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.field_str("client", client.name);
            writer.key("command");
            writer.begin_array();
            server.iter().for_each(|word| writer.string(word));
            writer.end_array();
            writer.end_object();
        }));
    }
    let text = match telling {
        Telling::Command(add) => {
            let words: Vec<String> = server.iter().map(|word| word_of_shell(word)).collect();
            format!(
                "# {}: eval \"$(throughline env {} --mcp)\" adds the history to its tools\n{add} -- {}\n",
                client.title,
                client.name,
                words.join(" "),
            )
        }
        Telling::File { path, fragment } => format!("// {}: for {path}\n{}", client.title, fragment(&server)),
    };
    output::print(&text)
}

fn telling(client: &str) -> Option<Telling> {
    match client {
        "claude-code" => Some(Telling::Command("claude mcp add --scope user throughline")),
        "codex" => Some(Telling::Command("codex mcp add throughline")),
        "opencode" => Some(Telling::File {
            path: "opencode.json in the project, or ~/.config/opencode/opencode.json",
            fragment: |server| {
                format!(
                    "{{\n  \"mcp\": {{\n    \"throughline\": {{ \"type\": \"local\", \"command\": [{}] }}\n  }}\n}}\n",
                    quoted_list(server),
                )
            },
        }),
        "vscode" => Some(Telling::File {
            path: ".vscode/mcp.json in the project, or MCP: Open User Configuration",
            fragment: |server| {
                let (program, arguments) = server.split_at(1);
                format!(
                    "{{\n  \"servers\": {{\n    \"throughline\": {{ \"command\": {}, \"args\": [{}] }}\n  }}\n}}\n",
                    quoted_list(program),
                    quoted_list(arguments),
                )
            },
        }),
        _ => None,
    }
}

/// Returns the command that a client starts the server with: what names the history here names it there.
fn command(args: &Args) -> Vec<String> {
    let mut words = vec![program(), "mcp".to_owned()];
    for (flag, path) in [("--config", &args.config), ("--data", &args.data)] {
        if let Some(path) = path {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            words.extend([flag.to_owned(), absolute.display().to_string()]);
        }
    }
    words
}

/// Returns the name of this program where it is found by it, and else its path.
fn program() -> String {
    const NAME: &str = "throughline";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|folder: PathBuf| folder.join(NAME).is_file());
    match std::env::current_exe() {
        Ok(program) if !is_found => Path::display(&program).to_string(),
        _ => NAME.to_owned(),
    }
}

fn quoted_list(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(", ")
}

/// Returns a word as a shell reads it, in quotation marks only where it needs them.
fn word_of_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}
