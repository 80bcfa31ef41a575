//! A plan as statements: one for each table that it touches, with a row for each thing to write.
//!
//! Their order is that of what refers to what, and the same for every writer: rows of conversations are written
//! by one writer at a time, and the rest is written in the order of its keys, so that two writers who bring the
//! same contents wait for each other and not in a circle.

use std::borrow::Cow;
use std::collections::BTreeSet;

use throughline_core::{ConversationId, EntryId, Text, Usage};
use tokio_postgres::types::ToSql;

use super::plan::Plan;
use super::value::plain;
use crate::digest::Digest;
use crate::pack::Packed;
use crate::tags::{dialect_tag, kind_tag};
use crate::{Exchange, NewConversation};

/// A statement with its parameters.
pub(super) struct Step<'p> {
    pub sql: &'static str,
    pub params: Vec<Box<dyn ToSql + Sync + Send + 'p>>,
}

const BEGIN_CONVERSATIONS: &str = "
    INSERT INTO conversations (id, created, updated, identified, title)
    SELECT id, created, updated, identified, title
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[]) WITH ORDINALITY
        AS given (id, created, updated, identified, title, place)
    ORDER BY place
    ON CONFLICT (id) DO UPDATE SET
        updated = greatest(conversations.updated, excluded.updated),
        title = coalesce(conversations.title, excluded.title)
    WHERE conversations.updated < excluded.updated
        OR conversations.title IS NULL AND excluded.title IS NOT NULL";

const TOUCH: &str = "
    UPDATE conversations SET updated = given.updated
    FROM unnest($1::text[], $2::bigint[]) AS given (id, updated)
    WHERE conversations.id = given.id AND conversations.updated < given.updated";

const KEYS: &str = "
    INSERT INTO keys
    SELECT given.key, conversations.n FROM unnest($1::text[], $2::text[]) AS given (key, conversation)
        JOIN conversations ON conversations.id = given.conversation
    ORDER BY given.key
    ON CONFLICT (key) DO NOTHING";

const EXCHANGES: &str = "
    INSERT INTO exchanges (id, conversation, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted)
    SELECT given.id, conversations.n, before, after, dialect, client, asked_model, started, ended,
        ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::smallint[], $6::text[], $7::text[],
            $8::bigint[], $9::bigint[], $10::text[], $11::integer[], $12::bigint[], $13::bigint[], $14::bigint[],
            $15::bigint[], $16::bigint[], $17::text[], $18::boolean[], $19::boolean[]) WITH ORDINALITY
        AS given (id, conversation, before, after, dialect, client, asked_model, started, ended,
            ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted, place)
        JOIN conversations ON conversations.id = given.conversation
    ORDER BY place
    ON CONFLICT (id) DO UPDATE SET
        conversation = excluded.conversation, before = excluded.before, after = excluded.after,
        dialect = excluded.dialect, client = excluded.client, asked_model = excluded.asked_model,
        started = excluded.started, ended = excluded.ended, ending = excluded.ending,
        status = excluded.status, input = excluded.input, cache_read = excluded.cache_read,
        cache_write = excluded.cache_write, output = excluded.output, reasoning = excluded.reasoning,
        response = coalesce(excluded.response, exchanges.response),
        stored = CASE WHEN excluded.response IS NULL THEN exchanges.stored ELSE excluded.stored END,
        deleted = exchanges.deleted OR excluded.deleted";

const ATTEMPTS: &str = "
    INSERT INTO attempts (exchange, number, backend, dialect, model, strategy, report, started, ended, status,
        failure)
    SELECT exchanges.n, number, backend, given.dialect, model, strategy, report, given.started, given.ended,
        given.status, failure
    FROM unnest($1::text[], $2::integer[], $3::text[], $4::smallint[], $5::text[], $6::text[], $7::text[],
            $8::bigint[], $9::bigint[], $10::integer[], $11::text[])
        AS given (exchange, number, backend, dialect, model, strategy, report, started, ended, status, failure)
        JOIN exchanges ON exchanges.id = given.exchange
    ON CONFLICT (exchange, number) DO UPDATE SET
        backend = excluded.backend, dialect = excluded.dialect, model = excluded.model,
        strategy = excluded.strategy, report = excluded.report, started = excluded.started,
        ended = excluded.ended, status = excluded.status, failure = excluded.failure
    WHERE attempts.* IS DISTINCT FROM excluded.*";

