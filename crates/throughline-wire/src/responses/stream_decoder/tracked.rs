//! What a stream has said of one item so far, and how the item is recognised.
//!
//! Texts are remembered as far as they came in pieces, because servers repeat them whole at up to four later
//! places (text, part, item, response) and some give them only there: whatever a later place has beyond what
//! came is one more piece, and what contradicts it is ignored.

use super::call::CallSoFar;
use super::message::MessageSoFar;
use super::sink::Sink;
use super::thought::ThoughtSoFar;
use crate::json::Node;
use crate::responses::fields;
use throughline_core::{BlockKind, Text};

/// An item of a stream.
#[derive(Debug)]
pub(super) struct Tracked {
    /// What it is, and what came of it.
    pub form: Form,
    /// The ids that it goes by, item ids and call ids alike.
    pub ids: Vec<Text>,
    /// Whether all of it came; nothing that comes later counts.
    pub done: bool,
    /// Where in the answer it stands, as the server says.
    pub index: Option<u64>,
    announced: bool,
}

/// The most ids that one item goes by.
const IDS_MAX: usize = 16;

/// What an item is, and what came of it.
#[derive(Debug)]
pub(super) enum Form {
    /// A message.
    Message(MessageSoFar),
    /// Reasoning.
    Thought(ThoughtSoFar),
    /// A call.
    Call(CallSoFar),
    /// Anything else; it comes whole, at its end.
    Opaque,
}

impl Form {
    pub(super) fn message() -> Self {
        Self::Message(MessageSoFar::default())
    }

    pub(super) fn thought() -> Self {
        Self::Thought(ThoughtSoFar::default())
    }

    pub(super) fn call(freeform: bool) -> Self {
        Self::Call(CallSoFar::new(freeform))
    }

    /// Returns the form of an item of which nothing came yet.
    pub(super) fn of_item(item: Node<'_>) -> Self {
        match item.field("type").and_then(|tag| tag.as_str()).as_deref() {
            Some("message") => Self::message(),
            None if item.field("role").is_some() => Self::message(),
            Some("reasoning") => Self::thought(),
            Some("function_call") => Self::call(false),
            Some("custom_tool_call") => Self::call(true),
            _ => Self::Opaque,
        }
    }

    /// Says whether both are of the same kind.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Tracked {
    pub(super) const fn new(form: Form, index: Option<u64>) -> Self {
        Self { form, ids: Vec::new(), done: false, index, announced: false }
    }

    pub(super) fn has_any(&self, ids: &[Text]) -> bool {
        self.ids.iter().any(|id| ids.contains(id))
    }

    /// Adds ids that the item goes by; the first one it ever had is the one that is passed on.
    pub(super) fn add_ids(&mut self, ids: Vec<Text>) {
        for id in ids {
            if self.ids.len() < IDS_MAX && !self.ids.contains(&id) {
                self.ids.push(id);
            }
        }
        let first = self.ids.first();
        match &mut self.form {
            Form::Message(message) => message.id = first.cloned(),
            Form::Thought(thought) => thought.id = first.cloned(),
            Form::Call(call) => call.fall_back_to(first),
            Form::Opaque => {}
        }
    }

    pub(super) fn shares_index(&self, index: Option<u64>) -> bool {
        index.is_some() && self.index == index
    }

    /// Says whether the item was only guessed from its events, and may be the one of that index.
    pub(super) fn was_guessed(&self, index: Option<u64>) -> bool {
        !self.announced && (self.index.is_none() || self.shares_index(index))
    }

    /// Takes the announcement of the item.
    pub(super) fn announce(&mut self, item: Node<'_>, sink: &mut Sink<'_>) {
        self.announced = true;
        match &mut self.form {
            _ if self.done => {}
            Form::Thought(thought) => drop(thought.begin(sink)),
            Form::Call(call) => call.announce(item, sink),
            Form::Message(_) | Form::Opaque => {}
        }
    }

    /// Takes the whole item, if it came, and ends it.
    pub(super) fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        match &mut self.form {
            Form::Message(message) => message.finish(item, sink),
            Form::Thought(thought) => thought.finish(item, sink),
            Form::Call(call) => call.finish(item, sink),
            Form::Opaque => {
                if let Some(item) = item {
                    let kind = fields::lenient_text(item, "type").unwrap_or_default();
                    let block = sink.begin(BlockKind::Opaque { kind, text: item.raw_text() });
                    sink.end(block);
                }
            }
        }
    }
}
