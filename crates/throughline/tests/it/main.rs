//! Integration tests of the binary: conversations with it, as a user has them.

mod cli;
mod config;
mod convert;
mod documents;
