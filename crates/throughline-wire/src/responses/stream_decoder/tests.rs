//! Tests of the stream decoder: recorded streams, and what real servers do to them.

use super::*;
use crate::sse::SseDecoder;
use proptest::prelude::*;
use std::collections::BTreeMap;
use throughline_core::{BlockId, BlockKind, FailureKind, Piece, Seal, Usage};

/// Names recordings and what they are called here; a pure crate reads files at build time only.
macro_rules! recordings {
    ($($name:literal = $file:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../tests/golden/streams/responses/", $file, ".sse")))),*]
    };
}

const RECORDINGS: &[(&str, &str)] = recordings! {
    "text-then-call" = "text-then-call",
    "parallel-calls" = "parallel-calls",
    "thinking-then-call" = "thinking-then-call",
    "reasoning-text" = "reasoning-text",
    "reasoning-spec-names" = "reasoning-spec-names",
    "annotations" = "annotations",
    "refusal" = "refusal",
    "custom-call" = "custom-call",
    "namespaced-call" = "namespaced-call",
    "hosted-tool-items" = "hosted-tool-items",
    "failed" = "failed",
    "failed-error-event-only" = "failed-error-event-only",
    "failed-nested-error" = "failed-nested-error",
    "incomplete-call" = "incomplete-call",
    "truncated-inside-call" = "truncated-inside-call",
    "unknown-events" = "unknown-events",
    "no-done" = "no-done",
    "announced-twice" = "deviations-announced-twice",
    "arguments-only-in-done" = "deviations-arguments-only-in-done",
    "arguments-only-in-item" = "deviations-arguments-only-in-item",
    "data-only" = "deviations-data-only",
    "double-completed" = "deviations-double-completed",
    "empty-output" = "deviations-empty-output-in-completed",
    "event-name-differs" = "deviations-event-name-differs",
    "item-id-holds-call-id" = "deviations-item-id-holds-call-id",
    "missing-fields" = "deviations-missing-fields",
    "no-created" = "deviations-no-created",
    "no-item-done" = "deviations-no-item-done",
    "no-part-events" = "deviations-no-part-events",
    "only-completed" = "deviations-only-completed",
    "other-ids" = "deviations-other-ids-in-completed",
    "rising-content-index" = "deviations-rising-content-index",
    "summary-without-part" = "deviations-summary-without-part",
    "type-only-in-event-name" = "deviations-type-only-in-event-name",
};

fn recorded(name: &str) -> String {
    let found = RECORDINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| (*text).to_owned()).expect("a recording")
}

fn decode(stream: &str) -> Vec<Frame> {
    decode_pieces(&[stream.as_bytes()])
}

fn decode_pieces(pieces: &[&[u8]]) -> Vec<Frame> {
    let mut sse = SseDecoder::new(1 << 20);
    let mut decoder = StreamDecoder::new();
    let mut frames = Vec::new();
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
    check(&frames);
    frames
}

