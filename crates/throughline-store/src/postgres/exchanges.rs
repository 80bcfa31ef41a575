//! Reads exchanges, what passed in them, and what holds until further notice.

use throughline_core::{ConversationId, Usage};
use tokio_postgres::Row;

use super::bodies;
use super::connection::{Connection, Param};
use super::failure::Failure;
use super::pool::Question;
use super::value::{entry_id, optional_text, plain, small, text, unpacked};
use crate::events::decode_events;
use crate::tags::{dialect, document_kind};
use crate::{
    Attempt, Cursor, Exchange, ExchangeId, Exchanges, Learned, Moment, Page, Paging, PlanSizes,
    ProviderEvent, Recording, ResponseMark, Scope, Setting, Standing, StepId, StoreError, Which,
};

/// What passed in an exchange.
#[derive(Debug)]
pub(super) struct Passed(pub ExchangeId, pub Which);

/// What holds until further notice.
#[derive(Debug)]
pub(super) struct WhatStands;

/// Exchanges, the latest first, with a row for each of their attempts.
macro_rules! exchanges {
    ($filter:literal) => {
        concat!(
            "WITH page AS (
                 SELECT * FROM exchanges WHERE ",
            $filter,
            "        ORDER BY n DESC LIMIT $1
             )
             SELECT page.n, page.id, conversations.id, page.before, page.after, page.dialect, page.client,
                 page.asked_model, page.started, page.ended, page.ending, page.status, page.input,
                 page.cache_read, page.cache_write, page.output, page.reasoning, page.response, page.stored,
                 page.deleted, attempts.backend, attempts.dialect, attempts.model, attempts.strategy,
                 attempts.started, attempts.ended, attempts.status, attempts.failure,
                 decided.id, attempts.step_attempt, attempts.tokens_before, attempts.tokens_after,
                 attempts.tool_tokens, attempts.continues, attempts.recall
             FROM page JOIN conversations ON conversations.n = page.conversation
                 LEFT JOIN attempts ON attempts.exchange = page.n
                 LEFT JOIN exchanges AS decided ON decided.n = attempts.step_exchange
             ORDER BY page.n DESC, attempts.number"
        )
    };
}

const ONE: &str = exchanges!("id = $2");
const RESPONSE: &str = exchanges!("response = $2");
const OF: &str = exchanges!("conversation = (SELECT c.n FROM conversations AS c WHERE c.id = $3) AND n < $2");
const SINCE: &str = exchanges!("n < $2 AND started >= $3");
const ALL: &str = exchanges!("n < $2");

const DOCUMENTS: &str = "
    SELECT documents.attempt, documents.kind, documents.body
    FROM documents JOIN exchanges ON exchanges.n = documents.exchange
    WHERE exchanges.id = $1 ORDER BY documents.attempt, documents.kind";

const EVENTS: &str = "
    SELECT attempt, codec, size, bytes FROM events JOIN exchanges ON exchanges.n = events.exchange
    WHERE exchanges.id = $1 ORDER BY attempt, events.n";

const ANSWER: &str = "
    SELECT codec, size, bytes FROM answers JOIN exchanges ON exchanges.n = answers.exchange
    WHERE exchanges.id = $1";

/// Both lists in one statement: it is asked for with each request.
const STANDING: &str = "
    SELECT true AS is_learned, backend AS first, model AS second, capability, verdict, reason, at, expires
    FROM learned
    UNION ALL
    SELECT false, conversations.id, name, '', value, '', at, NULL
    FROM settings LEFT JOIN conversations ON conversations.n = settings.conversation
    WHERE name NOT IN ('project', 'parent')
    ORDER BY is_learned DESC, first NULLS FIRST, second, capability";

