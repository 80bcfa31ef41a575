//! Measures compaction offline, without a model: how much of what the rest of a recorded run needs is still in
//! the prompt.
//!
//! A *fact* is an identifier that a tool result brought into the run. A step *needs* the facts in the arguments
//! of the calls that it makes. A [policy](policy::Policy) decides what of the history before a step is shown;
//! [`rolling`] measures it over a whole run, [`handover`] where the run changes hands. `docs/compaction.md`
//! says what the measures mean and what they cannot say. A development tool: nothing of the product depends on it.

pub mod atoms;
mod excerpt;
mod handover;
pub mod ladder;
pub mod policy;
mod python;
mod rolling;
pub mod run;
pub mod scene;
pub mod table;
mod throughline;
pub mod trajectory;

pub use handover::{Handed, handover};
pub use rolling::{Rolled, rolling};
