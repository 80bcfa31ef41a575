//! What is said when an exchange cannot go on, in words and codes that clients can act on.

use super::place_error::PlaceError;
use crate::failure::gateway_error;
use crate::gateway::Gateway;
use crate::telemetry::StoreUse;
use std::fmt::Display;
use std::time::Duration;
use throughline_core::{Failure, FailureKind, Text};
use throughline_store::StoreError;

/// Returns the failure of a request that has no place in the history.
pub fn misplaced(gateway: &Gateway, error: &PlaceError) -> Failure {
    match error {
        PlaceError::NoSuchResponse(_) => Failure {
            code: Some(Text::from_static("previous_response_not_found")),
            param: Some(Text::from_static("previous_response_id")),
            // As OpenAI has it: its clients send everything again after a 400 of this code.
            ..Failure::new(FailureKind::InvalidRequest, error.to_string())
        },
        PlaceError::Unfinished(_) => Failure {
            param: Some(Text::from_static("previous_response_id")),
            ..gateway_error(FailureKind::InvalidRequest, "throughline_response_unfinished", error.to_string())
        },
        PlaceError::NoSuchConversation(_) => Failure {
            param: Some(Text::from_static("conversation")),
            ..gateway_error(FailureKind::NotFound, "throughline_no_such_conversation", error.to_string())
        },
        PlaceError::TwoPasts => Failure {
            param: Some(Text::from_static("conversation")),
            ..gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", error.to_string())
        },
        PlaceError::NoSuchCall { item, .. } => Failure {
            param: Some(Text::from(format!("input[{item}].call_id"))),
            ..gateway_error(FailureKind::InvalidRequest, "throughline_no_such_call", error.to_string())
        },
        PlaceError::NoSuchItem(_) => Failure {
            param: Some(Text::from_static("input")),
            ..gateway_error(FailureKind::NotFound, "throughline_no_such_item", error.to_string())
        },
        PlaceError::Store(error) => {
            gateway.telemetry.store_failed(StoreUse::Read);
            unrecorded(error)
        }
    }
}

/// Returns the failure of an exchange that cannot be kept, or whose history cannot be read.
pub fn unrecorded(error: &StoreError) -> Failure {
    gateway_error(
        FailureKind::Overloaded,
        "throughline_store_failed",
        format!("the history cannot be kept: {error}"),
    )
}

/// Returns the failure of a backend.
pub fn backend_failed(message: impl Into<Text>) -> Failure {
    gateway_error(FailureKind::Backend, "throughline_backend_failed", message)
}

/// Returns the failure of an answer of which there is more than is taken.
pub fn too_large(how: impl Display) -> Failure {
    let message = format!("the backend's answer is too large: {how}");
    gateway_error(FailureKind::Backend, "throughline_answer_too_large", message)
}

/// Returns the failure of an answer that goes on without getting anywhere.
pub fn stalled(limit: Duration) -> Failure {
    let message = format!("the backend's answer made no progress for {limit:?} (`timeouts.progress`)");
    gateway_error(FailureKind::TimedOut, "throughline_answer_stalled", message)
}

/// Returns the failure of a stream that ended before the answer did.
pub fn broken_off() -> Failure {
    gateway_error(FailureKind::Backend, "throughline_backend_stream_broken", "the backend's answer broke off")
}
