//! The answer on its way to the client, whole or streamed.
//!
//! A stream is driven by a task of its own: a client that goes away closes the channel, the task drops the
//! connection to the backend, and the record says that the answer was called off.

use super::editing::told;
use super::open::{Answer, Opened, pump};
use super::prompting::{BRIEF, Prompted};
use super::record::Recorder;
use super::relay::{Relay, Terms, rename};
use super::{Running, broken_off, unrecorded};
use crate::capability::Form;
use crate::egress::Answered;
use crate::gateway::now;
use crate::ingress::reject::reject;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header};
use std::convert::Infallible;
use std::sync::Arc;
use throughline_core::{Ask, Dialect, Ending, Reply, Text};
use throughline_store::{ProviderEvent, StoreError};
use throughline_wire::sse::write_event;
use throughline_wire::{Stamp, encode_error, encode_reply};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many pieces of an answer may wait for a slow client.
const PIECES_WAITING_MAX: usize = 64;

/// How many bytes of them may; a larger piece waits alone.
const BYTES_WAITING_MAX: usize = 1 << 20;

impl Running {
    /// Delivers an answer that has begun.
    pub(super) async fn deliver(mut self, opened: Opened) -> Response {
        let mut opened = opened;
        self.reading.release_sent();
        loop {
            let Opened { prompted, sent, answer } = opened;
            self.recorder.attempt_ended(Some(200), None, now());
            let (mut reply, events) = match answer {
                Answer::Whole(reply, events) => (reply, events),
                Answer::Stream(stream) => return self.deliver_stream(*stream, prompted, sent).await,
                Answer::Rest(_) => return self.give_up(broken_off()).await,
            };
            if !self.recollect(&mut reply, sent) {
                return self.answer_whole(*reply, &prompted, events).await;
            }
            match self.ask_again(&reply, events, sent, None).await {
                Ok(next) => opened = next,
                Err(failure) => return self.give_up(failure).await,
            }
        }
    }

    async fn answer_whole(
        &mut self,
        mut reply: Reply,
        prompted: &Prompted,
        events: Vec<ProviderEvent>,
    ) -> Response {
        let shown = self.shown_reply(&mut reply);
        let body = encode_reply(self.ask.dialect, shown.as_ref().unwrap_or(&reply), &self.stamp, &self.ask);
        let forwards = prompted.forwards && self.keeps_id(reply.id.as_ref()).await;
        let own_id = self.has_own_id.then(|| self.own_id());
        let body = rename(&body, &Terms { id: own_id, ..Terms::of(&self.ask) }).unwrap_or(body);
        let body = told(&body, prompted.applied.as_ref()).unwrap_or(body);
        promise(&mut self.recorder, &self.ask, &self.stamp, &reply, forwards);
        let answer = (self.ask.dialect == Dialect::Responses).then(|| Text::from(body.as_str()));
        if let Err(error) = self.recorder.end(&reply, 200, answer, events, now()).await {
            return reject(self.ask.dialect, &unrecorded(&error));
        }
        self.know(prompted, &reply);
        self.retell();
        self.response(Body::from(body), "application/json", prompted)
    }

    /// Remembers what the next request need not say again to be understood.
    fn know(&mut self, prompted: &Prompted, reply: &Reply) {
        // What a brief stands for is in the record alone.
        if prompted.report.strategy == BRIEF {
            return;
        }
        let (request, answer) = ((&self.ask, &self.placed), (prompted, reply));
        self.reading.learn(&self.gateway, &self.recorder, request, answer);
    }

    async fn deliver_stream(
        mut self,
        (mut answered, mut relay, mut out): (Answered, Relay, String),
        prompted: Prompted,
        mut sent: (usize, Form),
    ) -> Response {
        if !self.ask.stream {
            loop {
                while relay.ending().is_none() && pump(&mut answered, &mut relay, &mut out).await {
                    out.clear();
                    if let Err(error) = self.recorder.events(relay.take_events()).await {
                        return reject(self.ask.dialect, &unrecorded(&error));
                    }
                }
                match self.follow(&mut relay, &mut sent).await {
                    Some((next, _)) => answered = next,
                    None => break,
                }
            }
            let events = relay.take_events();
            let was_aborted = relay.was_aborted();
            self.note_abort(&relay);
            let (mut reply, _) = relay.into_reply();
            if let Ending::Failed(failure) = &reply.ending
                && (was_aborted || self.recalls.have_begun())
            {
                self.take_down(events).await;
                return self.give_up(failure.clone()).await;
            }
            self.recollect(&mut reply, sent);
            return self.answer_whole(reply, &prompted, events).await;
        }
        let (sender, receiver) = pieces();
        let response = self.response(body_of(receiver), "text/event-stream", &prompted);
        let stream = Stream { running: self, prompted, sent, sender };
        tokio::spawn(stream.drive(answered, relay, out));
        response
    }

    /// Returns the answer with the headers that say what became of the request.
    fn response(&self, body: Body, content_type: &'static str, prompted: &Prompted) -> Response {
        let mut response = self.head(body, content_type);
        say(&mut response, "x-throughline-backend", &prompted.destination.backend.name);
        say(&mut response, "x-throughline-report", &prompted.summary());
        response
    }

