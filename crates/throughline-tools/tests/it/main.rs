//! The tools, from outside: every one of them on a real directory.

mod arguments;
mod bench;
mod edits;
mod escapes;
mod files;
#[cfg(feature = "mcp")]
mod hostile_mcp;
#[cfg(feature = "mcp")]
mod mcp;
mod patches;
mod preview;
mod search;
mod shell;
