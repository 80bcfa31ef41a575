//! A streamed answer: events in, frames out.
//!
//! The protocol is strict (`message_start`, blocks one after the other, `message_delta`, `message_stop`), and
//! the servers that speak it are not: events without a name, blocks without an index, a start or a stop,
//! two stops, input or signatures in the start, `[DONE]`, or nothing at the end. None of it is an error; what
//! is not understood is passed on as it came.

use super::error::decode_event;
use super::kept::given;
use super::usage::{decode_stop, decode_usage};
use crate::json::{Document, Edit, Kind, Node, patch, quote};
use crate::order::Order;
use crate::sse::SseEvent;
use throughline_core::{BlockId, BlockKind, Ending, Frame, Piece, Seal, Stop, Text, settled_stop};

/// Turns the events of one answer into frames.
#[derive(Debug)]
pub(crate) struct StreamDecoder {
    state: State,
    /// The blocks that have begun and not ended, in the order in which they began.
    open: Vec<OpenBlock>,
    next_block: BlockId,
    /// The index of a block whose start names none.
    next_index: u64,
    order: Order,
    has_calls: bool,
}

/// How far the answer is.
#[derive(Debug)]
enum State {
    /// It has not begun; what came before it is held until it does.
    Waiting(Vec<Frame>),
    /// It is under way.
    Open,
    /// The model gave the reason why it stopped; only the end is missing.
    Stopped(Stop),
    /// It is over.
    Closed,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    content: BlockContent,
}

#[derive(Debug)]
enum BlockContent {
    Text(BlockId),
    Thought(BlockId),
    /// A call; the input that came with its start counts if nothing else comes.
    Call {
        block: BlockId,
        id: Text,
        input: Option<Text>,
    },
    /// A block that is passed on whole, when it ends.
    Opaque {
        kind: Text,
        text: Text,
        input: String,
        content: String,
    },
}