/// Decodes events given as their data alone.
fn decode_data(events: &[&str]) -> Vec<Frame> {
    decode(&events.iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
}

/// Checks what every stream of frames must keep to.
fn check(frames: &[Frame]) {
    assert!(matches!(frames.first(), Some(Frame::Opened { .. })), "{frames:?}");
    assert!(matches!(frames.last(), Some(Frame::Closed(_))), "{frames:?}");
    let mut open: BTreeMap<BlockId, bool> = BTreeMap::new();
    for (at, frame) in frames.iter().enumerate() {
        match frame {
            Frame::Opened { .. } => assert_eq!(at, 0),
            Frame::Closed(_) => assert_eq!(at + 1, frames.len()),
            Frame::Begun { block, .. } => {
                assert_eq!(*block as usize, open.len(), "blocks are numbered in turn");
                open.insert(*block, true);
            }
            Frame::Grew { block, .. } => assert_eq!(open.get(block), Some(&true), "{frame:?}"),
            Frame::Ended { block } => assert_eq!(open.insert(*block, false), Some(true), "{frame:?}"),
            Frame::Used(_) | Frame::Ordered(_) | Frame::Alien { .. } => {}
        }
    }
    assert!(open.values().all(|open| !open), "every block ends: {frames:?}");
}

/// Says in one line per block what a stream says.
fn told(frames: &[Frame]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for frame in frames {
        match frame {
            Frame::Begun { kind, .. } => lines.push(match kind {
                BlockKind::Text { .. } => "text ".to_owned(),
                BlockKind::Refusal { .. } => "refusal ".to_owned(),
                BlockKind::Thought { .. } => "thought ".to_owned(),
                BlockKind::Call { id, name, freeform, .. } => {
                    format!("{} {id} {name} ", if *freeform { "custom" } else { "call" })
                }
                BlockKind::Opaque { kind, .. } => format!("opaque {kind}"),
            }),
            Frame::Grew { block, piece } => {
                let line = &mut lines[*block as usize];
                match piece {
                    Piece::Text(text) | Piece::Reasoning(text) => line.push_str(text),
                    Piece::Summary { index, text } => line.push_str(&format!("[{index}]{text}")),
                    Piece::Seal(Seal::Encrypted(_)) => line.push_str("[sealed]"),
                    Piece::Seal(other) => panic!("{other:?}"),
                    Piece::Annotation(_) => line.push_str("[note]"),
                }
            }
            _ => {}
        }
    }
    lines
}

fn ending(frames: &[Frame]) -> Ending {
    match frames.last() {
        Some(Frame::Closed(ending)) => ending.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proper_stream_is_read() {
    let frames = decode(&recorded("text-then-call"));
    assert_eq!(told(&frames).len(), 2, "{:?}", told(&frames));
    assert_eq!(ending(&frames), Ending::Stopped(Stop::ToolCalls));
    let Frame::Opened { id: Some(id), model: Some(_) } = &frames[0] else { panic!("{:?}", frames[0]) };
    assert!(id.starts_with("resp_"));
    assert!(frames.iter().any(|frame| matches!(frame, Frame::Used(Usage { input: 1.., .. }))));
}

#[test]
fn every_deviation_says_the_same() {
    let proper = ["text Hello.", "call call_1 read_file {\"path\":\"a\"}"];
    let deviations = [
        "data-only",
        "empty-output",
        "event-name-differs",
        "missing-fields",
        "no-created",
        "no-item-done",
        "no-part-events",
        "only-completed",
        "other-ids",
        "rising-content-index",
        "type-only-in-event-name",
        "double-completed",
    ];
    for name in deviations {
        let frames = decode(&recorded(name));
        let told = told(&frames);
        // That recording holds a text and nothing else.
        let expected = if name == "only-completed" { &proper[..1] } else { &proper[..] };
        assert_eq!(told, expected, "{name}");
        assert!(matches!(ending(&frames), Ending::Stopped(Stop::EndTurn | Stop::ToolCalls)), "{name}");
    }
}

#[test]
fn two_calls_under_one_call_id_are_both_kept() {
    let event = |kind: &str, id: &str, arguments: &str, index: u8| {
        let item = format!(
            r#"{{"type":"function_call","id":"{id}","call_id":"x","name":"read","arguments":"{arguments}"}}"#
        );
        format!(
            "data: {{\"type\":\"response.output_item.{kind}\",\"output_index\":{index},\"item\":{item}}}\n\n"
        )
    };
    let call = |id: &str, arguments: &str, index: u8| {
        format!("{}{}", event("added", id, "", index), event("done", id, arguments, index))
    };
    let inputs = |stream: &str| -> Vec<String> {
        let grew = decode(stream).into_iter().filter_map(|frame| match frame {
            Frame::Grew { piece: Piece::Text(text), .. } => Some(text.to_string()),
            _ => None,
        });
        grew.collect()
    };
    let two = format!("{}{}data: [DONE]\n\n", call("fc_1", "{}", 0), call("fc_2", "[1]", 1));
    assert_eq!(inputs(&two), ["{}", "[1]"]);
    let again = format!("{}{}data: [DONE]\n\n", call("fc_1", "{}", 0), call("fc_2", "{}", 1));
    assert_eq!(inputs(&again), ["{}"]);
}

#[test]
fn a_call_that_is_announced_twice_is_one() {
    let call = "call call_1 read_file {\"path\":\"a\"}";
    for name in
        ["announced-twice", "arguments-only-in-done", "arguments-only-in-item", "item-id-holds-call-id"]
    {
        let told = told(&decode(&recorded(name)));
        let calls: Vec<_> = told.iter().filter(|line| line.starts_with("call")).collect();
        assert_eq!(calls, [call], "{name}");
    }
}

#[test]
fn parallel_calls_are_not_mixed() {
    let frames = decode(&recorded("parallel-calls"));
    let told = told(&frames);
    assert!(told.len() >= 2, "{told:?}");
    for line in told {
        let arguments = line.splitn(4, ' ').nth(3).unwrap();
        serde_json::from_str::<serde_json::Value>(arguments).expect(arguments);
    }
}

#[test]
fn reasoning_has_a_summary_and_is_sealed_at_its_end() {
    let told = told(&decode(&recorded("thinking-then-call")));
    assert_eq!(
        told[0],
        "thought [0]**Picking[0] a tool**\n\n[0]A file read[0] is enough.[1]**Going[1] on**[sealed]"
    );
    let told = self::told(&decode(&recorded("summary-without-part")));
    assert!(told[0].starts_with("thought [0]"), "{told:?}");
}

#[test]
fn raw_reasoning_is_read_under_both_names() {
    let openai = told(&decode(&recorded("reasoning-text")));
    assert_eq!(openai, ["thought Read it.", "text Done."]);
    assert_eq!(told(&decode(&recorded("reasoning-spec-names")))[0], "thought Read it.");
}

#[test]
fn remarks_refusals_custom_calls_and_namespaces_are_kept() {
    assert!(told(&decode(&recorded("annotations"))).iter().any(|line| line.contains("[note]")));
    let refusal = decode(&recorded("refusal"));
    assert_eq!(told(&refusal), ["refusal I can't help with that."]);
    assert_eq!(ending(&refusal), Ending::Stopped(Stop::Refusal));
    assert!(told(&decode(&recorded("custom-call"))).iter().any(|line| line.starts_with("custom call_")));
    let namespaced = decode(&recorded("namespaced-call"));
    let has_namespace = |frame: &Frame| {
        matches!(frame, Frame::Begun { kind: BlockKind::Call { namespace: Some(_), .. }, .. })
    };
    assert!(namespaced.iter().any(has_namespace));
}

#[test]
fn hosted_items_come_whole_and_their_events_are_alien() {
    let frames = decode(&recorded("hosted-tool-items"));
    assert!(told(&frames).iter().any(|line| line == "opaque web_search_call"));
    let is_search = |frame: &Frame| matches!(frame, Frame::Alien { data, .. } if data.contains("response.web_search_call."));
    assert!(frames.iter().any(is_search));
    let unknown = decode(&recorded("unknown-events"));
    assert!(unknown.iter().any(|frame| matches!(frame, Frame::Alien { .. })));
    assert!(matches!(ending(&unknown), Ending::Stopped(_)));
}

#[test]
fn failures_close_the_answer_whichever_way_they_are_told() {
    for name in ["failed", "failed-error-event-only", "failed-nested-error"] {
        let Ending::Failed(failure) = ending(&decode(&recorded(name))) else { panic!("{name}") };
        assert!(!failure.message.is_empty());
    }
    let flat = decode_data(&[r#"{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}"#]);
    let Ending::Failed(failure) = ending(&flat) else { panic!("{flat:?}") };
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::RateLimited, "m"));
}

#[test]
fn what_is_cut_off_says_so() {
    let incomplete = decode(&recorded("incomplete-call"));
    assert_eq!(ending(&incomplete), Ending::Stopped(Stop::MaxTokens));
    assert!(told(&incomplete)[0].ends_with("lorem ip"));
    assert_eq!(ending(&decode(&recorded("truncated-inside-call"))), Ending::Broken);
    assert_eq!(ending(&decode("")), Ending::Broken);
}

#[test]
fn a_missing_end_mark_is_no_loss_but_a_missing_terminal_event_is() {
    assert!(matches!(ending(&decode(&recorded("no-done"))), Ending::Stopped(_)));
    let added = r#"{"type":"response.output_item.added","item":{"type":"message","id":"m"}}"#;
    let delta = r#"{"type":"response.output_text.delta","item_id":"m","delta":"Hi"}"#;
    let done = r#"{"type":"response.output_item.done","item":{"type":"message","id":"m"}}"#;
    assert_eq!(ending(&decode_data(&[added, delta])), Ending::Broken);
    assert_eq!(ending(&decode_data(&[added, delta, "[DONE]"])), Ending::Broken);
    assert_eq!(ending(&decode_data(&[added, delta, done, "[DONE]"])), Ending::Stopped(Stop::EndTurn));
}

#[test]
fn two_calls_under_one_index_stay_two() {
    let added = |id: &str| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":0,"item":{{"type":"function_call","id":"fc_{id}","call_id":"{id}","name":"f"}}}}"#
        )
    };
    let delta = |id: &str| {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_{id}","delta":"{{\"{id}\":1}}"}}"#
        )
    };
    let events =
        [added("a"), added("b"), delta("a"), delta("b"), r#"{"type":"response.completed"}"#.to_owned()];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(told(&decode_data(&events)), ["call a f {\"a\":1}", "call b f {\"b\":1}"]);
}

#[test]
fn a_call_whose_name_comes_last_is_held_until_then() {
    let delta = r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}"#;
    let done = r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}}"#;
    let completed = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    assert_eq!(told(&decode_data(&[delta, done, completed])), ["call c f {}"]);
    assert!(told(&decode_data(&[delta, completed])).is_empty());
}

