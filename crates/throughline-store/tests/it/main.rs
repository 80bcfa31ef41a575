//! The suite that every store passes, and what holds for the durable one alone.

#![expect(
    clippy::unwrap_used,
    reason = "what a case needs in order to begin is there, or the case has failed"
)]

mod alike;
mod damage;
mod fixtures;
mod flips;
mod growth;
mod killed;
mod proxy;
mod rechain;
mod server;
mod size;
mod suite;
mod upkeep;
