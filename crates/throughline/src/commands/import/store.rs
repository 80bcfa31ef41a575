//! Writing a session to the history, piece by piece.
//!
//! The id of a conversation is the agent's id of the session, and the id of an entry follows from what it says: what
//! was imported before is found to be there, and costs nothing. Beside the entries every line is kept as it came, as
//! an event of an exchange that says where it is from: what the model has no word for is there, too. An exchange
//! takes a stretch of the file, so that finding out which lines are new takes no more memory than a stretch.

use crate::exit::CommandError;
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_carry::{Agent, Facts, Millis, Piece, iso};
use throughline_core::{ConversationId, Dialect, Entry, EntryId, Role, Text};
use throughline_store::{
    Batch, Exchange, ExchangeId, Exchanges, Extension, History, Moment, NewConversation, ProviderEvent,
    Which, Write,
};
use throughline_wire::json::Writer;

/// How many bytes of a file one exchange takes.
const STRETCH_BYTES: u64 = 4 << 20;

/// How many bytes of a file are written at once.
const BATCH_BYTES: usize = 1 << 20;

/// The event that says where an import is from.
pub const IMPORTED: &str = "throughline.import";

/// Where sessions are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An agent's own sessions.
    Agent(Agent),
    /// One request body.
    Body(Dialect),
}

/// Writes one session.
pub struct Importer {
    history: Arc<dyn History>,
    origin: Origin,
    source: String,
    session: String,
    /// When, for what does not say so.
    at: Millis,
    spots: Vec<(ConversationId, EntryId)>,
    begun: BTreeSet<ConversationId>,
    writes: Vec<Write>,
    bytes: usize,
    stretch: Option<Stretch>,
    new_entries: usize,
}

/// The exchange that takes the lines of a stretch.
struct Stretch {
    number: u64,
    exchange: Exchange,
    /// How many of its lines are there already.
    known: usize,
    events: Vec<ProviderEvent>,
}

impl Origin {
    /// Returns the name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent(agent) => agent.name(),
            Self::Body(dialect) => dialect.name(),
        }
    }

    const fn dialect(self) -> Dialect {
        match self {
            Self::Agent(agent) => agent.dialect(),
            Self::Body(dialect) => dialect,
        }
    }
}

impl Importer {
    /// Begins to import the session of that id.
    pub fn new(history: Arc<dyn History>, origin: Origin, session: &str, source: &str, at: Millis) -> Self {
        Self {
            history,
            origin,
            source: source.to_owned(),
            session: session.to_owned(),
            at,
            spots: Vec::new(),
            begun: BTreeSet::new(),
            writes: Vec::new(),
            bytes: 0,
            stretch: None,
            new_entries: 0,
        }
    }

    /// Returns the conversation that the session, or a sub-agent in it, becomes.
    pub fn conversation(&self, thread: Option<&str>) -> ConversationId {
        let session = &self.session;
        ConversationId::new(match thread {
            Some(thread) => format!("conv_{session}.{thread}"),
            None => format!("conv_{session}"),
        })
    }

    /// Returns the conversations that something was written to.
    pub fn conversations(&self) -> impl Iterator<Item = &ConversationId> {
        self.begun.iter()
    }

    /// Takes a line as it came; `offset` is where in the file it begins.
    pub async fn line(
        &mut self,
        line: &str,
        kind: &str,
        offset: u64,
        facts: &Facts,
    ) -> Result<(), CommandError> {
        let number = offset / STRETCH_BYTES;
        if self.stretch.as_ref().is_none_or(|stretch| stretch.number != number) {
            self.flush(facts).await?;
            self.stretch = Some(self.opened(number, facts).await?);
        }
        let at = Moment(facts.updated.unwrap_or(self.at));
        if let Some(stretch) = &mut self.stretch {
            let (name, data) = (Some(kind.into()), line.into());
            stretch.events.push(ProviderEvent { at, name, data });
        }
        self.bytes += line.len();
        Ok(())
    }

    /// Takes what a line brought.
    pub async fn piece(&mut self, piece: &Piece, facts: &Facts) -> Result<(), CommandError> {
        let conversation = self.conversation(piece.thread.as_deref());
        let at = piece.at.unwrap_or(facts.updated.unwrap_or(self.at));
        self.begin(&conversation, at);
        let parent = piece.behind.and_then(|spot| self.spots.get(spot.0 as usize)).cloned();
        // A sub-agent that was begun out of a conversation is one of its own.
        let parent = parent.filter(|(of, _)| *of == conversation).map(|(_, entry)| entry);
        let mut extension = Extension::new(conversation.clone(), parent, Moment(at));
        if let Some(stretch) =
            self.stretch.as_ref().filter(|stretch| stretch.exchange.conversation == conversation)
        {
            extension = extension.of_exchange(stretch.exchange.id.clone());
        }
        extension.extend(&piece.entries);
        self.spots.extend(extension.tip().map(|tip| (conversation, tip)));
        self.writes.push(Write::Entries(extension));
        if self.bytes >= BATCH_BYTES {
            self.flush(facts).await?;
        }
        Ok(())
    }

