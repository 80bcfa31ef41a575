//! Compaction: a history in few words, with a way back to all of it.
//!
//! What other servers encrypt is readable here. The content of our compaction item is a line that names the span
//! in the record, and then the digest of the span. When the item comes back, the digest is made anew from the
//! record; where the record does not have the span, the words of the item itself are used. The request is placed
//! in the conversation that was compacted, whose every entry stays in the history.

use super::deliver::promise;
use super::place::{PlaceError, branch};
use super::{Running, unrecorded};
use crate::gateway::now;
use crate::ingress::input_items;
use crate::ingress::reject::reject;
use axum::body::Body;
use axum::response::Response;
use std::sync::Arc;
use throughline_core::plan::{ToolRules, digest};
use throughline_core::{
    Ask, BlockKind, Dialect, Ending, Entry, EntryId, Frame, Kind, Reply, Role, Stop, Summary, Text, Usage,
    Wire, joined_text,
};
use throughline_store::History;
use throughline_wire::json::{Document, Writer};
use throughline_wire::sse::write_event;
use throughline_wire::{StreamEncoder, encode_reply};

/// What the content of our compaction items begins with.
const MARK: &str = "throughline-compaction/1";

/// The type of an item that stands for a span of history; the second is an older name.
const COMPACTION: [&str; 2] = ["compaction", "compaction_summary"];

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

fn is_trigger(entry: &Entry) -> bool {
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

impl Running {
    /// Answers with the history in few words.
    pub(super) async fn compact(mut self) -> Response {
        let content = self.content();
        let item = compaction_item(&format!("cmp_{}", self.stamp.id), &content);
        let is_user = |entry: &&Entry| entry.as_said().is_some_and(|said| said.role == Role::User);
        let asked: Vec<&Entry> = self.placed.history.iter().filter(is_user).collect();
        let mut items = input_items::written(&asked, &self.stamp.id);
        items.push(item);
        let usage = self.usage(&content).await;
        let body = object(&self.stamp.id, self.stamp.created_at, &items, usage);
        let reply = said_nothing(Some(usage));
        let answer = Some(Text::from(body.as_str()));
        match self.recorder.end(&reply, 200, answer, Vec::new(), now()).await {
            Ok(()) => self.head(Body::from(body), "application/json"),
            Err(error) => reject(self.ask.dialect, &unrecorded(&error)),
        }
    }

    /// Answers a request that asks for a compaction in its input: with a response that holds one item.
    pub(super) async fn compact_in_place(mut self) -> Response {
        let content = self.content();
        let item = Text::from(compaction_item(&format!("cmp_{}", self.stamp.id), &content));
        let mut reply = said_nothing(Some(self.usage(&content).await));
        let kind = Text::from_static(COMPACTION[0]);
        let mut entry = Entry::new(Kind::Opaque { kind: kind.clone() });
        entry.wire = Some(Wire { dialect: Dialect::Responses, text: item.clone(), extras: Vec::new() });
        reply.entries.push(entry);
        promise(&mut self.recorder, &self.ask, &self.stamp, &reply, false);
        let body = encode_reply(self.ask.dialect, &reply, &self.stamp, &self.ask);
        let answer = Some(Text::from(body.as_str()));
        if let Err(error) = self.recorder.end(&reply, 200, answer, Vec::new(), now()).await {
            return reject(self.ask.dialect, &unrecorded(&error));
        }
        if !self.ask.stream {
            return self.head(Body::from(body), "application/json");
        }
        let events = self.streamed(&reply, BlockKind::Opaque { kind, text: item });
        self.head(Body::from(events), "text/event-stream")
    }

    fn streamed(&self, reply: &Reply, kind: BlockKind) -> String {
        let mut encoder = StreamEncoder::new(self.ask.dialect, self.stamp.clone(), &self.ask);
        let mut events = Vec::new();
        let mut frames = vec![
            Frame::Opened { id: None, model: None },
            Frame::Begun { block: 0, kind },
            Frame::Ended { block: 0 },
        ];
        frames.extend(reply.usage.map(Frame::Used));
        frames.push(Frame::Closed(reply.ending.clone()));
        frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut events));
        let mut body = String::new();
        events.iter().for_each(|event| write_event(&mut body, event.name, &event.data));
        body
    }

    /// Returns the content of the compaction item: where the span is, and what it was about.
    fn content(&self) -> String {
        let entry = self.recorder.before().map_or("none", EntryId::as_str);
        let conversation = &self.placed.conversation;
        let covers = self.placed.history.len();
        let words = words(&self.placed.history);
        format!("{MARK} conversation={conversation} entry={entry} covers={covers}\n{words}")
    }

    /// Counts what the compaction would have taken of the model that was asked for; none was asked.
    async fn usage(&self, content: &str) -> Usage {
        let gateway = Arc::clone(&self.gateway);
        let gauge = gateway.gauges.of(&gateway.standing(), &self.destinations[0]);
        let (entries, tools) = (self.placed.history.clone(), self.ask.tools.clone());
        let content = content.to_owned();
        let counting = tokio::task::spawn_blocking(move || {
            gauge.vocabulary().load();
            let counts = &gateway.gauges.counts;
            let input = gauge.tokens(gauge.prompt(counts, &entries, &tools, None));
            let output = gauge.tokens(gauge.text(counts, &content));
            Usage { input, output, ..Usage::default() }
        });
        counting.await.unwrap_or_default()
    }
}

impl Compacted {
    /// Reads an entry that is a compaction item of ours.
    fn of(entry: &Entry) -> Option<Self> {
        let Kind::Opaque { kind } = &entry.kind else { return None };
        if !COMPACTION.contains(&kind.as_str()) {
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
fn words(span: &[Entry]) -> Text {
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

fn said_nothing(usage: Option<Usage>) -> Reply {
    let ending = Ending::Stopped(Stop::EndTurn);
    Reply { id: None, model: None, entries: Vec::new(), ending, usage, fields: None }
}

fn compaction_item(id: &str, content: &str) -> String {
    let mut writer = Writer::with_capacity(content.len() + 128);
    writer.begin_object();
    writer.field_str("type", COMPACTION[0]);
    writer.field_str("id", id);
    writer.field_str("status", "completed");
    writer.field_str("encrypted_content", content);
    writer.end_object();
    writer.into_string()
}

/// Returns the object that answers a request for a compaction.
fn object(id: &str, created_at: u64, items: &[String], usage: Usage) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", &format!("resp_{id}"));
    writer.field_str("object", "response.compaction");
    writer.field_uint("created_at", created_at);
    writer.key("output");
    writer.begin_array();
    items.iter().for_each(|item| writer.raw(item));
    writer.end_array();
    writer.key("usage");
    writer.begin_object();
    writer.field_uint("input_tokens", usage.input);
    writer.field_raw("input_tokens_details", r#"{"cached_tokens":0}"#);
    writer.field_uint("output_tokens", usage.output);
    writer.field_raw("output_tokens_details", r#"{"reasoning_tokens":0}"#);
    writer.field_uint("total_tokens", usage.input.saturating_add(usage.output));
    writer.end_object();
    writer.end_object();
    writer.into_string()
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
