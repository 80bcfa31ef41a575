//! Checksums: 64 bits of BLAKE3 over a row, column by column, kept in the row's last column.
//!
//! Contents and entries are named by their digest, which tells damage to them. What stands around them (which
//! exchange, when, how it ended, what a request is based on) has no such name; its checksum tells. It covers the
//! columns as `upkeep/rows.rs` names them, with ids in place of numbers, so it is the same in every store and a
//! copy takes it along. A column that holds nothing adds nothing: one that is added later leaves old checksums valid.
//!
//! Against accidents, not against somebody who can write to the database: whoever can, can compute it as well.

use throughline_core::{ConversationId, EntryId, Text, Usage};

use crate::bodies::Differs;
use crate::digest::{Digest, Digester, Domain};
use crate::pack::Packed;
use crate::tags::{dialect_tag, document_tag, kind_tag};
use crate::upkeep::{Cell, Table};
use crate::{
    Attempt, Chain, CompactionStep, DocumentKind, Exchange, ExchangeId, Learned, NewConversation, Scope,
    Setting,
};

/// What stands in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'f> {
    Nothing,
    Text(&'f str),
    Number(i64),
    Digest(Digest),
    Digests(&'f [Digest]),
    Bytes(&'f [u8]),
}

/// Returns the checksum of a row: `fields` are its columns, in their order and without the checksum.
pub(crate) fn row_checksum(table: &str, fields: &[Field<'_>]) -> i64 {
    let table = Table::named(table);
    debug_assert!(table.has_checksum() && fields.len() == table.columns.len() - 1, "{}", table.name);
    let mut digester = Digester::new(Domain::Row);
    digester.piece(table.name.as_bytes());
    for ((name, _), field) in table.columns.iter().zip(fields) {
        if !matches!(field, Field::Nothing) {
            digester.piece(name.as_bytes());
            field.add_to(&mut digester);
        }
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digester.finish().bytes()[..8]);
    i64::from_le_bytes(bytes)
}

/// Returns the checksum of a row that was read.
pub(crate) fn checksum_of_cells(table: &str, cells: &[Cell]) -> i64 {
    let fields: Vec<Field<'_>> = cells.iter().map(Field::from).collect();
    row_checksum(table, &fields)
}

impl Field<'_> {
    pub(crate) fn add_to(self, digester: &mut Digester) {
        match self {
            Self::Nothing => digester.raw(b"-"),
            Self::Text(text) => {
                digester.raw(b"t");
                digester.piece(text.as_bytes());
            }
            Self::Number(number) => {
                digester.raw(b"n");
                digester.raw(&number.to_le_bytes());
            }
            Self::Digest(digest) => {
                digester.raw(b"d");
                digester.raw(digest.bytes());
            }
            Self::Digests(digests) => {
                digester.raw(b"l");
                digester.raw(&(digests.len() as u64).to_le_bytes());
                digests.iter().for_each(|digest| digester.raw(digest.bytes()));
            }
            Self::Bytes(bytes) => {
                digester.raw(b"b");
                digester.piece(bytes);
            }
        }
    }
}

impl<'f> From<&'f Cell> for Field<'f> {
    fn from(cell: &'f Cell) -> Self {
        match cell {
            Cell::Nothing => Self::Nothing,
            Cell::Text(text) => Self::Text(text),
            Cell::Number(number) => Self::Number(*number),
            Cell::Digest(digest) => Self::Digest(*digest),
            Cell::Digests(digests) => Self::Digests(digests),
            Cell::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

/// A conversation as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationRow {
    pub id: ConversationId,
    pub created: i64,
    pub updated: i64,
    pub identified: Text,
    pub title: Option<Text>,
}

impl ConversationRow {
    /// Returns the row of a conversation that begins.
    pub fn begun(new: &NewConversation) -> Self {
        let (created, updated) = (new.at.0, new.at.0);
        Self {
            id: new.id.clone(),
            created,
            updated,
            identified: new.identified.clone(),
            title: new.title.clone(),
        }
    }

    /// Takes in that somebody begins a conversation that is there already.
    pub fn begin_again(&mut self, new: &NewConversation) {
        self.touch(new.at.0);
        self.title = self.title.take().or_else(|| new.title.clone());
    }

    /// Takes in that something was added.
    pub fn touch(&mut self, at: i64) {
        self.updated = self.updated.max(at);
    }

    pub fn checksum(&self) -> i64 {
        row_checksum(
            "conversations",
            &[
                Field::Text(self.id.as_str()),
                Field::Number(self.created),
                Field::Number(self.updated),
                Field::Text(&self.identified),
                text(&self.title),
            ],
        )
    }
}

/// What the row of an entry has beside its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFields<'n> {
    pub sprout: &'n crate::batch::Sprout,
    pub conversation: &'n ConversationId,
    pub exchange: Option<&'n ExchangeId>,
    pub parent: Option<Digest>,
    pub chain: Chain,
    pub counts: bool,
    pub at: i64,
    pub tool: Option<&'n str>,
}

impl NodeFields<'_> {
    pub fn checksum(&self) -> i64 {
        let sprout = self.sprout;
        let number =
            |number: Option<u32>| number.map_or(Field::Nothing, |number| Field::Number(number.into()));
        row_checksum(
            "nodes",
            &[
                Field::Digest(sprout.id),
                Field::Text(self.conversation.as_str()),
                self.exchange.map_or(Field::Nothing, |id| Field::Text(id.as_str())),
                digest(self.parent),
                Field::Digest(sprout.encoded.record.digest),
                digest(sprout.encoded.envelope.as_ref().map(|envelope| envelope.digest)),
                Field::Digest(self.chain.0),
                Field::Number(self.counts.into()),
                Field::Number(self.at),
                Field::Number(kind_tag(sprout.kind)),
                self.tool.map_or(Field::Nothing, Field::Text),
                text(&sprout.call_id),
                number(sprout.place.map(|place| place.message)),
                number(sprout.place.and_then(|place| place.block)),
            ],
        )
    }
}

pub(crate) fn key_checksum(key: &str, conversation: &ConversationId) -> i64 {
    row_checksum("keys", &[Field::Text(key), Field::Text(conversation.as_str())])
}

pub(crate) fn exchange_checksum(exchange: &Exchange) -> i64 {
    let entry = |id: &Option<EntryId>| digest(id.as_ref().and_then(Digest::from_entry_id));
    let tokens = |count: fn(&Usage) -> u64| {
        exchange.usage.as_ref().map_or(Field::Nothing, |usage| Field::Number(count(usage).cast_signed()))
    };
    let response = exchange.response.as_ref();
    row_checksum(
        "exchanges",
        &[
            Field::Text(exchange.id.as_str()),
            Field::Text(exchange.conversation.as_str()),
            entry(&exchange.before),
            entry(&exchange.after),
            Field::Number(dialect_tag(exchange.dialect)),
            text(&exchange.client),
            text(&exchange.asked_model),
            Field::Number(exchange.started.0),
            number(exchange.ended.map(|at| at.0)),
            text(&exchange.ending),
            number(exchange.status.map(i64::from)),
            tokens(|usage| usage.input),
            tokens(|usage| usage.cache_read),
            tokens(|usage| usage.cache_written),
            tokens(|usage| usage.output),
            tokens(|usage| usage.reasoning),
            response.map_or(Field::Nothing, |response| Field::Text(&response.id)),
            Field::Number(response.is_some_and(|response| response.stored).into()),
            Field::Number(response.is_some_and(|response| response.deleted).into()),
        ],
    )
}

pub(crate) fn attempt_checksum(exchange: &ExchangeId, place: i64, attempt: &Attempt) -> i64 {
    row_checksum(
        "attempts",
        &[
            Field::Text(exchange.as_str()),
            Field::Number(place),
            Field::Text(&attempt.backend),
            Field::Number(dialect_tag(attempt.dialect)),
            text(&attempt.model),
            text(&attempt.strategy),
            Field::Number(attempt.started.0),
            number(attempt.ended.map(|at| at.0)),
            number(attempt.status.map(i64::from)),
            text(&attempt.failure),
            attempt.compaction.as_ref().map_or(Field::Nothing, |step| Field::Text(step.exchange.as_str())),
            number(attempt.compaction.as_ref().map(|step| step.attempt.into())),
            number(attempt.plan.map(|plan| plan.before.cast_signed())),
            number(attempt.plan.map(|plan| plan.after.cast_signed())),
            number(attempt.plan.map(|plan| plan.tools.cast_signed())),
            text(&attempt.continues),
            text(&attempt.recall),
        ],
    )
}

pub(crate) fn item_checksum(id: &str, node: Digest) -> i64 {
    row_checksum("items", &[Field::Text(id), Field::Digest(node)])
}

/// Returns the checksum of a request; `base` and `sources` are the digests of what it rests on.
pub(crate) fn body_checksum<K>(
    name: Digest,
    differs: &Differs<'_, K>,
    base: Option<Digest>,
    sources: Option<&[Digest]>,
) -> i64 {
    let delta = &differs.delta;
    let [codec, size, bytes] = packed(&delta.middle);
    row_checksum(
        "bodies",
        &[
            Field::Digest(name),
            digest(base),
            Field::Number(differs.depth),
            sources.map_or(Field::Nothing, Field::Digests),
            Field::Number(delta.head as i64),
            Field::Number(delta.tail as i64),
            codec,
            size,
            bytes,
        ],
    )
}

pub(crate) fn document_checksum(
    exchange: &ExchangeId,
    attempt: u32,
    kind: DocumentKind,
    body: Digest,
) -> i64 {
    row_checksum(
        "documents",
        &[
            Field::Text(exchange.as_str()),
            Field::Number(attempt.into()),
            Field::Number(document_tag(kind)),
            Field::Digest(body),
        ],
    )
}

pub(crate) fn events_checksum(exchange: &ExchangeId, attempt: u32, events: &Packed<'_>) -> i64 {
    let [codec, size, bytes] = packed(events);
    row_checksum(
        "events",
        &[Field::Text(exchange.as_str()), Field::Number(attempt.into()), codec, size, bytes],
    )
}

pub(crate) fn answer_checksum(exchange: &ExchangeId, answer: &Packed<'_>) -> i64 {
    let [codec, size, bytes] = packed(answer);
    row_checksum("answers", &[Field::Text(exchange.as_str()), codec, size, bytes])
}

/// Returns the checksum of a step of compaction; `decisions` is what it decides, packed.
pub(crate) fn step_checksum(step: &CompactionStep, decisions: &Packed<'_>) -> i64 {
    let [codec, size, bytes] = packed(decisions);
    row_checksum(
        "compaction_steps",
        &[
            Field::Text(step.id.exchange.as_str()),
            Field::Number(step.id.attempt.into()),
            Field::Text(step.conversation.as_str()),
            Field::Text(&step.backend),
            Field::Text(&step.model),
            Field::Number(step.at.0),
            step.follows.as_ref().map_or(Field::Nothing, |follows| Field::Text(follows.exchange.as_str())),
            number(step.follows.as_ref().map(|follows| follows.attempt.into())),
            codec,
            size,
            bytes,
            text(&step.summary),
        ],
    )
}

pub(crate) fn learned_checksum(learned: &Learned) -> i64 {
    row_checksum(
        "learned",
        &[
            Field::Text(&learned.backend),
            Field::Text(&learned.model),
            Field::Text(&learned.capability),
            Field::Text(&learned.verdict),
            Field::Text(&learned.reason),
            Field::Number(learned.at.0),
            number(learned.expires.map(|at| at.0)),
        ],
    )
}

pub(crate) fn setting_checksum(setting: &Setting) -> i64 {
    let scope = match &setting.scope {
        Scope::Everywhere => Field::Nothing,
        Scope::Conversation(id) => Field::Text(id.as_str()),
    };
    row_checksum(
        "settings",
        &[scope, Field::Text(&setting.name), text(&setting.value), Field::Number(setting.at.0)],
    )
}

fn text(text: &Option<Text>) -> Field<'_> {
    text.as_deref().map_or(Field::Nothing, Field::Text)
}

fn number<'f>(number: Option<i64>) -> Field<'f> {
    number.map_or(Field::Nothing, Field::Number)
}

fn digest<'f>(digest: Option<Digest>) -> Field<'f> {
    digest.map_or(Field::Nothing, Field::Digest)
}

fn packed<'f>(packed: &'f Packed<'_>) -> [Field<'f>; 3] {
    let (codec, size) = (packed.codec as i64, packed.size as i64);
    [Field::Number(codec), Field::Number(size), Field::Bytes(&packed.bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_tells_which_column_something_stands_in() {
        let fields = |first: Field<'static>, second| [first, second];
        let (a, nothing) = (Field::Text("a"), Field::Nothing);
        assert_ne!(row_checksum("keys", &fields(a, nothing)), row_checksum("keys", &fields(nothing, a)));
        assert_ne!(row_checksum("keys", &fields(a, nothing)), row_checksum("items", &fields(a, nothing)));
        assert_ne!(
            row_checksum("keys", &fields(a, Field::Text(""))),
            row_checksum("keys", &fields(a, nothing))
        );
    }
}