impl Question for Exchanges {
    type Answer = Page<Exchange>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        match self {
            Self::One(id) => one(connection, ONE, &plain(id.as_str())).await,
            Self::Response(id) => one(connection, RESPONSE, &plain(id)).await,
            Self::Of(id, paging) => page(connection, OF, paging, Some(&plain(id.as_str()))).await,
            Self::Since(since, paging) => page(connection, SINCE, paging, Some(&since.0)).await,
            Self::All(paging) => page(connection, ALL, paging, None).await,
        }
    }
}

async fn one(connection: &mut Connection, sql: &'static str, id: &str) -> Result<Page<Exchange>, Failure> {
    let rows = connection.query(sql, &[&1_i64, &id]).await?;
    Ok(Page::single(listed(&rows)?.into_iter().next().map(|(_, exchange)| exchange)))
}

async fn page(
    connection: &mut Connection,
    sql: &'static str,
    paging: &Paging,
    of: Option<Param<'_>>,
) -> Result<Page<Exchange>, Failure> {
    let before = match &paging.after {
        Some(cursor) => cursor.number()?,
        None => i64::MAX,
    };
    let limit = i64::from(paging.limit) + 1;
    let mut params: Vec<Param<'_>> = vec![&limit, &before];
    params.extend(of);
    let rows = connection.query(sql, &params).await?;
    Ok(Page::cut(listed(&rows)?, paging.limit))
}

/// Puts exchanges together with their attempts, which come in rows one behind another.
fn listed(rows: &[Row]) -> Result<Vec<(Cursor, Exchange)>, Failure> {
    let mut listed: Vec<(Cursor, Exchange)> = Vec::new();
    let mut last = None;
    for row in rows {
        let n: i64 = row.try_get(0)?;
        if last != Some(n) {
            listed.push((Cursor::of(n), exchange(row)?));
            last = Some(n);
        }
        if let (Some(backend), Some((_, exchange))) = (optional_text(row, 20)?, listed.last_mut()) {
            exchange.attempts.push(Attempt {
                backend,
                dialect: dialect(row.try_get::<_, i16>(21)?.into())?,
                model: optional_text(row, 22)?,
                strategy: optional_text(row, 23)?,
                started: Moment(row.try_get(24)?),
                ended: row.try_get::<_, Option<i64>>(25)?.map(Moment),
                status: status(row, 26)?,
                failure: optional_text(row, 27)?,
                compaction: step_id(row, 28)?,
                plan: plan_sizes(row, 30)?,
                continues: optional_text(row, 33)?,
                recall: optional_text(row, 34)?,
            });
        }
    }
    Ok(listed)
}

/// Reads the name of a step of compaction, whose two columns begin there.
pub(super) fn step_id(row: &Row, column: usize) -> Result<Option<StepId>, Failure> {
    let Some(exchange) = optional_text(row, column)? else { return Ok(None) };
    Ok(Some(StepId { exchange: ExchangeId::new(exchange), attempt: small(row, column + 1)? }))
}

fn plan_sizes(row: &Row, column: usize) -> Result<Option<PlanSizes>, Failure> {
    let tokens = |column| Ok::<_, Failure>(row.try_get::<_, Option<i64>>(column)?.map(i64::cast_unsigned));
    let Some(before) = tokens(column)? else { return Ok(None) };
    let (after, tools) = (tokens(column + 1)?.unwrap_or_default(), tokens(column + 2)?.unwrap_or_default());
    Ok(Some(PlanSizes { before, after, tools }))
}

/// Reads an exchange, without its attempts; its columns begin behind the first.
pub(super) fn exchange(row: &Row) -> Result<Exchange, Failure> {
    let response = optional_text(row, 17)?;
    let (stored, deleted) = (row.try_get(18)?, row.try_get(19)?);
    Ok(Exchange {
        id: ExchangeId::new(text(row, 1)?),
        conversation: ConversationId::new(text(row, 2)?),
        before: entry_id(row, 3)?,
        after: entry_id(row, 4)?,
        dialect: dialect(row.try_get::<_, i16>(5)?.into())?,
        client: optional_text(row, 6)?,
        asked_model: optional_text(row, 7)?,
        started: Moment(row.try_get(8)?),
        ended: row.try_get::<_, Option<i64>>(9)?.map(Moment),
        ending: optional_text(row, 10)?,
        status: status(row, 11)?,
        usage: usage(row)?,
        attempts: Vec::new(),
        response: response.map(|id| ResponseMark { id, stored, deleted }),
    })
}

