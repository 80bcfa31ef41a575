//! Searches the index of words.
//!
//! The index knows which words occur in an entry, and not where: it takes a third of the space so. It names the
//! entries that may fit; whether they do is seen in the entry itself, which is read for its snippet anyway.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use throughline_core::{ConversationId, Entry, Text};

use super::read::{entry_id, load_blob, optional_text, place, text, unpacked};
use crate::record::EntryReader;
use crate::sieve::Sieve;
use crate::tags::{kind, kind_tag, kinds};
use crate::words::Term;
use crate::{Cursor, ExchangeId, Hit, KeptKind, Moment, Page, Search, StoreError};

/// Searches, the latest first.
pub(super) fn search(connection: &Connection, search: &Search) -> Result<Page<Hit>, StoreError> {
    let Some(sieve) = Sieve::new(search) else { return Ok(Page::default()) };
    let is_all = sieve.terms().is_empty();
    let parts: &[Part] = if is_all { &[Part::All] } else { &[Part::Unindexed, Part::Indexed] };
    let mut hits = Vec::new();
    let mut stopped = None;
    for part in parts {
        stopped = search_part(connection, search, &sieve, *part, &mut hits)?;
    }
    Ok(Page::cut_at(hits, search.paging.limit, stopped))
}

/// A part of the history; all numbers of a later one are smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Everything, when there are no words to look for.
    All,
    /// What is not in the index yet: short, and looked through.
    Unindexed,
    /// What the index names.
    Indexed,
}

impl Part {
    /// Returns the tables to read, and the number to read them backwards by, so that the first page costs no more than
    /// a page.
    const fn tables(self) -> (&'static str, &'static str) {
        match self {
            Self::All | Self::Unindexed => ("nodes", "nodes.n"),
            Self::Indexed => ("words CROSS JOIN nodes ON nodes.n = words.rowid", "words.rowid"),
        }
    }
}

