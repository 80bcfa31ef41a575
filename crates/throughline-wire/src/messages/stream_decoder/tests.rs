//! Streams as servers send them, good and odd.

use super::*;
use crate::messages::goldens::goldens;
use crate::sse::SseDecoder;
use proptest::prelude::*;
use throughline_core::{Assembler, Dialect, FailureKind, Reply, Usage};

/// Decodes the data of events, without names.
fn frames(events: &[&str]) -> Vec<Frame> {
    let mut decoder = StreamDecoder::new();
    let mut frames = Vec::new();
    for data in events {
        decoder.handle_event(&SseEvent { name: None, data: Text::from(*data) }, &mut frames);
    }
    decoder.finish(&mut frames);
    assert_legal(&frames);
    frames
}

/// Asserts what every stream of frames must hold to.
fn assert_legal(frames: &[Frame]) {
    assert!(matches!(frames.first(), Some(Frame::Opened { .. })), "{frames:?}");
    assert!(matches!(frames.last(), Some(Frame::Closed(_))), "{frames:?}");
    let (mut begun, mut open) = (0, Vec::new());
    for frame in &frames[1..frames.len() - 1] {
        match frame {
            Frame::Opened { .. } | Frame::Closed(_) => panic!("{frame:?} twice"),
            Frame::Begun { block, .. } => {
                assert_eq!(*block, begun);
                begun += 1;
                open.push(*block);
            }
            Frame::Grew { block, .. } => assert!(open.contains(block), "{frames:?}"),
            Frame::Ended { block } => {
                assert!(open.contains(block), "{frames:?}");
                open.retain(|other| other != block);
            }
            Frame::Used(_) | Frame::Ordered(_) | Frame::Alien { .. } => {}
        }
    }
    assert!(open.is_empty(), "left open: {frames:?}");
}

fn assembled(frames: &[Frame]) -> Reply {
    let mut assembler = Assembler::new(Dialect::Messages);
    frames.iter().for_each(|frame| assembler.handle_frame(frame));
    assembler.finish()
}

fn inputs(reply: &Reply) -> Vec<&str> {
    reply.entries.iter().filter_map(|entry| entry.as_call()).map(|call| call.input.text().as_str()).collect()
}

/// Decodes a stream that arrives in these pieces.
fn decode<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<Frame> {
    let (mut sse, mut decoder, mut frames) = (SseDecoder::new(1 << 20), StreamDecoder::new(), Vec::new());
    for piece in pieces {
        sse.feed(piece).unwrap();
        while let Some(event) = sse.next_event() {
            decoder.handle_event(&event, &mut frames);
        }
    }
    while let Some(event) = sse.finish() {
        decoder.handle_event(&event, &mut frames);
    }
    decoder.finish(&mut frames);
    frames
}

const CALL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}"#;

#[test]
fn every_recorded_stream_gives_legal_frames() {
    for (name, stream) in goldens("streams", "sse") {
        println!("{name}");
        assert_legal(&decode([&stream[..]]));
    }
}

#[test]
fn a_stream_without_events_is_broken() {
    assert_eq!(frames(&[]), [Frame::Opened { id: None, model: None }, Frame::Closed(Ending::Broken)]);
    assert!(matches!(frames(&[CALL]).last(), Some(Frame::Closed(Ending::Broken))));
}

