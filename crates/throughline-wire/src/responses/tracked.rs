//! What a stream has said of one item so far, and what is still missing of it.
//!
//! Texts are remembered as far as they came in pieces, because servers repeat them whole at up to four later
//! places (text, part, item, response) and some give them only there: whatever a later place has beyond what
//! came is one more piece, and what contradicts it is ignored.

use super::fields;
use super::reply::Facts;
use crate::json::{Kind, Node};
use throughline_core::{BlockId, BlockKind, Frame, Piece, Seal, Text};

/// An item of a stream.
#[derive(Debug)]
pub(super) struct Tracked {
    /// What it is, and what came of it.
    pub form: Form,
    /// The ids that it goes by, item ids and call ids alike.
    pub ids: Vec<Text>,
    /// Whether all of it came; nothing that comes later counts.
    pub done: bool,
    index: Option<u64>,
    announced: bool,
}

/// What an item is, and what came of it.
#[derive(Debug)]
pub(super) enum Form {
    /// A message: its parts in the order in which they began.
    Message(Vec<PartSoFar>),
    /// Reasoning.
    Thought(ThoughtSoFar),
    /// A call.
    Call(CallSoFar),
    /// Anything else; it comes whole, at its end.
    Opaque,
}

#[derive(Debug)]
pub(super) struct PartSoFar {
    block: BlockId,
    refusal: bool,
    /// The server's number of the part, if it announced one.
    index: Option<u64>,
    text: String,
    annotations: usize,
    open: bool,
}

#[derive(Debug, Default)]
pub(super) struct ThoughtSoFar {
    block: Option<BlockId>,
    /// The paragraphs of the summary, by the server's numbers.
    summary: Vec<(u64, String)>,
    /// The parts that are all there, joined.
    finished: String,
    /// The part that was finished last.
    last: String,
    /// The part under way.
    text: String,
}

#[derive(Debug, Default)]
pub(super) struct CallSoFar {
    block: Option<BlockId>,
    freeform: bool,
    id: Option<Text>,
    item_id: Option<Text>,
    name: Option<Text>,
    namespace: Option<Text>,
    text: String,
    /// What the announcement held of the input: all of it or nothing, but servers differ in which.
    announced: Option<Text>,
    ended: bool,
}

/// Where frames go.
pub(super) struct Sink<'s> {
    pub frames: &'s mut Vec<Frame>,
    pub blocks: &'s mut u32,
    pub facts: &'s mut Facts,
}

impl Sink<'_> {
    fn begin(&mut self, kind: BlockKind) -> BlockId {
        let block = *self.blocks;
        *self.blocks += 1;
        self.frames.push(Frame::Begun { block, kind });
        block
    }

    fn grow(&mut self, block: BlockId, piece: Piece) {
        self.frames.push(Frame::Grew { block, piece });
    }

    fn end(&mut self, block: BlockId) {
        self.frames.push(Frame::Ended { block });
    }
}

impl Form {
    pub(super) const fn message() -> Self {
        Self::Message(Vec::new())
    }

    pub(super) fn thought() -> Self {
        Self::Thought(ThoughtSoFar::default())
    }