#[test]
fn arguments_that_only_the_announcement_holds_are_taken_from_there() {
    let added = r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"}}"#;
    let completed = r#"{"type":"response.completed","response":{}}"#;
    assert_eq!(told(&decode_data(&[added, completed])), ["call c f {\"a\":1}"]);
}

#[test]
fn several_parts_of_reasoning_and_of_a_message_are_all_told() {
    let item = r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","summary":[{"text":"s"}],
        "content":[{"type":"reasoning_text","text":"a"},{"type":"reasoning_text","text":"b"}],"encrypted_content":"g"}}"#
        .replace('\n', "");
    let message = r#"{"type":"response.output_item.done","item":{"type":"message","id":"m","content":[
        {"type":"output_text","text":"x","annotations":[{"type":"url_citation"}]},{"type":"output_text","text":"y"}]}}"#
        .replace('\n', "");
    let completed = r#"{"type":"response.completed","response":{}}"#;
    let told = told(&decode_data(&[&item, &message, completed]));
    assert_eq!(told, ["thought [0]sab[sealed]", "text x[note]", "text y"]);
    let part =
        |text: &str| format!(r#"{{"type":"response.reasoning_text.done","item_id":"rs","text":"{text}"}}"#);
    let done = |text: &str| {
        format!(
            r#"{{"type":"response.content_part.done","item_id":"rs","part":{{"type":"reasoning_text","text":"{text}"}}}}"#
        )
    };
    let events = [part("a"), done("a"), part("b"), done("b")];
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.extend([item.as_str(), completed]);
    assert_eq!(self::told(&decode_data(&events)), ["thought ab[0]s[sealed]"]);
}

