//! Answers survive: frames written as a stream of any dialect and read again keep their text, their calls
//! and how they ended, and what is written is a stream that a strict reader of the dialect accepts.

use super::events::check_events;
use super::streams::{GOLDENS, frames};
use super::texts::Dice;
use super::{cases, decode};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use throughline_core::{
    BlockId, BlockKind, Dialect, Ending, Failure, FailureKind, Frame, Piece, Seal, Stop, Text, Usage,
};
use throughline_wire::{Outgoing, Stamp, StreamEncoder, sse::write_event};

/// What must survive of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// All text, refusals included, in the order of the blocks.
    pub said: String,
    pub text: String,
    pub refused: String,
    /// Id, name and input of each call.
    pub calls: Vec<(String, String, String)>,
    pub stopped: bool,
    pub cut_short: bool,
}

pub(super) fn told(frames: &[Frame]) -> Told {
    let mut blocks: BTreeMap<BlockId, (BlockKind, String)> = BTreeMap::new();
    let mut told = Told::default();
    for frame in frames {
        match frame {
            Frame::Begun { block, kind } => drop(blocks.insert(*block, (kind.clone(), String::new()))),
            Frame::Grew { block, piece: Piece::Text(text) } => {
                blocks.get_mut(block).expect("a block that began").1.push_str(text);
            }
            Frame::Closed(ending) => {
                told.stopped = matches!(ending, Ending::Stopped(_));
                told.cut_short = matches!(ending, Ending::Stopped(Stop::MaxTokens | Stop::ContextWindow));
            }
            _ => {}
        }
    }
    for (kind, text) in blocks.into_values() {
        match kind {
            BlockKind::Text { .. } => {
                told.said.push_str(&text);
                told.text.push_str(&text);
            }
            BlockKind::Refusal { .. } => {
                told.said.push_str(&text);
                told.refused.push_str(&text);
            }
            BlockKind::Call { id, name, .. } => {
                told.calls.push((id.to_string(), name.to_string(), given(&text)));
            }
            BlockKind::Thought { .. } | BlockKind::Opaque { .. } => {}
        }
    }
    told
}

/// Returns what a tool was given: no arguments are an empty object, and free text may come wrapped in one.
pub(super) fn given(text: &str) -> String {
    let wrapped: Option<BTreeMap<String, String>> = serde_json::from_str(text).ok();
    let free = wrapped.and_then(|fields| fields.get("throughline_input").cloned());
    let given = free.unwrap_or_else(|| text.to_owned());
    if given.is_empty() { "{}".to_owned() } else { given }
}

pub(super) fn ask(dialect: Dialect) -> throughline_core::Ask {
    let body = match dialect {
        Dialect::Chat => {
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},
                "messages":[{"role":"user","content":"a"}]}"#
        }
        Dialect::Messages => {
            r#"{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#
        }
        Dialect::Responses => r#"{"model":"m","stream":true,"input":"a"}"#,
    };
    decode(dialect, body)
}

fn encoded(dialect: Dialect, frames: &[Frame]) -> Vec<Outgoing> {
    let stamp = Stamp { id: "1".into(), created_at: 1, model: Some("m".into()), input_tokens: None };
    let mut encoder = StreamEncoder::new(dialect, stamp, &ask(dialect));
    let mut events = Vec::new();
    frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut events));
    events
}

fn check(dialect: Dialect, before: &[Frame]) -> Result<(), TestCaseError> {
    let events = encoded(dialect, before);
    let mut text = String::new();
    for event in &events {
        write_event(&mut text, event.name, &event.data);
    }
    let (mut before, mut after) = (told(before), told(&frames(dialect, [text.as_bytes()])));
    check_events(dialect, &events, before.stopped)
        .map_err(|problem| TestCaseError::fail(format!("{dialect}: {problem}\nin {text}")))?;
    comparable(dialect, &mut before);
    comparable(dialect, &mut after);
    // An answer that is to be continued may look like one that was cut short, but not the reverse.
    after.cut_short &= before.cut_short;
    prop_assert_eq!(before, after, "{} stream {}", dialect, text);
    Ok(())
}

/// Leaves out what the dialect cannot tell.
pub(super) fn comparable(dialect: Dialect, told: &mut Told) {
    match dialect {
        // Text and refusal are two fields, without an order between them; several texts are lines of one.
        Dialect::Chat => {
            told.said.clear();
            told.text.retain(|c| c != '\n');
            told.refused.retain(|c| c != '\n');
        }
        // A refusal is text.
        Dialect::Messages => {
            told.text.clear();
            told.refused.clear();
        }
        Dialect::Responses => {}
    }
}

#[test]
fn golden_answers_survive_in_every_dialect() {
    for stream in GOLDENS.iter() {
        let frames = frames(stream.dialect, [&stream.bytes[..]]);
        for dialect in Dialect::ALL {
            if let Err(problem) = check(dialect, &frames) {
                panic!("{} {} to {dialect}: {problem}", stream.dialect, stream.name);
            }
        }
    }
}

