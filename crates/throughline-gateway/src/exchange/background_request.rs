//! Whether a request asks for its answer to be generated in the background, and whether it may.

use crate::failure::gateway_error;
use throughline_core::{Ask, Dialect, Failure, FailureKind, Text};

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
            ..gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", message)
        });
    }
    Ok(())
}
