//! Takes conversations out of the database, with all that nothing else uses.
//!
//! Contents are stored once, whoever said them; requests rest on earlier ones and on records. So what goes is found
//! out in two steps: what the conversations use, and of that what nobody else does. What is deleted is overwritten
//! (`secure_delete`), in the index of words as well, and the log is emptied: it should not be found in the file.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use throughline_core::ConversationId;

use super::index::{rebuild, words_of};
use crate::StoreError;
use crate::record::{EntryReader, Reader};
use crate::upkeep::{Candidate, Outworn, PRUNED_AT_ONCE, Prune, Pruned, beyond};

/// Conversations, the oldest first, with the bytes of what belongs to them.
const CANDIDATES: &str = "
    SELECT n, id,
        (SELECT coalesce(sum(length(blobs.bytes)), 0) FROM nodes JOIN blobs ON blobs.n = nodes.record
         WHERE nodes.conversation = conversations.n)
        + (SELECT coalesce(sum(length(bodies.bytes)), 0) FROM exchanges JOIN documents ON documents.exchange = exchanges.n
             JOIN bodies ON bodies.n = documents.body WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(events.bytes)), 0) FROM exchanges
             JOIN events ON events.exchange = exchanges.n WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(answers.bytes)), 0) FROM exchanges
             JOIN answers ON answers.exchange = exchanges.n WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(bytes)), 0) FROM compaction_steps
             WHERE compaction_steps.conversation = conversations.n)
    FROM conversations";

/// What the conversations to be taken out use, before anything is gone.
const GATHER: &str = "
    CREATE TEMP TABLE gone_exchanges AS
        SELECT n FROM exchanges WHERE conversation IN (SELECT n FROM gone);
    CREATE TEMP TABLE gone_nodes AS
        SELECT n, record, envelope FROM nodes WHERE conversation IN (SELECT n FROM gone);
    CREATE TEMP TABLE loose_bodies (n INTEGER PRIMARY KEY);
    INSERT INTO loose_bodies
        WITH RECURSIVE used (n) AS (
            SELECT body FROM documents WHERE exchange IN (SELECT n FROM gone_exchanges)
            UNION SELECT bodies.base FROM used JOIN bodies ON bodies.n = used.n WHERE bodies.base IS NOT NULL
        ) SELECT n FROM used;
    CREATE TEMP TABLE loose_blobs (n INTEGER PRIMARY KEY);
    INSERT INTO loose_blobs
        SELECT record FROM gone_nodes UNION SELECT envelope FROM gone_nodes WHERE envelope IS NOT NULL;";

/// Everything that belongs to them alone.
const DELETE: &str = "
    DELETE FROM items WHERE node IN (SELECT n FROM gone_nodes);
    DELETE FROM documents WHERE exchange IN (SELECT n FROM gone_exchanges);
    DELETE FROM answers WHERE exchange IN (SELECT n FROM gone_exchanges);
    DELETE FROM events WHERE exchange IN (SELECT n FROM gone_exchanges);
    DELETE FROM compaction_steps WHERE conversation IN (SELECT n FROM gone);
    DELETE FROM attempts WHERE exchange IN (SELECT n FROM gone_exchanges);
    DELETE FROM exchanges WHERE conversation IN (SELECT n FROM gone);
    DELETE FROM nodes WHERE conversation IN (SELECT n FROM gone);
    DELETE FROM keys WHERE conversation IN (SELECT n FROM gone);
    DELETE FROM settings WHERE conversation IN (SELECT n FROM gone);
    DELETE FROM conversations WHERE n IN (SELECT n FROM gone);
    DELETE FROM loose_bodies WHERE n IN (
        WITH RECURSIVE kept (n) AS (
            SELECT body FROM documents WHERE body IN (SELECT n FROM loose_bodies)
            UNION SELECT base FROM bodies
                WHERE base IN (SELECT n FROM loose_bodies) AND n NOT IN (SELECT n FROM loose_bodies)
            UNION SELECT bodies.base FROM kept JOIN bodies ON bodies.n = kept.n WHERE bodies.base IS NOT NULL
        ) SELECT n FROM kept);";

/// Records that entries still use are kept.
const KEEP_USED: &str = "
    DELETE FROM loose_blobs WHERE n IN (SELECT record FROM nodes WHERE record IN (SELECT n FROM loose_blobs))
        OR n IN (SELECT envelope FROM nodes WHERE envelope IN (SELECT n FROM loose_blobs));";

/// Numbers of entries that went are given out again, and what comes under them has to be indexed as well.
const REACH: &str = "UPDATE indexed SET n = min(n, coalesce((SELECT max(n) FROM nodes), 0));";

const FORGET: &str = "
    DROP TABLE gone; DROP TABLE gone_exchanges; DROP TABLE gone_nodes;
    DROP TABLE loose_bodies; DROP TABLE loose_blobs;";

