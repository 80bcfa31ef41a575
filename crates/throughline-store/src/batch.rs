//! Batches: what is written together, whole or not at all.

use bytes::Bytes;
use throughline_core::{ConversationId, Entry, EntryId, Place, Text};

use crate::chain::Saying;
use crate::digest::{Digest, Digester, Domain};
use crate::record::{Encoded, LastEnvelope, encode};
use crate::{
    CompactionStep, DocumentKind, Exchange, ExchangeId, KeptKind, Learned, Moment, ProviderEvent, Setting,
};

/// Writes that take effect together, in their order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// What must be certain before `append` returns.
    pub durability: Durability,
    /// The writes.
    pub writes: Vec<Write>,
}

/// What must be certain before `append` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The batch is on the disk: it survives a power failure. For whatever permits something to happen: a
    /// call before its tool runs, a turn before its end reaches the client.
    #[default]
    Durable,
    /// The batch is with the operating system: it survives the end of this process, and a later durable
    /// batch takes it to the disk. For what a long stream has brought so far.
    Relaxed,
}

/// One thing to write.
#[derive(Clone, Debug)]
pub enum Write {
    /// Begins a conversation; if there is one of that id, adds the keys to it and marks it as updated.
    Conversation(NewConversation),
    /// Appends entries, one behind another. Those that are there already cost nothing.
    Entries(Extension),
    /// Begins an exchange, or brings it up to date. Attempts are told apart by their number, and those
    /// that are not mentioned again stay.
    Exchange(Box<Exchange>),
    /// A document of an attempt, in place of an earlier one of that kind. It costs what is new in it, compared with those of
    /// its kind before it in the conversation.
    Document {
        /// The exchange, which must be there.
        exchange: ExchangeId,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// What kind of document it is.
        kind: DocumentKind,
        /// What it says, to the byte.
        body: Bytes,
    },
    /// Further events of an attempt, behind those that are there.
    Events {
        /// The exchange, which must be there.
        exchange: ExchangeId,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// The events.
        events: Vec<ProviderEvent>,
    },
    /// A step of compaction, of an exchange which must be there. One that is there already is left alone.
    Compaction(Box<CompactionStep>),
    /// The final answer as the client is given it.
    Answer {
        /// The exchange, which must be there.
        exchange: ExchangeId,
        /// The answer, as JSON.
        json: Text,
    },
    /// Forgets the final answer of a response and marks it as deleted; its entries stay in the history.
    ForgetResponse {
        /// The response's id.
        id: Text,
    },
    /// Notes a verdict about a backend, in place of an earlier one about the same.
    Learned(Learned),
    /// Takes a verdict back.
    Unlearned {
        /// The backend.
        backend: Text,
        /// The model; empty for the verdict about all of them.
        model: Text,
        /// What it is about.
        capability: Text,
    },
    /// Makes a setting, in place of an earlier one of that name and scope.
    Setting(Setting),
}

/// A conversation that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConversation {
    /// Its id.
    pub id: ConversationId,
    /// When.
    pub at: Moment,
    /// How it was identified: by a header, a session id of the client, its beginning.
    pub identified: Text,
    /// The first words of the user: see [`crate::title_of`]. Fills in a title that is missing.
    pub title: Option<Text>,
    /// Names under which clients will ask for it, each unique over all conversations. A key that already
    /// leads to a conversation goes on leading there.
    pub keys: Vec<Text>,
}

/// Entries to append one behind another.
///
/// Their ids follow from what they are and what they stand behind, so they are known before anything is
/// written, and two writers who append the same make one branch and not two.
#[derive(Clone, Debug)]
pub struct Extension {
    pub(crate) conversation: ConversationId,
    pub(crate) parent: Option<EntryId>,
    pub(crate) exchange: Option<ExchangeId>,
    pub(crate) at: Moment,
    pub(crate) sprouts: Vec<Sprout>,
    last_envelope: LastEnvelope,
}

/// An entry to be appended, made ready.
#[derive(Clone, Debug)]
pub(crate) struct Sprout {
    pub id: Digest,
    pub saying: Saying,
    pub kind: KeptKind,
    /// The tool of a call, or of a result that names it.
    pub tool: Option<Text>,
    /// The id by which a call and its result know each other.
    pub call_id: Option<Text>,
    /// The ids by which a client may refer to the entry.
    pub items: Vec<Text>,
    /// Where it stood in the request; kept beside the record, since it changes when a client leaves out
    /// something that came before.
    pub place: Option<Place>,
    pub encoded: Encoded,
}

