//! Any legal sequence of frames, written in every dialect: blocks side by side, any order of ending.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use throughline_core::{
    BlockId, BlockKind, Dialect, Ending, Failure, FailureKind, Frame, Piece, Seal, Stop, Usage,
};
use throughline_fuzz::streams;

#[derive(Arbitrary, Debug)]
enum Step {
    Begin(Kind),
    /// Lets the open block at that position grow.
    Grow(u8, Growth),
    End(u8),
    Use(u16, u16),
    Alien,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Text,
    Refusal,
    Thought,
    Call,
    Opaque,
}

#[derive(Arbitrary, Debug)]
enum Growth {
    Text(String),
    Summary(u8, String),
    Signature(String),
    Redacted(String),
    Encrypted(String),
    Annotation,
}

#[derive(Arbitrary, Debug)]
enum Last {
    Stopped(u8),
    Failed(String),
    Broken,
    Cancelled,
}

fuzz_target!(|script: (Vec<Step>, Last)| {
    let (steps, last) = script;
    let mut stage =
        Stage { frames: vec![Frame::Opened { id: None, model: None }], open: Vec::new(), begun: 0 };
    steps.into_iter().for_each(|step| stage.perform(step));
    let frames = stage.closed(last);
    streams::check_frames(&frames);
    for dialect in Dialect::ALL {
        let reply = streams::check_written(dialect, &frames);
        streams::check_kept(dialect, &frames, &reply);
    }
});

struct Stage {
    frames: Vec<Frame>,
    open: Vec<(BlockId, Kind)>,
    begun: BlockId,
}

impl Stage {
    fn perform(&mut self, step: Step) {
        match step {
            Step::Begin(kind) => {
                self.frames.push(Frame::Begun { block: self.begun, kind: kind.block(self.begun) });
                self.open.push((self.begun, kind));
                self.begun += 1;
            }
            Step::Grow(at, growth) => {
                let Some((block, kind)) = self.pick(at) else { return };
                let piece = growth.piece(kind);
                self.frames.extend(piece.map(|piece| Frame::Grew { block, piece }));
            }
            Step::End(at) => {
                let Some((block, _)) = self.pick(at) else { return };
                self.open.retain(|(open, _)| *open != block);
                self.frames.push(Frame::Ended { block });
            }
            Step::Use(input, output) => {
                let usage = Usage { input: input.into(), output: output.into(), ..Usage::default() };
                self.frames.push(Frame::Used(usage));
            }
            Step::Alien => self.frames.push(Frame::Alien { name: None, data: "?".into() }),
        }
    }

    fn pick(&self, at: u8) -> Option<(BlockId, Kind)> {
        self.open.get(usize::from(at) % self.open.len().max(1)).copied()
    }

    fn closed(mut self, last: Last) -> Vec<Frame> {
        let rest: Vec<_> = self.open.iter().map(|(block, _)| Frame::Ended { block: *block }).collect();
        self.frames.extend(rest);
        self.frames.push(Frame::Closed(last.ending()));
        self.frames
    }
}

impl Kind {
    fn block(self, number: BlockId) -> BlockKind {
        match self {
            Self::Text => BlockKind::Text { item_id: None },
            Self::Refusal => BlockKind::Refusal { item_id: None },
            Self::Thought => BlockKind::Thought { item_id: None },
            Self::Call => BlockKind::Call {
                id: format!("call_{number}").into(),
                item_id: None,
                name: "read".into(),
                namespace: None,
                freeform: false,
            },
            Self::Opaque => BlockKind::Opaque { kind: "odd".into(), text: r#"{"type":"odd"}"#.into() },
        }
    }
}

impl Growth {
    /// Returns a piece that such a block may grow by.
    fn piece(self, kind: Kind) -> Option<Piece> {
        Some(match (kind, self) {
            (Kind::Text | Kind::Refusal | Kind::Call, Self::Text(text)) => Piece::Text(text.into()),
            (Kind::Text, Self::Annotation) => Piece::Annotation(r#"{"type":"url_citation"}"#.into()),
            (Kind::Thought, Self::Text(text)) => Piece::Reasoning(text.into()),
            (Kind::Thought, Self::Summary(index, text)) => {
                Piece::Summary { index: u32::from(index % 3), text: text.into() }
            }
            (Kind::Thought, Self::Signature(seal)) => Piece::Seal(Seal::Signature(seal.into())),
            (Kind::Thought, Self::Redacted(seal)) => Piece::Seal(Seal::Redacted(seal.into())),
            (Kind::Thought, Self::Encrypted(seal)) => Piece::Seal(Seal::Encrypted(seal.into())),
            _ => return None,
        })
    }
}

impl Last {
    fn ending(self) -> Ending {
        match self {
            Self::Stopped(at) => {
                let stops = [Stop::EndTurn, Stop::ToolCalls, Stop::MaxTokens, Stop::Refusal, Stop::Paused];
                Ending::Stopped(stops[usize::from(at) % stops.len()].clone())
            }
            Self::Failed(message) => Ending::Failed(Failure::new(FailureKind::Overloaded, message)),
            Self::Broken => Ending::Broken,
            Self::Cancelled => Ending::Cancelled,
        }
    }
}
