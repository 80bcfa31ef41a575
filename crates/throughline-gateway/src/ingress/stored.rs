//! Stored responses as they stand: had again whole, or as the stream that they were given in.
//!
//! A response that is generated in the background is in the history from its beginning, as queued. Where it
//! stands beyond that, the process that generates it knows: this one, or another that shares the history. If no
//! process does although it has not ended, then that process is gone, and the response has failed.

use super::Ingress;
use super::reject::own;
use super::responses::{stored, unknown, unreadable};
use crate::background::{Job, Phase};
use crate::elsewhere;
use crate::gateway::now;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;
use std::sync::Arc;
use throughline_core::{Failure, FailureKind, Text};
use throughline_store::{Batch, Exchange, Which, Write};
use throughline_wire::json::{Document, Edit, Writer, patch, quote};
use throughline_wire::replayed_events;
use throughline_wire::sse::write_event;

/// The mark at the end of a stream.
const END_MARK: &str = "data: [DONE]\n\n";

/// Returns a stored response as it stands now.
///
/// # Errors
/// When there is no such response, or the history cannot be read.
pub async fn standing(ingress: &Ingress, id: &str) -> Result<String, Failure> {
    let (exchange, answer) = read(ingress, id).await?;
    if exchange.ended.is_some() {
        return Ok(answer);
    }
    match ingress.gateway.background.find(id).map(|job| job.progress().phase) {
        Some(Phase::Queued) => Ok(answer),
        Some(Phase::InProgress) => Ok(with_status(&answer, "in_progress")),
        // It may have ended between the two looks.
        known @ (Some(Phase::Ended) | None) => match read(ingress, id).await? {
            (exchange, answer) if exchange.ended.is_some() => Ok(answer),
            (exchange, answer) => {
                if known.is_none() && elsewhere::is_generated(&ingress.gateway, id, &exchange).await {
                    let status = if exchange.attempts.is_empty() { "queued" } else { "in_progress" };
                    return Ok(with_status(&answer, status));
                }
                abandon(ingress, exchange, &answer).await
            }
        },
    }
}

/// Reads the exchange of a response, and the response as the history has it.
async fn read(ingress: &Ingress, id: &str) -> Result<(Exchange, String), Failure> {
    let exchange = stored(ingress, id).await?;
    let recording = ingress.gateway.history.recording(exchange.id.clone(), Which::Answer).await;
    let answer = recording.map_err(|error| unreadable(&error))?.answer.ok_or_else(|| unknown(id))?;
    Ok((exchange, answer.to_string()))
}

/// Writes that a response has failed, because nobody generates it any more.
async fn abandon(ingress: &Ingress, mut exchange: Exchange, answer: &str) -> Result<String, Failure> {
    let message = "the gateway was stopped while the response was generated";
    let failed = failed(answer, &own(FailureKind::Backend, "throughline_stopped", message));
    exchange.ended = Some(now());
    exchange.ending = Some(Text::from_static("broken"));
    let writes = vec![
        Write::Answer { exchange: exchange.id.clone(), json: Text::from(failed.as_str()) },
        Write::Exchange(Box::new(exchange)),
    ];
    let written = ingress.gateway.history.append(Batch::durable(writes)).await;
    written.map_err(|error| unreadable(&error))?;
    Ok(failed)
}

/// Says whether a response was generated in the background.
pub fn is_background(response: &str) -> bool {
    let document = Document::parse(response).ok();
    let flag = document.as_ref().and_then(|document| document.root().field("background")?.as_bool());
    flag == Some(true)
}

/// Returns a response as a stream, from the event behind that number on: as it is generated, or as it could have been
/// given if it is over.
///
/// # Errors
/// When there is no such response, or the history cannot be read.
pub async fn streamed(ingress: &Ingress, id: &str, after: Option<u64>) -> Result<Body, Failure> {
    let response = standing(ingress, id).await?;
    if let Some(job) = ingress.gateway.background.find(id) {
        let place = after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX).saturating_add(1));
        return Ok(following(job, place));
    }
    if !matches!(status(&response).as_deref(), Some("queued" | "in_progress")) {
        return Ok(Body::from(replayed(&response, after)));
    }
    let mut events = String::new();
    let mut number = after.map_or(0, |after| after.saturating_add(1));
    if after.is_none() {
        let begun = with_status(&response, "in_progress");
        for name in ["response.created", "response.in_progress"] {
            events += &event(name, number, &begun);
            number += 1;
        }
    }
    let (ingress, id) = (ingress.clone(), id.to_owned());
    let last = async move {
        let response = ended(&ingress, &id, response).await;
        Ok(Bytes::from(last_event(&response, number) + END_MARK))
    };
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(events))]);
    Ok(Body::from_stream(first.chain(stream::once(last))))
}

