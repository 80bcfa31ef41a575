//! What the fuzz targets hold the pure crates to.
//!
//! A target hands over bytes or a list of operations; the laws are here, where several targets share them.
//! A broken law is a panic, which is what the fuzzer looks for.

pub mod asks;
pub mod mutate;
pub mod requests;
pub mod streams;
