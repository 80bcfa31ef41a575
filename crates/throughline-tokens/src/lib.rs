//! How many tokens something takes.
//!
//! A [`Vocabulary`] counts text exactly as OpenAI's models read it; the tables are embedded, and nothing is
//! fetched. A [`Gauge`] says how the models of one backend count: by their own vocabulary if it is public, else
//! by `o200k` times a factor, which a [`Calibration`] learns from the usage that the backend reports. Gauges
//! measure texts, entries and tools, pictures and files included.
//!
//! Invariants:
//! - Counting does no I/O and takes time linear in the text but for a logarithm, whatever the text.
//! - A table is made at first use, which takes tens of milliseconds. Until [`Vocabulary::load`] has run, a
//!   gauge estimates by bytes and says so; it never makes the table itself.
//! - Text that looks like a control token (`<|endoftext|>`) is counted as the text that it is.

mod cache;
mod calibration;
mod gauge;
mod media;
mod merge;
mod pieces;
mod vocabulary;

pub use cache::Counts;
pub use calibration::Calibration;
pub use gauge::{Gauge, Method, Size, family};
pub use media::{Dimensions, dimensions};
pub use vocabulary::Vocabulary;
