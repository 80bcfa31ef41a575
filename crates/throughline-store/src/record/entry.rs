//! Entries and envelopes, field by field, out and in.
//!
//! The two directions stand side by side and in the same order. A tag, once given out, keeps its meaning; a
//! new variant gets a new tag and a new format version.

use std::sync::Arc;

use throughline_core::{
    Call, Content, Continued, ConversationId, Dialect, Entry, EntryId, Envelope, Extra, File, Handover,
    Image, Input, Kind, Media, Origin, Outcome, Part, Return, Role, Said, Seal, Summary, Text, Thought,
    Trace, Wire,
};

use super::text::{Reader, Writer};
use super::{RecordError, Resolve};
use crate::StoreError;
use crate::digest::Digest;

const INTACT: u8 = 1;
const HAS_ORIGIN: u8 = 2;
const HAS_WIRE: u8 = 4;
const OWN_ENVELOPE: u8 = 8;
const SHARED_ENVELOPE: u8 = 16;

/// Writes an entry; `shared` is the digest of its envelope, where that is stored on its own.
pub(super) fn write(writer: &mut Writer, entry: &Entry, shared: Option<Digest>) {
    writer.byte(flags(entry, shared));
    match (&entry.envelope, shared) {
        (None, _) => {}
        (Some((envelope, position)), Some(digest)) => {
            writer.digest(digest);
            writer.number(u64::from(*position));
            writer.set_context(&envelope.wire.text);
        }
        (Some((envelope, position)), None) => {
            write_envelope(writer, envelope);
            writer.number(u64::from(*position));
        }
    }
    if let Some(wire) = &entry.wire {
        if entry.envelope.is_none() {
            write_outer_wire(writer, wire);
        } else {
            write_wire(writer, wire);
        }
    }
    if let Some(origin) = &entry.origin {
        write_origin(writer, origin);
    }
    write_kind(writer, &entry.kind);
}

/// Reads an entry, all but its place.
pub(super) fn read(reader: &mut Reader<'_>, resolve: Resolve<'_>) -> Result<Entry, StoreError> {
    let flags = reader.byte()?;
    let has = |flag: u8| flags & flag != 0;
    let envelope = if has(SHARED_ENVELOPE) {
        let digest = reader.digest()?;
        let position = reader.small()?;
        let shared = resolve(digest, position)?;
        reader.share_context(&shared.text);
        Some((shared.envelope, position))
    } else if has(OWN_ENVELOPE) {
        let envelope = Arc::new(read_envelope(reader)?);
        Some((envelope, reader.small()?))
    } else {
        None
    };
    let wire = match (has(HAS_WIRE), &envelope) {
        (false, _) => None,
        (true, None) => Some(read_outer_wire(reader)?),
        (true, Some(_)) => Some(read_wire(reader)?),
    };
    let origin = if has(HAS_ORIGIN) { Some(read_origin(reader)?) } else { None };
    let kind = read_kind(reader)?;
    Ok(Entry { kind, origin, wire, envelope, place: None, intact: has(INTACT), trace: Trace::Untracked })
}

/// Reads which envelope an entry shares with others, and nothing else.
pub(super) fn read_shared(reader: &mut Reader<'_>) -> Result<Option<Digest>, RecordError> {
    let is_shared = reader.byte()? & SHARED_ENVELOPE != 0;
    if is_shared { Ok(Some(reader.digest()?)) } else { Ok(None) }
}

/// Writes an envelope, and makes its text the context of what follows.
pub(super) fn write_envelope(writer: &mut Writer, envelope: &Envelope) {
    writer.number(u64::from(envelope.entries));
    write_outer_wire(writer, &envelope.wire);
}

pub(super) fn read_envelope(reader: &mut Reader<'_>) -> Result<Envelope, RecordError> {
    let entries = reader.small()?;
    Ok(Envelope { wire: read_outer_wire(reader)?, entries })
}

