//! Digests: 128 bits of BLAKE3, under a name of their own for each use.
//!
//! Half of BLAKE3's output is plenty here: with it, two contents that differ meet by accident never, and the
//! indexes over it are half as large.

use std::fmt;
use std::sync::LazyLock;

use throughline_core::EntryId;

/// The digest of some content.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 16]);

/// What a digest is taken of. Equal bytes of different kinds have different digests.
#[derive(Clone, Copy)]
pub(crate) enum Domain {
    /// The stored form of an entry or an envelope.
    Record,
    /// A request as it was sent.
    Body,
    /// What an entry says, whatever its wire form.
    Saying,
    /// What was said up to an entry.
    Chain,
    /// An entry and everything before it.
    Node,
    /// What has no name of its own: events and answers.
    Content,
    /// A list or object of JSON, however it is written.
    Meaning,
    /// A row of a table, column by column.
    Row,
}

/// Takes a digest of several pieces, each set off from the next by its length.
pub(crate) struct Digester(blake3::Hasher);

impl Digest {
    pub const BYTES: usize = 16;

    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub const fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the digest of a single piece.
    pub fn of(domain: Domain, bytes: &[u8]) -> Self {
        let mut digester = Digester::new(domain);
        digester.raw(bytes);
        digester.finish()
    }

    /// Returns the entry id that stands for this digest.
    pub fn to_entry_id(self) -> EntryId {
        EntryId::new(self.to_string())
    }

    /// Returns the digest that an entry id stands for, if it is one of ours.
    pub fn from_entry_id(id: &EntryId) -> Option<Self> {
        let text = id.as_str().as_bytes();
        if text.len() != Self::BYTES * 2 {
            return None;
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl Digester {
    pub fn new(domain: Domain) -> Self {
        // Deriving the key of a domain costs as much as a small digest, so each is derived once.
        static KEYED: LazyLock<[blake3::Hasher; 8]> = LazyLock::new(|| {
            use Domain::{Body, Chain, Content, Meaning, Node, Record, Row, Saying};
            [Record, Body, Saying, Chain, Node, Content, Meaning, Row]
                .map(|domain| blake3::Hasher::new_derive_key(domain.context()))
        });
        Self(KEYED[domain as usize].clone())
    }

    /// Takes in bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Takes in a piece, set off from what follows.
    pub fn piece(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub fn finish(&self) -> Digest {
        let mut bytes = [0; Digest::BYTES];
        bytes.copy_from_slice(&self.0.finalize().as_bytes()[..Digest::BYTES]);
        Digest(bytes)
    }
}

impl Domain {
    const fn context(self) -> &'static str {
        match self {
            Self::Record => "throughline 2026 record",
            Self::Body => "throughline 2026 body",
            Self::Saying => "throughline 2026 saying",
            Self::Chain => "throughline 2026 chain",
            Self::Node => "throughline 2026 node",
            Self::Content => "throughline 2026 content",
            Self::Meaning => "throughline 2026 meaning",
            Self::Row => "throughline 2026 row",
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_id_stands_for_its_digest_and_nothing_else_does() {
        let digest = Digest::of(Domain::Node, b"an entry");
        assert_eq!(Digest::from_entry_id(&digest.to_entry_id()), Some(digest));
        assert_eq!(Digest::from_entry_id(&EntryId::new("entry_1")), None);
        assert_eq!(Digest::from_entry_id(&EntryId::new("é".repeat(16))), None);
    }

    #[test]
    fn the_same_bytes_differ_by_what_they_are_taken_for() {
        assert_ne!(Digest::of(Domain::Record, b"x"), Digest::of(Domain::Body, b"x"));
        let pieces = |pieces: &[&str]| {
            let mut digester = Digester::new(Domain::Saying);
            pieces.iter().for_each(|piece| digester.piece(piece.as_bytes()));
            digester.finish()
        };
        assert_ne!(pieces(&["ab", "c"]), pieces(&["a", "bc"]));
    }
}
