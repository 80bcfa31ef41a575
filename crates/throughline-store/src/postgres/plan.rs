//! What a group of batches comes to: the rows to write, known before anything is written.
//!
//! The database is asked once what it has of all that a group refers to. Then each batch is checked; one that
//! refers to what is not there is refused, and takes no other with it. What is left becomes a few statements
//! of many rows each.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use throughline_core::{ConversationId, Text};

use crate::batch::Sprout;
use crate::bodies::{Bodies, Differs, Sent};
use crate::check::{Present, check};
use crate::checksum::{ConversationRow, NodeFields};
use crate::digest::Digest;
use crate::pack::Packed;
use crate::prepared::{Piece, Prepared};
use crate::record::Blob;
use crate::{
    Batch, Chain, CompactionStep, DocumentKind, Exchange, ExchangeId, Extension, KeptKind, Learned, Moment,
    NewConversation, Receipt, Scope, Setting, StoreError, Write,
};

/// The documents of a kind in a conversation.
pub(super) type Line = (ConversationId, DocumentKind);

/// Documents that were written lately, by their digests.
pub(super) type Lately = Bodies<Line, Digest>;

/// The kinds in which entries stand word for word, so that records of entries are what they are compressed with.
const WITH_ENTRIES: [DocumentKind; 2] = [DocumentKind::Sent, DocumentKind::Received];

/// What a group refers to.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub conversations: BTreeSet<ConversationId>,
    pub exchanges: BTreeSet<ExchangeId>,
    pub nodes: BTreeSet<Digest>,
    pub blobs: BTreeSet<Digest>,
    pub bodies: BTreeSet<Digest>,
    /// Exchanges that are brought up to date.
    pub updated: BTreeSet<ExchangeId>,
    /// Responses that are forgotten.
    pub forgotten: BTreeSet<Text>,
    /// Calls whose tool a result does not name.
    pub calls: BTreeSet<(ConversationId, Text)>,
}

/// What there is of it, in the database and in those batches of the group that came before.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Each as its row has it, or will have when it has just begun.
    pub conversations: BTreeMap<ConversationId, ConversationRow>,
    /// Each with its conversation.
    pub exchanges: BTreeMap<ExchangeId, ConversationId>,
    /// Those that may be changed, as they are, the oldest first and without their attempts.
    pub locked: Vec<Exchange>,
    /// Each with its chain and its conversation.
    pub nodes: BTreeMap<Digest, (Chain, ConversationId)>,
    pub blobs: BTreeSet<Digest>,
    pub bodies: BTreeSet<Digest>,
    /// The tool of each call.
    pub tools: BTreeMap<(ConversationId, Text), Text>,
}

/// The rows that a group comes to.
#[derive(Debug, Default)]
pub(super) struct Plan<'g> {
    pub known: Known,
    /// Conversations that something was added to, in the order in which they were.
    touched: Vec<ConversationRow>,
    touched_at: BTreeMap<ConversationId, usize>,
    /// Those that begin with this group.
    begun: BTreeSet<ConversationId>,
    pub keys: BTreeMap<Text, ConversationId>,
    pub exchanges: Vec<Exchange>,
    exchanges_at: BTreeMap<ExchangeId, usize>,
    pub blobs: BTreeMap<Digest, Packed<'g>>,
    pub nodes: Vec<NodeRow<'g>>,
    pub items: BTreeMap<Text, Digest>,
    pub bodies: BTreeMap<Digest, Differs<'g, Digest>>,
    pub documents: BTreeMap<(ExchangeId, u32, DocumentKind), Digest>,
    pub events: Vec<(ExchangeId, u32, Packed<'g>)>,
    pub answers: BTreeMap<ExchangeId, Packed<'g>>,
    pub compaction: Vec<(&'g CompactionStep, Packed<'g>)>,
    /// Exchanges whose answers are forgotten.
    pub forgotten: BTreeSet<ExchangeId>,
    pub learned: BTreeMap<(Text, Text, Text), Option<&'g Learned>>,
    pub settings: BTreeMap<(Option<ConversationId>, Text), Option<&'g Setting>>,
}

/// An entry to be written.
#[derive(Debug)]
pub(super) struct NodeRow<'g> {
    pub sprout: &'g Sprout,
    pub conversation: ConversationId,
    pub exchange: Option<ExchangeId>,
    pub parent: Option<Digest>,
    pub chain: Chain,
    pub counts: bool,
    pub at: i64,
    pub tool: Option<Text>,
}