impl StreamDecoder {
    /// Returns a decoder that has seen nothing.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Waiting(Vec::new()),
            open: Vec::new(),
            next_block: 0,
            next_index: 0,
            order: Order::default(),
            has_calls: false,
        }
    }

    /// Returns how many blocks it keeps track of, and what it holds until the answer begins.
    pub(crate) const fn blocks(&self) -> usize {
        match &self.state {
            State::Waiting(early) => early.len(),
            State::Open | State::Stopped(_) | State::Closed => self.open.len(),
        }
    }

    /// Takes the next event.
    pub(crate) fn handle_event(&mut self, event: &SseEvent, frames: &mut Vec<Frame>) {
        if matches!(self.state, State::Closed) || event.data.trim() == "[DONE]" {
            return;
        }
        let document = Document::parse(event.data.as_str()).ok();
        let understood = document
            .as_ref()
            .is_some_and(|document| self.handle(event.name.as_deref(), document.root(), frames));
        if !understood {
            let alien = Frame::Alien { name: event.name.clone(), data: event.data.clone() };
            match &mut self.state {
                State::Waiting(early) => early.push(alien),
                _ => frames.push(alien),
            }
        }
    }

    /// Ends the stream, however far it came.
    pub(crate) fn finish(&mut self, frames: &mut Vec<Frame>) {
        match std::mem::replace(&mut self.state, State::Open) {
            State::Closed => self.state = State::Closed,
            State::Stopped(stop) => self.close(Ending::Stopped(stop), frames),
            waiting @ State::Waiting(_) => {
                self.state = waiting;
                self.close(Ending::Broken, frames);
            }
            State::Open => self.close(Ending::Broken, frames),
        }
    }

    /// Handles an event by its type, or by its name where the data has none; says whether it was understood.
    fn handle(&mut self, name: Option<&str>, data: Node<'_>, frames: &mut Vec<Frame>) -> bool {
        let kind = data.field("type").and_then(|kind| kind.as_str());
        let known = |kind: &&str| EVENTS.contains(kind);
        match kind.as_deref().filter(known).or(name.filter(known)) {
            Some("ping") => {}
            Some("message_start") => self.handle_start(data, frames),
            Some("content_block_start") => return self.handle_block_start(data, frames),
            Some("content_block_delta") => return self.handle_delta(data, frames),
            Some("content_block_stop") => self.handle_block_stop(data, frames),
            Some("message_delta") => self.handle_message_delta(data, frames),
            Some("message_stop") => self.handle_stop(frames),
            Some("error") => self.close(Ending::Failed(decode_event(data)), frames),
            // Proxies report errors in the shape of another provider.
            _ if kind.is_none() && given(data, "error").is_some() => {
                self.close(Ending::Failed(decode_event(data)), frames);
            }
            _ => return false,
        }
        true
    }

    /// Makes sure that the answer is open, if need be without id or model.
    fn open(&mut self, id: Option<Text>, model: Option<Text>, frames: &mut Vec<Frame>) {
        if let State::Waiting(early) = &mut self.state {
            frames.push(Frame::Opened { id, model });
            frames.append(early);
            self.state = State::Open;
        }
    }

    fn handle_start(&mut self, data: Node<'_>, frames: &mut Vec<Frame>) {
        let Some(message) = given(data, "message") else { return self.open(None, None, frames) };
        let text = |name| given(message, name).and_then(|value| value.as_text());
        self.open(text("id"), text("model"), frames);
        report_usage(message, frames);
        for (block, index) in message.field("content").into_iter().flat_map(Node::items).zip(0..) {
            self.begin(index, block, frames);
            self.end(index, frames);
        }
    }

    fn handle_block_start(&mut self, data: Node<'_>, frames: &mut Vec<Frame>) -> bool {
        let Some(block) = given(data, "content_block").filter(|block| block.kind() == Kind::Object) else {
            return false;
        };
        self.open(None, None, frames);
        let index = index_of(data).unwrap_or(self.next_index);
        self.begin(index, block, frames);
        true
    }

    /// Begins a block, with whatever its start already says.
    fn begin(&mut self, index: u64, block: Node<'_>, frames: &mut Vec<Frame>) {
        let text =
            |name| given(block, name).and_then(|value| value.as_text()).filter(|text| !text.is_empty());
        if self.is_announced(index, text("id").as_ref()) {
            return;
        }
        self.end_before(index, frames);
        self.next_index = index.saturating_add(1);
        let kind = text("type").unwrap_or_default();
        let content = match kind.as_str() {
            "text" => BlockContent::Text(self.begin_block(index, BlockKind::Text { item_id: None }, frames)),
            "thinking" | "redacted_thinking" => {
                BlockContent::Thought(self.begin_block(index, BlockKind::Thought { item_id: None }, frames))
            }
            "tool_use" => self.begin_call(index, block, frames),
            _ => {
                let (input, content) = (String::new(), String::new());
                BlockContent::Opaque { kind, text: block.raw_text(), input, content }
            }
        };
        let pieces = match &content {
            BlockContent::Text(_) => [text("text").map(Piece::Text), None, None],
            BlockContent::Thought(_) => [
                text("thinking").map(Piece::Reasoning),
                text("signature").map(|signature| Piece::Seal(Seal::Signature(signature))),
                text("data").map(|data| Piece::Seal(Seal::Redacted(data))),
            ],
            BlockContent::Call { .. } | BlockContent::Opaque { .. } => [None, None, None],
        };
        if let Some(block) = content.block() {
            frames.extend(pieces.into_iter().flatten().map(|piece| Frame::Grew { block, piece }));
        }
        self.open.push(OpenBlock { index, content });
    }

    /// Says whether this start repeats that of a call which is under way.
    fn is_announced(&self, index: u64, call: Option<&Text>) -> bool {
        self.open.iter().any(|open| {
            open.index == index
                && matches!(&open.content, BlockContent::Call { id, .. } if call.is_some_and(|call| call == id))
        })
    }

    /// Ends the blocks that must be over when block `index` begins, though nobody said so.
    ///
    /// Calls may stay open side by side; text and thoughts never do.
    fn end_before(&mut self, index: u64, frames: &mut Vec<Frame>) {
        let is_over =
            |open: &OpenBlock| open.index == index || !matches!(open.content, BlockContent::Call { .. });
        let over: Vec<u64> = self.open.iter().filter(|open| is_over(open)).map(|open| open.index).collect();
        over.into_iter().for_each(|index| self.end(index, frames));
    }

    fn begin_call(&mut self, index: u64, block: Node<'_>, frames: &mut Vec<Frame>) -> BlockContent {
        let text = |name| given(block, name).and_then(|value| value.as_text()).unwrap_or_default();
        let input = given(block, "input").filter(|input| !input.is_empty()).map(|input| input.raw_text());
        self.has_calls = true;
        let id = text("id");
        let kind = BlockKind::Call {
            id: id.clone(),
            item_id: None,
            name: text("name"),
            namespace: None,
            freeform: false,
        };
        BlockContent::Call { block: self.begin_block(index, kind, frames), id, input }
    }

    fn begin_block(&mut self, index: u64, kind: BlockKind, frames: &mut Vec<Frame>) -> BlockId {
        let block = self.next_block;
        self.next_block += 1;
        self.order.note(Some(index), block);
        frames.push(Frame::Begun { block, kind });
        block
    }

    fn handle_delta(&mut self, data: Node<'_>, frames: &mut Vec<Frame>) -> bool {
        let Some(delta) = given(data, "delta") else { return false };
        let Some(kind) = delta.field("type").and_then(|kind| kind.as_str()) else { return false };
        let text = |name| given(delta, name).and_then(|value| value.as_text()).unwrap_or_default();
        let piece = match &*kind {
            "text_delta" => Piece::Text(text("text")),
            "thinking_delta" => Piece::Reasoning(text("thinking")),
            "signature_delta" => Piece::Seal(Seal::Signature(text("signature"))),
            "citations_delta" => match given(delta, "citation") {
                Some(citation) => Piece::Annotation(citation.raw_text()),
                None => return false,
            },
            "input_json_delta" => return self.grow_input(index_of(data), &text("partial_json"), frames),
            "compaction_delta" => return self.grow_opaque(index_of(data), &text("content")),
            _ => return false,
        };
        self.open(None, None, frames);
        self.grow(index_of(data), piece, frames)
    }

    /// Adds a piece to its block, which is begun if the server forgot to; says whether there is one for it.
    fn grow(&mut self, index: Option<u64>, piece: Piece, frames: &mut Vec<Frame>) -> bool {
        let thinks = matches!(piece, Piece::Reasoning(_) | Piece::Seal(_));
        if self.find(index).is_none() && !matches!(piece, Piece::Annotation(_)) {
            let index = index.unwrap_or(self.next_index);
            self.end_before(index, frames);
            let content = if thinks {
                BlockContent::Thought(self.begin_block(index, BlockKind::Thought { item_id: None }, frames))
            } else {
                BlockContent::Text(self.begin_block(index, BlockKind::Text { item_id: None }, frames))
            };
            self.next_index = index.saturating_add(1);
            self.open.push(OpenBlock { index, content });
        }
        let block = match self.find(index).map(|open| &open.content) {
            Some(BlockContent::Text(block)) if !thinks => *block,
            Some(BlockContent::Thought(block)) if thinks => *block,
            _ => return false,
        };
        if !is_empty(&piece) {
            frames.push(Frame::Grew { block, piece });
        }
        true
    }

    fn grow_input(&mut self, index: Option<u64>, json: &str, frames: &mut Vec<Frame>) -> bool {
        match self.find(index).map(|open| &mut open.content) {
            // The first delta is empty more often than not, and says nothing.
            Some(BlockContent::Call { .. } | BlockContent::Opaque { .. }) if json.is_empty() => {}
            Some(BlockContent::Call { block, input, .. }) => {
                *input = None;
                frames.push(Frame::Grew { block: *block, piece: Piece::Text(Text::from(json)) });
            }
            Some(BlockContent::Opaque { input, .. }) => input.push_str(json),
            _ => return false,
        }
        true
    }

    fn grow_opaque(&mut self, index: Option<u64>, text: &str) -> bool {
        match self.find(index).map(|open| &mut open.content) {
            Some(BlockContent::Opaque { content, .. }) => {
                content.push_str(text);
                true
            }
            _ => false,
        }
    }

    /// Returns the open block of that index; the latest one, if none is named.
    fn find(&mut self, index: Option<u64>) -> Option<&mut OpenBlock> {
        match index {
            Some(index) => self.open.iter_mut().rev().find(|open| open.index == index),
            None => self.open.last_mut(),
        }
    }

    fn handle_block_stop(&mut self, data: Node<'_>, frames: &mut Vec<Frame>) {
        let index = index_of(data).or_else(|| self.open.last().map(|open| open.index));
        if let Some(index) = index {
            self.end(index, frames);
        }
    }

    /// Ends the open block of that index, if there is one.
    fn end(&mut self, index: u64, frames: &mut Vec<Frame>) {
        let Some(at) = self.open.iter().position(|open| open.index == index) else { return };
        match self.open.remove(at).content {
            BlockContent::Text(block) | BlockContent::Thought(block) => frames.push(Frame::Ended { block }),
            BlockContent::Call { block, input, .. } => {
                frames.extend(input.map(|input| Frame::Grew { block, piece: Piece::Text(input) }));
                frames.push(Frame::Ended { block });
            }
            BlockContent::Opaque { kind, text, input, content } => {
                let text = completed(text, &input, &content);
                let block = self.begin_block(index, BlockKind::Opaque { kind, text }, frames);
                frames.push(Frame::Ended { block });
            }
        }
    }

    fn handle_message_delta(&mut self, data: Node<'_>, frames: &mut Vec<Frame>) {
        self.open(None, None, frames);
        report_usage(data, frames);
        if let Some(stop) = given(data, "delta").and_then(decode_stop) {
            self.state = State::Stopped(stop);
        }
    }

    fn handle_stop(&mut self, frames: &mut Vec<Frame>) {
        let stop = match &self.state {
            State::Stopped(stop) => stop.clone(),
            _ => Stop::EndTurn,
        };
        self.close(Ending::Stopped(stop), frames);
    }

    fn close(&mut self, ending: Ending, frames: &mut Vec<Frame>) {
        self.open(None, None, frames);
        while let Some(first) = self.open.first() {
            let index = first.index;
            self.end(index, frames);
        }
        let ending = match ending {
            Ending::Stopped(stop) => Ending::Stopped(settled_stop(stop, self.has_calls)),
            ending => ending,
        };
        frames.extend(self.order.frame());
        frames.push(Frame::Closed(ending));
        self.state = State::Closed;
    }
}

