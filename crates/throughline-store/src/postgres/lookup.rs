//! Asks the database what it has of all that a group refers to.
//!
//! One journey: the transaction begins, the turn of each conversation is waited for, and then everything is
//! asked for, in statements that follow each other without waiting. Each of them sees what was committed before
//! it, so what was waited for is seen.

use std::collections::BTreeSet;

use throughline_core::ConversationId;
use tokio_postgres::Row;

use super::connection::{Connection, Param};
use super::exchanges::exchange;
use super::failure::Failure;
use super::plan::{Known, Wanted};
use super::schema::{VERSION, check};
use super::value::{optional_text, plain, text};
use crate::checksum::ConversationRow;
use crate::digest::{Digest, Domain};
use crate::tags::kind_tag;
use crate::{Chain, ExchangeId, KeptKind, StoreError};

/// A transaction that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub known: Known,
    /// The process of the server that it is under way in.
    pub process: i32,
}

/// Which group of which writer a transaction writes. It leaves that in the database, and so its fate can be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark<'w> {
    pub writer: &'w str,
    pub group: i64,
}

/// Leaves the mark. From here on until the end of the transaction, nobody else gets hold of the writer's row.
const LEAVE_MARK: &str = "INSERT INTO writers VALUES ($1::text::uuid, $2, now())
    ON CONFLICT (id) DO UPDATE SET groups = excluded.groups, at = excluded.at";

/// Writers of one conversation take turns. The numbers come sorted, so that nobody waits in a circle.
const TAKE_TURNS: &str = "SELECT count(pg_advisory_xact_lock(turn)) FROM unnest($1::bigint[]) AS turn";

const CONVERSATIONS: &str =
    "SELECT id, created, updated, identified, title FROM conversations WHERE id = ANY($1::text[])";

const EXCHANGES: &str = "SELECT exchanges.id, conversations.id
    FROM exchanges JOIN conversations ON conversations.n = exchanges.conversation
    WHERE exchanges.id = ANY($1::text[])";

/// The exchanges that a group may change, as they are. They stay as they are until it has: a response is forgotten
/// without waiting for the turn of its conversation.
const LOCKED: &str = "SELECT exchanges.n, exchanges.id, conversations.id, before, after, dialect, client, asked_model,
        started, ended, ending, status, input, cache_read, cache_write, output, reasoning, response, stored, deleted
    FROM exchanges JOIN conversations ON conversations.n = exchanges.conversation
    WHERE exchanges.id = ANY($1::text[]) OR exchanges.n = ANY(ARRAY(
        SELECT max(n) FROM exchanges WHERE response = ANY($2::text[]) GROUP BY response))
    ORDER BY exchanges.n FOR UPDATE OF exchanges";

const NODES: &str = "SELECT nodes.id, nodes.chain, conversations.id
    FROM nodes JOIN conversations ON conversations.n = nodes.conversation
    WHERE nodes.id = ANY($1::uuid[])";

const BLOBS: &str = "SELECT digest FROM blobs WHERE digest = ANY($1::uuid[])";

const BODIES: &str = "SELECT digest FROM bodies WHERE digest = ANY($1::uuid[])";

const TOOLS: &str = "SELECT wanted.conversation, wanted.call_id, called.tool
    FROM unnest($1::text[], $2::text[]) AS wanted (conversation, call_id)
        JOIN conversations ON conversations.id = wanted.conversation
        CROSS JOIN LATERAL (
            SELECT tool FROM nodes
            WHERE conversation = conversations.n AND call_id = wanted.call_id AND kind = 5
            ORDER BY n DESC LIMIT 1
        ) AS called
    WHERE called.tool IS NOT NULL";

// The index of calls, and the statement that uses it, name their kind by its number.
const _: () = assert!(kind_tag(KeptKind::Called) == 5);