impl NodeRow<'_> {
    /// Returns what its checksum covers.
    pub fn fields(&self) -> NodeFields<'_> {
        NodeFields {
            sprout: self.sprout,
            conversation: &self.conversation,
            exchange: self.exchange.as_ref(),
            parent: self.parent,
            chain: self.chain,
            counts: self.counts,
            at: self.at,
            tool: self.tool.as_deref(),
        }
    }
}

impl Wanted {
    /// Takes in what a batch refers to, and what its requests would rest on: somebody may have taken it out.
    pub fn add(&mut self, prepared: &Prepared, lately: &Lately) {
        for write in &prepared.batch.writes {
            let Write::Exchange(exchange) = write else { continue };
            for kind in DocumentKind::ALL {
                let line = (exchange.conversation.clone(), kind);
                let (documents, records) = lately.at_hand(&line);
                self.bodies.extend(documents);
                self.blobs.extend(records);
            }
        }
        for (number, write) in prepared.batch.writes.iter().enumerate() {
            match write {
                Write::Conversation(new) => drop(self.conversations.insert(new.id.clone())),
                Write::Exchange(exchange) => {
                    self.conversations.insert(exchange.conversation.clone());
                    self.exchanges.insert(exchange.id.clone());
                    self.updated.insert(exchange.id.clone());
                    let entries = exchange.before.iter().chain(&exchange.after);
                    self.nodes.extend(entries.filter_map(Digest::from_entry_id));
                }
                Write::Entries(extension) => self.extension(extension),
                Write::Document { exchange, .. } => {
                    self.exchanges.insert(exchange.clone());
                    if let Some(Piece::Digest(digest)) = prepared.piece(number) {
                        self.bodies.insert(*digest);
                    }
                }
                Write::Events { exchange, .. } | Write::Answer { exchange, .. } => {
                    self.exchanges.insert(exchange.clone());
                }
                Write::Compaction(step) => {
                    self.exchanges.insert(step.id.exchange.clone());
                    self.exchanges.extend(step.follows.as_ref().map(|follows| follows.exchange.clone()));
                }
                Write::Setting(Setting { scope: Scope::Conversation(id), .. }) => {
                    self.conversations.insert(id.clone());
                }
                Write::ForgetResponse { id } => drop(self.forgotten.insert(id.clone())),
                _ => {}
            }
        }
    }

    fn extension(&mut self, extension: &Extension) {
        self.conversations.insert(extension.conversation.clone());
        self.exchanges.extend(extension.exchange.clone());
        self.nodes.extend(extension.parent.as_ref().and_then(Digest::from_entry_id));
        for sprout in &extension.sprouts {
            self.nodes.insert(sprout.id);
            self.blobs.insert(sprout.encoded.record.digest);
            self.blobs.extend(sprout.encoded.envelope.as_ref().map(|envelope| envelope.digest));
            if let (None, Some(call_id)) = (&sprout.tool, &sprout.call_id) {
                self.calls.insert((extension.conversation.clone(), call_id.clone()));
            }
        }
    }
}

impl Present for Known {
    fn has_conversation(&self, id: &ConversationId) -> bool {
        self.conversations.contains_key(id)
    }

    fn has_exchange(&self, id: &ExchangeId) -> bool {
        self.exchanges.contains_key(id)
    }

    fn conversation_of(&self, entry: Digest) -> Option<&ConversationId> {
        self.nodes.get(&entry).map(|(_, conversation)| conversation)
    }
}

impl<'g> Plan<'g> {
    pub fn new(known: Known) -> Self {
        Self { known, ..Self::default() }
    }

    /// Forgets what a request of this batch would rest on, if it is not known to be there.
    pub fn forget_what_is_gone(&self, prepared: &Prepared, lately: &mut Lately) {
        for write in &prepared.batch.writes {
            let Write::Document { exchange, kind, .. } = write else { continue };
            let Some(conversation) = self.conversation_of(&prepared.batch, exchange) else { continue };
            let line = (conversation.clone(), *kind);
            let (mut requests, mut records) = lately.at_hand(&line);
            let is_there = requests.all(|digest| self.known.bodies.contains(digest))
                && records.all(|digest| self.known.blobs.contains(digest));
            if !is_there {
                drop((requests, records));
                lately.forget(&line);
            }
        }
    }

    /// Returns the requests of a batch that are new and have to be compared with the latest in the database.
    pub fn needs_latest(&self, prepared: &Prepared, lately: &Lately) -> BTreeSet<Line> {
        let writes = prepared.batch.writes.iter().enumerate();
        let lines = writes.filter_map(|(number, write)| {
            let Write::Document { exchange, kind, body, .. } = write else { return None };
            let Some(Piece::Digest(digest)) = prepared.piece(number) else { return None };
            let line = (self.conversation_of(&prepared.batch, exchange)?.clone(), *kind);
            let is_needed = !self.known.bodies.contains(digest) && lately.needs_latest(&line, body);
            is_needed.then_some(line)
        });
        lines.collect()
    }

