//! Why the history could not be written or read, in words that say what to do about it.

use throughline_core::{ConversationId, EntryId};

use crate::ExchangeId;

/// Why the history could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another program holds the database, and did not let go in time.
    #[error("the history is locked by another program; try again, or find out who holds it")]
    Busy,
    /// There is no space left.
    #[error("the history cannot grow: the disk, or the quota, is full")]
    Full,
    /// The database cannot be reached or written.
    #[error("the history cannot be reached: {0}")]
    Unavailable(String),
    /// The database is there, and is not what it should be.
    #[error("the history is damaged: {0}; restore it from a backup, or move the file away to begin anew")]
    Damaged(String),
    /// The database, or the way to it, is one that cannot be used.
    #[error("the history cannot be kept there: {0}")]
    Unsupported(String),
    /// The database was written by a later version of this program.
    #[error("the history has schema {found}, and this program knows up to {known}; use a newer program")]
    Newer {
        /// The version found.
        found: u32,
        /// The latest version that this program knows.
        known: u32,
    },
    /// The database was written by an earlier version of this program, and was opened as it is.
    #[error("the history has schema {found}, and this program reads {known}")]
    Older {
        /// The version found.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The entry that others should follow is not there.
    #[error("entry {0} is not in the history, so nothing can follow it")]
    UnknownEntry(EntryId),
    /// The conversation that something belongs to is not there.
    #[error("conversation {0} is not in the history")]
    UnknownConversation(ConversationId),
    /// The exchange that something belongs to is not there.
    #[error("exchange {0} is not in the history")]
    UnknownExchange(ExchangeId),
    /// The place to continue a list from is not one that this list gave out.
    #[error("`{0}` is not a place to continue from")]
    BadCursor(String),
    /// The history was closed.
    #[error("the history is closed")]
    Closed,
}

impl StoreError {
    /// Says whether the same may succeed later without anything in the request being changed.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::Unavailable(_))
    }

    /// Returns the same, which also says of damage which entry it is about.
    pub(crate) fn of_entry(self, id: &EntryId) -> Self {
        match self {
            Self::Damaged(what) => Self::Damaged(format!("entry {id}: {what}")),
            other => other,
        }
    }
}
