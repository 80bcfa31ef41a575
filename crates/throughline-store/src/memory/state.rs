//! What is in memory, and how a batch changes it.
//!
//! A batch is checked as a whole first and cannot fail afterwards, which makes it atomic.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use throughline_core::{ConversationId, EntryId, Place, Text};

use crate::batch::Sprout;
use crate::check::{Present, check};
use crate::digest::Digest;
use crate::{
    Batch, Chain, CompactionStep, DocumentKind, Exchange, ExchangeId, Extension, KeptKind, Learned, Moment,
    NewConversation, ProviderEvent, Receipt, Scope, Setting, StoreError, Write,
};

/// Everything that is kept. Conversations, nodes and exchanges are named by their index.
#[derive(Debug, Default)]
pub(super) struct State {
    pub conversations: Vec<NewConversation>,
    pub updated: Vec<Moment>,
    pub by_conversation: BTreeMap<ConversationId, usize>,
    pub keys: BTreeMap<Text, usize>,
    pub blobs: BTreeMap<Digest, Arc<[u8]>>,
    pub nodes: Vec<Node>,
    pub by_node: BTreeMap<Digest, usize>,
    pub by_chain: BTreeMap<Chain, Vec<usize>>,
    pub by_item: BTreeMap<Text, usize>,
    pub exchanges: Vec<Passed>,
    pub by_exchange: BTreeMap<ExchangeId, usize>,
    pub by_response: BTreeMap<Text, usize>,
    /// In the order in which they were appended.
    pub compaction: Vec<CompactionStep>,
    pub learned: BTreeMap<(Text, Text, Text), Learned>,
    pub settings: BTreeMap<(Scope, Text), Setting>,
}

/// An entry in the tree.
#[derive(Debug)]
pub(super) struct Node {
    pub id: Digest,
    pub conversation: usize,
    pub parent: Option<usize>,
    pub record: Digest,
    pub chain: Chain,
    pub followed: bool,
    pub exchange: Option<ExchangeId>,
    pub at: Moment,
    pub kind: KeptKind,
    pub tool: Option<Text>,
    pub call_id: Option<Text>,
    pub place: Option<Place>,
}

/// An exchange and what passed in it.
#[derive(Debug)]
pub(super) struct Passed {
    pub exchange: Exchange,
    pub documents: BTreeMap<(u32, DocumentKind), Bytes>,
    pub events: BTreeMap<u32, Vec<ProviderEvent>>,
    pub answer: Option<Text>,
}

