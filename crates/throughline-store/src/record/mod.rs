//! Records: entries as they are stored.
//!
//! The stored form is ours, apart from core's types and from every wire form: a compact binary layout,
//! written out by hand in `entry.rs`, so that a change of a type in core is a compile error here and not a
//! silent change of what is on disk. A record begins with its [`FormatVersion`]. It holds everything but the
//! entry's place in a request, which is kept beside it.
//!
//! A wire message says the same thing up to three times: as a message, as the objects in it, as the texts in
//! those. Texts that can be found in the record's outermost wire text are therefore stored as slices of it
//! (`text.rs`), and the envelope that several entries share is a record of its own, stored once.
//!
//! See docs/decisions/0006 for what older and newer programs make of it.

mod entry;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use throughline_core::{Entry, Envelope, Kind, Place};

use crate::StoreError;
use crate::digest::{Digest, Domain};
pub(crate) use text::{Reader, Writer};

/// The version of a record's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FormatVersion(u8);

/// A record, with the digest that it is stored under.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub digest: Digest,
    pub bytes: Arc<[u8]>,
}

/// An entry's record, and that of the envelope that it shares with others.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub record: Blob,
    pub envelope: Option<Blob>,
}

/// An envelope that several entries share, with its text as the source that they slice.
#[derive(Clone, Debug)]
struct Shared {
    envelope: Arc<Envelope>,
    text: Arc<str>,
}

/// Asks for the envelope of that digest, in which the entry has that position.
type Resolve<'r> = &'r mut dyn FnMut(Digest, u32) -> Result<Shared, StoreError>;

/// Reads entries one after another, and lets those that came in one message share its envelope.
#[derive(Default)]
pub(crate) struct EntryReader {
    last: Option<(Digest, u32, Shared)>,
}

/// The envelope encoded last: the entries of one message come one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastEnvelope(Option<(Arc<Envelope>, Blob)>);

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// It was written by a later version of this program.
    #[error("a record has format {0}, which this program does not know")]
    Version(u8),
    /// It ends too early.
    #[error("a record is cut off")]
    CutOff,
    /// It holds something that no version of this program writes.
    #[error("a record has no valid {0}")]
    Invalid(&'static str),
}

const ENTRY: u8 = b'e';
const ENVELOPE: u8 = b'v';

impl FormatVersion {
    /// The version of most records.
    pub const FIRST: Self = Self(1);
    /// That of handovers that say by what they came about, and hold what was handed over.
    pub const HANDOVERS: Self = Self(2);

    /// Returns the version that an entry is written in: the earliest that has a word for it, so that what says the
    /// same is stored once, whichever program wrote it.
    const fn of(entry: &Entry) -> Self {
        match entry.kind {
            Kind::HandedOver(_) => Self::HANDOVERS,
            _ => Self::FIRST,
        }
    }

    /// Returns the number that a record begins with.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Says whether this program can read what begins with that number.
    pub const fn check(number: u8) -> Result<(), RecordError> {
        match number {
            1 | 2 => Ok(()),
            _ => Err(RecordError::Version(number)),
        }
    }
}

/// Encodes an entry.
pub(crate) fn encode(entry: &Entry, last: &mut LastEnvelope) -> Encoded {
    let shared = entry.envelope.as_ref().filter(|(envelope, _)| envelope.entries > 1);
    let envelope = shared.map(|(envelope, _)| last.encoded(envelope));
    let mut writer = Writer::default();
    begin(&mut writer, FormatVersion::of(entry), ENTRY);
    entry::write(&mut writer, entry, envelope.as_ref().map(|blob| blob.digest));
    Encoded { record: Blob::new(writer.finish()), envelope }
}

impl EntryReader {
    /// Decodes an entry; `load` is asked for an envelope's record when that is stored on its own.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        place: Option<Place>,
        load: &mut dyn FnMut(Digest) -> Result<Vec<u8>, StoreError>,
    ) -> Result<Entry, StoreError> {
        let mut reader = Reader::new(bytes);
        open(&mut reader, ENTRY)?;
        let entry = entry::read(&mut reader, &mut |digest, position| self.shared(digest, position, load))?;
        Ok(Entry { place, ..entry })
    }

    /// Returns the envelope of the entry before, if this is a later entry of that message, or a fresh one:
    /// two messages that say the same are still two.
    fn shared(
        &mut self,
        digest: Digest,
        position: u32,
        load: &mut dyn FnMut(Digest) -> Result<Vec<u8>, StoreError>,
    ) -> Result<Shared, StoreError> {
        let shared = match self.last.take() {
            Some((last, before, shared)) if last == digest && before < position => shared,
            _ => decode_envelope(&load(digest)?)?,
        };
        self.last = Some((digest, position, shared.clone()));
        Ok(shared)
    }
}

fn decode_envelope(bytes: &[u8]) -> Result<Shared, StoreError> {
    let mut reader = Reader::new(bytes);
    open(&mut reader, ENVELOPE)?;
    let envelope = Arc::new(entry::read_envelope(&mut reader)?);
    Ok(Shared { envelope, text: reader.context() })
}

/// Says whether this program can read a record at all: its version and its kind.
pub(crate) fn verify_record(bytes: &[u8]) -> Result<(), RecordError> {
    let mut reader = Reader::new(bytes);
    FormatVersion::check(reader.byte()?)?;
    match reader.byte()? {
        ENTRY | ENVELOPE => Ok(()),
        _ => Err(RecordError::Invalid("kind")),
    }
}

/// Returns the envelope that an entry's record refers to, if that is stored on its own.
pub(crate) fn envelope_of(bytes: &[u8]) -> Result<Option<Digest>, RecordError> {
    let mut reader = Reader::new(bytes);
    open(&mut reader, ENTRY)?;
    entry::read_shared(&mut reader)
}

impl LastEnvelope {
    fn encoded(&mut self, envelope: &Arc<Envelope>) -> Blob {
        if let Some((last, blob)) = &self.0
            && Arc::ptr_eq(last, envelope)
        {
            return blob.clone();
        }
        let mut writer = Writer::default();
        begin(&mut writer, FormatVersion::FIRST, ENVELOPE);
        entry::write_envelope(&mut writer, envelope);
        let blob = Blob::new(writer.finish());
        self.0 = Some((Arc::clone(envelope), blob.clone()));
        blob
    }
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of(Domain::Record, &bytes), bytes: bytes.into() }
    }
}

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        Self::Damaged(error.to_string())
    }
}

fn begin(writer: &mut Writer, version: FormatVersion, kind: u8) {
    writer.byte(version.number());
    writer.byte(kind);
}

fn open(reader: &mut Reader<'_>, kind: u8) -> Result<(), RecordError> {
    FormatVersion::check(reader.byte()?)?;
    if reader.byte()? != kind {
        return Err(RecordError::Invalid("kind"));
    }
    Ok(())
}
