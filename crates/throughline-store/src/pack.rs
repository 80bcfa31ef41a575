//! Packing: large contents are compressed, small ones are left alone.
//!
//! A request as it was sent is mostly the request before it. It is therefore kept as what differs from an
//! earlier one, its base: how much of the head and of the tail they share, and what stands between. What
//! stands between is mostly entries that are in the history already, in the same words or in those of another
//! dialect: their records, its sources, are the dictionary that it is compressed with. Where a client changes
//! something near the beginning as well, comparing ends is not enough, and the base is the dictionary.
//!
//! Records and requests are named by their digest, which tells damage. What has no such name is packed with its
//! digest behind it, and is read only if that is right.

use std::borrow::Cow;
use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use crate::StoreError;
use crate::digest::{Digest, Domain};

/// How bytes are packed; part of the stored format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// As they are.
    Plain = 0,
    /// Compressed.
    Zstd = 1,
    /// Compressed, with the base as dictionary.
    ZstdBased = 2,
    /// Compressed, with the sources as dictionary.
    ZstdSourced = 3,
    /// As they are, with their digest behind them.
    PlainDigested = 4,
    /// Compressed, with the digest of that behind them.
    ZstdDigested = 5,
}

/// Packed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed<'b> {
    pub codec: Codec,
    /// How many bytes there are when unpacked.
    pub size: usize,
    pub bytes: Cow<'b, [u8]>,
}

/// A request as what differs from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delta<'b> {
    /// How many bytes both begin with.
    pub head: usize,
    /// How many bytes both end with.
    pub tail: usize,
    /// What stands between.
    pub middle: Packed<'b>,
}

/// Smaller contents hardly get any smaller.
const PACK_BYTES_MIN: usize = 192;

/// From this size on, a middle is looked for in the base.
const BASED_BYTES_MIN: usize = 4 * 1024;

/// Nothing that is stored unpacks to more; a larger size in the database is damage.
const UNPACKED_BYTES_MAX: usize = 1 << 30;

const LEVEL: i32 = 3;

thread_local! {
    // A context takes a megabyte and more to set up, so each thread keeps its own.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl<'b> Packed<'b> {
    pub fn plain(bytes: &'b [u8]) -> Self {
        Self { codec: Codec::Plain, size: bytes.len(), bytes: Cow::Borrowed(bytes) }
    }

    pub fn into_owned(self) -> Packed<'static> {
        Packed { codec: self.codec, size: self.size, bytes: Cow::Owned(self.bytes.into_owned()) }
    }

    pub fn borrowed(&self) -> Packed<'_> {
        Packed { codec: self.codec, size: self.size, bytes: Cow::Borrowed(&self.bytes) }
    }
}

/// Packs bytes.
pub(crate) fn pack(bytes: &[u8]) -> Packed<'_> {
    let plain = Packed::plain(bytes);
    if bytes.len() < PACK_BYTES_MIN {
        return plain;
    }
    // Compression is an economy: where it fails, the bytes are kept as they are.
    match compress(bytes) {
        Ok(packed) if packed.len() < bytes.len() - bytes.len() / 16 => {
            Packed { codec: Codec::Zstd, size: bytes.len(), bytes: Cow::Owned(packed) }
        }
        _ => plain,
    }
}

/// Packs bytes that no name of theirs vouches for.
pub(crate) fn pack_digested(bytes: &[u8]) -> Packed<'static> {
    let packed = pack(bytes);
    let codec = if packed.codec == Codec::Plain { Codec::PlainDigested } else { Codec::ZstdDigested };
    let mut digested = packed.bytes.into_owned();
    let digest = Digest::of(Domain::Content, &digested);
    digested.extend_from_slice(digest.bytes());
    Packed { codec, size: bytes.len(), bytes: Cow::Owned(digested) }
}

/// Unpacks bytes that were packed without a base.
pub(crate) fn unpack(codec: i64, size: usize, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    unpack_with(&[], codec, size, bytes)
}

/// Returns `body` as what differs from `base` and `sources`.
pub(crate) fn delta<'b>(base: &[u8], sources: &[u8], body: &'b [u8]) -> Delta<'b> {
    let head = common_prefix(base, body);
    let tail = common_suffix(&base[head..], &body[head..]);
    let middle = &body[head..body.len() - tail];
    let mut best = pack(middle);
    let mut consider = |codec, dictionary: &[u8], bytes_min: usize| {
        if best.bytes.len() >= bytes_min
            && !dictionary.is_empty()
            && let Ok(packed) = compress_with(dictionary, middle)
            && packed.len() < best.bytes.len() / 4 * 3
        {
            best = Packed { codec, size: middle.len(), bytes: Cow::Owned(packed) };
        }
    };
    consider(Codec::ZstdSourced, sources, PACK_BYTES_MIN);
    consider(Codec::ZstdBased, base, BASED_BYTES_MIN);
    Delta { head, tail, middle: best }
}

/// Puts a request together again.
pub(crate) fn undelta(
    base: &[u8],
    sources: &[u8],
    (head, tail): (usize, usize),
    (codec, size, middle): (i64, usize, Vec<u8>),
) -> Result<Vec<u8>, StoreError> {
    let fits = head.checked_add(tail).is_some_and(|shared| shared <= base.len());
    if !fits {
        return Err(StoreError::Damaged("a sent request does not fit the one it is based on".to_owned()));
    }
    let dictionary = if codec == Codec::ZstdSourced as i64 { sources } else { base };
    let middle = unpack_with(dictionary, codec, size, middle)?;
    let mut body = Vec::with_capacity(head + middle.len() + tail);
    body.extend_from_slice(&base[..head]);
    body.extend_from_slice(&middle);
    body.extend_from_slice(&base[base.len() - tail..]);
    Ok(body)
}