    pub(super) fn call(freeform: bool) -> Self {
        Self::Call(CallSoFar { freeform, ..CallSoFar::default() })
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

    pub(super) fn add_ids(&mut self, ids: Vec<Text>) {
        for id in ids {
            if !self.ids.contains(&id) {
                self.ids.push(id);
            }
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
        if self.done {
            return;
        }
        match &mut self.form {
            Form::Thought(thought) => {
                thought.begun(self.ids.first(), sink);
            }
            Form::Call(call) => {
                call.learn(item);
                call.announced = call.text_in(item);
                call.try_begin(sink);
            }
            Form::Message(_) | Form::Opaque => {}
        }
    }

    pub(super) fn part_added(&mut self, part: Option<Node<'_>>, index: Option<u64>, sink: &mut Sink<'_>) {
        let Some((refusal, _)) = part.and_then(read_part) else { return };
        let Some(parts) = self.open_message() else { return };
        let is_fresh = |last: &PartSoFar| {
            last.open && last.refusal == refusal && last.text.is_empty() && last.index == index
        };
        if !parts.last().is_some_and(is_fresh) {
            let item_id = self.ids.first().cloned();
            if let Form::Message(parts) = &mut self.form {
                begin_part(parts, (refusal, index), item_id, sink);
            }
        }
    }

    pub(super) fn part_done(&mut self, part: Option<Node<'_>>, index: Option<u64>, sink: &mut Sink<'_>) {
        if matches!(self.form, Form::Thought(_)) {
            let text = part.and_then(|part| fields::lenient_text(part, "text")).unwrap_or_default();
            return self.reasoning(&text, true, sink);
        }
        let Some((refusal, text)) = part.and_then(read_part) else { return };
        if let Some(open) = self.part_of_whole(&text, (refusal, index), sink) {
            open.complete(&text, part, sink);
            open.end(sink);
        }
    }

    /// Takes a piece of a part; `sort` is whether it refuses, and the server's number of the part.
    pub(super) fn text_delta(&mut self, text: &Text, sort: (bool, Option<u64>), sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        if let Some(part) = self.part_for(sort, sink) {
            part.text.push_str(text);
            sink.grow(part.block, Piece::Text(text.clone()));
        }
    }

    pub(super) fn text_whole(&mut self, text: &Text, sort: (bool, Option<u64>), sink: &mut Sink<'_>) {
        if let Some(part) = self.part_of_whole(text, sort, sink) {
            part.complete(text, None, sink);
        }
    }

    pub(super) fn annotation(&mut self, note: Option<Node<'_>>, index: Option<u64>, sink: &mut Sink<'_>) {
        let Some(note) = note else { return };
        if let Some(part) = self.part_for((false, index), sink) {
            part.annotations += 1;
            sink.grow(part.block, Piece::Annotation(note.raw_text()));
        }
    }

    /// Takes a piece of reasoning, or all of one part of it.
    pub(super) fn reasoning(&mut self, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        let Form::Thought(thought) = &mut self.form else { return };
        if self.done || text.is_empty() {
            return;
        }
        let block = thought.begun(self.ids.first(), sink);
        if !whole {
            thought.text.push_str(text);
            return sink.grow(block, Piece::Reasoning(text.clone()));
        }
        // The end of a part is told twice: once for its text, once for the part.
        if thought.text.is_empty() && thought.last == **text {
            return;
        }
        if let Some(rest) = rest_of(text, &thought.text) {
            thought.text.push_str(&rest);
            sink.grow(block, Piece::Reasoning(rest));
        }
        thought.last = std::mem::take(&mut thought.text);
        thought.finished.push_str(&thought.last);
    }

    /// Takes a piece of a summary's paragraph, or all of it.
    pub(super) fn summary(&mut self, index: u64, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        let Form::Thought(thought) = &mut self.form else { return };
        if self.done || text.is_empty() {
            return;
        }
        let block = thought.begun(self.ids.first(), sink);
        let at = thought.summary.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
            thought.summary.push((index, String::new()));
            thought.summary.len() - 1
        });
        thought.grow_paragraph(at, text, whole, block, sink);
    }

    /// Learns what an event about a call's input says about the call.
    pub(super) fn learn_call(&mut self, event: Node<'_>) {
        if let Form::Call(call) = &mut self.form {
            call.id = call.id.take().or_else(|| fields::lenient_text(event, "call_id"));
            call.name = call.name.take().or_else(|| fields::lenient_text(event, "name"));
        }
    }

    /// Takes a piece of a call's input, or all of it.
    pub(super) fn input(&mut self, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        let Form::Call(call) = &mut self.form else { return };
        if self.done || call.ended {
            return;
        }
        call.fallback_id(&self.ids);
        call.try_begin(sink);
        call.add(text, whole, sink);
        if whole && !call.text.is_empty() {
            call.end(sink);
        }
    }

