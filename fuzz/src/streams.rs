//! Laws of streams: one opening, one end, blocks that begin before they grow; and whatever frames there are,
//! every dialect can write them as events that it can read itself.

use crate::asks;
use std::collections::BTreeMap;
use throughline_core::{Assembler, BlockId, Content, Dialect, Ending, Frame, Kind, Reply, Stop};
use throughline_wire::json::Document;
use throughline_wire::sse::write_event;
use throughline_wire::{Outgoing, Stamp, StreamDecoder, StreamEncoder};

/// Reads bytes as a stream, in pieces of that size.
pub fn read(dialect: Dialect, data: &[u8], size: usize) -> Vec<Frame> {
    let mut decoder = StreamDecoder::new(dialect);
    let mut frames = Vec::new();
    for piece in data.chunks(size) {
        decoder.feed(piece, &mut frames).expect("below the limit");
    }
    decoder.finish(&mut frames);
    frames
}

/// Joins frames into the reply that they stand for.
pub fn assembled(dialect: Dialect, frames: &[Frame]) -> Reply {
    let mut assembler = Assembler::new(dialect);
    frames.iter().for_each(|frame| assembler.handle_frame(frame));
    assembler.finish()
}

/// Checks that frames come in the order in which they are promised.
pub fn check_frames(frames: &[Frame]) {
    let opened = frames.iter().filter(|frame| matches!(frame, Frame::Opened { .. })).count();
    let closed = frames.iter().filter(|frame| matches!(frame, Frame::Closed(_))).count();
    assert_eq!((opened, closed), (1, 1), "{frames:?}");
    assert!(matches!(frames.first(), Some(Frame::Opened { .. })), "{frames:?}");
    assert!(matches!(frames.last(), Some(Frame::Closed(_))), "{frames:?}");
    // For each block, whether it is still open.
    let mut blocks: BTreeMap<BlockId, bool> = BTreeMap::new();
    for frame in frames {
        match frame {
            Frame::Begun { block, .. } => {
                assert_eq!(*block as usize, blocks.len(), "blocks are not numbered in order: {frames:?}");
                blocks.insert(*block, true);
            }
            Frame::Grew { block, .. } => {
                assert_eq!(blocks.get(block), Some(&true), "{frame:?} in {frames:?}")
            }
            Frame::Ended { block } => assert_eq!(blocks.insert(*block, false), Some(true), "{frames:?}"),
            Frame::Closed(_) => assert!(!blocks.values().any(|open| *open), "open at the end: {frames:?}"),
            _ => {}
        }
    }
}

/// Writes frames in a dialect, and reads them again in it: they are whole again, and what did not end well
/// does not look as if it had.
///
/// Returns what was read.
pub fn check_written(dialect: Dialect, frames: &[Frame]) -> Reply {
    let mut bytes = String::new();
    for event in write(dialect, frames) {
        if event.data != "[DONE]" {
            Document::parse(event.data.as_str()).unwrap_or_else(|error| panic!("{error}: {event:?}"));
        }
        write_event(&mut bytes, event.name, &event.data);
    }
    let again = read(dialect, bytes.as_bytes(), bytes.len().max(1));
    check_frames(&again);
    let before = assembled(dialect, frames);
    let after = assembled(dialect, &again);
    let is_whole = |reply: &Reply| matches!(reply.ending, Ending::Stopped(Stop::EndTurn | Stop::ToolCalls));
    let was_stopped = matches!(before.ending, Ending::Stopped(_));
    assert!(was_stopped || !is_whole(&after), "{:?} reads as {:?}", before.ending, after.ending);
    after
}

/// Checks that an answer says the same and calls the same as the frames that it was written from.
///
/// Not for what a server sent: decoders mend what repeats itself, has no name, or looks like reasoning.
pub fn check_kept(dialect: Dialect, frames: &[Frame], after: &Reply) {
    let before = assembled(dialect, frames);
    assert_eq!(text(after), text(&before), "written as {dialect}");
    let (before, after) = (calls(&before), calls(after));
    assert_eq!(after.len(), before.len(), "written as {dialect}");
    for ((name, input), again) in before.iter().zip(&after) {
        assert_eq!(&again.0, name, "written as {dialect}");
        // Behind a complete object, a decoder takes more for something that a server sent twice.
        if Document::parse(input.as_str()).is_ok() {
            assert_eq!(&again.1, input, "written as {dialect}");
        }
    }
}

fn write(dialect: Dialect, frames: &[Frame]) -> Vec<Outgoing> {
    let stamp = Stamp { id: "f1".into(), created_at: 1, model: Some("m".into()), input_tokens: Some(7) };
    let ask = asks::with_entries(dialect, Vec::new());
    let mut encoder = StreamEncoder::new(dialect, stamp, &ask);
    let mut out = Vec::new();
    frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut out));
    out
}

/// Returns the name and input of every call.
fn calls(reply: &Reply) -> Vec<(String, String)> {
    let calls = reply.entries.iter().filter_map(|entry| entry.as_call());
    calls.map(|call| (call.name.to_string(), input(call.input.text()))).collect()
}

/// Returns what a tool is given: no input is an empty object, and free text may be wrapped in an object.
fn input(text: &str) -> String {
    if text.is_empty() {
        return "{}".to_owned();
    }
    let object: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(text).ok();
    let wrapped = object.as_ref().and_then(|object| object.get("throughline_input")?.as_str());
    wrapped.map_or_else(|| text.to_owned(), input)
}

/// Returns the characters of everything that was said, sorted.
///
/// Not every dialect tells a refusal from other text, and one has a single text: what grows side by side is
/// written there as it comes, with line breaks between what must be joined.
fn text(reply: &Reply) -> Vec<char> {
    let said = reply.entries.iter().filter_map(|entry| match &entry.kind {
        Kind::Said(said) => Some(&said.parts),
        _ => None,
    });
    let words = said.flatten().filter_map(|part| match &part.content {
        Content::Text(text) | Content::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    let mut characters: Vec<char> = words.flat_map(str::chars).filter(|c| *c != '\n').collect();
    characters.sort_unstable();
    characters
}
