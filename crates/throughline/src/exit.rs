//! How a command ends: the exit codes that scripts hold on to, and what the user can do about it.

use std::borrow::Cow;
use std::process::ExitCode;

/// The exit codes, and what each of them says.
pub const CODES: [(u8, &str); 5] = [
    (0, "Done."),
    (1, "The answer is no: not there, not found, not equal, something is wrong."),
    (2, "Usage, configuration or bad input; nothing was done."),
    (3, "A backend failed."),
    (4, "The history could not be opened, read or written."),
];

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    kind: Failure,
    /// What is wrong, and where.
    message: String,
    /// What to do about it.
    hint: Option<Cow<'static, str>>,
}

/// What kind of failure it is, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The answer is "no": not there, not found, not equal.
    No,
    /// What the user gave is wrong, or a file that they named cannot be read or written.
    BadInput,
    /// A backend failed.
    Backend,
    /// The history could not be opened, read or written.
    Store,
    /// An agent that was run ended with this code.
    Agent(u8),
}

impl CommandError {
    /// Returns the answer "no".
    pub fn no(message: impl Into<String>) -> Self {
        Self::new(Failure::No, message)
    }

    /// Returns an error in what the user gave.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::new(Failure::BadInput, message)
    }

    /// Returns the failure of a file, or of something like it.
    #[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` has")]
    pub fn file(path: impl std::fmt::Display, source: std::io::Error) -> Self {
        Self::bad_input(format!("{path}: {source}"))
    }

    /// Returns the failure of a backend.
    pub fn backend(message: impl Into<String>) -> Self {
        Self::new(Failure::Backend, message)
    }

    /// Returns a failure of the history.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(Failure::Store, message)
    }

    /// Returns the exit code of an agent that was run.
    pub fn agent(code: u8, message: impl Into<String>) -> Self {
        Self::new(Failure::Agent(code), message)
    }

    /// Returns the error with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns what kind of failure it is.
    pub const fn kind(&self) -> Failure {
        self.kind
    }

    /// Returns what to do about it.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the exit code that stands for it.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Failure::No => 1,
            Failure::BadInput => 2,
            Failure::Backend => 3,
            Failure::Store => 4,
            Failure::Agent(code) => code,
        })
    }

    fn new(kind: Failure, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }
}
