//! Joins frames into a reply: the same entries that a whole answer would have given.

use crate::{
    BlockId, BlockKind, Call, Content, Dialect, Ending, Entry, Frame, Input, Kind, Part, Piece, Reply, Role,
    Said, Seal, Text, Thought, Usage, Wire, settled_stop,
};
use std::collections::BTreeMap;

/// Joins the frames of one answer.
#[derive(Debug)]
pub struct Assembler {
    dialect: Dialect,
    id: Option<Text>,
    model: Option<Text>,
    usage: Option<Usage>,
    ending: Option<Ending>,
    blocks: BTreeMap<BlockId, Block>,
    /// The order of the blocks, where it is not that of their numbers.
    order: Vec<BlockId>,
}

#[derive(Debug)]
struct Block {
    kind: BlockKind,
    text: String,
    /// The paragraphs of a summary, by the number that the backend gives each.
    summary: BTreeMap<u32, String>,
    seal: Option<SealPieces>,
}

/// A seal of which more may come.
#[derive(Debug)]
struct SealPieces {
    kind: SealKind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealKind {
    Signature,
    Redacted,
    Encrypted,
}

impl SealPieces {
    fn finish(self) -> Seal {
        let text = Text::from(self.text);
        match self.kind {
            SealKind::Signature => Seal::Signature(text),
            SealKind::Redacted => Seal::Redacted(text),
            SealKind::Encrypted => Seal::Encrypted(text),
        }
    }
}

impl Assembler {
    /// Returns an assembler that has seen nothing yet of an answer in that dialect.
    #[must_use]
    pub const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            id: None,
            model: None,
            usage: None,
            ending: None,
            blocks: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// Takes the next frame.
    pub fn handle_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::Opened { id, model } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            Frame::Begun { block, kind } => {
                self.blocks.insert(*block, Block::new(kind.clone()));
            }
            Frame::Grew { block, piece } => {
                if let Some(block) = self.blocks.get_mut(block) {
                    block.grow(piece);
                }
            }
            Frame::Used(usage) => self.usage = Some(self.usage.unwrap_or_default().updated(*usage)),
            Frame::Ordered(order) => self.order.clone_from(order),
            Frame::Closed(ending) => self.ending = Some(ending.clone()),
            Frame::Ended { .. } | Frame::Alien { .. } => {}
        }
    }

    /// Returns the reply; one that was never closed is broken.
    #[must_use]
    pub fn finish(mut self) -> Reply {
        let mut blocks: Vec<Block> =
            self.order.iter().filter_map(|block| self.blocks.remove(block)).collect();
        blocks.extend(self.blocks.into_values());
        let entries: Vec<Entry> = blocks.into_iter().map(|block| block.into_entry(self.dialect)).collect();
        let has_calls = entries.iter().any(|entry| entry.as_call().is_some());
        let ending = match self.ending {
            Some(Ending::Stopped(stop)) => Ending::Stopped(settled_stop(stop, has_calls)),
            Some(ending) => ending,
            None => Ending::Broken,
        };
        Reply { id: self.id, model: self.model, entries, ending, usage: self.usage, fields: None }
    }
}

impl Block {
    fn new(kind: BlockKind) -> Self {
        Self { kind, text: String::new(), summary: BTreeMap::new(), seal: None }
    }

