//! The Messages dialect.
//!
//! A request is a list of messages whose content is a list of blocks; tool calls are `tool_use` blocks of the
//! assistant, results are `tool_result` blocks of the user, at the start of the very next message. The system
//! prompt stands beside the messages, `max_tokens` is required, reasoning is signed and goes back only as it
//! came. An answer is one assistant message; streamed, its blocks come strictly one after the other.

mod base64;
mod blocks;
mod decode;
mod encode;
mod error;
mod generation;
#[cfg(test)]
mod goldens;
mod kept;
mod known;
mod parts;
mod reasoning;
mod reply;
mod settings;
mod stream_decoder;
mod stream_encoder;
mod tools;
mod usage;

pub(crate) use decode::decode_request;
pub(crate) use encode::encode_request;
pub(crate) use error::{decode_error, encode_error};
pub(crate) use reply::{decode_reply, encode_reply};
pub(crate) use stream_decoder::StreamDecoder;
pub(crate) use stream_encoder::StreamEncoder;