const BLOBS: &str = "
    INSERT INTO blobs (digest, codec, size, bytes)
    SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::integer[], $4::bytea[])
    ON CONFLICT (digest) DO NOTHING";

const NODES: &str = "
    INSERT INTO nodes (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind, tool,
        call_id, message, block)
    SELECT given.id, conversations.n, exchanges.n, parent, record, envelope, chain, counts, at, kind, tool,
        call_id, message, block
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::uuid[],
            $8::boolean[], $9::bigint[], $10::smallint[], $11::text[], $12::text[], $13::integer[],
            $14::integer[]) WITH ORDINALITY
        AS given (id, conversation, exchange, parent, record, envelope, chain, counts, at, kind, tool,
            call_id, message, block, place)
        JOIN conversations ON conversations.id = given.conversation
        LEFT JOIN exchanges ON exchanges.id = given.exchange
    ORDER BY place";

const ITEMS: &str = "
    INSERT INTO items (id, node) SELECT * FROM unnest($1::text[], $2::uuid[])
    ON CONFLICT (id) DO UPDATE SET node = excluded.node WHERE items.node <> excluded.node";

const BODIES: &str = "
    INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes)
    SELECT digest, base, depth, sources::uuid[], head, tail, codec, size, bytes
    FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::integer[],
            $7::smallint[], $8::integer[], $9::bytea[])
        AS given (digest, base, depth, sources, head, tail, codec, size, bytes)
    ON CONFLICT (digest) DO NOTHING";

const SENT: &str = "
    INSERT INTO sent (exchange, attempt, body)
    SELECT exchanges.n, attempt, body
    FROM unnest($1::text[], $2::integer[], $3::uuid[]) AS given (exchange, attempt, body)
        JOIN exchanges ON exchanges.id = given.exchange
    ON CONFLICT (exchange, attempt) DO UPDATE SET body = excluded.body";

const EVENTS: &str = "
    INSERT INTO events (exchange, attempt, codec, size, bytes)
    SELECT exchanges.n, attempt, codec, size, bytes
    FROM unnest($1::text[], $2::integer[], $3::smallint[], $4::integer[], $5::bytea[]) WITH ORDINALITY
        AS given (exchange, attempt, codec, size, bytes, place)
        JOIN exchanges ON exchanges.id = given.exchange
    ORDER BY place";

const ANSWERS: &str = "
    INSERT INTO answers (exchange, codec, size, bytes)
    SELECT exchanges.n, codec, size, bytes
    FROM unnest($1::text[], $2::smallint[], $3::integer[], $4::bytea[]) AS given (exchange, codec, size, bytes)
        JOIN exchanges ON exchanges.id = given.exchange
    WHERE NOT exchanges.deleted
    ON CONFLICT (exchange) DO UPDATE SET codec = excluded.codec, size = excluded.size, bytes = excluded.bytes";

const FORGET: &str = "
    WITH latest AS (
        SELECT max(exchanges.n) AS n
        FROM unnest($1::text[]) AS given (response) JOIN exchanges ON exchanges.response = given.response
        GROUP BY given.response
    ), gone AS (
        DELETE FROM answers USING latest WHERE answers.exchange = latest.n
    )
    UPDATE exchanges SET deleted = true FROM latest WHERE exchanges.n = latest.n";

const LEARN: &str = "
    INSERT INTO learned (backend, model, capability, verdict, reason, at, expires)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
    ON CONFLICT (backend, model, capability) DO UPDATE SET verdict = excluded.verdict,
        reason = excluded.reason, at = excluded.at, expires = excluded.expires";

const UNLEARN: &str = "
    DELETE FROM learned USING unnest($1::text[], $2::text[], $3::text[]) AS given (backend, model, capability)
    WHERE learned.backend = given.backend AND learned.model = given.model
        AND learned.capability = given.capability";

