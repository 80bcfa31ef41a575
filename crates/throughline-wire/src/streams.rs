//! Streamed answers of any dialect: bytes to frames, frames to events.

use crate::sse::{SseDecoder, SseError, SseEvent};
use crate::{Outgoing, ReasoningEvents, Stamp, chat, messages, responses};
use throughline_core::{Ask, Dialect, Frame};

/// The most bytes that one event of a backend's stream may have.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// Reads a streamed answer: bytes in any pieces to frames.
pub struct StreamDecoder {
    sse: SseDecoder,
    machine: DecodingMachine,
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
        Self { sse: SseDecoder::new(MAX_EVENT_BYTES), machine }
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
        match &mut self.machine {
            DecodingMachine::Chat(machine) => machine.handle_event(event, frames),
            DecodingMachine::Messages(machine) => machine.handle_event(event, frames),
            DecodingMachine::Responses(machine) => machine.handle_event(event, frames),
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