fn flags(entry: &Entry, shared: Option<Digest>) -> u8 {
    let flag = |flag: u8, holds: bool| if holds { flag } else { 0 };
    flag(INTACT, entry.intact)
        | flag(HAS_ORIGIN, entry.origin.is_some())
        | flag(HAS_WIRE, entry.wire.is_some())
        | flag(OWN_ENVELOPE, entry.envelope.is_some() && shared.is_none())
        | flag(SHARED_ENVELOPE, shared.is_some())
}

/// Writes the outermost wire form of a record in full, as the context of everything in it.
fn write_outer_wire(writer: &mut Writer, wire: &Wire) {
    writer.byte(dialect_tag(wire.dialect));
    writer.text(&wire.text);
    writer.set_context(&wire.text);
    write_extras(writer, &wire.extras);
}

fn read_outer_wire(reader: &mut Reader<'_>) -> Result<Wire, RecordError> {
    let dialect = dialect(reader.byte()?)?;
    let text = reader.text()?;
    let text = reader.set_context(&text);
    Ok(Wire { dialect, text, extras: read_extras(reader)? })
}

fn write_wire(writer: &mut Writer, wire: &Wire) {
    writer.byte(dialect_tag(wire.dialect));
    writer.text(&wire.text);
    write_extras(writer, &wire.extras);
}

fn read_wire(reader: &mut Reader<'_>) -> Result<Wire, RecordError> {
    Ok(Wire { dialect: dialect(reader.byte()?)?, text: reader.text()?, extras: read_extras(reader)? })
}

fn write_extras(writer: &mut Writer, extras: &[Extra]) {
    writer.number(extras.len() as u64);
    for extra in extras {
        writer.text(&extra.name);
        writer.text(&extra.value);
    }
}

fn read_extras(reader: &mut Reader<'_>) -> Result<Vec<Extra>, RecordError> {
    reader.list(|reader| Ok(Extra { name: reader.text()?, value: reader.text()? }))
}

fn write_origin(writer: &mut Writer, origin: &Origin) {
    writer.text(&origin.backend);
    writer.byte(dialect_tag(origin.dialect));
    writer.text(&origin.model);
}

fn read_origin(reader: &mut Reader<'_>) -> Result<Origin, RecordError> {
    Ok(Origin { backend: reader.text()?, dialect: dialect(reader.byte()?)?, model: reader.text()? })
}

fn write_kind(writer: &mut Writer, kind: &Kind) {
    match kind {
        Kind::Said(said) => {
            writer.byte(0);
            writer.byte(role_tag(said.role));
            writer.byte(u8::from(said.standing));
            write_parts(writer, &said.parts);
        }
        Kind::Thought(thought) => {
            writer.byte(1);
            write_thought(writer, thought);
        }
        Kind::Called(call) => {
            writer.byte(2);
            write_call(writer, call);
        }
        Kind::Returned(returned) => {
            writer.byte(3);
            write_return(writer, returned);
        }
        Kind::HandedOver(handover) => {
            writer.byte(8);
            write_handover(writer, handover);
        }
        Kind::Summarised(summary) => {
            writer.byte(5);
            writer.text(&summary.text);
            writer.number(u64::from(summary.covers));
        }
        Kind::Reference { id } => {
            writer.byte(6);
            writer.text(id);
        }
        Kind::Opaque { kind } => {
            writer.byte(7);
            writer.text(kind);
        }
    }
}

fn read_kind(reader: &mut Reader<'_>) -> Result<Kind, RecordError> {
    Ok(match reader.byte()? {
        0 => {
            let role = role(reader.byte()?)?;
            let standing = reader.flag()?;
            Kind::Said(Said { role, parts: read_parts(reader)?, standing })
        }
        1 => Kind::Thought(read_thought(reader)?),
        2 => Kind::Called(read_call(reader)?),
        3 => Kind::Returned(read_return(reader)?),
        4 => Kind::HandedOver(read_bare_handover(reader)?),
        5 => Kind::Summarised(Summary { text: reader.text()?, covers: reader.small()? }),
        6 => Kind::Reference { id: reader.text()? },
        7 => Kind::Opaque { kind: reader.text()? },
        8 => Kind::HandedOver(read_handover(reader)?),
        _ => return Err(RecordError::Invalid("kind of entry")),
    })
}

