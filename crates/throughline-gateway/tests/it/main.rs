//! Integration tests: the gateway between real HTTP clients and simulated backends that are as strict as the
//! providers.

mod bad_input;
mod client;
mod fallback;
mod house;
mod state;
mod ways;
