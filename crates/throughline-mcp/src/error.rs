//! What can be wrong with a question, in words that tell a model what to do about it.

use throughline_store::StoreError;

/// Why a tool has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The arguments do not fit the tool's schema.
    #[error("invalid arguments: {0}")]
    Arguments(String),
    /// A search without words and without a filter.
    #[error("give a `query`, or narrow the search with `tool`, `path`, `command`, `failed` or `session`")]
    EmptySearch,
    /// No word of the query can be searched for.
    #[error(
        "the query `{0}` has no words to search for; give words or numbers that occur in what you look for"
    )]
    NoWords(String),
    /// That is no moment.
    #[error(
        "`{name}`: invalid time `{value}`; give a date (2026-02-28), a time (2026-02-28T09:05:07Z) or an age (7d, 2h)"
    )]
    Time {
        /// The argument.
        name: &'static str,
        /// What was given.
        value: String,
    },
    /// That cursor did not come from the same question.
    #[error("invalid cursor `{0}`; pass the one that the previous page ended with, and the same arguments")]
    Cursor(String),
    /// No session has that id.
    #[error("no session id matches `{0}`; list_sessions and search_history show the ids")]
    NoSession(String),
    /// Several sessions begin with that id.
    #[error("several sessions match `{id}`: {}; give more of the id", .candidates.join(", "))]
    ManySessions {
        /// What was given.
        id: String,
        /// Some of the sessions.
        candidates: Vec<String>,
    },
    /// Nothing has that id.
    #[error("nothing has the id `{0}`; search_history shows ids such as 2e09133f1326/e5m8fv2z")]
    NoResult(String),
    /// A handle alone, and it is not in one of the latest sessions.
    #[error(
        "no tool result in the {sessions} latest sessions has the handle `{handle}`; give the `session` as well"
    )]
    NoHandle {
        /// The handle.
        handle: String,
        /// How many sessions were looked at.
        sessions: usize,
    },
    /// The text has fewer lines.
    #[error("there are {lines} lines, and lines {from} to {to} were asked for")]
    NoLines {
        /// How many there are.
        lines: usize,
        /// The first that was asked for.
        from: usize,
        /// The last that was asked for.
        to: usize,
    },
    /// No line has one of the words.
    #[error("none of its {lines} lines contains `{query}`; ask without `query`, or by from_line and to_line")]
    NoMatch {
        /// How many lines there are.
        lines: usize,
        /// What was looked for.
        query: String,
    },
    /// The history cannot be opened.
    #[error("the history cannot be opened: {0}")]
    Open(String),
    /// The history cannot be read.
    #[error("the history cannot be read: {0}")]
    Store(#[from] StoreError),
}
