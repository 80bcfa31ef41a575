//! What a stream has said of a reasoning item so far: one block, whatever it consists of.

use super::sink::{Sink, rest_of};
use crate::json::Node;
use crate::responses::fields;
use throughline_core::{BlockId, BlockKind, Piece, Seal, Text};

/// The most paragraphs of a summary; what a server numbers beyond goes into the last.
const PARAGRAPHS_MAX: usize = 1024;

/// Reasoning under way.
#[derive(Debug, Default)]
pub(super) struct ThoughtSoFar {
    /// The backend's id of the item.
    pub id: Option<Text>,
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

impl ThoughtSoFar {
    /// Begins the block, if it has not begun.
    pub(super) fn begin(&mut self, sink: &mut Sink<'_>) -> BlockId {
        *self.block.get_or_insert_with(|| sink.begin(BlockKind::Thought { item_id: self.id.clone() }))
    }

    /// Takes a piece of the reasoning itself, or all of one part of it.
    pub(super) fn grow(&mut self, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        let block = self.begin(sink);
        if !whole {
            self.text.push_str(text);
            return sink.grow(block, Piece::Reasoning(text.clone()));
        }
        // The end of a part is told twice: once for its text, once for the part.
        if self.text.is_empty() && self.last == **text {
            return;
        }
        if let Some(rest) = rest_of(text, &self.text) {
            self.text.push_str(&rest);
            sink.grow(block, Piece::Reasoning(rest));
        }
        self.last = std::mem::take(&mut self.text);
        self.finished.push_str(&self.last);
    }

    /// Takes a piece of a paragraph of the summary, or all of it.
    pub(super) fn summarise(&mut self, index: u64, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        self.begin(sink);
        let at = self.summary.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
            if self.summary.len() < PARAGRAPHS_MAX {
                self.summary.push((index, String::new()));
            }
            self.summary.len() - 1
        });
        self.grow_paragraph(at, text, whole, sink);
    }

    fn grow_paragraph(&mut self, at: usize, text: &Text, whole: bool, sink: &mut Sink<'_>) {
        let block = self.begin(sink);
        let Some((_, so_far)) = self.summary.get_mut(at) else { return };
        let piece = if whole { rest_of(text, so_far) } else { Some(text.clone()) };
        if let Some(text) = piece {
            so_far.push_str(&text);
            // Numbered in their order: a server's own numbers may be anything.
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            sink.grow(block, Piece::Summary { index, text });
        }
    }

    /// Takes the whole item, if it came, and ends it.
    pub(super) fn finish(&mut self, item: Option<Node<'_>>, sink: &mut Sink<'_>) {
        if let Some(item) = item {
            self.complete(item, sink);
        }
        if let Some(block) = self.block {
            sink.end(block);
        }
    }

    fn complete(&mut self, item: Node<'_>, sink: &mut Sink<'_>) {
        let block = self.begin(sink);
        for (at, text) in texts_of(item, "summary").into_iter().enumerate() {
            if at == self.summary.len() {
                self.summary.push((u64::MAX, String::new()));
            }
            self.grow_paragraph(at, &text, true, sink);
        }
        let so_far = format!("{}{}", self.finished, self.text);
        let whole: String = texts_of(item, "content").iter().map(Text::as_str).collect();
        if let Some(rest) = rest_of(&Text::from(whole), &so_far) {
            sink.grow(block, Piece::Reasoning(rest));
        }
        // Only here: what an announcement holds under this name is not final.
        if let Some(sealed) = fields::lenient_text(item, "encrypted_content") {
            sink.grow(block, Piece::Seal(Seal::Encrypted(sealed)));
        }
    }
}

fn texts_of(item: Node<'_>, name: &str) -> Vec<Text> {
    let parts = item.field(name).into_iter().flat_map(Node::items);
    parts.filter_map(|part| part.as_text().or_else(|| fields::lenient_text(part, "text"))).collect()
}
