//! Turns what a backend streams into what the client is sent.
//!
//! Where both speak one dialect and nothing was renamed, events are forwarded as they came, unknown ones
//! too, but for the model's name. Otherwise they go through the frames. Either way every event is kept for
//! the record, the reply is assembled, and whatever ends the answer is held back: the history must be
//! durable before the client is told that the turn is over.

use super::editing::with_applied_edits;
use super::failures::{broken_off, stalled, too_large};
use super::hidden_calls::HiddenCallFilter;
use super::permit::Permit;
use crate::echo::{EchoFilter, EchoStream};
use crate::egress::bounds::{EVENTS_BEFORE_MAX, EVENTS_MAX};
use crate::egress::{AnswerBounds, EgressError};
use throughline_core::{Assembler, BlockKind, Dialect, Ending, Failure, Frame, Piece, Reply, Seal, Text};
use throughline_store::{Moment, ProviderEvent};
use throughline_wire::sse::{SseDecoder, SseError, SseEvent, write_event};
use throughline_wire::{
    ClientNames, MAX_BLOCKS, Outgoing, ReasoningEvents, Restorer, StreamDecoder, StreamEncoder, encode_error,
    error_event, event_number, interrupted_response, response_event, response_in_event,
};

/// One streamed answer, as it goes through the gateway.
pub struct AnswerStream {
    sse: SseDecoder,
    /// Takes our own secrets out of the events.
    echoes: EchoStream,
    bounds: AnswerBounds,
    size: AnswerSize,
    decoder: StreamDecoder,
    restorer: Restorer,
    assembler: Assembler,
    output: StreamOutput,
    hidden_calls: HiddenCallFilter,
    permit: Permit,
    /// Whether the answer was ended because it calls what it may not.
    refused: bool,
    /// Whether the answer was ended because of how it came: too large, or getting nowhere.
    aborted: bool,
    /// What ends the answer, held back until the history has it.
    closing: String,
    /// The whole answer as a forwarded stream gives it at its end.
    whole: Option<Text>,
    ending: Option<Ending>,
    begun: bool,
    /// The backend's id of the answer.
    id: Option<Text>,
    /// The first and the last event that was forwarded, to go by if the stream breaks off.
    forwarded: Option<(Text, Text)>,
    /// The events of items that were forwarded whole, likewise.
    done: Vec<Text>,
    events: Vec<ProviderEvent>,
    /// Whether nothing of the answer under way has come, which is the rest of one before: it may still be
    /// asked for again.
    tentative: bool,
    /// What the client is told at the end about what it asked to have done with its history.
    applied: Option<Text>,
}

/// How much of an answer has come.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerSize {
    /// How many events.
    events: usize,
    /// How many of them said something that is part of the answer.
    meaningful: usize,
    /// How many blocks have begun.
    blocks: usize,
    /// How many bytes the answer has that is put together from them.
    bytes: usize,
    /// How many bytes the items have that were forwarded whole.
    done_bytes: usize,
}

/// How events reach the client.
pub enum StreamOutput {
    /// As they came, but for what the client knows by another name or the backend does not know.
    Forward {
        /// The dialect of both sides.
        dialect: Dialect,
        /// What the client knows otherwise.
        names: ClientNames,
    },
    /// Written anew.
    Translate(Box<StreamEncoder>),
    /// Not at all: it is the gateway itself, which is handed the frames.
    Keep(Vec<Frame>),
}

impl StreamOutput {
    /// Has the client see the answer under an id of ours, where it is forwarded.
    pub fn rename_response(&mut self, id: Text) {
        if let Self::Forward { names, .. } = self {
            names.id = Some(id);
        }
    }

    /// Chooses what the events of raw reasoning are called, where they are written anew.
    pub fn name_reasoning(&mut self, names: ReasoningEvents) {
        if let Self::Translate(encoder) = self {
            encoder.set_reasoning_events(names);
        }
    }
}

