//! The tools, from outside: every one of them on a real directory.

mod arguments;
mod bench;
#[cfg(target_os = "linux")]
mod confinement;
mod edits;
mod escapes;
mod files;
#[cfg(feature = "mcp")]
mod hostile_mcp;
#[cfg(feature = "mcp")]
mod mcp;
mod patches;
mod preview;
#[cfg(unix)]
mod protected;
mod search;
mod shell;
