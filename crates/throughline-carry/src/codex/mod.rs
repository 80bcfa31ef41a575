//! Codex's sessions: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.
//!
//! Today each line has a `type` and a `payload`: `session_meta` first, then `response_item`s, which are items of the
//! Responses dialect, between `event_msg`s for the screen, `turn_context`s, and a `compacted` for each compaction.
//! Older versions wrote the session's facts and bare items, one a line; the oldest, one JSON document of both. A
//! session is one row of items; a user who goes back is an event that takes turns away.

mod exit;
mod read;
mod write;

pub(crate) use exit::says_failed;
pub(crate) use read::{Reader, is_scaffold, read_document};
pub(crate) use write::write;
