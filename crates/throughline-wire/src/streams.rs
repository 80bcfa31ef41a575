//! Streamed answers of any dialect: bytes to frames, frames to events.

use crate::json::{Document, Node};
use crate::sse::{SseDecoder, SseError, SseEvent};
use crate::{Outgoing, ReasoningEvents, Stamp, chat, messages, responses};
use throughline_core::{Ask, Dialect, Frame};

/// The most bytes that one event of a backend's stream may have.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// The most blocks, calls and items that one answer may have. A model makes a few dozen.
pub const MAX_BLOCKS: usize = 4096;

/// An event below this size is too small for the number of its parts to matter.
const LARGE_EVENT_BYTES: usize = 16 << 10;

/// Reads a streamed answer: bytes in any pieces to frames.
pub struct StreamDecoder {
    sse: SseDecoder,
    machine: DecodingMachine,
    has_too_many_blocks: bool,
    unframed_bytes: usize,
}

enum DecodingMachine {
    Chat(chat::StreamDecoder),
    Messages(messages::StreamDecoder),
    Responses(responses::StreamDecoder),
}

impl StreamDecoder {
    /// Returns a decoder that has seen nothing.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        let machine = match dialect {
            Dialect::Chat => DecodingMachine::Chat(chat::StreamDecoder::new()),
            Dialect::Messages => DecodingMachine::Messages(messages::StreamDecoder::new()),
            Dialect::Responses => DecodingMachine::Responses(responses::StreamDecoder::new()),
        };
        let sse = SseDecoder::new(MAX_EVENT_BYTES);
        Self { sse, machine, has_too_many_blocks: false, unframed_bytes: 0 }
    }

    /// Says whether the answer has more than [`MAX_BLOCKS`] blocks. What an event says that brings too many is not read.
    #[must_use]
    pub const fn has_too_many_blocks(&self) -> bool {
        self.has_too_many_blocks
    }

    /// Returns how many bytes of events have come that led to no frame: they say nothing, or are held until more comes.
    #[must_use]
    pub const fn unframed_bytes(&self) -> usize {
        self.unframed_bytes
    }

    /// Takes the next bytes and appends the frames that they complete.
    ///
    /// # Errors
    /// When a single event exceeds [`MAX_EVENT_BYTES`].
    pub fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), SseError> {
        let fed = self.sse.feed(bytes);
        while let Some(event) = self.sse.next_event() {
            self.handle_event(&event, frames);
        }
        fed
    }

    /// Takes an event that arrived by other means than a byte stream.
    pub fn handle_event(&mut self, event: &SseEvent, frames: &mut Vec<Frame>) {
        if event.data.len() > LARGE_EVENT_BYTES && has_too_many_parts(&event.data) {
            self.has_too_many_blocks = true;
            return;
        }
        let before = frames.len();
        let blocks = match &mut self.machine {
            DecodingMachine::Chat(machine) => {
                machine.handle_event(event, frames);
                machine.calls()
            }
            DecodingMachine::Messages(machine) => {
                machine.handle_event(event, frames);
                machine.blocks()
            }
            DecodingMachine::Responses(machine) => {
                machine.handle_event(event, frames);
                machine.items()
            }
        };
        self.has_too_many_blocks |= blocks > MAX_BLOCKS;
        if frames.len() == before {
            self.unframed_bytes = self.unframed_bytes.saturating_add(event.data.len());
        }
    }

    /// Ends the stream: appends what was pending, and how the answer ended.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) {
        while let Some(event) = self.sse.finish() {
            self.handle_event(&event, frames);
        }
        match &mut self.machine {
            DecodingMachine::Chat(machine) => machine.finish(frames),
            DecodingMachine::Messages(machine) => machine.finish(frames),
            DecodingMachine::Responses(machine) => machine.finish(frames),
        }
    }
}

fn has_too_many_parts(data: &str) -> bool {
    Document::parse(data).is_ok_and(|document| is_excessive(document.root()))
}

