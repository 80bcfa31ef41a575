//! Documents of attempts, written and read as what differs from an earlier one of their kind.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::read::unpacked;
use crate::bodies::{Bodies, Differs, Sent};
use crate::checksum::body_checksum;
use crate::digest::Digest;
use crate::pack::undelta;
use crate::record::{Reader, Writer};
use crate::tags::document_tag;
use crate::{DocumentKind, StoreError};

/// What is stored under a digest, and its number in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    pub n: i64,
    pub digest: Digest,
}

/// The documents of a kind in a conversation.
pub(super) type Line = (i64, DocumentKind);

/// What was written lately.
pub(super) type Lately = Bodies<Line, Numbered>;

/// Returns the number of a document, which is stored if it is not there yet.
pub(super) fn keep(
    bodies: &mut Lately,
    connection: &Connection,
    line: Line,
    digest: Digest,
    body: &Bytes,
) -> Result<i64, StoreError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT n FROM bodies WHERE digest = ?1")?
        .query_row([digest.bytes()], |row| row.get(0))
        .optional()?;
    if let Some(n) = found {
        return Ok(n);
    }
    let latest = if bodies.needs_latest(&line, body) { latest(connection, line)? } else { None };
    let differs = bodies.compare(&line, latest, body);
    let n = store(connection, digest, &differs)?;
    let key = Numbered { n, digest };
    bodies.put_at_hand(&line, Sent { key, depth: differs.depth, body: body.clone() });
    Ok(n)
}

/// Reads a request.
pub(super) fn read(connection: &Connection, n: i64) -> Result<Vec<u8>, StoreError> {
    let mut deltas = Vec::new();
    let mut next = Some(n);
    while let Some(n) = next {
        let mut statement = connection.prepare_cached(
            "SELECT base, sources, head, tail, codec, size, bytes FROM bodies WHERE n = ?1",
        )?;
        let (base, sources, ends, middle) = statement.query_row([n], |row| {
            let middle = (row.get(4)?, row.get(5)?, row.get(6)?);
            Ok((row.get(0)?, row.get::<_, Option<Vec<u8>>>(1)?, (row.get(2)?, row.get(3)?), middle))
        })?;
        deltas.push((sources, ends, middle));
        // A base is older than what is based on it; anything else would not end.
        next = match base {
            Some(base) if base >= n => {
                return Err(StoreError::Damaged("a request is its own base".to_owned()));
            }
            base => base,
        };
    }
    let mut body = Vec::new();
    for (sources, ends, middle) in deltas.into_iter().rev() {
        let sources = match sources {
            Some(numbers) => read_sources(connection, &numbers)?,
            None => Vec::new(),
        };
        body = undelta(&body, &sources, ends, middle)?;
    }
    Ok(body)
}

fn read_sources(connection: &Connection, numbers: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT codec, size, bytes FROM blobs WHERE n = ?1")?;
    let numbers = Reader::new(numbers).list(Reader::number)?;
    let mut sources = Vec::new();
    for number in numbers {
        let mut rows = statement.query([number])?;
        let missing = || StoreError::Damaged("a source of a request is missing".to_owned());
        sources.extend(unpacked(rows.next()?.ok_or_else(missing)?, 0)?);
    }
    Ok(sources)
}

fn store(
    connection: &Connection,
    digest: Digest,
    differs: &Differs<'_, Numbered>,
) -> Result<i64, StoreError> {
    let middle = &differs.delta.middle;
    let numbers = |sources: &[Numbered]| encoded(&sources.iter().map(|source| source.n).collect::<Vec<_>>());
    let digests = |sources: &[Numbered]| sources.iter().map(|source| source.digest).collect::<Vec<_>>();
    let (base, sources) = (differs.base, differs.sources.as_deref());
    let checksum =
        body_checksum(digest, differs, base.map(|base| base.digest), sources.map(digests).as_deref());
    connection
        .prepare_cached(
            "INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes, checksum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            digest.bytes(),
            base.map(|base| base.n),
            differs.depth,
            sources.map(numbers),
            differs.delta.head,
            differs.delta.tail,
            middle.codec as i64,
            middle.size,
            middle.bytes,
            checksum,
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Writes the numbers of records as they are kept beside a request.
pub(super) fn encoded(numbers: &[i64]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.number(numbers.len() as u64);
    for number in numbers {
        writer.number(number.cast_unsigned());
    }
    writer.finish()
}

fn latest(connection: &Connection, (conversation, kind): Line) -> Result<Option<Sent<Numbered>>, StoreError> {
    let found: Option<(i64, i64, [u8; Digest::BYTES])> = connection
        .prepare_cached(
            "SELECT bodies.n, bodies.depth, bodies.digest
             FROM exchanges JOIN documents ON documents.exchange = exchanges.n
                 JOIN bodies ON bodies.n = documents.body
             WHERE exchanges.conversation = ?1 AND documents.kind = ?2
             ORDER BY exchanges.n DESC, documents.attempt DESC LIMIT 1",
        )?
        .query_row([conversation, document_tag(kind)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((n, depth, digest)) = found else { return Ok(None) };
    let key = Numbered { n, digest: Digest::from_bytes(digest) };
    Ok(Some(Sent { key, depth, body: read(connection, n)?.into() }))
}
