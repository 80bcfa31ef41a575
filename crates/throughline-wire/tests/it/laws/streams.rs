//! Streams as they arrive: however the bytes of an answer are cut, its frames are the same.

#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use super::cases;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::sync::LazyLock;
use throughline_core::{Dialect, Frame};
use throughline_wire::StreamDecoder;

/// A recorded answer.
pub(super) struct Stream {
    pub dialect: Dialect,
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Every golden stream, in a fixed order.
pub(super) static GOLDENS: LazyLock<Vec<Stream>> = LazyLock::new(|| {
    let streams: Vec<Stream> = Dialect::ALL.into_iter().flat_map(goldens).collect();
    assert!(streams.len() > 100, "the golden streams were not found");
    streams
});

fn goldens(dialect: Dialect) -> Vec<Stream> {
    let folder = format!("{}/tests/golden/streams/{dialect}", env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(folder).expect("a folder of streams").map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "sse")).collect();
    files.sort();
    let read = |path: std::path::PathBuf| Stream {
        dialect,
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        bytes: fs::read(&path).expect("a stream"),
    };
    files.into_iter().map(read).collect()
}

/// Decodes a stream that arrives in pieces.
pub(super) fn frames<'b>(dialect: Dialect, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<Frame> {
    let mut decoder = StreamDecoder::new(dialect);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut frames).expect("no event is too large");
    }
    decoder.finish(&mut frames);
    frames
}

#[test]
fn byte_by_byte_gives_the_same_frames() {
    for stream in GOLDENS.iter() {
        let whole = frames(stream.dialect, [&stream.bytes[..]]);
        let bytewise = frames(stream.dialect, stream.bytes.chunks(1));
        assert_eq!(whole, bytewise, "{} {}", stream.dialect, stream.name);
    }
}

#[test]
fn a_stream_opens_once_and_closes_once() {
    for stream in GOLDENS.iter() {
        let frames = frames(stream.dialect, [&stream.bytes[..]]);
        let name = format!("{} {}", stream.dialect, stream.name);
        assert!(matches!(frames.first(), Some(Frame::Opened { .. })), "{name}: {frames:?}");
        assert!(matches!(frames.last(), Some(Frame::Closed(_))), "{name}: {frames:?}");
        let ends = |frame: &&Frame| matches!(frame, Frame::Opened { .. } | Frame::Closed(_));
        assert_eq!(frames.iter().filter(ends).count(), 2, "{name}: {frames:?}");
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn any_cut_gives_the_same_frames(
        stream in any::<Index>(),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let stream = stream.get(&GOLDENS);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.bytes.len() + 1)).collect();
        cuts.extend([0, stream.bytes.len()]);
        cuts.sort_unstable();
        let whole = frames(stream.dialect, [&stream.bytes[..]]);
        let cut = frames(stream.dialect, cuts.windows(2).map(|cut| &stream.bytes[cut[0]..cut[1]]));
        prop_assert_eq!(whole, cut, "{} {}", stream.dialect, &stream.name);
    }
}