/// Says whether an answer, or an event of one, lists more than [`MAX_BLOCKS`] of what becomes a block, a call, an item
/// or a part of one, wherever its dialect has them.
pub(crate) fn is_excessive(answer: Node<'_>) -> bool {
    /// What holds the lists of each dialect.
    const HOLDERS: [&str; 6] = ["response", "message", "delta", "item", "part", "content_block"];
    const LISTS: [&str; 5] = ["output", "content", "tool_calls", "choices", "summary"];
    let held = HOLDERS.iter().filter_map(|name| answer.field(name));
    let of_choices = answer.field("choices").into_iter().flat_map(Node::items).take(MAX_BLOCKS);
    let of_choices = of_choices.flat_map(|choice| HOLDERS.iter().filter_map(move |name| choice.field(name)));
    let holders = std::iter::once(answer).chain(held).chain(of_choices);
    let lists = holders.flat_map(|holder| LISTS.iter().filter_map(move |name| holder.field(name)));
    let mut left = MAX_BLOCKS;
    for item in lists.flat_map(Node::items) {
        let parts: usize =
            LISTS.iter().filter_map(|name| item.field(name)).map(|list| list.items().count()).sum();
        match left.checked_sub(1 + parts) {
            Some(rest) => left = rest,
            None => return true,
        }
    }
    false
}

/// Writes a streamed answer: frames to events.
pub struct StreamEncoder(EncodingMachine);

enum EncodingMachine {
    Chat(chat::StreamEncoder),
    Messages(messages::StreamEncoder),
    Responses(responses::StreamEncoder),
}

impl StreamEncoder {
    /// Returns an encoder for the answer to `ask`.
    #[must_use]
    pub fn new(dialect: Dialect, stamp: Stamp, ask: &Ask) -> Self {
        Self(match dialect {
            Dialect::Chat => EncodingMachine::Chat(chat::StreamEncoder::new(stamp, ask)),
            Dialect::Messages => EncodingMachine::Messages(messages::StreamEncoder::new(stamp, ask)),
            Dialect::Responses => EncodingMachine::Responses(responses::StreamEncoder::new(stamp, ask)),
        })
    }

    /// Chooses the names of the events that carry raw reasoning, where a dialect has two.
    pub fn set_reasoning_events(&mut self, names: ReasoningEvents) {
        if let EncodingMachine::Responses(machine) = &mut self.0 {
            machine.set_reasoning_events(names);
        }
    }

    /// Notes that the frames from now on are those of a further answer, which the client has as one with those before:
    /// where a message has one text, an empty line stands between the two.
    pub fn set_apart(&mut self) {
        if let EncodingMachine::Chat(machine) = &mut self.0 {
            machine.set_apart();
        }
    }

    /// Takes the next frame and appends the events that it causes.
    pub fn handle_frame(&mut self, frame: &Frame, out: &mut Vec<Outgoing>) {
        match &mut self.0 {
            EncodingMachine::Chat(machine) => machine.handle_frame(frame, out),
            EncodingMachine::Messages(machine) => machine.handle_frame(frame, out),
            EncodingMachine::Responses(machine) => machine.handle_frame(frame, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_much(dialect: Dialect, data: &str) -> bool {
        let mut decoder = StreamDecoder::new(dialect);
        let (data, mut frames) = (data.into(), Vec::new());
        decoder.handle_event(&SseEvent { name: None, data }, &mut frames);
        decoder.has_too_many_blocks()
    }

    #[test]
    fn no_event_brings_more_blocks_than_an_answer_may_have() {
        let list = |count: usize, item: &str| vec![item; count].join(",");
        let filling = r#"{"type":"x","x":1234}"#;
        for (dialect, open, close) in [
            (Dialect::Chat, r#"{"choices":[{"index":0,"delta":{"tool_calls":["#, "]}}]}"),
            (Dialect::Messages, r#"{"type":"message_start","message":{"content":["#, "]}}"),
            (Dialect::Responses, r#"{"type":"response.completed","response":{"output":["#, "]}}"),
            (
                Dialect::Responses,
                r#"{"type":"response.output_item.done","item":{"type":"message","content":["#,
                "]}}",
            ),
        ] {
            let event = |count| format!("{open}{}{close}", list(count, filling));
            assert!(!is_too_much(dialect, &event(2000)), "{dialect}");
            assert!(is_too_much(dialect, &event(MAX_BLOCKS + 1)), "{dialect}");
        }
    }

    #[test]
    fn calls_that_are_held_are_counted() {
        let mut decoder = StreamDecoder::new(Dialect::Chat);
        let mut frames = Vec::new();
        for index in 0..=MAX_BLOCKS {
            let data = format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"function":{{"arguments":"{{"}}}}]}}}}]}}"#
            );
            decoder.handle_event(&SseEvent { name: None, data: data.into() }, &mut frames);
        }
        assert!(decoder.has_too_many_blocks());
        assert!(decoder.unframed_bytes() > MAX_BLOCKS * 50);
    }
}
