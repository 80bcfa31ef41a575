//! Chat Completions: a list of messages in, one message out.
//!
//! The oldest of the three dialects and the one with the most speakers, who agree on little beyond the basic
//! shape. An assistant message holds text and calls side by side, in no order between the two; every result
//! is a message of its own with the role `tool`; reasoning has no field that all agree on. Before tools there
//! were functions (`functions`, `function_call`, the role `function`), which have no ids; they are decoded
//! into the same entries and go back as they came.
//!
//! Calls without an id get one made from their place. Such a call and its result are sent as they came only
//! together, since one of them alone would no longer match.

mod calls;
mod completeness;
mod content;
mod conversation;
mod decode;
mod encode;
mod error;
mod extras;
mod finish;
mod history;
mod known;
mod parts;
mod reply;
mod settings;
mod stream_calls;
mod stream_decoder;
mod stream_encoder;
mod stream_texts;
mod tools;
mod usage;
mod vocabulary;

pub(crate) use decode::decode_request;
pub(crate) use encode::encode_request;
pub(crate) use error::{decode_error, encode_error};
pub(crate) use reply::{decode_reply, encode_reply};
pub(crate) use stream_decoder::StreamDecoder;
pub(crate) use stream_encoder::StreamEncoder;

/// What the id of a call begins with that the client gave none.
pub(crate) const WITHOUT_ID: &str = "call_without_id_";