impl AnswerStream {
    /// Begins to read the answer of a backend that speaks `dialect`.
    #[must_use]
    pub fn new(
        dialect: Dialect,
        restorer: Restorer,
        output: StreamOutput,
        permit: Permit,
        hidden_calls: HiddenCallFilter,
    ) -> Self {
        Self {
            sse: SseDecoder::new(AnswerBounds::NONE.bytes),
            echoes: EchoStream::default(),
            bounds: AnswerBounds::NONE,
            size: AnswerSize::default(),
            decoder: StreamDecoder::new(dialect),
            restorer,
            assembler: Assembler::new(dialect),
            output,
            hidden_calls,
            permit,
            refused: false,
            aborted: false,
            closing: String::new(),
            whole: None,
            ending: None,
            begun: false,
            id: None,
            forwarded: None,
            done: Vec::new(),
            events: Vec::new(),
            tentative: false,
            applied: None,
        }
    }

    /// Says how much is taken of the answer that comes next, and what is taken out of it.
    pub fn bound(&mut self, bounds: AnswerBounds, echoes: &EchoFilter) {
        self.bounds = bounds;
        self.sse = SseDecoder::new(bounds.bytes);
        self.echoes = EchoStream::new(echoes.clone());
    }

    /// Has the client told at the end what was done with its history as it asked.
    pub fn tell_edits(&mut self, applied: Option<Text>) {
        self.applied = applied;
    }

    /// Takes the next bytes and appends to `out` what the client may be sent now.
    ///
    /// # Errors
    /// When one event is larger than any real one.
    pub fn feed(&mut self, bytes: &[u8], now: Moment, out: &mut String) -> Result<(), SseError> {
        let fed = self.sse.feed(bytes);
        while let Some(event) = self.sse.next_event() {
            self.echoes.push(event);
            while let Some(event) = self.echoes.pop() {
                self.handle_event(event, now, out);
            }
        }
        fed
    }

    /// Returns how many events have come that said something, so that it can be told whether the answer gets anywhere.
    #[must_use]
    pub const fn progress(&self) -> usize {
        self.size.meaningful
    }

    /// Says whether the answer was ended because of how it came.
    #[must_use]
    pub const fn was_aborted(&self) -> bool {
        self.aborted
    }

    /// Ends an answer of which no more is taken, in the way of the client's dialect.
    pub fn abort(&mut self, failure: Failure, now: Moment, out: &mut String) {
        while let Some(event) = self.echoes.finish() {
            self.handle_event(event, now, out);
        }
        self.stop(failure, out);
    }

    fn stop(&mut self, failure: Failure, out: &mut String) {
        if self.ending.is_some() {
            return;
        }
        self.aborted = true;
        if let StreamOutput::Forward { dialect, .. } = &self.output {
            self.break_off(*dialect, &failure);
        }
        self.handle_frames(vec![Frame::Closed(Ending::Failed(failure))], out);
    }

    /// Ends the stream and appends to `out` what came of that; the closing is still held back.
    pub fn finish(&mut self, now: Moment, out: &mut String) {
        while let Some(event) = self.sse.finish() {
            self.echoes.push(event);
        }
        while let Some(event) = self.echoes.finish() {
            self.handle_event(event, now, out);
        }
        if self.aborted {
            return;
        }
        let mut frames = Vec::new();
        self.decoder.finish(&mut frames);
        let broke = frames.iter().any(|frame| matches!(frame, Frame::Closed(ending) if !is_stop(ending)));
        self.handle_frames(frames, out);
        if broke && let StreamOutput::Forward { dialect, .. } = &self.output {
            self.break_off(*dialect, &broken_off());
        }
    }

    /// Says whether the answer is over and the turn is not: all it wants is to recall something.
    #[must_use]
    pub const fn awaits_recall(&self) -> bool {
        self.hidden_calls.holds()
    }

    /// Goes on with a further answer of a backend that speaks `dialect`, for the client in the same stream;
    /// returns the reply so far.
    pub fn take_reply(&mut self, dialect: Dialect) -> Reply {
        std::mem::replace(&mut self.assembler, Assembler::new(dialect)).finish()
    }

    /// Begins to read a further answer, which the client sees as the rest of the one before.
    pub fn resume(&mut self, dialect: Dialect, restorer: Restorer, is_last: bool) {
        self.size = AnswerSize::default();
        self.decoder = StreamDecoder::new(dialect);
        self.restorer = restorer;
        self.assembler = Assembler::new(dialect);
        self.ending = None;
        self.begun = false;
        if let StreamOutput::Translate(encoder) = &mut self.output {
            encoder.set_apart();
        }
        if std::mem::replace(&mut self.tentative, true) {
            self.events.clear();
            self.hidden_calls.begin_again(is_last);
        } else {
            self.hidden_calls.resume(is_last);
        }
    }

