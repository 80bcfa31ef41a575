//! Integration tests of the binary: conversations with it, as a user has them.

#![expect(clippy::unwrap_used, reason = "what is not there fails the test")]

mod approval;
mod brief;
mod browser;
mod cli;
mod compact;
mod config;
mod convert;
mod demo;
mod deploy;
mod doctor;
mod documented;
mod documents;
mod env;
mod hostile_backend;
mod hostile_client;
mod imported;
mod killed;
mod mcp;
mod models;
mod private;
mod pty;
mod record;
mod reload;
mod run;
mod sessions;
mod sim;
mod soak;
mod soaked;
mod store;
mod talk;
mod terminal;
mod trust;
mod ways;