#[test]
fn invalid_json_is_kept_and_ends_nothing() {
    let frames = decode_data(&["{\"type\":", "7", r#"{"type":"response.completed","response":{}}"#]);
    let aliens = frames.iter().filter(|frame| matches!(frame, Frame::Alien { .. })).count();
    assert_eq!((aliens, ending(&frames)), (2, Ending::Stopped(Stop::EndTurn)));
}

#[test]
fn a_response_that_is_completed_but_calls_itself_in_progress_is_over() {
    let frames = decode_data(&[r#"{"type":"response.completed","response":{"status":"in_progress"}}"#]);
    assert_eq!(ending(&frames), Ending::Stopped(Stop::EndTurn));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn any_split_of_a_recording_gives_the_same_frames(
        name in prop::sample::select(vec!["text-then-call", "thinking-then-call", "parallel-calls", "missing-fields"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream = recorded(name);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        at.extend([0, stream.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(decode_pieces(&pieces), decode(&stream));
    }

    #[test]
    fn events_may_be_lost_without_harm_to_the_frames(
        name in prop::sample::select(vec!["text-then-call", "thinking-then-call", "parallel-calls", "annotations"]),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let stream = recorded(name);
        let mut events: Vec<&str> = stream.split("\n\n").collect();
        for index in lost {
            if events.len() > 1 {
                events.remove(index.index(events.len()));
            }
        }
        // Whatever is missing, the frames are well formed.
        decode(&events.join("\n\n"));
    }
}