/// Adds what a part holds, and returns where it stopped if it looked at as much as it may.
fn search_part(
    connection: &Connection,
    search: &Search,
    sieve: &Sieve<'_>,
    part: Part,
    hits: &mut Vec<(Cursor, Hit)>,
) -> Result<Option<Cursor>, StoreError> {
    let (filters, values) = filters(search, sieve.terms(), part)?;
    let (from, number) = part.tables();
    let sql = format!(
        "SELECT nodes.n, conversations.id, nodes.id, exchanges.id, nodes.at, nodes.kind, nodes.tool,
             codec, size, bytes, nodes.message, nodes.block, nodes.conversation, nodes.call_id
         FROM {from} JOIN conversations ON conversations.n = nodes.conversation
             JOIN blobs ON blobs.n = nodes.record LEFT JOIN exchanges ON exchanges.n = nodes.exchange
         WHERE {filters} ORDER BY {number} DESC"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut reader = EntryReader::default();
    let mut calls = LatestCalls::default();
    let (mut looked, mut last) = (0, None);
    while hits.len() <= search.paging.limit as usize
        && let Some(row) = rows.next()?
    {
        if part == Part::All && looked == search.effort {
            return Ok(last);
        }
        looked += 1;
        let place_of_row = Cursor::of(row.get(0)?);
        last = Some(place_of_row.clone());
        if let Some(hit) = candidate(connection, sieve, row, &mut reader, &mut calls)? {
            hits.push((place_of_row, hit));
        }
    }
    Ok(None)
}

/// Reads a candidate, and returns it if it fits.
fn candidate(
    connection: &Connection,
    sieve: &Sieve<'_>,
    row: &Row<'_>,
    reader: &mut EntryReader,
    calls: &mut LatestCalls,
) -> Result<Option<Hit>, StoreError> {
    let tool = optional_text(row, 6)?;
    if !sieve.fits_tool(tool.as_deref()) {
        return Ok(None);
    }
    let kind = kind(row.get(5)?)?;
    let answered = if sieve.needs_call(kind) { calls.answered(connection, row, reader)? } else { None };
    let record = unpacked(row, 7)?;
    let entry = reader.decode(&record, place(row, 10)?, &mut |digest| load_blob(connection, digest))?;
    let Some(found) = sieve.find(&entry, tool.as_deref(), answered.and_then(Entry::as_call)) else {
        return Ok(None);
    };
    Ok(Some(Hit {
        conversation: ConversationId::new(text(row, 1)?),
        entry: entry_id(row.get(2)?),
        exchange: optional_text(row, 3)?.map(ExchangeId::new),
        at: Moment(row.get(4)?),
        kind,
        tool,
        exit_code: found.exit_code,
        snippet: found.snippet,
    }))
}

/// How many calls are held at a time; results stand close to their calls.
const CALLS_MAX: usize = 64;

/// The calls that were found last, by their conversation and their id.
///
/// Many results may name one call, and each would be looked for behind all the others.
#[derive(Default)]
struct LatestCalls(BTreeMap<(i64, Text), LatestCall>);

struct LatestCall {
    /// The number of the node before which it is the latest.
    before: i64,
    /// Its own number, and what it says.
    call: Option<(i64, Entry)>,
}

impl LatestCall {
    fn is_latest_before(&self, n: i64) -> bool {
        n <= self.before && self.call.as_ref().is_none_or(|(call, _)| *call < n)
    }
}

impl LatestCalls {
    /// Returns the call that a result answers: the latest before it of that id.
    fn answered(
        &mut self,
        connection: &Connection,
        row: &Row<'_>,
        reader: &mut EntryReader,
    ) -> Result<Option<&Entry>, StoreError> {
        let (conversation, n): (i64, i64) = (row.get(12)?, row.get(0)?);
        let Some(call_id) = optional_text(row, 13)? else { return Ok(None) };
        let key = (conversation, call_id);
        if !self.0.get(&key).is_some_and(|latest| latest.is_latest_before(n)) {
            let call = latest_call(connection, &key, n, reader)?;
            if self.0.len() >= CALLS_MAX {
                self.0.clear();
            }
            self.0.insert(key.clone(), LatestCall { before: n, call });
        }
        Ok(self.0.get(&key).and_then(|latest| latest.call.as_ref()).map(|(_, entry)| entry))
    }
}

fn latest_call(
    connection: &Connection,
    (conversation, call_id): &(i64, Text),
    before: i64,
    reader: &mut EntryReader,
) -> Result<Option<(i64, Entry)>, StoreError> {
    let mut select = connection.prepare_cached(
        "SELECT codec, size, bytes, nodes.message, nodes.block, nodes.n
         FROM nodes JOIN blobs ON blobs.n = nodes.record
         WHERE nodes.conversation = ?1 AND nodes.call_id = ?2 AND nodes.kind = ?3 AND nodes.n < ?4
         ORDER BY nodes.n DESC LIMIT 1",
    )?;
    let mut rows =
        select.query(params![conversation, call_id.as_str(), kind_tag(KeptKind::Called), before])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let record = unpacked(row, 0)?;
    let entry = reader.decode(&record, place(row, 3)?, &mut |digest| load_blob(connection, digest))?;
    Ok(Some((row.get(5)?, entry)))
}

/// Returns what must hold, and the values in it.
fn filters(search: &Search, terms: &[Term], part: Part) -> Result<(String, Vec<Value>), StoreError> {
    let mut filters = vec![match part {
        Part::Unindexed => "nodes.n > (SELECT n FROM indexed)".to_owned(),
        Part::All | Part::Indexed => "1".to_owned(),
    }];
    let mut values = Vec::new();
    let mut add = |filter: &str, value: Value| {
        filters.push(filter.to_owned());
        values.push(value);
    };
    if part == Part::Indexed {
        add("words MATCH ?", Value::Text(expression(terms)));
    }
    if let Some(after) = &search.paging.after {
        add(&format!("{} < ?", part.tables().1), Value::Integer(after.number()?));
    }
    if let Some(id) = &search.conversation {
        add("conversations.id = ?", Value::Text(id.to_string()));
    }
    if let Some(since) = search.since {
        add("nodes.at >= ?", Value::Integer(since.0));
    }
    if let Some(until) = search.until {
        add("nodes.at < ?", Value::Integer(until.0));
    }
    if let Some(kinds) = kinds(search) {
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        filters.push(format!("nodes.kind IN ({})", kinds.join(", ")));
    }
    Ok((filters.join(" AND "), values))
}

/// Writes terms in the language of the index. Words are letters and digits only, so they need no escapes.
fn expression(terms: &[Term]) -> String {
    let word = |(held, open): (&str, bool)| format!("\"{held}\"{}", if open { " *" } else { "" });
    let all: Vec<String> = terms.iter().flat_map(Term::held).map(word).collect();
    all.join(" AND ")
}
