//! Frames, written as the events of this dialect.
//!
//! The encoder owns ids, numbering and the life cycle of items and parts; frames only bring meaning. Items
//! may grow side by side, told apart by their index. An item that has ended is not declared done until the
//! next one begins or the answer ends: only then is it known whether it is the one that was cut off, and
//! what is completed must not be taken back.

mod events;
mod growth;

use super::output_item::{Body, ItemStatus, OutputCall, OutputItem, OutputPart, OutputThought};
use super::response_object::{ResponseObject, Verdict};
use crate::{Outgoing, Stamp};
use events::{END_MARK, Events};
use growth::Growth;
use std::collections::BTreeMap;
use throughline_core::{Ask, BlockId, BlockKind, Ending, Frame, Text, Usage};

/// What the events of raw reasoning are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningEvents {
    /// `response.reasoning.*`, as the specification has it.
    #[default]
    Spec,
    /// `response.reasoning_text.*`, as OpenAI's SDKs and Codex have it.
    OpenAi,
}

/// Writes frames as events.
#[derive(Debug)]
pub(crate) struct StreamEncoder {
    state: State,
    object: ResponseObject,
    stamp_id: Text,
    /// The model that was asked for, if nobody says which one answers.
    asked_model: Option<Text>,
    reasoning_events: ReasoningEvents,
    events: Events,
    items: Vec<Growing>,
    blocks: BTreeMap<BlockId, Growth>,
    usage: Option<Usage>,
    refused: bool,
}

/// How far the stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was said yet, not even that an answer is being given.
    Silent,
    /// The answer is being given.
    Open,
    /// Everything was said.
    Closed,
}

/// An item that is being written.
#[derive(Debug)]
struct Growing {
    item: OutputItem,
    /// The backend's id of the message, by which its parts find together.
    source: Option<Text>,
    open_blocks: usize,
    done: bool,
}

impl StreamEncoder {
    /// Returns an encoder for the answer to `ask`.
    pub(crate) fn new(stamp: Stamp, ask: &Ask) -> Self {
        Self {
            state: State::Silent,
            object: ResponseObject::new(&stamp, ask),
            stamp_id: stamp.id,
            asked_model: ask.model.clone(),
            reasoning_events: ReasoningEvents::default(),
            events: Events::default(),
            items: Vec::new(),
            blocks: BTreeMap::new(),
            usage: None,
            refused: false,
        }
    }

    /// Chooses what the events of raw reasoning are called.
    pub(crate) fn set_reasoning_events(&mut self, names: ReasoningEvents) {
        self.reasoning_events = names;
    }

    /// Takes the next frame and appends the events that it causes.
    pub(crate) fn handle_frame(&mut self, frame: &Frame, out: &mut Vec<Outgoing>) {
        if self.state == State::Closed {
            return;
        }
        match frame {
            Frame::Opened { model, .. } => self.open(model.as_ref(), out),
            Frame::Begun { block, kind } => {
                self.open(None, out);
                self.begin(*block, kind, out);
            }
            Frame::Grew { block, piece } => {
                if let Some(growth) = self.blocks.get_mut(block)
                    && let Some(growing) = self.items.get_mut(growth.item)
                {
                    growth.grow(piece, &mut growing.item, &mut self.events, out);
                }
            }
            Frame::Ended { block } => self.end(*block, out),
            Frame::Used(usage) => self.usage = Some(self.usage.unwrap_or_default().updated(*usage)),
            Frame::Closed(ending) => self.close(ending, out),
            Frame::Ordered(_) | Frame::Alien { .. } => {}
        }
    }

    fn open(&mut self, model: Option<&Text>, out: &mut Vec<Outgoing>) {
        if self.state != State::Silent {
            return;
        }
        self.state = State::Open;
        self.object.learn_model(model.or(self.asked_model.as_ref()));
        self.emit_response("response.created", &Verdict::IN_PROGRESS, out);
        self.emit_response("response.in_progress", &Verdict::IN_PROGRESS, out);
    }

    fn emit_response(&mut self, name: &'static str, verdict: &Verdict, out: &mut Vec<Outgoing>) {
        self.events.emit(out, name, |writer| {
            writer.key("response");
            self.object.write(writer, verdict, self.usage, |writer| {
                writer.begin_array();
                self.items.iter().for_each(|growing| growing.item.write(writer));
                writer.end_array();
            });
        });
    }

