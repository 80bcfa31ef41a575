//! `GET /metrics`: what was counted, for machines that are let in.

use super::Ingress;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;

/// Returns everything in Prometheus' text form.
pub async fn show(State(ingress): State<Ingress>) -> Response {
    let text = ingress.gateway.telemetry.text();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
