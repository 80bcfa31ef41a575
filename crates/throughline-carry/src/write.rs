//! Writing sessions: one door to the formats, and what they share.

use crate::fit::ask;
use crate::{Agent, Millis, Written, claude_code, codex, moment, opencode};
use throughline_core::{Entry, NameMap, Prompt, Report, Role, Rules, Text};
use throughline_wire::json::Document;
use throughline_wire::{encode_request, history_field};

/// What stands at the head of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its id, in the agent's form.
    pub id: Text,
    /// The directory that it works in.
    pub cwd: Text,
    /// Its title.
    pub title: Text,
    /// The model that answered last, where it is known.
    pub model: Option<Text>,
    /// The version of the agent that is said to have written it.
    pub version: Text,
    /// When it began.
    pub started: Millis,
}

/// Writes a session that the agent resumes; with opencode, that it imports.
#[must_use]
pub fn write_session(agent: Agent, header: &Header, entries: &[Written]) -> String {
    match agent {
        Agent::ClaudeCode => claude_code::write(header, entries),
        Agent::Codex => codex::write(header, entries),
        Agent::Opencode => opencode::write(header, entries),
        // Nobody could go on with it; see `Agent::WRITABLE`.
        Agent::VsCode => String::new(),
    }
}

/// Returns the file that a session is kept in, below the place where the agent keeps its sessions.
#[must_use]
pub fn file_name(agent: Agent, header: &Header) -> String {
    match agent {
        Agent::ClaudeCode => format!("{}/{}.jsonl", project_folder(&header.cwd), header.id),
        Agent::Codex => {
            let time = moment::iso(header.started)[..19].replace(':', "-");
            format!("{}/rollout-{time}-{}.jsonl", moment::date_path(header.started), header.id)
        }
        Agent::Opencode | Agent::VsCode => format!("{}.json", header.id),
    }
}

/// Returns the folder in which Claude Code keeps the sessions of a directory.
#[must_use]
pub fn project_folder(cwd: &str) -> String {
    cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Returns the messages that one entry is in the dialect of `rules`.
pub(crate) fn messages(entry: &Entry, rules: &Rules) -> Vec<String> {
    let mut entries = vec![entry.clone()];
    let is_answer = entry.side() == throughline_core::Side::Assistant;
    if is_answer {
        // The last message of a request loses the white space at its end; this one is not to be the last.
        entries.push(Entry::said(Role::User, "."));
    }
    let ask = ask(Vec::new(), rules.dialect);
    let prompt = Prompt {
        ask: &ask,
        rules,
        model: None,
        entries,
        tools: Vec::new(),
        tool_choice: None,
        without_reasoning: false,
        names: NameMap::default(),
        ids: NameMap::default(),
    };
    let body = encode_request(&prompt, &mut Report::default());
    let Ok(document) = Document::parse(body) else { return Vec::new() };
    let history = document.root().field(history_field(rules.dialect));
    let mut messages: Vec<String> = history
        .into_iter()
        .flat_map(|list| list.items().map(|item| item.raw().to_owned()).collect::<Vec<_>>())
        .collect();
    if is_answer {
        messages.pop();
    }
    messages
}
