//! How a command ends: the exit codes that scripts hold on to.
//!
//! 0 done; 1 the answer is "no"; 2 usage, configuration or bad input; 3 a backend failed; 4 the store failed.

use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The answer is "no": not there, not found.
    #[error("{0}")]
    No(String),
    /// What the user gave is wrong.
    #[error("{message}")]
    BadInput {
        /// What is wrong, and where.
        message: String,
        /// What to do about it.
        hint: Option<&'static str>,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which one.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A backend failed.
    #[error("{0}")]
    Backend(String),
    /// The history could not be opened, read or written.
    #[error("{0}")]
    Store(String),
}

impl CommandError {
    /// Returns an error in what the user gave.
    pub fn bad_input(message: impl Into<String>) -> Self {
        Self::BadInput { message: message.into(), hint: None }
    }

    /// Returns the exit code that stands for it.
    pub fn code(&self) -> ExitCode {
        match self {
            Self::No(_) => ExitCode::from(1),
            Self::BadInput { .. } | Self::File { .. } => ExitCode::from(2),
            Self::Backend(_) => ExitCode::from(3),
            Self::Store(_) => ExitCode::from(4),
        }
    }

    /// Returns what the user can do about it.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::BadInput { hint, .. } => *hint,
            Self::No(_) | Self::File { .. } | Self::Backend(_) | Self::Store(_) => None,
        }
    }
}