    /// Ends an answer that is written anew, because its rest does not come.
    pub fn fail(&mut self, failure: Failure) {
        self.tentative = false;
        self.hidden_calls.resume(true);
        self.handle_frames(vec![Frame::Closed(Ending::Failed(failure))], &mut String::new());
    }

    /// Says whether the answer was ended because it calls what it may not.
    #[must_use]
    pub const fn was_refused(&self) -> bool {
        self.refused
    }

    /// Ends an answer that is written anew, because somebody called it off.
    pub fn call_off(&mut self, out: &mut String) {
        self.handle_frames(vec![Frame::Closed(Ending::Cancelled)], out);
    }

    /// Tells the client that a forwarded stream is over before its end, in the way of the dialect.
    fn break_off(&mut self, dialect: Dialect, failure: &Failure) {
        let Some((response, number)) = self.interrupted(dialect, failure) else {
            let body = match dialect {
                Dialect::Responses => error_event(failure, self.size.events as u64),
                Dialect::Chat | Dialect::Messages => encode_error(dialect, failure),
            };
            return write_event(&mut self.closing, error_event_name(dialect), &body);
        };

        let event = response_event("response.failed", number, &response);
        write_event(&mut self.closing, event.name, &event.data);
        complete(dialect, &mut self.closing);
        self.whole = Some(response.into());
    }

    /// Returns the response that a forwarded stream was about, as one that has failed, and the number of the event that
    /// says so; nothing where the dialect has no such event, or nothing was forwarded.
    fn interrupted(&self, dialect: Dialect, failure: &Failure) -> Option<(String, u64)> {
        let (first, last) = self.forwarded.as_ref().filter(|_| dialect == Dialect::Responses)?;
        let response = interrupted_response(&response_in_event(first)?, &self.done, failure)?;
        let number = event_number(last).unwrap_or(self.size.events as u64);
        Some((response, number.saturating_add(1)))
    }

    /// Says whether the client is sent a response as the backend has it, with the id that it gave.
    #[must_use]
    pub const fn forwards_response(&self) -> bool {
        matches!(self.output, StreamOutput::Forward { dialect: Dialect::Responses, .. })
    }

    /// Returns the id that the backend gave the answer.
    #[must_use]
    pub const fn id(&self) -> Option<&Text> {
        self.id.as_ref()
    }

    /// Takes events that came before through another relay, and appends to `out` what the client may be sent of them.
    pub fn take_over(&mut self, mut before: Self, out: &mut String) {
        let mut at = Moment::default();
        for event in before.take_events() {
            at = event.at;
            self.handle_event(SseEvent { name: event.name, data: event.data }, event.at, out);
        }
        let is_over = before.ending.is_some();
        self.sse = before.sse;
        self.echoes = before.echoes;
        if is_over && self.ending.is_none() {
            self.finish(at, out);
        }
    }

