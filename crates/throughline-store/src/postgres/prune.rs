//! Takes conversations out of the database, with all that nothing else uses.
//!
//! Writers are kept out while it goes on, some conversations at a time: they read the version of the schema in each
//! transaction, and that table is locked. So nobody can begin to use what is found to be unused. Pieces of the index
//! of words are made anew from what is left. What a server does with deleted rows is its own affair: they are
//! overwritten some time after it has vacuumed.

use throughline_core::ConversationId;
use tokio_postgres::Transaction;

use super::connection::Connection;
use super::failure::Failure;
use super::index::words_of;
use super::pool::Pool;
use super::schema::check;
use super::upkeep::{ALONE, open};
use super::value::{plain, text};
use crate::digest::Digest;
use crate::upkeep::{Candidate, Outworn, PRUNED_AT_ONCE, Prune, Pruned, beyond};
use crate::{Moment, StoreError};

/// Conversations, the oldest first, with the bytes of what belongs to them.
const CANDIDATES: &str = "
    SELECT n, id, ((SELECT coalesce(sum(length(blobs.bytes)), 0) FROM nodes
            JOIN blobs ON blobs.digest = nodes.record WHERE nodes.conversation = conversations.n)
        + (SELECT coalesce(sum(length(bodies.bytes)), 0) FROM exchanges JOIN documents ON documents.exchange = exchanges.n
            JOIN bodies ON bodies.digest = documents.body WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(events.bytes)), 0) FROM exchanges
            JOIN events ON events.exchange = exchanges.n WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(answers.bytes)), 0) FROM exchanges
            JOIN answers ON answers.exchange = exchanges.n WHERE exchanges.conversation = conversations.n)
        + (SELECT coalesce(sum(length(bytes)), 0) FROM compaction_steps
            WHERE compaction_steps.conversation = conversations.n))::bigint
    FROM conversations
    WHERE ($1::bigint IS NULL OR updated < $1) AND ($2::text[] IS NULL OR id = ANY($2))
    ORDER BY updated, n";

const COUNTS: &str = "
    SELECT (SELECT count(*) FROM nodes WHERE conversation = ANY($1)),
        (SELECT count(*) FROM exchanges WHERE conversation = ANY($1))";

/// What the conversations to be taken out use, before anything is gone.
const GATHER: &str = "
    CREATE TEMP TABLE gone_exchanges ON COMMIT DROP AS
        SELECT n FROM exchanges WHERE conversation IN (SELECT n FROM gone);
    CREATE TEMP TABLE gone_nodes ON COMMIT DROP AS
        SELECT n, id, record, envelope FROM nodes WHERE conversation IN (SELECT n FROM gone);
    CREATE TEMP TABLE gone_pieces ON COMMIT DROP AS
        SELECT first, last FROM words
        WHERE EXISTS (SELECT 1 FROM gone_nodes WHERE gone_nodes.n BETWEEN words.first AND words.last);
    CREATE TEMP TABLE loose_bodies ON COMMIT DROP AS
        WITH RECURSIVE used (digest) AS (
            SELECT body FROM documents WHERE exchange IN (SELECT n FROM gone_exchanges)
            UNION SELECT bodies.base FROM used JOIN bodies ON bodies.digest = used.digest
                WHERE bodies.base IS NOT NULL
        ) SELECT digest FROM used;
    ANALYZE gone_exchanges; ANALYZE gone_nodes; ANALYZE loose_bodies;";

/// Everything that belongs to them alone.
const DELETE: &str = "
    DELETE FROM items WHERE node IN (SELECT id FROM gone_nodes);
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
    DELETE FROM loose_bodies WHERE digest IN (
        WITH RECURSIVE kept (digest) AS (
            (SELECT body FROM documents WHERE body IN (SELECT digest FROM loose_bodies)
            UNION SELECT base FROM bodies WHERE base IN (SELECT digest FROM loose_bodies)
                AND digest NOT IN (SELECT digest FROM loose_bodies))
            UNION SELECT bodies.base FROM kept JOIN bodies ON bodies.digest = kept.digest
                WHERE bodies.base IS NOT NULL
        ) SELECT digest FROM kept);
    CREATE TEMP TABLE loose_blobs ON COMMIT DROP AS
        SELECT record AS digest FROM gone_nodes
        UNION SELECT envelope FROM gone_nodes WHERE envelope IS NOT NULL
        UNION SELECT unnest(sources) FROM bodies WHERE digest IN (SELECT digest FROM loose_bodies);";

const DELETE_BODIES: &str = "DELETE FROM bodies WHERE digest IN (SELECT digest FROM loose_bodies)";

const DELETE_BLOBS: &str = "
    DELETE FROM blobs WHERE digest IN (
        SELECT digest FROM loose_blobs
        EXCEPT SELECT record FROM nodes WHERE record IN (SELECT digest FROM loose_blobs)
        EXCEPT SELECT envelope FROM nodes WHERE envelope IN (SELECT digest FROM loose_blobs)
        EXCEPT SELECT unnest(sources) FROM bodies WHERE sources IS NOT NULL)";

const PIECES: &str = "SELECT first, last FROM gone_pieces ORDER BY first";

