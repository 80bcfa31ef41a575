//! Tapes: what the record has of a turn, read together.

use super::ReplayError;
use crate::config::Compose;
use crate::egress::{Reel, Take};
use crate::gateway::now;
use crate::run_ids::run_of;
use crate::turn::hands::{Done, Kept};
use crate::turn::{Manner, Task, is_note, note, open_calls};
use crate::view;
use std::collections::BTreeSet;
use throughline_core::{Call, ConversationId, EntryId, Kind, Text};
use throughline_store::{
    Batch, CompactionStep, Entries, Exchange, ExchangeId, Extension, History, Kept as KeptEntry, Locate,
    Moment, NewConversation, ProviderEvent, Recording, StoreError, Which, Write,
};
use throughline_wire::json::{Document, Node};
use tokio_util::sync::CancellationToken;

/// What the record tells of a run besides its exchanges: its task, and the notes behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunNotes {
    /// The first words of its task.
    pub task: Option<String>,
    /// How it ended, as JSON; nothing as long as it has not.
    pub ended: Option<Text>,
    /// What came of each replay that is kept, as JSON, with its moment.
    pub replays: Vec<(Moment, Text)>,
}

/// What the record has of a turn.
#[derive(Debug)]
pub struct Tape {
    /// The turn.
    pub turn: Text,
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// Its exchanges, with what passed in each.
    pub exchanges: Vec<(Exchange, Recording)>,
    /// What its calls returned, by their ids.
    pub done: Vec<(Text, Done)>,
    /// The settings that it had, as a configuration.
    pub settings: Text,
    /// How it ended, if it did.
    pub ended: Option<ProviderEvent>,
    begun: ProviderEvent,
    behind: Option<EntryId>,
    open: Vec<Call>,
    manner: Manner,
    opening: Vec<String>,
    composes: bool,
    /// Whether what is recorded is without secrets, and so not what was counted.
    pub(super) is_redacted: bool,
    cancelled_at: Option<(u32, u32)>,
}

/// So many exchanges before a turn may bear on it: what a backend keeps of them.
const EXCHANGES_BEFORE: usize = 32;

/// Finds the turn of that id, or all turns of the conversation of that id, in their order.
///
/// # Errors
/// When there is none, or the record cannot be read.
pub async fn find(history: &dyn History, typed: &str) -> Result<Vec<Tape>, ReplayError> {
    let by_key = history.locate(Locate::Key(Text::from(typed))).await?;
    let by_id = history.locate(Locate::Conversation(ConversationId::new(typed))).await?;
    let located = by_key.or(by_id).ok_or_else(|| ReplayError::NoSuchTurn(typed.to_owned()))?;
    let exchanges = view::exchanges(history, &located.conversation).await?;
    let mut turns: Vec<Text> = Vec::new();
    for turn in
        exchanges.iter().filter_map(run_of).filter(|turn| !typed.starts_with("run_") || *turn == typed)
    {
        if !turns.iter().any(|known| *known == turn) {
            turns.push(turn.into());
        }
    }
    let mut tapes = Vec::new();
    for turn in turns {
        tapes.push(Tape::read(history, turn, &exchanges).await?);
    }
    if tapes.is_empty() { Err(ReplayError::NoSuchTurn(typed.to_owned())) } else { Ok(tapes) }
}

/// Returns what turns of a conversation have kept that was too long to be shown, the latest last.
///
/// # Errors
/// When the record cannot be read.
pub async fn artifacts_of(
    history: &dyn History,
    conversation: &ConversationId,
) -> Result<Vec<Kept>, StoreError> {
    let mut all = Vec::new();
    for exchange in view::exchanges(history, conversation).await? {
        if run_of(&exchange).is_some() {
            let recording = history.recording(exchange.id, Which::Events).await?;
            all.extend(artifacts_in(&recording).map(|(_, kept)| kept));
        }
    }
    Ok(all)
}