    fn conversation_of<'s>(&'s self, batch: &'s Batch, id: &ExchangeId) -> Option<&'s ConversationId> {
        let comes = batch.writes.iter().find_map(|write| match write {
            Write::Exchange(exchange) if exchange.id == *id => Some(&exchange.conversation),
            _ => None,
        });
        comes.or_else(|| self.known.exchanges.get(id))
    }

    /// Takes in a batch; when that fails, nothing of it is in the plan.
    pub fn add(&mut self, prepared: &'g Prepared, lately: &mut Lately) -> Result<Receipt, StoreError> {
        let batch = &prepared.batch;
        check(batch, &self.known)?;
        let before = self.nodes.len();
        for write in &batch.writes {
            match write {
                Write::Conversation(new) => self.begin(new),
                Write::Exchange(exchange) => self.update(exchange),
                _ => {}
            }
        }
        for (number, write) in batch.writes.iter().enumerate() {
            self.write(prepared, number, write, lately);
        }
        Ok(Receipt { new_entries: self.nodes.len() - before })
    }

    fn write(&mut self, prepared: &'g Prepared, number: usize, write: &'g Write, lately: &mut Lately) {
        let packed = match prepared.piece(number) {
            Some(Piece::Packed(packed)) => Some(packed.borrowed()),
            _ => None,
        };
        match (write, packed) {
            (Write::Entries(extension), _) => self.extend(prepared, extension, lately),
            (Write::Document { exchange, attempt, kind, body }, _) => {
                if let Some(Piece::Digest(digest)) = prepared.piece(number) {
                    self.documents.insert((exchange.clone(), *attempt, *kind), *digest);
                    self.body(exchange, *kind, *digest, body, lately);
                }
            }
            (Write::Events { exchange, attempt, events }, Some(packed)) if !events.is_empty() => {
                self.events.push((exchange.clone(), *attempt, packed));
            }
            (Write::Answer { exchange, .. }, Some(packed)) => {
                self.answers.insert(exchange.clone(), packed);
            }
            (Write::Compaction(step), Some(packed)) => self.compaction.push((step, packed)),
            (Write::ForgetResponse { id }, _) => self.forget(id),
            (Write::Learned(learned), _) => {
                let key = (learned.backend.clone(), learned.model.clone(), learned.capability.clone());
                self.learned.insert(key, Some(learned));
            }
            (Write::Unlearned { backend, model, capability }, _) => {
                self.learned.insert((backend.clone(), model.clone(), capability.clone()), None);
            }
            (Write::Setting(setting), _) => {
                let scope = match &setting.scope {
                    Scope::Everywhere => None,
                    Scope::Conversation(id) => Some(id.clone()),
                };
                let made = setting.value.is_some().then_some(setting);
                self.settings.insert((scope, setting.name.clone()), made);
            }
            _ => {}
        }
    }

    fn begin(&mut self, new: &NewConversation) {
        if !self.known.conversations.contains_key(&new.id) {
            self.known.conversations.insert(new.id.clone(), ConversationRow::begun(new));
            self.begun.insert(new.id.clone());
        }
        if let Some(row) = self.touched(&new.id) {
            row.begin_again(new);
        }
        for key in &new.keys {
            self.keys.entry(key.clone()).or_insert_with(|| new.id.clone());
        }
    }

    fn update(&mut self, exchange: &Exchange) {
        self.touch(&exchange.conversation, exchange.ended.unwrap_or(exchange.started));
        self.known.exchanges.insert(exchange.id.clone(), exchange.conversation.clone());
        match self.exchanges_at.get(&exchange.id).and_then(|at| self.exchanges.get_mut(*at)) {
            Some(earlier) => *earlier = earlier.brought_up_to_date(exchange),
            None => {
                let kept = self.known.locked.iter().find(|kept| kept.id == exchange.id);
                let exchange =
                    kept.map_or_else(|| exchange.clone(), |kept| kept.brought_up_to_date(exchange));
                self.push_exchange(exchange);
            }
        }
    }

    fn push_exchange(&mut self, exchange: Exchange) -> usize {
        let at = self.exchanges.len();
        self.exchanges_at.insert(exchange.id.clone(), at);
        self.exchanges.push(exchange);
        at
    }

