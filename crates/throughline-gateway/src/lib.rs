//! The gateway between agent clients and model backends.
//!
//! [`config`] says what was asked for and from where.

pub mod config;
pub mod routing;
pub mod secret;