/// Begins a transaction and finds out what is there.
pub(super) async fn begin(
    connection: &mut Connection,
    wanted: &Wanted,
    mark: Mark<'_>,
    is_durable: bool,
) -> Result<Begun, Failure> {
    let begin = if is_durable { "BEGIN" } else { "BEGIN; SET LOCAL synchronous_commit = off" };
    let turns = turns(wanted);
    let conversations: Vec<_> = wanted.conversations.iter().map(|id| plain(id.as_str())).collect();
    let exchanges: Vec<_> = wanted.exchanges.iter().map(|id| plain(id.as_str())).collect();
    let updated: Vec<_> = wanted.updated.iter().map(|id| plain(id.as_str())).collect();
    let forgotten: Vec<_> = wanted.forgotten.iter().map(|id| plain(id)).collect();
    let (nodes, blobs, bodies) = (listed(&wanted.nodes), listed(&wanted.blobs), listed(&wanted.bodies));
    let (of, call_ids): (Vec<_>, Vec<_>) =
        wanted.calls.iter().map(|(of, id)| (plain(of.as_str()), plain(id))).unzip();

    let statements =
        [TAKE_TURNS, VERSION, LEAVE_MARK, CONVERSATIONS, EXCHANGES, LOCKED, NODES, BLOBS, BODIES, TOOLS];
    let mut prepared = Vec::new();
    for sql in statements {
        prepared.push(connection.prepared(sql).await?);
    }

    let client = &connection.client;
    let calls: [Param<'_>; 2] = [&of, &call_ids];
    let mark: [Param<'_>; 2] = [&mark.writer, &mark.group];
    let to_lock: [Param<'_>; 2] = [&updated, &forgotten];
    let (turns, conversations, exchanges): ([Param<'_>; 1], [Param<'_>; 1], [Param<'_>; 1]) =
        ([&turns], [&conversations], [&exchanges]);
    let (nodes, blobs, bodies): ([Param<'_>; 1], [Param<'_>; 1], [Param<'_>; 1]) =
        ([&nodes], [&blobs], [&bodies]);
    let (_, version, _, _, conversations, exchanges, locked, nodes, blobs, bodies, tools) = tokio::try_join!(
        biased;
        client.batch_execute(begin),
        client.query_opt(&prepared[1], &[]),
        client.execute(&prepared[2], &mark),
        client.query(&prepared[0], &turns),
        client.query(&prepared[3], &conversations),
        client.query(&prepared[4], &exchanges),
        client.query(&prepared[5], &to_lock),
        client.query(&prepared[6], &nodes),
        client.query(&prepared[7], &blobs),
        client.query(&prepared[8], &bodies),
        client.query(&prepared[9], &calls),
    )?;

    let version = version.ok_or_else(|| StoreError::Damaged("it does not say its schema".to_owned()))?;
    check(version.try_get(0)?)?;
    let process = version.try_get(1)?;
    let known = Known {
        conversations: collected(&conversations, |row| {
            let row = conversation(row)?;
            Ok((row.id.clone(), row))
        })?,
        locked: collected(&locked, exchange)?,
        exchanges: collected(&exchanges, |row| {
            Ok((ExchangeId::new(text(row, 0)?), ConversationId::new(text(row, 1)?)))
        })?,
        nodes: collected(&nodes, |row| {
            Ok((row.try_get(0)?, (Chain(row.try_get(1)?), ConversationId::new(text(row, 2)?))))
        })?,
        blobs: collected(&blobs, |row| Ok(row.try_get(0)?))?,
        bodies: collected(&bodies, |row| Ok(row.try_get(0)?))?,
        tools: collected(&tools, |row| {
            Ok(((ConversationId::new(text(row, 0)?), text(row, 1)?), text(row, 2)?))
        })?,
    };
    Ok(Begun { known, process })
}

fn conversation(row: &Row) -> Result<ConversationRow, Failure> {
    Ok(ConversationRow {
        id: ConversationId::new(text(row, 0)?),
        created: row.try_get(1)?,
        updated: row.try_get(2)?,
        identified: text(row, 3)?,
        title: optional_text(row, 4)?,
    })
}

/// Returns a number for each conversation, sorted. That two may have the same costs some waiting at worst.
fn turns(wanted: &Wanted) -> Vec<i64> {
    let number = |id: &ConversationId| {
        let digest = Digest::of(Domain::Node, id.as_str().as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest.bytes()[..8]);
        i64::from_le_bytes(bytes)
    };
    let mut turns: Vec<i64> = wanted.conversations.iter().map(number).collect();
    turns.sort_unstable();
    turns.dedup();
    turns
}

fn listed(digests: &BTreeSet<Digest>) -> Vec<Digest> {
    digests.iter().copied().collect()
}

fn collected<T, L: FromIterator<T>>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Failure>,
) -> Result<L, Failure> {
    rows.iter().map(read).collect()
}
