//! Our own form of an entry: JSON that loses nothing, so that what is read is equal to what was written.
//!
//! A file of this form has a JSON object on each line; docs/formats.md lists them. The wire message that several
//! entries share stands once, on a line of its own before the first of them, and is referred to by its number.

mod read;
mod write;

pub use read::{EntryReader, ReadError};
pub use write::EntryWriter;

/// The version of the form that is written. A reader refuses a later one: it would lose what it does not know.
pub const VERSION: u64 = 2;
