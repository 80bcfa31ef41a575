//! What is kept, in plain types: conversations, entries in their tree, exchanges, verdicts, settings.

use std::fmt;

use bytes::Bytes;
use throughline_core::{
    ConversationId, Dialect, Entry, EntryId, Kind, Outcome, Role, Text, Usage, joined_text,
};

use crate::Extension;

/// A moment, in milliseconds since the beginning of 1970; read from a clock by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub i64);

/// Names an exchange: one HTTP request and its answer. Minted by the caller, and unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(Text);

/// A conversation as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Its id.
    pub id: ConversationId,
    /// When it began.
    pub created: Moment,
    /// When something was last added to it.
    pub updated: Moment,
    /// How it was identified when it began: by a header, a session id of the client, its beginning.
    pub identified: Text,
    /// The first words of the user.
    pub title: Option<Text>,
    /// The backend that was chosen for it at run time.
    pub backend: Option<Text>,
    /// The directory that it works in, where that is known.
    pub project: Option<Text>,
    /// The conversation whose sub-agent this is, where that is known.
    pub parent: Option<ConversationId>,
    /// How many entries it has, over all its branches.
    pub entries: u64,
    /// How many exchanges it took.
    pub exchanges: u64,
}

/// An entry where it stands in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its id: it follows from the entry and everything before it.
    pub id: EntryId,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// The entry before it; none at a beginning.
    pub parent: Option<EntryId>,
    /// The exchange that brought it.
    pub exchange: Option<ExchangeId>,
    /// When it was appended.
    pub at: Moment,
    /// The entry itself, equal to the one that was appended.
    pub entry: Entry,
}

impl Kept {
    /// Says whether the entry is the one that was appended: whether its id follows from what it says.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let mut extension = Extension::new(self.conversation.clone(), self.parent.clone(), self.at);
        extension.extend([&self.entry]);
        extension.tip().as_ref() == Some(&self.id)
    }
}

/// One HTTP request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Its id.
    pub id: ExchangeId,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// The last entry before the answer.
    pub before: Option<EntryId>,
    /// The last entry of the answer.
    pub after: Option<EntryId>,
    /// The dialect that the client spoke.
    pub dialect: Dialect,
    /// The client, as it names itself.
    pub client: Option<Text>,
    /// The model that was asked for.
    pub asked_model: Option<Text>,
    /// When the request came.
    pub started: Moment,
    /// When the answer was through.
    pub ended: Option<Moment>,
    /// How it ended, in a word or two: `end_turn`, `tool_calls`, `failed`, `broken`, `cancelled`.
    pub ending: Option<Text>,
    /// The HTTP status that the client saw.
    pub status: Option<u16>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// The tries at backends, in their order; the last one is the one that counts.
    pub attempts: Vec<Attempt>,
    /// The response that the client was given an id of.
    pub response: Option<ResponseMark>,
}

/// One try at one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The backend.
    pub backend: Text,
    /// The dialect that it was spoken to in.
    pub dialect: Dialect,
    /// The model that was sent.
    pub model: Option<Text>,
    /// How tool history was shown.
    pub strategy: Option<Text>,
    /// When it began.
    pub started: Moment,
    /// When it was through.
    pub ended: Option<Moment>,
    /// The HTTP status that the backend answered with.
    pub status: Option<u16>,
    /// Why it failed, if it did.
    pub failure: Option<Text>,
    /// The step of compaction whose decisions its prompt shows, if it shows a history that was shortened.
    pub compaction: Option<StepId>,
    /// How large its prompt is, if it shows a history that was shortened.
    pub plan: Option<PlanSizes>,
    /// The backend's own response that it goes on from, if the backend keeps that; empty where only that is known.
    pub continues: Option<Text>,
    /// The tool by which the model can have back what was taken out, if it was offered one.
    pub recall: Option<Text>,
}

/// How many tokens a prompt has that shows a history which was shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanSizes {
    /// As it came.
    pub before: u64,
    /// As it is shown.
    pub after: u64,
    /// What of that are calls and results.
    pub tools: u64,
}

/// What kind of document of an attempt something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// The request as the backend was sent it.
    Sent,
    /// The request as it came from the client.
    Received,
    /// Where each part of what was sent comes from, in a form of its writer's own.
    Provenance,
    /// What was changed for the backend, as JSON.
    Report,
}

/// Names a step of compaction: the attempt that took it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// The exchange.
    pub exchange: ExchangeId,
    /// The number of the attempt in it, from 0.
    pub attempt: u32,
}