    /// Writes what is left, and returns how many entries were new.
    pub async fn finish(mut self, facts: &Facts) -> Result<usize, CommandError> {
        let id = self.conversation(None);
        if self.begun.contains(&id) {
            let at = Moment(facts.updated.unwrap_or(self.at));
            let title = facts.title.clone();
            let new = NewConversation { id, at, identified: self.identified(), title, keys: Vec::new() };
            self.writes.push(Write::Conversation(new));
        }
        self.flush(facts).await?;
        Ok(self.new_entries)
    }

    fn identified(&self) -> Text {
        format!("imported from {}", self.origin.name()).into()
    }

    fn begin(&mut self, conversation: &ConversationId, at: Millis) {
        if self.begun.insert(conversation.clone()) {
            let name = conversation.as_str().strip_prefix("conv_").unwrap_or_default();
            let new = NewConversation {
                id: conversation.clone(),
                at: Moment(at),
                identified: self.identified(),
                title: None,
                keys: vec![format!("import:{}:{name}", self.origin.name()).into()],
            };
            // What is written before it may belong to it.
            self.writes.insert(0, Write::Conversation(new));
        }
    }

    /// Begins a stretch, or finds out how much of it is there.
    async fn opened(&mut self, number: u64, facts: &Facts) -> Result<Stretch, CommandError> {
        let conversation = self.conversation(None);
        let id = ExchangeId::new(format!("imp_{}_{number}", self.session));
        let there = self.history.exchanges(Exchanges::One(id.clone())).await?.items.into_iter().next();
        let known = match &there {
            Some(_) => self.history.recording(id.clone(), Which::Events).await?.events.len(),
            None => 0,
        };
        let version = facts.version.as_deref().unwrap_or_default();
        let exchange = there.unwrap_or_else(|| Exchange {
            id,
            conversation: conversation.clone(),
            before: None,
            after: None,
            dialect: self.origin.dialect(),
            client: Some(format!("{} {version}", self.origin.name()).trim_end().into()),
            asked_model: None,
            started: Moment(facts.started.unwrap_or(self.at)),
            ended: Some(Moment(facts.updated.unwrap_or(self.at))),
            ending: Some(Text::from_static("imported")),
            status: None,
            usage: None,
            attempts: Vec::new(),
            response: None,
        });
        self.begin(&conversation, facts.started.unwrap_or(self.at));
        let from = ProviderEvent {
            at: Moment(facts.started.unwrap_or(self.at)),
            name: Some(Text::from_static(IMPORTED)),
            data: self.about(facts).into(),
        };
        Ok(Stretch { number, exchange, known, events: vec![from] })
    }

    /// Returns where the session is from, as an event has it.
    fn about(&self, facts: &Facts) -> String {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("from", self.origin.name());
        writer.field_str("session", &self.session);
        writer.field_str("source", &self.source);
        let told = [("cwd", &facts.cwd), ("version", &facts.version), ("parent", &facts.parent)];
        for (name, text) in told {
            if let Some(text) = text {
                writer.field_str(name, text);
            }
        }
        if let Some(started) = facts.started {
            writer.field_str("started", &iso(started));
        }
        writer.end_object();
        writer.into_string()
    }

    async fn flush(&mut self, facts: &Facts) -> Result<(), CommandError> {
        let mut writes = std::mem::take(&mut self.writes);
        if let Some(stretch) = &mut self.stretch {
            let mut events = std::mem::take(&mut stretch.events);
            let known = stretch.known.min(events.len());
            stretch.known -= known;
            events.drain(..known);
            if !events.is_empty() {
                stretch.exchange.ended = Some(Moment(facts.updated.unwrap_or(self.at)));
                let exchange = stretch.exchange.id.clone();
                writes.insert(0, Write::Exchange(Box::new(stretch.exchange.clone())));
                writes.push(Write::Events { exchange, attempt: 0, events });
            }
        }
        self.bytes = 0;
        if !writes.is_empty() {
            self.new_entries += self.history.append(Batch::durable(writes)).await?.new_entries;
        }
        Ok(())
    }
}

/// Returns the id of a session that has none: it follows from how it begins, up to what the user said first, so
/// that those of one agent, which begin with the same instructions, are told apart.
pub fn id_of_beginning(entries: &[Entry]) -> String {
    let mut extension = Extension::new(ConversationId::new("import"), None, Moment(0));
    let mut id = None;
    for entry in entries.iter().filter(|entry| entry.as_said().is_none_or(|said| !said.standing)) {
        id = Some(extension.push(entry));
        if entry.as_said().is_none_or(|said| !matches!(said.role, Role::System | Role::Developer)) {
            break;
        }
    }
    id.map_or_else(|| "empty".to_owned(), |id| id.to_string())
}
