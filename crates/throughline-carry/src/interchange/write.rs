//! Entries, written field by field.

use std::sync::Arc;
use throughline_core::{
    Call, Content, Entry, Envelope, Extra, Handover, Input, Kind, Media, Origin, Outcome, Part, Return, Role,
    Seal, Text, Thought, Wire,
};
use throughline_wire::json::Writer;

/// Writes entries one after another; those that came in one message share it.
#[derive(Debug, Default)]
pub struct EntryWriter {
    last: Option<Arc<Envelope>>,
    envelopes: u64,
}

impl EntryWriter {
    /// Returns the line of the message that the entry shares with others, unless it was written already.
    pub fn envelope(&mut self, entry: &Entry) -> Option<String> {
        let (envelope, _) = entry.envelope.as_ref()?;
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, envelope)) {
            return None;
        }
        self.last = Some(Arc::clone(envelope));
        self.envelopes += 1;
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("type", "envelope");
        writer.field_uint("number", self.envelopes);
        writer.field_uint("entries", u64::from(envelope.entries));
        write_wire(&mut writer, &envelope.wire);
        writer.end_object();
        Some(writer.into_string())
    }

    /// Writes the fields of an entry into an object that is open. Its envelope must have been written before.
    pub fn entry(&self, writer: &mut Writer, entry: &Entry) {
        if let Some(place) = entry.place {
            writer.key("place");
            writer.begin_array();
            writer.uint(u64::from(place.message));
            if let Some(block) = place.block {
                writer.uint(u64::from(block));
            }
            writer.end_array();
        }
        if !entry.intact {
            writer.field_bool("altered", true);
        }
        if let Some((_, position)) = &entry.envelope {
            writer.key("envelope");
            writer.begin_array();
            writer.uint(self.envelopes);
            writer.uint(u64::from(*position));
            writer.end_array();
        }
        if let Some(wire) = &entry.wire {
            writer.key("wire");
            writer.begin_object();
            write_wire(writer, wire);
            writer.end_object();
        }
        if let Some(origin) = &entry.origin {
            writer.key("origin");
            write_origin(writer, origin);
        }
        writer.key(kind_name(&entry.kind));
        writer.begin_object();
        write_kind(writer, &entry.kind);
        writer.end_object();
    }
}

const fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Said(_) => "said",
        Kind::Thought(_) => "thought",
        Kind::Called(_) => "called",
        Kind::Returned(_) => "returned",
        Kind::HandedOver(_) => "handed_over",
        Kind::Summarised(_) => "summarised",
        Kind::Reference { .. } => "reference",
        Kind::Opaque { .. } => "opaque",
    }
}

fn write_kind(writer: &mut Writer, kind: &Kind) {
    match kind {
        Kind::Said(said) => {
            writer.field_str("role", role_name(said.role));
            if said.standing {
                writer.field_bool("standing", true);
            }
            write_parts(writer, &said.parts);
        }
        Kind::Thought(thought) => write_thought(writer, thought),
        Kind::Called(call) => write_call(writer, call),
        Kind::Returned(returned) => write_return(writer, returned),
        Kind::HandedOver(handover) => write_handover(writer, handover),
        Kind::Summarised(summary) => {
            writer.field_str("text", &summary.text);
            writer.field_uint("covers", u64::from(summary.covers));
        }
        Kind::Reference { id } => writer.field_str("id", id),
        Kind::Opaque { kind } => writer.field_str("kind", kind),
    }
}

fn write_thought(writer: &mut Writer, thought: &Thought) {
    for (name, texts) in [("summary", &thought.summary), ("content", &thought.content)] {
        writer.key(name);
        writer.begin_array();
        texts.iter().for_each(|text| writer.string(text));
        writer.end_array();
    }
    match &thought.seal {
        Some(Seal::Signature(seal)) => writer.field_str("signature", seal),
        Some(Seal::Redacted(seal)) => writer.field_str("redacted", seal),
        Some(Seal::Encrypted(seal)) => writer.field_str("encrypted", seal),
        None => {}
    }
    optional(writer, "item_id", thought.item_id.as_ref());
}

