//! A plan as statements: one for each table that it touches, with a row for each thing to write.
//!
//! Their order is that of what refers to what, and the same for every writer: rows of conversations are written
//! by one writer at a time, and the rest is written in the order of its keys, so that two writers who bring the
//! same contents wait for each other and not in a circle.

use std::borrow::Cow;

use throughline_core::{ConversationId, EntryId, Text, Usage};
use tokio_postgres::types::ToSql;

use super::plan::Plan;
use super::value::plain;
use crate::bodies::Differs;
use crate::checksum::{
    ConversationRow, answer_checksum, attempt_checksum, body_checksum, document_checksum, events_checksum,
    exchange_checksum, item_checksum, key_checksum, learned_checksum, setting_checksum, step_checksum,
};
use crate::digest::Digest;
use crate::pack::Packed;
use crate::tags::{dialect_tag, document_tag, kind_tag};
use crate::{CompactionStep, DocumentKind, Exchange, ExchangeId};

/// A statement with its parameters.
pub(super) struct Step<'p> {
    pub sql: &'static str,
    pub params: Vec<Box<dyn ToSql + Sync + Send + 'p>>,
}

const CONVERSATIONS: &str = "
    INSERT INTO conversations (id, created, updated, identified, title, checksum)
    SELECT id, created, updated, identified, title, checksum
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) WITH ORDINALITY
        AS given (id, created, updated, identified, title, checksum, place)
    ORDER BY place
    ON CONFLICT (id) DO UPDATE SET updated = excluded.updated, title = excluded.title, checksum = excluded.checksum";

const KEYS: &str = "
    INSERT INTO keys (key, conversation, checksum)
    SELECT given.key, conversations.n, given.checksum
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS given (key, conversation, checksum)
        JOIN conversations ON conversations.id = given.conversation
    ORDER BY given.key
    ON CONFLICT (key) DO NOTHING";

/// What an update keeps of the row that is there was worked out before: the row was locked when it was read.
const EXCHANGES: &str = "
    INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted, checksum)
    SELECT given.id, conversations.n, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted, given.checksum
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::smallint[], $6::text[], $7::text[],
            $8::bigint[], $9::bigint[], $10::text[], $11::integer[], $12::bigint[], $13::bigint[], $14::bigint[],
            $15::bigint[], $16::bigint[], $17::text[], $18::boolean[], $19::boolean[], $20::bigint[])
            WITH ORDINALITY
        AS given (id, conversation, before, after, dialect, client, asked_model, started, ended, ending, status,
            input, cache_read, cache_write, output, reasoning, response, stored, deleted, checksum, place)
        JOIN conversations ON conversations.id = given.conversation
    ORDER BY place
    ON CONFLICT (id) DO UPDATE SET
        conversation = excluded.conversation, before = excluded.before, after = excluded.after,
        dialect = excluded.dialect, client = excluded.client, asked_model = excluded.asked_model,
        started = excluded.started, ended = excluded.ended, ending = excluded.ending,
        status = excluded.status, input = excluded.input, cache_read = excluded.cache_read,
        cache_write = excluded.cache_write, output = excluded.output, reasoning = excluded.reasoning,
        response = excluded.response, stored = excluded.stored, deleted = excluded.deleted,
        checksum = excluded.checksum";