    /// Says whether a part of the answer itself has come, or its end.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun || self.ending.is_some()
    }

    /// Says whether a part of the answer itself has come.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        self.begun
    }

    /// Returns how the answer ended, once it has.
    #[must_use]
    pub const fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Returns how many events came since they were last taken.
    #[must_use]
    pub const fn events(&self) -> usize {
        self.events.len()
    }

    /// Returns the events that came since this was last asked.
    pub fn take_events(&mut self) -> Vec<ProviderEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the frames that came since this was last asked, where the client is the gateway itself.
    pub fn take_frames(&mut self) -> Vec<Frame> {
        match &mut self.output {
            StreamOutput::Keep(frames) => std::mem::take(frames),
            StreamOutput::Forward { .. } | StreamOutput::Translate(_) => Vec::new(),
        }
    }

    /// Returns the whole answer as a forwarded stream gave it at its end, where the dialect does that.
    pub fn take_whole(&mut self) -> Option<Text> {
        self.whole.take()
    }

    /// Returns the reply and the closing that was held back.
    #[must_use]
    pub fn into_reply(mut self) -> (Reply, String) {
        if let (StreamOutput::Forward { dialect, .. }, Some(Ending::Stopped(_))) =
            (&self.output, &self.ending)
        {
            complete(*dialect, &mut self.closing);
        }
        (self.assembler.finish(), self.closing)
    }

    fn handle_event(&mut self, event: SseEvent, now: Moment, out: &mut String) {
        if self.refused || self.aborted {
            return;
        }
        let mut frames = Vec::new();
        self.decoder.handle_event(&event, &mut frames);
        self.size.take_in(&frames);
        if let Some(failure) = self.excess() {
            self.events.push(ProviderEvent { at: now, name: event.name, data: event.data });
            return self.stop(failure, out);
        }
        let refusal = frames.iter().find_map(|frame| self.refusal(frame));
        if let (StreamOutput::Forward { dialect, .. }, Some(failure)) = (&self.output, &refusal) {
            self.break_off(*dialect, failure);
        } else if let StreamOutput::Forward { dialect, names } = &self.output {
            let ends = self.ending.is_some() || frames.iter().any(|frame| matches!(frame, Frame::Closed(_)));
            let data = names.rename_event(*dialect, &event.data);
            let data = data.map_or_else(|| event.data.clone(), Text::from);
            let target = if ends { &mut self.closing } else { &mut *out };
            write_event(target, event.name.as_deref(), &data);
            if ends && *dialect == Dialect::Responses {
                self.whole = response_in_event(&data).or(self.whole.take());
            }
            if event.name.as_deref() == Some("response.output_item.done") {
                self.size.done_bytes = self.size.done_bytes.saturating_add(data.len());
                if self.size.done_bytes <= self.bounds.bytes {
                    self.done.push(data.clone());
                }
            }
            let first = self.forwarded.take().map_or_else(|| data.clone(), |(first, _)| first);
            self.forwarded = Some((first, data));
        }
        self.events.push(ProviderEvent { at: now, name: event.name, data: event.data });
        self.handle_frames(frames, out);
    }

    /// Returns what is wrong with the answer if there is more of it than is taken of any.
    fn excess(&self) -> Option<Failure> {
        let Self { bounds, size, decoder, .. } = self;
        if bounds.bytes == usize::MAX {
            return None;
        }
        if size.blocks > MAX_BLOCKS || decoder.has_too_many_blocks() {
            return Some(too_large(format!("it has more than {MAX_BLOCKS} parts")));
        }
        if size.events > EVENTS_MAX {
            return Some(too_large(format!("it has more than {EVENTS_MAX} events")));
        }
        if !self.begun && size.events > EVENTS_BEFORE_MAX {
            return Some(too_large(format!("it says nothing in {EVENTS_BEFORE_MAX} events")));
        }
        let is_larger = size.bytes > bounds.bytes || decoder.unframed_bytes() > bounds.bytes;
        is_larger.then(|| failure_of(&EgressError::TooLarge { limit: bounds.bytes }))?
    }

    /// Returns what is wrong with a call that begins, if it may not.
    fn refusal(&self, frame: &Frame) -> Option<Failure> {
        match frame {
            Frame::Begun { kind: BlockKind::Call { name, .. }, .. } => self.permit.refusal(name),
            _ => None,
        }
    }

    fn handle_frames(&mut self, frames: Vec<Frame>, out: &mut String) {
        let mut restored = Vec::with_capacity(frames.len());
        for frame in frames {
            self.restorer.handle_frame(frame, &mut restored);
        }
        for frame in restored {
            if self.refused {
                return;
            }
            let frame = match self.refusal(&frame) {
                Some(failure) => {
                    self.refused = true;
                    Frame::Closed(Ending::Failed(failure))
                }
                None => frame,
            };
            self.assembler.handle_frame(&frame);
            self.begun |= matches!(frame, Frame::Begun { .. });
            if let Frame::Opened { id, .. } = &frame {
                self.id.clone_from(id);
            }
            self.tentative &= !self.begun;
            if let Frame::Closed(ending) = &frame {
                self.ending = Some(ending.clone());
                // Another attempt may bring the rest; if none does, that is told then.
                if self.tentative && !is_stop(ending) {
                    return;
                }
            }
            self.translate(&frame, out);
        }
    }

    fn translate(&mut self, frame: &Frame, out: &mut String) {
        if matches!(self.output, StreamOutput::Forward { .. }) {
            return;
        }
        for words in self.hidden_calls.last_words(frame) {
            self.write(words, out);
        }
        if let Some(frame) = self.hidden_calls.handle_frame(frame) {
            self.write(frame, out);
        }
    }

    fn write(&mut self, frame: Frame, out: &mut String) {
        let encoder = match &mut self.output {
            StreamOutput::Translate(encoder) => encoder,
            StreamOutput::Keep(frames) => return frames.push(frame),
            StreamOutput::Forward { .. } => return,
        };
        let mut events: Vec<Outgoing> = Vec::new();
        encoder.handle_frame(&frame, &mut events);
        let target = if self.ending.is_some() { &mut self.closing } else { out };
        for event in events {
            let ends = event.name == Some("message_delta");
            let applied = self.applied.as_ref().filter(|_| ends);
            let data = with_applied_edits(&event.data, applied).unwrap_or(event.data);
            write_event(target, event.name, &data);
        }
    }
}

