//! The server, asked by the official SDK's client, over histories that are made here.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

mod client;
mod found;
mod history;
