//! What errors of the database mean: whether the connection is gone, and what to tell whoever asked.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// Why a question was not answered.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection was lost, or the server is not there; over another one it may be answered.
    Lost(String),
    /// Another writer was in the way; the same may succeed at once.
    Collided,
    /// Anything else.
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(what) => Self::Unavailable(what),
            Failure::Collided => Self::Busy,
            Failure::Store(error) => error,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(told) = error.as_db_error() else { return from_driver(&error) };
        let message = told.message().to_owned();
        match told.code() {
            code if is_gone(code) => Self::Lost(message),
            // The server has handed over to another, or is about to: over a new connection it may be otherwise.
            &SqlState::READ_ONLY_SQL_TRANSACTION => Self::Lost(message),
            &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::UNIQUE_VIOLATION => Self::Collided,
            &SqlState::LOCK_NOT_AVAILABLE => Self::Store(StoreError::Busy),
            &SqlState::DISK_FULL => Self::Store(StoreError::Full),
            &SqlState::DATA_CORRUPTED
            | &SqlState::INDEX_CORRUPTED
            | &SqlState::UNDEFINED_TABLE
            | &SqlState::UNDEFINED_COLUMN => Self::Store(StoreError::Damaged(message)),
            _ => Self::Store(StoreError::Unavailable(message)),
        }
    }
}

/// Says whether the server is shutting down, not up yet, or has let go of the connection.
fn is_gone(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(code)
}

/// Errors that the driver raises itself: of the network, or of values that are not what they should be.
fn from_driver(error: &Error) -> Failure {
    let is_io = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()).is_some();
    let is_of_network = is_io || error.is_closed();
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let what = format!("{error}{cause}");
    let is_of_value = what.starts_with("error deserializing") || what.starts_with("invalid column");
    match (is_of_network, is_of_value) {
        (true, _) => Failure::Lost(what),
        (false, true) => Failure::Store(StoreError::Damaged(what)),
        (false, false) => Failure::Store(StoreError::Unavailable(what)),
    }
}
