//! Stored responses as they stand: had again whole, or as the stream that they were given in.
//!
//! A response that is generated in the background is in the history from its beginning, as queued. Where it
//! stands beyond that, the process that generates it knows: this one, or another that shares the history. If no
//! process does although it has not ended, then that process is gone, and the response has failed.

use super::Ingress;
use crate::background::{END_MARK, Phase, cancelled, following, last_response, response_event};
use crate::failure::gateway_error;
use crate::gateway::now;
use crate::remote_jobs;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;
use throughline_core::{Failure, FailureKind, Text};
use throughline_store::{Batch, Exchange, Exchanges, StoreError, Which, Write};
use throughline_wire::sse::write_event;
use throughline_wire::{failed_response, replayed_events, response_in_status, response_status};

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
        Some(Phase::InProgress) => Ok(response_in_status(&answer, "in_progress")),
        // It may have ended between the two looks.
        known @ (Some(Phase::Ended) | None) => match read(ingress, id).await? {
            (exchange, answer) if exchange.ended.is_some() => Ok(answer),
            (exchange, answer) => {
                if known.is_none() && remote_jobs::is_generated(&ingress.gateway, id, &exchange).await {
                    let status = if exchange.attempts.is_empty() { "queued" } else { "in_progress" };
                    return Ok(response_in_status(&answer, status));
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
    let failed =
        failed_response(answer, &gateway_error(FailureKind::Backend, "throughline_stopped", message));
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
    if !matches!(response_status(&response).as_deref(), Some("queued" | "in_progress")) {
        return Ok(Body::from(replayed(&response, after)));
    }
    let mut events = String::new();
    let mut number = after.map_or(0, |after| after.saturating_add(1));
    if after.is_none() {
        let begun = response_in_status(&response, "in_progress");
        for name in ["response.created", "response.in_progress"] {
            events += &response_event(name, number, &begun);
            number += 1;
        }
    }
    let (ingress, id) = (ingress.clone(), id.to_owned());
    let last = async move {
        let response = ended(&ingress, &id, response).await;
        Ok(Bytes::from(last_response(&response, number) + END_MARK))
    };
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from(events))]);
    Ok(Body::from_stream(first.chain(stream::once(last))))
}

/// Returns the events of a response that is over, behind that number; one that was called off ends as a failure.
fn replayed(response: &str, after: Option<u64>) -> String {
    let is_cancelled = response_status(response).as_deref() == Some("cancelled");
    let response = if is_cancelled { failed_response(response, &cancelled()) } else { response.to_owned() };
    let first = after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX).saturating_add(1));
    let mut events = String::new();
    for (name, data) in replayed_events(&response).into_iter().skip(first) {
        write_event(&mut events, Some(&name), &data);
    }
    events + END_MARK
}

/// Waits for a response that another gateway generates, and returns it as it ended.
async fn ended(ingress: &Ingress, id: &str, mut response: String) -> String {
    let mut changes = ingress.gateway.history.changes();
    while matches!(response_status(&response).as_deref(), Some("queued" | "in_progress")) {
        remote_jobs::wait(&mut changes).await;
        response = match standing(ingress, id).await {
            Ok(response) => response,
            Err(failure) => failed_response(&response, &failure),
        };
    }
    response
}

/// Finds the exchange that a response came of, if the response may be had again.
pub(super) async fn stored(ingress: &Ingress, id: &str) -> Result<Exchange, Failure> {
    let found = ingress.gateway.history.exchanges(Exchanges::Response(Text::from(id))).await;
    let exchange = found.map_err(|error| unreadable(&error))?.items.into_iter().next();
    let usable =
        |exchange: &Exchange| exchange.response.as_ref().is_some_and(|mark| mark.stored && !mark.deleted);
    exchange.filter(usable).ok_or_else(|| unknown(id))
}

pub(super) fn unknown(id: &str) -> Failure {
    let message = format!("no response is called `{id}`, or it was not to be stored");
    gateway_error(FailureKind::NotFound, "throughline_no_such_response", message)
}

pub(super) fn unreadable(error: &StoreError) -> Failure {
    gateway_error(
        FailureKind::Overloaded,
        "throughline_store_failed",
        format!("the history cannot be read: {error}"),
    )
}
