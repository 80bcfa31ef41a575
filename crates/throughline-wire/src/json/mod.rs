//! JSON that keeps its source text.
//!
//! A request of an agent is some 400 KB of JSON, nearly all of it text that the gateway passes on. Reading
//! it into a tree of values would copy that text and forget how it was written: key order, the digits of a
//! number, fields nobody here knows. So a [`Document`] is the text itself plus a flat index over it, made in
//! one pass, and a [`Node`] is a position in that index. Whatever is taken out of it is a slice of the body.
//!
//! Writing is the counterpart: a [`Writer`] appends to one string, and raw text goes in as it came.

mod escape;
mod expect;
mod given;
mod index;
#[cfg(test)]
mod laws;
mod patch;
mod scan;
mod write;

pub use expect::DecodeError;
pub(crate) use given::{extras, given, given_bool, given_number, given_text, is_significant};
pub use index::{Document, Kind, Node};
pub use patch::{Edit, patch};
pub use scan::{MAX_DEPTH, SyntaxError, SyntaxProblem};
pub use write::{StringSink, Writer, quote};
