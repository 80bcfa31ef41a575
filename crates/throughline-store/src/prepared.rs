//! Batches made ready to be written: everything that costs time and needs no database is done before the one
//! writer sees them, on whatever thread brings them.

use std::collections::BTreeMap;

use crate::digest::{Digest, Domain};
use crate::events::encode_events;
use crate::pack::{Packed, pack, pack_digested};
use crate::record::Blob;
use crate::{Batch, Write};

/// A batch, with its contents packed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub batch: Batch,
    /// The packed form of each record.
    packed: BTreeMap<Digest, Packed<'static>>,
    /// For each write, what was made ready of it.
    pieces: Vec<Option<Piece>>,
}

/// What was made ready of a write.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The events, the answer, or the decisions.
    Packed(Packed<'static>),
    /// The digest of a request; packed by the writer, who knows what it differs from.
    Digest(Digest),
}

/// From this many bytes on, a batch is packed elsewhere than on an async thread.
const LARGE_BYTES_MIN: usize = 32 * 1024;

impl Prepared {
    pub fn new(batch: Batch) -> Self {
        let mut packed = BTreeMap::new();
        for blob in batch.writes.iter().flat_map(blobs) {
            packed.entry(blob.digest).or_insert_with(|| pack(&blob.bytes).into_owned());
        }
        let pieces = batch.writes.iter().map(piece).collect();
        Self { batch, packed, pieces }
    }

    /// Says whether making this batch ready takes long.
    pub fn is_large(batch: &Batch) -> bool {
        let bytes = |write: &Write| match write {
            Write::Entries(_) => blobs(write).map(|blob| blob.bytes.len()).sum(),
            Write::Document { body, .. } => body.len() / 8,
            Write::Events { events, .. } => events.iter().map(|event| event.data.len()).sum(),
            Write::Answer { json, .. } => json.len(),
            Write::Compaction(step) => step.decisions.len(),
            _ => 0,
        };
        batch.writes.iter().map(bytes).sum::<usize>() >= LARGE_BYTES_MIN
    }

    /// Returns the packed form of a record.
    pub fn packed<'p>(&'p self, blob: &'p Blob) -> Packed<'p> {
        match self.packed.get(&blob.digest) {
            Some(packed) => packed.borrowed(),
            None => Packed::plain(&blob.bytes),
        }
    }

    /// Returns what was made ready of the write of that number.
    pub fn piece(&self, write: usize) -> Option<&Piece> {
        self.pieces.get(write)?.as_ref()
    }
}

fn blobs(write: &Write) -> impl Iterator<Item = &Blob> {
    let sprouts = match write {
        Write::Entries(extension) => extension.sprouts.as_slice(),
        _ => &[],
    };
    sprouts.iter().flat_map(|sprout| std::iter::once(&sprout.encoded.record).chain(&sprout.encoded.envelope))
}

fn piece(write: &Write) -> Option<Piece> {
    match write {
        Write::Events { events, .. } => Some(Piece::Packed(pack_digested(&encode_events(events)))),
        Write::Answer { json, .. } => Some(Piece::Packed(pack_digested(json.as_bytes()))),
        Write::Compaction(step) => Some(Piece::Packed(pack_digested(step.decisions.as_bytes()))),
        Write::Document { body, .. } => Some(Piece::Digest(Digest::of(Domain::Body, body))),
        _ => None,
    }
}
