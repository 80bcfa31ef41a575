//! Streams as clients read them.

use super::*;
use crate::messages::{StreamDecoder, decode_request};
use crate::sse::SseEvent;
use proptest::prelude::*;
use serde_json::{Value, json};
use throughline_core::{Assembler, Dialect, Failure, FailureKind, Input, Kind, Reply, Seal};

fn ask() -> Ask {
    decode_request(&Document::parse(r#"{"messages":[]}"#).unwrap()).unwrap()
}

fn stamp(input_tokens: Option<u64>) -> Stamp {
    Stamp { id: "7".into(), created_at: 0, model: Some("asked".into()), input_tokens }
}

fn events_of(stamp: Stamp, frames: &[Frame]) -> Vec<Outgoing> {
    let mut encoder = StreamEncoder::new(stamp, &ask());
    let mut out = Vec::new();
    frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut out));
    assert_legal(&out);
    out
}

fn events(frames: &[Frame]) -> Vec<Value> {
    let out = events_of(stamp(None), frames);
    out.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}

/// Asserts the order that clients rely on.
fn assert_legal(out: &[Outgoing]) {
    let (mut open, mut next) = (None, 0);
    for (at, event) in out.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).expect("valid JSON");
        let kind = data["type"].as_str().unwrap();
        assert_eq!(event.name, Some(kind));
        match kind {
            "message_start" => assert_eq!(at, 0),
            "content_block_start" => {
                assert_eq!((open, data["index"].as_u64()), (None, Some(next)), "{out:?}");
                open = Some(next);
                next += 1;
            }
            "content_block_delta" => assert_eq!(open, data["index"].as_u64(), "{out:?}"),
            "content_block_stop" => {
                assert_eq!(open, data["index"].as_u64(), "{out:?}");
                open = None;
            }
            "message_delta" => assert_eq!((open, at), (None, out.len() - 2)),
            "message_stop" | "error" => assert_eq!((open, at), (None, out.len() - 1)),
            other => panic!("{other}"),
        }
    }
}

fn opened() -> Frame {
    Frame::Opened { id: None, model: Some("m".into()) }
}

fn begun(block: BlockId, kind: BlockKind) -> Frame {
    Frame::Begun { block, kind }
}

fn text() -> BlockKind {
    BlockKind::Text { item_id: None }
}

fn thought() -> BlockKind {
    BlockKind::Thought { item_id: None }
}

fn call(id: &str, freeform: bool) -> BlockKind {
    BlockKind::Call { id: id.into(), item_id: None, name: "f".into(), namespace: None, freeform }
}

fn grew(block: BlockId, text: &str) -> Frame {
    Frame::Grew { block, piece: Piece::Text(text.into()) }
}

fn ended(block: BlockId) -> Frame {
    Frame::Ended { block }
}

fn closed(stop: Stop) -> Frame {
    Frame::Closed(Ending::Stopped(stop))
}

/// Joins the pieces of a field of all deltas.
fn joined(events: &[Value], field: &str) -> String {
    events.iter().filter_map(|event| event["delta"][field].as_str()).collect()
}

fn read_back(out: &[Outgoing]) -> Reply {
    let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
    for event in out {
        let event = SseEvent { name: event.name.map(Text::from), data: Text::from(event.data.as_str()) };
        decoder.handle_event(&event, &mut frames);
    }
    decoder.finish(&mut frames);
    let mut assembler = Assembler::new(Dialect::Messages);
    frames.iter().for_each(|frame| assembler.handle_frame(frame));
    assembler.finish()
}

#[test]
fn an_answer_without_blocks_is_complete() {
    let events = events(&[opened(), closed(Stop::EndTurn)]);
    let kinds: Vec<_> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["message_start", "message_delta", "message_stop"]);
    assert_eq!(events[0]["message"]["model"], "asked");
    assert_eq!(events[0]["message"]["id"], "msg_7");
}

