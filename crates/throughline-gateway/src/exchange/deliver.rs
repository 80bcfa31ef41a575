//! An answer on its way to a client over HTTP, whole or streamed.
//!
//! A stream is driven by a task of its own: a client that goes away closes the channel, the task drops the
//! connection to the backend, and the record says that the answer was called off.

use super::Running;
use super::conclude::{Concluded, Recipient};
use super::failures::unrecorded;
use super::open::{Answer, Opened};
use super::prompting::Prompted;
use super::relay::{RelayError, Sink, Unwanted, relay};
use crate::failure::reject;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use std::convert::Infallible;
use std::sync::Arc;
use throughline_core::{Dialect, Ending, Failure};
use throughline_wire::encode_error;
use throughline_wire::sse::write_event;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many pieces of an answer may wait for a slow client.
const PIECES_WAITING_MAX: usize = 64;

/// How many bytes of them may; a larger piece waits alone.
const BYTES_WAITING_MAX: usize = 1 << 20;

impl Running {
    /// Delivers an answer that has begun.
    pub(super) async fn deliver(mut self, opened: Opened) -> Response {
        self.reading.release_sent();
        if !self.ask.stream || matches!(opened.answer, Answer::Whole(..)) {
            return Box::pin(self.deliver_whole(opened)).await;
        }
        let (client, receiver) = ClientStream::open();
        let response = self.response(body_of(receiver), "text/event-stream", &opened.prompted);
        tokio::spawn(self.deliver_stream(opened, client));
        response
    }

    async fn deliver_whole(mut self, opened: Opened) -> Response {
        let relayed = match relay(&mut self, opened, &mut WaitingClient).await {
            Ok(relayed) => relayed,
            Err(RelayError::Failed(failure)) => return self.give_up(failure).await,
            Err(RelayError::Store(error)) => return reject(self.ask.dialect, &unrecorded(&error)),
        };
        // A failure that the backend told of is its answer; one of ours is not.
        if let Ending::Failed(failure) = &relayed.reply.ending
            && (relayed.was_aborted || self.recalls.have_begun())
        {
            let failure = failure.clone();
            self.take_down(relayed.events).await;
            return self.give_up(failure).await;
        }
        match self.conclude(relayed, Recipient::Whole).await {
            Ok(Concluded { prompted, body, .. }) => {
                let body = Body::from(body.unwrap_or_default());
                match prompted {
                    Some(prompted) => self.response(body, "application/json", &prompted),
                    None => self.head(body, "application/json"),
                }
            }
            Err(error) => reject(self.ask.dialect, &unrecorded(&error)),
        }
    }

    async fn deliver_stream(mut self, opened: Opened, mut client: ClientStream) {
        let mut closing = String::new();
        let concluded = match relay(&mut self, opened, &mut client).await {
            Ok(mut relayed) => {
                closing = std::mem::take(&mut relayed.closing);
                self.conclude(relayed, Recipient::Stream).await.map(drop).map_err(|error| unrecorded(&error))
            }
            Err(RelayError::Store(error)) => Err(unrecorded(&error)),
            Err(RelayError::Failed(failure)) => Err(failure),
        };
        if let Err(failure) = concluded {
            let reason = failure.message.as_str();
            tracing::error!(request = self.recorder.id().as_str(), reason, "an answer was not recorded");
            closing = error_event(self.ask.dialect, &failure);
        }
        // A client that is gone by now has all it waited for.
        let _ = client.send(closing).await;
    }

    /// Returns the answer with the headers that say what became of the request.
    fn response(&self, body: Body, content_type: &'static str, prompted: &Prompted) -> Response {
        let mut response = self.head(body, content_type);
        set_header(&mut response, "x-throughline-backend", &prompted.destination.backend.name);
        set_header(&mut response, "x-throughline-report", &prompted.summary());
        response
    }

    /// Returns an answer with the headers that say where it is in the history.
    pub(super) fn head(&self, body: Body, content_type: &'static str) -> Response {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        set_header(&mut response, "x-throughline-conversation", self.placed.conversation.as_str());
        set_header(&mut response, "x-throughline-request", self.recorder.id().as_str());
        if self.recorder.lapsed {
            set_header(&mut response, "x-throughline-recorded", "no");
        }
        response
    }
}

fn set_header(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

/// A client that waits for the whole answer. One that goes away takes the exchange with it, so nothing looks out for
/// that here.
struct WaitingClient;

impl Sink for WaitingClient {
    async fn send(&mut self, _: String) -> Result<(), Unwanted> {
        Ok(())
    }

    async fn unwanted(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// The way of an answer's pieces to a client that streams, which takes no more than the client is about to read.
struct ClientStream {
    pieces: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

impl ClientStream {
    fn open() -> (Self, mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>) {
        let (pieces, receiver) = mpsc::channel(PIECES_WAITING_MAX);
        (Self { pieces, room: Arc::new(Semaphore::new(BYTES_WAITING_MAX)) }, receiver)
    }
}

impl Sink for ClientStream {
    /// Hands over a piece once there is room for it.
    async fn send(&mut self, text: String) -> Result<(), Unwanted> {
        let bytes = u32::try_from(text.len().min(BYTES_WAITING_MAX)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(bytes) => room.map_err(|_| Unwanted)?,
            () = self.pieces.closed() => return Err(Unwanted),
        };
        self.pieces.send((Bytes::from(text), room)).await.map_err(|_| Unwanted)
    }

    async fn unwanted(&mut self) {
        self.pieces.closed().await;
    }
}

fn error_event(dialect: Dialect, failure: &Failure) -> String {
    let mut event = String::new();
    let name = (dialect != Dialect::Chat).then_some("error");
    write_event(&mut event, name, &encode_error(dialect, failure));
    event
}

fn body_of(receiver: mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>) -> Body {
    Body::from_stream(stream::unfold(receiver, |mut receiver| async move {
        // There is room for the next as soon as this one is taken.
        let (piece, _) = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    }))
}
