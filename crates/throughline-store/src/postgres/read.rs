//! Reads entries, conversations and places in them.

use throughline_core::{ConversationId, EntryId};
use tokio_postgres::Row;

use super::bodies::load_envelopes;
use super::connection::{Connection, Param};
use super::failure::Failure;
use super::pool::Question;
use super::value::{entry_id, optional_text, place, plain, text, unpacked};
use crate::digest::Digest;
use crate::prefix::Range;
use crate::record::EntryReader;
use crate::{
    Chain, ConversationFilter, Conversations, Cursor, Entries, ExchangeId, Heading, Kept, Locate, Located,
    Moment, Page, Paging, StoreError,
};

/// Finds the first of several chains that is known. `$conversation` narrows the search.
macro_rules! first_known {
    ($conversation:literal) => {
        concat!(
            "SELECT given.place, conversations.id, found.id,
                 EXISTS (SELECT 1 FROM nodes WHERE nodes.parent = found.id)
             FROM unnest($1::uuid[]) WITH ORDINALITY AS given (chain, place)
                 CROSS JOIN LATERAL (
                     SELECT id, conversation FROM nodes WHERE chain = given.chain AND counts",
            $conversation,
            "     ORDER BY n DESC LIMIT 1
                 ) AS found
                 JOIN conversations ON conversations.n = found.conversation
             ORDER BY given.place LIMIT 1"
        )
    };
}

const FIRST_KNOWN: &str = first_known!("");
const FIRST_KNOWN_WITHIN: &str =
    first_known!(" AND conversation = (SELECT n FROM conversations WHERE id = $2)");

const BY_KEY: &str = "
    SELECT conversations.id,
        (SELECT id FROM nodes WHERE conversation = conversations.n ORDER BY n DESC LIMIT 1)
    FROM keys JOIN conversations ON conversations.n = keys.conversation WHERE keys.key = $1";

const BY_ID: &str = "
    SELECT conversations.id,
        (SELECT id FROM nodes WHERE conversation = conversations.n ORDER BY n DESC LIMIT 1)
    FROM conversations WHERE conversations.id = $1";

macro_rules! headings {
    ($filter:literal) => {
        concat!(
            "SELECT n, id, created, updated, identified, title,
                 (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'backend'),
                 (SELECT count(*) FROM nodes WHERE conversation = conversations.n),
                 (SELECT count(*) FROM exchanges WHERE conversation = conversations.n),
                 (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'project'),
                 (SELECT value FROM settings WHERE conversation = conversations.n AND name = 'parent')
             FROM conversations ",
            $filter
        )
    };
}

const ONE_HEADING: &str = headings!("WHERE id = $1");
const HEADINGS: &str = headings!("WHERE (updated, n) < ($1, $2) ORDER BY updated DESC, n DESC LIMIT $3");

/// Those that a filter lets through. What is not asked for is NULL, and lets everything through.
const MATCHING: &str = headings!(
    "WHERE (updated, n) < ($1, $2) AND updated >= $3
         AND ($4::text IS NULL OR starts_with(id, $4) OR starts_with(id, 'conv_' || $4)
             OR starts_with(CASE strpos(id, '.') WHEN 0 THEN right(id, 12)
                 ELSE substr(id, strpos(id, '.') + 1) END, $4))
         AND ($5::text IS NULL OR strpos(lower(title), lower($5)) > 0)
         AND ($6::text IS NULL OR EXISTS (SELECT 1 FROM exchanges
             WHERE exchanges.conversation = conversations.n AND strpos(lower(client), lower($6)) > 0))
         AND ($7::text IS NULL OR EXISTS (SELECT 1 FROM exchanges JOIN attempts ON attempts.exchange = exchanges.n
             WHERE exchanges.conversation = conversations.n AND lower(attempts.backend) = lower($7)))
         AND ($8::text IS NULL OR EXISTS (SELECT 1 FROM settings WHERE settings.conversation = conversations.n
             AND name = 'project' AND strpos(lower(value), lower($8)) > 0))
         AND (NOT $9 OR EXISTS (SELECT 1 FROM exchanges
             WHERE exchanges.conversation = conversations.n AND ending IN ('failed', 'broken')))
         AND ($10::text IS NULL OR identified <> $10)
     ORDER BY updated DESC, n DESC LIMIT $11"
);

