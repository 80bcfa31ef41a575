//! Answers that a client has as one text, where the record has several with what was recalled between them.
//!
//! Two dialects have one place for the text of an answer, so what the model said before and after a recall comes
//! back from the client as one. No chain of the record ends with that text. It is recognised by what it says: the
//! record has an answer at that place that was interrupted by recalls, and its pieces make up the text.

use super::place_error::PlaceError;
use super::traces;
use throughline_core::{ConversationId, Entry, EntryId, Kind, Role, Said};
use throughline_store::{Entries, Exchanges, History, Kept, Paging};

/// Where the record goes on behind an answer that was recognised.
#[derive(Debug)]
pub struct Rejoined {
    /// The last of its pieces.
    pub tip: EntryId,
    /// Everything up to there.
    pub record: Vec<Entry>,
}

/// How many exchanges are looked through: regenerations of an answer stand side by side.
const EXCHANGES_MAX: u32 = 32;

/// Returns where the record has the answer that `said` is, if it stands behind `before`.
///
/// # Errors
/// When the history cannot be read.
pub async fn rejoined(
    history: &dyn History,
    conversation: &ConversationId,
    before: &EntryId,
    said: &Entry,
) -> Result<Option<Rejoined>, PlaceError> {
    let Some(words) = spoken(said).map(letters) else { return Ok(None) };
    let latest = Exchanges::Of(conversation.clone(), Paging::first(EXCHANGES_MAX));
    let exchanges = history.exchanges(latest).await?.items;
    let tips = exchanges.into_iter().filter(|exchange| exchange.before.as_ref() == Some(before));
    for tip in tips.filter_map(|exchange| exchange.after) {
        let kept = history.entries(Entries::Branch(tip)).await?;
        if let Some(found) = found(&kept, before, &words) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn found(kept: &[Kept], before: &EntryId, words: &str) -> Option<Rejoined> {
    let first = kept.iter().position(|kept| kept.id == *before)? + 1;
    let (mut text, mut recalled) = (String::new(), false);
    for (at, kept_entry) in kept.iter().enumerate().skip(first) {
        let entry = &kept_entry.entry;
        recalled |= entry.is_hidden();
        match spoken(entry) {
            Some(said) => text.push_str(&letters(said)),
            None if entry.is_hidden() || matches!(entry.kind, Kind::Thought(_)) => continue,
            // What the client can act on ends the text.
            None => return None,
        }
        if recalled && text == words {
            let record = traces::positioned(kept[..=at].iter().map(|kept| kept.entry.clone()));
            return Some(Rejoined { tip: kept_entry.id.clone(), record });
        }
    }
    None
}

/// Returns what the assistant said.
pub fn spoken(entry: &Entry) -> Option<&Said> {
    entry.as_said().filter(|said| said.role == Role::Assistant)
}

/// Returns a text without white space: how pieces are joined differs from dialect to dialect.
pub fn letters(said: &Said) -> String {
    let texts = said.parts.iter().filter_map(|part| part.as_text());
    texts.flat_map(|text| text.split_whitespace()).collect()
}
