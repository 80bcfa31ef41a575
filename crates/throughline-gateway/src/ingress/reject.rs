//! The one place where a failure becomes an answer, in the client's own envelope.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use throughline_core::{Dialect, Failure, FailureKind, Text};
use throughline_wire::json::DecodeError;
use throughline_wire::{encode_error, status_of};

/// How long a client is asked to wait when there is no room for its request. Exchanges end all the time.
const RETRY_AFTER_SECONDS: &str = "1";

/// Returns the answer that tells a client of a failure.
#[must_use]
pub fn reject(dialect: Dialect, failure: &Failure) -> Response {
    let mut response = Response::new(Body::from(encode_error(dialect, failure)));
    *response.status_mut() =
        StatusCode::from_u16(status_of(failure.kind)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if failure.kind == FailureKind::Overloaded {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    response
}

/// Returns a failure that Throughline itself raises.
#[must_use]
pub fn own(kind: FailureKind, code: &'static str, message: impl Into<Text>) -> Failure {
    Failure { code: Some(Text::from_static(code)), ..Failure::new(kind, message) }
}

/// Returns the failure of a body that could not be understood.
#[must_use]
pub fn undecodable(error: &DecodeError) -> Failure {
    let param = (!error.path.is_empty()).then(|| Text::from(error.path.as_str()));
    Failure { param, ..own(FailureKind::InvalidRequest, "throughline_invalid_request", error.to_string()) }
}
