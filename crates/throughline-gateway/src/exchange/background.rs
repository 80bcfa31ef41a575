//! An answer that is generated whether or not anybody waits for it.
//!
//! The client is told at once that its request is queued, and that is in the history before the client has it.
//! From then on the answer is driven to its end here, unless it is called off. Its events have our own ids and
//! numbers, whatever the backend, since the client knew the first of them before any backend was asked.

use super::Running;
use super::conclude::Recipient;
use super::failures::{too_large, unrecorded};
use super::relay::{RelayError, Relayed, Sink, Unwanted, relay};
use crate::background::{Job, UnderWay, following, last_response, response_event};
use crate::drain::Hold;
use crate::egress::AnswerBounds;
use crate::failure::{gateway_error, reject};
use crate::gateway::now;
use crate::remote_jobs;
use axum::body::Body;
use axum::response::Response;
use std::sync::Arc;
use throughline_core::{Ending, Failure, FailureKind, Reply, Stop, Text};
use throughline_store::StoreError;
use throughline_wire::{encode_reply, failed_response, response_in_status};

impl Running {
    /// Leaves the answer to be generated, and says so.
    pub(super) async fn leave_running(mut self) -> Response {
        let id = Text::from(format!("resp_{}", self.stamp.id));
        let Some(under_way) = self.gateway.background.begin(&id) else {
            let message = "too many responses are generated in the background; try again in a moment";
            return self.give_up(gateway_error(FailureKind::Overloaded, "throughline_busy", message)).await;
        };
        let queued = self.in_status("queued");
        self.recorder.promise(id.clone(), true);
        if let Err(error) = self.recorder.queue(Text::from(queued.as_str())).await {
            return reject(self.ask.dialect, &unrecorded(&error));
        }
        under_way.job.say(response_event("response.created", 0, &queued));
        let response = if self.ask.stream {
            let body = following(Arc::clone(&under_way.job), 0);
            self.head(body, "text/event-stream")
        } else {
            self.head(Body::from(queued), "application/json")
        };
        remote_jobs::tend(&self.gateway, &id, &under_way.job);
        // Held from here on: between now and the first poll of the task, the gateway may be told to stop.
        let hold = self.gateway.drain.hold();
        tokio::spawn(self.drive(under_way, hold));
        response
    }

    /// Brings the answer to its end, one way or another.
    async fn drive(mut self, under_way: UnderWay, _held: Hold) {
        let job = Arc::clone(&under_way.job);
        let relayed = self.relay_to_job(&job).await;
        if let Err(error) = self.finish(relayed, &job).await {
            tracing::error!(%error, "an answer in the background was not recorded");
            let failed = failed_response(&self.in_status("in_progress"), &unrecorded(&error));
            job.say(last_response(&failed, job.progress().events as u64));
        }
    }

    /// Has the request answered, unless that is called off.
    async fn relay_to_job(&mut self, job: &Job) -> Result<Relayed, StoreError> {
        let opened = tokio::select! {
            opened = self.seek() => opened,
            () = job.called_off() => {
                let reason = Text::from_static("the answer was called off");
                self.recorder.attempt_ended(None, Some(reason), now());
                return Ok(Relayed::without_backend(nothing(Ending::Cancelled)));
            }
        };
        let mut sink = JobStream { job, in_progress: self.in_status("in_progress") };
        let relayed = match opened {
            Ok(opened) => relay(self, opened, &mut sink).await,
            Err(failure) => Err(RelayError::Failed(failure)),
        };
        match relayed {
            Ok(relayed) => Ok(relayed),
            Err(RelayError::Failed(failure)) => {
                Ok(Relayed::without_backend(nothing(Ending::Failed(failure))))
            }
            Err(RelayError::Store(error)) => Err(error),
        }
    }

    /// Writes how the answer ended, then says so to whoever follows it.
    async fn finish(&mut self, relayed: Result<Relayed, StoreError>, job: &Job) -> Result<(), StoreError> {
        let mut relayed = relayed?;
        let closing = std::mem::take(&mut relayed.closing);
        let answer = self.conclude(relayed, Recipient::Background).await?.body.unwrap_or_default();
        if closing.is_empty() {
            job.say(last_response(&answer, job.progress().events as u64));
        } else {
            say_all(job, &closing);
        }
        Ok(())
    }

    /// Returns the response in a status in which nothing has been said.
    fn in_status(&self, status: &str) -> String {
        let reply = nothing(Ending::Stopped(Stop::EndTurn));
        let response = encode_reply(self.ask.dialect, &reply, &self.stamp, &self.ask);
        response_in_status(&response, status)
    }
}

/// A job in the background, whose events are kept for whoever asks.
struct JobStream<'j> {
    job: &'j Job,
    /// The response before anything is said.
    in_progress: String,
}

/// So many times more bytes than an answer may have may its events take.
const EVENTS_OVERHEAD: usize = 4;

impl Sink for JobStream<'_> {
    fn begin(&mut self, is_whole: bool) {
        self.job.start();
        if is_whole {
            self.job.say(response_event("response.in_progress", 1, &self.in_progress));
        }
    }

    async fn send(&mut self, text: String) -> Result<(), Unwanted> {
        say_all(self.job, &text);
        Ok(())
    }

    async fn unwanted(&mut self) {
        self.job.called_off().await;
    }

    fn waits_for_cancellation(&self) -> bool {
        true
    }

    fn overflow(&self, bounds: &AnswerBounds) -> Option<Failure> {
        let limit = bounds.bytes.saturating_mul(EVENTS_OVERHEAD);
        (self.job.bytes() > limit).then(|| too_large(format!("its events take more than {limit} bytes")))
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