impl AnswerSize {
    /// Takes in what came of one event.
    fn take_in(&mut self, frames: &[Frame]) {
        self.events += 1;
        let mut says_something = false;
        for frame in frames {
            says_something |= !matches!(frame, Frame::Alien { .. });
            let (blocks, bytes) = match frame {
                Frame::Begun { kind: BlockKind::Call { id, name, .. }, .. } => (1, id.len() + name.len()),
                Frame::Begun { kind: BlockKind::Opaque { text, .. }, .. } => (1, text.len()),
                Frame::Begun { .. } => (1, 0),
                Frame::Grew { piece, .. } => (0, length_of(piece)),
                _ => (0, 0),
            };
            self.blocks += blocks;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.meaningful += usize::from(says_something);
    }
}

fn length_of(piece: &Piece) -> usize {
    match piece {
        Piece::Text(text)
        | Piece::Reasoning(text)
        | Piece::Summary { text, .. }
        | Piece::Annotation(text) => text.len(),
        Piece::Seal(Seal::Signature(text) | Seal::Redacted(text) | Seal::Encrypted(text)) => text.len(),
    }
}

/// Returns the failure that ends an answer of which no more is taken; none for a connection that just ended.
pub(super) fn failure_of(error: &EgressError) -> Option<Failure> {
    match error {
        EgressError::TooLarge { limit } => {
            Some(too_large(format!("it has more than {limit} bytes (`limits.answer_bytes`)")))
        }
        EgressError::Stalled { limit } => Some(stalled(*limit)),
        EgressError::Setup { .. }
        | EgressError::Connect(_)
        | EgressError::Silent
        | EgressError::Broke(_)
        | EgressError::NoCredentials => None,
    }
}

/// Adds the mark that ends a stream of the dialect, if the backend left it out or it is still to come.
fn complete(dialect: Dialect, closing: &mut String) {
    let (name, mark) = match dialect {
        Dialect::Chat | Dialect::Responses => (None, "[DONE]"),
        Dialect::Messages => (Some("message_stop"), r#"{"type":"message_stop"}"#),
    };
    let is_there = match dialect {
        Dialect::Messages => closing.contains("message_stop"),
        Dialect::Chat | Dialect::Responses => closing.ends_with("data: [DONE]\n\n"),
    };
    if !is_there {
        write_event(closing, name, mark);
    }
}

const fn is_stop(ending: &Ending) -> bool {
    matches!(ending, Ending::Stopped(_))
}

/// Returns the name of the event that carries an error.
const fn error_event_name(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Chat => None,
        Dialect::Messages | Dialect::Responses => Some("error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_mark_is_there_once() {
        for (dialect, mark) in [(Dialect::Chat, "[DONE]"), (Dialect::Messages, "message_stop")] {
            let mut closing = String::new();
            complete(dialect, &mut closing);
            let once = closing.clone();
            complete(dialect, &mut closing);
            assert!(closing.contains(mark));
            assert_eq!(closing, once);
        }
    }
}
