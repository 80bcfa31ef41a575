//! Reads exchanges, what passed in them, and what holds until further notice.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use throughline_core::{ConversationId, Text, Usage};

use super::bodies;
use super::read::{all, conversation, entry_id, optional, optional_text, text, unpacked};
use crate::events::decode_events;
use crate::tags::{dialect, document_kind};
use crate::{
    Attempt, Cursor, Exchange, ExchangeId, Exchanges, Learned, Moment, Page, Paging, PlanSizes, Recording,
    ResponseMark, Scope, Setting, Standing, StepId, StoreError, Which,
};

/// Lists exchanges.
pub(super) fn exchanges(connection: &Connection, which: &Exchanges) -> Result<Page<Exchange>, StoreError> {
    let one = |filter: &str, by: &str| {
        let found = select(connection, filter, by, i64::MAX, 1)?;
        Ok(Page::single(found.into_iter().next().map(|(_, exchange)| exchange)))
    };
    match which {
        Exchanges::One(id) => one("exchanges.id = ?1", id.as_str()),
        Exchanges::Response(id) => one("exchanges.response = ?1", id),
        Exchanges::Of(id, paging) => match conversation(connection, id)? {
            Some(n) => page(connection, "exchanges.conversation = ?1", n, paging),
            None => Ok(Page::default()),
        },
        Exchanges::Since(since, paging) => page(connection, "exchanges.started >= ?1", since.0, paging),
        Exchanges::All(paging) => page(connection, "?1 = 0", 0_i64, paging),
    }
}

fn page(
    connection: &Connection,
    filter: &str,
    by: impl ToSql,
    paging: &Paging,
) -> Result<Page<Exchange>, StoreError> {
    let before = match &paging.after {
        Some(cursor) => cursor.number()?,
        None => i64::MAX,
    };
    Ok(Page::cut(select(connection, filter, by, before, i64::from(paging.limit) + 1)?, paging.limit))
}

/// Selects those that fit the filter and stand before that number, the latest first.
fn select(
    connection: &Connection,
    filter: &str,
    by: impl ToSql,
    before: i64,
    limit: i64,
) -> Result<Vec<(Cursor, Exchange)>, StoreError> {
    let sql = format!(
        "SELECT exchanges.n, exchanges.id, conversations.id, before, after, dialect, client, asked_model, started,
             ended, ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted
         FROM exchanges JOIN conversations ON conversations.n = exchanges.conversation
         WHERE {filter} AND exchanges.n < ?2 ORDER BY exchanges.n DESC LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    all(&mut statement, params![by, before, limit], |row| {
        let n: i64 = row.get(0)?;
        Ok((Cursor::of(n), exchange(row, attempts(connection, n)?)?))
    })
}

fn exchange(row: &Row<'_>, attempts: Vec<Attempt>) -> Result<Exchange, StoreError> {
    let response = optional_text(row, 17)?;
    let (stored, deleted) = (row.get(18)?, row.get(19)?);
    Ok(Exchange {
        id: ExchangeId::new(text(row, 1)?),
        conversation: ConversationId::new(text(row, 2)?),
        before: optional(row, 3)?.map(entry_id),
        after: optional(row, 4)?.map(entry_id),
        dialect: dialect(row.get(5)?)?,
        client: optional_text(row, 6)?,
        asked_model: optional_text(row, 7)?,
        started: Moment(row.get(8)?),
        ended: optional(row, 9)?.map(Moment),
        ending: optional_text(row, 10)?,
        status: row.get(11)?,
        usage: usage(row)?,
        attempts,
        response: response.map(|id| ResponseMark { id, stored, deleted }),
    })
}

fn usage(row: &Row<'_>) -> Result<Option<Usage>, StoreError> {
    let count =
        |column| Ok::<_, StoreError>(optional::<i64>(row, column)?.unwrap_or_default().cast_unsigned());
    if optional::<i64>(row, 12)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Usage {
        input: count(12)?,
        cache_read: count(13)?,
        cache_written: count(14)?,
        output: count(15)?,
        reasoning: count(16)?,
    }))
}

fn attempts(connection: &Connection, exchange: i64) -> Result<Vec<Attempt>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT backend, attempts.dialect, model, strategy, attempts.started, attempts.ended, attempts.status,
             failure, decided.id, step_attempt, tokens_before, tokens_after, tool_tokens, continues, recall
         FROM attempts LEFT JOIN exchanges AS decided ON decided.n = attempts.step_exchange
         WHERE exchange = ?1 ORDER BY number",
    )?;
    all(&mut statement, [exchange], |row| {
        Ok(Attempt {
            backend: text(row, 0)?,
            dialect: dialect(row.get(1)?)?,
            model: optional_text(row, 2)?,
            strategy: optional_text(row, 3)?,
            started: Moment(row.get(4)?),
            ended: optional(row, 5)?.map(Moment),
            status: row.get(6)?,
            failure: optional_text(row, 7)?,
            compaction: step_id(row, 8)?,
            plan: plan_sizes(row, 10)?,
            continues: optional_text(row, 13)?,
            recall: optional_text(row, 14)?,
        })
    })
}

