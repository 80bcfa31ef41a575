//! Integration tests of the binary: conversations with it, as a user has them.

mod cli;
mod convert;
mod documents;