#[test]
fn a_stop_reason_is_enough_though_message_stop_is_missing() {
    let frames = frames(&[CALL, r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#]);
    assert_eq!(frames.last(), Some(&Frame::Closed(Ending::Stopped(Stop::ToolCalls))));
}

#[test]
fn nothing_follows_the_end() {
    let stop = r#"{"type":"message_stop"}"#;
    assert_eq!(frames(&[stop, stop, CALL, "[DONE]"]).len(), 2);
}

#[test]
fn an_event_before_the_start_is_held_until_it() {
    let start = r#"{"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":3}}}"#;
    let frames = frames(&[r#"{"type":"ping"}"#, r#"{"type":"hello"}"#, start]);
    assert_eq!(frames[0], Frame::Opened { id: Some("m1".into()), model: Some("m".into()) });
    assert!(matches!(&frames[1], Frame::Alien { data, .. } if data == r#"{"type":"hello"}"#));
    assert_eq!(frames[2], Frame::Used(Usage { input: 3, ..Usage::default() }));
}

#[test]
fn the_name_counts_where_the_data_has_no_type() {
    let mut decoder = StreamDecoder::new();
    let mut frames = Vec::new();
    let delta = r#"{"index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let event = SseEvent { name: Some("content_block_delta".into()), data: delta.into() };
    decoder.handle_event(&event, &mut frames);
    assert!(matches!(&frames[2], Frame::Grew { piece: Piece::Text(text), .. } if text == "a"));
}

#[test]
fn what_is_no_json_is_alien() {
    let frames = frames(&["{\"type\":", "<html>", r#"{"type":"content_block_start"}"#]);
    assert_eq!(frames.iter().filter(|frame| matches!(frame, Frame::Alien { .. })).count(), 3);
}

#[test]
fn input_that_came_with_the_start_counts_only_if_no_more_comes() {
    let start = CALL.replace(r#""input":{}"#, r#""input":{"a": 1.10}"#);
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    assert_eq!(inputs(&assembled(&frames(&[&start, stop]))), [r#"{"a": 1.10}"#]);
    let delta =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    assert_eq!(inputs(&assembled(&frames(&[&start, delta, stop]))), ["{}"]);
}

#[test]
fn a_call_that_is_announced_twice_is_one_call() {
    assert_eq!(inputs(&assembled(&frames(&[CALL, CALL]))).len(), 1);
    let other = CALL.replace(r#""id":"1""#, r#""id":"2""#);
    assert_eq!(inputs(&assembled(&frames(&[CALL, &other]))).len(), 2);
}

#[test]
fn a_block_without_a_start_is_begun_by_its_first_delta() {
    let text = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#;
    let thinking =
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"b"}}"#;
    let reply = assembled(&frames(&[text, thinking, r#"{"type":"content_block_stop","index":9}"#]));
    assert_eq!(reply.entries.len(), 2);
}

#[test]
fn a_delta_for_no_block_is_alien() {
    let delta =
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    assert!(frames(&[delta]).iter().any(|frame| matches!(frame, Frame::Alien { .. })));
}

#[test]
fn the_input_of_a_hosted_call_is_put_into_its_block() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","input":{}}}"#;
    let delta = |json: &str| {
        let partial = quote(json);
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{partial}}}}}"#
        )
    };
    let frames = frames(&[
        start,
        &delta(""),
        &delta(r#"{"q":"#),
        &delta(" 1.10}"),
        r#"{"type":"content_block_stop","index":0}"#,
    ]);
    let text = r#"{"type":"server_tool_use","id":"s","input":{"q": 1.10}}"#.into();
    let kind = BlockKind::Opaque { kind: "server_tool_use".into(), text };
    assert_eq!(frames[1], Frame::Begun { block: 0, kind });
}

#[test]
fn an_error_ends_the_answer_as_failed() {
    let frames = frames(&[CALL, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#]);
    assert!(
        matches!(frames.last(), Some(Frame::Closed(Ending::Failed(failure))) if failure.kind == FailureKind::Overloaded)
    );
    let foreign = self::frames(&[r#"{"error":{"message":"busy"}}"#]);
    assert!(matches!(foreign.last(), Some(Frame::Closed(Ending::Failed(_)))));
}

/// Events that matter, in any order and number.
fn events() -> impl Strategy<Value = Vec<String>> {
    let block = prop::sample::select(vec![
        r#"{"type":"text","text":""}"#,
        r#"{"type":"text","text":"t"}"#,
        r#"{"type":"thinking","thinking":"","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"d"}"#,
        r#"{"type":"tool_use","id":"1","name":"f","input":{"a":1}}"#,
        r#"{"type":"tool_use","id":"2","name":"f"}"#,
        r#"{"type":"server_tool_use","id":"3","input":{}}"#,
        "{}",
        "null",
    ]);
    let delta = prop::sample::select(vec![
        r#"{"type":"text_delta","text":"a"}"#,
        r#"{"type":"thinking_delta","thinking":"b"}"#,
        r#"{"type":"signature_delta","signature":"c"}"#,
        r#"{"type":"input_json_delta","partial_json":"{}"}"#,
        r#"{"type":"citations_delta","citation":{}}"#,
        r#"{"type":"odd_delta"}"#,
        r#"{"stop_reason":"tool_use"}"#,
    ]);
    let kind = prop::sample::select(EVENTS.iter().copied().chain(["odd"]).collect::<Vec<_>>());
    let event = (kind, block, delta, prop::option::of(0_u8..3)).prop_map(|(kind, block, delta, index)| {
        let index = index.map(|index| format!(r#","index":{index}"#)).unwrap_or_default();
        format!(r#"{{"type":"{kind}","content_block":{block},"delta":{delta}{index}}}"#)
    });
    prop::collection::vec(event, 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_order_of_events_gives_legal_frames(events in events()) {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        frames(&events);
    }

    #[test]
    fn any_cut_of_a_recorded_stream_gives_the_same_frames(
        which: prop::sample::Index,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let goldens = goldens("streams", "sse");
        let (_, stream) = which.get(&goldens);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(decode(cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]])), decode([&stream[..]]));
    }
}

#[test]
fn an_index_may_be_any_number() {
    let index = u64::MAX;
    let start = format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text","text":"a"}}}}"#
    );
    let delta = format!(
        r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"thinking_delta","thinking":"b"}}}}"#
    );
    assert_eq!(assembled(&frames(&[&start])).entries.len(), 1);
    assert_eq!(assembled(&frames(&[&delta])).entries.len(), 1);
}