    /// Takes the whole item, if it came, and ends it.
    pub(super) fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        match &mut self.form {
            Form::Message(parts) => finish_message(parts, item, self.ids.first(), sink),
            Form::Thought(thought) => thought.finish(item, self.ids.first(), sink),
            Form::Call(call) => {
                call.fallback_id(&self.ids);
                call.finish(item, sink);
            }
            Form::Opaque => {
                if let Some(item) = item {
                    let kind = fields::lenient_text(item, "type").unwrap_or_default();
                    let block = sink.begin(BlockKind::Opaque { kind, text: item.raw_text() });
                    sink.end(block);
                }
            }
        }
    }

    fn open_message(&self) -> Option<&[PartSoFar]> {
        match &self.form {
            Form::Message(parts) if !self.done => Some(parts),
            _ => None,
        }
    }

    /// Returns the open part of that sort, or a new one.
    fn part_for(&mut self, sort: (bool, Option<u64>), sink: &mut Sink<'_>) -> Option<&mut PartSoFar> {
        self.open_message()?;
        let Form::Message(parts) = &mut self.form else { return None };
        let item_id = self.ids.first().cloned();
        let at = open_part(parts, sort).unwrap_or_else(|| begin_part(parts, (sort.0, None), item_id, sink));
        parts.get_mut(at)
    }

    /// Returns the part that a whole text belongs to; nothing if it repeats one that has ended.
    fn part_of_whole(
        &mut self,
        text: &Text,
        sort: (bool, Option<u64>),
        sink: &mut Sink<'_>,
    ) -> Option<&mut PartSoFar> {
        let parts = self.open_message()?;
        let is_repeated = parts.iter().any(|part| !part.open && part.text == **text);
        if is_repeated && open_part(parts, sort).is_none() {
            return None;
        }
        self.part_for(sort, sink)
    }
}

/// Returns which open part an event means: the one that was announced under its number, or else the last.
///
/// There are servers that count the number up with every piece, so one that was not announced is no help.
fn open_part(parts: &[PartSoFar], (refusal, index): (bool, Option<u64>)) -> Option<usize> {
    let is_open = |part: &PartSoFar| part.open && part.refusal == refusal;
    let is_meant = |part: &PartSoFar| is_open(part) && index.is_some() && part.index == index;
    parts.iter().rposition(is_meant).or_else(|| parts.iter().rposition(is_open))
}

impl PartSoFar {
    /// Adds what the whole part has beyond what came.
    fn complete(&mut self, text: &Text, part: Option<Node<'_>>, sink: &mut Sink<'_>) {
        if let Some(rest) = rest_of(text, &self.text) {
            self.text.push_str(&rest);
            sink.grow(self.block, Piece::Text(rest));
        }
        let annotations = part.and_then(|part| part.field("annotations"));
        for annotation in annotations.into_iter().flat_map(Node::items).skip(self.annotations) {
            self.annotations += 1;
            sink.grow(self.block, Piece::Annotation(annotation.raw_text()));
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        if std::mem::replace(&mut self.open, false) {
            sink.end(self.block);
        }
    }
}

/// Begins a part behind the others and returns its position.
///
/// Parts of different numbers may grow side by side; any other has ended by now.
fn begin_part(
    parts: &mut Vec<PartSoFar>,
    (refusal, index): (bool, Option<u64>),
    item_id: Option<Text>,
    sink: &mut Sink<'_>,
) -> usize {
    for part in parts.iter_mut() {
        if index.is_none() || part.index.is_none() || part.index == index {
            part.end(sink);
        }
    }
    sink.facts.refused |= refusal;
    let kind = if refusal { BlockKind::Refusal { item_id } } else { BlockKind::Text { item_id } };
    let block = sink.begin(kind);
    parts.push(PartSoFar { block, refusal, index, text: String::new(), annotations: 0, open: true });
    parts.len() - 1
}

fn finish_message(
    parts: &mut Vec<PartSoFar>,
    item: Option<Node<'_>>,
    id: Option<&Text>,
    sink: &mut Sink<'_>,
) {
    let content = item.and_then(|item| item.field("content"));
    let wholes: Vec<_> = content
        .into_iter()
        .flat_map(Node::items)
        .filter_map(|part| read_part(part).map(|(refusal, text)| (part, refusal, text)))
        .collect();
    for (at, (part, refusal, text)) in wholes.into_iter().enumerate() {
        let at = match parts.get(at) {
            Some(known) if known.refusal == refusal => at,
            _ => begin_part(parts, (refusal, None), id.cloned(), sink),
        };
        if let Some(known) = parts.get_mut(at).filter(|known| known.open) {
            known.complete(&text, Some(part), sink);
            known.end(sink);
        }
    }
    parts.iter_mut().for_each(|part| part.end(sink));
}

impl ThoughtSoFar {
    fn begun(&mut self, item_id: Option<&Text>, sink: &mut Sink<'_>) -> BlockId {
        *self.block.get_or_insert_with(|| sink.begin(BlockKind::Thought { item_id: item_id.cloned() }))
    }