const LEFT: &str = "
    SELECT nodes.n, blobs.codec, blobs.size, blobs.bytes, nodes.envelope
    FROM nodes JOIN blobs ON blobs.digest = nodes.record WHERE nodes.n BETWEEN $1 AND $2 ORDER BY nodes.n";

/// Takes conversations out, or says which would go.
pub(super) async fn prune(pool: &Pool, prune: &Prune) -> Result<Pruned, StoreError> {
    let mut connection = open(pool).await?;
    let outworn = outworn(&mut connection, &prune.which).await?;
    let mut pruned = Pruned::default();
    for some in outworn.chunks(PRUNED_AT_ONCE) {
        count(&mut connection, some, &mut pruned).await?;
        if !prune.dry_run {
            pruned.contents += take_out(&mut connection, some).await?;
        }
    }
    Ok(pruned)
}

/// Returns the conversations that have to go, the oldest first.
async fn outworn(connection: &mut Connection, which: &Outworn) -> Result<Vec<Candidate>, Failure> {
    let (before, ids): (Option<i64>, Option<Vec<_>>) = match which {
        Outworn::Before(Moment(before)) => (Some(*before), None),
        Outworn::Beyond(_) => (None, None),
        Outworn::These(ids) => (None, Some(ids.iter().map(|id| plain(id.as_str())).collect())),
    };
    let rows = connection.query(CANDIDATES, &[&before, &ids]).await?;
    let candidate = |row: &tokio_postgres::Row| {
        Ok::<_, Failure>(Candidate {
            n: row.try_get(0)?,
            id: ConversationId::new(text(row, 1)?),
            bytes: row.try_get::<_, i64>(2)?.cast_unsigned(),
        })
    };
    let all = rows.iter().map(candidate).collect::<Result<Vec<_>, _>>()?;
    Ok(match which {
        Outworn::Beyond(keep) => beyond(all, *keep),
        _ => all,
    })
}

async fn count(connection: &mut Connection, some: &[Candidate], pruned: &mut Pruned) -> Result<(), Failure> {
    let numbers: Vec<i64> = some.iter().map(|candidate| candidate.n).collect();
    let rows = connection.query(COUNTS, &[&numbers]).await?;
    if let Some(row) = rows.first() {
        pruned.entries += row.try_get::<_, i64>(0)?.cast_unsigned();
        pruned.exchanges += row.try_get::<_, i64>(1)?.cast_unsigned();
    }
    pruned.conversations.extend(some.iter().map(|candidate| candidate.id.clone()));
    Ok(())
}

/// Deletes conversations, and returns how many contents went with them.
async fn take_out(connection: &mut Connection, some: &[Candidate]) -> Result<u64, Failure> {
    let numbers: Vec<i64> = some.iter().map(|candidate| candidate.n).collect();
    let transaction = connection.client.transaction().await?;
    transaction.batch_execute(ALONE).await?;
    let version = transaction.query_one("SELECT version FROM format", &[]).await?;
    check(version.try_get(0)?)?;
    transaction.batch_execute("CREATE TEMP TABLE gone (n bigint PRIMARY KEY) ON COMMIT DROP").await?;
    transaction.execute("INSERT INTO gone SELECT DISTINCT unnest($1::bigint[])", &[&numbers]).await?;
    transaction.batch_execute(GATHER).await?;
    transaction.batch_execute(DELETE).await?;
    let bodies = transaction.execute(DELETE_BODIES, &[]).await?;
    let blobs = transaction.execute(DELETE_BLOBS, &[]).await?;
    make_pieces_anew(&transaction).await?;
    transaction.commit().await?;
    Ok(bodies + blobs)
}

/// Makes the pieces of the index of words anew that had words of what is gone.
async fn make_pieces_anew(transaction: &Transaction<'_>) -> Result<(), Failure> {
    for piece in transaction.query(PIECES, &[]).await? {
        let (first, last): (i64, i64) = (piece.try_get(0)?, piece.try_get(1)?);
        let words = words_between(transaction, first, last).await?;
        let anew = match words.is_empty() {
            true => transaction.execute("DELETE FROM words WHERE first = $1", &[&first]).await?,
            false => {
                transaction.execute("UPDATE words SET words = $2 WHERE first = $1", &[&first, &words]).await?
            }
        };
        debug_assert_eq!(anew, 1, "a piece was there");
    }
    Ok(())
}

/// Returns the words of the entries of these numbers, as a piece of the index holds them.
pub(super) async fn words_between(
    transaction: &Transaction<'_>,
    first: i64,
    last: i64,
) -> Result<String, Failure> {
    let rows = transaction.query(LEFT, &[&first, &last]).await?;
    let envelopes = rows.iter().filter_map(|row| row.try_get::<_, Option<Digest>>(4).transpose());
    let envelopes: Vec<Digest> = envelopes.collect::<Result<_, _>>()?;
    let found = transaction.query(super::bodies::BLOBS, &[&envelopes]).await?;
    let loaded = super::bodies::by_digest(&found)?;
    tokio::task::block_in_place(|| words_of(&rows, &loaded))
}