fn write_call(writer: &mut Writer, call: &Call) {
    writer.field_str("id", &call.id);
    optional(writer, "item_id", call.item_id.as_ref());
    writer.field_str("name", &call.name);
    optional(writer, "namespace", call.namespace.as_ref());
    match &call.input {
        Input::Arguments(text) => writer.field_str("arguments", text),
        Input::Freeform(text) => writer.field_str("freeform", text),
    }
}

fn write_return(writer: &mut Writer, returned: &Return) {
    optional(writer, "call_id", returned.call_id.as_ref());
    optional(writer, "item_id", returned.item_id.as_ref());
    optional(writer, "name", returned.name.as_ref());
    writer.field_str("outcome", outcome_name(returned.outcome));
    if returned.freeform {
        writer.field_bool("freeform", true);
    }
    write_parts(writer, &returned.parts);
}

fn write_handover(writer: &mut Writer, handover: &Handover) {
    if let Some(from) = &handover.from {
        writer.key("from");
        write_origin(writer, from);
    }
    writer.key("to");
    write_origin(writer, &handover.to);
    writer.field_str("by", &handover.by);
    writer.field_str("reason", &handover.reason);
    if let Some(brief) = &handover.brief {
        writer.field_str("brief", brief);
    }
    if let Some(continued) = &handover.continues {
        writer.key("continues");
        writer.begin_object();
        writer.field_str("conversation", continued.conversation.as_str());
        writer.field_str("entry", continued.entry.as_str());
        writer.end_object();
    }
}

fn write_parts(writer: &mut Writer, parts: &[Part]) {
    writer.key("parts");
    writer.begin_array();
    for part in parts {
        writer.begin_object();
        match &part.content {
            Content::Text(text) => writer.field_str("text", text),
            Content::Refusal(text) => writer.field_str("refusal", text),
            Content::Image(image) => {
                writer.key("image");
                write_media(writer, &image.media);
                optional(writer, "detail", image.detail.as_ref());
            }
            Content::File(file) => {
                writer.key("file");
                write_media(writer, &file.media);
                optional(writer, "name", file.name.as_ref());
            }
            Content::Opaque { kind } => writer.field_str("opaque", kind),
        }
        if let Some(wire) = &part.wire {
            writer.key("wire");
            writer.begin_object();
            write_wire(writer, wire);
            writer.end_object();
        }
        writer.end_object();
    }
    writer.end_array();
}

fn write_media(writer: &mut Writer, media: &Media) {
    writer.begin_object();
    match media {
        Media::Url(url) => writer.field_str("url", url),
        Media::Inline { media_type, base64 } => {
            writer.field_str("media_type", media_type);
            writer.field_str("base64", base64);
        }
        Media::Plain(text) => writer.field_str("plain", text),
        Media::Stored(id) => writer.field_str("stored", id),
    }
    writer.end_object();
}

fn write_wire(writer: &mut Writer, wire: &Wire) {
    writer.field_str("dialect", wire.dialect.name());
    writer.field_str("text", &wire.text);
    if !wire.extras.is_empty() {
        writer.key("extras");
        writer.begin_array();
        for Extra { name, value } in &wire.extras {
            writer.begin_array();
            writer.string(name);
            writer.string(value);
            writer.end_array();
        }
        writer.end_array();
    }
}

fn write_origin(writer: &mut Writer, origin: &Origin) {
    writer.begin_object();
    writer.field_str("backend", &origin.backend);
    writer.field_str("dialect", origin.dialect.name());
    writer.field_str("model", &origin.model);
    writer.end_object();
}

fn optional(writer: &mut Writer, name: &str, text: Option<&Text>) {
    if let Some(text) = text {
        writer.field_str(name, text);
    }
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

pub(super) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
        Outcome::Denied => "denied",
        Outcome::Interrupted => "interrupted",
        Outcome::Unknown => "unknown",
    }
}
