//! Tests of the stream encoder: whatever the frames, the stream conforms and loses nothing.

use super::*;
use crate::json::Document;
use crate::responses::conformance::check_stream;
use crate::responses::{StreamDecoder, decode_request};
use crate::sse::SseEvent;
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline_core::{Failure, FailureKind, Piece, Seal, Stop};

fn encoder(request: &str) -> StreamEncoder {
    let ask = decode_request(&Document::parse(request).unwrap()).unwrap();
    StreamEncoder::new(Stamp { id: "x1".into(), created_at: 7, model: None, input_tokens: None }, &ask)
}

fn encode(frames: &[Frame]) -> Vec<Outgoing> {
    let mut out = Vec::new();
    let mut encoder = encoder(r#"{"model":"asked","input":"hi","stream":true}"#);
    frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut out));
    out
}

fn names(out: &[Outgoing]) -> Vec<&'static str> {
    out.iter().filter_map(|outgoing| outgoing.name).collect()
}

fn opened() -> Frame {
    Frame::Opened { id: Some("resp_backend".into()), model: Some("real".into()) }
}

fn text(block: BlockId, item_id: Option<&str>) -> Frame {
    Frame::Begun { block, kind: BlockKind::Text { item_id: item_id.map(Text::from) } }
}

fn thought(block: BlockId) -> Frame {
    Frame::Begun { block, kind: BlockKind::Thought { item_id: Some("rs_backend".into()) } }
}

fn call(block: BlockId, id: &str, freeform: bool) -> Frame {
    let kind = BlockKind::Call {
        id: id.into(),
        item_id: Some("fc_backend".into()),
        name: "f".into(),
        namespace: Some("n".into()),
        freeform,
    };
    Frame::Begun { block, kind }
}

fn grew(block: BlockId, text: &str) -> Frame {
    Frame::Grew { block, piece: Piece::Text(text.into()) }
}

fn closed(stop: Stop) -> Frame {
    Frame::Closed(Ending::Stopped(stop))
}

const fn ended(block: BlockId) -> Frame {
    Frame::Ended { block }
}

#[test]
fn a_text_goes_through_its_whole_life() {
    let frames = [opened(), text(0, None), grew(0, "Hel"), grew(0, "lo"), ended(0), closed(Stop::EndTurn)];
    let out = encode(&frames);
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names(&out), expected);
    let response = check_stream(&out);
    assert_eq!((&response["id"], &response["model"]), (&json!("resp_x1"), &json!("real")));
    assert_eq!(
        response["output"],
        json!([{"type": "message", "id": "msg_x1_0", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]}])
    );
}

#[test]
fn calls_that_grow_side_by_side_are_not_mixed() {
    let frames = [
        opened(),
        call(0, "c1", false),
        call(1, "c2", true),
        grew(0, "{\"a\":"),
        grew(1, "pat"),
        grew(0, "1}"),
        grew(1, "ch"),
        ended(0),
        ended(1),
        closed(Stop::ToolCalls),
    ];
    let response = check_stream(&encode(&frames));
    assert_eq!(
        response["output"],
        json!([{"type": "function_call", "id": "fc_x1_0", "status": "completed", "call_id": "c1", "name": "f",
                "namespace": "n", "arguments": "{\"a\":1}"},
            {"type": "custom_tool_call", "id": "ctc_x1_1", "status": "completed", "call_id": "c2", "name": "f",
                "namespace": "n", "input": "patch"}])
    );
}

#[test]
fn reasoning_has_paragraphs_text_and_a_seal() {
    let piece = |piece| Frame::Grew { block: 0, piece };
    let summary = |index, text: &str| piece(Piece::Summary { index, text: text.into() });
    let frames = [
        opened(),
        thought(0),
        summary(0, "a"),
        summary(1, "b"),
        summary(1, "c"),
        summary(0, "late"),
        piece(Piece::Reasoning("raw".into())),
        piece(Piece::Seal(Seal::Encrypted("gA".into()))),
        ended(0),
        closed(Stop::EndTurn),
    ];
    let out = encode(&frames);
    let response = check_stream(&out);
    let item = &response["output"][0];
    let texts: Vec<_> = item["summary"].as_array().unwrap().iter().map(|part| part["text"].clone()).collect();
    assert_eq!(texts, ["a", "bc", "late"]);
    assert_eq!((&item["content"][0]["text"], &item["encrypted_content"]), (&json!("raw"), &json!("gA")));
    assert!(names(&out).contains(&"response.reasoning.delta"));
}

#[test]
fn raw_reasoning_goes_by_openais_name_on_request() {
    let mut out = Vec::new();
    let mut encoder = encoder("{}");
    encoder.set_reasoning_events(ReasoningEvents::OpenAi);
    let raw = Frame::Grew { block: 0, piece: Piece::Reasoning("raw".into()) };
    for frame in [opened(), thought(0), raw, ended(0), closed(Stop::EndTurn)] {
        encoder.handle_frame(&frame, &mut out);
    }
    check_stream(&out);
    assert!(names(&out).contains(&"response.reasoning_text.done"));
    assert!(!names(&out).contains(&"response.reasoning.delta"));
}