    /// Returns an answer with the headers that say where it is in the history.
    pub(super) fn head(&self, body: Body, content_type: &'static str) -> Response {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        say(&mut response, "x-throughline-conversation", self.placed.conversation.as_str());
        say(&mut response, "x-throughline-request", self.recorder.id().as_str());
        if self.recorder.lapsed {
            say(&mut response, "x-throughline-recorded", "no");
        }
        response
    }
}

fn say(response: &mut Response, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

/// A streamed answer under way.
struct Stream {
    running: Running,
    prompted: Prompted,
    /// To whom the request went, and in which form.
    sent: (usize, Form),
    sender: PieceSender,
}

/// The way of an answer's pieces to the client, which takes no more than the client is about to read.
struct PieceSender {
    pieces: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

fn pieces() -> (PieceSender, mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>) {
    let (pieces, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    (PieceSender { pieces, room: Arc::new(Semaphore::new(BYTES_WAITING_MAX)) }, receiver)
}

impl PieceSender {
    /// Hands over a piece once there is room for it; fails when the client is gone.
    async fn send(&self, piece: Bytes) -> Result<(), ClientGone> {
        let bytes = u32::try_from(piece.len().min(BYTES_WAITING_MAX)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(bytes) => room.map_err(|_| ClientGone)?,
            () = self.pieces.closed() => return Err(ClientGone),
        };
        self.pieces.send((piece, room)).await.map_err(|_| ClientGone)
    }

    async fn closed(&self) {
        self.pieces.closed().await;
    }
}

/// The client does not wait for its answer any more.
struct ClientGone;

impl Stream {
    async fn drive(mut self, mut answered: Answered, mut relay: Relay, mut out: String) {
        loop {
            if !out.is_empty() && self.sender.send(Bytes::from(std::mem::take(&mut out))).await.is_err() {
                return self.called_off(relay).await;
            }
            if relay.ending().is_some() {
                let Some(rest) = self.running.follow(&mut relay, &mut self.sent).await else { break };
                (answered, out) = rest;
                continue;
            }
            tokio::select! {
                // A client that is gone is noticed also while the backend is silent.
                () = self.sender.closed() => return self.called_off(relay).await,
                _ = pump(&mut answered, &mut relay, &mut out) => {}
            }
            // The events of an answer that is not the last are written with it.
            let events = relay.take_events();
            if let Err(error) = self.running.recorder.events(events).await {
                return self.unrecorded(&error).await;
            }
        }
        self.close(relay).await;
    }

    /// Writes the answer to the history, then tells the client that it is over.
    async fn close(mut self, mut relay: Relay) {
        self.running.note_abort(&relay);
        let events = relay.take_events();
        let whole = relay.take_whole();
        let (reply, closing) = relay.into_reply();
        if let Err(error) = self.end(reply, whole, events).await {
            return self.unrecorded(&error).await;
        }
        // A client that is gone by now has all it waited for.
        let _ = self.sender.send(Bytes::from(closing)).await;
    }

    async fn end(
        &mut self,
        mut reply: Reply,
        whole: Option<Text>,
        events: Vec<ProviderEvent>,
    ) -> Result<(), StoreError> {
        self.running.recollect(&mut reply, self.sent);
        let shown = self.running.shown_reply(&mut reply);
        let Running { recorder, ask, stamp, has_own_id, .. } = &mut self.running;
        promise(recorder, ask, stamp, &reply, self.prompted.forwards && !*has_own_id);
        let shown = shown.as_ref().unwrap_or(&reply);
        let written = || Text::from(encode_reply(Dialect::Responses, shown, stamp, ask));
        let answer = (ask.dialect == Dialect::Responses).then(|| whole.unwrap_or_else(written));
        recorder.end(&reply, 200, answer, events, now()).await?;
        self.running.know(&self.prompted, &reply);
        self.running.retell();
        Ok(())
    }

    async fn called_off(mut self, mut relay: Relay) {
        let events = relay.take_events();
        let (mut reply, _) = relay.into_reply();
        self.running.recollect(&mut reply, self.sent);
        reply.ending = Ending::Cancelled;
        if let Err(error) = self.running.recorder.end(&reply, 200, None, events, now()).await {
            tracing::error!(%error, "a cancelled answer was not recorded");
        }
    }

    async fn unrecorded(self, error: &StoreError) {
        let dialect = self.running.ask.dialect;
        let body = encode_error(dialect, &unrecorded(error));
        let mut event = String::new();
        write_event(&mut event, (dialect != Dialect::Chat).then_some("error"), &body);
        let _ = self.sender.send(Bytes::from(event)).await;
    }
}

/// Notes the id by which the client may refer to the answer later.
pub(super) fn promise(recorder: &mut Recorder, ask: &Ask, stamp: &Stamp, reply: &Reply, forwards: bool) {
    if ask.dialect != Dialect::Responses {
        return;
    }
    let own = || Text::from(response_id(&stamp.id));
    let id = reply.id.clone().filter(|_| forwards).unwrap_or_else(own);
    recorder.promise(id, ask.settings.store.unwrap_or(true));
}

/// Returns the id of an answer that has none of the backend's.
pub(super) fn response_id(exchange: &str) -> String {
    format!("resp_{exchange}")
}

fn body_of(receiver: mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>) -> Body {
    Body::from_stream(stream::unfold(receiver, |mut receiver| async move {
        // There is room for the next as soon as this one is taken.
        let (piece, _) = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    }))
}
