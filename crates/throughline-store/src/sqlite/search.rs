//! Searches the index of words.
//!
//! The index knows which words occur in an entry, and not where: it takes a third of the space so. It names the
//! entries that may fit; whether they do is seen in the entry itself, which is read for its snippet anyway.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use throughline_core::ConversationId;

use super::read::{entry_id, load_blob, optional_text, place, text, unpacked};
use crate::record::EntryReader;
use crate::tags::{kind, kinds};
use crate::words::{Findable, Term, terms};
use crate::{Cursor, ExchangeId, Hit, Moment, Page, Search, StoreError};

/// Searches, the latest first.
pub(super) fn search(connection: &Connection, search: &Search) -> Result<Page<Hit>, StoreError> {
    let Some(terms) = terms(&search.words) else { return Ok(Page::default()) };
    let (filters, values) = filters(search, &terms)?;
    // The index of words is read backwards by number, so that the first page costs no more than a page.
    let (from, number) = match terms.is_empty() {
        true => ("nodes", "nodes.n"),
        false => ("words CROSS JOIN nodes ON nodes.n = words.rowid", "words.rowid"),
    };
    let sql = format!(
        "SELECT nodes.n, conversations.id, nodes.id, exchanges.id, nodes.at, nodes.kind, nodes.tool,
             codec, size, bytes, nodes.message, nodes.block
         FROM {from} JOIN conversations ON conversations.n = nodes.conversation
             JOIN blobs ON blobs.n = nodes.record LEFT JOIN exchanges ON exchanges.n = nodes.exchange
         WHERE {filters} ORDER BY {number} DESC"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut reader = EntryReader::default();
    let mut hits = Vec::new();
    while hits.len() <= search.paging.limit as usize
        && let Some(row) = rows.next()?
    {
        let record = unpacked(row, 7)?;
        let entry = reader.decode(&record, place(row, 10)?, &mut |digest| load_blob(connection, digest))?;
        let found = Findable::of(&entry);
        if found.matches(&terms, search.field) {
            hits.push((Cursor::of(row.get(0)?), hit(row, found.snippet(&terms, search.field))?));
        }
    }
    Ok(Page::cut(hits, search.paging.limit))
}

fn hit(row: &Row<'_>, snippet: String) -> Result<Hit, StoreError> {
    Ok(Hit {
        conversation: ConversationId::new(text(row, 1)?),
        entry: entry_id(row.get(2)?),
        exchange: optional_text(row, 3)?.map(ExchangeId::new),
        at: Moment(row.get(4)?),
        kind: kind(row.get(5)?)?,
        tool: optional_text(row, 6)?,
        snippet,
    })
}

/// Returns what must hold, and the values in it.
fn filters(search: &Search, terms: &[Term]) -> Result<(String, Vec<Value>), StoreError> {
    let mut filters = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut add = |filter: &str, value: Value| {
        filters.push(filter.to_owned());
        values.push(value);
    };
    if !terms.is_empty() {
        add("words MATCH ?", Value::Text(expression(terms)));
    }
    if let Some(after) = &search.paging.after {
        let number = if terms.is_empty() { "nodes.n < ?" } else { "words.rowid < ?" };
        add(number, Value::Integer(after.number()?));
    }
    if let Some(id) = &search.conversation {
        add("conversations.id = ?", Value::Text(id.to_string()));
    }
    if let Some(tool) = &search.tool {
        add("nodes.tool = ?", Value::Text(tool.to_string()));
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