fn usage(row: &Row) -> Result<Option<Usage>, Failure> {
    let count = |column| Ok::<_, Failure>(row.try_get::<_, Option<i64>>(column)?.map(i64::cast_unsigned));
    let Some(input) = count(12)? else { return Ok(None) };
    Ok(Some(Usage {
        input,
        cache_read: count(13)?.unwrap_or_default(),
        cache_written: count(14)?.unwrap_or_default(),
        output: count(15)?.unwrap_or_default(),
        reasoning: count(16)?.unwrap_or_default(),
    }))
}

fn status(row: &Row, column: usize) -> Result<Option<u16>, Failure> {
    let status: Option<i32> = row.try_get(column)?;
    let damaged = |_| StoreError::Damaged("a status is none".to_owned());
    Ok(status.map(u16::try_from).transpose().map_err(damaged)?)
}

impl Question for Passed {
    type Answer = Recording;

    async fn ask(&self, connection: &mut Connection) -> Result<Recording, Failure> {
        let Self(id, which) = self;
        let id = plain(id.as_str());
        let mut recording = Recording::default();
        connection.begin_snapshot().await?;
        if which.includes_documents() {
            for row in connection.query(DOCUMENTS, &[&id]).await? {
                let kind = document_kind(row.try_get::<_, i16>(1)?.into())?;
                if which.includes_document(kind) {
                    let body = bodies::read(connection, row.try_get(2)?).await?;
                    recording.push_document(small(&row, 0)?, kind, body);
                }
            }
        }
        if which.includes(Which::Events) {
            recording.events = events(&connection.query(EVENTS, &[&id]).await?)?;
        }
        if which.includes(Which::Answer) {
            let rows = connection.query(ANSWER, &[&id]).await?;
            let bytes = rows.first().map(|row| unpacked(row, 0)).transpose()?;
            let damaged = |_| StoreError::Damaged("an answer is no text".to_owned());
            recording.answer = bytes.map(String::from_utf8).transpose().map_err(damaged)?.map(Into::into);
        }
        connection.end_snapshot().await?;
        Ok(recording)
    }
}

fn events(rows: &[Row]) -> Result<Vec<(u32, ProviderEvent)>, Failure> {
    let mut all = Vec::new();
    for row in rows {
        let attempt = small(row, 0)?;
        all.extend(decode_events(&unpacked(row, 1)?)?.into_iter().map(|event| (attempt, event)));
    }
    Ok(all)
}

impl Question for WhatStands {
    type Answer = Standing;

    async fn ask(&self, connection: &mut Connection) -> Result<Standing, Failure> {
        let mut standing = Standing::default();
        for row in &connection.query(STANDING, &[]).await? {
            let at = Moment(row.try_get(6)?);
            if row.try_get(0)? {
                standing.learned.push(Learned {
                    backend: text(row, 1)?,
                    model: text(row, 2)?,
                    capability: text(row, 3)?,
                    verdict: text(row, 4)?,
                    reason: text(row, 5)?,
                    at,
                    expires: row.try_get::<_, Option<i64>>(7)?.map(Moment),
                });
                continue;
            }
            let conversation = optional_text(row, 1)?.map(ConversationId::new);
            standing.settings.push(Setting {
                scope: conversation.map_or(Scope::Everywhere, Scope::Conversation),
                name: text(row, 2)?,
                value: Some(text(row, 4)?),
                at,
            });
        }
        Ok(standing)
    }
}