/// What came of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How many entries were not there before.
    pub new_entries: usize,
}

impl Batch {
    /// Returns a batch that is on the disk when it is acknowledged.
    #[must_use]
    pub const fn durable(writes: Vec<Write>) -> Self {
        Self { durability: Durability::Durable, writes }
    }

    /// Returns a batch that is with the operating system when it is acknowledged.
    #[must_use]
    pub const fn relaxed(writes: Vec<Write>) -> Self {
        Self { durability: Durability::Relaxed, writes }
    }
}

impl Extension {
    /// Begins to extend a conversation behind `parent`, or with a beginning of its own.
    #[must_use]
    pub fn new(conversation: ConversationId, parent: Option<EntryId>, at: Moment) -> Self {
        Self {
            conversation,
            parent,
            exchange: None,
            at,
            sprouts: Vec::new(),
            last_envelope: LastEnvelope::default(),
        }
    }

    /// Says which exchange brings the entries.
    #[must_use]
    pub fn of_exchange(mut self, exchange: ExchangeId) -> Self {
        self.exchange = Some(exchange);
        self
    }

    /// Adds an entry behind the last one, and returns its id.
    pub fn push(&mut self, entry: &Entry) -> EntryId {
        self.push_item(entry, None)
    }

    /// Adds an entry that the client will know as the item of this id, and returns the entry's id.
    ///
    /// Ids of items that the entry itself carries are known in any case.
    pub fn push_item(&mut self, entry: &Entry, item: Option<Text>) -> EntryId {
        let encoded = encode(entry, &mut self.last_envelope);
        let id = self.next_id(encoded.record.digest);
        self.sprouts.push(Sprout::new(id, entry, item, encoded));
        id.to_entry_id()
    }

    /// Adds entries one behind another.
    pub fn extend<'e>(&mut self, entries: impl IntoIterator<Item = &'e Entry>) {
        for entry in entries {
            self.push(entry);
        }
    }

    /// Returns the last entry: of those added, or the one that they will follow.
    #[must_use]
    pub fn tip(&self) -> Option<EntryId> {
        match self.sprouts.last() {
            Some(sprout) => Some(sprout.id.to_entry_id()),
            None => self.parent.clone(),
        }
    }

    /// Says whether there is nothing to append.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sprouts.is_empty()
    }

    fn next_id(&self, record: Digest) -> Digest {
        let parent = match (self.sprouts.last(), &self.parent) {
            (Some(last), _) => last.id.to_string(),
            (None, Some(parent)) => parent.to_string(),
            (None, None) => String::new(),
        };
        id_behind(self.conversation.as_str(), &parent, record)
    }
}

/// Returns the id that an entry of that record has behind that parent.
pub(crate) fn node_id(conversation: &str, parent: Option<Digest>, record: Digest) -> Digest {
    id_behind(conversation, &parent.map(|parent| parent.to_string()).unwrap_or_default(), record)
}

fn id_behind(conversation: &str, parent: &str, record: Digest) -> Digest {
    let mut digester = Digester::new(Domain::Node);
    digester.piece(conversation.as_bytes());
    digester.piece(parent.as_bytes());
    digester.raw(record.bytes());
    digester.finish()
}

impl Sprout {
    fn new(id: Digest, entry: &Entry, item: Option<Text>, encoded: Encoded) -> Self {
        use throughline_core::Kind;
        let (tool, call_id, own_item) = match &entry.kind {
            Kind::Called(call) => (Some(call.name.clone()), Some(call.id.clone()), call.item_id.clone()),
            Kind::Returned(returned) => {
                (returned.name.clone(), returned.call_id.clone(), returned.item_id.clone())
            }
            Kind::Thought(thought) => (None, None, thought.item_id.clone()),
            _ => (None, None, None),
        };
        let own_item = own_item.filter(|own| item.as_ref() != Some(own));
        Self {
            id,
            saying: Saying::of(entry),
            kind: KeptKind::of(entry),
            tool,
            call_id,
            items: item.into_iter().chain(own_item).collect(),
            place: entry.place,
            encoded,
        }
    }
}
