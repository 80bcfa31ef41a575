//! A streamed answer: frames in, events out.
//!
//! Clients read `message_start`, then blocks strictly one after the other, then `message_delta` with the
//! stop reason and `message_stop`. So a block that begins while another is open waits for its turn, a text
//! or a thought is begun with its first piece (an empty block would be refused when it comes back), and
//! `message_start` waits for the first count of tokens, since clients read their context meter from it.

use super::error::encode_error;
use super::reply::failure_of;
use super::usage::{write_stop, write_usage};
use crate::input::FREEFORM_FIELD;
use crate::json::{Document, Writer, quote};
use crate::{Outgoing, Stamp};
use std::collections::VecDeque;
use throughline_core::{
    Ask, BlockId, BlockKind, Ending, Frame, Piece, Seal, Stop, Text, Usage, settled_stop,
};

/// Turns the frames of one answer into events.
#[derive(Debug)]
pub(crate) struct StreamEncoder {
    stamp: Stamp,
    state: State,
    usage: Usage,
    has_calls: bool,
    /// The index of the next block.
    next_index: u64,
    current: Option<OpenBlock>,
    /// The blocks that wait for their turn.
    waiting: VecDeque<WaitingBlock>,
}

/// How far the answer is.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// Nothing was written.
    Unwritten {
        /// The model that answers, if the backend said.
        model: Option<Text>,
    },
    /// `message_start` was written.
    Begun,
    /// The last event was written.
    Over,
}

#[derive(Debug)]
struct OpenBlock {
    block: BlockId,
    /// Its index on the wire, once its start was written.
    index: Option<u64>,
    form: Form,
}

#[derive(Debug)]
struct WaitingBlock {
    block: BlockId,
    kind: BlockKind,
    pieces: Vec<Piece>,
    has_ended: bool,
}

/// What an open block is, and what it needs to know to go on.
#[derive(Debug)]
enum Form {
    Text,
    Thought {
        /// What the last piece was, since pieces of another kind are another paragraph.
        told: Option<Told>,
        /// Written when the block ends: clients take the last signature, not the sum of its pieces.
        signature: String,
        /// Written as a block of its own when this one ends.
        redacted: String,
    },
    Call,
    /// A call that takes free text, which is wrapped into an object as it comes.
    FreeformCall,
    /// Nothing that this dialect has a block for.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Reasoning,
    Summary(u32),
}

impl StreamEncoder {
    /// Returns an encoder for one answer.
    pub(crate) fn new(stamp: Stamp, _ask: &Ask) -> Self {
        Self {
            stamp,
            state: State::Unwritten { model: None },
            usage: Usage::default(),
            has_calls: false,
            next_index: 0,
            current: None,
            waiting: VecDeque::new(),
        }
    }

    /// Takes the next frame.
    pub(crate) fn handle_frame(&mut self, frame: &Frame, out: &mut Vec<Outgoing>) {
        if self.state == State::Over {
            return;
        }
        match frame {
            Frame::Opened { model, .. } => {
                self.state = State::Unwritten { model: model.clone() };
                if self.stamp.input_tokens.is_some() {
                    self.begin_message(out);
                }
            }
            Frame::Used(usage) => {
                self.usage = self.usage.updated(*usage);
                if self.usage.input > 0 {
                    self.begin_message(out);
                }
            }
            Frame::Begun { block, kind } => self.handle_begun(*block, kind, out),
            Frame::Grew { block, piece } => self.handle_grew(*block, piece, out),
            Frame::Ended { block } => self.handle_ended(*block, out),
            Frame::Closed(ending) => self.handle_closed(ending, out),
            Frame::Ordered(_) | Frame::Alien { .. } => {}
        }
    }

    fn begin_message(&mut self, out: &mut Vec<Outgoing>) {
        let State::Unwritten { model } = &mut self.state else { return };
        let model = self.stamp.model.clone().or(model.take()).unwrap_or_default();
        self.state = State::Begun;
        let usage = self.known_usage();
        emit(out, "message_start", |writer| {
            writer.key("message");
            writer.begin_object();
            writer.key("id");
            writer.string_with(|sink| {
                sink.push("msg_");
                sink.push(&self.stamp.id);
            });
            writer.field_str("type", "message");
            writer.field_str("role", "assistant");
            writer.field_str("model", &model);
            writer.field_raw("content", "[]");
            write_stop(writer, None);
            writer.key("usage");
            write_usage(writer, usage);
            writer.end_object();
        });
    }

    /// Returns what is known of the tokens; the estimate of the prompt stands in until the backend counts.
    fn known_usage(&self) -> Usage {
        let input =
            if self.usage.input > 0 { self.usage.input } else { self.stamp.input_tokens.unwrap_or(0) };
        Usage { input, ..self.usage }
    }