fn write_thought(writer: &mut Writer, thought: &Thought) {
    write_texts(writer, &thought.summary);
    write_texts(writer, &thought.content);
    match &thought.seal {
        None => writer.byte(0),
        Some(Seal::Signature(text)) => tagged(writer, 1, text),
        Some(Seal::Redacted(text)) => tagged(writer, 2, text),
        Some(Seal::Encrypted(text)) => tagged(writer, 3, text),
    }
    writer.optional(thought.item_id.as_ref());
}

fn read_thought(reader: &mut Reader<'_>) -> Result<Thought, RecordError> {
    let summary = reader.list(Reader::text)?;
    let content = reader.list(Reader::text)?;
    let seal = match reader.byte()? {
        0 => None,
        1 => Some(Seal::Signature(reader.text()?)),
        2 => Some(Seal::Redacted(reader.text()?)),
        3 => Some(Seal::Encrypted(reader.text()?)),
        _ => return Err(RecordError::Invalid("seal")),
    };
    Ok(Thought { summary, content, seal, item_id: reader.optional()? })
}

fn write_call(writer: &mut Writer, call: &Call) {
    writer.text(&call.id);
    writer.optional(call.item_id.as_ref());
    writer.text(&call.name);
    writer.optional(call.namespace.as_ref());
    match &call.input {
        Input::Arguments(text) => tagged(writer, 0, text),
        Input::Freeform(text) => tagged(writer, 1, text),
    }
}

fn read_call(reader: &mut Reader<'_>) -> Result<Call, RecordError> {
    let (id, item_id) = (reader.text()?, reader.optional()?);
    let (name, namespace) = (reader.text()?, reader.optional()?);
    let input = match reader.byte()? {
        0 => Input::Arguments(reader.text()?),
        1 => Input::Freeform(reader.text()?),
        _ => return Err(RecordError::Invalid("input")),
    };
    Ok(Call { id, item_id, name, namespace, input })
}

fn write_return(writer: &mut Writer, returned: &Return) {
    writer.optional(returned.call_id.as_ref());
    writer.optional(returned.item_id.as_ref());
    writer.optional(returned.name.as_ref());
    writer.byte(outcome_tag(returned.outcome));
    writer.byte(u8::from(returned.freeform));
    write_parts(writer, &returned.parts);
}

fn read_return(reader: &mut Reader<'_>) -> Result<Return, RecordError> {
    let (call_id, item_id, name) = (reader.optional()?, reader.optional()?, reader.optional()?);
    let outcome = outcome(reader.byte()?)?;
    let freeform = reader.flag()?;
    Ok(Return { call_id, item_id, name, parts: read_parts(reader)?, outcome, freeform })
}

fn write_handover(writer: &mut Writer, handover: &Handover) {
    writer.byte(u8::from(handover.from.is_some()));
    if let Some(from) = &handover.from {
        write_origin(writer, from);
    }
    write_origin(writer, &handover.to);
    writer.text(&handover.reason);
    writer.text(&handover.by);
    writer.optional(handover.brief.as_ref());
    writer.byte(u8::from(handover.continues.is_some()));
    if let Some(Continued { conversation, entry }) = &handover.continues {
        writer.text(conversation.as_str());
        writer.text(entry.as_str());
    }
}

fn read_handover(reader: &mut Reader<'_>) -> Result<Handover, RecordError> {
    let bare = read_bare_handover(reader)?;
    let (by, brief) = (reader.text()?, reader.optional()?);
    let continues = if reader.flag()? {
        let (conversation, entry) = (ConversationId::new(reader.text()?), EntryId::new(reader.text()?));
        Some(Continued { conversation, entry })
    } else {
        None
    };
    Ok(Handover { by, brief, continues, ..bare })
}

/// Reads a handover of format 1, which only says who took over and why.
fn read_bare_handover(reader: &mut Reader<'_>) -> Result<Handover, RecordError> {
    let from = if reader.flag()? { Some(read_origin(reader)?) } else { None };
    let (to, reason) = (read_origin(reader)?, reader.text()?);
    Ok(Handover { from, to, by: Text::default(), reason, brief: None, continues: None })
}