#[test]
fn blocks_of_one_message_share_an_item() {
    let refusal = Frame::Begun { block: 1, kind: BlockKind::Refusal { item_id: Some("m".into()) } };
    let frames = [
        opened(),
        text(0, Some("m")),
        grew(0, "a"),
        ended(0),
        refusal,
        grew(1, "no"),
        ended(1),
        text(2, Some("other")),
        ended(2),
        closed(Stop::Refusal),
    ];
    let response = check_stream(&encode(&frames));
    assert_eq!(response["output"].as_array().unwrap().len(), 2);
    assert_eq!(response["output"][0]["content"].as_array().unwrap().len(), 2);
    assert_eq!(response["status"], "completed");
}

#[test]
fn only_the_last_item_of_a_cut_off_answer_is_incomplete() {
    let frames = [
        opened(),
        text(0, None),
        grew(0, "a"),
        ended(0),
        call(1, "c", false),
        grew(1, "{\"pa"),
        ended(1),
        closed(Stop::MaxTokens),
    ];
    let out = encode(&frames);
    let response = check_stream(&out);
    assert_eq!(names(&out).last(), Some(&"response.incomplete"));
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(
        (&response["output"][0]["status"], &response["output"][1]["status"]),
        (&json!("completed"), &json!("incomplete"))
    );
}

#[test]
fn a_failure_before_the_first_word_still_opens_the_response() {
    let failure = Failure::new(FailureKind::RateLimited, "slow down");
    let out = encode(&[Frame::Closed(Ending::Failed(failure))]);
    assert_eq!(names(&out), ["response.created", "response.in_progress", "response.failed"]);
    let response = check_stream(&out);
    assert_eq!(response["error"], json!({"code": "rate_limit_exceeded", "message": "slow down"}));
    assert_eq!(response["model"], "asked");
}

#[test]
fn a_broken_stream_is_a_failed_response_with_open_items_closed() {
    let frames =
        [opened(), call(0, "a", false), call(1, "b", false), grew(0, "{"), Frame::Closed(Ending::Broken)];
    let response = check_stream(&encode(&frames));
    assert_eq!(response["error"]["code"], "throughline_backend_stream_broken");
    let statuses: Vec<_> =
        response["output"].as_array().unwrap().iter().map(|item| item["status"].clone()).collect();
    assert_eq!(statuses, ["incomplete", "incomplete"]);
}

#[test]
fn a_cancelled_answer_has_failed() {
    let out = encode(&[opened(), text(0, None), grew(0, "a"), Frame::Closed(Ending::Cancelled)]);
    assert_eq!(names(&out).last(), Some(&"response.failed"));
    assert_eq!(check_stream(&out)["error"]["code"], "throughline_cancelled");
}

#[test]
fn a_call_without_arguments_gets_an_empty_object() {
    let response = check_stream(&encode(&[opened(), call(0, "c", false), ended(0), closed(Stop::ToolCalls)]));
    assert_eq!(response["output"][0]["arguments"], "{}");
}

