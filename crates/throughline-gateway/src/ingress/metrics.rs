//! `GET /metrics`: what was counted, for machines that are let in.

use super::reject::reject;
use super::{Ingress, admit};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header;
use throughline_core::Dialect;

/// Returns everything in Prometheus' text form.
pub async fn show(State(ingress): State<Ingress>, request: Request) -> Response {
    if let Err(failure) = admit(&ingress, &request) {
        return reject(Dialect::Responses, &failure);
    }
    let text = ingress.gateway.telemetry.text();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
