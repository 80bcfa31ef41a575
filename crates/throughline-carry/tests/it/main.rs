//! Sessions in, sessions out.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

mod carried;
mod claude_code;
mod codex;
mod forms;
mod interchange;
mod opencode;
mod sessions;
mod vscode;
