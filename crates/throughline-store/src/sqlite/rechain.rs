//! Gives the entries of an older database the chains that they have by now, so that its conversations are recognised
//! by what their calls mean.

use rusqlite::{Connection, OptionalExtension, params};

use super::read::{load_blob, unpacked};
use crate::chain::Saying;
use crate::digest::Digest;
use crate::record::EntryReader;
use crate::{Chain, StoreError};

/// The index is made anew in one go: bringing it along entry by entry would move most of it about.
const WITHOUT_INDEX: &str = "DROP INDEX nodes_by_chain";
const WITH_INDEX: &str = "CREATE INDEX nodes_by_chain ON nodes (chain) WHERE counts";

/// Works out the chain of every entry anew, inside a transaction that is under way.
///
/// An entry whose record is damaged keeps the chain that it has: it is for `store check` to say so, and no reason to
/// keep the rest of the history closed.
pub(super) fn rechain(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch(WITHOUT_INDEX)?;
    update_all(connection)?;
    Ok(connection.execute_batch(WITH_INDEX)?)
}

fn update_all(connection: &Connection) -> Result<(), StoreError> {
    // What an entry follows has a smaller number, so it has been seen to already.
    let mut entries = connection.prepare(
        "SELECT nodes.n, nodes.parent, nodes.chain, codec, size, bytes
         FROM nodes JOIN blobs ON blobs.n = nodes.record ORDER BY nodes.n",
    )?;
    let mut chain_of = connection.prepare("SELECT chain FROM nodes WHERE n = ?1")?;
    let mut update = connection.prepare("UPDATE nodes SET chain = ?2 WHERE n = ?1")?;
    let mut reader = EntryReader::default();
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        let (n, parent): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
        let read = unpacked(row, 3)
            .and_then(|record| reader.decode(&record, None, &mut |digest| load_blob(connection, digest)));
        let entry = match read {
            Err(StoreError::Damaged(_)) => continue,
            read => read?,
        };
        let before = match parent {
            Some(parent) => chain_of.query_row([parent], |row| row.get(0)).optional()?,
            None => None,
        };
        let before = before.map_or(Chain::ROOT, |bytes| Chain(Digest::from_bytes(bytes)));
        let (chain, _) = before.after(Saying::of(&entry));
        if row.get::<_, [u8; Digest::BYTES]>(2)? != *chain.0.bytes() {
            update.execute(params![n, chain.0.bytes()])?;
        }
    }
    Ok(())
}
