//! How a block grows into its item: which events its pieces cause, and what it ends with.
//!
//! A text or a refusal is a content part of a message; reasoning has paragraphs of a summary beside its own
//! text; a call has nothing but its input. What is said in pieces is also collected in the item, so that the
//! closing events repeat exactly what was said.

use super::ReasoningEvents;
use super::events::{Events, Spot};
use crate::Outgoing;
use crate::responses::output_item::{
    Body, EMPTY_ARGUMENTS, OutputItem, OutputPart, OutputThought, own_annotation, write_reasoning_part,
    write_summary_part,
};
use throughline_core::{Piece, Seal, Text};

/// A block on its way into an item.
#[derive(Debug)]
pub(super) struct Growth {
    /// The position of the item in the answer.
    pub item: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The content part of that position.
    Part(usize),
    /// Reasoning: the paragraph that is open, by the backend's number, and whether its own text is.
    Thought { paragraph: Option<u32>, has_text: bool, names: ReasoningEvents },
    /// The input of a call.
    Call,
}

impl Growth {
    pub(super) const fn thought(item: usize, names: ReasoningEvents) -> Self {
        Self { item, form: Form::Thought { paragraph: None, has_text: false, names } }
    }

    pub(super) const fn call(item: usize) -> Self {
        Self { item, form: Form::Call }
    }

    /// Begins a content part of a message.
    pub(super) fn part(
        index: usize,
        part: OutputPart,
        item: &mut OutputItem,
        events: &mut Events,
        out: &mut Vec<Outgoing>,
    ) -> Self {
        let at = match &item.body {
            Body::Message(parts) => parts.len(),
            _ => 0,
        };
        let spot = Spot { item_id: &item.id, output_index: index, part: Some(("content_index", at)) };
        events.part(out, "response.content_part.added", spot, |writer| part.write(writer));
        if let Body::Message(parts) = &mut item.body {
            parts.push(part);
        }
        Self { item: index, form: Form::Part(at) }
    }

    /// Takes in a piece; one that such a block cannot have is ignored.
    pub(super) fn grow(
        &mut self,
        piece: &Piece,
        item: &mut OutputItem,
        events: &mut Events,
        out: &mut Vec<Outgoing>,
    ) {
        let index = self.item;
        let OutputItem { id, body, .. } = item;
        let spot = |part| Spot { item_id: id, output_index: index, part };
        match (&mut self.form, body, piece) {
            (Form::Part(at), Body::Message(parts), piece) => {
                if let Some(part) = parts.get_mut(*at) {
                    grow_part(part, piece, spot(Some(("content_index", *at))), events, out);
                }
            }
            (Form::Thought { paragraph, .. }, Body::Reasoning(thought), Piece::Summary { index, text }) => {
                if *paragraph != Some(*index) {
                    close_paragraph(paragraph.take(), thought, &spot, events, out);
                    *paragraph = Some(*index);
                    thought.summary.push(String::new());
                    let spot = spot(paragraph_spot(thought));
                    events.part(out, "response.reasoning_summary_part.added", spot, |writer| {
                        write_summary_part(writer, "");
                    });
                }
                grow_paragraph(text, thought, &spot, events, out);
            }
            (
                Form::Thought { has_text, names, .. },
                Body::Reasoning(thought),
                Piece::Reasoning(text) | Piece::Text(text),
            ) => grow_reasoning(text, has_text, *names, thought, spot(CONTENT), events, out),
            (Form::Thought { .. }, Body::Reasoning(thought), Piece::Seal(Seal::Encrypted(sealed))) => {
                thought.encrypted.get_or_insert_default().push_str(sealed);
            }
            (Form::Call, Body::Call(call), Piece::Text(text)) if !text.is_empty() => {
                call.input.push_str(text);
                let name = if call.freeform {
                    "response.custom_tool_call_input.delta"
                } else {
                    "response.function_call_arguments.delta"
                };
                events.text(out, name, spot(None), ("delta", text));
            }
            _ => {}
        }
    }

    /// Ends the block.
    pub(super) fn end(&mut self, item: &mut OutputItem, events: &mut Events, out: &mut Vec<Outgoing>) {
        if matches!(&item.body, Body::Call(call) if call.input.is_empty() && !call.freeform) {
            // Models write nothing for a tool that takes nothing, but clients parse what they get.
            self.grow(&Piece::Text(Text::from_static(EMPTY_ARGUMENTS)), item, events, out);
        }
        let index = self.item;
        let OutputItem { id, body, .. } = item;
        let spot = |part| Spot { item_id: id, output_index: index, part };
        match (&mut self.form, body) {
            (Form::Part(at), Body::Message(parts)) => {
                if let Some(part) = parts.get(*at) {
                    end_part(part, spot(Some(("content_index", *at))), events, out);
                }
            }
            (Form::Thought { paragraph, has_text, names }, Body::Reasoning(thought)) => {
                close_paragraph(paragraph.take(), thought, &spot, events, out);
                if *has_text {
                    end_reasoning(thought, *names, spot(CONTENT), events, out);
                }
            }
            (Form::Call, Body::Call(call)) => {
                let (name, field) = if call.freeform {
                    ("response.custom_tool_call_input.done", "input")
                } else {
                    ("response.function_call_arguments.done", "arguments")
                };
                events.text(out, name, spot(None), (field, &call.input));
            }
            _ => {}
        }
    }
}

