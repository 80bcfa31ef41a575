//! Whole answers and errors of any dialect.

use crate::json::{DecodeError, Document};
use crate::streams::{MAX_BLOCKS, is_excessive};
use crate::{Stamp, chat, messages, responses};
use std::sync::Arc;
use throughline_core::{Ask, Dialect, Failure, Reply};

/// Reads a whole answer.
///
/// # Errors
/// When the body is not JSON, or a field that the dialect knows has the wrong type.
pub fn decode_reply(dialect: Dialect, body: impl Into<Arc<str>>) -> Result<Reply, DecodeError> {
    let document = Document::parse(body)?;
    if is_excessive(document.root()) {
        return Err(document.root().error(format!("must not hold more than {MAX_BLOCKS} blocks")));
    }
    match dialect {
        Dialect::Chat => chat::decode_reply(&document),
        Dialect::Messages => messages::decode_reply(&document),
        Dialect::Responses => responses::decode_reply(&document),
    }
}

/// Writes a whole answer to `ask`, in the dialect of the client.
#[must_use]
pub fn encode_reply(dialect: Dialect, reply: &Reply, stamp: &Stamp, ask: &Ask) -> String {
    match dialect {
        Dialect::Chat => chat::encode_reply(reply, stamp, ask),
        Dialect::Messages => messages::encode_reply(reply, stamp, ask),
        Dialect::Responses => responses::encode_reply(reply, stamp, ask),
    }
}

/// Reads an answer that is none: the body that came with an error status.
#[must_use]
pub fn decode_error(dialect: Dialect, status: u16, body: &str) -> Failure {
    match dialect {
        Dialect::Chat => chat::decode_error(status, body),
        Dialect::Messages => messages::decode_error(status, body),
        Dialect::Responses => responses::decode_error(status, body),
    }
}

/// Writes the error body of a failure; [`status_of`](crate::status_of) is the status to send it with.
#[must_use]
pub fn encode_error(dialect: Dialect, failure: &Failure) -> String {
    match dialect {
        Dialect::Chat => chat::encode_error(failure),
        Dialect::Messages => messages::encode_error(failure),
        Dialect::Responses => responses::encode_error(failure),
    }
}
