//! What requests were sent lately: each is kept as what differs from an earlier one of its conversation.
//!
//! A conversation may have several lines of requests: an agent's own, those of its helpers, those to another
//! backend. The latest few of each conversation are kept at hand, and the one that shares most is the base.
//! So are the records that were stored since: what is new in the next request is mostly those. What is at hand
//! is an economy: a request with nothing at hand is based on the latest in the database, and one without any is
//! stored whole.
//!
//! What holds for requests holds for every document of an attempt: each kind is compared with its own. Stores differ in
//! what they call the line of documents of a kind in a conversation (`C`), and a document or a record (`K`).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::pack::{Codec, Delta, delta};

/// What was sent lately.
#[derive(Debug)]
pub(crate) struct Bodies<C, K> {
    lately: BTreeMap<C, VecDeque<Sent<K>>>,
    /// Records that no request was compared with yet.
    fresh: BTreeMap<C, Fresh<K>>,
    bytes: usize,
    /// Conversations in the order in which they were last used, the oldest first.
    used: VecDeque<C>,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent<K> {
    pub key: K,
    /// How many bases there are below.
    pub depth: i64,
    pub body: Bytes,
}

/// A request as it will be stored.
#[derive(Debug)]
pub(crate) struct Differs<'b, K> {
    pub base: Option<K>,
    pub depth: i64,
    /// The records that it is compressed with.
    pub sources: Option<Vec<K>>,
    pub delta: Delta<'b>,
}

#[derive(Debug)]
struct Fresh<K> {
    keys: Vec<K>,
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

impl<C, K> Default for Bodies<C, K> {
    fn default() -> Self {
        Self { lately: BTreeMap::new(), fresh: BTreeMap::new(), bytes: 0, used: VecDeque::new() }
    }
}

impl<C: Clone + Ord, K: Clone> Bodies<C, K> {
    /// Says whether the latest request in the database is needed to compare this one with.
    pub fn needs_latest(&self, conversation: &C, body: &[u8]) -> bool {
        body.len() >= BASED_BYTES_MIN && !self.lately.contains_key(conversation)
    }

    /// Returns what of a request is to be stored; `latest` is that in the database, if it was needed.
    pub fn compare<'b>(
        &mut self,
        conversation: &C,
        latest: Option<Sent<K>>,
        body: &'b [u8],
    ) -> Differs<'b, K> {
        let base = if body.len() < BASED_BYTES_MIN { None } else { self.base(conversation, body).or(latest) };
        let base = base.filter(|base| base.depth < DEPTH_MAX);
        let fresh = self.fresh.remove(conversation).unwrap_or_default();
        let based_on = base.as_ref().map_or(&b""[..], |base| &base.body);
        let delta = delta(based_on, &fresh.bytes, body);
        Differs {
            depth: base.as_ref().map_or(0, |base| base.depth + 1),
            base: base.map(|base| base.key),
            sources: (delta.middle.codec == Codec::ZstdSourced).then_some(fresh.keys),
            delta,
        }
    }

    /// Keeps at hand a record that was stored in a conversation.
    pub fn note(&mut self, conversation: &C, key: K, record: &[u8]) {
        if !self.fresh.contains_key(conversation) && self.fresh.len() >= FRESH_CONVERSATIONS_MAX {
            self.fresh.pop_first();
        }
        let fresh = self.fresh.entry(conversation.clone()).or_default();
        if fresh.bytes.len() + record.len() <= FRESH_BYTES_MAX {
            fresh.keys.push(key);
            fresh.bytes.extend_from_slice(record);
        }
    }

    /// Keeps at hand a request that was stored.
    pub fn put_at_hand(&mut self, conversation: &C, sent: Sent<K>) {
        self.used.retain(|used| used != conversation);
        self.used.push_back(conversation.clone());
        self.bytes += sent.body.len();
        let lately = self.lately.entry(conversation.clone()).or_default();
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

    /// Returns the requests and records at hand that the next request of a conversation would rest on.
    pub fn at_hand(&self, conversation: &C) -> (impl Iterator<Item = &K>, impl Iterator<Item = &K>) {
        let requests = self.lately.get(conversation).into_iter().flatten().map(|sent| &sent.key);
        let records = self.fresh.get(conversation).into_iter().flat_map(|fresh| &fresh.keys);
        (requests, records)
    }

    /// Forgets what is at hand of one conversation.
    pub fn forget(&mut self, conversation: &C) {
        self.fresh.remove(conversation);
        let dropped = self.lately.remove(conversation).unwrap_or_default();
        self.bytes -= dropped.iter().map(|old| old.body.len()).sum::<usize>();
        self.used.retain(|used| used != conversation);
    }

    /// Forgets what is at hand, since what was written last was taken back.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn base(&self, conversation: &C, body: &[u8]) -> Option<Sent<K>> {
        let lately = self.lately.get(conversation)?;
        lately.iter().max_by_key(|sent| shared(&sent.body, body)).cloned()
    }
}

impl<K> Default for Fresh<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), bytes: Vec::new() }
    }
}

/// Returns how many bytes both begin with, in steps: it is to be compared, not to be exact.
fn shared(a: &[u8], b: &[u8]) -> usize {
    a.chunks(256).zip(b.chunks(256)).take_while(|(a, b)| a == b).count()
}

fn grew_from(new: &[u8], old: &[u8]) -> bool {
    new.len() >= old.len() && shared(new, old) * 256 >= old.len() / 2
}
