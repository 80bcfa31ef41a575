//! An answer on its way from a backend to whoever wants it: the one loop that every answer goes through.
//!
//! Who wants it is a [`Sink`]: a client that reads a stream or waits for the whole, a job in the background, or the
//! gateway itself. Whatever a backend says is taken down before it is passed on. When a model only recalls something,
//! it is given that and the answer goes on. What comes out is the reply as it is to be recorded, and nothing has been
//! told of its end: that is for the [conclusion](super::conclude).

use super::Running;
use super::answer_stream::AnswerStream;
use super::failures::broken_off;
use super::open::{Answer, Opened, pump};
use super::prompting::Prompted;
use crate::capability::Form;
use crate::egress::{AnswerBounds, Answered};
use crate::gateway::now;
use std::future::Future;
use throughline_core::{Ending, Failure, Frame, Reply, Text};
use throughline_store::{ProviderEvent, StoreError};

/// Where an answer goes while it comes.
pub(super) trait Sink: Send {
    /// An answer has begun, in pieces or whole.
    fn begin(&mut self, _is_whole: bool) {}

    /// Events have come, unaltered and in their order, and these frames followed from them.
    fn observe(&mut self, _events: &[ProviderEvent], _frames: &[Frame]) {}

    /// Takes what may be shown of the answer now, written in the client's dialect.
    fn send(&mut self, text: String) -> impl Future<Output = Result<(), Unwanted>> + Send;

    /// Waits until nobody wants the answer any more.
    fn unwanted(&mut self) -> impl Future<Output = ()> + Send;

    /// Says whether somebody is told that the answer was cancelled; to a client that is gone, nothing is written.
    fn waits_for_cancellation(&self) -> bool {
        false
    }

    /// Returns why the answer is ended, if it takes more than there is room for.
    fn overflow(&self, _bounds: &AnswerBounds) -> Option<Failure> {
        None
    }
}

/// Nobody wants the answer any more.
pub(super) struct Unwanted;

/// An answer of which everything has come that will come.
pub(super) struct Relayed {
    /// What was sent for it; nothing if nobody was asked.
    pub prompted: Option<Prompted>,
    /// Which of the destinations gave it.
    pub destination: usize,
    /// What it says, with what was recalled in it.
    pub reply: Reply,
    /// Events that are not in the record yet.
    pub events: Vec<ProviderEvent>,
    /// What tells the client that the answer is over, as far as it was streamed.
    pub closing: String,
    /// The whole answer as a forwarded stream gave it at its end.
    pub whole: Option<Text>,
    /// Whether it was ended because of how it came: too large, or getting nowhere.
    pub was_aborted: bool,
}

/// Why there is no answer.
pub(super) enum RelayError {
    /// It cannot be recorded.
    Store(StoreError),
    /// What was to follow on a recall did not come.
    Failed(Failure),
}

impl From<StoreError> for RelayError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Relayed {
    /// An answer for which no backend was heard.
    pub fn without_backend(reply: Reply) -> Self {
        Self {
            prompted: None,
            destination: 0,
            reply,
            events: Vec::new(),
            closing: String::new(),
            whole: None,
            was_aborted: false,
        }
    }
}

/// Brings an answer that has begun to its end.
pub(super) async fn relay(
    exchange: &mut Running,
    opened: Opened,
    sink: &mut impl Sink,
) -> Result<Relayed, RelayError> {
    let Opened { mut prompted, mut sent, mut answer } = opened;
    sink.begin(matches!(answer, Answer::Whole(..)));
    loop {
        exchange.recorder.attempt_ended(Some(200), None, now());
        let (mut reply, events) = match answer {
            Answer::Whole(reply, events) => (*reply, events),
            Answer::Stream(stream) => {
                return Box::pin(relay_stream(exchange, *stream, prompted, sent, sink)).await;
            }
            Answer::Rest(_) => return Err(RelayError::Failed(broken_off())),
        };

        sink.observe(&events, &[]);
        if !exchange.recollect(&mut reply, sent) {
            let nothing = Relayed::without_backend(reply);
            return Ok(Relayed { prompted: Some(prompted), destination: sent.0, events, ..nothing });
        }
        let next = exchange.ask_again(&reply, events, sent, None).await;
        Opened { prompted, sent, answer } = next.map_err(RelayError::Failed)?;
    }
}

/// Brings a stream to its end.
async fn relay_stream(
    exchange: &mut Running,
    (mut answered, mut stream, mut out): (Answered, AnswerStream, String),
    prompted: Prompted,
    mut sent: (usize, Form),
    sink: &mut impl Sink,
) -> Result<Relayed, RelayError> {
    let mut is_unwanted = false;
    loop {
        let events = stream.take_events();
        sink.observe(&events, &stream.take_frames());
        exchange.recorder.events(events).await?;
        if !out.is_empty() {
            is_unwanted |= sink.send(std::mem::take(&mut out)).await.is_err();
        }
        if is_unwanted {
            break;
        }

        if stream.ending().is_some() {
            match exchange.follow(&mut stream, &mut sent).await {
                Some(rest) => (answered, out) = rest,
                None => break,
            }
            continue;
        }

        tokio::select! {
            // Even where the backend always has something to say.
            biased;
            () = sink.unwanted() => is_unwanted = true,
            _ = pump(&mut answered, &mut stream, &mut out) => {}
        }
        if let Some(failure) = sink.overflow(&answered.bounds) {
            stream.abort(failure, now(), &mut out);
        }
    }

    if is_unwanted && stream.ending().is_none() && sink.waits_for_cancellation() {
        stream.call_off(&mut out);
        let _ = sink.send(out).await;
    }
    exchange.note_abort(&stream);
    let (events, whole, was_aborted) = (stream.take_events(), stream.take_whole(), stream.was_aborted());
    let (mut reply, closing) = stream.into_reply();
    if is_unwanted {
        reply.ending = Ending::Cancelled;
    }
    exchange.recollect(&mut reply, sent);
    let (prompted, destination) = (Some(prompted), sent.0);
    Ok(Relayed { prompted, destination, reply, events, closing, whole, was_aborted })
}