macro_rules! kept {
    ($with:literal, $filter:literal) => {
        concat!(
            $with,
            "SELECT nodes.id, conversations.id, nodes.parent, exchanges.id, nodes.at, blobs.codec, blobs.size,
                 blobs.bytes, nodes.message, nodes.block, nodes.envelope
             FROM nodes JOIN conversations ON conversations.n = nodes.conversation
                 JOIN blobs ON blobs.digest = nodes.record
                 LEFT JOIN exchanges ON exchanges.n = nodes.exchange
             WHERE ",
            $filter,
            " ORDER BY nodes.n"
        )
    };
}

const ONE: &str = kept!("", "nodes.id = $1");
const ITEM: &str = kept!("", "nodes.id = (SELECT node FROM items WHERE items.id = $1)");
const OF_CONVERSATION: &str =
    kept!("", "nodes.conversation = (SELECT c.n FROM conversations AS c WHERE c.id = $1)");
const BRANCH: &str = kept!(
    "WITH RECURSIVE branch (id, parent) AS (
         SELECT id, parent FROM nodes WHERE id = $1
         UNION ALL SELECT nodes.id, nodes.parent FROM branch JOIN nodes ON nodes.id = branch.parent
     ) ",
    "nodes.id IN (SELECT branch.id FROM branch)"
);

impl Question for Locate {
    type Answer = Option<Located>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        let rows = match self {
            Self::Prefix { within, chains } => {
                return locate_prefix(connection, within.as_ref(), chains).await;
            }
            Self::Key(key) => connection.query(BY_KEY, &[&plain(key)]).await?,
            Self::Conversation(id) => connection.query(BY_ID, &[&plain(id.as_str())]).await?,
        };
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Located {
            conversation: ConversationId::new(text(row, 0)?),
            entry: entry_id(row, 1)?,
            known: 0,
            followed: false,
        }))
    }
}

/// Looks for the longest known beginning, in as few journeys as it can be found in.
async fn locate_prefix(
    connection: &mut Connection,
    within: Option<&ConversationId>,
    chains: &[Chain],
) -> Result<Option<Located>, Failure> {
    // Before the first word there is nothing to be known; that does not make what follows unknown.
    let silent = chains.iter().take_while(|chain| **chain == Chain::ROOT).count();
    let mut range = Range::of(chains.len() - silent);
    let mut located = None;
    loop {
        let probes = range.probes();
        if probes.is_empty() {
            return Ok(located);
        }
        let given: Vec<Digest> = probes.iter().map(|at| chains[silent + at].0).collect();
        let rows = match within {
            None => connection.query(FIRST_KNOWN, &[&given]).await?,
            Some(id) => connection.query(FIRST_KNOWN_WITHIN, &[&given, &plain(id.as_str())]).await?,
        };
        let Some(row) = rows.first() else {
            range.narrow(&probes, None);
            continue;
        };
        let place: i64 = row.try_get(0)?;
        range.narrow(&probes, Some(place.cast_unsigned() as usize - 1));
        located = Some(Located {
            conversation: ConversationId::new(text(row, 1)?),
            entry: entry_id(row, 2)?,
            known: silent + range.known(),
            followed: row.try_get(3)?,
        });
    }
}

impl Question for Conversations {
    type Answer = Page<Heading>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        match self {
            Self::One(id) => {
                let rows = connection.query(ONE_HEADING, &[&plain(id.as_str())]).await?;
                let found = rows.first().map(heading).transpose()?;
                Ok(Page::single(found.map(|(_, heading)| heading)))
            }
            Self::All(Paging { after, limit }) => {
                let (updated, n) = match after {
                    Some(cursor) => cursor.pair()?,
                    None => (i64::MAX, i64::MAX),
                };
                let rows = connection.query(HEADINGS, &[&updated, &n, &(i64::from(*limit) + 1)]).await?;
                Ok(Page::cut(rows.iter().map(heading).collect::<Result<_, _>>()?, *limit))
            }
            Self::Matching(filter, paging) => matching(connection, filter, paging).await,
        }
    }
}

