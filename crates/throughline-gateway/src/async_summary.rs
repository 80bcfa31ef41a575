//! Who is retelling what: old rounds in the words of a model, while nobody waits (R11, R19).
//!
//! One conversation is retold once at a time. What comes of it is kept in the record, so nothing here has to
//! outlive the process.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::ConversationId;
use throughline_store::{Attempt, Exchange};
use tokio::sync::watch;

/// What the record calls an attempt that is to write a summary.
pub const SUMMARY: &str = "summary";

/// The conversations that are being retold.
#[derive(Debug, Default)]
pub struct AsyncSummaries {
    under_way: Mutex<BTreeSet<ConversationId>>,
    count: watch::Sender<usize>,
}

/// A conversation that is being retold for as long as this is held.
#[derive(Debug)]
pub struct AsyncSummary {
    all: Arc<AsyncSummaries>,
    conversation: ConversationId,
}

/// Returns the attempt that an exchange was answered by: the last one, but for what was asked afterwards.
#[must_use]
pub fn answering(exchange: &Exchange) -> Option<&Attempt> {
    let is_of_turn = |attempt: &&Attempt| attempt.strategy.as_deref() != Some(SUMMARY);
    exchange.attempts.iter().rev().find(is_of_turn)
}

impl AsyncSummaries {
    /// Begins with a conversation, unless it is being retold already.
    #[must_use]
    pub fn begin(self: &Arc<Self>, conversation: &ConversationId) -> Option<AsyncSummary> {
        let is_new = self.under_way().insert(conversation.clone());
        is_new.then(|| {
            self.count.send_modify(|count| *count += 1);
            AsyncSummary { all: Arc::clone(self), conversation: conversation.clone() }
        })
    }

    /// Waits until nothing is being retold.
    pub async fn idle(&self) {
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, BTreeSet<ConversationId>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AsyncSummary {
    fn drop(&mut self) {
        self.all.under_way().remove(&self.conversation);
        self.all.count.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_conversation_is_retold_once_at_a_time() {
        let all = Arc::new(AsyncSummaries::default());
        let (one, two) = (ConversationId::new("one"), ConversationId::new("two"));
        let first = all.begin(&one);
        assert!(first.is_some() && all.begin(&one).is_none() && all.begin(&two).is_some());
        drop(first);
        assert!(all.begin(&one).is_some());
        all.idle().await;
    }
}
