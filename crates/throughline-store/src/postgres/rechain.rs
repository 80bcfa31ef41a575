//! Gives the entries of an older database the chains that they have by now, so that its conversations are recognised
//! by what their calls mean. Some at a time: a history may be larger than memory.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;

use super::bodies::load_blobs;
use super::connection::Connection;
use super::failure::Failure;
use super::value::unpacked;
use crate::chain::Saying;
use crate::digest::Digest;
use crate::record::EntryReader;
use crate::{Chain, StoreError};

/// How many entries are seen to at once.
const AT_ONCE: i64 = 256;

/// The index is made anew in one go: bringing it along entry by entry would move most of it about.
const WITHOUT_INDEX: &str = "DROP INDEX nodes_by_chain";
const WITH_INDEX: &str = "CREATE INDEX nodes_by_chain ON nodes (chain, n) WHERE counts";

const NEXT: &str = "
    SELECT nodes.n, blobs.codec, blobs.size, blobs.bytes, nodes.envelope, nodes.id, nodes.parent, nodes.chain
    FROM nodes JOIN blobs ON blobs.digest = nodes.record
    WHERE nodes.n > $1 ORDER BY nodes.n LIMIT $2";

const CHAINS: &str = "SELECT id, chain FROM nodes WHERE id = ANY($1)";

const UPDATE: &str = "
    UPDATE nodes SET chain = fresh.chain
    FROM unnest($1::bigint[], $2::uuid[]) AS fresh (n, chain) WHERE nodes.n = fresh.n";

/// Works out the chain of every entry anew, inside a transaction that is under way.
///
/// An entry whose record is damaged keeps the chain that it has: it is for `store check` to say so, and no reason to
/// keep the rest of the history closed.
pub(super) async fn rechain(connection: &mut Connection) -> Result<(), Failure> {
    connection.client.batch_execute(WITHOUT_INDEX).await?;
    let mut from = 0;
    while let Some(last) = update_next(connection, from).await? {
        from = last;
    }
    Ok(connection.client.batch_execute(WITH_INDEX).await?)
}

/// Sees to the entries behind the one of that number, and returns the number of the last.
async fn update_next(connection: &mut Connection, from: i64) -> Result<Option<i64>, Failure> {
    let rows = connection.query(NEXT, &[&from, &AT_ONCE]).await?;
    let Some(last) = rows.last() else { return Ok(None) };
    let last = last.try_get(0)?;
    let digests = |column: usize| {
        let found = rows.iter().filter_map(|row| row.try_get::<_, Option<Digest>>(column).transpose());
        found.collect::<Result<BTreeSet<Digest>, _>>()
    };
    let (envelopes, parents) = (digests(4)?, digests(6)?);
    let envelopes = load_blobs(connection, envelopes).await?;
    let mut chains = BTreeMap::new();
    for row in connection.query(CHAINS, &[&parents.into_iter().collect::<Vec<_>>()]).await? {
        chains.insert(row.try_get(0)?, Chain(row.try_get(1)?));
    }
    let (numbers, fresh) = tokio::task::block_in_place(|| fresh_chains(&rows, &envelopes, chains))?;
    connection.query(UPDATE, &[&numbers, &fresh]).await?;
    Ok(Some(last))
}

/// Returns the numbers of entries with other chains than they have, and those chains; `chains` are those of what the
/// entries follow, as far as that is not among them.
fn fresh_chains(
    rows: &[Row],
    envelopes: &BTreeMap<Digest, Vec<u8>>,
    mut chains: BTreeMap<Digest, Chain>,
) -> Result<(Vec<i64>, Vec<Digest>), Failure> {
    let mut reader = EntryReader::default();
    let mut load = |digest| {
        let missing = || StoreError::Damaged(format!("record {digest} is missing"));
        envelopes.get(&digest).cloned().ok_or_else(missing)
    };
    let (mut numbers, mut fresh) = (Vec::new(), Vec::new());
    for row in rows {
        let (id, parent): (Digest, Option<Digest>) = (row.try_get(5)?, row.try_get(6)?);
        let stored = Chain(row.try_get(7)?);
        let before = parent.and_then(|parent| chains.get(&parent).copied()).unwrap_or(Chain::ROOT);
        let read = unpacked(row, 1).and_then(|record| Ok(reader.decode(&record, None, &mut load)?));
        let chain = match read {
            Ok(entry) => before.after(Saying::of(&entry)).0,
            Err(Failure::Store(StoreError::Damaged(_))) => stored,
            Err(failure) => return Err(failure),
        };
        chains.insert(id, chain);
        if chain != stored {
            numbers.push(row.try_get(0)?);
            fresh.push(chain.0);
        }
    }
    Ok((numbers, fresh))
}
