//! Reads entries, conversations and places in them.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use throughline_core::{ConversationId, EntryId, Place, Text};

use crate::digest::Digest;
use crate::pack::unpack;
use crate::prefix::longest_known_chain;
use crate::record::EntryReader;
use crate::{
    Chain, ConversationFilter, Conversations, Cursor, Entries, ExchangeId, Heading, Kept, Locate, Located,
    Moment, Page, Paging, StoreError,
};

/// Finds where a request continues.
pub(super) fn locate(connection: &Connection, locate: &Locate) -> Result<Option<Located>, StoreError> {
    let by = match locate {
        Locate::Prefix { within, chains } => return locate_prefix(connection, within.as_ref(), chains),
        Locate::Key(key) => ("keys ON keys.conversation = conversations.n AND keys.key = ?1", key.as_str()),
        Locate::Conversation(id) => ("(SELECT 1) ON conversations.id = ?1", id.as_str()),
    };
    let sql = format!(
        "SELECT conversations.id,
             (SELECT id FROM nodes WHERE conversation = conversations.n ORDER BY n DESC LIMIT 1)
         FROM conversations JOIN {}",
        by.0
    );
    let located = connection
        .prepare_cached(&sql)?
        .query_row([by.1], |row| {
            Ok(Located {
                conversation: ConversationId::new(row.get::<_, String>(0)?),
                entry: row.get::<_, Option<_>>(1)?.map(entry_id),
                known: 0,
                followed: false,
            })
        })
        .optional()?;
    Ok(located)
}

fn locate_prefix(
    connection: &Connection,
    within: Option<&ConversationId>,
    chains: &[Chain],
) -> Result<Option<Located>, StoreError> {
    let within: Option<i64> = match within {
        None => None,
        Some(id) => match conversation(connection, id)? {
            None => return Ok(None),
            n => n,
        },
    };
    let mut statement = connection.prepare_cached(
        "SELECT n FROM nodes WHERE chain = ?1 AND counts AND (?2 IS NULL OR conversation = ?2)
         ORDER BY n DESC LIMIT 1",
    )?;
    let look_up =
        |chain: Chain| statement.query_row(params![chain.0.bytes(), within], |row| row.get(0)).optional();
    let Some((known, n)) = longest_known_chain::<i64, _>(chains, look_up)? else { return Ok(None) };
    let located = connection
        .prepare_cached(
            "SELECT conversations.id, nodes.id, EXISTS (SELECT 1 FROM nodes AS next WHERE next.parent = nodes.n)
             FROM nodes JOIN conversations ON conversations.n = nodes.conversation WHERE nodes.n = ?1",
        )?
        .query_row([n], |row| {
            Ok(Located {
                conversation: ConversationId::new(row.get::<_, String>(0)?),
                entry: Some(entry_id(row.get(1)?)),
                known,
                followed: row.get(2)?,
            })
        })?;
    Ok(Some(located))
}

/// Lists conversations.
pub(super) fn conversations(
    connection: &Connection,
    which: &Conversations,
) -> Result<Page<Heading>, StoreError> {
    match which {
        Conversations::One(id) => {
            let found = headings(connection, "id = ?1", [id.as_str()])?;
            Ok(Page::single(found.into_iter().next().map(|(_, heading)| heading)))
        }
        Conversations::All(Paging { after, limit }) => {
            let (updated, n) = match after {
                Some(cursor) => cursor.pair()?,
                None => (i64::MAX, i64::MAX),
            };
            let filter = "(updated, n) < (?1, ?2) ORDER BY updated DESC, n DESC LIMIT ?3";
            let found = headings(connection, filter, params![updated, n, i64::from(*limit) + 1])?;
            Ok(Page::cut(found, *limit))
        }
        Conversations::Matching(filter, paging) => matching(connection, filter, paging),
    }
}

