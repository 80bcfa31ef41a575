//! Searches the index of words.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use throughline_core::ConversationId;

use super::read::{all, entry_id, load_blob, optional_text, place, text, unpacked};
use super::tags::{RETURNED_OK, kind};
use crate::record::EntryReader;
use crate::words::{Findable, Term, terms};
use crate::{Cursor, ExchangeId, Field, Hit, Moment, Page, Search, StoreError};

/// Searches, the latest first.
pub(super) fn search(connection: &Connection, search: &Search) -> Result<Page<Hit>, StoreError> {
    let Some(terms) = terms(&search.words) else { return Ok(Page::default()) };
    let (filters, values) = filters(search, &terms)?;
    // The index of words is read backwards by number, so that the first page costs no more than a page.
    let from = if terms.is_empty() { "nodes" } else { "words CROSS JOIN nodes ON nodes.n = words.rowid" };
    let number = if terms.is_empty() { "nodes.n" } else { "words.rowid" };
    let sql = format!(
        "SELECT nodes.n, conversations.id, nodes.id, exchanges.id, nodes.at, nodes.kind, nodes.tool,
             codec, size, bytes, nodes.message, nodes.block
         FROM {from} JOIN conversations ON conversations.n = nodes.conversation
             JOIN blobs ON blobs.n = nodes.record LEFT JOIN exchanges ON exchanges.n = nodes.exchange
         WHERE {filters} ORDER BY {number} DESC LIMIT {}",
        i64::from(search.paging.limit) + 1
    );
    let mut reader = EntryReader::default();
    let mut statement = connection.prepare(&sql)?;
    let hits = all(&mut statement, params_from_iter(values), |row| {
        let record = unpacked(row, 7)?;
        let entry = reader.decode(&record, place(row, 10)?, &mut |digest| load_blob(connection, digest))?;
        let snippet = Findable::of(&entry).snippet(&terms, search.field);
        Ok((Cursor::of(row.get(0)?), hit(row, snippet)?))
    })?;
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
        add("words MATCH ?", Value::Text(expression(terms, search.field)));
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
    if search.failed {
        add("nodes.kind > ?", Value::Integer(RETURNED_OK));
    }
    Ok((filters.join(" AND "), values))
}

/// Writes terms in the language of the index. Words are letters and digits only, so they need no escapes.
fn expression(terms: &[Term], field: Option<Field>) -> String {
    let phrase = |term: &Term| {
        let open = if term.open { " *" } else { "" };
        format!("\"{}\"{open}", term.words.join(" "))
    };
    let all: Vec<String> = terms.iter().map(phrase).collect();
    let all = all.join(" AND ");
    match field {
        None => all,
        Some(Field::Talk) => format!("talk : ({all})"),
        Some(Field::Input) => format!("input : ({all})"),
        Some(Field::Output) => format!("output : ({all})"),
    }
}