const ATTEMPTS: &str = "
    INSERT INTO attempts (exchange, number, backend, dialect, model, strategy, started, ended, status, failure,
        step_exchange, step_attempt, tokens_before, tokens_after, tool_tokens, continues, recall, checksum)
    SELECT exchanges.n, number, backend, given.dialect, model, strategy, given.started, given.ended,
        given.status, failure, decided.n, given.step_attempt, tokens_before, tokens_after, tool_tokens, continues,
        recall, given.checksum
    FROM unnest($1::text[], $2::integer[], $3::text[], $4::smallint[], $5::text[], $6::text[],
            $7::bigint[], $8::bigint[], $9::integer[], $10::text[], $11::text[], $12::integer[], $13::bigint[],
            $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::bigint[])
        AS given (exchange, number, backend, dialect, model, strategy, started, ended, status, failure,
            step_exchange, step_attempt, tokens_before, tokens_after, tool_tokens, continues, recall, checksum)
        JOIN exchanges ON exchanges.id = given.exchange
        LEFT JOIN exchanges AS decided ON decided.id = given.step_exchange
    ON CONFLICT (exchange, number) DO UPDATE SET
        backend = excluded.backend, dialect = excluded.dialect, model = excluded.model,
        strategy = excluded.strategy, started = excluded.started,
        ended = excluded.ended, status = excluded.status, failure = excluded.failure,
        step_exchange = excluded.step_exchange, step_attempt = excluded.step_attempt,
        tokens_before = excluded.tokens_before, tokens_after = excluded.tokens_after,
        tool_tokens = excluded.tool_tokens, continues = excluded.continues, recall = excluded.recall,
        checksum = excluded.checksum
    WHERE attempts.* IS DISTINCT FROM excluded.*";

const BLOBS: &str = "
    INSERT INTO blobs (digest, codec, size, bytes)
    SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::integer[], $4::bytea[])
    ON CONFLICT (digest) DO NOTHING";

const NODES: &str = "
    INSERT INTO nodes (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind, tool,
        call_id, message, block, checksum)
    SELECT given.id, conversations.n, exchanges.n, parent, record, envelope, chain, counts, at, kind, tool,
        call_id, message, block, given.checksum
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[],
            $8::boolean[], $9::bigint[], $10::smallint[], $11::text[], $12::text[], $13::integer[],
            $14::integer[], $15::bigint[]) WITH ORDINALITY
        AS given (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind, tool,
            call_id, message, block, checksum, place)
        JOIN conversations ON conversations.id = given.conversation
        LEFT JOIN exchanges ON exchanges.id = given.exchange
    ORDER BY place";

const ITEMS: &str = "
    INSERT INTO items (id, node, checksum) SELECT * FROM unnest($1::text[], $2::uuid[], $3::bigint[])
    ON CONFLICT (id) DO UPDATE SET node = excluded.node, checksum = excluded.checksum
    WHERE items.node <> excluded.node";

const BODIES: &str = "
    INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes, checksum)
    SELECT digest, base, depth, sources::uuid[], head, tail, codec, size, bytes, checksum
    FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::integer[],
            $7::smallint[], $8::integer[], $9::bytea[], $10::bigint[])
        AS given (digest, base, depth, sources, head, tail, codec, size, bytes, checksum)
    ON CONFLICT (digest) DO NOTHING";

const DOCUMENTS: &str = "
    INSERT INTO documents (exchange, attempt, kind, body, checksum)
    SELECT exchanges.n, attempt, kind, body, given.checksum
    FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::uuid[], $5::bigint[])
        AS given (exchange, attempt, kind, body, checksum)
        JOIN exchanges ON exchanges.id = given.exchange
    ON CONFLICT (exchange, attempt, kind) DO UPDATE SET body = excluded.body, checksum = excluded.checksum";

const EVENTS: &str = "
    INSERT INTO events (exchange, attempt, codec, size, bytes, checksum)
    SELECT exchanges.n, attempt, codec, size, bytes, given.checksum
    FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::integer[], $5::bytea[], $6::bigint[])
            WITH ORDINALITY
        AS given (exchange, attempt, codec, size, bytes, checksum, place)
        JOIN exchanges ON exchanges.id = given.exchange
    ORDER BY place";

const ANSWERS: &str = "
    INSERT INTO answers (exchange, codec, size, bytes, checksum)
    SELECT exchanges.n, codec, size, bytes, given.checksum
    FROM unnest($1::text[], $2::smallint[], $3::integer[], $4::bytea[], $5::bigint[])
        AS given (exchange, codec, size, bytes, checksum)
        JOIN exchanges ON exchanges.id = given.exchange
    WHERE NOT exchanges.deleted
    ON CONFLICT (exchange) DO UPDATE SET codec = excluded.codec, size = excluded.size, bytes = excluded.bytes,
        checksum = excluded.checksum";