const EVENTS: [&str; 8] = [
    "ping",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

impl BlockContent {
    /// Returns the block that frames were already sent for.
    const fn block(&self) -> Option<BlockId> {
        match self {
            Self::Text(block) | Self::Thought(block) | Self::Call { block, .. } => Some(*block),
            Self::Opaque { .. } => None,
        }
    }
}

fn index_of(data: Node<'_>) -> Option<u64> {
    data.field("index").and_then(|index| index.as_u64())
}

fn report_usage(object: Node<'_>, frames: &mut Vec<Frame>) {
    frames.extend(given(object, "usage").map(|usage| Frame::Used(decode_usage(usage))));
}

fn is_empty(piece: &Piece) -> bool {
    match piece {
        Piece::Text(text) | Piece::Reasoning(text) | Piece::Seal(Seal::Signature(text)) => text.is_empty(),
        _ => false,
    }
}

/// Puts what came in deltas into the block that came with the start.
fn completed(text: Text, input: &str, content: &str) -> Text {
    let patched = if Document::parse(input).is_ok() {
        patch(&text, &[Edit::Set { name: "input", value: input }])
    } else if !content.is_empty() {
        patch(&text, &[Edit::Set { name: "content", value: &quote(content) }])
    } else {
        return text;
    };
    patched.map_or(text, Text::from)
}

#[cfg(test)]
mod tests;
