//! The Responses dialect: OpenAI's Responses API and OpenResponses 2026-04-24, its open specification.
//!
//! A conversation is a flat list of items (messages, reasoning, calls, results), each with an id of its own,
//! so one item is one entry and nothing has to be grouped. An answer is a `response` object of 31 fields, all
//! of which clients may rely on, and a stream is a life cycle of that object and its items. Reading is
//! lenient, since no two servers agree on what may be missing; writing follows the specification to the
//! letter, since clients validate.

pub mod compaction;
mod decode;
mod encode;
mod error;
mod fields;
mod item;
mod known;
pub mod lifecycle;
pub mod listed_item;
mod output_item;
mod parts;
mod replay;
mod reply;
mod request_item;
mod response_object;
mod settings;
pub mod socket;
mod stream_decoder;
mod stream_encoder;
mod tools;

#[cfg(test)]
mod conformance;

pub(crate) use decode::decode_request;
pub(crate) use encode::encode_request;
pub(crate) use error::{decode_error, encode_error};
pub use replay::replayed_events;
pub(crate) use reply::{decode_reply, encode_reply};
pub(crate) use request_item::encode_items;
pub(crate) use stream_decoder::StreamDecoder;
pub use stream_encoder::ReasoningEvents;
pub(crate) use stream_encoder::StreamEncoder;
