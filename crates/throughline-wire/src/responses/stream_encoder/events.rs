//! The events of a stream, one function each: which fields they have and in what form.
//!
//! Every event carries its type and a number that counts up from zero; both are written here and nowhere
//! else.

use crate::Outgoing;
use crate::json::Writer;
use crate::responses::output_item::OutputItem;

/// What a stream ends with, behind the last event.
pub(super) const END_MARK: &str = "[DONE]";

/// Numbers the events of one stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    sequence: u64,
}

/// Which part of which item an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'i> {
    /// The id of the item.
    pub item_id: &'i str,
    /// The position of the item in the answer.
    pub output_index: usize,
    /// The position of the part in the item, and what that is called.
    pub part: Option<(&'static str, usize)>,
}

impl Events {
    /// Appends an event whose remaining fields `fill` writes.
    pub(super) fn emit(
        &mut self,
        out: &mut Vec<Outgoing>,
        name: &'static str,
        fill: impl FnOnce(&mut Writer),
    ) {
        let mut writer = Writer::with_capacity(256);
        writer.begin_object();
        writer.field_str("type", name);
        writer.field_uint("sequence_number", self.sequence);
        fill(&mut writer);
        writer.end_object();
        self.sequence += 1;
        out.push(Outgoing { name: Some(name), data: writer.into_string() });
    }

    /// Appends an event about an item as a whole.
    pub(super) fn item(
        &mut self,
        out: &mut Vec<Outgoing>,
        name: &'static str,
        index: usize,
        item: &OutputItem,
    ) {
        self.emit(out, name, |writer| {
            writer.field_uint("output_index", index as u64);
            writer.key("item");
            item.write(writer);
        });
    }

    /// Appends an event that gives a text to a spot: a piece of it, or all of it.
    pub(super) fn text(
        &mut self,
        out: &mut Vec<Outgoing>,
        name: &'static str,
        spot: Spot<'_>,
        (field, text): (&'static str, &str),
    ) {
        self.emit(out, name, |writer| {
            spot.write(writer);
            writer.field_str(field, text);
            // Optional since 2026-04-24, required before, and expected by typed clients ever since.
            if name.starts_with("response.output_text.") {
                writer.field_raw("logprobs", "[]");
            }
        });
    }

    /// Appends an event about a part, which `write` writes.
    pub(super) fn part(
        &mut self,
        out: &mut Vec<Outgoing>,
        name: &'static str,
        spot: Spot<'_>,
        write: impl FnOnce(&mut Writer),
    ) {
        self.emit(out, name, |writer| {
            spot.write(writer);
            writer.key("part");
            write(writer);
        });
    }
}

impl Spot<'_> {
    /// Writes the fields that say where.
    pub(super) fn write(self, writer: &mut Writer) {
        writer.field_str("item_id", self.item_id);
        writer.field_uint("output_index", self.output_index as u64);
        if let Some((name, index)) = self.part {
            writer.field_uint(name, index as u64);
        }
    }
}
