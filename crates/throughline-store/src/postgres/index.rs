//! The index of words, brought up to date in large steps.
//!
//! Words of many entries together take a fraction of the space that they take entry by entry, so the index knows
//! pieces of the history: some hundred entries by their numbers, and which words occur among them. What is not
//! in a piece yet is short enough to be looked through. How far the pieces reach is in the database.
//!
//! Numbers are given out before a transaction is committed, so a smaller one may appear after a larger one.
//! Everybody is kept from inserting for the moment in which the largest number is read: whatever is below it
//! has appeared then, or never will.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::bodies::load_blobs;
use super::connection::Connection;
use super::failure::Failure;
use super::pool::Question;
use super::value::unpacked;
use crate::StoreError;
use crate::digest::Digest;
use crate::record::EntryReader;
use crate::words::Findable;

/// Brings the index up to date.
#[derive(Debug)]
pub(super) struct Index;

/// How many entries make a piece.
pub(super) const PIECE_ENTRIES: i64 = 512;

/// No piece has words of more than twice as many bytes; the server takes a megabyte.
const PIECE_BYTES: usize = 256 * 1024;

/// Pieces are made one by one, and by one replica at a time: "words", in ASCII.
const TAKE_TURN: &str = "SELECT pg_try_advisory_xact_lock(512970878067)";

const HORIZON: &str = "SELECT coalesce(max(n), 0) FROM nodes";

const INDEXED: &str = "SELECT n FROM indexed";

const UNINDEXED: &str = "
    SELECT nodes.n, blobs.codec, blobs.size, blobs.bytes, nodes.envelope
    FROM nodes JOIN blobs ON blobs.digest = nodes.record
    WHERE nodes.n > $1 AND nodes.n <= $2 ORDER BY nodes.n LIMIT $3";

const ADD: &str = "INSERT INTO words (first, last, words) VALUES ($1, $2, $3)";

const REACHED: &str = "UPDATE indexed SET n = $1";

/// A piece in the making.
struct Piece {
    last: i64,
    words: String,
}

impl Question for Index {
    type Answer = ();

    async fn ask(&self, connection: &mut Connection) -> Result<(), Failure> {
        while add_piece(connection).await? {}
        Ok(())
    }
}

/// Returns up to which number the words are known.
pub(super) async fn indexed(connection: &mut Connection) -> Result<i64, Failure> {
    let rows = connection.query(INDEXED, &[]).await?;
    let missing = || StoreError::Damaged("it does not say how far its index reaches".to_owned());
    Ok(rows.first().ok_or_else(missing)?.try_get(0)?)
}

/// Adds a piece, and says whether there may be more to add.
async fn add_piece(connection: &mut Connection) -> Result<bool, Failure> {
    connection.client.batch_execute("BEGIN; SET LOCAL synchronous_commit = off").await?;
    let rows = connection.query(TAKE_TURN, &[]).await?;
    let is_ours: bool = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false);
    let added = if is_ours { add_next(connection).await? } else { false };
    connection.client.batch_execute("COMMIT").await?;
    Ok(added)
}

async fn add_next(connection: &mut Connection) -> Result<bool, Failure> {
    // The lock goes with the savepoint, before anything takes time.
    let lock = "SAVEPOINT alone; LOCK TABLE nodes IN SHARE MODE";
    connection.client.batch_execute(lock).await?;
    let rows = connection.query(HORIZON, &[]).await?;
    let horizon: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(0);
    connection.client.batch_execute("ROLLBACK TO SAVEPOINT alone").await?;

    let from = indexed(connection).await?;
    let rows = connection.query(UNINDEXED, &[&from, &horizon, &PIECE_ENTRIES]).await?;
    if (rows.len() as i64) < PIECE_ENTRIES {
        return Ok(false);
    }
    let envelopes = rows.iter().filter_map(|row| row.try_get::<_, Option<Digest>>(4).transpose());
    let envelopes = load_blobs(connection, envelopes.collect::<Result<BTreeSet<_>, _>>()?).await?;
    let mut load = |digest| {
        let missing = || StoreError::Damaged(format!("record {digest} is missing"));
        envelopes.get(&digest).cloned().ok_or_else(missing)
    };
    let piece = tokio::task::block_in_place(|| piece(&rows, &mut load))?;
    connection.query(ADD, &[&(from + 1), &piece.last, &piece.words]).await?;
    connection.query(REACHED, &[&piece.last]).await?;
    Ok(true)
}

/// Returns the words of all of these entries, as a piece holds them.
pub(super) fn words_of(rows: &[Row], envelopes: &BTreeMap<Digest, Vec<u8>>) -> Result<String, Failure> {
    let mut reader = EntryReader::default();
    let mut words = BTreeSet::new();
    let mut load = |digest| {
        let missing = || StoreError::Damaged(format!("record {digest} is missing"));
        envelopes.get(&digest).cloned().ok_or_else(missing)
    };
    for row in rows {
        words.extend(distinct(&mut reader, row, &mut load)?);
    }
    Ok(words.into_iter().collect::<Vec<_>>().join(" "))
}

/// Returns the words of an entry, each once.
///
/// An entry whose record is damaged has none: `store check` tells of it, and the others are found all the same.
fn distinct(
    reader: &mut EntryReader,
    row: &Row,
    load: &mut dyn FnMut(Digest) -> Result<Vec<u8>, StoreError>,
) -> Result<BTreeSet<String>, Failure> {
    let read = unpacked(row, 1).and_then(|record| Ok(reader.decode(&record, None, load)?));
    match read {
        Err(Failure::Store(StoreError::Damaged(_))) => Ok(BTreeSet::new()),
        read => Ok(Findable::of(&read?).distinct()),
    }
}

/// Gathers the words of as many entries as go into one piece.
fn piece(
    rows: &[Row],
    load: &mut dyn FnMut(Digest) -> Result<Vec<u8>, StoreError>,
) -> Result<Piece, Failure> {
    let mut reader = EntryReader::default();
    let mut words = BTreeSet::new();
    let (mut bytes, mut last) = (0, 0);
    for row in rows {
        last = row.try_get(0)?;
        for word in distinct(&mut reader, row, load)? {
            bytes += if words.contains(&word) { 0 } else { word.len() };
            words.insert(word);
        }
        if bytes >= PIECE_BYTES {
            break;
        }
    }
    let words: Vec<String> = words.into_iter().collect();
    Ok(Piece { last, words: words.join(" ") })
}
