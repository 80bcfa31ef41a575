//! Searches the index of words.
//!
//! As in the SQLite store, the index names what may fit, and whether it does is seen in the entries themselves.
//! So both find the same: what a word is and what a query means is decided in `words.rs` alone.

use throughline_core::ConversationId;
use tokio_postgres::Row;

use super::bodies::load_envelopes;
use super::connection::{Connection, Param};
use super::failure::Failure;
use super::index::{Index, PIECE_ENTRIES, indexed};
use super::pool::Question;
use super::value::{optional_text, place, plain, text, unpacked};
use crate::digest::Digest;
use crate::record::EntryReader;
use crate::tags::{kind, kinds};
use crate::words::{Findable, Term, terms};
use crate::{Cursor, ExchangeId, Hit, Moment, Page, Search, StoreError};

/// Entries between two numbers, the latest first.
const CANDIDATES: &str = "
    SELECT nodes.n, conversations.id, nodes.id, exchanges.id, nodes.at, nodes.kind, nodes.tool,
        blobs.codec, blobs.size, blobs.bytes, nodes.message, nodes.block, nodes.envelope
    FROM nodes JOIN conversations ON conversations.n = nodes.conversation
        JOIN blobs ON blobs.digest = nodes.record
        LEFT JOIN exchanges ON exchanges.n = nodes.exchange
    WHERE nodes.n BETWEEN $1 AND $2 AND ($3::text IS NULL OR conversations.id = $3)
        AND ($4::text IS NULL OR nodes.tool = $4)
        AND ($5::bigint IS NULL OR nodes.at >= $5) AND ($6::bigint IS NULL OR nodes.at < $6)
        AND ($7::bigint[] IS NULL OR nodes.kind = ANY($7))
    ORDER BY nodes.n DESC LIMIT $8";

/// Pieces of the history in which words occur, the latest first.
const PIECES: &str = "
    SELECT first, last FROM words
    WHERE array_to_tsvector(string_to_array(words, ' ')) @@ $1::text::tsquery AND first < $2
    ORDER BY first DESC";

const BEHIND: &str = "
    SELECT count(*) FROM (SELECT 1 FROM nodes WHERE n > (SELECT n FROM indexed) LIMIT $1) AS behind";

/// So many entries that are in no piece yet are looked through; if there are more, the index comes first.
const LOOKED_THROUGH: i64 = 2 * PIECE_ENTRIES;

/// How many candidates are read at a time beyond what a page takes.
const SPARE: i64 = 16;

impl Question for Search {
    type Answer = Page<Hit>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        let Some(terms) = terms(&self.words) else { return Ok(Page::default()) };
        let before = match &self.paging.after {
            Some(cursor) => cursor.number()?,
            None => i64::MAX,
        };
        if !terms.is_empty() && is_behind(connection).await? {
            Index.ask(connection).await?;
        }
        connection.begin_snapshot().await?;
        let mut hits = if terms.is_empty() {
            all(connection, self, before).await?
        } else {
            by_words(connection, self, &terms, before).await?
        };
        connection.end_snapshot().await?;
        hits.truncate(self.paging.limit as usize + 1);
        Ok(Page::cut(hits, self.paging.limit))
    }
}

async fn is_behind(connection: &mut Connection) -> Result<bool, Failure> {
    let rows = connection.query(BEHIND, &[&LOOKED_THROUGH]).await?;
    let behind: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
    Ok(behind >= LOOKED_THROUGH)
}

/// Finds everything that the filters let through.
async fn all(
    connection: &mut Connection,
    search: &Search,
    mut before: i64,
) -> Result<Vec<(Cursor, Hit)>, Failure> {
    let wanted = search.paging.limit as usize + 1;
    let mut hits = Vec::new();
    while hits.len() < wanted {
        let limit = (wanted - hits.len()) as i64 + SPARE;
        let rows = candidates(connection, search, (0, before - 1), limit).await?;
        let Some(last) = rows.last() else { break };
        before = last.try_get(0)?;
        hits.extend(matching(connection, search, &[], &rows).await?);
    }
    Ok(hits)
}

/// Finds words: first in what is in no piece yet, then piece by piece.
async fn by_words(
    connection: &mut Connection,
    search: &Search,
    terms: &[Term],
    before: i64,
) -> Result<Vec<(Cursor, Hit)>, Failure> {
    let mut ranges = vec![(indexed(connection).await? + 1, i64::MAX)];
    for row in connection.query(PIECES, &[&expression(terms), &before]).await? {
        ranges.push((row.try_get(0)?, row.try_get(1)?));
    }
    let mut hits = Vec::new();
    for (first, last) in ranges {
        if hits.len() > search.paging.limit as usize {
            break;
        }
        let rows = candidates(connection, search, (first, last.min(before - 1)), i64::MAX).await?;
        hits.extend(matching(connection, search, terms, &rows).await?);
    }
    Ok(hits)
}

async fn candidates(
    connection: &mut Connection,
    search: &Search,
    (first, last): (i64, i64),
    limit: i64,
) -> Result<Vec<Row>, Failure> {
    let conversation = search.conversation.as_ref().map(|id| plain(id.as_str()));
    let tool = search.tool.as_deref().map(plain);
    let (since, until) = (search.since.map(|at| at.0), search.until.map(|at| at.0));
    let kinds = kinds(search);
    let params: &[Param<'_>] = &[&first, &last, &conversation, &tool, &since, &until, &kinds, &limit];
    connection.query(CANDIDATES, params).await
}

/// Returns those of the candidates that fit.
async fn matching(
    connection: &mut Connection,
    search: &Search,
    terms: &[Term],
    rows: &[Row],
) -> Result<Vec<(Cursor, Hit)>, Failure> {
    let envelopes = load_envelopes(connection, rows, 12).await?;
    let mut load = |digest| {
        let missing = || StoreError::Damaged(format!("record {digest} is missing"));
        envelopes.get(&digest).cloned().ok_or_else(missing)
    };
    tokio::task::block_in_place(|| {
        let mut reader = EntryReader::default();
        let mut hits = Vec::new();
        for row in rows {
            let entry = reader.decode(&unpacked(row, 7)?, place(row, 10)?, &mut load)?;
            let found = Findable::of(&entry);
            if found.matches(terms, search.field) {
                let snippet = found.snippet(terms, search.field);
                hits.push((Cursor::of(row.try_get(0)?), hit(row, snippet)?));
            }
        }
        Ok(hits)
    })
}

fn hit(row: &Row, snippet: String) -> Result<Hit, Failure> {
    let entry: Digest = row.try_get(2)?;
    Ok(Hit {
        conversation: ConversationId::new(text(row, 1)?),
        entry: entry.to_entry_id(),
        exchange: optional_text(row, 3)?.map(ExchangeId::new),
        at: Moment(row.try_get(4)?),
        kind: kind(row.try_get::<_, i16>(5)?.into())?,
        tool: optional_text(row, 6)?,
        snippet,
    })
}

/// Writes terms in the language of the index. Words are letters and digits only, so they need no escapes.
fn expression(terms: &[Term]) -> String {
    let word = |(held, open): (&str, bool)| format!("'{held}'{}", if open { ":*" } else { "" });
    let all: Vec<String> = terms.iter().flat_map(Term::held).map(word).collect();
    all.join(" & ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_written_for_the_index() {
        let long = "x".repeat(200);
        let terms = terms(&format!("Error \"not found\" test* {long}")).unwrap();
        let held = "x".repeat(128);
        assert_eq!(expression(&terms), format!("'error' & 'not' & 'found' & 'test':* & '{held}':*"));
    }
}