/// Reads the name of a step of compaction, whose two columns begin there.
pub(super) fn step_id(row: &Row<'_>, column: usize) -> Result<Option<StepId>, StoreError> {
    let Some(exchange) = optional_text(row, column)? else { return Ok(None) };
    Ok(Some(StepId { exchange: ExchangeId::new(exchange), attempt: row.get(column + 1)? }))
}

fn plan_sizes(row: &Row<'_>, column: usize) -> Result<Option<PlanSizes>, StoreError> {
    let tokens = |column| Ok::<_, StoreError>(optional::<i64>(row, column)?.map(i64::cast_unsigned));
    let Some(before) = tokens(column)? else { return Ok(None) };
    let (after, tools) = (tokens(column + 1)?.unwrap_or_default(), tokens(column + 2)?.unwrap_or_default());
    Ok(Some(PlanSizes { before, after, tools }))
}

/// Reads what passed in an exchange.
pub(super) fn recording(
    connection: &Connection,
    exchange: &ExchangeId,
    which: Which,
) -> Result<Recording, StoreError> {
    let mut recording = Recording::default();
    let n: Option<i64> = connection
        .prepare_cached("SELECT n FROM exchanges WHERE id = ?1")?
        .query_row([exchange.as_str()], |row| row.get(0))
        .optional()?;
    let Some(n) = n else { return Ok(recording) };
    if which.includes_documents() {
        let mut statement = connection.prepare_cached(
            "SELECT attempt, kind, body FROM documents WHERE exchange = ?1 ORDER BY attempt, kind",
        )?;
        let documents =
            all(&mut statement, [n], |row| Ok((row.get(0)?, document_kind(row.get(1)?)?, row.get(2)?)))?;
        for (attempt, kind, body) in
            documents.into_iter().filter(|(_, kind, _)| which.includes_document(*kind))
        {
            recording.push_document(attempt, kind, bodies::read(connection, body)?.into());
        }
    }
    if which.includes(Which::Events) {
        recording.events = events(connection, n)?;
    }
    if which.includes(Which::Answer) {
        let mut statement =
            connection.prepare_cached("SELECT codec, size, bytes FROM answers WHERE exchange = ?1")?;
        let answers = all(&mut statement, [n], |row| utf8(unpacked(row, 0)?))?;
        recording.answer = answers.into_iter().next();
    }
    Ok(recording)
}

fn events(connection: &Connection, exchange: i64) -> Result<Vec<(u32, crate::ProviderEvent)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT attempt, codec, size, bytes FROM events WHERE exchange = ?1 ORDER BY attempt, n",
    )?;
    let pieces = all(&mut statement, [exchange], |row| {
        let attempt: u32 = row.get(0)?;
        let events = decode_events(&unpacked(row, 1)?)?;
        Ok(events.into_iter().map(move |event| (attempt, event)))
    })?;
    Ok(pieces.into_iter().flatten().collect())
}

fn utf8(bytes: Vec<u8>) -> Result<Text, StoreError> {
    let text =
        String::from_utf8(bytes).map_err(|_| StoreError::Damaged("an answer is no text".to_owned()))?;
    Ok(text.into())
}

/// Reads what holds until further notice.
pub(super) fn standing(connection: &Connection) -> Result<Standing, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT backend, model, capability, verdict, reason, at, expires FROM learned
         ORDER BY backend, model, capability",
    )?;
    let learned = all(&mut statement, [], |row| {
        Ok(Learned {
            backend: text(row, 0)?,
            model: text(row, 1)?,
            capability: text(row, 2)?,
            verdict: text(row, 3)?,
            reason: text(row, 4)?,
            at: Moment(row.get(5)?),
            expires: optional(row, 6)?.map(Moment),
        })
    })?;
    let mut statement = connection.prepare_cached(
        "SELECT conversations.id, name, value, at FROM settings
             LEFT JOIN conversations ON conversations.n = settings.conversation
         WHERE name NOT IN ('project', 'parent') ORDER BY conversations.id, name",
    )?;
    let settings = all(&mut statement, [], |row| {
        let conversation = optional_text(row, 0)?.map(ConversationId::new);
        Ok(Setting {
            scope: conversation.map_or(Scope::Everywhere, Scope::Conversation),
            name: text(row, 1)?,
            value: optional_text(row, 2)?,
            at: Moment(row.get(3)?),
        })
    })?;
    Ok(Standing { learned, settings })
}
