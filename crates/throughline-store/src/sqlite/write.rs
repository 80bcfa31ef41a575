//! Writes a batch into a transaction.
//!
//! Conversations and exchanges come first, so that the rest may refer to them whatever its order. What is
//! there already is left alone: that makes it harmless for two writers to bring the same.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::{ConversationId, EntryId, Text, Usage};

use super::bodies::{Lately, Numbered};
use super::rows::update_exchange_checksum;
use super::{compaction, documents};
use crate::batch::Sprout;
use crate::checksum::{
    ConversationRow, NodeFields, answer_checksum, attempt_checksum, events_checksum, exchange_checksum,
    item_checksum, key_checksum, learned_checksum, setting_checksum,
};
use crate::digest::Digest;
use crate::prepared::{Piece, Prepared};
use crate::record::Blob;
use crate::{
    Attempt, Chain, Exchange, ExchangeId, Extension, KeptKind, Learned, NewConversation, Receipt,
    ResponseMark, Scope, Setting, StoreError, Write,
};

/// Writes one batch.
pub(super) struct Writing<'w> {
    pub connection: &'w Connection,
    pub prepared: &'w Prepared,
    pub bodies: &'w mut Lately,
    pub new_entries: usize,
    /// Conversations that something was added to, and when.
    pub touched: BTreeMap<ConversationId, i64>,
}

/// The node that the next one follows.
#[derive(Clone, Copy)]
struct Parent {
    n: i64,
    id: Digest,
    chain: Chain,
}

/// Where a node is put.
#[derive(Clone, Copy)]
struct Place {
    conversation: i64,
    exchange: Option<i64>,
    parent: Option<Parent>,
}

/// The tools of the latest calls of an extension, by the ids of the calls. To look each up in the table would take time
/// with the square of their number where many results name one call.
type CallTools<'s> = BTreeMap<&'s Text, Option<String>>;

