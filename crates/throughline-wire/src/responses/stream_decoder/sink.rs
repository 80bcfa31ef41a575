//! Where the frames of a stream go, and how a whole is reconciled with the pieces that came before it.

use crate::responses::reply::Facts;
use throughline_core::{BlockId, BlockKind, Frame, Piece, Text};

/// Takes frames, and numbers the blocks in the order in which they begin.
pub(super) struct Sink<'s> {
    pub frames: &'s mut Vec<Frame>,
    pub blocks: &'s mut u32,
    pub facts: &'s mut Facts,
}

impl Sink<'_> {
    pub(super) fn begin(&mut self, kind: BlockKind) -> BlockId {
        let block = *self.blocks;
        *self.blocks += 1;
        self.frames.push(Frame::Begun { block, kind });
        block
    }

    pub(super) fn grow(&mut self, block: BlockId, piece: Piece) {
        self.frames.push(Frame::Grew { block, piece });
    }

    pub(super) fn end(&mut self, block: BlockId) {
        self.frames.push(Frame::Ended { block });
    }
}

/// Returns what `whole` has beyond `so_far`; nothing if it has no more, or says something else.
pub(super) fn rest_of(whole: &Text, so_far: &str) -> Option<Text> {
    let rest = whole.strip_prefix(so_far).filter(|rest| !rest.is_empty())?;
    Some(if so_far.is_empty() { whole.clone() } else { Text::from(rest) })
}
