//! The history as a server of the Model Context Protocol: what any agent saw, for any agent to ask.
//!
//! [`HistoryServer`] answers four tools (`search_history`, `get_tool_result`, `list_sessions`, `session_summary`) and
//! lists conversations as resources. It reads a [`throughline_store::History`] and nothing else: no gateway has to
//! run, and nothing is ever written. [`serve_stdio`] and [`serve_http`] are the two transports.
//!
//! Invariants:
//! - Results are plain text within a budget of tokens, and say how to get the rest.
//! - What a tool returned is quoted as it is kept; only the place where something is left out says so.
//! - Calls of these tools, which agents leave in the history as well, are never found by them.

mod budget;
mod error;
mod http;
mod lookup;
mod query;
mod rank;
mod reading;
mod request;
mod resources;
mod server;
mod sessions;
mod units;

pub use error::ToolError;
pub use http::{Admission, Refused, serve_http};
pub use server::{HistoryServer, HistorySource, serve_stdio};
