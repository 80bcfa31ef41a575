//! Joins frames into a reply.
/// stub
#[derive(Debug)] pub struct Assembler;
