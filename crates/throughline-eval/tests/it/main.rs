//! Integration tests of the evaluation.

mod golden;
mod prefix;