async fn matching(
    connection: &mut Connection,
    filter: &ConversationFilter,
    paging: &Paging,
) -> Result<Page<Heading>, Failure> {
    let (updated, n) = match &paging.after {
        Some(cursor) => cursor.pair()?,
        None => (i64::MAX, i64::MAX),
    };
    let since = filter.since.map_or(i64::MIN, |since| since.0);
    let limit = i64::from(paging.limit) + 1;
    let words = [
        &filter.id,
        &filter.title,
        &filter.client,
        &filter.backend,
        &filter.project,
        &filter.except_identified,
    ];
    let [id, title, client, backend, project, identified] = words.map(|words| words.as_deref().map(plain));
    let params: [Param<'_>; 11] =
        [&updated, &n, &since, &id, &title, &client, &backend, &project, &filter.failed, &identified, &limit];
    let rows = connection.query(MATCHING, &params).await?;
    Ok(Page::cut(rows.iter().map(heading).collect::<Result<_, _>>()?, paging.limit))
}

fn heading(row: &Row) -> Result<(Cursor, Heading), Failure> {
    let updated: i64 = row.try_get(3)?;
    let heading = Heading {
        id: ConversationId::new(text(row, 1)?),
        created: Moment(row.try_get(2)?),
        updated: Moment(updated),
        identified: text(row, 4)?,
        title: optional_text(row, 5)?,
        backend: optional_text(row, 6)?,
        entries: row.try_get::<_, i64>(7)?.cast_unsigned(),
        exchanges: row.try_get::<_, i64>(8)?.cast_unsigned(),
        project: optional_text(row, 9)?,
        parent: optional_text(row, 10)?.map(ConversationId::new),
    };
    Ok((Cursor::of_pair(updated, row.try_get(0)?), heading))
}

impl Question for Entries {
    type Answer = Vec<Kept>;

    async fn ask(&self, connection: &mut Connection) -> Result<Self::Answer, Failure> {
        match self {
            Self::One(id) => kept(connection, ONE, &[&by_id(id)]).await,
            Self::Item(id) => kept(connection, ITEM, &[&plain(id)]).await,
            Self::Branch(tip) => kept(connection, BRANCH, &[&by_id(tip)]).await,
            Self::Conversation(id) => kept(connection, OF_CONVERSATION, &[&plain(id.as_str())]).await,
        }
    }
}

/// Returns the digest that an id stands for; of one that is not ours, one that nothing has.
fn by_id(id: &EntryId) -> Digest {
    Digest::from_entry_id(id).unwrap_or_default()
}

async fn kept(
    connection: &mut Connection,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Kept>, Failure> {
    let rows = connection.query(sql, params).await?;
    let envelopes = load_envelopes(connection, &rows, 10).await?;
    let mut load = |digest| {
        let missing = || StoreError::Damaged(format!("record {digest} is missing"));
        envelopes.get(&digest).cloned().ok_or_else(missing)
    };
    // Unpacking a history of thousands of entries takes milliseconds.
    tokio::task::block_in_place(|| {
        let mut reader = EntryReader::default();
        rows.iter()
            .map(|row| {
                let id = row.try_get::<_, Digest>(0)?.to_entry_id();
                let place = place(row, 8)?;
                let mut read = || Ok::<_, Failure>(reader.decode(&unpacked(row, 5)?, place, &mut load)?);
                let entry = read().map_err(|failure| match failure {
                    Failure::Store(error) => Failure::Store(error.of_entry(&id)),
                    passing => passing,
                })?;
                Ok(Kept {
                    id,
                    conversation: ConversationId::new(text(row, 1)?),
                    parent: entry_id(row, 2)?,
                    exchange: optional_text(row, 3)?.map(ExchangeId::new),
                    at: Moment(row.try_get(4)?),
                    entry,
                })
            })
            .collect()
    })
}
