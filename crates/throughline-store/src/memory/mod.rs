//! A history that lives in this process and ends with it: for tests, and for running without a record.
//!
//! It keeps the same records as the durable stores and answers in the same way; nothing of it is on a disk,
//! so a durable batch is as certain as a relaxed one: not at all.

mod prune;
mod read;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline_core::ConversationId;
use tokio::sync::watch;

use crate::changes::ring;
use crate::upkeep::{Prune, Pruned};
use crate::{
    Answer, Batch, Changes, CompactionStep, Conversations, Entries, Exchange, ExchangeId, Exchanges, Heading,
    History, Hit, Kept, Locate, Located, Page, Receipt, Recording, Search, Standing, StoreError, Which,
};
use state::State;

/// A history that lives in this process and ends with it.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
    rung: watch::Sender<u64>,
}

impl Memory {
    /// Returns an empty history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A batch is checked before it is applied, so a panic elsewhere leaves no half of one behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History for Memory {
    fn append(&self, batch: Batch) -> Answer<'_, Receipt> {
        Box::pin(async move {
            let receipt = self.state().append(&batch)?;
            ring(&self.rung);
            Ok(receipt)
        })
    }

    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>> {
        Box::pin(async move { Ok(self.state().locate(&locate)) })
    }

    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>> {
        Box::pin(async move { self.state().conversations(&which) })
    }

    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>> {
        Box::pin(async move { self.state().entries(&which) })
    }

    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>> {
        Box::pin(async move { self.state().exchanges(&which) })
    }

    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording> {
        Box::pin(async move { Ok(self.state().recording(&exchange, which)) })
    }

    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>> {
        Box::pin(async move {
            let state = self.state();
            let of_conversation = |step: &&CompactionStep| step.conversation == conversation;
            Ok(state.compaction.iter().filter(of_conversation).cloned().collect())
        })
    }

    fn search(&self, search: Search) -> Answer<'_, Page<Hit>> {
        Box::pin(async move { self.state().search(&search) })
    }

    fn standing(&self) -> Answer<'_, Standing> {
        Box::pin(async move { Ok::<_, StoreError>(self.state().standing()) })
    }

    fn prune(&self, prune: Prune) -> Answer<'_, Pruned> {
        Box::pin(async move {
            let pruned = self.state().prune(&prune);
            ring(&self.rung);
            Ok(pruned)
        })
    }

    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn changes(&self) -> Changes {
        Changes::of(&self.rung)
    }
}
