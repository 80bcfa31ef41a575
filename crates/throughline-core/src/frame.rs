//! Frames: the canonical increments of a streamed answer.
//!
//! A stream is a list of blocks, each of which begins, grows and ends. Blocks may grow side by side (two
//! tool calls whose arguments arrive interleaved), so every frame names its block. Exactly one
//! [`Frame::Closed`] is the last frame of an answer, whatever became of it.

use crate::{Ending, Seal, Text, Usage};

/// One increment of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The backend began to answer.
    Opened {
        /// Its id of the answer.
        id: Option<Text>,
        /// The model that answers.
        model: Option<Text>,
    },
    /// A block began.
    Begun {
        /// Which one.
        block: BlockId,
        /// What it will be.
        kind: BlockKind,
    },
    /// A block grew.
    Grew {
        /// Which one.
        block: BlockId,
        /// By what.
        piece: Piece,
    },
    /// A block is complete.
    Ended {
        /// Which one.
        block: BlockId,
    },
    /// The backend reported tokens; each report adds to what is known.
    Used(Usage),
    /// The blocks stand in another order in the answer than the one in which they began: in this one, all of
    /// them. It comes once, right before the end.
    Ordered(Vec<BlockId>),
    /// The answer is over. Nothing follows.
    Closed(Ending),
    /// An event that nobody here understands, as it came.
    Alien {
        /// The event's name.
        name: Option<Text>,
        /// Its data.
        data: Text,
    },
}

/// Numbers the blocks of one answer, from zero, in the order in which they began.
pub type BlockId = u32;

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text for the user.
    Text {
        /// The provider's id of the message that the text belongs to.
        item_id: Option<Text>,
    },
    /// A refusal.
    Refusal {
        /// The provider's id of the message that the refusal belongs to.
        item_id: Option<Text>,
    },
    /// Reasoning.
    Thought {
        /// The provider's id of the item.
        item_id: Option<Text>,
    },
    /// A tool call.
    Call {
        /// The id that the result will refer to.
        id: Text,
        /// The provider's id of the item.
        item_id: Option<Text>,
        /// The tool's name.
        name: Text,
        /// The namespace that the tool was declared in.
        namespace: Option<Text>,
        /// Whether it takes free text.
        freeform: bool,
    },
    /// An item that only its own dialect understands, whole.
    Opaque {
        /// The type tag on the wire.
        kind: Text,
        /// The item as it came.
        text: Text,
    },
}

/// What a block grew by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text of a text block, a refusal, or the input of a call.
    Text(Text),
    /// Text of a thought's summary.
    Summary {
        /// Which paragraph of the summary.
        index: u32,
        /// The text.
        text: Text,
    },
    /// Text of a thought itself.
    Reasoning(Text),
    /// What binds a thought to its issuer, whole or a piece to be appended.
    Seal(Seal),
    /// A remark on the text (a citation, say), as it came.
    Annotation(Text),
}
