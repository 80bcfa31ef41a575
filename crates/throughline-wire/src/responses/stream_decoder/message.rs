//! What a stream has said of a message so far: its parts, each of which is a block.

use super::sink::{Sink, rest_of};
use crate::json::Node;
use crate::responses::fields;
use throughline_core::{BlockId, BlockKind, Piece, Text};

/// A message under way.
#[derive(Debug, Default)]
pub(super) struct MessageSoFar {
    /// The backend's id of the message.
    pub id: Option<Text>,
    /// The parts, in the order in which they began.
    parts: Vec<PartSoFar>,
}

/// Which part of a message an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartSort {
    /// Whether it refuses.
    pub refusal: bool,
    /// The server's number of the part.
    pub index: Option<u64>,
}

#[derive(Debug)]
struct PartSoFar {
    block: BlockId,
    refusal: bool,
    /// The server's number of the part, if it announced one.
    index: Option<u64>,
    text: String,
    annotations: usize,
    open: bool,
}

impl MessageSoFar {
    /// Takes the announcement of a part.
    pub(super) fn announce(&mut self, part: Node<'_>, index: Option<u64>, sink: &mut Sink<'_>) {
        let Some((refusal, _)) = read_part(part) else { return };
        let is_fresh = |last: &PartSoFar| {
            last.open && last.refusal == refusal && last.text.is_empty() && last.index == index
        };
        if !self.parts.last().is_some_and(is_fresh) {
            self.begin(PartSort { refusal, index }, sink);
        }
    }

    /// Takes a piece of a part.
    pub(super) fn grow(&mut self, text: &Text, sort: PartSort, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        let part = self.part_for(sort, sink);
        part.text.push_str(text);
        sink.grow(part.block, Piece::Text(text.clone()));
    }

    /// Takes all the text of a part, which goes on: remarks may follow.
    pub(super) fn complete(&mut self, text: &Text, sort: PartSort, sink: &mut Sink<'_>) {
        if let Some(part) = self.part_of_whole(text, sort, sink) {
            part.complete(text, None, sink);
        }
    }

    /// Takes a whole part, which is thereby over.
    pub(super) fn conclude(&mut self, part: Node<'_>, index: Option<u64>, sink: &mut Sink<'_>) {
        let Some((refusal, text)) = read_part(part) else { return };
        if let Some(open) = self.part_of_whole(&text, PartSort { refusal, index }, sink) {
            open.complete(&text, Some(part), sink);
            open.end(sink);
        }
    }

    /// Takes a remark on a text.
    pub(super) fn annotate(&mut self, note: Node<'_>, index: Option<u64>, sink: &mut Sink<'_>) {
        let part = self.part_for(PartSort { refusal: false, index }, sink);
        part.annotations += 1;
        sink.grow(part.block, Piece::Annotation(note.raw_text()));
    }

    /// Takes the whole message, if it came, and ends it.
    pub(super) fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
        let content = item.and_then(|item| item.field("content"));
        let wholes = content.into_iter().flat_map(Node::items);
        let wholes = wholes.filter_map(|part| read_part(part).map(|(refusal, text)| (part, refusal, text)));
        for (at, (part, refusal, text)) in wholes.enumerate() {
            let at = match self.parts.get(at) {
                Some(known) if known.refusal == refusal => at,
                _ => self.begin(PartSort { refusal, index: None }, sink),
            };
            let known = &mut self.parts[at];
            if known.open {
                known.complete(&text, Some(part), sink);
                known.end(sink);
            }
        }
        self.parts.iter_mut().for_each(|part| part.end(sink));
    }

    /// Begins a part behind the others and returns its position.
    ///
    /// Parts of different numbers may grow side by side; any other has ended by now.
    fn begin(&mut self, PartSort { refusal, index }: PartSort, sink: &mut Sink<'_>) -> usize {
        for part in &mut self.parts {
            if index.is_none() || part.index.is_none() || part.index == index {
                part.end(sink);
            }
        }
        sink.facts.refused |= refusal;
        let item_id = self.id.clone();
        let kind = if refusal { BlockKind::Refusal { item_id } } else { BlockKind::Text { item_id } };
        let block = sink.begin(kind);
        self.parts.push(PartSoFar { block, refusal, index, text: String::new(), annotations: 0, open: true });
        self.parts.len() - 1
    }

    /// Returns which open part is meant: the one that was announced under its number, or else the last.
    ///
    /// There are servers that count the number up with every piece, so one that was not announced is no help.
    fn open_part(&self, PartSort { refusal, index }: PartSort) -> Option<usize> {
        let is_open = |part: &PartSoFar| part.open && part.refusal == refusal;
        let is_meant = |part: &PartSoFar| is_open(part) && index.is_some() && part.index == index;
        self.parts.iter().rposition(is_meant).or_else(|| self.parts.iter().rposition(is_open))
    }

    fn part_for(&mut self, sort: PartSort, sink: &mut Sink<'_>) -> &mut PartSoFar {
        let at = self.open_part(sort).unwrap_or_else(|| self.begin(PartSort { index: None, ..sort }, sink));
        &mut self.parts[at]
    }

    /// Returns the part that a whole text belongs to; nothing if it repeats one that has ended.
    fn part_of_whole(&mut self, text: &str, sort: PartSort, sink: &mut Sink<'_>) -> Option<&mut PartSoFar> {
        let is_repeated = self.parts.iter().any(|part| !part.open && part.text == text);
        if is_repeated && self.open_part(sort).is_none() {
            return None;
        }
        Some(self.part_for(sort, sink))
    }
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
