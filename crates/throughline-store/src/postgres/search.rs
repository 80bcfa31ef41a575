//! Searches the index of words.
//!
//! As in the SQLite store, the index names what may fit, and whether it does is seen in the entries themselves.
//! So both find the same: what a word is and what a query means is decided in `words.rs` alone.

use std::collections::BTreeMap;

use throughline_core::{ConversationId, Entry, Text};
use tokio_postgres::Row;

use super::bodies::load_envelopes;
use super::connection::{Connection, Param};
use super::failure::Failure;
use super::index::{Index, PIECE_ENTRIES, indexed};
use super::pool::Question;
use super::value::{optional_text, place, plain, text, unpacked};
use crate::digest::Digest;
use crate::record::EntryReader;
use crate::sieve::{Found, Sieve};
use crate::tags::{kind, kind_tag, kinds};
use crate::words::Term;
use crate::{Cursor, ExchangeId, Hit, KeptKind, Moment, Page, Search, StoreError};

/// Entries between two numbers, the latest first.
const CANDIDATES: &str = "
    SELECT nodes.n, conversations.id, nodes.id, exchanges.id, nodes.at, nodes.kind, nodes.tool,
        blobs.codec, blobs.size, blobs.bytes, nodes.message, nodes.block, nodes.envelope
    FROM nodes JOIN conversations ON conversations.n = nodes.conversation
        JOIN blobs ON blobs.digest = nodes.record
        LEFT JOIN exchanges ON exchanges.n = nodes.exchange
    WHERE nodes.n BETWEEN $1 AND $2 AND ($3::text IS NULL OR conversations.id = $3)
        AND ($4::bigint IS NULL OR nodes.at >= $4) AND ($5::bigint IS NULL OR nodes.at < $5)
        AND ($6::bigint[] IS NULL OR nodes.kind = ANY($6))
    ORDER BY nodes.n DESC LIMIT $7";

/// The calls that results answer: of each, the latest before it of that id.
const ANSWERED: &str = "
    SELECT found.n, blobs.codec, blobs.size, blobs.bytes, called.message, called.block, called.envelope
    FROM nodes AS found
        CROSS JOIN LATERAL (
            SELECT record, message, block, envelope FROM nodes
            WHERE conversation = found.conversation AND call_id = found.call_id AND kind = 5 AND n < found.n
            ORDER BY n DESC LIMIT 1
        ) AS called
        JOIN blobs ON blobs.digest = called.record
    WHERE found.n = ANY($1::bigint[])";

// The index of calls, and the statement that uses it, name their kind by its number.
const _: () = assert!(kind_tag(KeptKind::Called) == 5);

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

/// How many are read at a time where many of them may not fit.
const CANDIDATES_AT_ONCE: i64 = 512;

/// What was found, and where the look stopped if it went as far as it may.
type Looked = (Vec<(Cursor, Hit)>, Option<Cursor>);

impl Question for Search {
    type Answer = Page<Hit>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        let Some(sieve) = Sieve::new(self) else { return Ok(Page::default()) };
        let before = match &self.paging.after {
            Some(cursor) => cursor.number()?,
            None => i64::MAX,
        };
        if !sieve.terms().is_empty() && is_behind(connection).await? {
            Index.ask(connection).await?;
        }
        connection.begin_snapshot().await?;
        let (mut hits, stopped) = if sieve.terms().is_empty() {
            all(connection, self, &sieve, before).await?
        } else {
            (by_words(connection, self, &sieve, before).await?, None)
        };
        connection.end_snapshot().await?;
        hits.truncate(self.paging.limit as usize + 1);
        Ok(Page::cut_at(hits, self.paging.limit, stopped))
    }
}

async fn is_behind(connection: &mut Connection) -> Result<bool, Failure> {
    let rows = connection.query(BEHIND, &[&LOOKED_THROUGH]).await?;
    let behind: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
    Ok(behind >= LOOKED_THROUGH)
}

/// Finds everything that the filters and the sieve let through.
async fn all(
    connection: &mut Connection,
    search: &Search,
    sieve: &Sieve<'_>,
    mut before: i64,
) -> Result<Looked, Failure> {
    let wanted = search.paging.limit as usize + 1;
    let (mut hits, mut looked) = (Vec::new(), 0);
    while hits.len() < wanted {
        let left = i64::from(search.effort) - looked;
        if left == 0 {
            let more = candidates(connection, search, (0, before - 1), 1).await?;
            return Ok((hits, (!more.is_empty()).then(|| Cursor::of(before))));
        }
        let page = (wanted - hits.len()) as i64 + SPARE;
        let at_once = if sieve.holds_back() { page.max(CANDIDATES_AT_ONCE) } else { page };
        let rows = candidates(connection, search, (0, before - 1), at_once.min(left)).await?;
        let Some(last) = rows.last() else { break };
        before = last.try_get(0)?;
        looked += rows.len() as i64;
        hits.extend(matching(connection, sieve, &rows).await?);
    }
    Ok((hits, None))
}