/// Where reasoning itself stands: it is the only content of its item.
const CONTENT: Option<(&str, usize)> = Some(("content_index", 0));

fn grow_part(
    part: &mut OutputPart,
    piece: &Piece,
    spot: Spot<'_>,
    events: &mut Events,
    out: &mut Vec<Outgoing>,
) {
    match (part, piece) {
        (OutputPart::Text { annotations, .. }, Piece::Annotation(annotation)) => {
            let Some(annotation) = own_annotation(annotation) else { return };
            events.emit(out, "response.output_text.annotation.added", |writer| {
                spot.write(writer);
                writer.field_uint("annotation_index", annotations.len() as u64);
                writer.field_raw("annotation", &annotation);
            });
            annotations.push(annotation);
        }
        (part, Piece::Text(text)) if !text.is_empty() => {
            let name = match part {
                OutputPart::Refusal(_) => "response.refusal.delta",
                OutputPart::Text { .. } | OutputPart::Whole(_) => "response.output_text.delta",
            };
            if let Some(so_far) = part.text_mut() {
                so_far.push_str(text);
                events.text(out, name, spot, ("delta", text));
            }
        }
        _ => {}
    }
}

fn end_part(part: &OutputPart, spot: Spot<'_>, events: &mut Events, out: &mut Vec<Outgoing>) {
    match part {
        OutputPart::Text { text, .. } => events.text(out, "response.output_text.done", spot, ("text", text)),
        OutputPart::Refusal(words) => events.text(out, "response.refusal.done", spot, ("refusal", words)),
        OutputPart::Whole(_) => {}
    }
    events.part(out, "response.content_part.done", spot, |writer| part.write(writer));
}

fn paragraph_spot(thought: &OutputThought) -> Option<(&'static str, usize)> {
    Some(("summary_index", thought.summary.len().saturating_sub(1)))
}

fn grow_paragraph<'i>(
    text: &Text,
    thought: &mut OutputThought,
    spot: &impl Fn(Option<(&'static str, usize)>) -> Spot<'i>,
    events: &mut Events,
    out: &mut Vec<Outgoing>,
) {
    let spot = spot(paragraph_spot(thought));
    if let Some(paragraph) = thought.summary.last_mut().filter(|_| !text.is_empty()) {
        paragraph.push_str(text);
        events.text(out, "response.reasoning_summary_text.delta", spot, ("delta", text));
    }
}

/// Closes the paragraph that is open; one that is returned to later is a new one.
fn close_paragraph<'i>(
    open: Option<u32>,
    thought: &OutputThought,
    spot: &impl Fn(Option<(&'static str, usize)>) -> Spot<'i>,
    events: &mut Events,
    out: &mut Vec<Outgoing>,
) {
    if let (Some(_), Some(text)) = (open, thought.summary.last()) {
        let spot = spot(paragraph_spot(thought));
        events.text(out, "response.reasoning_summary_text.done", spot, ("text", text));
        events.part(out, "response.reasoning_summary_part.done", spot, |writer| {
            write_summary_part(writer, text);
        });
    }
}

fn grow_reasoning(
    text: &Text,
    has_text: &mut bool,
    names: ReasoningEvents,
    thought: &mut OutputThought,
    spot: Spot<'_>,
    events: &mut Events,
    out: &mut Vec<Outgoing>,
) {
    if text.is_empty() {
        return;
    }
    if !*has_text {
        *has_text = true;
        events.part(out, "response.content_part.added", spot, |writer| write_reasoning_part(writer, ""));
    }
    thought.content.get_or_insert_default().push_str(text);
    let name = match names {
        ReasoningEvents::Spec => "response.reasoning.delta",
        ReasoningEvents::OpenAi => "response.reasoning_text.delta",
    };
    events.text(out, name, spot, ("delta", text));
}

fn end_reasoning(
    thought: &OutputThought,
    names: ReasoningEvents,
    spot: Spot<'_>,
    events: &mut Events,
    out: &mut Vec<Outgoing>,
) {
    let text = thought.content.as_deref().unwrap_or_default();
    let name = match names {
        ReasoningEvents::Spec => "response.reasoning.done",
        ReasoningEvents::OpenAi => "response.reasoning_text.done",
    };
    events.text(out, name, spot, ("text", text));
    events.part(out, "response.content_part.done", spot, |writer| write_reasoning_part(writer, text));
}