fn write_parts(writer: &mut Writer, parts: &[Part]) {
    writer.number(parts.len() as u64);
    for part in parts {
        writer.byte(u8::from(part.wire.is_some()));
        if let Some(wire) = &part.wire {
            write_wire(writer, wire);
        }
        write_content(writer, &part.content);
    }
}

fn read_parts(reader: &mut Reader<'_>) -> Result<Vec<Part>, RecordError> {
    reader.list(|reader| {
        let wire = if reader.flag()? { Some(read_wire(reader)?) } else { None };
        Ok(Part { content: read_content(reader)?, wire })
    })
}

fn write_content(writer: &mut Writer, content: &Content) {
    match content {
        Content::Text(text) => tagged(writer, 0, text),
        Content::Refusal(text) => tagged(writer, 1, text),
        Content::Image(image) => {
            writer.byte(2);
            write_media(writer, &image.media);
            writer.optional(image.detail.as_ref());
        }
        Content::File(file) => {
            writer.byte(3);
            write_media(writer, &file.media);
            writer.optional(file.name.as_ref());
        }
        Content::Opaque { kind } => tagged(writer, 4, kind),
    }
}

fn read_content(reader: &mut Reader<'_>) -> Result<Content, RecordError> {
    Ok(match reader.byte()? {
        0 => Content::Text(reader.text()?),
        1 => Content::Refusal(reader.text()?),
        2 => Content::Image(Image { media: read_media(reader)?, detail: reader.optional()? }),
        3 => Content::File(File { media: read_media(reader)?, name: reader.optional()? }),
        4 => Content::Opaque { kind: reader.text()? },
        _ => return Err(RecordError::Invalid("part")),
    })
}

fn write_media(writer: &mut Writer, media: &Media) {
    match media {
        Media::Url(url) => tagged(writer, 0, url),
        Media::Inline { media_type, base64 } => {
            tagged(writer, 1, media_type);
            writer.text(base64);
        }
        Media::Plain(text) => tagged(writer, 2, text),
        Media::Stored(id) => tagged(writer, 3, id),
    }
}

fn read_media(reader: &mut Reader<'_>) -> Result<Media, RecordError> {
    Ok(match reader.byte()? {
        0 => Media::Url(reader.text()?),
        1 => Media::Inline { media_type: reader.text()?, base64: reader.text()? },
        2 => Media::Plain(reader.text()?),
        3 => Media::Stored(reader.text()?),
        _ => return Err(RecordError::Invalid("media")),
    })
}

fn write_texts(writer: &mut Writer, texts: &[Text]) {
    writer.number(texts.len() as u64);
    for text in texts {
        writer.text(text);
    }
}

fn tagged(writer: &mut Writer, tag: u8, text: &str) {
    writer.byte(tag);
    writer.text(text);
}

const fn dialect_tag(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::Chat => 0,
        Dialect::Messages => 1,
        Dialect::Responses => 2,
    }
}

const fn dialect(tag: u8) -> Result<Dialect, RecordError> {
    match tag {
        0 => Ok(Dialect::Chat),
        1 => Ok(Dialect::Messages),
        2 => Ok(Dialect::Responses),
        _ => Err(RecordError::Invalid("dialect")),
    }
}

const fn role_tag(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
    }
}

const fn role(tag: u8) -> Result<Role, RecordError> {
    match tag {
        0 => Ok(Role::System),
        1 => Ok(Role::Developer),
        2 => Ok(Role::User),
        3 => Ok(Role::Assistant),
        _ => Err(RecordError::Invalid("role")),
    }
}

const fn outcome_tag(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::Error => 1,
        Outcome::Denied => 2,
        Outcome::Interrupted => 3,
        Outcome::Unknown => 4,
    }
}

const fn outcome(tag: u8) -> Result<Outcome, RecordError> {
    match tag {
        0 => Ok(Outcome::Ok),
        1 => Ok(Outcome::Error),
        2 => Ok(Outcome::Denied),
        3 => Ok(Outcome::Interrupted),
        4 => Ok(Outcome::Unknown),
        _ => Err(RecordError::Invalid("outcome")),
    }
}
