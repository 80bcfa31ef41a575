//! The one place where a failure becomes an answer, in the client's own envelope.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use throughline_core::{Dialect, Failure, FailureKind, Text};
use throughline_wire::json::DecodeError;
use throughline_wire::{encode_error, status_of};

/// How long a client is asked to wait when there is no room for its request. Exchanges end all the time.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Returns the answer that tells a client of a failure.
#[must_use]
pub fn reject(dialect: Dialect, failure: &Failure) -> Response {
    let mut response = Response::new(Body::from(encode_error(dialect, failure)));
    *response.status_mut() =
        StatusCode::from_u16(status(failure)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if let Some(seconds) = retry_after_seconds(failure) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the status that a client is told: the backend's own where it refused, so that clients act on it as they
/// would without a gateway between.
#[must_use]
pub fn status(failure: &Failure) -> u16 {
    let own = failure.refusal.map(|refusal| refusal.status);
    own.filter(|status| (400..600).contains(status)).unwrap_or_else(|| status_of(failure.kind))
}

/// Returns how many seconds a client is asked to wait: as many as the backend asks for, or few if it is only us.
fn retry_after_seconds(failure: &Failure) -> Option<u32> {
    match failure.refusal {
        Some(refusal) => refusal.retry_after,
        None => (failure.kind == FailureKind::Overloaded).then_some(RETRY_AFTER_SECONDS),
    }
}

/// Returns a failure that Throughline itself raises.
#[must_use]
pub fn gateway_error(kind: FailureKind, code: &'static str, message: impl Into<Text>) -> Failure {
    Failure { code: Some(Text::from_static(code)), ..Failure::new(kind, message) }
}

/// Returns the failure of a body that could not be understood.
#[must_use]
pub fn undecodable(error: &DecodeError) -> Failure {
    let param = (!error.path.is_empty()).then(|| Text::from(error.path.as_str()));
    Failure {
        param,
        ..gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", error.to_string())
    }
}
