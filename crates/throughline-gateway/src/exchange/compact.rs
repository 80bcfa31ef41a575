//! Compaction: a history in few words, with a way back to all of it.
//!
//! What other servers encrypt is readable here. The content of our compaction item is a line that names the span
//! in the record, and then the digest of the span. When the item comes back, the digest is made anew from the
//! record; where the record does not have the span, the words of the item itself are used. The request is placed
//! in the conversation that was compacted, whose every entry stays in the history.

use super::place::branch;
use super::place_error::PlaceError;
use throughline_core::plan::{ToolRules, digest};
use throughline_core::{Ask, Entry, EntryId, Kind, Role, Summary, Text, joined_text};
use throughline_store::History;
use throughline_wire::COMPACTION;
use throughline_wire::json::Document;

/// What the content of our compaction items begins with.
pub const MARK: &str = "throughline-compaction/1";

/// The types of items that stand for a span of history; the second is an older name.
const COMPACTIONS: [&str; 2] = [COMPACTION, "compaction_summary"];

/// The type of an item by which a client asks for a compaction in the middle of a conversation.
const TRIGGER: &str = "compaction_trigger";

/// About how many characters the digest of tool calls may have.
const DIGEST_CHARS_MAX: usize = 8_000;

/// How many of the assistant's texts are quoted, the latest ones, and how many characters of each.
const SAID_MAX: usize = 12;
const SAID_CHARS_MAX: usize = 2_000;

/// How many compactions may stand within each other; one further down is taken at its own word.
const DEPTH_MAX: usize = 16;

/// A compaction item of ours, read.
#[derive(Debug, PartialEq, Eq)]
struct Compacted {
    conversation: Text,
    entry: Text,
    covers: u32,
    text: Text,
}

/// Says whether a request asks for a compaction instead of an answer.
pub fn is_triggered(ask: &Ask) -> bool {
    ask.entries.iter().any(is_trigger)
}

pub(super) fn is_trigger(entry: &Entry) -> bool {
    matches!(&entry.kind, Kind::Opaque { kind } if kind == TRIGGER)
}

/// Says whether a request holds anything that only we can read.
pub fn is_held(ask: &Ask) -> bool {
    ask.entries.iter().any(|entry| is_trigger(entry) || Compacted::of(entry).is_some())
}

/// Returns the conversation whose compaction the request brings, if the record has it.
///
/// # Errors
/// When the history cannot be read.
pub async fn conversation_of(history: &dyn History, ask: &Ask) -> Result<Option<Text>, PlaceError> {
    for compacted in ask.entries.iter().filter_map(Compacted::of) {
        if !branch(history, Some(&EntryId::new(compacted.entry))).await?.is_empty() {
            return Ok(Some(compacted.conversation));
        }
    }
    Ok(None)
}

/// Puts the digest in the place of each compaction item of ours, and takes out what asked for one.
///
/// # Errors
/// When the history cannot be read.
pub async fn expand(history: &dyn History, entries: &mut Vec<Entry>) -> Result<(), PlaceError> {
    expand_within(history, entries, DEPTH_MAX).await
}

async fn expand_within(
    history: &dyn History,
    entries: &mut Vec<Entry>,
    depth: usize,
) -> Result<(), PlaceError> {
    entries.retain(|entry| !is_trigger(entry));
    for entry in entries {
        let Some(compacted) = Compacted::of(entry) else { continue };
        let last = EntryId::new(compacted.entry);
        let mut span = if depth > 0 { branch(history, Some(&last)).await? } else { Vec::new() };
        let text = if span.is_empty() {
            compacted.text
        } else {
            // What was compacted may have begun with a compaction itself.
            Box::pin(expand_within(history, &mut span, depth - 1)).await?;
            words(&span)
        };
        *entry = entry.altered(Kind::Summarised(Summary { text, covers: compacted.covers }));
    }
    Ok(())
}

