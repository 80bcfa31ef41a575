//! Calls that the client does not see, taken out of the frames of an answer.

use std::collections::BTreeMap;
use throughline_core::{BlockId, BlockKind, Ending, Frame, Piece, Stop, Text, Usage};

/// What the client is told if the model does nothing but recall to the last.
pub const NO_ANSWER: &str = "I have no answer: I went on looking up earlier tool results until no more could be looked up. \
    Ask me to go on with what I have.";

/// Hides calls of one tool in the frames of an answer, and joins several answers into one.
#[derive(Debug, Default)]
pub struct HiddenCallFilter {
    tool: Option<Text>,
    /// The blocks of the answer under way, as the client knows them; nothing for those that it does not see.
    blocks: BTreeMap<BlockId, Option<BlockId>>,
    next: BlockId,
    /// The first block of the answer under way that the client would see.
    first: BlockId,
    is_open: bool,
    hidden: bool,
    /// Whether the answer under way calls tools of the client.
    calls: bool,
    is_last: bool,
    holds: bool,
    before: Usage,
    now: Usage,
}

impl HiddenCallFilter {
    /// Returns a filter for calls of that tool, if one was offered; behind the last answer nothing is asked again.
    #[must_use]
    pub fn new(tool: Option<Text>, is_last: bool) -> Self {
        Self { tool, is_last, ..Self::default() }
    }

    /// Says whether the answer is over and its end was kept from the client.
    pub const fn holds(&self) -> bool {
        self.holds
    }

    /// Begins with a further answer; behind the last one no other will come.
    pub fn resume(&mut self, is_last: bool) {
        self.blocks.clear();
        self.before = sum(self.before, self.now);
        self.now = Usage::default();
        (self.hidden, self.calls, self.holds) = (false, false, false);
        (self.is_last, self.first) = (is_last, self.next);
    }

    /// Begins anew with a further answer of which nothing has come.
    pub fn begin_again(&mut self, is_last: bool) {
        self.now = Usage::default();
        self.resume(is_last);
    }

    /// Returns the frame as the client sees it, if it does.
    pub fn handle_frame(&mut self, frame: &Frame) -> Option<Frame> {
        match frame {
            Frame::Opened { .. } => (!std::mem::replace(&mut self.is_open, true)).then(|| frame.clone()),
            Frame::Begun { block, kind } => {
                let shown = self.begun(kind);
                self.blocks.insert(*block, shown);
                shown.map(|block| Frame::Begun { block, kind: kind.clone() })
            }
            Frame::Grew { block, piece } => {
                let block = self.shown(*block)?;
                Some(Frame::Grew { block, piece: piece.clone() })
            }
            Frame::Ended { block } => self.shown(*block).map(|block| Frame::Ended { block }),
            Frame::Used(usage) => {
                self.now = self.now.updated(*usage);
                Some(Frame::Used(sum(self.before, self.now)))
            }
            Frame::Ordered(order) => {
                Some(Frame::Ordered(order.iter().filter_map(|block| self.shown(*block)).collect()))
            }
            Frame::Closed(ending) => self.closed(ending).map(Frame::Closed),
            Frame::Alien { .. } => Some(frame.clone()),
        }
    }

    /// Returns what the client is told before the end if the last answer holds nothing that it sees.
    pub fn last_words(&mut self, frame: &Frame) -> Vec<Frame> {
        let is_over = matches!(frame, Frame::Closed(Ending::Stopped(Stop::EndTurn | Stop::ToolCalls)));
        if !is_over || !self.is_last || !self.hidden || self.next > self.first {
            return Vec::new();
        }
        let block = self.next;
        self.next += 1;
        vec![
            Frame::Begun { block, kind: BlockKind::Text { item_id: None } },
            Frame::Grew { block, piece: Piece::Text(Text::from_static(NO_ANSWER)) },
            Frame::Ended { block },
        ]
    }

    fn begun(&mut self, kind: &BlockKind) -> Option<BlockId> {
        if let BlockKind::Call { name, namespace, .. } = kind {
            if self.tool.as_ref() == Some(name) && namespace.is_none() {
                self.hidden = true;
                return None;
            }
            self.calls = true;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    fn shown(&self, block: BlockId) -> Option<BlockId> {
        self.blocks.get(&block).copied().flatten()
    }

    fn closed(&mut self, ending: &Ending) -> Option<Ending> {
        if !self.hidden || self.calls || !matches!(ending, Ending::Stopped(Stop::EndTurn | Stop::ToolCalls)) {
            return Some(ending.clone());
        }
        self.holds = !self.is_last;
        self.is_last.then_some(Ending::Stopped(Stop::EndTurn))
    }
}

/// Returns what two answers of one turn took: both wrote, and the prompt of the second holds that of the first.
#[must_use]
pub const fn sum(before: Usage, now: Usage) -> Usage {
    let Usage { output, reasoning, .. } = before.plus(now);
    Usage { output, reasoning, ..now }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "recall";

    #[test]
    fn two_answers_are_one_without_the_call_between_them() {
        let begun = |block, name: &str| {
            let (id, name) = (Text::from("c"), Text::from(name));
            let kind = BlockKind::Call { id, item_id: None, name, namespace: None, freeform: false };
            Frame::Begun { block, kind }
        };
        let text = |block| Frame::Begun { block, kind: BlockKind::Text { item_id: None } };
        let grew = |block| Frame::Grew { block, piece: Piece::Text("x".into()) };
        let opened = Frame::Opened { id: None, model: None };
        let stop = Frame::Closed(Ending::Stopped(Stop::ToolCalls));
        let used = |input, output| Frame::Used(Usage { input, output, ..Usage::default() });
        let mut hidden_calls = HiddenCallFilter::new(Some(NAME.into()), false);
        let first = [opened.clone(), text(0), grew(0), begun(1, NAME), grew(1), used(10, 5), stop.clone()];
        let mut seen: Vec<Frame> =
            first.iter().filter_map(|frame| hidden_calls.handle_frame(frame)).collect();
        assert!(hidden_calls.holds());
        hidden_calls.resume(false);
        let second = [opened.clone(), begun(0, "read"), grew(0), used(20, 7), stop.clone()];
        seen.extend(second.iter().filter_map(|frame| hidden_calls.handle_frame(frame)));
        assert!(!hidden_calls.holds());
        let expected = [opened, text(0), grew(0), used(10, 5), begun(1, "read"), grew(1), used(20, 12), stop];
        assert_eq!(seen, expected);
    }
}
