//! An exchange whose client is the gateway itself: one round of a turn.
//!
//! Everything is as it is for clients, from the place in the history to the plan, the attempts, recall and the
//! record. Only the answer is handed over in frames instead of being written in a dialect.

use super::deliver::promise;
use super::open::{Answer, Opened, pump};
use super::relay::Relay;
use super::{Incoming, Running, broken_off, unrecorded};
use crate::capability::Form;
use crate::egress::Answered;
use crate::gateway::{Gateway, now};
use crate::ingress::reject::own;
use std::sync::Arc;
use throughline_core::{Ending, EntryId, Failure, FailureKind, Frame, Reply, Text};
use throughline_store::{ExchangeId, ProviderEvent};
use throughline_wire::status_of;
use tokio_util::sync::CancellationToken;

/// Is told of an answer while it comes.
pub(crate) trait Listener: Send {
    /// Events have come, unaltered and in their order, and these frames followed from them.
    fn heard(&mut self, events: &[ProviderEvent], frames: &[Frame]);
    /// Returns what the record is told about the answer, once all of it has come.
    fn remark(&mut self) -> Option<ProviderEvent>;
}

/// An answer, as it is in the history.
#[derive(Debug)]
pub(crate) struct Heard {
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

/// Has a request answered.
///
/// # Errors
/// When there is no answer, or it could not be recorded.
pub(crate) async fn hear(
    gateway: &Arc<Gateway>,
    incoming: Incoming,
    listener: &mut dyn Listener,
    cancel: &CancellationToken,
) -> Result<Heard, Failure> {
    let mut running = Running::begin(gateway, incoming).await?;
    let sought = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        sought = running.seek() => Some(sought),
    };
    match sought {
        None => running.called_off().await,
        Some(Ok(opened)) => running.hear_out(opened, listener, cancel).await,
        Some(Err(failure)) => {
            let recorded = running.recorder.fail(status_of(failure.kind), now()).await;
            recorded.map_err(|error| unrecorded(&error))?;
            Err(failure)
        }
    }
}

impl Running {
    async fn hear_out(
        mut self,
        mut opened: Opened,
        listener: &mut dyn Listener,
        cancel: &CancellationToken,
    ) -> Result<Heard, Failure> {
        loop {
            let Opened { prompted, sent, answer } = opened;
            self.recorder.attempt_ended(Some(200), None, now());
            let (mut reply, events) = match answer {
                Answer::Whole(reply, events) => (*reply, events),
                Answer::Stream(stream) => {
                    let (answered, relay, _) = *stream;
                    let mut sent = sent;
                    let stream = self.follow_stream(answered, relay, &mut sent, listener, cancel).await;
                    let (reply, events) = stream?;
                    return self.conclude(reply, prompted.forwards, sent, events, listener).await;
                }
                Answer::Rest(_) => return Err(broken_off()),
            };
            listener.heard(&events, &[]);
            if !self.recollect(&mut reply, sent) {
                return self.conclude(reply, prompted.forwards, sent, events, listener).await;
            }
            opened = self.ask_again(&reply, events, sent, None).await?;
        }
    }

    /// Listens to a stream up to its end, and to what follows it because the model recalled something.
    async fn follow_stream(
        &mut self,
        mut answered: Answered,
        mut relay: Relay,
        sent: &mut (usize, Form),
        listener: &mut dyn Listener,
        cancel: &CancellationToken,
    ) -> Result<(Reply, Vec<ProviderEvent>), Failure> {
        let mut out = String::new();
        let mut is_cancelled = false;
        loop {
            let events = relay.take_events();
            listener.heard(&events, &relay.take_frames());
            if relay.ending().is_some() || is_cancelled {
                let rest =
                    if is_cancelled { None } else { self.follow_after(&mut relay, events, sent).await? };
                match rest {
                    Some(next) => answered = next,
                    None => break,
                }
                continue;
            }
            self.recorder.events(events).await.map_err(|error| unrecorded(&error))?;
            tokio::select! {
                biased;
                () = cancel.cancelled() => is_cancelled = true,
                _ = pump(&mut answered, &mut relay, &mut out) => {}
            }
        }
        self.note_abort(&relay);
        let (mut reply, _) = relay.into_reply();
        if is_cancelled {
            reply.ending = Ending::Cancelled;
        }
        Ok((reply, Vec::new()))
    }

    /// Takes down the last events of an answer, and goes on if all it wants is to recall something.
    async fn follow_after(
        &mut self,
        relay: &mut Relay,
        events: Vec<ProviderEvent>,
        sent: &mut (usize, Form),
    ) -> Result<Option<Answered>, Failure> {
        self.recorder.events(events).await.map_err(|error| unrecorded(&error))?;
        Ok(self.follow(relay, sent).await.map(|(answered, _)| answered))
    }

    /// Writes the answer to the history, and returns it.
    async fn conclude(
        mut self,
        mut reply: Reply,
        forwards: bool,
        sent: (usize, Form),
        mut events: Vec<ProviderEvent>,
        listener: &mut dyn Listener,
    ) -> Result<Heard, Failure> {
        self.recollect(&mut reply, sent);
        let shown = self.shown_reply(&mut reply);
        let forwards = forwards && self.keeps_id(reply.id.as_ref()).await;
        promise(&mut self.recorder, &self.ask, &self.stamp, &reply, forwards);
        events.extend(listener.remark());
        let recorded = self.recorder.end(&reply, 200, None, events, now()).await;
        recorded.map_err(|error| unrecorded(&error))?;
        self.retell();
        let (_, after) = self.recorder.tips();
        Ok(Heard {
            exchange: self.recorder.id().clone(),
            attempt: self.recorder.attempts().saturating_sub(1),
            backend: self.destinations[sent.0].backend.name.clone(),
            model: self.destinations[sent.0].model.clone(),
            after,
            reply: shown.unwrap_or(reply),
        })
    }

    async fn called_off(mut self) -> Result<Heard, Failure> {
        self.recorder.cancel(now()).await.map_err(|error| unrecorded(&error))?;
        Err(cancelled())
    }
}

/// The failure of an answer that was called off before it began.
pub(crate) const CANCELLED: &str = "throughline_cancelled";

fn cancelled() -> Failure {
    own(FailureKind::Conflict, CANCELLED, "called off before the answer began")
}