impl Compacted {
    /// Reads an entry that is a compaction item of ours.
    fn of(entry: &Entry) -> Option<Self> {
        let Kind::Opaque { kind } = &entry.kind else { return None };
        if !COMPACTIONS.contains(&kind.as_str()) {
            return None;
        }
        let document = Document::parse(entry.wire.as_ref()?.text.as_str()).ok()?;
        Self::read(&document.root().field("encrypted_content")?.as_text()?)
    }

    fn read(content: &str) -> Option<Self> {
        let (first, text) = content.split_once('\n')?;
        let mut words = first.split(' ');
        if words.next() != Some(MARK) {
            return None;
        }
        let mut field = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=').map(Text::from);
        let (conversation, entry, covers) = (field("conversation")?, field("entry")?, field("covers")?);
        Some(Self { conversation, entry, covers: covers.parse().ok()?, text: Text::from(text) })
    }
}

/// Returns a span in few words: the summaries in it, what its calls did, and what the assistant said.
///
/// What the user said is not among them: it goes beside the item, word for word.
pub fn words(span: &[Entry]) -> Text {
    let mut words: Vec<String> = span.iter().filter_map(summary).map(ToString::to_string).collect();
    if span.iter().any(|entry| entry.as_call().is_some() || entry.as_return().is_some()) {
        words.push(digest(span, &ToolRules::default(), DIGEST_CHARS_MAX));
    }
    let is_spoken = |entry: &&Entry| entry.as_said().is_some_and(|said| said.role == Role::Assistant);
    let said: Vec<Text> = span
        .iter()
        .filter(is_spoken)
        .filter_map(Entry::as_said)
        .map(|said| joined_text(&said.parts))
        .filter(|text| !text.trim().is_empty())
        .collect();
    let latest = said.len().saturating_sub(SAID_MAX);
    if !said.is_empty() {
        words.push("[What the assistant said]".to_owned());
    }
    if latest > 0 {
        words.push(format!("({latest} earlier texts are left out)"));
    }
    words.extend(said[latest..].iter().map(|text| clipped(text)));
    words.join("\n").into()
}

const fn summary(entry: &Entry) -> Option<&Text> {
    match &entry.kind {
        Kind::Summarised(summary) => Some(&summary.text),
        _ => None,
    }
}

/// Returns a text as it is, or its beginning and how much is missing.
fn clipped(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(SAID_CHARS_MAX) {
        Some((end, _)) => format!("- {} [… {} more bytes]", &text[..end], text.len() - end),
        None => format!("- {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Input};

    #[test]
    fn a_content_is_read_as_it_was_written_and_others_are_left_alone() {
        let read = Compacted::read("throughline-compaction/1 conversation=c entry=e covers=3\nwords\nmore");
        let (conversation, entry, text) = ("c".into(), "e".into(), "words\nmore".into());
        assert_eq!(read, Some(Compacted { conversation, entry, covers: 3, text }));
        for other in
            ["gAAAAA", "throughline-compaction/1 conversation=c\nwords", "throughline-compaction/2 x\ny"]
        {
            assert_eq!(Compacted::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_span_is_told_in_few_words_and_within_limits() {
        let call = Call {
            id: "c".into(),
            item_id: None,
            name: "Read".into(),
            namespace: None,
            input: Input::Arguments(r#"{"file_path":"src/a.rs"}"#.into()),
        };
        let mut span = vec![
            Entry::new(Kind::Summarised(Summary { text: "Before that: nothing.".into(), covers: 1 })),
            Entry::said(Role::User, "what the user said"),
            Entry::new(Kind::Called(call)),
        ];
        span.extend((0..SAID_MAX + 2).map(|at| Entry::said(Role::Assistant, format!("answer {at}"))));
        span.push(Entry::said(Role::Assistant, "é".repeat(SAID_CHARS_MAX + 1)));
        let words = words(&span);
        assert!(
            words.starts_with("Before that: nothing.\n[Earlier in this session, 1 tool calls"),
            "{words}"
        );
        assert!(words.contains("- Read: src/a.rs"), "{words}");
        assert!(words.contains("(3 earlier texts are left out)\n- answer 3\n"), "{words}");
        assert!(words.ends_with("é [… 2 more bytes]"), "{words}");
        assert!(!words.contains("what the user said"));
    }
}
