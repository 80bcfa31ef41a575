//! What a stream has said of a call so far: it begins as soon as its name is known.

use super::sink::{Sink, rest_of};
use crate::json::{Kind, Node};
use crate::responses::fields;
use throughline_core::{BlockId, BlockKind, Piece, Text};

/// A call under way.
#[derive(Debug, Default)]
pub(super) struct CallSoFar {
    freeform: bool,
    block: Option<BlockId>,
    id: Option<Text>,
    item_id: Option<Text>,
    name: Option<Text>,
    namespace: Option<Text>,
    text: String,
    /// What the announcement held of the input: all of it or nothing, but servers differ in which.
    announced: Option<Text>,
    /// The name and the input of a finished call under the same id: if this one has the same, it is that call again.
    first: Option<(Option<Text>, String)>,
    ended: bool,
}

impl CallSoFar {
    pub(super) fn new(freeform: bool) -> Self {
        Self { freeform, ..Self::default() }
    }

    /// Returns a call that may be this one again, or another under the same id; nothing is told of it until it is over.
    pub(super) fn double(&self) -> Self {
        Self {
            freeform: self.freeform,
            first: Some((self.name.clone(), self.text.clone())),
            ..Self::default()
        }
    }

    /// Takes the announcement of the call.
    pub(super) fn announce(&mut self, item: Node<'_>, sink: &mut Sink<'_>) {
        self.learn(item);
        self.announced = self.text_in(item);
        self.try_begin(sink);
    }

    /// Takes a piece of the input, or all of it; `event` may say more about the call.
    pub(super) fn grow(&mut self, text: &Text, whole: bool, event: Node<'_>, sink: &mut Sink<'_>) {
        if self.ended {
            return;
        }
        self.id = self.id.take().or_else(|| fields::lenient_text(event, "call_id"));
        self.name = self.name.take().or_else(|| fields::lenient_text(event, "name"));
        self.try_begin(sink);
        self.add(text, whole, sink);
        if whole && !self.text.is_empty() {
            self.end(sink);
        }
    }

    /// Takes the whole call, if it came, and ends it; one that never got a name cannot be made by anyone.
    pub(super) fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
        if self.ended {
            return;
        }
        if let Some(item) = item {
            self.learn(item);
        }
        self.try_begin(sink);
        if let Some(text) = item.and_then(|item| self.text_in(item)) {
            self.add(&text, true, sink);
        }
        if let Some(text) = self.announced.take().filter(|_| self.text.is_empty()) {
            self.add(&text, true, sink);
        }
        self.end(sink);
    }

    /// Takes an id that the call goes by, for want of a better one.
    pub(super) fn fall_back_to(&mut self, id: Option<&Text>) {
        self.item_id = self.item_id.take().or_else(|| id.cloned());
    }

    fn learn(&mut self, item: Node<'_>) {
        let given = |name: &str| fields::lenient_text(item, name).filter(|text| !text.is_empty());
        self.freeform |= item.field("type").is_some_and(|tag| tag.is_str("custom_tool_call"));
        self.id = self.id.take().or_else(|| given("call_id"));
        self.item_id = given("id").or_else(|| self.item_id.take());
        self.name = self.name.take().or_else(|| given("name"));
        self.namespace = self.namespace.take().or_else(|| given("namespace"));
    }

    fn text_in(&self, item: Node<'_>) -> Option<Text> {
        let value = fields::given(item, if self.freeform { "input" } else { "arguments" })?;
        match value.kind() {
            Kind::Object => Some(value.raw_text()),
            _ => value.as_text().filter(|text| !text.is_empty()),
        }
    }

    /// Begins the block as soon as the name is known, with what came before that.
    fn try_begin(&mut self, sink: &mut Sink<'_>) {
        let (None, None, Some(name)) = (self.block, &self.first, &self.name) else { return };
        let made_up = || Text::from(format!("call_{}", sink.blocks));
        let kind = BlockKind::Call {
            id: self.id.clone().or_else(|| self.item_id.clone()).unwrap_or_else(made_up),
            item_id: self.item_id.clone().filter(|item_id| self.id.as_ref() != Some(item_id)),
            name: name.clone(),
            namespace: self.namespace.clone(),
            freeform: self.freeform,
        };
        let block = sink.begin(kind);
        self.block = Some(block);
        sink.facts.calls = true;
        if !self.text.is_empty() {
            sink.grow(block, Piece::Text(Text::from(self.text.as_str())));
        }
    }

    fn add(&mut self, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        let piece = if whole { rest_of(text, &self.text) } else { Some(text.clone()) };
        let Some(text) = piece.filter(|text| !text.is_empty()) else { return };
        self.text.push_str(&text);
        if let Some(block) = self.block {
            sink.grow(block, Piece::Text(text));
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        if let Some((name, text)) = self.first.take() {
            if (&name, &text) == (&self.name, &self.text) {
                self.ended = true;
                return;
            }
            self.try_begin(sink);
        }
        if let Some(block) = self.block.filter(|_| !self.ended) {
            self.ended = true;
            sink.end(block);
        }
    }
}
