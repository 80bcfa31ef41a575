//! Writes a batch into a transaction.
//!
//! Conversations and exchanges come first, so that the rest may refer to them whatever its order. What is
//! there already is left alone: that makes it harmless for two writers to bring the same.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::{ConversationId, EntryId, Text, Usage};

use super::bodies;
use crate::batch::Sprout;
use crate::bodies::Bodies;
use crate::digest::Digest;
use crate::prepared::{Piece, Prepared};
use crate::record::Blob;
use crate::{
    Attempt, Chain, Exchange, ExchangeId, Extension, KeptKind, Learned, NewConversation, Receipt, Scope,
    Setting, StoreError, Write,
};

/// Writes one batch.
pub(super) struct Writing<'w> {
    pub connection: &'w Connection,
    pub prepared: &'w Prepared,
    pub bodies: &'w mut Bodies<i64, i64>,
    pub new_entries: usize,
}

/// The node that the next one follows.
#[derive(Clone, Copy)]
struct Parent {
    n: i64,
    chain: Chain,
}

/// Where a node is put.
struct Place {
    conversation: i64,
    exchange: Option<i64>,
    parent: Option<Parent>,
    at: i64,
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
        Ok(Receipt { new_entries: self.new_entries })
    }

    fn write_one(&mut self, number: usize, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Conversation(_) | Write::Exchange(_) => Ok(()),
            Write::Entries(extension) => self.extend(extension),
            Write::Sent { exchange, attempt, body } => {
                let (n, conversation) = self.exchange(exchange)?;
                if let Some(Piece::Digest(digest)) = self.prepared.piece(number) {
                    let body = bodies::keep(self.bodies, self.connection, conversation, *digest, body)?;
                    self.connection
                        .prepare_cached("INSERT OR REPLACE INTO sent VALUES (?1, ?2, ?3)")?
                        .execute(params![n, attempt, body])?;
                }
                Ok(())
            }
            Write::Events { exchange, attempt, events } if !events.is_empty() => {
                self.events(number, exchange, *attempt)
            }
            Write::Events { exchange, .. } => self.exchange(exchange).map(drop),
            Write::Answer { exchange, .. } => self.answer(number, exchange),
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

    fn begin(&self, new: &NewConversation) -> Result<(), StoreError> {
        let n: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO conversations (id, created, updated, identified, title) VALUES (?1, ?2, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET
                     updated = max(updated, excluded.updated), title = coalesce(title, excluded.title)
                 RETURNING n",
            )?
            .query_row(
                params![new.id.as_str(), new.at.0, new.identified.as_str(), text(&new.title)],
                |row| row.get(0),
            )?;
        for key in &new.keys {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO keys VALUES (?1, ?2)")?
                .execute(params![key.as_str(), n])?;
        }
        Ok(())
    }

    fn update(&self, exchange: &Exchange) -> Result<(), StoreError> {
        let conversation = self.conversation(&exchange.conversation)?;
        self.touch(conversation, exchange.ended.unwrap_or(exchange.started).0)?;
        let usage =
            |field: fn(&Usage) -> u64| exchange.usage.as_ref().map(|usage| field(usage).cast_signed());
        let response = exchange.response.as_ref();
        let n: i64 = self.connection.prepare_cached(UPSERT_EXCHANGE)?.query_row(
            params![
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
            ],
            |row| row.get(0),
        )?;
        for (number, attempt) in (0_i64..).zip(&exchange.attempts) {
            self.attempt(n, number, attempt)?;
        }
        Ok(())
    }

    fn attempt(&self, exchange: i64, number: i64, attempt: &Attempt) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                exchange,
                number,
                attempt.backend.as_str(),
                crate::tags::dialect_tag(attempt.dialect),
                text(&attempt.model),
                text(&attempt.strategy),
                text(&attempt.report),
                attempt.started.0,
                attempt.ended.map(|at| at.0),
                attempt.status,
                text(&attempt.failure),
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
                    let place = Place { conversation, exchange, parent, at: extension.at.0 };
                    self.sprout(place, sprout, &mut tools)?
                }
            };
            for item in &sprout.items {
                self.connection
                    .prepare_cached("INSERT OR REPLACE INTO items VALUES (?1, ?2)")?
                    .execute(params![item.as_str(), at.n])?;
            }
            parent = Some(at);
        }
        self.touch(conversation, extension.at.0)
    }

    fn sprout<'s>(
        &mut self,
        place: Place,
        sprout: &'s Sprout,
        tools: &mut CallTools<'s>,
    ) -> Result<Parent, StoreError> {
        let Place { conversation, exchange, parent, at } = place;
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
        self.connection
            .prepare_cached(
                "INSERT INTO nodes (id, conversation, parent, record, chain, counts, exchange, at, kind, tool,
                     call_id, message, block, envelope)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                sprout.id.bytes(),
                conversation,
                parent.map(|parent| parent.n),
                record,
                chain.0.bytes(),
                counts,
                exchange,
                at,
                crate::tags::kind_tag(sprout.kind),
                tool,
                text(&sprout.call_id),
                sprout.place.map(|place| place.message),
                sprout.place.and_then(|place| place.block),
                envelope,
            ])?;
        self.new_entries += 1;
        Ok(Parent { n: self.connection.last_insert_rowid(), chain })
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
                    "INSERT INTO events (exchange, attempt, codec, size, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![n, attempt, packed.codec as i64, packed.size, packed.bytes])?;
        }
        Ok(())
    }

    fn answer(&self, number: usize, exchange: &ExchangeId) -> Result<(), StoreError> {
        let (n, _) = self.exchange(exchange)?;
        if let Some(Piece::Packed(packed)) = self.prepared.piece(number) {
            self.connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO answers
                     SELECT n, ?2, ?3, ?4 FROM exchanges WHERE n = ?1 AND NOT deleted",
                )?
                .execute(params![n, packed.codec as i64, packed.size, packed.bytes])?;
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
        Ok(())
    }

    fn learn(&self, learned: &Learned) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO learned VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                learned.backend.as_str(),
                learned.model.as_str(),
                learned.capability.as_str(),
                learned.verdict.as_str(),
                learned.reason.as_str(),
                learned.at.0,
                learned.expires.map(|at| at.0),
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
                .prepare_cached("INSERT OR REPLACE INTO settings VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![conversation, setting.name.as_str(), value.as_str(), setting.at.0])?,
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
        self.bodies.note(&conversation, n, &blob.bytes);
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
                Ok((Parent { n: row.get(0)?, chain }, row.get(2)?))
            })
            .optional()?;
        Ok(found)
    }

    fn touch(&self, conversation: i64, at: i64) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE conversations SET updated = ?2 WHERE n = ?1 AND updated < ?2")?
            .execute(params![conversation, at])?;
        Ok(())
    }
}

const UPSERT_EXCHANGE: &str = "
    INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
    ON CONFLICT (id) DO UPDATE SET
        conversation = excluded.conversation, before = excluded.before, after = excluded.after,
        dialect = excluded.dialect, client = excluded.client, asked_model = excluded.asked_model,
        started = excluded.started, ended = excluded.ended, ending = excluded.ending,
        status = excluded.status, input = excluded.input, cache_read = excluded.cache_read,
        cache_write = excluded.cache_write, output = excluded.output, reasoning = excluded.reasoning,
        response = coalesce(excluded.response, response),
        stored = iif(excluded.response IS NULL, stored, excluded.stored),
        deleted = max(deleted, excluded.deleted)
    RETURNING n";

fn text(text: &Option<Text>) -> Option<&str> {
    text.as_deref()
}

fn entry(id: Option<&EntryId>) -> Option<[u8; Digest::BYTES]> {
    id.and_then(Digest::from_entry_id).map(|digest| *digest.bytes())
}
