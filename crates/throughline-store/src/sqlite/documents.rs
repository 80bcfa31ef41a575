//! Documents of attempts: written, and for reports moved out of the rows of a database from before there were any.

use bytes::Bytes;
use rusqlite::{Connection, params};

use super::bodies::{self, Lately};
use super::read::{optional_text, text};
use super::rows::add_checksums_to;
use crate::checksum::document_checksum;
use crate::compaction::ReportReader;
use crate::digest::{Digest, Domain};
use crate::tags::document_tag;
use crate::{DocumentKind, ExchangeId, StoreError};

/// Where a document belongs.
#[derive(Clone, Copy)]
pub(super) struct Place<'e> {
    /// The exchange, by its number and its id.
    pub n: i64,
    pub exchange: &'e ExchangeId,
    pub conversation: i64,
    pub attempt: u32,
    pub kind: DocumentKind,
}

/// The kinds in which entries stand word for word, so that records of entries are what they are compressed with.
pub(super) const WITH_ENTRIES: [DocumentKind; 2] = [DocumentKind::Sent, DocumentKind::Received];

/// Writes a document, in place of an earlier one of its kind.
pub(super) fn write(
    connection: &Connection,
    lately: &mut Lately,
    place: Place<'_>,
    digest: Digest,
    body: &Bytes,
) -> Result<(), StoreError> {
    let Place { n, exchange, conversation, attempt, kind } = place;
    let body = bodies::keep(lately, connection, (conversation, kind), digest, body)?;
    let checksum = document_checksum(exchange, attempt, kind, digest);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO documents (exchange, attempt, kind, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![n, attempt, document_tag(kind), body, checksum])?;
    Ok(())
}

/// Moves the reports of attempts into documents, and what lists show of them into columns.
pub(super) fn move_reports(connection: &Connection) -> Result<(), StoreError> {
    let reader = ReportReader::new()?;
    let mut lately = Lately::default();
    let mut statement = connection.prepare(
        "SELECT exchanges.id, exchanges.n, exchanges.conversation, number, report
         FROM attempts JOIN exchanges ON exchanges.n = attempts.exchange
         WHERE report IS NOT NULL ORDER BY attempts.exchange, number",
    )?;
    let mut facts = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let exchange = ExchangeId::new(text(row, 0)?);
        let (n, attempt) = (row.get(1)?, row.get(3)?);
        let place =
            Place { n, exchange: &exchange, conversation: row.get(2)?, attempt, kind: DocumentKind::Report };
        let of_report = reader.read(&optional_text(row, 4)?.unwrap_or_default())?;
        let body = Bytes::from(of_report.report.clone());
        write(connection, &mut lately, place, Digest::of(Domain::Body, &body), &body)?;
        if of_report.has_facts() {
            facts.push((n, attempt, of_report));
        }
    }
    drop(rows);
    drop(statement);

    let mut update = connection.prepare(
        "UPDATE attempts SET tokens_before = ?3, tokens_after = ?4, tool_tokens = ?5, continues = ?6, recall = ?7
         WHERE exchange = ?1 AND number = ?2",
    )?;
    for (n, attempt, facts) in facts {
        let [before, after, tools] = facts.tokens;
        update.execute(params![n, attempt, before, after, tools, facts.continues(), facts.recall])?;
    }
    drop(update);
    connection.execute_batch("ALTER TABLE attempts DROP COLUMN report")?;
    add_checksums_to(connection, "attempts")?;
    add_checksums_to(connection, "documents")
}
