//! An answer that is generated whether or not anybody waits for it.
//!
//! The client is told at once that its request is queued, and that is in the history before the client has it.
//! From then on the answer is driven to its end here, unless it is called off. Its events have our own ids and
//! numbers, whatever the backend, since the client knew the first of them before any backend was asked.

use super::open::{Answer, Opened, pump};
use super::relay::{Relay, Terms, rename};
use super::{Running, broken_off, too_large, unrecorded};
use crate::background::{Job, UnderWay};
use crate::capability::Form;
use crate::drain::Hold;
use crate::elsewhere;
use crate::gateway::now;
use crate::ingress::reject::{own, reject};
use crate::ingress::stored;
use axum::body::Body;
use axum::response::Response;
use std::sync::Arc;
use throughline_core::{Ask, Dialect, Ending, Failure, FailureKind, Reply, Stop, Text};
use throughline_store::{ProviderEvent, StoreError};
use throughline_wire::json::{Edit, patch, quote};
use throughline_wire::{encode_reply, status_of};

/// The field that asks for an answer in the background.
pub const FIELD: &str = "background";

/// Says whether the answer is to be generated in the background.
pub fn is_wanted(ask: &Ask) -> bool {
    let is_own = ask.dialect == Dialect::Responses;
    ask.fields.iter().rfind(|field| is_own && field.name == FIELD).is_some_and(|field| field.value == "true")
}

/// Says whether the answer can be generated in the background, if that is asked for.
///
/// # Errors
/// When nobody could have the answer.
pub fn check(ask: &Ask) -> Result<(), Failure> {
    if is_wanted(ask) && ask.settings.store == Some(false) {
        let message = "store: a response that is generated in the background must be stored, to be had later";
        return Err(Failure {
            param: Some(Text::from_static("store")),
            ..own(FailureKind::InvalidRequest, "throughline_invalid_request", message)
        });
    }
    Ok(())
}

impl Running {
    /// Leaves the answer to be generated, and says so.
    pub(super) async fn leave_running(mut self) -> Response {
        let id = Text::from(format!("resp_{}", self.stamp.id));
        let Some(under_way) = self.gateway.background.begin(&id) else {
            let message = "too many responses are generated in the background; try again in a moment";
            return self.give_up(own(FailureKind::Overloaded, "throughline_busy", message)).await;
        };
        let queued = self.in_status("queued");
        self.recorder.promise(id.clone(), true);
        if let Err(error) = self.recorder.queue(Text::from(queued.as_str())).await {
            return reject(self.ask.dialect, &unrecorded(&error));
        }
        under_way.job.say(stored::event("response.created", 0, &queued));
        let response = if self.ask.stream {
            let body = stored::following(Arc::clone(&under_way.job), 0);
            self.head(body, "text/event-stream")
        } else {
            self.head(Body::from(queued), "application/json")
        };
        elsewhere::tend(&self.gateway, &id, &under_way.job);
        // Held from here on: between now and the first poll of the task, the gateway may be told to stop.
        let hold = self.gateway.drain.hold();
        tokio::spawn(self.drive(under_way, hold));
        response
    }

    /// Brings the answer to its end, one way or another.
    async fn drive(mut self, under_way: UnderWay, _held: Hold) {
        let job = Arc::clone(&under_way.job);
        let opened = tokio::select! {
            opened = self.seek() => opened.map_err(Ending::Failed),
            () = job.called_off() => Err(Ending::Cancelled),
        };
        let heard = match opened {
            Ok(opened) => {
                job.start();
                self.listen(opened, &job).await
            }
            Err(ending) => {
                let reason = Text::from_static("the answer was called off");
                self.recorder.attempt_ended(
                    None,
                    Some(reason).filter(|_| ending == Ending::Cancelled),
                    now(),
                );
                Ok(Heard { reply: nothing(ending), events: Vec::new(), closing: String::new() })
            }
        };
        if let Err(error) = self.finish(heard, &job).await {
            tracing::error!(%error, "an answer in the background was not recorded");
            let failed = stored::failed(&self.in_status("in_progress"), &unrecorded(&error));
            job.say(stored::last_event(&failed, job.progress().events as u64));
        }
    }

