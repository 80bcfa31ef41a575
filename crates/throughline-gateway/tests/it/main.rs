//! Integration tests: the gateway between real HTTP clients and simulated backends that are as strict as the
//! providers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod background;
mod bad_fields;
mod bad_input;
mod bad_values;
mod budget;
mod client;
mod compact;
mod conformance;
mod conversations;
mod counting;
mod demands;
mod edits;
mod experiment;
mod expiry;
mod failover;
mod fallback;
mod handover;
mod hang_up;
mod house;
mod inspector;
mod known;
mod listings;
mod live;
mod metrics;
mod past;
mod privacy;
mod probe;
mod profiles;
mod recall;
mod reload;
mod replicas;
mod reprint;
mod server_state;
mod side;
mod socket;
mod state;
mod stream;
mod summaries;
mod traces;
mod turns;
mod unwritable;
mod ways;
mod websocket;
