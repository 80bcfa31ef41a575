//! Calls of a streamed answer, put together from deltas.
//!
//! A delta names its call by an index. Real servers leave the index out, give every call the same one, repeat
//! id and name with each piece, send names in pieces, send ids late or never, send a call whole, or send a
//! whole call twice. A call is announced once its first arguments arrive, or something else begins: until
//! then its name may still grow.

use super::completeness::Completeness;
use super::extras::{filled, given};
use crate::json::Node;
use throughline_core::{BlockId, Text};

/// What a delta says of a call.
pub(super) struct CallDelta {
    /// Which call it is about.
    pub index: Option<u64>,
    /// The call's id.
    pub id: Option<Text>,
    /// The tool's name, or a piece of it.
    pub name: Option<Text>,
    /// A piece of the input.
    pub input: Text,
    /// Whether the input is free text.
    pub freeform: bool,
}

/// A call under way.
pub(super) struct StreamedCall {
    /// The index that the server gives it.
    pub index: Option<u64>,
    /// The call's id, as far as it is known.
    pub id: Option<Text>,
    /// The tool's name, as far as it is known.
    pub name: String,
    /// Whether the input is free text.
    pub freeform: bool,
    /// Input that came before the call could be announced.
    pub held: String,
    progress: Completeness,
    /// All the input that came, to tell a call that comes twice from another one of the same id.
    input: String,
    /// How far its block has come.
    pub stage: Stage,
}

/// How far the block of a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not announced.
    Unbegun,
    /// Announced under this number.
    Open(BlockId),
    /// Closed.
    Ended,
}

impl CallDelta {
    /// Reads an item of `tool_calls`; nothing if it is of a type that nobody knows.
    pub fn decode(node: Node<'_>) -> Option<Self> {
        let custom = given(node, "custom");
        let kind = filled(node, "type");
        let known = matches!(kind.as_deref(), None | Some("function" | "custom"));
        if !known && custom.is_none() && given(node, "function").is_none() {
            return None;
        }
        let freeform = custom.is_some() || kind.is_some_and(|kind| kind == "custom");
        let inner = custom.or_else(|| given(node, "function"));
        let input = inner.and_then(|inner| given(inner, if freeform { "input" } else { "arguments" }));
        Some(Self {
            index: node.field("index").and_then(|index| index.as_u64()),
            id: filled(node, "id"),
            name: inner.and_then(|inner| filled(inner, "name")),
            input: input.map(|input| input.as_text().unwrap_or_else(|| input.raw_text())).unwrap_or_default(),
            freeform,
        })
    }
}

impl StreamedCall {
    /// Returns the call that the delta is the first of.
    pub fn new(delta: &CallDelta) -> Self {
        Self {
            index: delta.index,
            id: None,
            name: String::new(),
            freeform: false,
            held: String::new(),
            progress: Completeness::default(),
            input: String::new(),
            stage: Stage::Unbegun,
        }
    }

    /// Learns what the delta says besides the input.
    pub fn learn(&mut self, delta: &CallDelta) {
        self.freeform |= delta.freeform;
        if self.id.is_none() {
            self.id.clone_from(&delta.id);
        }
        if self.stage != Stage::Unbegun {
            return;
        }
        match &delta.name {
            Some(name) if self.name.ends_with(name.as_str()) => {}
            // Repeated from the start, with more of it.
            Some(name) if name.starts_with(&self.name) => self.name = name.to_string(),
            Some(name) => self.name.push_str(name),
            None => {}
        }
    }

    /// Returns the piece of input if it belongs to the call: what follows complete arguments does not.
    pub fn accept<'d>(&mut self, delta: &'d CallDelta) -> Option<&'d Text> {
        if delta.input.is_empty() || self.stage == Stage::Ended || self.is_complete() {
            return None;
        }
        if !self.freeform {
            self.progress = self.progress.after(&delta.input);
        }
        self.input.push_str(&delta.input);
        Some(&delta.input)
    }

    /// Says whether the arguments are all there.
    pub fn is_complete(&self) -> bool {
        self.progress == Completeness::Complete
    }

    fn has_begun_arguments(&self) -> bool {
        matches!(self.progress, Completeness::Open { .. } | Completeness::Other)
    }

    /// Says whether a delta with the same id begins another call: some servers give every call the same one.
    fn is_followed_by(&self, delta: &CallDelta) -> bool {
        let Some(name) = &delta.name else { return false };
        let is_repeated = self.name == name.as_str() && self.input == delta.input.as_str();
        self.is_complete() && !delta.input.is_empty() && !is_repeated
    }

    /// Says whether a delta with the same index is about another call all the same.
    fn is_succeeded_by(&self, delta: &CallDelta) -> bool {
        let Some(name) = &delta.name else { return false };
        match (&self.id, &delta.id) {
            (Some(mine), Some(other)) if mine == other => self.is_followed_by(delta),
            (Some(mine), Some(other)) => {
                mine != other && !(self.has_begun_arguments() && self.name == name.as_str())
            }
            (None, None) => self.is_complete() && !delta.input.is_empty(),
            _ => false,
        }
    }
}

/// Returns which of the calls the delta is about; nothing if it is the first of a new one.
pub(super) fn find_call(calls: &[StreamedCall], delta: &CallDelta) -> Option<usize> {
    if delta.index.is_some() {
        let at = calls.iter().rposition(|call| call.index == delta.index)?;
        return Some(at).filter(|at| !calls[*at].is_succeeded_by(delta));
    }
    let last = calls.len().checked_sub(1)?;
    match (&delta.id, &delta.name) {
        (Some(id), name) => {
            let known = calls.iter().rposition(|call| call.id.as_ref() == Some(id));
            let comes_late = name.is_none() && calls[last].id.is_none();
            match known {
                Some(at) if calls[at].is_followed_by(delta) => None,
                Some(at) => Some(at),
                None => comes_late.then_some(last),
            }
        }
        (None, Some(name)) => {
            let is_repeated = calls[last].has_begun_arguments() && calls[last].name == name.as_str();
            is_repeated.then_some(last)
        }
        (None, None) => Some(last),
    }
}
