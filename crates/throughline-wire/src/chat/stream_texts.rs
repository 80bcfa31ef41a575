//! The texts of an answer on their way into one string per kind.
//!
//! Blocks of one kind are written in the order in which they began, and a later one waits for the earlier
//! one to end. Between blocks that do not belong to one run of text a line break is put in, and an empty line between
//! those of two answers that the client has as one.

use super::reply::needs_joint;
use std::collections::VecDeque;
use throughline_core::{BlockId, Piece, Text};

/// The kinds of text that a message has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// What the user is told.
    Text,
    /// What the model refuses.
    Refusal,
    /// What the model thinks.
    Thought,
}

/// A piece of text that can be written now.
pub(super) struct Strand {
    /// What it belongs to.
    pub channel: Channel,
    /// What to put before it.
    pub joint: &'static str,
    /// The text.
    pub text: Text,
}

/// All blocks of text of an answer.
#[derive(Default)]
pub(super) struct Strands {
    /// Blocks that began and are not written to their end, in their order.
    waiting: VecDeque<Block>,
    /// The end of what was written, for each channel.
    tails: [Tail; 3],
    /// The last block that began, if nothing began since.
    last: Option<(Channel, Option<Text>)>,
    has_refusal: bool,
    /// Whether the next text is that of another answer.
    is_apart: bool,
}

struct Block {
    id: BlockId,
    channel: Channel,
    joint: &'static str,
    held: Vec<(&'static str, Text)>,
    source: Source,
    ended: bool,
}

/// Which of its two accounts of a thought a provider gives; a second one would only repeat it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Unknown,
    Itself,
    Summary(u32),
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Tail {
    #[default]
    Empty,
    Text,
    LineBreak,
}

impl Strands {
    /// Notes that a block of text began.
    pub fn begin(&mut self, id: BlockId, channel: Channel, item_id: Option<&Text>) {
        let joint = match (&self.last, channel) {
            (_, Channel::Text) if std::mem::take(&mut self.is_apart) => "\n\n",
            // Blocks of one message may part in the middle of a sentence; messages do not.
            (Some((Channel::Text, last)), Channel::Text) if last.is_none() || last.as_ref() == item_id => "",
            (_, Channel::Thought) => "\n\n",
            _ => "\n",
        };
        self.last = Some((channel, item_id.cloned()));
        self.has_refusal |= channel == Channel::Refusal;
        self.waiting.push_back(Block {
            id,
            channel,
            joint,
            held: Vec::new(),
            source: Source::Unknown,
            ended: false,
        });
    }

    /// Notes that something began which is no text.
    pub fn interrupt(&mut self) {
        self.last = None;
    }

    /// Notes that what follows is another answer.
    pub fn set_apart(&mut self) {
        self.is_apart = true;
    }

    /// Says whether there was a refusal.
    pub const fn has_refusal(&self) -> bool {
        self.has_refusal
    }

    /// Takes a piece, and returns it if it can be written now.
    pub fn grow(&mut self, id: BlockId, piece: &Piece) -> Option<Strand> {
        let at = self.waiting.iter().position(|block| block.id == id)?;
        let (joint, text) = self.waiting[at].sift(piece)?;
        let channel = self.waiting[at].channel;
        let is_first = self.waiting.iter().position(|block| block.channel == channel) == Some(at);
        if is_first {
            return Some(self.strand(at, joint, text));
        }
        self.waiting[at].held.push((joint, text));
        None
    }

    /// Ends a block, and returns what could not be written before.
    pub fn end(&mut self, id: BlockId) -> Vec<Strand> {
        let Some(at) = self.waiting.iter().position(|block| block.id == id) else { return Vec::new() };
        self.waiting[at].ended = true;
        self.advance(self.waiting[at].channel)
    }

    /// Ends all blocks, and returns what could not be written before.
    pub fn end_all(&mut self) -> Vec<Strand> {
        self.waiting.iter_mut().for_each(|block| block.ended = true);
        [Channel::Thought, Channel::Text, Channel::Refusal]
            .into_iter()
            .flat_map(|channel| self.advance(channel))
            .collect()
    }

    /// Lets the next block of a channel take its turn once the one before has ended.
    fn advance(&mut self, channel: Channel) -> Vec<Strand> {
        let mut strands = Vec::new();
        while let Some(at) = self.waiting.iter().position(|block| block.channel == channel) {
            for (joint, text) in std::mem::take(&mut self.waiting[at].held) {
                strands.push(self.strand(at, joint, text));
            }
            if !self.waiting[at].ended {
                break;
            }
            self.waiting.remove(at);
        }
        strands
    }

    fn strand(&mut self, at: usize, joint: &'static str, text: Text) -> Strand {
        let block = &mut self.waiting[at];
        let joint = match std::mem::take(&mut block.joint) {
            "" => joint,
            of_block => of_block,
        };
        let tail = &mut self.tails[block.channel as usize];
        let before = if *tail == Tail::Text { "." } else { "" };
        let joint = if needs_joint(before, &text) { joint } else { "" };
        *tail = if text.ends_with('\n') { Tail::LineBreak } else { Tail::Text };
        Strand { channel: block.channel, joint, text }
    }
}

impl Block {
    /// Returns the text of a piece that belongs to this block, and what is to stand before it.
    fn sift(&mut self, piece: &Piece) -> Option<(&'static str, Text)> {
        let (source, text) = match piece {
            Piece::Text(text) | Piece::Reasoning(text) => (Source::Itself, text),
            Piece::Summary { index, text } => (Source::Summary(*index), text),
            Piece::Seal(_) | Piece::Annotation(_) => return None,
        };
        let joint = match (self.source, source) {
            (before, now) if before == now => "",
            (Source::Unknown, _) => "",
            (Source::Summary(_), Source::Summary(_)) => "\n\n",
            _ => return None,
        };
        self.source = source;
        (!text.is_empty()).then(|| (joint, text.clone()))
    }
}