pub(super) const COMPACTION_STEPS: &str = "
    INSERT INTO compaction_steps (exchange, attempt, conversation, backend, model, at, follows_exchange,
        follows_attempt, codec, size, bytes, summary, checksum)
    SELECT exchanges.n, attempt, conversations.n, backend, model, at, followed.n, follows_attempt, codec, size, bytes,
        summary, given.checksum
    FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
            $8::integer[], $9::smallint[], $10::integer[], $11::bytea[], $12::text[], $13::bigint[]) WITH ORDINALITY
        AS given (exchange, attempt, conversation, backend, model, at, follows_exchange, follows_attempt, codec,
            size, bytes, summary, checksum, place)
        JOIN exchanges ON exchanges.id = given.exchange
        JOIN conversations ON conversations.id = given.conversation
        LEFT JOIN exchanges AS followed ON followed.id = given.follows_exchange
    ORDER BY place
    ON CONFLICT (exchange, attempt) DO NOTHING";

/// The rows of their exchanges say already that they are deleted.
const FORGET: &str = "
    DELETE FROM answers USING exchanges WHERE answers.exchange = exchanges.n AND exchanges.id = ANY($1::text[])";

const LEARN: &str = "
    INSERT INTO learned (backend, model, capability, verdict, reason, at, expires, checksum)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[])
    ON CONFLICT (backend, model, capability) DO UPDATE SET verdict = excluded.verdict,
        reason = excluded.reason, at = excluded.at, expires = excluded.expires, checksum = excluded.checksum";

const UNLEARN: &str = "
    DELETE FROM learned USING unnest($1::text[], $2::text[], $3::text[]) AS given (backend, model, capability)
    WHERE learned.backend = given.backend AND learned.model = given.model
        AND learned.capability = given.capability";

const SET: &str = "
    INSERT INTO settings (conversation, name, value, at, checksum)
    SELECT coalesce(conversations.n, 0), name, value, at, given.checksum
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
        AS given (conversation, name, value, at, checksum)
        LEFT JOIN conversations ON conversations.id = given.conversation
    ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value, at = excluded.at,
        checksum = excluded.checksum";

const UNSET: &str = "
    DELETE FROM settings USING unnest($1::text[], $2::text[]) AS given (conversation, name)
        LEFT JOIN conversations ON conversations.id = given.conversation
    WHERE settings.conversation = coalesce(conversations.n, 0) AND settings.name = given.name";

/// A step in the making: a statement with an array for each column, of what is said of each item.
struct Columns<'p, T> {
    items: Vec<T>,
    step: Step<'p>,
}

impl<'p, T: Copy> Columns<'p, T> {
    fn new(sql: &'static str, items: impl IntoIterator<Item = T>) -> Self {
        Self { items: items.into_iter().collect(), step: Step { sql, params: Vec::new() } }
    }

    fn column<C: ToSql + Sync + Send + 'p>(mut self, of: impl Fn(T) -> C) -> Self {
        let values: Vec<C> = self.items.iter().map(|item| of(*item)).collect();
        self.step.params.push(Box::new(values));
        self
    }

    fn packed(self, of: impl Fn(T) -> &'p Packed<'p>) -> Self {
        self.column(|item| of(item).codec as i16)
            .column(|item| number(of(item).size))
            .column(|item| &*of(item).bytes)
    }

    /// Returns the step, unless there is nothing to write.
    fn done(self) -> Option<Step<'p>> {
        (!self.items.is_empty()).then_some(self.step)
    }
}