/// Those that a filter lets through. What is not asked for is NULL, and lets everything through.
const MATCHING: &str = "(updated, n) < (?1, ?2) AND updated >= ?3
    AND (?4 IS NULL OR substr(id, 1, length(?4)) = ?4 OR substr(id, 1, length(?4) + 5) = 'conv_' || ?4
        OR substr(CASE instr(id, '.') WHEN 0 THEN substr(id, -12) ELSE substr(id, instr(id, '.') + 1) END,
            1, length(?4)) = ?4)
    AND (?5 IS NULL OR instr(lower(title), lower(?5)) > 0)
    AND (?6 IS NULL OR EXISTS (SELECT 1 FROM exchanges
        WHERE exchanges.conversation = conversations.n AND instr(lower(client), lower(?6)) > 0))
    AND (?7 IS NULL OR EXISTS (SELECT 1 FROM exchanges JOIN attempts ON attempts.exchange = exchanges.n
        WHERE exchanges.conversation = conversations.n AND lower(attempts.backend) = lower(?7)))
    AND (?8 IS NULL OR EXISTS (SELECT 1 FROM settings
        WHERE settings.conversation = conversations.n AND name = 'project' AND instr(lower(value), lower(?8)) > 0))
    AND (NOT ?9 OR EXISTS (SELECT 1 FROM exchanges
        WHERE exchanges.conversation = conversations.n AND ending IN ('failed', 'broken')))
    AND (?10 IS NULL OR identified <> ?10)
    ORDER BY updated DESC, n DESC LIMIT ?11";

fn matching(
    connection: &Connection,
    filter: &ConversationFilter,
    paging: &Paging,
) -> Result<Page<Heading>, StoreError> {
    let (updated, n) = match &paging.after {
        Some(cursor) => cursor.pair()?,
        None => (i64::MAX, i64::MAX),
    };
    let params = params![
        updated,
        n,
        filter.since.map_or(i64::MIN, |since| since.0),
        filter.id.as_deref(),
        filter.title.as_deref(),
        filter.client.as_deref(),
        filter.backend.as_deref(),
        filter.project.as_deref(),
        filter.failed,
        filter.except_identified.as_deref(),
        i64::from(paging.limit) + 1,
    ];
    Ok(Page::cut(headings(connection, MATCHING, params)?, paging.limit))
}

fn headings(
    connection: &Connection,
    filter: &str,
    params: impl Params,
) -> Result<Vec<(Cursor, Heading)>, StoreError> {
    let sql = format!(
        "SELECT n, id, created, updated, identified, title,
             (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'backend'),
             (SELECT count(*) FROM nodes WHERE conversation = conversations.n),
             (SELECT count(*) FROM exchanges WHERE conversation = conversations.n),
             (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'project'),
             (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'parent')
         FROM conversations WHERE {filter}"
    );
    all(&mut *connection.prepare_cached(&sql)?, params, heading)
}

fn heading(row: &Row<'_>) -> Result<(Cursor, Heading), StoreError> {
    let updated: i64 = row.get(3)?;
    let heading = Heading {
        id: ConversationId::new(row.get::<_, String>(1)?),
        created: Moment(row.get(2)?),
        updated: Moment(updated),
        identified: text(row, 4)?,
        title: optional_text(row, 5)?,
        backend: optional_text(row, 6)?,
        entries: row.get::<_, i64>(7)?.cast_unsigned(),
        exchanges: row.get::<_, i64>(8)?.cast_unsigned(),
        project: optional_text(row, 9)?,
        parent: optional_text(row, 10)?.map(ConversationId::new),
    };
    Ok((Cursor::of_pair(updated, row.get(0)?), heading))
}