const SET: &str = "
    INSERT INTO settings (conversation, name, value, at)
    SELECT coalesce(conversations.n, 0), name, value, at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS given (conversation, name, value, at)
        LEFT JOIN conversations ON conversations.id = given.conversation
    ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value, at = excluded.at";

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
            self.step_of_begun(),
            self.step_of_touched(),
            self.step_of_keys(),
            self.step_of_exchanges(),
            self.step_of_attempts(),
            self.step_of_blobs(),
            self.step_of_nodes(),
            self.step_of_items(),
            self.step_of_bodies(),
            self.step_of_sent(),
            self.step_of_events(),
            self.step_of_answers(),
            Columns::new(FORGET, &self.forgotten).column(|id| plain(id)).done(),
            self.step_of_learned(),
            self.step_of_unlearned(),
            self.step_of_settings(),
            self.step_of_unmade(),
        ];
        all.into_iter().flatten().collect()
    }

    fn step_of_begun(&self) -> Option<Step<'_>> {
        let updated = |new: &NewConversation| self.touched.get(&new.id).copied().unwrap_or(new.at.0);
        Columns::new(BEGIN_CONVERSATIONS, &self.begun)
            .column(|new| plain(new.id.as_str()))
            .column(|new| new.at.0)
            .column(updated)
            .column(|new| plain(&new.identified))
            .column(|new| text(&new.title))
            .done()
    }

    fn step_of_touched(&self) -> Option<Step<'_>> {
        let begun: BTreeSet<&ConversationId> = self.begun.iter().map(|new| &new.id).collect();
        Columns::new(TOUCH, self.touched.iter().filter(|(id, _)| !begun.contains(id)))
            .column(|(id, _)| plain(id.as_str()))
            .column(|(_, at)| *at)
            .done()
    }

    fn step_of_keys(&self) -> Option<Step<'_>> {
        Columns::new(KEYS, &self.keys)
            .column(|(key, _)| plain(key))
            .column(|(_, of)| plain(of.as_str()))
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
            .column(|(.., attempt)| text(&attempt.report))
            .column(|(.., attempt)| attempt.started.0)
            .column(|(.., attempt)| attempt.ended.map(|at| at.0))
            .column(|(.., attempt)| attempt.status.map(i32::from))
            .column(|(.., attempt)| text(&attempt.failure))
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
            .done()
    }

    fn step_of_items(&self) -> Option<Step<'_>> {
        Columns::new(ITEMS, &self.items).column(|(id, _)| plain(id)).column(|(_, node)| *node).done()
    }

    fn step_of_bodies<'p>(&'p self) -> Option<Step<'p>>
    where
        'g: 'p,
    {
        Columns::new(BODIES, &self.bodies)
            .column(|(digest, _)| *digest)
            .column(|(_, differs)| differs.base)
            .column(|(_, differs)| number(differs.depth))
            .column(|(_, differs)| differs.sources.as_deref().map(array))
            .column(|(_, differs)| number(differs.delta.head))
            .column(|(_, differs)| number(differs.delta.tail))
            .packed(|(_, differs)| &differs.delta.middle)
            .done()
    }

    fn step_of_sent(&self) -> Option<Step<'_>> {
        Columns::new(SENT, &self.sent)
            .column(|((exchange, _), _)| plain(exchange.as_str()))
            .column(|((_, attempt), _)| attempt.cast_signed())
            .column(|(_, body)| *body)
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
            .done()
    }

    fn step_of_answers<'p>(&'p self) -> Option<Step<'p>>
    where
        'g: 'p,
    {
        Columns::new(ANSWERS, &self.answers)
            .column(|(exchange, _)| plain(exchange.as_str()))
            .packed(|(_, packed)| packed)
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

/// Returns the statement that writes rows of a table, with an array for each column.
pub(super) fn insertion(table: &str) -> &'static str {
    match table {
        "conversations" => BEGIN_CONVERSATIONS,
        "keys" => KEYS,
        "exchanges" => EXCHANGES,
        "attempts" => ATTEMPTS,
        "blobs" => BLOBS,
        "nodes" => NODES,
        "items" => ITEMS,
        "bodies" => BODIES,
        "sent" => SENT,
        "events" => EVENTS,
        "answers" => ANSWERS,
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