impl<'g> Plan<'g> {
    /// Returns the statements that write what was planned, in their order.
    pub fn steps<'p>(&'p self) -> Vec<Step<'p>>
    where
        'g: 'p,
    {
        let all = [
            self.step_of_conversations(),
            self.step_of_keys(),
            self.step_of_exchanges(),
            self.step_of_attempts(),
            self.step_of_blobs(),
            self.step_of_nodes(),
            self.step_of_items(),
            body_step(self.bodies.iter()),
            document_step(self.documents.iter()),
            self.step_of_events(),
            self.step_of_answers(),
            compaction_step(self.compaction.iter().map(|(step, packed)| (*step, packed))),
            Columns::new(FORGET, &self.forgotten).column(|id| plain(id.as_str())).done(),
            self.step_of_learned(),
            self.step_of_unlearned(),
            self.step_of_settings(),
            self.step_of_unmade(),
        ];
        all.into_iter().flatten().collect()
    }

    fn step_of_conversations(&self) -> Option<Step<'_>> {
        Columns::new(CONVERSATIONS, self.changed_conversations())
            .column(|row| plain(row.id.as_str()))
            .column(|row| row.created)
            .column(|row| row.updated)
            .column(|row| plain(&row.identified))
            .column(|row| text(&row.title))
            .column(ConversationRow::checksum)
            .done()
    }

    fn step_of_keys(&self) -> Option<Step<'_>> {
        Columns::new(KEYS, &self.keys)
            .column(|(key, _)| plain(key))
            .column(|(_, of)| plain(of.as_str()))
            .column(|(key, of)| key_checksum(key, of))
            .done()
    }

    fn step_of_exchanges(&self) -> Option<Step<'_>> {
        Columns::new(EXCHANGES, &self.exchanges)
            .column(|exchange| plain(exchange.id.as_str()))
            .column(|exchange| plain(exchange.conversation.as_str()))
            .column(|exchange| digest(exchange.before.as_ref()))
            .column(|exchange| digest(exchange.after.as_ref()))
            .column(|exchange| dialect_tag(exchange.dialect) as i16)
            .column(|exchange| text(&exchange.client))
            .column(|exchange| text(&exchange.asked_model))
            .column(|exchange| exchange.started.0)
            .column(|exchange| exchange.ended.map(|at| at.0))
            .column(|exchange| text(&exchange.ending))
            .column(|exchange| exchange.status.map(i32::from))
            .column(|exchange| tokens(exchange, |usage| usage.input))
            .column(|exchange| tokens(exchange, |usage| usage.cache_read))
            .column(|exchange| tokens(exchange, |usage| usage.cache_written))
            .column(|exchange| tokens(exchange, |usage| usage.output))
            .column(|exchange| tokens(exchange, |usage| usage.reasoning))
            .column(|exchange| exchange.response.as_ref().map(|response| plain(&response.id)))
            .column(|exchange| exchange.response.as_ref().is_some_and(|response| response.stored))
            .column(|exchange| exchange.response.as_ref().is_some_and(|response| response.deleted))
            .column(exchange_checksum)
            .done()
    }

    fn step_of_attempts(&self) -> Option<Step<'_>> {
        let attempts = self.exchanges.iter().flat_map(|exchange| {
            (0_i32..).zip(&exchange.attempts).map(move |(number, attempt)| (exchange, number, attempt))
        });
        Columns::new(ATTEMPTS, attempts)
            .column(|(exchange, ..)| plain(exchange.id.as_str()))
            .column(|(_, number, _)| number)
            .column(|(.., attempt)| plain(&attempt.backend))
            .column(|(.., attempt)| dialect_tag(attempt.dialect) as i16)
            .column(|(.., attempt)| text(&attempt.model))
            .column(|(.., attempt)| text(&attempt.strategy))
            .column(|(.., attempt)| attempt.started.0)
            .column(|(.., attempt)| attempt.ended.map(|at| at.0))
            .column(|(.., attempt)| attempt.status.map(i32::from))
            .column(|(.., attempt)| text(&attempt.failure))
            .column(|(.., attempt)| attempt.compaction.as_ref().map(|step| plain(step.exchange.as_str())))
            .column(|(.., attempt)| attempt.compaction.as_ref().map(|step| step.attempt.cast_signed()))
            .column(|(.., attempt)| attempt.plan.map(|plan| plan.before.cast_signed()))
            .column(|(.., attempt)| attempt.plan.map(|plan| plan.after.cast_signed()))
            .column(|(.., attempt)| attempt.plan.map(|plan| plan.tools.cast_signed()))
            .column(|(.., attempt)| text(&attempt.continues))
            .column(|(.., attempt)| text(&attempt.recall))
            .column(|(exchange, number, attempt)| attempt_checksum(&exchange.id, number.into(), attempt))
            .done()
    }

    fn step_of_blobs<'p>(&'p self) -> Option<Step<'p>>
    where
        'g: 'p,
    {
        Columns::new(BLOBS, &self.blobs).column(|(digest, _)| *digest).packed(|(_, packed)| packed).done()
    }

    fn step_of_nodes(&self) -> Option<Step<'_>> {
        Columns::new(NODES, &self.nodes)
            .column(|row| row.sprout.id)
            .column(|row| plain(row.conversation.as_str()))
            .column(|row| row.exchange.as_ref().map(|exchange| plain(exchange.as_str())))
            .column(|row| row.parent)
            .column(|row| row.sprout.encoded.record.digest)
            .column(|row| row.sprout.encoded.envelope.as_ref().map(|envelope| envelope.digest))
            .column(|row| row.chain.0)
            .column(|row| row.counts)
            .column(|row| row.at)
            .column(|row| kind_tag(row.sprout.kind) as i16)
            .column(|row| text(&row.tool))
            .column(|row| text(&row.sprout.call_id))
            .column(|row| row.sprout.place.map(|place| place.message.cast_signed()))
            .column(|row| row.sprout.place.and_then(|place| place.block).map(u32::cast_signed))
            .column(|row| row.fields().checksum())
            .done()
    }

    fn step_of_items(&self) -> Option<Step<'_>> {
        Columns::new(ITEMS, &self.items)
            .column(|(id, _)| plain(id))
            .column(|(_, node)| *node)
            .column(|(id, node)| item_checksum(id, *node))
            .done()
    }

    fn step_of_events<'p>(&'p self) -> Option<Step<'p>>
    where
        'g: 'p,
    {
        Columns::new(EVENTS, &self.events)
            .column(|(exchange, ..)| plain(exchange.as_str()))
            .column(|(_, attempt, _)| attempt.cast_signed())
            .packed(|(.., packed)| packed)
            .column(|(exchange, attempt, packed)| events_checksum(exchange, *attempt, packed))
            .done()
    }

    fn step_of_answers<'p>(&'p self) -> Option<Step<'p>>
    where
        'g: 'p,
    {
        Columns::new(ANSWERS, &self.answers)
            .column(|(exchange, _)| plain(exchange.as_str()))
            .packed(|(_, packed)| packed)
            .column(|(exchange, packed)| answer_checksum(exchange, packed))
            .done()
    }

    fn step_of_learned(&self) -> Option<Step<'_>> {
        Columns::new(LEARN, self.learned.values().flatten())
            .column(|learned| plain(&learned.backend))
            .column(|learned| plain(&learned.model))
            .column(|learned| plain(&learned.capability))
            .column(|learned| plain(&learned.verdict))
            .column(|learned| plain(&learned.reason))
            .column(|learned| learned.at.0)
            .column(|learned| learned.expires.map(|at| at.0))
            .column(|learned| learned_checksum(learned))
            .done()
    }

    fn step_of_unlearned(&self) -> Option<Step<'_>> {
        let unlearned = self.learned.iter().filter(|(_, learned)| learned.is_none());
        Columns::new(UNLEARN, unlearned.map(|(about, _)| about))
            .column(|(backend, ..)| plain(backend))
            .column(|(_, model, _)| plain(model))
            .column(|(.., capability)| plain(capability))
            .done()
    }

    fn step_of_settings(&self) -> Option<Step<'_>> {
        let made = self.settings.iter().filter_map(|((of, name), made)| Some((of, name, (*made)?)));
        Columns::new(SET, made)
            .column(|(of, ..)| scope(of))
            .column(|(_, name, _)| plain(name))
            .column(|(.., setting)| text(&setting.value))
            .column(|(.., setting)| setting.at.0)
            .column(|(.., setting)| setting_checksum(setting))
            .done()
    }

    fn step_of_unmade(&self) -> Option<Step<'_>> {
        let unmade = self.settings.iter().filter(|(_, made)| made.is_none());
        Columns::new(UNSET, unmade.map(|(about, _)| about))
            .column(|(of, _)| scope(of))
            .column(|(_, name)| plain(name))
            .done()
    }
}

