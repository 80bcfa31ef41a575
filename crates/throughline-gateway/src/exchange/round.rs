//! An exchange whose client is the gateway itself: one round of a turn.
//!
//! Everything is as it is for clients, from the place in the history to the plan, the attempts, recall and the
//! record. Only the answer is handed over in frames instead of being written in a dialect.

use super::conclude::Recipient;
use super::failures::unrecorded;
use super::open::Opened;
use super::relay::{RelayError, Sink, Unwanted, relay};
use super::{OwnRequest, Running};
use crate::failure::gateway_error;
use crate::gateway::{Gateway, now};
use std::sync::Arc;
use throughline_core::{EntryId, Failure, FailureKind, Frame, Reply, Text};
use throughline_store::{ExchangeId, ProviderEvent};
use throughline_wire::status_of;
use tokio_util::sync::CancellationToken;

/// Is told of an answer while it comes.
pub(crate) trait Listener: Send {
    /// Events have come, unaltered and in their order, and these frames followed from them.
    fn observe(&mut self, events: &[ProviderEvent], frames: &[Frame]);
    /// Returns what the record is told about the answer, once all of it has come.
    fn remark(&mut self) -> Option<ProviderEvent>;
}

/// An answer, as it is in the history.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The exchange that brought it.
    pub exchange: ExchangeId,
    /// The last attempt of that exchange.
    pub attempt: u32,
    /// Who answered.
    pub backend: Text,
    /// Its model.
    pub model: Text,
    /// The last entry of it.
    pub after: Option<EntryId>,
    /// What it says, without what the gateway answered itself.
    pub reply: Reply,
}

/// The failure of an answer that was called off before it began.
pub(crate) const CANCELLED: &str = "throughline_cancelled";

/// Has a request answered.
///
/// # Errors
/// When there is no answer, or it could not be recorded.
pub(crate) async fn answer_in_process(
    gateway: &Arc<Gateway>,
    request: OwnRequest,
    listener: &mut dyn Listener,
    cancel: &CancellationToken,
) -> Result<Answer, Failure> {
    let mut running = Running::begin(gateway, request.into()).await?;
    let sought = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        sought = running.seek() => Some(sought),
    };
    match sought {
        None => running.cancel_in_process().await,
        Some(Ok(opened)) => running.listen(opened, InProcess { listener, cancel }).await,
        Some(Err(failure)) => running.fail_in_process(failure).await,
    }
}

impl Running {
    async fn listen(mut self, opened: Opened, mut sink: InProcess<'_>) -> Result<Answer, Failure> {
        let mut relayed = match relay(&mut self, opened, &mut sink).await {
            Ok(relayed) => relayed,
            Err(RelayError::Store(error)) => return Err(unrecorded(&error)),
            Err(RelayError::Failed(failure)) => return self.fail_in_process(failure).await,
        };
        relayed.events.extend(sink.listener.remark());
        let destination = self.destinations[relayed.destination].clone();
        let concluded = self.conclude(relayed, Recipient::InProcess).await;
        let reply = concluded.map_err(|error| unrecorded(&error))?.shown;
        let (_, after) = self.recorder.tips();
        Ok(Answer {
            exchange: self.recorder.id().clone(),
            attempt: self.recorder.attempts().saturating_sub(1),
            backend: destination.backend.name.clone(),
            model: destination.model,
            after,
            reply,
        })
    }

    async fn fail_in_process(mut self, failure: Failure) -> Result<Answer, Failure> {
        let recorded = self.recorder.fail(status_of(failure.kind), now()).await;
        recorded.map_err(|error| unrecorded(&error))?;
        Err(failure)
    }

    async fn cancel_in_process(mut self) -> Result<Answer, Failure> {
        self.recorder.cancel(now()).await.map_err(|error| unrecorded(&error))?;
        Err(gateway_error(FailureKind::Conflict, CANCELLED, "called off before the answer began"))
    }
}

/// The gateway itself, which listens.
struct InProcess<'l> {
    listener: &'l mut dyn Listener,
    cancel: &'l CancellationToken,
}

impl Sink for InProcess<'_> {
    fn observe(&mut self, events: &[ProviderEvent], frames: &[Frame]) {
        self.listener.observe(events, frames);
    }

    /// Whoever listens is given frames, and no text is written for it.
    async fn send(&mut self, _: String) -> Result<(), Unwanted> {
        Ok(())
    }

    async fn unwanted(&mut self) {
        self.cancel.cancelled().await;
    }
}