impl Writing<'_> {
    pub fn write(mut self) -> Result<Receipt, StoreError> {
        let prepared = self.prepared;
        let writes = &prepared.batch.writes;
        for write in writes {
            if let Write::Conversation(new) = write {
                self.begin(new)?;
            }
        }
        for write in writes {
            if let Write::Exchange(exchange) = write {
                self.update(exchange)?;
            }
        }
        for (number, write) in writes.iter().enumerate() {
            self.write_one(number, write)?;
        }
        for write in writes {
            if let Write::Exchange(exchange) = write {
                for entry in exchange.before.iter().chain(&exchange.after) {
                    self.node(entry)?;
                }
            }
        }
        self.update_touched()?;
        Ok(Receipt { new_entries: self.new_entries })
    }

    fn write_one(&mut self, number: usize, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Conversation(_) | Write::Exchange(_) => Ok(()),
            Write::Entries(extension) => self.extend(extension),
            Write::Document { exchange, attempt, kind, body } => {
                let (n, conversation) = self.exchange(exchange)?;
                if let Some(Piece::Digest(digest)) = self.prepared.piece(number) {
                    let place =
                        documents::Place { n, conversation, exchange, attempt: *attempt, kind: *kind };
                    documents::write(self.connection, self.bodies, place, *digest, body)?;
                }
                Ok(())
            }
            Write::Events { exchange, attempt, events } if !events.is_empty() => {
                self.events(number, exchange, *attempt)
            }
            Write::Events { exchange, .. } => self.exchange(exchange).map(drop),
            Write::Answer { exchange, .. } => self.answer(number, exchange),
            Write::Compaction(step) => match self.prepared.piece(number) {
                Some(Piece::Packed(packed)) => compaction::append(self.connection, step, packed),
                _ => Ok(()),
            },
            Write::ForgetResponse { id } => self.forget(id),
            Write::Learned(learned) => self.learn(learned),
            Write::Unlearned { backend, model, capability } => {
                self.connection
                    .prepare_cached(
                        "DELETE FROM learned WHERE backend = ?1 AND model = ?2 AND capability = ?3",
                    )?
                    .execute(params![backend.as_str(), model.as_str(), capability.as_str()])?;
                Ok(())
            }
            Write::Setting(setting) => self.set(setting),
        }
    }

    fn begin(&mut self, new: &NewConversation) -> Result<(), StoreError> {
        let n = match self.conversation_row(&new.id)? {
            Some((n, kept)) => {
                let mut row = kept.clone();
                row.begin_again(new);
                if row != kept {
                    self.update_conversation(n, &row)?;
                }
                n
            }
            None => self.insert_conversation(&ConversationRow::begun(new))?,
        };
        for key in &new.keys {
            self.connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO keys (key, conversation, checksum) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![key.as_str(), n, key_checksum(key, &new.id)])?;
        }
        Ok(())
    }

    fn conversation_row(&self, id: &ConversationId) -> Result<Option<(i64, ConversationRow)>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT n, created, updated, identified, title FROM conversations WHERE id = ?1")?
            .query_row([id.as_str()], |row| {
                let kept = ConversationRow {
                    id: id.clone(),
                    created: row.get(1)?,
                    updated: row.get(2)?,
                    identified: row.get::<_, String>(3)?.into(),
                    title: row.get::<_, Option<String>>(4)?.map(Text::from),
                };
                Ok((row.get(0)?, kept))
            })
            .optional()?;
        Ok(found)
    }

    fn insert_conversation(&self, row: &ConversationRow) -> Result<i64, StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO conversations (id, created, updated, identified, title, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                row.id.as_str(),
                row.created,
                row.updated,
                row.identified.as_str(),
                text(&row.title),
                row.checksum()
            ])?;
        Ok(self.connection.last_insert_rowid())
    }

    fn update_conversation(&self, n: i64, row: &ConversationRow) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE conversations SET updated = ?2, title = ?3, checksum = ?4 WHERE n = ?1")?
            .execute(params![n, row.updated, text(&row.title), row.checksum()])?;
        Ok(())
    }

    /// Notes for all conversations that something was added to when that was.
    fn update_touched(&mut self) -> Result<(), StoreError> {
        for (id, at) in std::mem::take(&mut self.touched) {
            let found = self.conversation_row(&id)?;
            if let Some((n, mut row)) = found
                && row.updated < at
            {
                row.touch(at);
                self.update_conversation(n, &row)?;
            }
        }
        Ok(())
    }

    fn update(&mut self, exchange: &Exchange) -> Result<(), StoreError> {
        let conversation = self.conversation(&exchange.conversation)?;
        self.touch(&exchange.conversation, exchange.ended.unwrap_or(exchange.started).0);
        let kept: Option<(i64, Option<ResponseMark>)> = self
            .connection
            .prepare_cached("SELECT n, response, stored, deleted FROM exchanges WHERE id = ?1")?
            .query_row([exchange.id.as_str()], |row| {
                let (stored, deleted) = (row.get(2)?, row.get(3)?);
                let mark = |id: String| ResponseMark { id: id.into(), stored, deleted };
                Ok((row.get(0)?, row.get::<_, Option<String>>(1)?.map(mark)))
            })
            .optional()?;
        let n = match kept {
            Some((n, response)) => {
                let kept = Exchange { response, ..exchange.clone() };
                self.write_exchange(UPDATE_EXCHANGE, conversation, &kept.brought_up_to_date(exchange))?;
                n
            }
            None => {
                self.write_exchange(INSERT_EXCHANGE, conversation, exchange)?;
                self.connection.last_insert_rowid()
            }
        };
        for (number, attempt) in (0_i64..).zip(&exchange.attempts) {
            self.attempt(n, &exchange.id, number, attempt)?;
        }
        Ok(())
    }

    fn write_exchange(&self, sql: &str, conversation: i64, exchange: &Exchange) -> Result<(), StoreError> {
        let usage =
            |field: fn(&Usage) -> u64| exchange.usage.as_ref().map(|usage| field(usage).cast_signed());
        let response = exchange.response.as_ref();
        self.connection.prepare_cached(sql)?.execute(params![
            exchange.id.as_str(),
            conversation,
            entry(exchange.before.as_ref()),
            entry(exchange.after.as_ref()),
            crate::tags::dialect_tag(exchange.dialect),
            text(&exchange.client),
            text(&exchange.asked_model),
            exchange.started.0,
            exchange.ended.map(|at| at.0),
            text(&exchange.ending),
            exchange.status,
            usage(|usage| usage.input),
            usage(|usage| usage.cache_read),
            usage(|usage| usage.cache_written),
            usage(|usage| usage.output),
            usage(|usage| usage.reasoning),
            response.map(|response| response.id.as_str()),
            response.is_some_and(|response| response.stored),
            response.is_some_and(|response| response.deleted),
            exchange_checksum(exchange),
        ])?;
        Ok(())
    }

    fn attempt(
        &self,
        exchange: i64,
        id: &ExchangeId,
        number: i64,
        attempt: &Attempt,
    ) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO attempts (exchange, number, backend, dialect, model, strategy,
                     started, ended, status, failure, checksum, step_exchange, step_attempt, tokens_before,
                     tokens_after, tool_tokens, continues, recall)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT n FROM exchanges WHERE id = ?12), ?13,
                     ?14, ?15, ?16, ?17, ?18)",
            )?
            .execute(params![
                exchange,
                number,
                attempt.backend.as_str(),
                crate::tags::dialect_tag(attempt.dialect),
                text(&attempt.model),
                text(&attempt.strategy),
                attempt.started.0,
                attempt.ended.map(|at| at.0),
                attempt.status,
                text(&attempt.failure),
                attempt_checksum(id, number, attempt),
                attempt.compaction.as_ref().map(|step| step.exchange.as_str()),
                attempt.compaction.as_ref().map(|step| step.attempt),
                attempt.plan.map(|plan| plan.before.cast_signed()),
                attempt.plan.map(|plan| plan.after.cast_signed()),
                attempt.plan.map(|plan| plan.tools.cast_signed()),
                text(&attempt.continues),
                text(&attempt.recall),
            ])?;
        Ok(())
    }

    fn extend(&mut self, extension: &Extension) -> Result<(), StoreError> {
        let conversation = self.conversation(&extension.conversation)?;
        let exchange = match &extension.exchange {
            Some(exchange) => Some(self.exchange(exchange)?.0),
            None => None,
        };
        let mut parent = match &extension.parent {
            None => None,
            Some(id) => match self.node(id)? {
                (parent, of) if of == conversation => Some(parent),
                _ => return Err(StoreError::UnknownEntry(id.clone())),
            },
        };
        let mut tools = CallTools::new();
        for sprout in &extension.sprouts {
            let at = match self.find(sprout.id)? {
                Some((at, _)) => at,
                None => {
                    let place = Place { conversation, exchange, parent };
                    self.sprout(place, extension, sprout, &mut tools)?
                }
            };
            for item in &sprout.items {
                self.connection
                    .prepare_cached("INSERT OR REPLACE INTO items (id, node, checksum) VALUES (?1, ?2, ?3)")?
                    .execute(params![item.as_str(), at.n, item_checksum(item, sprout.id)])?;
            }
            parent = Some(at);
        }
        self.touch(&extension.conversation, extension.at.0);
        Ok(())
    }

    fn sprout<'s>(
        &mut self,
        place: Place,
        extension: &Extension,
        sprout: &'s Sprout,
        tools: &mut CallTools<'s>,
    ) -> Result<Parent, StoreError> {
        let Place { conversation, exchange, parent } = place;
        let envelope = sprout.encoded.envelope.as_ref();
        let envelope = envelope.map(|envelope| self.blob(conversation, envelope)).transpose()?;
        let record = self.blob(conversation, &sprout.encoded.record)?;
        let (chain, counts) = parent.map_or(Chain::ROOT, |parent| parent.chain).after(sprout.saying);
        let tool = match &sprout.tool {
            Some(tool) => Some(tool.to_string()),
            None => self.tool_of(conversation, sprout, tools)?,
        };
        if let (KeptKind::Called, Some(call_id)) = (sprout.kind, &sprout.call_id) {
            tools.insert(call_id, tool.clone());
        }
        let fields = NodeFields {
            sprout,
            conversation: &extension.conversation,
            exchange: extension.exchange.as_ref(),
            parent: parent.map(|parent| parent.id),
            chain,
            counts,
            at: extension.at.0,
            tool: tool.as_deref(),
        };
        self.connection
            .prepare_cached(
                "INSERT INTO nodes (id, conversation, parent, record, chain, counts, exchange, at, kind, tool,
                     call_id, message, block, envelope, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?
            .execute(params![
                sprout.id.bytes(),
                conversation,
                parent.map(|parent| parent.n),
                record,
                chain.0.bytes(),
                counts,
                exchange,
                extension.at.0,
                crate::tags::kind_tag(sprout.kind),
                tool,
                text(&sprout.call_id),
                sprout.place.map(|place| place.message),
                sprout.place.and_then(|place| place.block),
                envelope,
                fields.checksum(),
            ])?;
        self.new_entries += 1;
        Ok(Parent { n: self.connection.last_insert_rowid(), id: sprout.id, chain })
    }

    /// Returns the tool that a result is of, by the latest call of that id; for searching, not for pairing.
    fn tool_of<'s>(
        &self,
        conversation: i64,
        sprout: &'s Sprout,
        tools: &mut CallTools<'s>,
    ) -> Result<Option<String>, StoreError> {
        let Some(call_id) = &sprout.call_id else { return Ok(None) };
        if let Some(tool) = tools.get(call_id) {
            return Ok(tool.clone());
        }
        let tool: Option<Option<String>> = self
            .connection
            .prepare_cached(
                "SELECT tool FROM nodes WHERE conversation = ?1 AND call_id = ?2 AND kind = ?3
                 ORDER BY n DESC LIMIT 1",
            )?
            .query_row(
                params![conversation, call_id.as_str(), crate::tags::kind_tag(KeptKind::Called)],
                |row| row.get(0),
            )
            .optional()?;
        let tool = tool.flatten();
        tools.insert(call_id, tool.clone());
        Ok(tool)
    }

    fn events(&self, number: usize, exchange: &ExchangeId, attempt: u32) -> Result<(), StoreError> {
        let (n, _) = self.exchange(exchange)?;
        if let Some(Piece::Packed(packed)) = self.prepared.piece(number) {
            self.connection
                .prepare_cached(
                    "INSERT INTO events (exchange, attempt, codec, size, bytes, checksum)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    n,
                    attempt,
                    packed.codec as i64,
                    packed.size,
                    packed.bytes,
                    events_checksum(exchange, attempt, packed)
                ])?;
        }
        Ok(())
    }

    fn answer(&self, number: usize, exchange: &ExchangeId) -> Result<(), StoreError> {
        let (n, _) = self.exchange(exchange)?;
        if let Some(Piece::Packed(packed)) = self.prepared.piece(number) {
            self.connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO answers (exchange, codec, size, bytes, checksum)
                     SELECT n, ?2, ?3, ?4, ?5 FROM exchanges WHERE n = ?1 AND NOT deleted",
                )?
                .execute(params![
                    n,
                    packed.codec as i64,
                    packed.size,
                    packed.bytes,
                    answer_checksum(exchange, packed)
                ])?;
        }
        Ok(())
    }

    fn forget(&self, id: &Text) -> Result<(), StoreError> {
        let found: Option<i64> = self
            .connection
            .prepare_cached("SELECT n FROM exchanges WHERE response = ?1 ORDER BY n DESC LIMIT 1")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let Some(n) = found else { return Ok(()) };
        self.connection.prepare_cached("UPDATE exchanges SET deleted = 1 WHERE n = ?1")?.execute([n])?;
        self.connection.prepare_cached("DELETE FROM answers WHERE exchange = ?1")?.execute([n])?;
        update_exchange_checksum(self.connection, n)
    }

    fn learn(&self, learned: &Learned) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO learned VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
            .execute(params![
                learned.backend.as_str(),
                learned.model.as_str(),
                learned.capability.as_str(),
                learned.verdict.as_str(),
                learned.reason.as_str(),
                learned.at.0,
                learned.expires.map(|at| at.0),
                learned_checksum(learned),
            ])?;
        Ok(())
    }

    fn set(&self, setting: &Setting) -> Result<(), StoreError> {
        let conversation = match &setting.scope {
            Scope::Everywhere => 0,
            Scope::Conversation(id) => self.conversation(id)?,
        };
        match &setting.value {
            Some(value) => self
                .connection
                .prepare_cached("INSERT OR REPLACE INTO settings VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![
                    conversation,
                    setting.name.as_str(),
                    value.as_str(),
                    setting.at.0,
                    setting_checksum(setting)
                ])?,
            None => self
                .connection
                .prepare_cached("DELETE FROM settings WHERE conversation = ?1 AND name = ?2")?
                .execute(params![conversation, setting.name.as_str()])?,
        };
        Ok(())
    }

    /// Returns the number of a record, which is stored if it is not there yet.
    fn blob(&mut self, conversation: i64, blob: &Blob) -> Result<i64, StoreError> {
        let found: Option<i64> = self
            .connection
            .prepare_cached("SELECT n FROM blobs WHERE digest = ?1")?
            .query_row([blob.digest.bytes()], |row| row.get(0))
            .optional()?;
        if let Some(n) = found {
            return Ok(n);
        }
        let packed = self.prepared.packed(blob);
        self.connection
            .prepare_cached("INSERT INTO blobs (digest, codec, size, bytes) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![blob.digest.bytes(), packed.codec as i64, packed.size, packed.bytes])?;
        let n = self.connection.last_insert_rowid();
        for kind in documents::WITH_ENTRIES {
            self.bodies.note(&(conversation, kind), Numbered { n, digest: blob.digest }, &blob.bytes);
        }
        Ok(n)
    }

    fn conversation(&self, id: &ConversationId) -> Result<i64, StoreError> {
        self.connection
            .prepare_cached("SELECT n FROM conversations WHERE id = ?1")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?
            .ok_or_else(|| StoreError::UnknownConversation(id.clone()))
    }

    fn exchange(&self, id: &ExchangeId) -> Result<(i64, i64), StoreError> {
        self.connection
            .prepare_cached("SELECT n, conversation FROM exchanges WHERE id = ?1")?
            .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .ok_or_else(|| StoreError::UnknownExchange(id.clone()))
    }

    /// Returns the node of that id, and its conversation.
    fn node(&self, id: &EntryId) -> Result<(Parent, i64), StoreError> {
        let found = match Digest::from_entry_id(id) {
            Some(digest) => self.find(digest)?,
            None => None,
        };
        found.ok_or_else(|| StoreError::UnknownEntry(id.clone()))
    }

    fn find(&self, id: Digest) -> Result<Option<(Parent, i64)>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT n, chain, conversation FROM nodes WHERE id = ?1")?
            .query_row([id.bytes()], |row| {
                let chain = Chain(Digest::from_bytes(row.get(1)?));
                Ok((Parent { n: row.get(0)?, id, chain }, row.get(2)?))
            })
            .optional()?;
        Ok(found)
    }

    fn touch(&mut self, conversation: &ConversationId, at: i64) {
        let touched = self.touched.entry(conversation.clone()).or_insert(at);
        *touched = at.max(*touched);
    }
}

const INSERT_EXCHANGE: &str = "
    INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted, checksum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";

const UPDATE_EXCHANGE: &str = "
    UPDATE exchanges SET conversation = ?2, before = ?3, after = ?4, dialect = ?5, client = ?6,
        asked_model = ?7, started = ?8, ended = ?9, ending = ?10, status = ?11, input = ?12, cache_read = ?13,
        cache_write = ?14, output = ?15, reasoning = ?16, response = ?17, stored = ?18, deleted = ?19, checksum = ?20
    WHERE id = ?1";

fn text(text: &Option<Text>) -> Option<&str> {
    text.as_deref()
}

fn entry(id: Option<&EntryId>) -> Option<[u8; Digest::BYTES]> {
    id.and_then(Digest::from_entry_id).map(|digest| *digest.bytes())
}