    /// Takes in what the backend says, up to its end or until it is called off.
    async fn listen(&mut self, opened: Opened, job: &Job) -> Result<Heard, StoreError> {
        self.recorder.attempt_ended(Some(200), None, now());
        let mut sent = opened.sent;
        let (mut answered, mut relay, mut out) = match opened.answer {
            Answer::Whole(reply, events) => {
                job.say(stored::event("response.in_progress", 1, &self.in_status("in_progress")));
                return Ok(self.listen_whole(reply, events, sent).await);
            }
            Answer::Stream(stream) => *stream,
            Answer::Rest(_) => {
                let reply = nothing(Ending::Failed(broken_off()));
                return Ok(Heard { reply, events: Vec::new(), closing: String::new() });
            }
        };
        loop {
            say_all(job, &std::mem::take(&mut out));
            if relay.ending().is_some() {
                let Some(rest) = self.follow(&mut relay, &mut sent).await else {
                    self.note_abort(&relay);
                    let mut heard = Heard::of(relay);
                    self.recollect(&mut heard.reply, sent);
                    return Ok(heard);
                };
                (answered, out) = rest;
                continue;
            }
            tokio::select! {
                // Even where the backend always has something to say.
                biased;
                () = job.called_off() => relay.call_off(&mut out),
                _ = pump(&mut answered, &mut relay, &mut out) => {}
            }
            if job.bytes() > answered.bounds.bytes.saturating_mul(4) {
                let limit = answered.bounds.bytes.saturating_mul(4);
                relay.abort(too_large(format!("its events take more than {limit} bytes")), now(), &mut out);
            }
            self.recorder.events(relay.take_events()).await?;
        }
    }

    /// Takes in answers that come whole, until one is for the client.
    async fn listen_whole(
        &mut self,
        mut reply: Box<Reply>,
        mut events: Vec<ProviderEvent>,
        sent: (usize, Form),
    ) -> Heard {
        while self.recollect(&mut reply, sent) {
            let next = self.ask_again(&reply, std::mem::take(&mut events), sent, None).await;
            (reply, events) = match next {
                Ok(Opened { answer: Answer::Whole(reply, events), .. }) => (reply, events),
                Ok(_) => (Box::new(nothing(Ending::Failed(broken_off()))), Vec::new()),
                Err(failure) => (Box::new(nothing(Ending::Failed(failure))), Vec::new()),
            };
        }
        Heard { reply: *reply, events, closing: String::new() }
    }

    /// Writes how the answer ended, then says so to whoever follows it.
    async fn finish(&mut self, heard: Result<Heard, StoreError>, job: &Job) -> Result<(), StoreError> {
        let Heard { mut reply, events, closing } = heard?;
        let shown = self.shown_reply(&mut reply);
        let shown = shown.as_ref().unwrap_or(&reply);
        let answer = self.settled(&encode_reply(self.ask.dialect, shown, &self.stamp, &self.ask));
        let status = match &reply.ending {
            Ending::Failed(failure) => status_of(failure.kind),
            _ => 200,
        };
        self.recorder.end(&reply, status, Some(Text::from(answer.as_str())), events, now()).await?;
        self.retell();
        if closing.is_empty() {
            job.say(stored::last_event(&answer, job.progress().events as u64));
        } else {
            say_all(job, &closing);
        }
        Ok(())
    }

    /// Returns the response in a status in which nothing has been said.
    fn in_status(&self, status: &str) -> String {
        let reply = nothing(Ending::Stopped(Stop::EndTurn));
        let object = encode_reply(self.ask.dialect, &reply, &self.stamp, &self.ask);
        let status = quote(status);
        let edits =
            [Edit::Set { name: "status", value: &status }, Edit::Set { name: "completed_at", value: "null" }];
        patch(&object, &edits).unwrap_or(object)
    }

    /// Returns the final response with what the backend did not know: the id, and what the client asked for.
    fn settled(&self, response: &str) -> String {
        let id = quote(&format!("resp_{}", self.stamp.id));
        let edits = [Edit::Set { name: "id", value: &id }, Edit::Set { name: "background", value: "true" }];
        let response = patch(response, &edits).unwrap_or_else(|_| response.to_owned());
        rename(&response, &Terms::of(&self.ask)).unwrap_or(response)
    }
}

/// What came of an answer.
struct Heard {
    reply: Reply,
    events: Vec<ProviderEvent>,
    /// The events that end it, where it was streamed.
    closing: String,
}

impl Heard {
    fn of(mut relay: Relay) -> Self {
        let events = relay.take_events();
        let (reply, closing) = relay.into_reply();
        Self { reply, events, closing }
    }
}

/// Adds the events of a piece of a stream. The first one of the stream was said before, and the mark at its end
/// is said by whoever reads it out.
fn say_all(job: &Job, piece: &str) {
    let is_said = |event: &&str| event.starts_with("event: response.created\n");
    let is_mark = |event: &&str| event.starts_with("data: [DONE]");
    for event in piece.split_inclusive("\n\n").filter(|event| !is_said(event) && !is_mark(event)) {
        job.say(event.to_owned());
    }
}

fn nothing(ending: Ending) -> Reply {
    Reply { id: None, model: None, entries: Vec::new(), ending, usage: None, fields: None }
}
