//! The three dialects.

pub mod json;
