//! The tools: their names, what they say of themselves to a model, and their arguments.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::ToolError;

/// The names of the tools.
pub const TOOL_NAMES: [&str; 4] = [SEARCH, RESULT, LIST, SUMMARY];
pub const SEARCH: &str = "search_history";
pub const RESULT: &str = "get_tool_result";
pub const LIST: &str = "list_sessions";
pub const SUMMARY: &str = "session_summary";

/// The most that a page holds, and the most tokens of an answer.
pub const LIMIT_MAX: usize = 50;
pub const TOKENS_MAX: u64 = 25_000;
pub const TOKENS_MIN: u64 = 100;

/// What to search for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    #[serde(default)]
    pub query: String,
    pub tool: Option<String>,
    pub path: Option<String>,
    pub command: Option<String>,
    #[serde(default)]
    pub failed: bool,
    pub session: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
    pub max_tokens: Option<u64>,
}

/// Which result to read, and how much of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultRequest {
    pub id: String,
    pub session: Option<String>,
    pub from_line: Option<usize>,
    pub to_line: Option<usize>,
    pub query: Option<String>,
    pub max_tokens: Option<u64>,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListRequest {
    #[serde(default)]
    pub query: String,
    pub client: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

/// Which session to tell about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryRequest {
    pub session: String,
    pub max_tokens: Option<u64>,
}

/// Reads the arguments of a call.
pub fn parse<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, ToolError> {
    let given = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(given).map_err(|error| ToolError::Arguments(error.to_string()))
}

/// Returns a number of tokens within what is sensible.
pub fn budget(asked: Option<u64>, usual: u64) -> u64 {
    asked.unwrap_or(usual).clamp(TOKENS_MIN, TOKENS_MAX)
}

/// Returns a number of items within what is sensible.
pub fn limit(asked: Option<usize>, usual: usize) -> usize {
    asked.unwrap_or(usual).clamp(1, LIMIT_MAX)
}

/// Returns what each tool says of itself.
pub fn tools() -> Vec<Tool> {
    vec![
        tool(
            SEARCH,
            "Search history",
            "Search everything that agents did on this machine in past and present sessions: commands and their output, \
             files that were read or written, errors, and what was said. Best matches first, each with an id for \
             get_tool_result. Use it before running or reading something again, or when asked what happened earlier.",
            &json!({
                "query": string("Words that occur in what you look for; more of them rank better. \"exact phrase\", prefix*"),
                "tool": string("Only calls of this tool, by any agent's name for it: Bash, Read, Edit, apply_patch…"),
                "path": string("Only calls that name this file or directory, such as src/main.rs"),
                "command": string("Only calls that run this command, such as: cargo test"),
                "failed": {"type": "boolean", "description": "Only results that failed or had an exit code other than 0"},
                "session": string("Only in this session, by its id"),
                "since": string("Only from then on: 2026-02-28, 2026-02-28T09:05:07Z, or an age such as 7d or 2h"),
                "until": string("Only before then, given likewise"),
                "limit": number("How many at most (default 8)", 1, LIMIT_MAX as u64),
                "cursor": string("The cursor that the previous page ended with"),
                "max_tokens": tokens(2_000),
            }),
            &[],
        ),
        tool(
            RESULT,
            "Get tool result",
            "Read what a tool call returned, word for word, by an id from search_history or session_summary: all of it, \
             lines from_line to to_line, or only the lines around the words of a query.",
            &json!({
                "id": string("SESSION/HANDLE as search_history shows it; or a handle from a shortened result, such as e5m8fv2z"),
                "session": string("The session, where id is a handle alone"),
                "from_line": number("The first line to read", 1, u64::from(u32::MAX)),
                "to_line": number("The last line to read", 1, u64::from(u32::MAX)),
                "query": string("Only lines with one of these words, and those around them"),
                "max_tokens": tokens(4_000),
            }),
            &["id"],
        ),
        tool(
            LIST,
            "List sessions",
            "List sessions of agents, the latest first: id, title, agent, model, when, how many entries.",
            &json!({
                "query": string("Only sessions whose title has all of these words"),
                "client": string("Only sessions of this agent, such as claude-code or codex"),
                "since": string("Only those that went on since then: 2026-02-28, 2026-02-28T09:05:07Z, or an age such as 7d"),
                "until": string("Only those that began before then, given likewise"),
                "limit": number("How many at most (default 20)", 1, LIMIT_MAX as u64),
                "cursor": string("The cursor that the previous page ended with"),
            }),
            &[],
        ),
        tool(
            SUMMARY,
            "Session summary",
            "Say what happened in a session: what the user asked for, the files that were read and changed, the commands \
             that were run and how they ended, what failed, and the last answer. Each with ids for get_tool_result.",
            &json!({
                "session": string("The session, by its id"),
                "max_tokens": tokens(2_000),
            }),
            &["session"],
        ),
    ]
}

fn tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    properties: &Value,
    required: &[&str],
) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let hints = ToolAnnotations::with_title(title).read_only(true).idempotent(true).open_world(false);
    Tool::new(name, description, schema).with_title(title).with_annotations(hints)
}

fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str, minimum: u64, maximum: u64) -> Value {
    json!({"type": "integer", "minimum": minimum, "maximum": maximum, "description": description})
}

fn tokens(usual: u64) -> Value {
    number(&format!("The size of the answer in tokens (default {usual})"), TOKENS_MIN, TOKENS_MAX)
}
