//! Claude Code's sessions: `~/.claude/projects/<folder>/<session>.jsonl`.
//!
//! Each line names the one before it (`parentUuid`), so a file is a tree: a user who goes back makes a branch. An
//! answer of the model takes several lines, one for each block, with one `message.id`. Of calls made side by side
//! the results hang each on its own call, so that the last result's ancestors lack the others: the lines of one
//! answer and the results of its calls are therefore put in a row, in the order of the file.
//!
//! Sub-agents have `isSidechain` lines in the same file (older versions) or a file of their own. A compaction is a
//! `compact_boundary`, which names its logical parent, and a message with `isCompactSummary`.

mod read;
mod tree;
mod write;

pub(crate) use read::{Reader, SYNTHETIC};
pub(crate) use write::write;