    fn begin(&mut self, block: BlockId, kind: &BlockKind, out: &mut Vec<Outgoing>) {
        match kind {
            BlockKind::Text { item_id } => {
                let part = OutputPart::Text { text: String::new(), annotations: Vec::new() };
                self.begin_part(block, part, item_id.as_ref(), out);
            }
            BlockKind::Refusal { item_id } => {
                self.refused = true;
                self.begin_part(block, OutputPart::Refusal(String::new()), item_id.as_ref(), out);
            }
            BlockKind::Thought { .. } => {
                let item = self.add_item(Body::Reasoning(OutputThought::default()), None, out);
                self.begin_block(block, Growth::thought(item, self.reasoning_events));
            }
            BlockKind::Call { id, name, namespace, freeform, .. } => {
                let call = OutputCall {
                    call_id: id.clone(),
                    name: name.clone(),
                    namespace: namespace.clone(),
                    freeform: *freeform,
                    input: String::new(),
                };
                let item = self.add_item(Body::Call(call), None, out);
                self.begin_block(block, Growth::call(item));
            }
            BlockKind::Opaque { kind, text } if is_own_item(kind, text) => {
                let item = self.add_item(Body::Whole(text.as_str().to_owned()), None, out);
                self.finish_item(item, ItemStatus::Completed, out);
            }
            BlockKind::Opaque { .. } => {}
        }
    }

    /// Begins a part, in the message that it belongs to if that is still open.
    fn begin_part(
        &mut self,
        block: BlockId,
        part: OutputPart,
        source: Option<&Text>,
        out: &mut Vec<Outgoing>,
    ) {
        let is_home =
            |growing: &Growing| source.is_some() && growing.source.as_ref() == source && !growing.done;
        let item = match self.items.iter().position(is_home) {
            Some(item) => item,
            None => self.add_item(Body::Message(Vec::new()), source.cloned(), out),
        };
        let Some(growing) = self.items.get_mut(item) else { return };
        let growth = Growth::part(item, part, &mut growing.item, &mut self.events, out);
        self.begin_block(block, growth);
    }

    fn begin_block(&mut self, block: BlockId, growth: Growth) {
        if let Some(growing) = self.items.get_mut(growth.item) {
            growing.open_blocks += 1;
        }
        self.blocks.insert(block, growth);
    }

    /// Adds an item to the answer, after those that have ended are declared done.
    fn add_item(&mut self, body: Body, source: Option<Text>, out: &mut Vec<Outgoing>) -> usize {
        for ended in 0..self.items.len() {
            if self.items[ended].open_blocks == 0 {
                self.finish_item(ended, ItemStatus::Completed, out);
            }
        }
        let index = self.items.len();
        let item = OutputItem::new(body, &self.stamp_id, index);
        self.events.item(out, "response.output_item.added", index, &item);
        self.items.push(Growing { item, source, open_blocks: 0, done: false });
        index
    }

    fn finish_item(&mut self, index: usize, status: ItemStatus, out: &mut Vec<Outgoing>) {
        let Some(growing) = self.items.get_mut(index).filter(|growing| !growing.done) else { return };
        growing.done = true;
        growing.item.status = status;
        self.events.item(out, "response.output_item.done", index, &growing.item);
    }

    fn end(&mut self, block: BlockId, out: &mut Vec<Outgoing>) {
        let Some(mut growth) = self.blocks.remove(&block) else { return };
        let Some(growing) = self.items.get_mut(growth.item) else { return };
        growth.end(&mut growing.item, &mut self.events, out);
        growing.open_blocks = growing.open_blocks.saturating_sub(1);
    }

    fn close(&mut self, ending: &Ending, out: &mut Vec<Outgoing>) {
        self.open(None, out);
        while let Some((block, _)) = self.blocks.first_key_value() {
            self.end(*block, out);
        }
        let verdict = Verdict::of_stream(ending, self.refused);
        self.finish_items(ending, verdict.is_complete(), out);
        let name = match verdict.status {
            "completed" => "response.completed",
            "incomplete" => "response.incomplete",
            _ => "response.failed",
        };
        self.emit_response(name, &verdict, out);
        out.push(Outgoing { name: None, data: END_MARK.to_owned() });
        self.state = State::Closed;
    }

    /// Declares all items done; where the answer was cut off, those it was cut off in are incomplete.
    fn finish_items(&mut self, ending: &Ending, complete: bool, out: &mut Vec<Outgoing>) {
        let last = self.items.len().saturating_sub(1);
        let stopped = matches!(ending, Ending::Stopped(_));
        for index in 0..self.items.len() {
            // A model that stops is cut off in what it said last. When the backend gives up, nobody knows
            // which of the items that grew side by side were all there.
            let cut_off = !complete && (index == last || !stopped);
            let status = if cut_off { ItemStatus::Incomplete } else { ItemStatus::Completed };
            self.finish_item(index, status, out);
        }
    }
}

/// Says whether an opaque block is an item of this dialect: frames do not say which one they came from.
fn is_own_item(kind: &str, text: &str) -> bool {
    const KNOWN: [&str; 23] = [
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
        "function_call_output",
        "custom_tool_call_output",
        "compaction_summary",
        "item_reference",
    ];
    match kind {
        // Messages has a block of this name, too, but shows what is in it.
        "compaction" => text.contains("\"encrypted_content\""),
        // An implementor's own item: `slug:name`.
        _ => KNOWN.contains(&kind) || kind.contains(':'),
    }
}

#[cfg(test)]
mod tests;
