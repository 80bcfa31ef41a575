//! Reads documents of attempts: what differs from an earlier one of their kind, put together again.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use tokio_postgres::Row;

use super::connection::Connection;
use super::failure::Failure;
use super::plan::Line;
use super::value::{packed, plain, small, unpacked};
use crate::StoreError;
use crate::bodies::Sent;
use crate::digest::Digest;
use crate::pack::undelta;
use crate::tags::document_tag;

const LATEST: &str = "
    SELECT bodies.digest, bodies.depth
    FROM conversations JOIN exchanges ON exchanges.conversation = conversations.n
        JOIN documents ON documents.exchange = exchanges.n JOIN bodies ON bodies.digest = documents.body
    WHERE conversations.id = $1 AND documents.kind = $2
    ORDER BY exchanges.n DESC, documents.attempt DESC LIMIT 1";

/// A base has fewer bases below it than what is based on it; anything else would not end.
const WITH_BASES: &str = "
    WITH RECURSIVE needed (digest, base, depth) AS (
        SELECT digest, base, depth FROM bodies WHERE digest = $1
        UNION ALL
        SELECT bodies.digest, bodies.base, bodies.depth FROM needed JOIN bodies ON bodies.digest = needed.base
        WHERE bodies.depth < needed.depth
    )
    SELECT bodies.base, bodies.sources, bodies.head, bodies.tail, bodies.codec, bodies.size, bodies.bytes
    FROM needed JOIN bodies ON bodies.digest = needed.digest ORDER BY needed.depth";

/// Records by their digests.
pub(super) const BLOBS: &str = "SELECT digest, codec, size, bytes FROM blobs WHERE digest = ANY($1)";

/// Returns the latest document of a kind in a conversation.
pub(super) async fn latest(
    connection: &mut Connection,
    (conversation, kind): &Line,
) -> Result<Option<Sent<Digest>>, Failure> {
    let kind = document_tag(*kind) as i16;
    let found = connection.query(LATEST, &[&plain(conversation.as_str()), &kind]).await?;
    let Some(row) = found.first() else { return Ok(None) };
    let key: Digest = row.try_get(0)?;
    let depth = small(row, 1)?.into();
    Ok(Some(Sent { key, depth, body: read(connection, key).await? }))
}

/// Reads a request.
pub(super) async fn read(connection: &mut Connection, digest: Digest) -> Result<Bytes, Failure> {
    let rows = connection.query(WITH_BASES, &[&digest]).await?;
    let incomplete = || StoreError::Damaged("the base of a request is missing".to_owned());
    let first = rows.first().ok_or_else(incomplete)?;
    if first.try_get::<_, Option<Digest>>(0)?.is_some() {
        return Err(incomplete().into());
    }
    let sources = rows.iter().map(sources).collect::<Result<Vec<_>, _>>()?;
    let wanted: BTreeSet<Digest> = sources.iter().flatten().flatten().copied().collect();
    let blobs = load_blobs(connection, wanted).await?;
    let mut body = Vec::new();
    for (row, sources) in rows.iter().zip(&sources) {
        let mut dictionary = Vec::new();
        for source in sources.iter().flatten() {
            let missing = || StoreError::Damaged("a source of a request is missing".to_owned());
            dictionary.extend_from_slice(blobs.get(source).ok_or_else(missing)?);
        }
        let ends = (small(row, 2)? as usize, small(row, 3)? as usize);
        body = undelta(&body, &dictionary, ends, packed(row, 4)?)?;
    }
    Ok(body.into())
}

/// Reads the envelopes that the records of `rows` were written with; `column` holds their digests.
pub(super) async fn load_envelopes(
    connection: &mut Connection,
    rows: &[Row],
    column: usize,
) -> Result<BTreeMap<Digest, Vec<u8>>, Failure> {
    let wanted = rows.iter().filter_map(|row| row.try_get::<_, Option<Digest>>(column).transpose());
    load_blobs(connection, wanted.collect::<Result<_, _>>()?).await
}

/// Reads records.
pub(super) async fn load_blobs(
    connection: &mut Connection,
    wanted: BTreeSet<Digest>,
) -> Result<BTreeMap<Digest, Vec<u8>>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let wanted: Vec<Digest> = wanted.into_iter().collect();
    let rows = connection.query(BLOBS, &[&wanted]).await?;
    by_digest(&rows)
}

/// Returns the records that [`BLOBS`] found, by their digests.
pub(super) fn by_digest(rows: &[Row]) -> Result<BTreeMap<Digest, Vec<u8>>, Failure> {
    rows.iter().map(|row| Ok((row.try_get(0)?, unpacked(row, 1)?))).collect()
}

fn sources(row: &Row) -> Result<Option<Vec<Digest>>, Failure> {
    Ok(row.try_get(1)?)
}