#[test]
fn own_items_are_passed_on_and_foreign_ones_are_not() {
    let opaque = |block, kind: &str, text: &str| Frame::Begun {
        block,
        kind: BlockKind::Opaque { kind: kind.into(), text: text.into() },
    };
    let frames = [
        opened(),
        opaque(0, "web_search_call", r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#),
        ended(0),
        opaque(1, "server_tool_use", r#"{"type":"server_tool_use"}"#),
        ended(1),
        opaque(2, "compaction", r#"{"type":"compaction","content":"words"}"#),
        ended(2),
        closed(Stop::EndTurn),
    ];
    let mut out = encode(&frames);
    let end = out.pop();
    let last: Value = serde_json::from_str(&out.last().unwrap().data).unwrap();
    assert_eq!(
        last["response"]["output"],
        json!([{"type": "web_search_call", "id": "ws_1", "status": "completed"}])
    );
    assert_eq!(end.unwrap().data, "[DONE]");
}

#[test]
fn annotations_are_numbered_and_kept() {
    let citation = |url: &str| {
        Piece::Annotation(
            format!(r#"{{"type":"url_citation","url":"{url}","title":"t","start_index":0,"end_index":1}}"#)
                .into(),
        )
    };
    let frames = [
        opened(),
        text(0, None),
        grew(0, "a"),
        Frame::Grew { block: 0, piece: citation("u") },
        Frame::Grew { block: 0, piece: Piece::Annotation(r#"{"type":"char_location"}"#.into()) },
        Frame::Grew { block: 0, piece: citation("v") },
        ended(0),
        closed(Stop::EndTurn),
    ];
    let response = check_stream(&encode(&frames));
    let annotations = response["output"][0]["content"][0]["annotations"].as_array().unwrap().clone();
    let urls: Vec<_> = annotations.iter().map(|annotation| annotation["url"].clone()).collect();
    assert_eq!(urls, ["u", "v"]);
}

#[test]
fn usage_is_gathered_from_all_reports() {
    let start = Usage { input: 90, cache_read: 80, ..Usage::default() };
    let end = Usage { output: 12, reasoning: 2, ..Usage::default() };
    let response =
        check_stream(&encode(&[opened(), Frame::Used(start), Frame::Used(end), closed(Stop::EndTurn)]));
    assert_eq!(
        response["usage"],
        json!({"input_tokens": 90, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 102})
    );
}

#[test]
fn nothing_follows_the_end() {
    let out = encode(&[opened(), closed(Stop::EndTurn), text(0, None), closed(Stop::EndTurn)]);
    assert_eq!(names(&out), ["response.created", "response.in_progress", "response.completed"]);
}

/// One step of a random answer: begin a block of some kind, let one grow, or end one.
#[derive(Clone, Debug)]
enum Move {
    Begin(u8),
    Grow(u8, String),
    End(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let step = prop_oneof![
        (0..6u8).prop_map(Move::Begin),
        (any::<u8>(), "[a-z\"\\\\\n é]{0,6}").prop_map(|(at, text)| Move::Grow(at, text)),
        any::<u8>().prop_map(Move::End),
    ];
    prop::collection::vec(step, 0..40)
}

/// Returns a legal sequence of frames, and what each of its blocks says.
fn frames_of(moves: &[Move], ending: Ending) -> (Vec<Frame>, Vec<String>) {
    let mut frames = vec![opened()];
    let mut texts: Vec<String> = Vec::new();
    let mut open: Vec<BlockId> = Vec::new();
    for step in moves {
        match step {
            Move::Begin(kind) => {
                let block = BlockId::try_from(texts.len()).unwrap();
                frames.push(match kind {
                    0 => text(block, None),
                    1 => text(block, Some("shared")),
                    2 => thought(block),
                    3 => Frame::Begun { block, kind: BlockKind::Refusal { item_id: Some("shared".into()) } },
                    kind => call(block, &format!("c{block}"), *kind == 5),
                });
                texts.push(String::new());
                open.push(block);
            }
            Move::Grow(at, piece) if !open.is_empty() => {
                let block = open[usize::from(*at) % open.len()];
                frames.push(grew(block, piece));
                texts[block as usize].push_str(piece);
            }
            Move::End(at) if !open.is_empty() => {
                let block = open.remove(usize::from(*at) % open.len());
                frames.push(ended(block));
            }
            Move::Grow(..) | Move::End(_) => {}
        }
    }
    frames.push(Frame::Closed(ending));
    (frames, texts)
}

/// Returns the calls and texts that the client of a stream sees, as the decoder reads them.
fn read_back(out: &[Outgoing]) -> Vec<String> {
    let mut decoder = StreamDecoder::new();
    let mut frames = Vec::new();
    for outgoing in out {
        let event = SseEvent { name: outgoing.name.map(Text::from), data: outgoing.data.as_str().into() };
        decoder.handle_event(&event, &mut frames);
    }
    decoder.finish(&mut frames);
    let mut lines: Vec<String> = Vec::new();
    for frame in frames {
        match frame {
            Frame::Begun { kind: BlockKind::Call { id, .. }, .. } => lines.push(format!("{id}:")),
            Frame::Begun { .. } => lines.push(String::new()),
            Frame::Grew { block, piece: Piece::Text(text) | Piece::Reasoning(text) } => {
                lines[block as usize].push_str(&text);
            }
            _ => {}
        }
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn any_frames_make_a_conforming_stream_that_says_it_all(moves in moves(), end in 0..4u8) {
        let ending = match end {
            0 => Ending::Stopped(Stop::EndTurn),
            1 => Ending::Stopped(Stop::MaxTokens),
            2 => Ending::Broken,
            _ => Ending::Failed(Failure::new(FailureKind::Backend, "gone")),
        };
        let (frames, texts) = frames_of(&moves, ending);
        let out = encode(&frames);
        check_stream(&out);
        let begun: Vec<&Frame> = frames.iter().filter(|frame| matches!(frame, Frame::Begun { .. })).collect();
        let mut said: Vec<String> = texts
            .iter()
            .zip(begun)
            .map(|(text, begun)| match begun {
                Frame::Begun { kind: BlockKind::Call { id, freeform: false, .. }, .. } if text.is_empty() => {
                    format!("{id}:{{}}")
                }
                Frame::Begun { kind: BlockKind::Call { id, .. }, .. } => format!("{id}:{text}"),
                _ => text.clone(),
            })
            .collect();
        let mut read = read_back(&out);
        said.sort();
        read.sort();
        prop_assert_eq!(read, said);
    }
}