/// Finds words: first in what is in no piece yet, then piece by piece.
async fn by_words(
    connection: &mut Connection,
    search: &Search,
    sieve: &Sieve<'_>,
    before: i64,
) -> Result<Vec<(Cursor, Hit)>, Failure> {
    let terms = sieve.terms();
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
        hits.extend(matching(connection, sieve, &rows).await?);
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
    let (since, until) = (search.since.map(|at| at.0), search.until.map(|at| at.0));
    let kinds = kinds(search);
    let params: &[Param<'_>] = &[&first, &last, &conversation, &since, &until, &kinds, &limit];
    connection.query(CANDIDATES, params).await
}

/// Returns those of the candidates that fit.
async fn matching(
    connection: &mut Connection,
    sieve: &Sieve<'_>,
    rows: &[Row],
) -> Result<Vec<(Cursor, Hit)>, Failure> {
    let mut fitting = Vec::new();
    for row in rows {
        let tool = optional_text(row, 6)?;
        if sieve.fits_tool(tool.as_deref()) {
            fitting.push((row, tool));
        }
    }
    let envelopes = load_envelopes(connection, rows, 12).await?;
    let answered = answered(connection, sieve, &fitting).await?;
    tokio::task::block_in_place(|| {
        let mut reader = EntryReader::default();
        let mut hits = Vec::new();
        for (row, tool) in fitting {
            let n: i64 = row.try_get(0)?;
            let entry =
                reader.decode(&unpacked(row, 7)?, place(row, 10)?, &mut |digest| of(&envelopes, digest))?;
            let call = answered.get(&n).and_then(Entry::as_call);
            if let Some(found) = sieve.find(&entry, tool.as_deref(), call) {
                hits.push((Cursor::of(n), hit(row, tool, found)?));
            }
        }
        Ok(hits)
    })
}

/// Returns the calls that results among the candidates answer, by the numbers of the results, if they are needed.
async fn answered(
    connection: &mut Connection,
    sieve: &Sieve<'_>,
    fitting: &[(&Row, Option<Text>)],
) -> Result<BTreeMap<i64, Entry>, Failure> {
    let mut results: Vec<i64> = Vec::new();
    for (row, _) in fitting {
        if sieve.needs_call(kind(row.try_get::<_, i16>(5)?.into())?) {
            results.push(row.try_get(0)?);
        }
    }
    if results.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = connection.query(ANSWERED, &[&results]).await?;
    let envelopes = load_envelopes(connection, &rows, 6).await?;
    tokio::task::block_in_place(|| {
        let mut reader = EntryReader::default();
        let mut calls = BTreeMap::new();
        for row in &rows {
            let entry =
                reader.decode(&unpacked(row, 1)?, place(row, 4)?, &mut |digest| of(&envelopes, digest))?;
            calls.insert(row.try_get(0)?, entry);
        }
        Ok(calls)
    })
}

fn of(envelopes: &BTreeMap<Digest, Vec<u8>>, digest: Digest) -> Result<Vec<u8>, StoreError> {
    let missing = || StoreError::Damaged(format!("record {digest} is missing"));
    envelopes.get(&digest).cloned().ok_or_else(missing)
}

fn hit(row: &Row, tool: Option<Text>, found: Found) -> Result<Hit, Failure> {
    let entry: Digest = row.try_get(2)?;
    Ok(Hit {
        conversation: ConversationId::new(text(row, 1)?),
        entry: entry.to_entry_id(),
        exchange: optional_text(row, 3)?.map(ExchangeId::new),
        at: Moment(row.try_get(4)?),
        kind: kind(row.try_get::<_, i16>(5)?.into())?,
        tool,
        exit_code: found.exit_code,
        snippet: found.snippet,
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
    use crate::words::terms;

    #[test]
    fn terms_are_written_for_the_index() {
        let long = "x".repeat(200);
        let terms = terms(&format!("Error \"not found\" test* {long}")).unwrap();
        let held = "x".repeat(128);
        assert_eq!(expression(&terms), format!("'error' & 'not' & 'found' & 'test':* & '{held}':*"));
    }
}
