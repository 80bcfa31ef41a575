//! Steps of compaction: appended, read, and taken from the reports of a database from before there were any.

use rusqlite::{Connection, params};
use throughline_core::ConversationId;

use super::exchanges::step_id;
use super::read::{all, optional_text, text, unpacked};
use super::rows::update_attempt_checksum;
use crate::checksum::step_checksum;
use crate::compaction::{OldAttempt, OldReports};
use crate::pack::{Packed, pack_digested};
use crate::{CompactionStep, ExchangeId, Moment, StepId, StoreError};

/// Appends a step; `decisions` is what it decides, packed.
pub(super) fn append(
    connection: &Connection,
    step: &CompactionStep,
    decisions: &Packed<'_>,
) -> Result<(), StoreError> {
    let follows = step.follows.as_ref();
    if let Some(follows) = follows {
        let is_there = connection
            .prepare_cached("SELECT 1 FROM exchanges WHERE id = ?1")?
            .exists([follows.exchange.as_str()])?;
        if !is_there {
            return Err(StoreError::UnknownExchange(follows.exchange.clone()));
        }
    }
    let added = connection
        .prepare_cached(
            "INSERT INTO compaction_steps (exchange, attempt, conversation, backend, model, at, follows_exchange,
                 follows_attempt, codec, size, bytes, summary, checksum)
             SELECT n, ?2, conversation, ?3, ?4, ?5, (SELECT n FROM exchanges WHERE id = ?6), ?7, ?8, ?9, ?10, ?11,
                 ?12
             FROM exchanges WHERE id = ?1
             ON CONFLICT (exchange, attempt) DO UPDATE SET attempt = excluded.attempt",
        )?
        .execute(params![
            step.id.exchange.as_str(),
            step.id.attempt,
            step.backend.as_str(),
            step.model.as_str(),
            step.at.0,
            follows.map(|follows| follows.exchange.as_str()),
            follows.map(|follows| follows.attempt),
            decisions.codec as i64,
            decisions.size,
            decisions.bytes,
            step.summary.as_deref(),
            step_checksum(step, decisions),
        ])?;
    if added == 0 {
        return Err(StoreError::UnknownExchange(step.id.exchange.clone()));
    }
    Ok(())
}

/// Reads the steps of a conversation, in the order in which they were appended.
pub(super) fn steps(
    connection: &Connection,
    conversation: &ConversationId,
) -> Result<Vec<CompactionStep>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT exchanges.id, attempt, followed.id, follows_attempt, backend, model, at, codec, size, bytes, summary
         FROM conversations JOIN compaction_steps ON compaction_steps.conversation = conversations.n
             JOIN exchanges ON exchanges.n = compaction_steps.exchange
             LEFT JOIN exchanges AS followed ON followed.n = compaction_steps.follows_exchange
         WHERE conversations.id = ?1 ORDER BY compaction_steps.n",
    )?;
    all(&mut statement, [conversation.as_str()], |row| {
        let decisions = String::from_utf8(unpacked(row, 7)?)
            .map_err(|_| StoreError::Damaged("decisions are no text".to_owned()))?;
        Ok(CompactionStep {
            id: StepId { exchange: ExchangeId::new(text(row, 0)?), attempt: row.get(1)? },
            conversation: conversation.clone(),
            backend: text(row, 4)?,
            model: text(row, 5)?,
            at: Moment(row.get(6)?),
            follows: step_id(row, 2)?,
            decisions: decisions.into(),
            summary: optional_text(row, 10)?,
        })
    })
}

/// Takes the steps of a database from before there were rows for them out of its reports.
pub(super) fn take_from_reports(connection: &Connection) -> Result<(), StoreError> {
    let mut reports = OldReports::new()?;
    let mut statement = connection.prepare(
        "SELECT conversations.id, exchanges.id, number, backend, model, strategy, attempts.started, report,
             attempts.exchange
         FROM attempts JOIN exchanges ON exchanges.n = attempts.exchange
             JOIN conversations ON conversations.n = exchanges.conversation
         WHERE report LIKE '%\"plan\":{%' OR strategy = 'summary' ORDER BY attempts.exchange, number",
    )?;
    let mut found = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id = StepId { exchange: ExchangeId::new(text(row, 1)?), attempt: row.get(2)? };
        let attempt = OldAttempt {
            conversation: ConversationId::new(text(row, 0)?),
            backend: text(row, 3)?,
            model: optional_text(row, 4)?.unwrap_or_default(),
            strategy: optional_text(row, 5)?,
            started: Moment(row.get(6)?),
            report: optional_text(row, 7)?,
            id: id.clone(),
        };
        found.push((row.get::<_, i64>(8)?, id.attempt, reports.read(attempt)?));
    }
    drop(rows);

    for (exchange, number, from_report) in found {
        if let Some(step) = &from_report.step {
            append(connection, step, &pack_digested(step.decisions.as_bytes()))?;
        }
        if let Some(shows) = &from_report.shows {
            show(connection, exchange, number, shows)?;
        }
    }
    Ok(())
}

/// Notes which step the prompt of an attempt shows.
fn show(connection: &Connection, exchange: i64, number: u32, step: &StepId) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE attempts SET step_exchange = (SELECT n FROM exchanges WHERE id = ?3), step_attempt = ?4
             WHERE exchange = ?1 AND number = ?2",
        )?
        .execute(params![exchange, number, step.exchange.as_str(), step.attempt])?;
    update_attempt_checksum(connection, exchange, number)
}