/// Returns the events of a response that is over, behind that number; one that was called off ends as a failure.
fn replayed(response: &str, after: Option<u64>) -> String {
    let is_cancelled = status(response).as_deref() == Some("cancelled");
    let response = if is_cancelled { failed(response, &called_off()) } else { response.to_owned() };
    let first = after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX).saturating_add(1));
    let mut events = String::new();
    for (name, data) in replayed_events(&response).into_iter().skip(first) {
        write_event(&mut events, Some(&name), &data);
    }
    events + END_MARK
}

fn called_off() -> Failure {
    own(FailureKind::Conflict, "throughline_cancelled", "The answer was called off.")
}

/// Waits for a response that another gateway generates, and returns it as it ended.
async fn ended(ingress: &Ingress, id: &str, mut response: String) -> String {
    let mut changes = ingress.gateway.history.changes();
    while matches!(status(&response).as_deref(), Some("queued" | "in_progress")) {
        elsewhere::wait(&mut changes).await;
        response = match standing(ingress, id).await {
            Ok(response) => response,
            Err(failure) => failed(&response, &failure),
        };
    }
    response
}

fn status(response: &str) -> Option<String> {
    let document = Document::parse(response).ok()?;
    Some(document.root().field("status")?.as_text()?.to_string())
}

/// Returns the events of an answer from that place on, as they come.
pub fn following(job: Arc<Job>, place: usize) -> Body {
    let next = |state: Option<(Arc<Job>, usize)>| async move {
        let (job, place) = state?;
        Some(match job.events_from(place).await {
            Some(events) => {
                let place = place + events.len();
                (Ok::<_, Infallible>(Bytes::from(events.concat())), Some((job, place)))
            }
            None => (Ok(Bytes::from_static(END_MARK.as_bytes())), None),
        })
    };
    Body::from_stream(stream::unfold(Some((job, place)), next))
}

/// Returns an event that carries a response.
pub fn event(name: &str, number: u64, response: &str) -> String {
    let mut writer = Writer::with_capacity(response.len() + 64);
    writer.begin_object();
    writer.field_str("type", name);
    writer.field_uint("sequence_number", number);
    writer.field_raw("response", response);
    writer.end_object();
    let mut event = String::new();
    write_event(&mut event, Some(name), &writer.into_string());
    event
}

/// Returns the event that ends the stream of a response. No such event says that it was called off, so that is
/// told as a failure.
pub fn last_event(response: &str, number: u64) -> String {
    let document = Document::parse(response).ok();
    let status = document.as_ref().and_then(|document| document.root().field("status")?.as_text());
    match status.as_deref() {
        Some(status @ ("completed" | "incomplete" | "failed")) => {
            event(&format!("response.{status}"), number, response)
        }
        _ => event("response.failed", number, &failed(response, &called_off())),
    }
}

/// Returns a response that has failed.
pub fn failed(response: &str, failure: &Failure) -> String {
    let mut error = Writer::new();
    error.begin_object();
    error.field_str("code", failure.code.as_deref().unwrap_or("server_error"));
    error.field_str("message", &failure.message);
    error.end_object();
    let error = error.into_string();
    let edits =
        [Edit::Set { name: "status", value: "\"failed\"" }, Edit::Set { name: "error", value: &error }];
    patch(response, &edits).unwrap_or_else(|_| response.to_owned())
}

fn with_status(response: &str, status: &str) -> String {
    let status = quote(status);
    let edits =
        [Edit::Set { name: "status", value: &status }, Edit::Set { name: "completed_at", value: "null" }];
    patch(response, &edits).unwrap_or_else(|_| response.to_owned())
}