impl State {
    pub fn append(&mut self, batch: &Batch) -> Result<Receipt, StoreError> {
        check(batch, self)?;
        let before = self.nodes.len();
        for write in &batch.writes {
            match write {
                Write::Conversation(new) => self.begin(new),
                Write::Exchange(exchange) => self.update(exchange),
                _ => {}
            }
        }
        for write in &batch.writes {
            self.apply(write);
        }
        Ok(Receipt { new_entries: self.nodes.len() - before })
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Conversation(_) | Write::Exchange(_) => {}
            Write::Entries(extension) => self.extend(extension),
            Write::Document { exchange, attempt, kind, body } => {
                self.with(exchange, |passed| passed.documents.insert((*attempt, *kind), body.clone()));
            }
            Write::Events { exchange, attempt, events } => self.with(exchange, |passed| {
                passed.events.entry(*attempt).or_default().extend(events.iter().cloned());
            }),
            Write::Answer { exchange, json } => self.with(exchange, |passed| {
                let deleted = passed.exchange.response.as_ref().is_some_and(|response| response.deleted);
                passed.answer = (!deleted).then(|| json.clone());
            }),
            Write::Compaction(step) => {
                if self.compaction.iter().all(|there| there.id != step.id) {
                    self.compaction.push((**step).clone());
                }
            }
            Write::ForgetResponse { id } => self.forget(id),
            Write::Learned(learned) => {
                let key = (learned.backend.clone(), learned.model.clone(), learned.capability.clone());
                self.learned.insert(key, learned.clone());
            }
            Write::Unlearned { backend, model, capability } => {
                self.learned.remove(&(backend.clone(), model.clone(), capability.clone()));
            }
            Write::Setting(setting) => {
                let key = (setting.scope.clone(), setting.name.clone());
                match setting.value {
                    Some(_) => self.settings.insert(key, setting.clone()),
                    None => self.settings.remove(&key),
                };
            }
        }
    }

    fn begin(&mut self, new: &NewConversation) {
        let at = match self.by_conversation.get(&new.id) {
            Some(at) => *at,
            None => {
                let at = self.conversations.len();
                self.by_conversation.insert(new.id.clone(), at);
                self.conversations.push(new.clone());
                self.updated.push(new.at);
                at
            }
        };
        let title = &mut self.conversations[at].title;
        *title = title.take().or_else(|| new.title.clone());
        self.touch(at, new.at);
        for key in &new.keys {
            self.keys.entry(key.clone()).or_insert(at);
        }
    }

    fn update(&mut self, exchange: &Exchange) {
        if let Some(at) = self.by_conversation.get(&exchange.conversation) {
            self.touch(*at, exchange.ended.unwrap_or(exchange.started));
        }
        let at = *self.by_exchange.entry(exchange.id.clone()).or_insert(self.exchanges.len());
        match self.exchanges.get_mut(at) {
            Some(passed) => passed.exchange = passed.exchange.brought_up_to_date(exchange),
            None => self.exchanges.push(Passed {
                exchange: exchange.clone(),
                documents: BTreeMap::new(),
                events: BTreeMap::new(),
                answer: None,
            }),
        }
        if let Some(response) = &exchange.response {
            self.by_response.insert(response.id.clone(), at);
        }
    }

    fn extend(&mut self, extension: &Extension) {
        let Some(conversation) = self.by_conversation.get(&extension.conversation).copied() else { return };
        let mut parent = extension.parent.as_ref().and_then(|parent| self.node(parent));
        for sprout in &extension.sprouts {
            let at = match self.by_node.get(&sprout.id) {
                Some(at) => *at,
                None => self.sprout(conversation, parent, sprout, extension),
            };
            for item in &sprout.items {
                self.by_item.insert(item.clone(), at);
            }
            parent = Some(at);
        }
        self.touch(conversation, extension.at);
    }

    fn sprout(
        &mut self,
        conversation: usize,
        parent: Option<usize>,
        sprout: &Sprout,
        of: &Extension,
    ) -> usize {
        for blob in [Some(&sprout.encoded.record), sprout.encoded.envelope.as_ref()].into_iter().flatten() {
            self.blobs.entry(blob.digest).or_insert_with(|| Arc::clone(&blob.bytes));
        }
        let before = parent.map_or(Chain::ROOT, |parent| self.nodes[parent].chain);
        let (chain, counts) = before.after(sprout.saying);
        let at = self.nodes.len();
        if counts {
            self.by_chain.entry(chain).or_default().push(at);
        }
        if let Some(parent) = parent {
            self.nodes[parent].followed = true;
        }
        self.by_node.insert(sprout.id, at);
        self.nodes.push(Node {
            id: sprout.id,
            conversation,
            parent,
            record: sprout.encoded.record.digest,
            chain,
            followed: false,
            exchange: of.exchange.clone(),
            at: of.at,
            kind: sprout.kind,
            tool: sprout.tool.clone().or_else(|| self.tool_of(conversation, sprout)),
            call_id: sprout.call_id.clone(),
            place: sprout.place,
        });
        at
    }

    /// Returns the tool that a result is of, by the latest call of that id; for searching, not for pairing.
    fn tool_of(&self, conversation: usize, sprout: &Sprout) -> Option<Text> {
        let call_id = sprout.call_id.as_ref()?;
        let is_call = |node: &&Node| {
            node.kind == KeptKind::Called
                && node.conversation == conversation
                && node.call_id.as_ref() == Some(call_id)
        };
        self.nodes.iter().rfind(is_call)?.tool.clone()
    }

    fn forget(&mut self, id: &Text) {
        let Some(at) = self.by_response.get(id) else { return };
        let passed = &mut self.exchanges[*at];
        passed.answer = None;
        if let Some(response) = &mut passed.exchange.response {
            response.deleted = true;
        }
    }

    fn touch(&mut self, conversation: usize, at: Moment) {
        let updated = &mut self.updated[conversation];
        *updated = at.max(*updated);
    }

    fn with<T>(&mut self, exchange: &ExchangeId, change: impl FnOnce(&mut Passed) -> T) {
        if let Some(at) = self.by_exchange.get(exchange) {
            change(&mut self.exchanges[*at]);
        }
    }

    /// Returns the node of that id.
    pub fn node(&self, id: &EntryId) -> Option<usize> {
        self.by_node.get(&Digest::from_entry_id(id)?).copied()
    }
}

impl Present for State {
    fn has_conversation(&self, id: &ConversationId) -> bool {
        self.by_conversation.contains_key(id)
    }

    fn has_exchange(&self, id: &ExchangeId) -> bool {
        self.by_exchange.contains_key(id)
    }

    fn conversation_of(&self, entry: Digest) -> Option<&ConversationId> {
        let node = &self.nodes[*self.by_node.get(&entry)?];
        Some(&self.conversations[node.conversation].id)
    }
}
