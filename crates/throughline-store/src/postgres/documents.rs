//! Moves the reports of a database from before there were documents out of the rows of its attempts.

use bytes::Bytes;
use throughline_core::ConversationId;
use tokio_postgres::types::ToSql;

use super::connection::Connection;
use super::failure::Failure;
use super::plan::Lately;
use super::rows::add_checksums_to;
use super::steps::{Step, body_step, document_step};
use super::value::{plain, small, text};
use crate::bodies::Sent;
use crate::compaction::{ReportFacts, ReportReader};
use crate::digest::{Digest, Domain};
use crate::{DocumentKind, ExchangeId};

/// How many reports are seen to at a time.
const PAGE_ROWS: i64 = 64;

const REPORTS: &str = "
    SELECT attempts.exchange, attempts.number, exchanges.id, conversations.id, attempts.report
    FROM attempts JOIN exchanges ON exchanges.n = attempts.exchange
        JOIN conversations ON conversations.n = exchanges.conversation
    WHERE attempts.report IS NOT NULL AND (attempts.exchange, attempts.number) > ($1, $2)
    ORDER BY attempts.exchange, attempts.number LIMIT $3";

const UPDATE: &str = "
    UPDATE attempts SET tokens_before = $3, tokens_after = $4, tool_tokens = $5, continues = $6, recall = $7
    WHERE exchange = $1 AND number = $2";

/// Moves every report, inside a transaction that is under way.
pub(super) async fn move_reports(connection: &mut Connection) -> Result<(), Failure> {
    let reader = ReportReader::new()?;
    let mut lately = Lately::default();
    let (mut exchange, mut number) = (0_i64, -1_i32);
    loop {
        let rows = connection.query(REPORTS, &[&exchange, &number, &PAGE_ROWS]).await?;
        let Some(last) = rows.last() else { break };
        (exchange, number) = (last.try_get(0)?, last.try_get(1)?);
        for row in &rows {
            let facts = reader.read(&text(row, 4)?)?;
            let (id, of) = (ExchangeId::new(text(row, 2)?), ConversationId::new(text(row, 3)?));
            keep(connection, &mut lately, (id, small(row, 1)?), of, &facts).await?;
            if facts.has_facts() {
                let [before, after, tools] = facts.tokens;
                let (exchange, number): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
                let recall = facts.recall.as_deref().map(plain);
                let continues = facts.continues();
                let params: [&(dyn ToSql + Sync); 7] =
                    [&exchange, &number, &before, &after, &tools, &continues, &recall];
                connection.query(UPDATE, &params).await?;
            }
        }
    }
    connection.client.batch_execute("ALTER TABLE attempts DROP COLUMN report").await?;
    add_checksums_to(connection, "attempts").await?;
    add_checksums_to(connection, "documents").await
}

/// Writes a report as a document.
async fn keep(
    connection: &mut Connection,
    lately: &mut Lately,
    (exchange, attempt): (ExchangeId, u32),
    conversation: ConversationId,
    facts: &ReportFacts,
) -> Result<(), Failure> {
    let body = Bytes::from(facts.report.clone());
    let digest = Digest::of(Domain::Body, &body);
    let line = (conversation, DocumentKind::Report);
    let is_there = connection.query("SELECT 1 FROM bodies WHERE digest = $1", &[&digest]).await?;
    if is_there.is_empty() {
        let differs = lately.compare(&line, None, &body);
        run(connection, body_step([(&digest, &differs)])).await?;
        let sent = Sent { key: digest, depth: differs.depth, body: body.clone() };
        lately.put_at_hand(&line, sent);
    }
    let document = (exchange, attempt, DocumentKind::Report);
    run(connection, document_step([(&document, &digest)])).await
}

async fn run(connection: &mut Connection, step: Option<Step<'_>>) -> Result<(), Failure> {
    let Some(step) = step else { return Ok(()) };
    let params: Vec<&(dyn ToSql + Sync)> = step.params.iter().map(|param| &**param as _).collect();
    connection.query(step.sql, &params).await?;
    Ok(())
}
