//! Requests as they were sent, each as what differs from an earlier one of its conversation.
//!
//! A conversation may have several lines of requests: an agent's own, those of its helpers, those to another
//! backend. The latest few of each conversation are kept at hand, and the one that shares most is the base.
//! So are the records that were stored since: what is new in the next request is mostly those. What is at hand
//! is an economy: a request with nothing at hand is based on the latest in the database, and one without any is
//! stored whole.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::read::unpacked;
use crate::StoreError;
use crate::digest::Digest;
use crate::pack::{Codec, Delta, delta, undelta};
use crate::record::{Reader, Writer};

/// What was sent lately.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    lately: BTreeMap<i64, VecDeque<Sent>>,
    /// Records that no request was compared with yet.
    fresh: BTreeMap<i64, Fresh>,
    bytes: usize,
    /// Conversations in the order in which they were last used, the oldest first.
    used: VecDeque<i64>,
}

#[derive(Clone, Debug)]
struct Sent {
    n: i64,
    depth: i64,
    body: Bytes,
}

/// Records, by their numbers.
#[derive(Debug, Default)]
struct Fresh {
    numbers: Vec<i64>,
    bytes: Vec<u8>,
}

/// After this many differences the next request is stored whole, so that none takes long to read.
const DEPTH_MAX: i64 = 500;

const AT_HAND_PER_CONVERSATION_MAX: usize = 3;
const AT_HAND_BYTES_MAX: usize = 32 << 20;

/// So much of the latest records is kept at hand, per conversation and for how many.
const FRESH_BYTES_MAX: usize = 256 << 10;
const FRESH_CONVERSATIONS_MAX: usize = 64;

/// Bodies below this are not worth comparing.
const BASED_BYTES_MIN: usize = 1024;

impl Bodies {
    /// Returns the number of a request, which is stored if it is not there yet.
    pub fn keep(
        &mut self,
        connection: &Connection,
        conversation: i64,
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
        let base = if body.len() < BASED_BYTES_MIN {
            None
        } else {
            self.base(connection, conversation, body)?.filter(|base| base.depth < DEPTH_MAX)
        };
        let fresh = self.fresh.remove(&conversation).unwrap_or_default();
        let sent = store(connection, digest, base.as_ref(), &fresh, body)?;
        let n = sent.n;
        self.put_at_hand(conversation, sent);
        Ok(n)
    }

    /// Keeps at hand a record that was stored in a conversation.
    pub fn note(&mut self, conversation: i64, n: i64, record: &[u8]) {
        if !self.fresh.contains_key(&conversation) && self.fresh.len() >= FRESH_CONVERSATIONS_MAX {
            self.fresh.pop_first();
        }
        let fresh = self.fresh.entry(conversation).or_default();
        if fresh.bytes.len() + record.len() <= FRESH_BYTES_MAX {
            fresh.numbers.push(n);
            fresh.bytes.extend_from_slice(record);
        }
    }

    /// Forgets what is at hand, since what was written last was taken back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn base(
        &self,
        connection: &Connection,
        conversation: i64,
        body: &[u8],
    ) -> Result<Option<Sent>, StoreError> {
        match self.lately.get(&conversation) {
            Some(lately) => Ok(lately.iter().max_by_key(|sent| shared(&sent.body, body)).cloned()),
            None => latest(connection, conversation),
        }
    }

    fn put_at_hand(&mut self, conversation: i64, sent: Sent) {
        self.used.retain(|used| *used != conversation);
        self.used.push_back(conversation);
        self.bytes += sent.body.len();
        let lately = self.lately.entry(conversation).or_default();
        // What this one grew out of is no longer the best base for anything.
        if let Some(at) = lately.iter().position(|old| grew_from(&sent.body, &old.body)) {
            self.bytes -= lately.remove(at).map_or(0, |old| old.body.len());
        }
        lately.push_back(sent);
        if lately.len() > AT_HAND_PER_CONVERSATION_MAX {
            self.bytes -= lately.pop_front().map_or(0, |old| old.body.len());
        }
        while self.bytes > AT_HAND_BYTES_MAX
            && let Some(oldest) = self.used.pop_front()
        {
            let dropped = self.lately.remove(&oldest).unwrap_or_default();
            self.bytes -= dropped.iter().map(|old| old.body.len()).sum::<usize>();
        }
    }
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
    base: Option<&Sent>,
    fresh: &Fresh,
    body: &Bytes,
) -> Result<Sent, StoreError> {
    let based_on = base.map_or(&b""[..], |base| &base.body);
    let Delta { head, tail, middle } = delta(based_on, &fresh.bytes, body);
    let depth = base.map_or(0, |base| base.depth + 1);
    let sources = (middle.codec == Codec::ZstdSourced).then(|| fresh.encoded());
    connection
        .prepare_cached(
            "INSERT INTO bodies (digest, base, depth, sources, head, tail, codec, size, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            digest.bytes(),
            base.map(|base| base.n),
            depth,
            sources,
            head,
            tail,
            middle.codec as i64,
            middle.size,
            middle.bytes,
        ])?;
    Ok(Sent { n: connection.last_insert_rowid(), depth, body: body.clone() })
}

impl Fresh {
    fn encoded(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(self.numbers.len() as u64);
        for number in &self.numbers {
            writer.number(number.cast_unsigned());
        }
        writer.finish()
    }
}

fn latest(connection: &Connection, conversation: i64) -> Result<Option<Sent>, StoreError> {
    let found: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT bodies.n, bodies.depth FROM exchanges JOIN sent ON sent.exchange = exchanges.n
                 JOIN bodies ON bodies.n = sent.body
             WHERE exchanges.conversation = ?1 ORDER BY exchanges.n DESC, sent.attempt DESC LIMIT 1",
        )?
        .query_row([conversation], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((n, depth)) = found else { return Ok(None) };
    Ok(Some(Sent { n, depth, body: read(connection, n)?.into() }))
}

/// Returns how many bytes both begin with, in steps: it is to be compared, not to be exact.
fn shared(a: &[u8], b: &[u8]) -> usize {
    a.chunks(256).zip(b.chunks(256)).take_while(|(a, b)| a == b).count()
}

fn grew_from(new: &[u8], old: &[u8]) -> bool {
    new.len() >= old.len() && shared(new, old) * 256 >= old.len() / 2
}