/// A block: what it is, and the pieces it grows by.
fn block() -> impl Strategy<Value = (BlockKind, Vec<Piece>)> {
    let text = || {
        let pieces = vec!["one ", "two\n", "é😀", "\"q\\", " ", "{\"a\":", "1.10}", "<think>"];
        select(pieces).prop_map(Text::from)
    };
    let texts = || prop::collection::vec(text().prop_map(Piece::Text), 0..4);
    let thought = prop_oneof![
        text().prop_map(Piece::Reasoning),
        (0_u32..2, text()).prop_map(|(index, text)| Piece::Summary { index, text }),
        Just(Piece::Seal(Seal::Signature("sig".into()))),
    ];
    let name = select(vec!["read", "write_file", "x"]);
    prop_oneof![
        3 => texts().prop_map(|pieces| (BlockKind::Text { item_id: None }, pieces)),
        1 => texts().prop_map(|pieces| (BlockKind::Refusal { item_id: None }, pieces)),
        2 => prop::collection::vec(thought, 0..4)
            .prop_map(|pieces| (BlockKind::Thought { item_id: None }, pieces)),
        3 => (name.clone(), arguments()).prop_map(|(name, pieces)| (call(name, false), pieces)),
        2 => (name, texts()).prop_map(|(name, pieces)| (call(name, true), pieces)),
    ]
}

fn call(name: &str, freeform: bool) -> BlockKind {
    BlockKind::Call { id: Text::default(), item_id: None, name: name.into(), namespace: None, freeform }
}

/// Arguments in pieces. Nothing follows an object that is complete: readers of Chat Completions take that
/// for one that a server sent twice.
fn arguments() -> impl Strategy<Value = Vec<Piece>> {
    let whole = select(vec!["", "{}", r#"{"a": 1.10, "b":"é\"😀"}"#, r#"{"a"#, "path=a", "[1]", " {"]);
    (whole, 1_usize..6).prop_map(|(whole, length)| {
        let letters: Vec<char> = whole.chars().collect();
        letters.chunks(length).map(|piece| Piece::Text(piece.iter().collect::<String>().into())).collect()
    })
}

fn ending() -> impl Strategy<Value = Ending> {
    let stop = select(vec![
        Stop::EndTurn,
        Stop::ToolCalls,
        Stop::MaxTokens,
        Stop::ContextWindow,
        Stop::Sequence(Some("END".into())),
        Stop::Refusal,
        Stop::Filtered,
        Stop::Paused,
        Stop::Other("odd".into()),
    ]);
    prop_oneof![
        4 => stop.prop_map(Ending::Stopped),
        1 => Just(Ending::Failed(Failure::new(FailureKind::Overloaded, "too much"))),
        1 => Just(Ending::Broken),
        1 => Just(Ending::Cancelled),
    ]
}

/// Any legal answer: blocks begin in the order of their numbers, and grow and end side by side.
pub(super) fn answers() -> impl Strategy<Value = Vec<Frame>> {
    (any::<u64>(), prop::collection::vec(block(), 0..6), ending(), any::<bool>()).prop_map(
        |(seed, blocks, ending, used)| {
            let mut frames = vec![Frame::Opened { id: Some("r1".into()), model: Some("m".into()) }];
            frames.extend(side_by_side(blocks, &mut Dice::new(seed)));
            frames.extend(used.then(|| Frame::Used(Usage { input: 3, output: 2, ..Usage::default() })));
            frames.push(Frame::Closed(ending));
            frames
        },
    )
}

fn side_by_side(blocks: Vec<(BlockKind, Vec<Piece>)>, dice: &mut Dice) -> Vec<Frame> {
    let (mut frames, mut under_way) = (Vec::new(), Vec::new());
    let mut waiting = blocks.into_iter().zip(0..);
    loop {
        if under_way.is_empty() || dice.one_in(3) {
            if let Some(((kind, pieces), block)) = waiting.next() {
                frames.push(Frame::Begun { block, kind: numbered(kind, block) });
                under_way.push((block, pieces.into_iter()));
            } else if under_way.is_empty() {
                return frames;
            }
        }
        let at = dice.roll(under_way.len());
        let (block, pieces) = &mut under_way[at];
        let block = *block;
        match pieces.next() {
            Some(piece) => frames.push(Frame::Grew { block, piece }),
            None => {
                frames.push(Frame::Ended { block });
                under_way.remove(at);
            }
        }
    }
}

fn numbered(kind: BlockKind, number: BlockId) -> BlockKind {
    match kind {
        BlockKind::Call { item_id, name, namespace, freeform, .. } => {
            BlockKind::Call { id: format!("call_{number}").into(), item_id, name, namespace, freeform }
        }
        kind => kind,
    }
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn any_answer_survives_in_every_dialect(frames in answers()) {
        for dialect in Dialect::ALL {
            check(dialect, &frames)?;
        }
    }
}
