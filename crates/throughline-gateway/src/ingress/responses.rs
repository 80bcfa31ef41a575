//! Stored responses: had again, whole or as a stream, with what they were given; called off, or forgotten.

use super::stored::{self, stored, unreadable};
use super::{Ingress, input_items};
use crate::failure::{gateway_error, reject};
use crate::remote_jobs;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::header;
use std::collections::BTreeMap;
use throughline_core::{Dialect, Failure, FailureKind, Text};
use throughline_store::{Batch, Write};
use throughline_wire::is_background_response;
use throughline_wire::json::Writer;

/// Returns a stored response as it stands.
pub async fn show(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Response {
    shown(&ingress, &id, &parameters).await.unwrap_or_else(|failure| reject(Dialect::Responses, &failure))
}

/// Forgets a stored response; its entries stay in the history.
pub async fn forget(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    forgotten(&ingress, &id).await.unwrap_or_else(|failure| reject(Dialect::Responses, &failure))
}

/// Lists what a stored response was given.
pub async fn list_input(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Response {
    let page = input_items::page(&ingress, &id, &parameters).await;
    page.map_or_else(|failure| reject(Dialect::Responses, &failure), json)
}

/// Calls off a response that is generated in the background; one that has ended stays as it is. The others end
/// with their connection.
pub async fn cancel(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    cancelled(&ingress, &id).await.unwrap_or_else(|failure| reject(Dialect::Responses, &failure))
}

async fn shown(
    ingress: &Ingress,
    id: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<Response, Failure> {
    if parameters.get("stream").is_none_or(|stream| stream != "true") {
        return Ok(json(stored::standing(ingress, id).await?));
    }
    let after = match parameters.get("starting_after") {
        Some(number) => Some(number.parse().map_err(|_| bad_number())?),
        None => None,
    };
    let body = stored::streamed(ingress, id, after).await?;
    Ok(([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body)
        .into_response())
}

async fn cancelled(ingress: &Ingress, id: &str) -> Result<Response, Failure> {
    let response = stored::standing(ingress, id).await?;
    if !is_background_response(&response) {
        let message = "only a response that is generated in the background can be cancelled";
        return Err(gateway_error(FailureKind::InvalidRequest, "throughline_not_in_background", message));
    }
    call_off(ingress, id).await;
    Ok(json(stored::standing(ingress, id).await?))
}

/// Calls a response off, if it is under way, and waits until the history says so.
async fn call_off(ingress: &Ingress, id: &str) {
    if let Some(job) = ingress.gateway.background.find(id) {
        job.call_off();
        job.ended().await;
    } else if ingress.gateway.is_shared
        && let Err(error) = remote_jobs::call_off(&ingress.gateway, id).await
    {
        tracing::warn!(%error, "the history could not be asked to have an answer called off");
    }
}

fn bad_number() -> Failure {
    Failure {
        param: Some(Text::from_static("starting_after")),
        ..gateway_error(
            FailureKind::InvalidRequest,
            "throughline_invalid_request",
            "starting_after: must be the number of an event",
        )
    }
}

async fn forgotten(ingress: &Ingress, id: &str) -> Result<Response, Failure> {
    stored(ingress, id).await?;
    call_off(ingress, id).await;
    let forget = Write::ForgetResponse { id: Text::from(id) };
    let written = ingress.gateway.history.append(Batch::durable(vec![forget])).await;
    written.map_err(|error| unreadable(&error))?;
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", id);
    writer.field_str("object", "response.deleted");
    writer.field_bool("deleted", true);
    writer.end_object();
    Ok(json(writer.into_string()))
}

pub(super) fn json(body: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
