//! Batches made ready: packed, and with the words that occur in each new record.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::prepared::Prepared;
use crate::record::EntryReader;
use crate::words::Findable;
use crate::{Batch, StoreError, Write};

/// A batch, with its contents packed and its words found.
#[derive(Debug)]
pub(super) struct Ready {
    pub prepared: Prepared,
    words: BTreeMap<Digest, String>,
}

impl Ready {
    pub fn new(batch: Batch) -> Self {
        let words = words(&batch);
        Self { prepared: Prepared::new(batch), words }
    }

    pub const fn batch(&self) -> &Batch {
        &self.prepared.batch
    }

    /// Returns the words of a record, each once.
    pub fn words(&self, record: Digest) -> Option<&str> {
        self.words.get(&record).map(String::as_str).filter(|words| !words.is_empty())
    }
}

fn words(batch: &Batch) -> BTreeMap<Digest, String> {
    let mut found = BTreeMap::new();
    for write in &batch.writes {
        let Write::Entries(extension) = write else { continue };
        let mut reader = EntryReader::default();
        for sprout in &extension.sprouts {
            let encoded = &sprout.encoded;
            let mut load = |_| match &encoded.envelope {
                Some(envelope) => Ok(envelope.bytes.to_vec()),
                None => Err(StoreError::Damaged("a record has no envelope".to_owned())),
            };
            // What was encoded a moment ago can be decoded; if it could not, it would still be worth keeping.
            if let Ok(entry) = reader.decode(&encoded.record.bytes, None, &mut load) {
                found.insert(encoded.record.digest, Findable::of(&entry).distinct());
            }
        }
    }
    found
}
