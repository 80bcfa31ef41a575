//! The simulated backend: a server that speaks all three dialects over real HTTP.
//!
//! It is as strict as the providers are: what they would refuse, it refuses, in their words and envelopes.
//! Its model is simple and deterministic, or follows a [`Script`]. It keeps what it was sent
//! ([`Sim::recorded`]), so that a test can assert on what really reached a backend.
//!
//! Invariants:
//! - The same requests in the same order get the same answers, ids and times included.
//! - It verifies seals: what it did not issue itself, for that model, it refuses.
//! - Secrets that it was sent are not in its record.

mod compose;
mod counting;
mod delivery;
mod exchange;
mod gate;
mod model;
mod options;
mod recorder;
mod refusal;
mod routes;
mod script;
mod seal;
mod server;
mod stored;

pub use options::SimOptions;
pub use recorder::{Recorded, fingerprint};
pub use script::{Script, ScriptError};
pub use server::Sim;
pub use throughline_validate::Provider;