/// Returns the statement that writes documents, each under its digest as what differs from another.
pub(super) fn body_step<'p>(
    bodies: impl IntoIterator<Item = (&'p Digest, &'p Differs<'p, Digest>)>,
) -> Option<Step<'p>> {
    Columns::new(BODIES, bodies)
        .column(|(digest, _)| *digest)
        .column(|(_, differs)| differs.base)
        .column(|(_, differs)| number(differs.depth))
        .column(|(_, differs)| differs.sources.as_deref().map(array))
        .column(|(_, differs)| number(differs.delta.head))
        .column(|(_, differs)| number(differs.delta.tail))
        .packed(|(_, differs)| &differs.delta.middle)
        .column(|(digest, differs)| body_checksum(*digest, differs, differs.base, differs.sources.as_deref()))
        .done()
}

/// Returns the statement that writes which documents an attempt has.
pub(super) fn document_step<'p>(
    documents: impl IntoIterator<Item = (&'p (ExchangeId, u32, DocumentKind), &'p Digest)>,
) -> Option<Step<'p>> {
    Columns::new(DOCUMENTS, documents)
        .column(|((exchange, ..), _)| plain(exchange.as_str()))
        .column(|((_, attempt, _), _)| attempt.cast_signed())
        .column(|((.., kind), _)| document_tag(*kind) as i16)
        .column(|(_, body)| *body)
        .column(|((exchange, attempt, kind), body)| document_checksum(exchange, *attempt, *kind, *body))
        .done()
}