/// What one attempt decided about the history of its conversation, beyond what was decided before.
///
/// The steps of a conversation make a tree: two branches of a history are shortened each for itself. Steps are
/// appended and never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionStep {
    /// The attempt that took it.
    pub id: StepId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The backend that it was taken for.
    pub backend: Text,
    /// The model that it was taken for.
    pub model: Text,
    /// When.
    pub at: Moment,
    /// The step that it goes further than; none if nothing was decided before.
    pub follows: Option<StepId>,
    /// What is new, as the text form of core's decisions.
    pub decisions: Text,
    /// The words of a model for what [`CompactionStep::follows`] has put into the digest. A step that brings words
    /// decides nothing.
    pub summary: Option<Text>,
}

/// A response that the client may refer to later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseMark {
    /// The id that the client was given.
    pub id: Text,
    /// Whether it may be had again: what the client's `store` said.
    pub stored: bool,
    /// Whether the client has deleted it since.
    pub deleted: bool,
}

/// One event of a provider's stream, unaltered; an answer that came whole is a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEvent {
    /// When it came.
    pub at: Moment,
    /// What its `event` line said.
    pub name: Option<Text>,
    /// What its `data` lines said: JSON, `[DONE]`, or anything else.
    pub data: Text,
}

/// What passed in an exchange; only what was asked for is filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The request of each attempt, by the attempt's number, exactly as it was sent.
    pub sent: Vec<(u32, Bytes)>,
    /// The client's request, by the number of the attempt that it was kept with, exactly as it came.
    pub received: Vec<(u32, Bytes)>,
    /// Where each part of what was sent comes from, by the attempt's number.
    pub provenance: Vec<(u32, Bytes)>,
    /// What was changed for the backend, as JSON, by the attempt's number.
    pub reports: Vec<(u32, Bytes)>,
    /// The events of each attempt, by the attempt's number, in their order.
    pub events: Vec<(u32, ProviderEvent)>,
    /// The final answer as the client was given it, unless it was forgotten.
    pub answer: Option<Text>,
}

/// What was learned about a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The backend.
    pub backend: Text,
    /// The model; empty for all of them.
    pub model: Text,
    /// What it is about: `native_tool_history`, `server_state`.
    pub capability: Text,
    /// What was found: `yes` or `no`.
    pub verdict: Text,
    /// What told us.
    pub reason: Text,
    /// When.
    pub at: Moment,
    /// Until when it holds.
    pub expires: Option<Moment>,
}

/// The setting that says in which directory a conversation works.
pub const PROJECT: &str = "project";

/// The setting that says whose sub-agent a conversation is.
pub const PARENT: &str = "parent";

/// A setting that was made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What it holds for.
    pub scope: Scope,
    /// Its name: `backend` for a switch.
    pub name: Text,
    /// Its value; none takes the setting back.
    pub value: Option<Text>,
    /// When it was made.
    pub at: Moment,
}

/// What a setting holds for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything.
    Everywhere,
    /// One conversation.
    Conversation(ConversationId),
}

/// What holds until further notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Verdicts, expired ones included, by backend, model and capability.
    pub learned: Vec<Learned>,
    /// Settings, by scope and name, without those that describe a conversation ([`PROJECT`], [`PARENT`]).
    pub settings: Vec<Setting>,
}

/// What kind of entry a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptKind {
    /// Something said.
    Said(Role),
    /// Reasoning.
    Thought,
    /// A tool call.
    Called,
    /// A tool's result, and how it went.
    Returned(Outcome),
    /// Anything else.
    Other,
}

/// One result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The conversation.
    pub conversation: ConversationId,
    /// The entry.
    pub entry: EntryId,
    /// The exchange that brought it.
    pub exchange: Option<ExchangeId>,
    /// When it was appended.
    pub at: Moment,
    /// What kind of entry it is.
    pub kind: KeptKind,
    /// The tool, of a call or a result.
    pub tool: Option<Text>,
    /// The exit code that the result of a command says.
    pub exit_code: Option<i32>,
    /// The text around the first match, on one line.
    pub snippet: String,
}

impl DocumentKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sent, Self::Received, Self::Provenance, Self::Report];
}

impl Recording {
    /// Returns the documents of a kind, by the numbers of their attempts.
    #[must_use]
    pub fn documents(&self, kind: DocumentKind) -> &[(u32, Bytes)] {
        match kind {
            DocumentKind::Sent => &self.sent,
            DocumentKind::Received => &self.received,
            DocumentKind::Provenance => &self.provenance,
            DocumentKind::Report => &self.reports,
        }
    }

