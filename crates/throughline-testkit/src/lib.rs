//! For tests only.

pub mod validate;