/// Takes conversations out, or says which would go.
pub(super) fn prune(connection: &mut Connection, prune: &Prune) -> Result<Pruned, StoreError> {
    let outworn = outworn(connection, &prune.which)?;
    let mut pruned = Pruned::default();
    if prune.dry_run {
        for candidate in outworn {
            count(connection, &candidate, &mut pruned)?;
        }
        return Ok(pruned);
    }
    let is_secure: i64 = connection.pragma_query_value(None, "secure_delete", |row| row.get(0))?;
    connection.pragma_update(None, "secure_delete", true)?;
    // Looking for rows that refer to one that goes would read whole tables, for each of them.
    connection.pragma_update(None, "foreign_keys", false)?;
    for some in outworn.chunks(PRUNED_AT_ONCE) {
        let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
        for candidate in some {
            count(&transaction, candidate, &mut pruned)?;
        }
        pruned.contents += take_out(&transaction, some)?;
        transaction.commit()?;
    }
    if !outworn.is_empty() {
        // Whoever reads at this moment keeps the log from being emptied; then the next prune does it, or the end.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", is_secure)?;
    Ok(pruned)
}

/// Returns the conversations that have to go, the oldest first.
fn outworn(connection: &Connection, which: &Outworn) -> Result<Vec<Candidate>, StoreError> {
    let read = |filter: &str, by: &dyn rusqlite::ToSql| {
        let sql = format!("{CANDIDATES} WHERE {filter} ORDER BY updated, n");
        let mut statement = connection.prepare(&sql)?;
        let found = statement.query_map([by], |row| {
            Ok(Candidate {
                n: row.get(0)?,
                id: ConversationId::new(row.get::<_, String>(1)?),
                bytes: row.get::<_, i64>(2)?.cast_unsigned(),
            })
        })?;
        Ok::<_, StoreError>(found.collect::<Result<Vec<_>, _>>()?)
    };
    match which {
        Outworn::Before(moment) => read("updated < ?1", &moment.0),
        Outworn::Beyond(keep) => Ok(beyond(read("?1 = 0", &0_i64)?, *keep)),
        Outworn::These(ids) => {
            let mut all = Vec::new();
            for id in ids {
                all.extend(read("id = ?1", &id.as_str())?);
            }
            all.dedup_by_key(|candidate| candidate.n);
            Ok(all)
        }
    }
}

fn count(connection: &Connection, candidate: &Candidate, pruned: &mut Pruned) -> Result<(), StoreError> {
    let number = |sql: &str| -> Result<u64, StoreError> {
        let count: i64 = connection.prepare_cached(sql)?.query_row([candidate.n], |row| row.get(0))?;
        Ok(count.cast_unsigned())
    };
    pruned.entries += number("SELECT count(*) FROM nodes WHERE conversation = ?1")?;
    pruned.exchanges += number("SELECT count(*) FROM exchanges WHERE conversation = ?1")?;
    pruned.conversations.push(candidate.id.clone());
    Ok(())
}

/// Deletes conversations, and returns how many contents went with them.
fn take_out(transaction: &Transaction<'_>, some: &[Candidate]) -> Result<u64, StoreError> {
    transaction.execute_batch("CREATE TEMP TABLE gone (n INTEGER PRIMARY KEY)")?;
    for candidate in some {
        transaction.execute("INSERT OR IGNORE INTO gone VALUES (?1)", [candidate.n])?;
    }
    transaction.execute_batch(GATHER)?;
    let is_unsure = forget_words(transaction)?;
    transaction.execute_batch(DELETE)?;
    note_sources(transaction, "n IN (SELECT n FROM loose_bodies)", true)?;
    let bodies = transaction.execute("DELETE FROM bodies WHERE n IN (SELECT n FROM loose_bodies)", [])?;
    transaction.execute_batch(KEEP_USED)?;
    note_sources(transaction, "1", false)?;
    let blobs = transaction.execute("DELETE FROM blobs WHERE n IN (SELECT n FROM loose_blobs)", [])?;
    transaction.execute_batch(REACH)?;
    transaction.execute_batch(FORGET)?;
    if is_unsure {
        // No word of what was deleted stays, damaged or not.
        rebuild(transaction)?;
    }
    Ok((bodies + blobs) as u64)
}

/// Takes the words of entries out of the index, which has to be told which they are. Says whether that is not known of
/// some: their records are damaged.
fn forget_words(transaction: &Transaction<'_>) -> Result<bool, StoreError> {
    transaction.execute("INSERT INTO words (words, rank) VALUES ('secure-delete', 1)", [])?;
    let mut entries = transaction.prepare(
        "SELECT nodes.n, codec, size, bytes, message, block
         FROM gone_nodes JOIN nodes ON nodes.n = gone_nodes.n JOIN blobs ON blobs.n = nodes.record
         WHERE nodes.n <= (SELECT n FROM indexed) ORDER BY nodes.n",
    )?;
    let mut forget =
        transaction.prepare("INSERT INTO words (words, rowid, text) VALUES ('delete', ?1, ?2)")?;
    let mut reader = EntryReader::default();
    let mut is_unsure = false;
    let mut rows = entries.query([])?;
    while let Some(row) = rows.next()? {
        match words_of(transaction, &mut reader, row)? {
            Some(words) => drop(forget.execute(params![row.get::<_, i64>(0)?, words.join(" ")])?),
            None => is_unsure = true,
        }
    }
    Ok(is_unsure)
}

/// Adds the records that requests are compressed with to those that may go, or takes them away from them.
fn note_sources(transaction: &Transaction<'_>, which: &str, may_go: bool) -> Result<(), StoreError> {
    let mut bodies =
        transaction.prepare(&format!("SELECT sources FROM bodies WHERE sources IS NOT NULL AND {which}"))?;
    let mut note = transaction.prepare(match may_go {
        true => "INSERT OR IGNORE INTO loose_blobs VALUES (?1)",
        false => "DELETE FROM loose_blobs WHERE n = ?1",
    })?;
    let mut rows = bodies.query([])?;
    while let Some(row) = rows.next()? {
        let numbers: Vec<u8> = row.get(0)?;
        for number in Reader::new(&numbers).list(Reader::number)? {
            note.execute([number.cast_signed()])?;
        }
    }
    Ok(())
}
