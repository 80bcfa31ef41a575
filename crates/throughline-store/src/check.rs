//! Whether everything that a batch refers to is there, or comes with it.
//!
//! Stores that apply a batch piece by piece and find out on the way ask the database instead; those that
//! know what is there before they begin ask here, and cannot fail afterwards.

use std::collections::{BTreeMap, BTreeSet};

use throughline_core::{ConversationId, EntryId};

use crate::digest::Digest;
use crate::{Batch, ExchangeId, Extension, Scope, Setting, StoreError, Write};

/// What is there already.
pub(crate) trait Present {
    /// Says whether there is a conversation of that id.
    fn has_conversation(&self, id: &ConversationId) -> bool;

    /// Says whether there is an exchange of that id.
    fn has_exchange(&self, id: &ExchangeId) -> bool;

    /// Returns the conversation of an entry that is there.
    fn conversation_of(&self, entry: Digest) -> Option<&ConversationId>;
}

/// What a batch brings.
#[derive(Default)]
struct Brought<'b> {
    conversations: BTreeSet<&'b ConversationId>,
    exchanges: BTreeSet<&'b ExchangeId>,
    entries: BTreeMap<Digest, &'b ConversationId>,
}

struct Check<'b, P> {
    present: &'b P,
    brought: Brought<'b>,
}

/// Says whether everything that the batch refers to is there, or comes with it.
pub(crate) fn check<P: Present>(batch: &Batch, present: &P) -> Result<(), StoreError> {
    let mut check = Check { present, brought: Brought::default() };
    for write in &batch.writes {
        match write {
            Write::Conversation(new) => drop(check.brought.conversations.insert(&new.id)),
            Write::Exchange(exchange) => drop(check.brought.exchanges.insert(&exchange.id)),
            _ => {}
        }
    }
    for write in &batch.writes {
        check.write(write)?;
    }
    for write in &batch.writes {
        if let Write::Exchange(exchange) = write {
            exchange.before.iter().chain(&exchange.after).try_for_each(|entry| check.entry(entry))?;
        }
    }
    Ok(())
}

impl<'b, P: Present> Check<'b, P> {
    fn write(&mut self, write: &'b Write) -> Result<(), StoreError> {
        match write {
            Write::Exchange(exchange) => self.conversation(&exchange.conversation),
            Write::Document { exchange: id, .. } | Write::Events { exchange: id, .. } => self.exchange(id),
            Write::Answer { exchange: id, .. } => self.exchange(id),
            Write::Compaction(step) => {
                self.exchange(&step.id.exchange)?;
                step.follows.as_ref().map_or(Ok(()), |follows| self.exchange(&follows.exchange))
            }
            Write::Setting(Setting { scope: Scope::Conversation(id), .. }) => self.conversation(id),
            Write::Entries(extension) => self.extension(extension),
            _ => Ok(()),
        }
    }

    fn extension(&mut self, extension: &'b Extension) -> Result<(), StoreError> {
        self.conversation(&extension.conversation)?;
        extension.exchange.as_ref().map_or(Ok(()), |id| self.exchange(id))?;
        if let Some(parent) = &extension.parent
            && self.conversation_of(parent) != Some(&extension.conversation)
        {
            return Err(StoreError::UnknownEntry(parent.clone()));
        }
        let sprouts = extension.sprouts.iter();
        self.brought.entries.extend(sprouts.map(|sprout| (sprout.id, &extension.conversation)));
        Ok(())
    }

    fn conversation(&self, id: &ConversationId) -> Result<(), StoreError> {
        if self.brought.conversations.contains(id) || self.present.has_conversation(id) {
            return Ok(());
        }
        Err(StoreError::UnknownConversation(id.clone()))
    }

    fn exchange(&self, id: &ExchangeId) -> Result<(), StoreError> {
        if self.brought.exchanges.contains(id) || self.present.has_exchange(id) {
            return Ok(());
        }
        Err(StoreError::UnknownExchange(id.clone()))
    }

    fn entry(&self, id: &EntryId) -> Result<(), StoreError> {
        self.conversation_of(id).map(drop).ok_or_else(|| StoreError::UnknownEntry(id.clone()))
    }

    fn conversation_of(&self, id: &EntryId) -> Option<&ConversationId> {
        let digest = Digest::from_entry_id(id)?;
        self.present.conversation_of(digest).or_else(|| self.brought.entries.get(&digest).copied())
    }
}
