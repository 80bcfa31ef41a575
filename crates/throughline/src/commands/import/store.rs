//! Writing a session to the history, piece by piece.
//!
//! The id of a conversation is the agent's id of the session, and the id of an entry follows from what it says: what
//! was imported before is found to be there, and costs nothing. Beside the entries every line is kept as it came, as
//! an event of an exchange that says where it is from: what the model has no word for is there, too. An exchange
//! takes a stretch of the file, so that finding out which lines are new takes no more memory than a stretch.

use crate::exit::CommandError;
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_carry::{Agent, Answered, Facts, Millis, Piece, iso};
use throughline_core::{ConversationId, Dialect, Entry, EntryId, Role, Text};
use throughline_gateway::bill::Bill;
use throughline_store::{
    Attempt, Batch, Exchange, ExchangeId, Exchanges, Extension, History, Moment, NewConversation, PARENT,
    PROJECT, ProviderEvent, Scope, Setting, Which, Write,
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
    /// The answer whose pieces come now.
    answer: Option<Exchange>,
    new_entries: usize,
    used: Bill,
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
            answer: None,
            new_entries: 0,
            used: Bill::default(),
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
        let mut extension = Extension::new(conversation.clone(), parent.clone(), Moment(at));
        let stretch = self.stretch.as_ref().filter(|stretch| stretch.exchange.conversation == conversation);
        let stretch = stretch.map(|stretch| stretch.exchange.id.clone());
        let exchange = match &piece.answered {
            Some(answered) => Some(self.answer_id(answered)),
            None => stretch,
        };
        if let Some(exchange) = exchange {
            extension = extension.of_exchange(exchange);
        }
        extension.extend(&piece.entries);
        let tip = extension.tip();
        if let Some(answered) = &piece.answered {
            self.answer(answered, &conversation, parent, tip.clone(), at, facts);
        }
        self.spots.extend(tip.map(|tip| (conversation, tip)));
        if !extension.is_empty() {
            self.writes.push(Write::Entries(extension));
        }
        if self.bytes >= BATCH_BYTES {
            self.flush(facts).await?;
        }
        Ok(())
    }

    fn answer_id(&self, answered: &Answered) -> ExchangeId {
        ExchangeId::new(format!("imp_{}_{}", self.session, answered.id))
    }

    /// Notes what an answer took, as an exchange of its own. What a piece of it adds takes the place of what was said before.
    fn answer(
        &mut self,
        answered: &Answered,
        conversation: &ConversationId,
        before: Option<EntryId>,
        after: Option<EntryId>,
        at: Millis,
        facts: &Facts,
    ) {
        let id = self.answer_id(answered);
        let begun = match self.answer.take() {
            Some(begun) if begun.id == id => begun,
            other => {
                self.count(other);
                let dialect = self.origin.dialect();
                let begun = Exchange::begun(id, conversation.clone(), dialect, Moment(at));
                Exchange { before, client: Some(self.client(facts)), ..begun }
            }
        };
        let model = answered.model.clone().or_else(|| facts.model.clone());
        let exchange = Exchange {
            after,
            asked_model: model.clone(),
            ended: Some(Moment(at)),
            ending: Some(Text::from_static(if answered.failure.is_some() { "failed" } else { "end_turn" })),
            usage: answered.usage,
            attempts: vec![Attempt {
                model,
                ended: Some(Moment(at)),
                failure: answered.failure.clone(),
                ..Attempt::begun(Text::from_static(self.origin.name()), self.origin.dialect(), begun.started)
            }],
            ..begun
        };
        self.writes.push(Write::Exchange(Box::new(exchange.clone())));
        self.answer = Some(exchange);
    }

    /// Adds up what an answer took.
    fn count(&mut self, answer: Option<Exchange>) {
        let Some(exchange) = answer else { return };
        if let Some((usage, attempt)) = exchange.usage.zip(exchange.attempts.first()) {
            self.used.add(&attempt.backend, attempt.model.as_ref(), usage);
        }
    }

    fn client(&self, facts: &Facts) -> Text {
        let version = facts.version.as_deref().unwrap_or_default();
        format!("{} {version}", self.origin.name()).trim_end().into()
    }

    /// Returns the writes that describe the conversations: where they work, and whose sub-agents they are.
    fn described(&self, facts: &Facts) -> Vec<Write> {
        let own = self.conversation(None);
        let parent = facts.parent.as_ref().map(|parent| format!("conv_{parent}"));
        let at = Moment(facts.updated.unwrap_or(self.at));
        let setting = |id: &ConversationId, name: &'static str, value: Text| {
            let scope = Scope::Conversation(id.clone());
            Write::Setting(Setting { scope, name: Text::from_static(name), value: Some(value), at })
        };
        let mut writes = Vec::new();
        for id in &self.begun {
            writes.extend(facts.cwd.clone().map(|cwd| setting(id, PROJECT, cwd)));
            let parent = if *id == own { parent.clone() } else { Some(own.to_string()) };
            writes.extend(parent.map(|parent| setting(id, PARENT, parent.into())));
        }
        writes
    }

    /// Writes what is left, and returns how many entries were new, and the tokens of all answers.
    pub async fn finish(mut self, facts: &Facts) -> Result<(usize, Bill), CommandError> {
        let id = self.conversation(None);
        if self.begun.contains(&id) {
            let at = Moment(facts.updated.unwrap_or(self.at));
            let title = facts.title.clone();
            let new = NewConversation { id, at, identified: self.identified(), title, keys: Vec::new() };
            self.writes.push(Write::Conversation(new));
        }
        self.writes.extend(self.described(facts));
        let last = self.answer.take();
        self.count(last);
        self.flush(facts).await?;
        Ok((self.new_entries, self.used))
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
        let started = Moment(facts.started.unwrap_or(self.at));
        let exchange = there.unwrap_or_else(|| Exchange {
            client: Some(self.client(facts)),
            ended: Some(Moment(facts.updated.unwrap_or(self.at))),
            ending: Some(Text::from_static("imported")),
            ..Exchange::begun(id, conversation.clone(), self.origin.dialect(), started)
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
