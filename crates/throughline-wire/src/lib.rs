//! The three dialects, to and from the canonical model.
//!
//! Requests come in as an [`Ask`](throughline_core::Ask) and go out from a
//! [`Prompt`](throughline_core::Prompt); answers come back as a [`Reply`](throughline_core::Reply) or as
//! [`Frame`](throughline_core::Frame)s. Nothing is translated pairwise: a dialect knows itself and the
//! canonical model, and no other dialect.
//!
//! Invariants:
//! - Nothing here does I/O, reads a clock or draws randomness; ids and times are given in a [`Stamp`].
//! - A known field of the wrong type is an error that names its path and offset; an unknown one is kept.
//! - What goes back to the dialect that it came from, unaltered, goes back byte for byte.
#![doc = include_str!("../README.md")]

pub mod json;
pub mod sse;

pub(crate) mod chat;
pub(crate) mod messages;
pub(crate) mod responses;

mod client_names;
mod dialects;
mod edits;
mod heal;
mod hosted;
mod input;
mod length;
mod order;
mod place;
mod replies;
mod restore;
mod segment;
mod shape;
mod status;
mod streams;

pub use client_names::ClientNames;
pub use dialects::{
    decode_abridged, decode_document, decode_request, encode_items, encode_request, history_field,
};
pub use edits::{CONTEXT_FIELD, ContextEdits, context_edits};
pub use hosted::{with_all_pairs, with_hosted_pairs};
pub use place::path;
pub use replies::{decode_error, decode_reply, encode_error, encode_reply};
pub use responses::compaction::{COMPACTION, compaction_item, compaction_object};
pub use responses::lifecycle::{
    background_response, error_event, event_number, failed_response, interrupted_response,
    is_background_response, last_response_event, response_event, response_in_event, response_in_status,
    response_status, whole_response_event,
};
pub use responses::listed_item::{ListedItem, listed_item, listed_items};
pub use responses::socket::{SocketEvent, SocketRequest, continuable_response, socket_error};
pub use responses::{ReasoningEvents, replayed_events};
pub use restore::Restorer;
pub use status::{kind_of_status, status_of};
pub use streams::{MAX_BLOCKS, MAX_EVENT_BYTES, StreamDecoder, StreamEncoder};

use throughline_core::Text;

/// What an answer is stamped with: everything about it that is not in the reply itself.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// The id of the answer, without a dialect's prefix; letters and digits.
    pub id: Text,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
    /// The model name that the client asked for, which is the one it expects to see.
    pub model: Option<Text>,
    /// How many tokens the prompt has, as far as that is known when the answer begins.
    pub input_tokens: Option<u64>,
}

/// An event of a stream on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The event's name, where the dialect names its events.
    pub name: Option<&'static str>,
    /// The event's data; a JSON object, or a dialect's end mark.
    pub data: String,
}