#[test]
fn the_start_carries_the_tokens_of_the_prompt() {
    // Pain of many gateways: clients draw their context meter from the first event.
    let used = Frame::Used(Usage { input: 900, cache_read: 800, ..Usage::default() });
    let events = events(&[opened(), used, begun(0, text()), ended(0), closed(Stop::EndTurn)]);
    let usage = &events[0]["message"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(100), &json!(800)));
    let out = events_of(stamp(Some(42)), &[opened()]);
    assert!(out[0].data.contains(r#""input_tokens":42"#));
}

#[test]
fn the_end_carries_all_tokens() {
    let used = Frame::Used(Usage { input: 9, output: 5, reasoning: 3, ..Usage::default() });
    let events = events(&[opened(), begun(0, text()), grew(0, "a"), ended(0), used, closed(Stop::MaxTokens)]);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"], json!({"stop_reason": "max_tokens", "stop_sequence": null}));
    assert_eq!((&end["usage"]["input_tokens"], &end["usage"]["output_tokens"]), (&json!(9), &json!(5)));
}

#[test]
fn blocks_that_grow_side_by_side_come_one_after_the_other() {
    let events = events(&[
        opened(),
        begun(0, call("a", false)),
        begun(1, call("b", false)),
        grew(1, "{\"y\""),
        grew(0, "{\"x\""),
        ended(1),
        begun(2, text()),
        grew(0, "}"),
        grew(2, "t"),
        ended(0),
        grew(2, "u"),
        closed(Stop::EndTurn),
    ]);
    let ids: Vec<_> = events.iter().filter_map(|event| event["content_block"]["id"].as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(
        (joined(&events, "partial_json"), joined(&events, "text")),
        ("{\"x\"}{\"y\"".into(), "tu".into())
    );
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn an_empty_text_is_no_block() {
    let events = events(&[
        opened(),
        begun(0, text()),
        grew(0, ""),
        ended(0),
        begun(1, thought()),
        ended(1),
        closed(Stop::EndTurn),
    ]);
    assert_eq!(events.len(), 3);
}

#[test]
fn free_text_is_wrapped_as_it_comes() {
    let frames = [
        opened(),
        begun(0, call("a", true)),
        grew(0, "say \"h"),
        grew(0, "i\"\n"),
        ended(0),
        closed(Stop::EndTurn),
    ];
    let events = events(&frames);
    let input: Value = serde_json::from_str(&joined(&events, "partial_json")).unwrap();
    assert_eq!(input, json!({"throughline_input": "say \"hi\"\n"}));
}

#[test]
fn a_thought_has_one_signature_and_its_paragraphs() {
    let piece = |piece| Frame::Grew { block: 0, piece };
    let summary = |index, text: &str| piece(Piece::Summary { index, text: text.into() });
    let seal = |text: &str| piece(Piece::Seal(Seal::Signature(text.into())));
    let foreign = piece(Piece::Seal(Seal::Encrypted("secret".into())));
    let frames = [
        opened(),
        begun(0, thought()),
        seal("S"),
        summary(0, "a"),
        summary(0, "b"),
        summary(1, "c"),
        seal("T"),
        foreign,
        ended(0),
        closed(Stop::EndTurn),
    ];
    let events = events(&frames);
    assert_eq!(joined(&events, "thinking"), "ab\n\nc");
    let signatures: Vec<_> = events.iter().filter_map(|event| event["delta"]["signature"].as_str()).collect();
    assert_eq!(signatures, ["ST"]);
    assert!(events.iter().all(|event| !event.to_string().contains("secret")));
}

#[test]
fn redacted_thinking_is_a_block_of_its_own() {
    let seal = Frame::Grew { block: 0, piece: Piece::Seal(Seal::Redacted("R".into())) };
    let events = events(&[opened(), begun(0, thought()), seal, ended(0), closed(Stop::EndTurn)]);
    assert_eq!(events[1]["content_block"], json!({"type": "redacted_thinking", "data": "R"}));
}

#[test]
fn a_failure_ends_the_stream_without_message_stop() {
    let failed = Frame::Closed(Ending::Failed(Failure::new(FailureKind::Overloaded, "busy")));
    let events = events(&[opened(), begun(0, text()), grew(0, "a"), failed]);
    assert_eq!(events.last().unwrap()["error"]["type"], "overloaded_error");
    for ending in [Ending::Broken, Ending::Cancelled] {
        let events = self::events(&[opened(), Frame::Closed(ending)]);
        assert_eq!(events.last().unwrap()["type"], "error");
    }
}

#[test]
fn only_blocks_of_this_dialect_are_passed_on_whole() {
    let opaque = |kind: &str, text: &str| BlockKind::Opaque { kind: kind.into(), text: text.into() };
    let own = r#"{"type":"web_search_tool_result","content":[]}"#;
    let frames = [
        opened(),
        begun(0, opaque("web_search_call", r#"{"type":"web_search_call"}"#)),
        ended(0),
        begun(1, opaque("web_search_tool_result", own)),
        ended(1),
        begun(2, opaque("compaction", r#"{"type":"compaction","encrypted_content":"x"}"#)),
        ended(2),
        closed(Stop::EndTurn),
    ];
    let events = events(&frames);
    let blocks: Vec<_> = events.iter().filter_map(|event| event.get("content_block")).collect();
    assert_eq!(blocks, [&serde_json::from_str::<Value>(own).unwrap()]);
}

/// A block to be sent: what it is and the pieces it grows by.
#[derive(Clone, Debug)]
enum Plan {
    Text(Vec<String>),
    Thought(Vec<String>, String),
    Call(Vec<String>, bool),
}

impl Plan {
    fn frames(&self, block: BlockId) -> Vec<Frame> {
        let grow = |piece: &String| grew(block, piece);
        let (kind, pieces): (_, Vec<Frame>) = match self {
            Self::Text(pieces) => (text(), pieces.iter().map(grow).collect()),
            Self::Thought(pieces, seal) => {
                let piece =
                    |piece: &String| Frame::Grew { block, piece: Piece::Reasoning(piece.as_str().into()) };
                let seal = Frame::Grew { block, piece: Piece::Seal(Seal::Signature(seal.as_str().into())) };
                (thought(), pieces.iter().map(piece).chain([seal]).collect())
            }
            Self::Call(pieces, freeform) => {
                (call(&format!("call{block}"), *freeform), pieces.iter().map(grow).collect())
            }
        };
        [begun(block, kind)].into_iter().chain(pieces).chain([ended(block)]).collect()
    }

    /// What a reader of the stream must find.
    fn told(&self) -> Option<String> {
        match self {
            Self::Text(pieces) => {
                Some(format!("text {}", pieces.concat())).filter(|_| !pieces.concat().is_empty())
            }
            Self::Thought(pieces, seal) => {
                let silent = pieces.concat().is_empty() && seal.is_empty();
                (!silent).then(|| format!("thought {} {seal}", pieces.concat()))
            }
            Self::Call(pieces, freeform) => Some(format!("call {} {freeform}", pieces.concat())),
        }
    }
}

fn told(reply: &Reply) -> Vec<String> {
    let tell = |kind: &Kind| match kind {
        Kind::Said(said) => format!("text {}", said.parts[0].as_text().unwrap()),
        Kind::Thought(thought) => {
            let seal = match &thought.seal {
                Some(Seal::Signature(seal)) => seal.as_str(),
                _ => "",
            };
            format!("thought {} {seal}", thought.content.concat_text())
        }
        Kind::Called(call) => match crate::input::from_arguments(call.input.text().clone()) {
            Input::Arguments(text) => format!("call {text} false"),
            Input::Freeform(text) => format!("call {text} true"),
        },
        other => panic!("{other:?}"),
    };
    reply.entries.iter().map(|entry| tell(&entry.kind)).collect()
}

trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<Text> {
    fn concat_text(&self) -> String {
        self.iter().map(Text::as_str).collect()
    }
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let pieces = || prop::collection::vec("[a\"\\\\\n{é]{0,3}", 0..4);
    let plan = prop_oneof![
        pieces().prop_map(Plan::Text),
        (pieces(), "[A-Z]{0,3}").prop_map(|(pieces, seal)| Plan::Thought(pieces, seal)),
        (pieces(), any::<bool>()).prop_map(|(pieces, freeform)| Plan::Call(pieces, freeform)),
    ];
    prop::collection::vec(plan, 0..5)
}

/// Merges the frames of several blocks in an order that `picks` decides, keeping the order of beginnings.
fn interleaved(plans: &[Plan], picks: &[prop::sample::Index]) -> Vec<Frame> {
    let mut queues: Vec<VecDeque<Frame>> =
        plans.iter().zip(0..).map(|(plan, block)| plan.frames(block).into()).collect();
    let mut frames = vec![opened()];
    let mut begun = 0;
    for pick in picks.iter().cycle().take(200) {
        let ready: Vec<usize> =
            (0..queues.len()).filter(|at| *at <= begun && !queues[*at].is_empty()).collect();
        if ready.is_empty() {
            break;
        }
        let at = *pick.get(&ready);
        begun += usize::from(at == begun);
        frames.extend(queues[at].pop_front());
    }
    frames.extend(queues.into_iter().flatten());
    frames.push(closed(Stop::EndTurn));
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_written_is_read_back(
        plans in plans(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..24),
    ) {
        let frames = interleaved(&plans, &picks);
        let reply = read_back(&events_of(stamp(None), &frames));
        prop_assert_eq!(told(&reply), plans.iter().filter_map(Plan::told).collect::<Vec<_>>());
        let calls = plans.iter().any(|plan| matches!(plan, Plan::Call(..)));
        let stop = if calls { Stop::ToolCalls } else { Stop::EndTurn };
        prop_assert_eq!(reply.ending, Ending::Stopped(stop));
    }
}