/// Reads entries.
pub(super) fn entries(connection: &Connection, which: &Entries) -> Result<Vec<Kept>, StoreError> {
    let by_id = |id: &EntryId| Digest::from_entry_id(id).map_or([0; Digest::BYTES], |digest| *digest.bytes());
    match which {
        Entries::One(id) => kept(connection, "", "nodes.id = ?1", [by_id(id)]),
        Entries::Item(id) => {
            kept(connection, "", "nodes.n = (SELECT node FROM items WHERE id = ?1)", [id.as_str()])
        }
        Entries::Branch(tip) => {
            let branch = "WITH RECURSIVE branch (n, parent) AS (
                    SELECT n, parent FROM nodes WHERE id = ?1
                    UNION ALL SELECT nodes.n, nodes.parent FROM branch JOIN nodes ON nodes.n = branch.parent
                )";
            kept(connection, branch, "nodes.n IN (SELECT n FROM branch)", [by_id(tip)])
        }
        Entries::Conversation(id) => kept(
            connection,
            "",
            "nodes.conversation = (SELECT n FROM conversations WHERE id = ?1)",
            [id.as_str()],
        ),
    }
}

fn kept(
    connection: &Connection,
    with: &str,
    filter: &str,
    params: impl Params,
) -> Result<Vec<Kept>, StoreError> {
    let sql = format!(
        "{with} SELECT nodes.id, conversations.id, parents.id, exchanges.id, nodes.at, codec, size, bytes,
             nodes.message, nodes.block
         FROM nodes JOIN conversations ON conversations.n = nodes.conversation
             JOIN blobs ON blobs.n = nodes.record
             LEFT JOIN nodes AS parents ON parents.n = nodes.parent
             LEFT JOIN exchanges ON exchanges.n = nodes.exchange
         WHERE {filter} ORDER BY nodes.n"
    );
    let mut reader = EntryReader::default();
    all(&mut *connection.prepare_cached(&sql)?, params, |row| {
        let id = entry_id(row.get(0)?);
        let place = place(row, 8)?;
        let mut read =
            || reader.decode(&unpacked(row, 5)?, place, &mut |digest| load_blob(connection, digest));
        let entry = read().map_err(|error| error.of_entry(&id))?;
        Ok(Kept {
            id,
            conversation: ConversationId::new(row.get::<_, String>(1)?),
            parent: row.get::<_, Option<_>>(2)?.map(entry_id),
            exchange: optional_text(row, 3)?.map(ExchangeId::new),
            at: Moment(row.get(4)?),
            entry,
        })
    })
}

/// Collects what a query finds.
pub(super) fn all<T>(
    statement: &mut rusqlite::Statement<'_>,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Returns the number of a conversation.
pub(super) fn conversation(connection: &Connection, id: &ConversationId) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT n FROM conversations WHERE id = ?1")?;
    Ok(statement.query_row([id.as_str()], |row| row.get(0)).optional()?)
}

/// Reads the record of that digest.
pub(super) fn load_blob(connection: &Connection, digest: Digest) -> Result<Vec<u8>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT codec, size, bytes FROM blobs WHERE digest = ?1")?;
    let mut rows = statement.query([digest.bytes()])?;
    match rows.next()? {
        Some(row) => unpacked(row, 0),
        None => Err(StoreError::Damaged(format!("record {digest} is missing"))),
    }
}

/// Unpacks the content whose codec, size and bytes begin in that column.
pub(super) fn unpacked(row: &Row<'_>, column: usize) -> Result<Vec<u8>, StoreError> {
    unpack(row.get(column)?, row.get(column + 1)?, row.get(column + 2)?)
}

/// Reads a place whose two numbers begin in that column.
pub(super) fn place(row: &Row<'_>, column: usize) -> Result<Option<Place>, StoreError> {
    let message: Option<u32> = row.get(column)?;
    let block = row.get(column + 1)?;
    Ok(message.map(|message| Place { message, block }))
}

pub(super) fn entry_id(bytes: [u8; Digest::BYTES]) -> EntryId {
    Digest::from_bytes(bytes).to_entry_id()
}

pub(super) fn text(row: &Row<'_>, column: usize) -> Result<Text, StoreError> {
    Ok(row.get::<_, String>(column)?.into())
}

pub(super) fn optional_text(row: &Row<'_>, column: usize) -> Result<Option<Text>, StoreError> {
    Ok(optional::<String>(row, column)?.map(Text::from))
}

pub(super) fn optional<T: FromSql>(row: &Row<'_>, column: usize) -> Result<Option<T>, StoreError> {
    Ok(row.get(column)?)
}
