//! What can be found in a conversation: pairs of a call and its result, and what somebody said.
//!
//! The ledger pairs, over all branches of a conversation. Calls that the gateway answered itself and calls of the
//! tools of this server are left out: they repeat what others said.

use std::collections::BTreeSet;
use throughline_core::plan::{Handle, Subjects};
use throughline_core::{
    ConversationId, Entry, EntryId, Kind, Ledger, Outcome, Part, Role, Text, exit_code, joined_text,
};
use throughline_store::{
    Conversations, Entries, Exchanges, Heading, History, Kept, Moment, Paging, StoreError, short_id,
};

use crate::budget::clipped;
use crate::request::TOOL_NAMES;

/// A conversation with everything in it.
#[derive(Debug)]
pub struct Session {
    /// What the history says of it.
    pub heading: Heading,
    /// The client of its latest exchange.
    pub client: Option<Text>,
    /// The model of its latest exchange.
    pub model: Option<Text>,
    /// Its entries, in the order in which they were appended.
    pub kept: Vec<Kept>,
    /// What can be found in it, in the order of the first entry of each.
    pub units: Vec<Unit>,
}

/// Something that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A call with its result, by index; at least one of them is there.
    Pair {
        /// The call.
        call: Option<usize>,
        /// The result.
        result: Option<usize>,
    },
    /// Something said, or a summary, by index.
    Talk(usize),
}

/// How a call went, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// The command ended with this code.
    ExitCode(i32),
    /// The result is marked as a failure.
    Failed(Outcome),
    /// There is no result.
    Open,
}

impl Session {
    /// Reads a conversation; none if there is none of that id.
    pub async fn load(history: &dyn History, id: &ConversationId) -> Result<Option<Self>, StoreError> {
        let page = history.conversations(Conversations::One(id.clone())).await?;
        let Some(heading) = page.items.into_iter().next() else { return Ok(None) };
        let latest = history.exchanges(Exchanges::Of(id.clone(), Paging::first(1))).await?;
        let latest = latest.items.into_iter().next();
        let kept = history.entries(Entries::Conversation(id.clone())).await?;
        let units = units(&kept);
        let (client, model) = latest.map_or((None, None), |latest| (latest.client, latest.asked_model));
        Ok(Some(Self { heading, client, model, kept, units }))
    }

    /// Returns the entry at an index.
    pub fn entry(&self, at: usize) -> &Entry {
        &self.kept[at].entry
    }

    /// Returns the id by which models name the session: enough of it to tell it from others.
    pub fn short_id(&self) -> String {
        short_id(&self.heading.id).to_owned()
    }

    /// Returns the id by which models name a unit.
    pub fn unit_id(&self, unit: Unit) -> String {
        match unit {
            Unit::Pair { .. } => format!("{}/{}", self.short_id(), self.handle(unit)),
            Unit::Talk(at) => format!("{}/{}", self.short_id(), clip_id(&self.kept[at].id)),
        }
    }

    /// Returns the handle of a pair, the same as in the markers of shortened results.
    pub fn handle(&self, unit: Unit) -> Handle {
        let (call, result) = unit.halves();
        Handle::of(call.map(|at| self.entry(at)), result.map(|at| self.entry(at)))
    }

    /// Returns when the latest part of a unit was appended.
    pub fn at(&self, unit: Unit) -> Moment {
        unit.indexes().map(|at| self.kept[at].at).max().unwrap_or_default()
    }

    /// Returns what a unit was: the call in a line, or who spoke.
    pub fn title(&self, unit: Unit, chars_max: usize) -> String {
        match unit {
            Unit::Pair { call: Some(call), .. } => call_line(self.entry(call), chars_max),
            Unit::Pair { result, .. } => {
                let name = result
                    .and_then(|at| self.entry(at).as_return())
                    .and_then(|result| result.name.as_deref());
                format!("{} (the call is not in the history)", name.unwrap_or("a tool"))
            }
            Unit::Talk(at) => speaker(self.entry(at)).to_owned(),
        }
    }

    /// Returns what a tool was given, as text that can be searched.
    pub fn input_text(&self, unit: Unit) -> String {
        let call = unit.halves().0.and_then(|at| self.entry(at).as_call());
        call.map(|call| format!("{} {}", call.name, unescaped(call.input.text()))).unwrap_or_default()
    }

    /// Returns what a tool returned, or what somebody said.
    pub fn output_text(&self, unit: Unit) -> String {
        match unit {
            Unit::Pair { result, .. } => {
                let result = result.and_then(|at| self.entry(at).as_return());
                result.map(|result| readable(&text_of(&result.parts))).unwrap_or_default()
            }
            Unit::Talk(at) => talk(self.entry(at)).unwrap_or_default(),
        }
    }

    /// Returns how a unit ended; what was said just ends.
    pub fn ended(&self, unit: Unit) -> Ended {
        let Unit::Pair { call, result } = unit else { return Ended::Well };
        let Some(result) = result.and_then(|at| self.entry(at).as_return()) else { return Ended::Open };
        let tool = call.and_then(|at| self.entry(at).as_call()).map(|call| &*call.name);
        match (exit_code(tool, result), result.outcome) {
            (Some(code), _) if code != 0 => Ended::ExitCode(code),
            (_, Outcome::Ok) => Ended::Well,
            (_, outcome) => Ended::Failed(outcome),
        }
    }

    /// Returns the units that hold one of these entries.
    pub fn units_of(&self, entries: &BTreeSet<EntryId>) -> impl Iterator<Item = Unit> {
        let holds = |unit: &Unit| unit.indexes().any(|at| entries.contains(&self.kept[at].id));
        self.units.iter().copied().filter(holds)
    }
}