    fn handle_begun(&mut self, block: BlockId, kind: &BlockKind, out: &mut Vec<Outgoing>) {
        self.begin_message(out);
        self.has_calls |= matches!(kind, BlockKind::Call { .. });
        if self.current.is_none() {
            return self.begin_block(block, kind, out);
        }
        let (kind, pieces) = (kind.clone(), Vec::new());
        self.waiting.push_back(WaitingBlock { block, kind, pieces, has_ended: false });
    }

    fn handle_grew(&mut self, block: BlockId, piece: &Piece, out: &mut Vec<Outgoing>) {
        if self.current.as_ref().is_some_and(|open| open.block == block) {
            self.grow(piece, out);
        } else if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.block == block) {
            waiting.pieces.push(piece.clone());
        }
    }

    fn handle_ended(&mut self, block: BlockId, out: &mut Vec<Outgoing>) {
        if self.current.as_ref().is_some_and(|open| open.block == block) {
            self.end_block(out);
            self.take_turns(out);
        } else if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.block == block) {
            waiting.has_ended = true;
        }
    }

    /// Lets the waiting blocks have their turn, up to the first that is still growing.
    fn take_turns(&mut self, out: &mut Vec<Outgoing>) {
        while self.current.is_none() {
            let Some(next) = self.waiting.pop_front() else { return };
            self.begin_block(next.block, &next.kind, out);
            next.pieces.iter().for_each(|piece| self.grow(piece, out));
            if next.has_ended {
                self.end_block(out);
            }
        }
    }

    fn handle_closed(&mut self, ending: &Ending, out: &mut Vec<Outgoing>) {
        match ending {
            Ending::Stopped(stop) => {
                self.begin_message(out);
                self.end_all(out);
                self.write_end(&settled_stop(stop.clone(), self.has_calls), out);
            }
            ending => {
                self.end_all(out);
                out.push(Outgoing { name: Some("error"), data: encode_error(&failure_of(ending)) });
            }
        }
        self.state = State::Over;
    }

    fn end_all(&mut self, out: &mut Vec<Outgoing>) {
        self.waiting.iter_mut().for_each(|waiting| waiting.has_ended = true);
        self.end_block(out);
        self.take_turns(out);
    }

    fn write_end(&self, stop: &Stop, out: &mut Vec<Outgoing>) {
        emit(out, "message_delta", |writer| {
            writer.key("delta");
            writer.begin_object();
            write_stop(writer, Some(stop));
            writer.end_object();
            writer.key("usage");
            write_usage(writer, self.known_usage());
        });
        emit(out, "message_stop", |_| ());
    }

    /// Makes a block the current one; calls are announced at once, the rest when there is something to say.
    fn begin_block(&mut self, block: BlockId, kind: &BlockKind, out: &mut Vec<Outgoing>) {
        let form = match kind {
            BlockKind::Text { .. } | BlockKind::Refusal { .. } => Form::Text,
            BlockKind::Thought { .. } => {
                Form::Thought { told: None, signature: String::new(), redacted: String::new() }
            }
            BlockKind::Call { freeform: true, .. } => Form::FreeformCall,
            BlockKind::Call { freeform: false, .. } => Form::Call,
            BlockKind::Opaque { .. } => Form::Nothing,
        };
        self.current = Some(OpenBlock { block, index: None, form });
        match kind {
            BlockKind::Call { id, name, freeform, .. } => {
                let index = self.start(out, |writer| write_call_start(writer, id, name));
                if *freeform {
                    write_input(out, index, &format!("{{{}:\"", quote(FREEFORM_FIELD)));
                }
            }
            BlockKind::Opaque { kind, text } if is_own(kind, text) => {
                self.start(out, |writer| writer.raw(text));
            }
            _ => {}
        }
    }

    /// Writes the start of the current block, unless that was done, and returns its index.
    fn start(&mut self, out: &mut Vec<Outgoing>, content: impl FnOnce(&mut Writer)) -> u64 {
        let Some(open) = &mut self.current else { return self.next_index };
        if let Some(index) = open.index {
            return index;
        }
        let index = self.next_index;
        open.index = Some(index);
        self.next_index += 1;
        emit(out, "content_block_start", |writer| {
            writer.field_uint("index", index);
            writer.key("content_block");
            content(writer);
        });
        index
    }

    fn grow(&mut self, piece: &Piece, out: &mut Vec<Outgoing>) {
        let Some(open) = &mut self.current else { return };
        match (&mut open.form, piece) {
            (Form::Text, Piece::Text(text)) if !text.is_empty() => {
                let index = self.start(out, |writer| writer.raw(r#"{"type":"text","text":""}"#));
                write_delta(out, index, "text_delta", |writer| writer.field_str("text", text));
            }
            (Form::Text, Piece::Annotation(citation)) if is_citation(citation) => {
                let index = self.start(out, |writer| writer.raw(r#"{"type":"text","text":""}"#));
                write_delta(out, index, "citations_delta", |writer| writer.field_raw("citation", citation));
            }
            (Form::Thought { .. }, Piece::Reasoning(text)) => self.think(Told::Reasoning, text, out),
            (Form::Thought { .. }, Piece::Summary { index, text }) => {
                self.think(Told::Summary(*index), text, out);
            }
            (Form::Thought { signature, .. }, Piece::Seal(Seal::Signature(piece))) => {
                signature.push_str(piece);
            }
            (Form::Thought { redacted, .. }, Piece::Seal(Seal::Redacted(piece))) => redacted.push_str(piece),
            (Form::Call, Piece::Text(text)) if !text.is_empty() => {
                write_input(out, open.index.unwrap_or_default(), text);
            }
            (Form::FreeformCall, Piece::Text(text)) if !text.is_empty() => {
                let quoted = quote(text);
                write_input(out, open.index.unwrap_or_default(), &quoted[1..quoted.len() - 1]);
            }
            // A seal of another provider, or a piece that does not belong to such a block.
            _ => {}
        }
    }

    fn think(&mut self, now: Told, text: &str, out: &mut Vec<Outgoing>) {
        let Some(OpenBlock { form: Form::Thought { told, .. }, .. }) = &mut self.current else { return };
        if text.is_empty() {
            return;
        }
        let breaks = told.replace(now).is_some_and(|before| before != now);
        let index = self.start(out, write_thinking_start);
        write_delta(out, index, "thinking_delta", |writer| {
            writer.key("thinking");
            writer.string_with(|sink| {
                if breaks {
                    sink.push("\n\n");
                }
                sink.push(text);
            });
        });
    }

    fn end_block(&mut self, out: &mut Vec<Outgoing>) {
        match self.current.as_ref().map(|open| &open.form) {
            Some(Form::Thought { signature, redacted, .. }) => {
                let (signature, redacted) = (signature.clone(), redacted.clone());
                self.end_thought(&signature, &redacted, out);
            }
            Some(Form::FreeformCall) => {
                let index = self.current.as_ref().and_then(|open| open.index).unwrap_or_default();
                write_input(out, index, "\"}");
            }
            _ => {}
        }
        self.stop(out);
        self.current = None;
    }

    fn end_thought(&mut self, signature: &str, redacted: &str, out: &mut Vec<Outgoing>) {
        if !signature.is_empty() {
            let index = self.start(out, write_thinking_start);
            write_delta(out, index, "signature_delta", |writer| writer.field_str("signature", signature));
        }
        if !redacted.is_empty() {
            self.stop(out);
            self.start(out, |writer| super::blocks::write_redacted(writer, redacted));
        }
    }

    /// Writes the stop of the current block, if its start was written.
    fn stop(&mut self, out: &mut Vec<Outgoing>) {
        if let Some(index) = self.current.as_mut().and_then(|open| open.index.take()) {
            emit(out, "content_block_stop", |writer| writer.field_uint("index", index));
        }
    }
}

/// Adds an event, of which the type is also the name.
fn emit(out: &mut Vec<Outgoing>, name: &'static str, fields: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::with_capacity(128);
    writer.begin_object();
    writer.field_str("type", name);
    fields(&mut writer);
    writer.end_object();
    out.push(Outgoing { name: Some(name), data: writer.into_string() });
}

fn write_delta(out: &mut Vec<Outgoing>, index: u64, kind: &str, fields: impl FnOnce(&mut Writer)) {
    emit(out, "content_block_delta", |writer| {
        writer.field_uint("index", index);
        writer.key("delta");
        writer.begin_object();
        writer.field_str("type", kind);
        fields(writer);
        writer.end_object();
    });
}

/// Adds a piece of a call's input. Whether the pieces make JSON is up to the model; here nothing can be mended.
fn write_input(out: &mut Vec<Outgoing>, index: u64, json: &str) {
    write_delta(out, index, "input_json_delta", |writer| writer.field_str("partial_json", json));
}

fn write_call_start(writer: &mut Writer, id: &str, name: &str) {
    writer.begin_object();
    writer.field_str("type", "tool_use");
    writer.field_str("id", id);
    writer.field_str("name", name);
    writer.field_raw("input", "{}");
    writer.end_object();
}

fn write_thinking_start(writer: &mut Writer) {
    writer.raw(r#"{"type":"thinking","thinking":"","signature":""}"#);
}

/// Says whether a block that is passed on whole is one of this dialect.
fn is_own(kind: &str, text: &str) -> bool {
    match kind {
        "server_tool_use" | "mcp_tool_use" | "container_upload" | "fallback" => true,
        // Another dialect has an item of that name, without readable content.
        "compaction" => Document::parse(text).is_ok_and(|block| block.root().field("content").is_some()),
        kind => kind.ends_with("_tool_result"),
    }
}

/// Says whether a remark on a text is a citation of this dialect.
fn is_citation(annotation: &str) -> bool {
    let document = Document::parse(annotation).ok();
    let kind = document.as_ref().and_then(|document| document.root().field("type")?.as_str());
    kind.is_some_and(|kind| kind.ends_with("_location"))
}

#[cfg(test)]
mod tests;
