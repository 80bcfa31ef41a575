//! The record as people and programs are shown it: what is read together, and its JSON.
//!
//! The commands and the HTTP interface show the same things, so what they read and how it is written as JSON
//! stands here once. How it looks in a terminal is up to the commands.

mod failure;
mod injected;
mod json;
mod read;
mod reason;
mod seen;
mod tally;
mod usage;

pub use failure::{FailureWay, RequestFailure, failure_of};
pub use injected::{Spoken, spoken};
pub(crate) use json::{moment_or_null, optional, write_cost, write_usage};
pub use json::{
    write_arriving, write_backends, write_entry, write_event, write_exchange, write_handover, write_hit,
    write_listed, write_pair, write_preview, write_priced, write_seen, write_tallied, write_titled_hit,
    write_whole,
};
pub use read::{Listed, Pair, Ranking, Tools, exchanges, latest_branch, list, pairs, ranked};
pub use seen::{From, Mark, Row, Seen, Unknown};
pub use tally::{Run, Tallies, Tally, cost_of};
pub use throughline_store::{age, iso, moment};
pub use usage::{UsageBy, UsageReport, UsageRow, client_name, usage, write_usage_report, write_usage_row};

use throughline_core::{Content, Entry, Kind, Media, Oddity, Outcome, PairState, Part, Role};
use throughline_store::KeptKind;

/// Returns the name of a role.
#[must_use]
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// Returns the name of an outcome.
#[must_use]
pub const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Denied => "denied",
        Outcome::Interrupted => "interrupted",
        Outcome::Unknown => "unknown",
    }
}

/// Returns how a pair stands, in a word: `open`, or the name of the outcome.
#[must_use]
pub const fn state_name(state: PairState) -> &'static str {
    match state {
        PairState::Open => "open",
        PairState::Settled(outcome) => outcome_name(outcome),
    }
}

/// Returns what is odd about half of a pair, in words.
#[must_use]
pub const fn oddity_words(oddity: Oddity) -> &'static str {
    match oddity {
        Oddity::NoResult => "no result yet",
        Oddity::NoCall => "a result without a call",
        Oddity::Duplicate { .. } => "a further result of a call that had one",
        Oddity::Early => "the result stands before its call",
        Oddity::ByItemId => "the result names the item instead of the call",
        Oddity::ByPosition => "the result names no call and was paired by its position",
    }
}

/// Returns the name of a kind of entry.
#[must_use]
pub const fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Said(_) => "said",
        Kind::Thought(_) => "thought",
        Kind::Called(_) => "called",
        Kind::Returned(_) => "returned",
        Kind::HandedOver(_) => "handed over",
        Kind::Summarised(_) => "summarised",
        Kind::Reference { .. } => "reference",
        Kind::Opaque { .. } => "opaque",
    }
}

/// Returns what an entry counts as where tokens are added up by kind.
#[must_use]
pub const fn class_name(entry: &Entry) -> &'static str {
    match &entry.kind {
        Kind::Said(said) => match said.role {
            Role::System | Role::Developer => "instructions",
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        Kind::Thought(_) => "reasoning",
        Kind::Called(_) => "call",
        Kind::Returned(_) => "result",
        Kind::HandedOver(_) => "handover",
        Kind::Summarised(_) => "summary",
        Kind::Reference { .. } => "reference",
        Kind::Opaque { .. } => "other",
    }
}

/// Returns the name of the kind of entry that a search found, and of the role that said it.
#[must_use]
pub const fn found_name(kind: KeptKind) -> &'static str {
    match kind {
        KeptKind::Said(role) => role_name(role),
        KeptKind::Thought => "thought",
        KeptKind::Called => "called",
        KeptKind::Returned(_) => "returned",
        KeptKind::Other => "other",
    }
}

/// Returns content as text; what is no text is named in brackets.
#[must_use]
pub fn text_of(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(part_text).collect();
    texts.join("\n")
}

fn part_text(part: &Part) -> String {
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => text.to_string(),
        Content::Image(image) => format!("[image: {}]", media_text(&image.media)),
        Content::File(file) => {
            let name = file.name.as_deref().unwrap_or("without a name");
            format!("[file {name}: {}]", media_text(&file.media))
        }
        Content::Opaque { kind } => format!("[{kind}]"),
    }
}

fn media_text(media: &Media) -> String {
    match media {
        Media::Url(url) => url.to_string(),
        Media::Inline { media_type, base64 } => format!("{media_type}, {} bytes", base64.len() / 4 * 3),
        Media::Plain(text) => format!("text, {} bytes", text.len()),
        Media::Stored(id) => format!("stored as {id}"),
    }
}