impl Unit {
    /// Returns the indexes of its entries.
    pub fn indexes(self) -> impl Iterator<Item = usize> {
        let (first, second) = match self {
            Self::Pair { call, result } => (call, result),
            Self::Talk(at) => (Some(at), None),
        };
        first.into_iter().chain(second)
    }

    const fn halves(self) -> (Option<usize>, Option<usize>) {
        match self {
            Self::Pair { call, result } => (call, result),
            Self::Talk(_) => (None, None),
        }
    }
}

impl Ended {
    /// Returns it in words, for behind a call; nothing where there is nothing to say.
    pub fn words(&self) -> String {
        match self {
            Self::Well => String::new(),
            Self::ExitCode(code) => format!("exit code {code}"),
            Self::Failed(Outcome::Denied) => "denied".to_owned(),
            Self::Failed(Outcome::Interrupted) => "interrupted".to_owned(),
            Self::Failed(Outcome::Unknown) => "outcome unknown".to_owned(),
            Self::Failed(_) => "failed".to_owned(),
            Self::Open => "no result".to_owned(),
        }
    }
}

/// How many characters of an entry's id are shown.
const ENTRY_ID_CHARS: usize = 12;

fn clip_id(id: &EntryId) -> &str {
    let id = id.as_str();
    id.char_indices().nth(ENTRY_ID_CHARS).map_or(id, |(end, _)| &id[..end])
}

fn units(kept: &[Kept]) -> Vec<Unit> {
    let entries: Vec<Entry> = kept.iter().map(|kept| kept.entry.clone()).collect();
    let ledger = Ledger::of(&entries);
    let pairs = ledger.pairs().iter().map(|pair| Unit::Pair { call: Some(pair.call), result: pair.result });
    let alone = (0..entries.len()).filter_map(|at| match &entries[at].kind {
        Kind::Returned(_) if ledger.pair_of(at).is_none() => {
            Some(Unit::Pair { call: None, result: Some(at) })
        }
        Kind::Said(said) if matches!(said.role, Role::User | Role::Assistant) => Some(Unit::Talk(at)),
        Kind::Summarised(_) => Some(Unit::Talk(at)),
        _ => None,
    });
    let is_others = |unit: &Unit| !unit.indexes().any(|at| is_own(&entries[at]));
    let mut units: Vec<Unit> = pairs.chain(alone).filter(is_others).collect();
    units.sort_by_key(|unit| unit.indexes().min());
    units
}

/// Says whether an entry is a call that this program answers, or its result.
fn is_own(entry: &Entry) -> bool {
    let is_ours = |name: &str| {
        let bare = name.rsplit("__").next().unwrap_or(name);
        let bare = bare.rsplit(['.', ':', '/']).next().unwrap_or(bare);
        TOOL_NAMES.contains(&bare)
    };
    entry.is_hidden() || entry.as_call().is_some_and(|call| is_ours(&call.name))
}

/// Returns a call in a line: the command or the file that it is about, or its arguments.
fn call_line(entry: &Entry, chars_max: usize) -> String {
    let Some(call) = entry.as_call() else { return String::new() };
    let Subjects { paths, command } = Subjects::of(call);
    let subject = command.or_else(|| (!paths.is_empty()).then(|| paths.join(", ")));
    let subject = subject.unwrap_or_else(|| call.input.text().to_string());
    format!("{}: {}", call.name, clipped(&subject, chars_max))
}

fn speaker(entry: &Entry) -> &'static str {
    match &entry.kind {
        Kind::Said(said) if said.role == Role::User => "user said",
        Kind::Said(_) => "assistant said",
        _ => "summary of earlier work",
    }
}

/// Returns what an entry says in words; none if it says nothing.
pub fn talk(entry: &Entry) -> Option<String> {
    match &entry.kind {
        Kind::Said(said) => Some(text_of(&said.parts)),
        Kind::Summarised(summary) => Some(summary.text.to_string()),
        _ => None,
    }
}

/// Returns the text of parts; what is no text is named.
fn text_of(parts: &[Part]) -> String {
    let others = parts.iter().filter(|part| part.as_text().is_none()).count();
    let text = joined_text(parts).to_string();
    match others {
        0 => text,
        _ if text.is_empty() => format!("[{others} pictures or files, which are not shown here]"),
        _ => format!("{text}\n[{others} pictures or files, which are not shown here]"),
    }
}

/// Returns a result as a person reads it. Some tools answer with an object on one line that holds whole texts; those
/// are written out, member by member, so that they have lines.
fn readable(text: &str) -> String {
    if !text.starts_with('{') || !text.contains("\\n") {
        return text.to_owned();
    }
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(text) else { return text.to_owned() };
    let mut out = String::new();
    for (name, value) in members {
        match value {
            serde_json::Value::String(value) if value.contains('\n') => {
                out.push_str(&format!("{name}:\n{}\n", value.trim_end_matches('\n')));
            }
            serde_json::Value::String(value) => out.push_str(&format!("{name}: {value}\n")),
            value => out.push_str(&format!("{name}: {value}\n")),
        }
    }
    out
}

/// Returns arguments without the escapes of JSON, for finding and not for reading.
fn unescaped(json: &str) -> String {
    json.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ").replace("\\\"", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_holds_texts_is_written_out() {
        let text = r#"{"stdout":"one\ntwo\n","exit_code":1,"note":"x"}"#;
        assert_eq!(readable(text), "stdout:\none\ntwo\nexit_code: 1\nnote: x\n");
        assert_eq!(readable(r#"{"a":1}"#), r#"{"a":1}"#);
        assert_eq!(readable("{ broken \\n"), "{ broken \\n");
    }
}