    fn grow_paragraph(&mut self, at: usize, text: &Text, whole: bool, block: BlockId, sink: &mut Sink<'_>) {
        let Some((_, so_far)) = self.summary.get_mut(at) else { return };
        let piece = if whole { rest_of(text, so_far) } else { Some(text.clone()) };
        if let Some(text) = piece {
            so_far.push_str(&text);
            // Numbered in their order: a server's own numbers may be anything.
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            sink.grow(block, Piece::Summary { index, text });
        }
    }

    fn finish(&mut self, item: Option<Node<'_>>, id: Option<&Text>, sink: &mut Sink<'_>) {
        if self.block.is_none() && item.is_none() {
            return;
        }
        let block = self.begun(id, sink);
        if let Some(item) = item {
            for (at, text) in texts_of(item, "summary").into_iter().enumerate() {
                if at == self.summary.len() {
                    self.summary.push((u64::MAX, String::new()));
                }
                self.grow_paragraph(at, &text, true, block, sink);
            }
            let so_far = format!("{}{}", self.finished, self.text);
            let whole: String = texts_of(item, "content").iter().map(Text::as_str).collect();
            if let Some(rest) = rest_of(&Text::from(whole), &so_far) {
                sink.grow(block, Piece::Reasoning(rest));
            }
            // What the announcement holds under this name is not final.
            if let Some(sealed) = fields::lenient_text(item, "encrypted_content") {
                sink.grow(block, Piece::Seal(Seal::Encrypted(sealed)));
            }
        }
        sink.end(block);
    }
}

impl CallSoFar {
    fn learn(&mut self, item: Node<'_>) {
        let given = |name: &str| fields::lenient_text(item, name).filter(|text| !text.is_empty());
        self.freeform |= item.field("type").is_some_and(|tag| tag.is_str("custom_tool_call"));
        self.id = self.id.take().or_else(|| given("call_id"));
        self.item_id = self.item_id.take().or_else(|| given("id"));
        self.name = self.name.take().or_else(|| given("name"));
        self.namespace = self.namespace.take().or_else(|| given("namespace"));
    }

    /// Takes an id of the item for want of a call id.
    fn fallback_id(&mut self, ids: &[Text]) {
        self.item_id = self.item_id.take().or_else(|| ids.first().cloned());
    }

    fn text_in(&self, item: Node<'_>) -> Option<Text> {
        let value = fields::given(item, if self.freeform { "input" } else { "arguments" })?;
        match value.kind() {
            Kind::Object => Some(value.raw_text()),
            _ => value.as_text().filter(|text| !text.is_empty()),
        }
    }

    /// Begins the call as soon as its name is known, with what came before that.
    fn try_begin(&mut self, sink: &mut Sink<'_>) {
        let (None, Some(name)) = (self.block, &self.name) else { return };
        let made_up = || Text::from(format!("call_{}", sink.blocks));
        let kind = BlockKind::Call {
            id: self.id.clone().or_else(|| self.item_id.clone()).unwrap_or_else(made_up),
            item_id: self.item_id.clone(),
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
        if let Some(block) = self.block.filter(|_| !self.ended) {
            self.ended = true;
            sink.end(block);
        }
    }

    /// Ends the call; one that never got a name cannot be made by anyone.
    fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
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
}

/// Returns what `whole` has beyond `so_far`; nothing if it has no more, or says something else.
fn rest_of(whole: &Text, so_far: &str) -> Option<Text> {
    let rest = whole.strip_prefix(so_far).filter(|rest| !rest.is_empty())?;
    Some(if so_far.is_empty() { whole.clone() } else { Text::from(rest) })
}

/// Returns the text of a part of a message, and whether it is a refusal.
fn read_part(part: Node<'_>) -> Option<(bool, Text)> {
    let tag = part.field("type")?.as_str()?;
    let (refusal, field) = match &*tag {
        "output_text" | "text" => (false, "text"),
        "refusal" => (true, "refusal"),
        _ => return None,
    };
    Some((refusal, fields::lenient_text(part, field).unwrap_or_default()))
}

fn texts_of(item: Node<'_>, name: &str) -> Vec<Text> {
    let parts = item.field(name).into_iter().flat_map(Node::items);
    parts.filter_map(|part| part.as_text().or_else(|| fields::lenient_text(part, "text"))).collect()
}