    fn grow(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) | Piece::Reasoning(text) => self.text.push_str(text),
            Piece::Summary { index, text } => {
                self.summary.entry(*index).or_default().push_str(text);
            }
            Piece::Seal(seal) => self.add_seal(seal),
            // The remark stays in the provider's events; the canonical text has no place for it.
            Piece::Annotation(_) => {}
        }
    }

    /// Appends to the seal; some providers send it in pieces.
    fn add_seal(&mut self, piece: &Seal) {
        let (kind, text) = match piece {
            Seal::Signature(text) => (SealKind::Signature, text),
            Seal::Redacted(text) => (SealKind::Redacted, text),
            Seal::Encrypted(text) => (SealKind::Encrypted, text),
        };
        match &mut self.seal {
            Some(seal) if seal.kind == kind => seal.text.push_str(text),
            seal => *seal = Some(SealPieces { kind, text: text.to_string() }),
        }
    }

    fn into_entry(self, dialect: Dialect) -> Entry {
        let text = Text::from(self.text);
        let said = |content| {
            Kind::Said(Said {
                role: Role::Assistant,
                parts: vec![Part { content, wire: None }],
                standing: false,
            })
        };
        let mut wire = None;
        let mut entry = Entry::new(match self.kind {
            BlockKind::Text { .. } => said(Content::Text(text)),
            BlockKind::Refusal { .. } => said(Content::Refusal(text)),
            BlockKind::Thought { item_id } => Kind::Thought(Thought {
                summary: self.summary.into_values().map(Text::from).collect(),
                content: if text.is_empty() { Vec::new() } else { vec![text] },
                seal: self.seal.map(SealPieces::finish),
                item_id,
            }),
            BlockKind::Call { id, item_id, name, namespace, freeform } => {
                let input = if freeform { Input::Freeform(text) } else { Input::Arguments(text) };
                Kind::Called(Call { id, item_id, name, namespace, input })
            }
            BlockKind::Opaque { kind, text } => {
                wire = Some(Wire { dialect, text, extras: Vec::new() });
                Kind::Opaque { kind }
            }
        });
        entry.wire = wire;
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;

    fn call(block: BlockId, id: &str) -> Frame {
        let kind = BlockKind::Call {
            id: id.into(),
            item_id: None,
            name: "read".into(),
            namespace: None,
            freeform: false,
        };
        Frame::Begun { block, kind }
    }

    fn grew(block: BlockId, text: &str) -> Frame {
        Frame::Grew { block, piece: Piece::Text(text.into()) }
    }

    fn assemble(frames: &[Frame]) -> Reply {
        let mut assembler = Assembler::new(Dialect::Chat);
        frames.iter().for_each(|frame| assembler.handle_frame(frame));
        assembler.finish()
    }

    #[test]
    fn calls_that_grow_side_by_side_do_not_mix() {
        let frames = [
            call(0, "a"),
            call(1, "b"),
            grew(1, "{\"y\""),
            grew(0, "{\"x\""),
            grew(1, ":2}"),
            grew(0, ":1}"),
        ];
        let reply = assemble(&frames);
        let inputs: Vec<_> =
            reply.entries.iter().map(|entry| entry.as_call().unwrap().input.text().as_str()).collect();
        assert_eq!(inputs, ["{\"x\":1}", "{\"y\":2}"]);
    }

    #[test]
    fn blocks_stand_in_the_order_of_the_answer() {
        let reply = assemble(&[call(0, "b"), call(1, "a"), call(2, "c"), Frame::Ordered(vec![1, 0, 2])]);
        let ids: Vec<_> = reply.entries.iter().map(|entry| entry.as_call().unwrap().id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }

    #[test]
    fn an_answer_that_was_never_closed_is_broken() {
        assert_eq!(assemble(&[call(0, "a")]).ending, Ending::Broken);
    }

    #[test]
    fn a_stop_that_hides_a_call_is_corrected() {
        let reply = assemble(&[call(0, "a"), Frame::Closed(Ending::Stopped(Stop::EndTurn))]);
        assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls));
    }

    #[test]
    fn a_seal_in_pieces_is_one_seal() {
        let seal = |text: &str| Frame::Grew { block: 0, piece: Piece::Seal(Seal::Signature(text.into())) };
        let begun = Frame::Begun { block: 0, kind: BlockKind::Thought { item_id: None } };
        let reply = assemble(&[begun, seal("ab"), seal("cd")]);
        let Kind::Thought(thought) = &reply.entries[0].kind else { panic!("not a thought") };
        assert_eq!(thought.seal, Some(Seal::Signature("abcd".into())));
    }
}