    /// Returns the document of a kind that an attempt has.
    #[must_use]
    pub fn document(&self, attempt: u32, kind: DocumentKind) -> Option<&Bytes> {
        let is_it = |(number, _): &&(u32, Bytes)| *number == attempt;
        self.documents(kind).iter().find(is_it).map(|(_, body)| body)
    }

    pub(crate) fn push_document(&mut self, attempt: u32, kind: DocumentKind, body: Bytes) {
        let documents = match kind {
            DocumentKind::Sent => &mut self.sent,
            DocumentKind::Received => &mut self.received,
            DocumentKind::Provenance => &mut self.provenance,
            DocumentKind::Report => &mut self.reports,
        };
        documents.push((attempt, body));
    }
}

impl Attempt {
    /// Returns an attempt that has just begun.
    #[must_use]
    pub const fn begun(backend: Text, dialect: Dialect, started: Moment) -> Self {
        Self {
            backend,
            dialect,
            model: None,
            strategy: None,
            started,
            ended: None,
            status: None,
            failure: None,
            compaction: None,
            plan: None,
            continues: None,
            recall: None,
        }
    }
}

impl ExchangeId {
    /// Wraps an id that was minted elsewhere.
    pub fn new(id: impl Into<Text>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Exchange {
    /// Returns an exchange that has just begun, with nothing tried yet.
    #[must_use]
    pub const fn begun(
        id: ExchangeId,
        conversation: ConversationId,
        dialect: Dialect,
        started: Moment,
    ) -> Self {
        Self {
            id,
            conversation,
            before: None,
            after: None,
            dialect,
            client: None,
            asked_model: None,
            started,
            ended: None,
            ending: None,
            status: None,
            usage: None,
            attempts: Vec::new(),
            response: None,
        }
    }

    /// Returns the exchange as it is after an update: attempts stay, and what was deleted stays deleted.
    pub(crate) fn brought_up_to_date(&self, new: &Self) -> Self {
        let mut merged = new.clone();
        merged.attempts.extend(self.attempts.iter().skip(new.attempts.len()).cloned());
        let was_deleted = self.response.as_ref().is_some_and(|response| response.deleted);
        match &mut merged.response {
            Some(response) => response.deleted |= was_deleted,
            None => merged.response.clone_from(&self.response),
        }
        merged
    }
}

impl KeptKind {
    /// Returns what kind of entry this is.
    #[must_use]
    pub const fn of(entry: &Entry) -> Self {
        match &entry.kind {
            Kind::Said(said) => Self::Said(said.role),
            Kind::Thought(_) => Self::Thought,
            Kind::Called(_) => Self::Called,
            Kind::Returned(returned) => Self::Returned(returned.outcome),
            _ => Self::Other,
        }
    }
}

const TITLE_CHARS_MAX: usize = 80;

/// Returns a title for a conversation that begins with `entries`: the first words of its user.
///
/// Agents wrap notes to the model in tags and put them in front of what the user typed; a text that opens
/// with a tag is passed over as long as there is another.
#[must_use]
pub fn title_of(entries: &[Entry]) -> Option<Text> {
    let from_user = |entry: &&Entry| entry.as_said().is_some_and(|said| said.role == Role::User);
    let texts: Vec<Text> = entries
        .iter()
        .filter(from_user)
        .filter_map(Entry::as_said)
        .flat_map(|said| said.parts.iter().map(|part| joined_text(std::slice::from_ref(part))))
        .filter(|text| !text.trim().is_empty())
        .collect();
    let typed = texts.iter().find(|text| !text.trim_start().starts_with('<'));
    typed.or(texts.first()).map(|text| first_words(text))
}

fn first_words(text: &str) -> Text {
    let words: Vec<&str> = text.split_whitespace().take(TITLE_CHARS_MAX).collect();
    let line = words.join(" ");
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_what_the_user_typed_first() {
        let entries = [
            Entry::said(Role::System, "You are helpful."),
            Entry::said(Role::User, "<reminder>note</reminder>"),
            Entry::said(Role::User, " fix\n the   tests "),
        ];
        assert_eq!(title_of(&entries), Some("fix the tests".into()));
        assert_eq!(title_of(&entries[..2]), Some("<reminder>note</reminder>".into()));
        assert_eq!(title_of(&entries[..1]), None);
    }

    #[test]
    fn a_long_title_is_cut_between_characters() {
        let title = title_of(&[Entry::said(Role::User, "é".repeat(200))]).unwrap();
        assert_eq!(title.chars().count(), TITLE_CHARS_MAX + 1);
    }
}
