//! Integration tests of counting.

mod exact;
mod sizes;