/// Returns what the notes in a turn's last exchange tell of it.
#[must_use]
pub fn run_notes(recording: &Recording) -> RunNotes {
    let named = |name: &'static str| {
        recording
            .events
            .iter()
            .map(|(_, event)| event)
            .filter(move |event| event.name.as_deref() == Some(name))
    };
    RunNotes {
        task: None,
        ended: named(note::ENDED).next_back().map(|event| event.data.clone()),
        replays: named(note::REPLAYED).map(|event| (event.at, event.data.clone())).collect(),
    }
}

fn artifacts_in(recording: &Recording) -> impl Iterator<Item = (Text, Kept)> {
    let artifacts =
        recording.events.iter().filter(|(_, event)| event.name.as_deref() == Some(note::ARTIFACT));
    artifacts.filter_map(|(_, event)| note::read_artifact(&event.data))
}

impl Tape {
    async fn read(history: &dyn History, turn: Text, all: &[Exchange]) -> Result<Self, ReplayError> {
        let bad = |problem: &str| ReplayError::Unreadable { turn: turn.clone(), problem: problem.to_owned() };
        let mut exchanges = Vec::new();
        for exchange in all.iter().filter(|exchange| run_of(exchange) == Some(&turn)) {
            let recording = history.recording(exchange.id.clone(), Which::Everything).await?;
            exchanges.push((exchange.clone(), recording));
        }
        let conversation = exchanges.first().map(|(exchange, _)| exchange.conversation.clone());
        let conversation = conversation.ok_or_else(|| bad("it has no exchanges"))?;
        let named = |name: &'static str| {
            let events = exchanges.iter().flat_map(|(_, recording)| &recording.events);
            events.map(|(_, event)| event).find(move |event| event.name.as_deref() == Some(name)).cloned()
        };
        let begun = named(note::BEGUN).ok_or_else(|| bad("what it began with is not there"))?;
        let ended = named(note::ENDED);
        let kept = history.entries(Entries::Conversation(conversation.clone())).await?;
        let is_own = |kept: &&KeptEntry| {
            exchanges.iter().any(|(exchange, _)| kept.exchange.as_ref() == Some(&exchange.id))
        };
        check(&turn, kept.iter().filter(is_own))?;
        let done = done(&exchanges, &kept);
        let document = Document::parse(begun.data.as_str());
        let document = document.map_err(|error| bad(&format!("what it began with is no JSON: {error}")))?;
        let root = document.root();
        let text = |name: &str| root.field(name).and_then(|value| value.as_text());
        let raw = |name: &str| root.field(name).into_iter().flat_map(Node::items).map(|item| item.raw_text());
        let is = |name: &str| root.field(name).and_then(|it| it.as_bool()).unwrap_or(false);
        let behind = text("behind").map(EntryId::new);
        let open = match &behind {
            Some(tip) => open_calls(history, tip).await?,
            None => Vec::new(),
        };
        let limit = root.field("max_tool_calls").and_then(|limit| limit.as_u64()).unwrap_or(0);
        let manner = Manner {
            backend: text("backend"),
            model: text("model"),
            instructions: text("instructions"),
            tools: raw("tools").collect(),
            max_tool_calls: u32::try_from(limit).unwrap_or(u32::MAX),
        };
        Ok(Self {
            settings: text("settings").ok_or_else(|| bad("its settings are not there"))?,
            opening: raw("opening").map(|item| item.to_string()).collect(),
            composes: is("composes"),
            is_redacted: is("redacted"),
            cancelled_at: ended.as_ref().and_then(cancelled_at),
            turn,
            conversation,
            exchanges,
            done,
            ended,
            begun,
            behind,
            open,
            manner,
        })
    }

    /// Returns with what the turn began, as JSON.
    #[must_use]
    pub fn begun(&self) -> &str {
        &self.begun.data
    }

    /// Returns what came of the calls in one exchange of a turn, each as JSON.
    pub fn calls_of(recording: &Recording) -> impl Iterator<Item = &str> {
        let events = recording.events.iter().map(|(_, event)| event);
        events.filter(|event| event.name.as_deref() == Some(note::TOOL)).map(|event| &*event.data)
    }

    /// Returns what the turn was given.
    pub(super) fn task(&self, compose: Option<Compose>) -> Task {
        Task {
            id: self.turn.clone(),
            conversation: self.conversation.clone(),
            behind: self.behind.clone(),
            open: self.open.clone(),
            opening: self.opening.clone(),
            manner: self.manner.clone(),
            compose: compose.filter(|_| self.composes),
            cancel_at: self.cancelled_at,
        }
    }

    /// Returns how many events of providers there are.
    pub(super) fn provider_events(&self) -> usize {
        let events = self.exchanges.iter().flat_map(|(_, recording)| &recording.events);
        events.filter(|(_, event)| !is_note(event)).count()
    }

    /// Puts what came of each attempt on the reel.
    pub(super) fn load(&self, reel: &Reel, cancel: &CancellationToken) {
        for (exchange, recording) in &self.exchanges {
            let last = exchange.attempts.len().saturating_sub(1);
            let is_cancelled = exchange.ending.as_deref() == Some("cancelled");
            for (number, attempt) in exchange.attempts.iter().enumerate() {
                let is_its = |(at, event): &&(u32, ProviderEvent)| {
                    *at as usize == number
                        && (!is_note(event) || event.name.as_deref() == Some(crate::egress::REFUSED))
                };
                let events = recording.events.iter().filter(is_its).map(|(_, event)| event.clone()).collect();
                let cancel = (is_cancelled && number == last).then(|| cancel.clone());
                let (dialect, status, failure) = (attempt.dialect, attempt.status, attempt.failure.clone());
                reel.add(exchange.id.as_str(), Take { dialect, status, failure, events, cancel });
            }
        }
    }

    /// Copies the history before the turn, and what held then.
    pub(super) async fn copy_past(&self, from: &dyn History, to: &dyn History) -> Result<(), ReplayError> {
        let shift = now().0 - self.begun.at.0;
        let mut writes = vec![Write::Conversation(NewConversation {
            id: self.conversation.clone(),
            at: now(),
            identified: Text::from_static("run"),
            title: None,
            keys: Vec::new(),
        })];
        if let Some(behind) = &self.behind {
            let branch = from.entries(Entries::Branch(behind.clone())).await?;
            check(&self.turn, branch.iter())?;
            writes.extend(self.exchanges_before(from, &branch, shift).await?);
            writes.extend(self.entries_of(&branch, shift)?);
        }
        if let Ok(document) = Document::parse(self.begun.data.as_str()) {
            let standing = note::read_standing(document.root(), now(), shift);
            writes.extend(standing.learned.into_iter().map(Write::Learned));
            // What was said of other conversations bears on none of this one.
            let bears = |setting: &throughline_store::Setting| match &setting.scope {
                throughline_store::Scope::Everywhere => true,
                throughline_store::Scope::Conversation(id) => *id == self.conversation,
            };
            writes.extend(standing.settings.into_iter().filter(bears).map(Write::Setting));
        }
        to.append(Batch::relaxed(writes)).await?;
        Ok(())
    }

    fn entries_of(&self, branch: &[KeptEntry], shift: i64) -> Result<Vec<Write>, ReplayError> {
        let mut writes = Vec::new();
        let mut parent: Option<EntryId> = None;
        for group in branch.chunk_by(|one, other| one.exchange == other.exchange) {
            let at = Moment(group[0].at.0 + shift);
            let mut extension = Extension::new(self.conversation.clone(), parent.take(), at);
            if let Some(exchange) = &group[0].exchange {
                extension = extension.of_exchange(exchange.clone());
            }
            extension.extend(group.iter().map(|kept| &kept.entry));
            parent = extension.tip();
            writes.push(Write::Entries(extension));
        }
        if parent != self.behind {
            let problem = "the history before it is not what it was".to_owned();
            return Err(ReplayError::Unreadable { turn: self.turn.clone(), problem });
        }
        Ok(writes)
    }

    /// Returns the exchanges that brought the history before the turn, the last ones with all that passed.
    async fn exchanges_before(
        &self,
        from: &dyn History,
        branch: &[KeptEntry],
        shift: i64,
    ) -> Result<Vec<Write>, ReplayError> {
        let own: BTreeSet<&str> = self.exchanges.iter().map(|(exchange, _)| exchange.id.as_str()).collect();
        let entries: BTreeSet<&str> = branch.iter().map(|kept| kept.id.as_str()).collect();
        let all = view::exchanges(from, &self.conversation).await?;
        let before: Vec<Exchange> =
            all.into_iter().take_while(|exchange| !own.contains(exchange.id.as_str())).collect();
        let skipped = before.len().saturating_sub(EXCHANGES_BEFORE);
        let ids: BTreeSet<ExchangeId> = before.iter().map(|exchange| exchange.id.clone()).collect();
        let mut writes = Vec::new();
        for (at, mut exchange) in before.into_iter().enumerate() {
            let is_kept = |entry: &EntryId| entries.contains(entry.as_str());
            exchange.before = exchange.before.filter(is_kept);
            exchange.after = exchange.after.filter(is_kept);
            exchange.started.0 += shift;
            exchange.ended.iter_mut().for_each(|ended| ended.0 += shift);
            let recording = match at >= skipped {
                true => from.recording(exchange.id.clone(), Which::Events).await?,
                false => Recording::default(),
            };
            let id = exchange.id.clone();
            writes.push(Write::Exchange(Box::new(exchange)));
            for (attempt, event) in recording.events {
                writes.push(Write::Events { exchange: id.clone(), attempt, events: vec![event] });
            }
        }
        // What was decided later, such as in words that came afterwards, the turn did not know.
        let was_known = |step: &CompactionStep| ids.contains(&step.id.exchange) && step.at <= self.begun.at;
        let steps = from.compaction(self.conversation.clone()).await?.into_iter().filter(was_known);
        writes.extend(steps.map(|step| Write::Compaction(Box::new(step))));
        Ok(writes)
    }
}

