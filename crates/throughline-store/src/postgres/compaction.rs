//! Steps of compaction: read, and taken from the reports of a database from before there were any.

use throughline_core::ConversationId;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connection::Connection;
use super::exchanges::step_id;
use super::failure::Failure;
use super::pool::Question;
use super::steps::compaction_step;
use super::value::{optional_text, plain, small, text, unpacked};
use crate::compaction::{OldAttempt, OldReports};
use crate::pack::pack_digested;
use crate::{CompactionStep, ExchangeId, Moment, StepId, StoreError};

/// The steps of a conversation.
#[derive(Debug)]
pub(super) struct StepsOf(pub ConversationId);

const STEPS: &str = "
    SELECT exchanges.id, attempt, followed.id, follows_attempt, backend, model, at, codec, size, bytes, summary
    FROM conversations JOIN compaction_steps ON compaction_steps.conversation = conversations.n
        JOIN exchanges ON exchanges.n = compaction_steps.exchange
        LEFT JOIN exchanges AS followed ON followed.n = compaction_steps.follows_exchange
    WHERE conversations.id = $1 ORDER BY compaction_steps.n";

impl Question for StepsOf {
    type Answer = Vec<CompactionStep>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        let rows = connection.query(STEPS, &[&plain(self.0.as_str())]).await?;
        rows.iter().map(|row| step(row, &self.0)).collect()
    }
}

fn step(row: &Row, conversation: &ConversationId) -> Result<CompactionStep, Failure> {
    let damaged = |_| StoreError::Damaged("decisions are no text".to_owned());
    let decisions = String::from_utf8(unpacked(row, 7)?).map_err(damaged)?;
    Ok(CompactionStep {
        id: StepId { exchange: ExchangeId::new(text(row, 0)?), attempt: small(row, 1)? },
        conversation: conversation.clone(),
        backend: text(row, 4)?,
        model: text(row, 5)?,
        at: Moment(row.try_get(6)?),
        follows: step_id(row, 2)?,
        decisions: decisions.into(),
        summary: optional_text(row, 10)?,
    })
}

/// How many attempts are read at a time.
const PAGE_ROWS: i32 = 256;

/// Attempts with something to tell, in their order, while a transaction is under way.
const ATTEMPTS: &str = "
    DECLARE reports NO SCROLL CURSOR FOR
    SELECT conversations.id, exchanges.id, number, backend, model, strategy, attempts.started, report,
        attempts.exchange
    FROM attempts JOIN exchanges ON exchanges.n = attempts.exchange
        JOIN conversations ON conversations.n = exchanges.conversation
    WHERE report LIKE '%\"plan\":{%' OR strategy = 'summary' ORDER BY attempts.exchange, number";

const SHOW: &str = "
    UPDATE attempts SET step_exchange = decided.n, step_attempt = $4
    FROM exchanges AS decided WHERE attempts.exchange = $1 AND number = $2 AND decided.id = $3";

/// Takes the steps of a database from before there were rows for them out of its reports, inside a transaction that is
/// under way. The checksums of the attempts follow when their reports are moved.
pub(super) async fn take_from_reports(connection: &mut Connection) -> Result<(), Failure> {
    let mut reports = OldReports::new()?;
    connection.client.batch_execute(ATTEMPTS).await?;
    let mut found = Vec::new();
    loop {
        let rows = connection.client.query(&format!("FETCH {PAGE_ROWS} FROM reports"), &[]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let from_report = reports.read(old_attempt(row)?)?;
            let shown = from_report.shows.map(|step| shown(row, step)).transpose()?;
            found.push((from_report.step, shown));
        }
    }
    connection.client.batch_execute("CLOSE reports").await?;

    for (step, shown) in found {
        if let Some(step) = &step {
            append(connection, step).await?;
        }
        if let Some(Shown { exchange, number, step }) = shown {
            let attempt = step.attempt.cast_signed();
            let id = plain(step.exchange.as_str());
            connection.query(SHOW, &[&exchange, &number, &id, &attempt]).await?;
        }
    }
    Ok(())
}

/// An attempt that shows a step.
struct Shown {
    exchange: i64,
    number: i32,
    step: StepId,
}

fn old_attempt(row: &Row) -> Result<OldAttempt, Failure> {
    Ok(OldAttempt {
        conversation: ConversationId::new(text(row, 0)?),
        id: StepId { exchange: ExchangeId::new(text(row, 1)?), attempt: small(row, 2)? },
        backend: text(row, 3)?,
        model: optional_text(row, 4)?.unwrap_or_default(),
        strategy: optional_text(row, 5)?,
        started: Moment(row.try_get(6)?),
        report: optional_text(row, 7)?,
    })
}

fn shown(row: &Row, step: StepId) -> Result<Shown, Failure> {
    Ok(Shown { exchange: row.try_get(8)?, number: row.try_get(2)?, step })
}

async fn append(connection: &mut Connection, step: &CompactionStep) -> Result<(), Failure> {
    let decisions = pack_digested(step.decisions.as_bytes());
    let Some(statement) = compaction_step([(step, &decisions)]) else { return Ok(()) };
    let params: Vec<&(dyn ToSql + Sync)> = statement.params.iter().map(|param| &**param as _).collect();
    connection.query(statement.sql, &params).await?;
    Ok(())
}