fn unpack_with(dictionary: &[u8], codec: i64, size: usize, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("packed content {what}"));
    if size > UNPACKED_BYTES_MAX {
        return Err(damaged("is too large"));
    }
    let unpacked = match codec {
        0 => Ok(bytes),
        1 => decompress(&bytes, size),
        2 | 3 => Decompressor::with_dictionary(dictionary)
            .and_then(|mut decompressor| decompressor.decompress(&bytes, size)),
        4 | 5 => return unpack_digested(codec, size, bytes),
        _ => return Err(damaged("has an unknown codec")),
    };
    match unpacked {
        Ok(unpacked) if unpacked.len() == size => Ok(unpacked),
        _ => Err(damaged("cannot be unpacked")),
    }
}

fn unpack_digested(codec: i64, size: usize, mut bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let end = bytes.len().saturating_sub(Digest::BYTES);
    if Digest::from_slice(&bytes[end..]) != Some(Digest::of(Domain::Content, &bytes[..end])) {
        return Err(StoreError::Damaged("packed content is not what its digest says".to_owned()));
    }
    bytes.truncate(end);
    let inner = if codec == Codec::PlainDigested as i64 { Codec::Plain } else { Codec::Zstd };
    unpack(inner as i64, size, bytes)
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| match kept {
        Some(compressor) => compressor.compress(bytes),
        None => kept.insert(Compressor::new(LEVEL)?).compress(bytes),
    })
}

fn decompress(bytes: &[u8], size: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| match kept {
        Some(decompressor) => decompressor.decompress(bytes, size),
        None => kept.insert(Decompressor::new()?).decompress(bytes, size),
    })
}

fn compress_with(dictionary: &[u8], bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    Compressor::with_dictionary(LEVEL, dictionary)?.compress(bytes)
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STRIDE: usize = 64;
    let strides = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE)).take_while(|(a, b)| a == b).count();
    let from = strides * STRIDE;
    from + a[from..].iter().zip(&b[from..]).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(base: &[u8], delta: &Delta<'_>) -> Vec<u8> {
        let middle = (delta.middle.codec as i64, delta.middle.size, delta.middle.bytes.to_vec());
        undelta(base, b"", (delta.head, delta.tail), middle).unwrap()
    }

    /// Text that does not repeat itself.
    fn noise(bytes: usize, seed: u8) -> Vec<u8> {
        let mut reader = blake3::Hasher::new().update(&[seed]).finalize_xof();
        let mut noise = vec![0; bytes];
        reader.fill(&mut noise);
        noise
    }

    #[test]
    fn a_request_that_grew_in_the_middle_costs_what_is_new() {
        let old = [noise(50_000, 1), noise(9_000, 2)].concat();
        let new = [noise(50_000, 1), noise(700, 3), noise(9_000, 2)].concat();
        let delta = delta(&old, b"", &new);
        assert_eq!((delta.head, delta.tail, delta.middle.bytes.len()), (50_000, 9_000, 700));
        assert_eq!(back(&old, &delta), new);
    }

    #[test]
    fn a_request_that_changed_at_both_ends_costs_little() {
        let old = [b"monday".to_vec(), noise(90_000, 1), b"a".to_vec()].concat();
        let new = [b"tuesday".to_vec(), noise(90_000, 1), b"b".to_vec()].concat();
        let delta = delta(&old, b"", &new);
        assert_eq!(delta.middle.codec, Codec::ZstdBased);
        assert!(delta.middle.bytes.len() < 100);
        assert_eq!(back(&old, &delta), new);
    }

    #[test]
    fn a_request_that_brings_what_is_stored_costs_little() {
        let (known, record) = (noise(5_000, 1), [noise(40, 2), noise(3_000, 3)].concat());
        let new = [&known[..], b",{", &record[40..], b"}"].concat();
        let delta = delta(&known, &record, &new);
        assert_eq!(delta.middle.codec, Codec::ZstdSourced);
        assert!(delta.middle.bytes.len() < 40);
        let middle = (3, delta.middle.size, delta.middle.bytes.to_vec());
        assert_eq!(undelta(&known, &record, (delta.head, delta.tail), middle).unwrap(), new);
    }

    #[test]
    fn one_bit_that_is_wrong_is_told_by_the_digest() {
        for content in [&b"{\"id\":\"short\"}"[..], &b"{\"id\":\"long\"}".repeat(40), &noise(500, 1), b""] {
            let packed = pack_digested(content);
            let (codec, size) = (packed.codec as i64, packed.size);
            assert_eq!(unpack(codec, size, packed.bytes.to_vec()).unwrap(), content);
            for bit in 0..packed.bytes.len() * 8 {
                let mut flipped = packed.bytes.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(unpack(codec, size, flipped).is_err(), "bit {bit} of {}", packed.bytes.len());
            }
            assert!(unpack(codec, size, b"too short".to_vec()).is_err());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let packed = pack(&[7; 1000]).bytes.into_owned();
        assert_eq!(unpack(1, 1000, packed.clone()).unwrap(), [7; 1000]);
        assert!(unpack(1, 999, packed.clone()).is_err());
        assert!(unpack(9, 1000, packed.clone()).is_err());
        assert!(unpack(1, usize::MAX, packed).is_err());
        assert!(undelta(b"short", b"", (4, 4), (0, 0, Vec::new())).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn any_request_comes_back(base in "[ab]{0,40}", body in "[ab]{0,40}") {
            let delta = delta(base.as_bytes(), b"", body.as_bytes());
            prop_assert_eq!(back(base.as_bytes(), &delta), body.as_bytes());
        }
    }
}