    /// Marks the latest exchange with a response of that id as deleted: one of this group, or of the database.
    fn forget(&mut self, response: &Text) {
        let is_it = |exchange: &Exchange| exchange.response.as_ref().is_some_and(|mark| mark.id == *response);
        let is_new = |exchange: &Exchange| self.known.locked.iter().all(|kept| kept.id != exchange.id);
        let latest = self.exchanges.iter().rposition(|exchange| is_it(exchange) && is_new(exchange));
        let kept = || self.known.locked.iter().rfind(|kept| is_it(kept)).cloned();
        let at = match (latest, kept()) {
            (Some(at), _) => at,
            (None, Some(kept)) => match self.exchanges_at.get(&kept.id) {
                Some(at) => *at,
                None => self.push_exchange(kept),
            },
            (None, None) => match self.exchanges.iter().rposition(is_it) {
                Some(at) => at,
                None => return,
            },
        };
        let exchange = &mut self.exchanges[at];
        if let Some(mark) = &mut exchange.response {
            mark.deleted = true;
        }
        self.forgotten.insert(exchange.id.clone());
    }

    fn extend(&mut self, prepared: &'g Prepared, extension: &'g Extension, lately: &mut Lately) {
        let conversation = &extension.conversation;
        let mut parent = extension.parent.as_ref().and_then(Digest::from_entry_id);
        for sprout in &extension.sprouts {
            self.items.extend(sprout.items.iter().map(|item| (item.clone(), sprout.id)));
            if !self.known.nodes.contains_key(&sprout.id) {
                self.sprout(prepared, extension, parent, sprout, lately);
            }
            parent = Some(sprout.id);
        }
        self.touch(conversation, extension.at);
    }

    fn sprout(
        &mut self,
        prepared: &'g Prepared,
        of: &'g Extension,
        parent: Option<Digest>,
        sprout: &'g Sprout,
        lately: &mut Lately,
    ) {
        for blob in sprout.encoded.envelope.iter().chain([&sprout.encoded.record]) {
            self.blob(prepared, &of.conversation, blob, lately);
        }
        let before = parent.and_then(|parent| self.known.nodes.get(&parent));
        let (chain, counts) = before.map_or(Chain::ROOT, |(chain, _)| *chain).after(sprout.saying);
        let call = sprout.call_id.clone().map(|call_id| (of.conversation.clone(), call_id));
        let tool = sprout.tool.clone().or_else(|| self.known.tools.get(call.as_ref()?).cloned());
        if let (KeptKind::Called, Some(call), Some(tool)) = (sprout.kind, call, &tool) {
            self.known.tools.insert(call, tool.clone());
        }
        self.known.nodes.insert(sprout.id, (chain, of.conversation.clone()));
        self.nodes.push(NodeRow {
            sprout,
            conversation: of.conversation.clone(),
            exchange: of.exchange.clone(),
            parent,
            chain,
            counts,
            at: of.at.0,
            tool,
        });
    }

    fn blob(&mut self, prepared: &'g Prepared, of: &ConversationId, blob: &'g Blob, lately: &mut Lately) {
        if self.known.blobs.insert(blob.digest) {
            self.blobs.insert(blob.digest, prepared.packed(blob));
            for kind in WITH_ENTRIES {
                lately.note(&(of.clone(), kind), blob.digest, &blob.bytes);
            }
        }
    }

    fn body(
        &mut self,
        exchange: &ExchangeId,
        kind: DocumentKind,
        digest: Digest,
        body: &'g Bytes,
        lately: &mut Lately,
    ) {
        let Some(conversation) = self.known.exchanges.get(exchange) else { return };
        if !self.known.bodies.insert(digest) {
            return;
        }
        let line = (conversation.clone(), kind);
        let differs = lately.compare(&line, None, body);
        let sent = Sent { key: digest, depth: differs.depth, body: body.clone() };
        lately.put_at_hand(&line, sent);
        self.bodies.insert(digest, differs);
    }

    fn touch(&mut self, conversation: &ConversationId, at: Moment) {
        if let Some(row) = self.touched(conversation) {
            row.touch(at.0);
        }
    }

    /// Returns the row of a conversation that something is added to.
    fn touched(&mut self, id: &ConversationId) -> Option<&mut ConversationRow> {
        let at = match self.touched_at.get(id) {
            Some(at) => *at,
            None => {
                self.touched.push(self.known.conversations.get(id)?.clone());
                self.touched_at.insert(id.clone(), self.touched.len() - 1);
                self.touched.len() - 1
            }
        };
        self.touched.get_mut(at)
    }

    /// Returns the rows of conversations that are not as they were.
    pub fn changed_conversations(&self) -> impl Iterator<Item = &ConversationRow> {
        let is_changed = |row: &&ConversationRow| {
            self.begun.contains(&row.id) || self.known.conversations.get(&row.id) != Some(*row)
        };
        self.touched.iter().filter(is_changed)
    }
}
