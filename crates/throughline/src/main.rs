//! The `throughline` binary.

fn main() {}
