//! Hands: who runs the calls of a turn.

use std::future::Future;
use std::pin::Pin;
use throughline_core::{Call, Outcome, Part};
use tokio_util::sync::CancellationToken;

/// Runs calls: with real tools, or from the record.
pub trait Hands: Send + Sync {
    /// Runs a call, after whoever must agree did. It ends soon after it is called off.
    fn run<'a>(
        &'a self,
        call: &'a Call,
        cancel: &'a CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Done> + Send + 'a>>;
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it went.
    pub outcome: Outcome,
    /// What the model is told.
    pub parts: Vec<Part>,
    /// The exit code of a command.
    pub exit_code: Option<i32>,
    /// What was too long to be shown.
    pub kept: Vec<Kept>,
}

/// What was too long to be shown, kept to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The name by which it can be asked for, unique in its turn.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Done {
    /// Returns an outcome with nothing but words.
    #[must_use]
    pub fn told(outcome: Outcome, words: impl Into<throughline_core::Text>) -> Self {
        Self { outcome, parts: vec![Part::text(words)], exit_code: None, kept: Vec::new() }
    }
}
