//! The suite that every store passes, and what holds for the durable one alone.

mod damage;
mod fixtures;
mod killed;
mod size;
mod suite;