/// Refuses entries that are not those that were written, and says which one it is.
fn check<'k>(turn: &Text, kept: impl Iterator<Item = &'k KeptEntry>) -> Result<(), ReplayError> {
    let mut kept = kept;
    let Some(KeptEntry { id, entry, .. }) = kept.find(|kept| !kept.is_sound()) else { return Ok(()) };
    let what = match &entry.kind {
        Kind::Said(said) => view::role_name(said.role).to_owned(),
        Kind::Called(call) => format!("called {}", call.name),
        kind => view::kind_name(kind).to_owned(),
    };
    let problem = format!("entry {id} ({what}) is not what was written");
    Err(ReplayError::Unreadable { turn: turn.clone(), problem })
}

fn cancelled_at(ended: &ProviderEvent) -> Option<(u32, u32)> {
    let document = Document::parse(ended.data.as_str()).ok()?;
    let at = document.root().field("cancelled_at")?;
    let mut numbers = at.items().filter_map(|number| u32::try_from(number.as_u64()?).ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Returns what calls returned, in the order in which they ran.
fn done(exchanges: &[(Exchange, Recording)], kept: &[KeptEntry]) -> Vec<(Text, Done)> {
    let mut all = Vec::new();
    for (exchange, recording) in exchanges {
        let of_exchange = kept.iter().filter(|kept| kept.exchange.as_ref() == Some(&exchange.id));
        let mut returns: Vec<_> = of_exchange.filter_map(|kept| kept.entry.as_return()).collect();
        let mut artifacts: Vec<(Text, Kept)> = artifacts_in(recording).collect();
        for (_, event) in &recording.events {
            if event.name.as_deref() != Some(note::TOOL) {
                continue;
            }
            let Ok(document) = Document::parse(event.data.as_str()) else { continue };
            let Some(call) = document.root().field("call").and_then(|call| call.as_text()) else { continue };
            let Some(at) = returns.iter().position(|it| it.call_id.as_ref() == Some(&call)) else { continue };
            let returned = returns.remove(at);
            let exit_code = document.root().field("exit_code").and_then(|code| code.raw().parse().ok());
            let mine = |(of, _): &mut (Text, Kept)| *of == call;
            let kept = artifacts.extract_if(.., mine).map(|(_, kept)| kept).collect();
            let (outcome, parts) = (returned.outcome, returned.parts.clone());
            all.push((call, Done { outcome, parts, exit_code, kept }));
        }
    }
    all
}
