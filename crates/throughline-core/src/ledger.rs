//! The ledger: every tool call paired with its result (R01).

/// stub
#[derive(Debug)] pub struct Ledger;
/// stub
#[derive(Debug)] pub struct Mismatch;
/// stub
#[derive(Debug)] pub struct PairState;
/// stub
#[derive(Debug)] pub struct ToolPair;