/// Returns the statement that appends steps of compaction, each with what it decides, packed.
pub(super) fn compaction_step<'p>(
    steps: impl IntoIterator<Item = (&'p CompactionStep, &'p Packed<'p>)>,
) -> Option<Step<'p>> {
    Columns::new(COMPACTION_STEPS, steps)
        .column(|(step, _)| plain(step.id.exchange.as_str()))
        .column(|(step, _)| step.id.attempt.cast_signed())
        .column(|(step, _)| plain(step.conversation.as_str()))
        .column(|(step, _)| plain(&step.backend))
        .column(|(step, _)| plain(&step.model))
        .column(|(step, _)| step.at.0)
        .column(|(step, _)| step.follows.as_ref().map(|follows| plain(follows.exchange.as_str())))
        .column(|(step, _)| step.follows.as_ref().map(|follows| follows.attempt.cast_signed()))
        .packed(|(_, packed)| packed)
        .column(|(step, _)| text(&step.summary))
        .column(|(step, packed)| step_checksum(step, packed))
        .done()
}

/// Returns the statement that writes rows of a table, with an array for each column.
pub(super) fn insertion(table: &str) -> &'static str {
    match table {
        "conversations" => CONVERSATIONS,
        "keys" => KEYS,
        "exchanges" => EXCHANGES,
        "attempts" => ATTEMPTS,
        "blobs" => BLOBS,
        "nodes" => NODES,
        "items" => ITEMS,
        "bodies" => BODIES,
        "documents" => DOCUMENTS,
        "events" => EVENTS,
        "answers" => ANSWERS,
        "compaction_steps" => COMPACTION_STEPS,
        "learned" => LEARN,
        _ => SET,
    }
}

fn text(text: &Option<Text>) -> Option<Cow<'_, str>> {
    text.as_deref().map(plain)
}

fn scope(conversation: &Option<ConversationId>) -> Option<Cow<'_, str>> {
    conversation.as_ref().map(|id| plain(id.as_str()))
}

fn digest(id: Option<&EntryId>) -> Option<Digest> {
    id.and_then(Digest::from_entry_id)
}

fn tokens(exchange: &Exchange, count: fn(&Usage) -> u64) -> Option<i64> {
    exchange.usage.as_ref().map(|usage| count(usage).cast_signed())
}

/// Returns a number as its column takes it; none that is larger is ever unpacked.
fn number(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// Writes digests as an array of the database.
pub(super) fn array(digests: &[Digest]) -> String {
    let all: Vec<String> = digests.iter().map(ToString::to_string).collect();
    format!("{{{}}}", all.join(","))
}
