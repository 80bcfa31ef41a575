//! A streamed answer, written: frames to chunks.
//!
//! A chunk opens with the role, the rest follow as deltas of one message: all texts are one `content`, all
//! refusals one `refusal`, all reasoning one `reasoning_content`, so blocks of one kind that grow side by side
//! are written one after the other. Calls may interleave, since each has an index.
//!
//! An answer that fails or breaks off ends with `{"error": …}` in place of a chunk, and without a finish
//! reason or `[DONE]`: the OpenAI clients raise an error at such an event, and a client that overlooks it
//! still misses the end mark.

use super::error::encode_error;
use super::finish::finish_reason;
use super::reply::{answer_id, failure_of, is_of_old};
use super::settings::wants_usage;
use super::stream_texts::{Channel, Strand, Strands};
use super::usage::write_usage;
use crate::json::{Document, Kind, Writer};
use crate::{Outgoing, Stamp};
use std::collections::BTreeMap;
use throughline_core::{Ask, BlockId, BlockKind, Dialect, Ending, Frame, Piece, Text, Usage};

/// Turns the frames of one answer into events.
pub(crate) struct StreamEncoder {
    stamp: Stamp,
    /// Whether the client asked to be told what the answer cost.
    wants_usage: bool,
    /// Whether the client knows functions but no tools.
    is_of_old: bool,
    state: State,
    strands: Strands,
    calls: BTreeMap<BlockId, OpenCall>,
    calls_begun: u64,
    usage: Option<Usage>,
}

enum State {
    /// Nothing was written.
    Before,
    /// The role was written; holds how every chunk begins.
    Open(String),
    /// The last event was written.
    Closed,
}

/// A call that is being written.
struct OpenCall {
    index: u64,
    form: CallForm,
    has_input: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Function,
    Custom,
    /// The one `function_call` of the time before tools.
    OfOld,
}

impl StreamEncoder {
    /// Returns an encoder for the answer to `ask`.
    pub(crate) fn new(stamp: Stamp, ask: &Ask) -> Self {
        Self {
            stamp,
            wants_usage: ask.dialect == Dialect::Chat && wants_usage(&ask.fields),
            is_of_old: is_of_old(ask),
            state: State::Before,
            strands: Strands::default(),
            calls: BTreeMap::new(),
            calls_begun: 0,
            usage: None,
        }
    }

    /// Takes the next frame.
    pub(crate) fn handle_frame(&mut self, frame: &Frame, out: &mut Vec<Outgoing>) {
        match (frame, &self.state) {
            (_, State::Closed) => return,
            (Frame::Opened { model, .. }, State::Before) => return self.open(model.as_ref(), out),
            (_, State::Before) => self.open(None, out),
            (_, State::Open(_)) => {}
        }
        match frame {
            Frame::Begun { block, kind } => self.begin(*block, kind, out),
            Frame::Grew { block, piece } => self.grow(*block, piece, out),
            Frame::Ended { block } => self.end(*block, out),
            Frame::Used(usage) => self.usage = Some(self.usage.unwrap_or_default().updated(*usage)),
            Frame::Closed(ending) => self.close(ending, out),
            Frame::Opened { .. } | Frame::Ordered(_) | Frame::Alien { .. } => {}
        }
    }

    /// Notes that what follows is another answer.
    pub fn set_apart(&mut self) {
        self.strands.set_apart();
    }

    fn open(&mut self, model: Option<&Text>, out: &mut Vec<Outgoing>) {
        let model = self.stamp.model.as_ref().or(model);
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("id", &answer_id(&self.stamp));
        writer.field_str("object", "chat.completion.chunk");
        writer.field_uint("created", self.stamp.created_at);
        writer.field_str("model", model.map_or("", Text::as_str));
        self.state = State::Open(writer.into_string());
        self.delta(out, |delta| {
            delta.field_str("role", "assistant");
            delta.field_str("content", "");
            delta.field_null("refusal");
        });
    }

    fn begin(&mut self, block: BlockId, kind: &BlockKind, out: &mut Vec<Outgoing>) {
        match kind {
            BlockKind::Text { item_id } => self.strands.begin(block, Channel::Text, item_id.as_ref()),
            BlockKind::Refusal { item_id } => self.strands.begin(block, Channel::Refusal, item_id.as_ref()),
            BlockKind::Thought { .. } => self.strands.begin(block, Channel::Thought, None),
            BlockKind::Call { id, name, freeform, .. } => {
                self.strands.interrupt();
                self.begin_call(block, id, name, *freeform, out);
            }
            // No type of call beyond the two is one of this dialect's own.
            BlockKind::Opaque { .. } => self.strands.interrupt(),
        }
    }

    fn begin_call(&mut self, block: BlockId, id: &str, name: &str, freeform: bool, out: &mut Vec<Outgoing>) {
        let form = match freeform {
            _ if self.is_of_old && self.calls_begun == 0 => CallForm::OfOld,
            true => CallForm::Custom,
            false => CallForm::Function,
        };
        let call = OpenCall { index: self.calls_begun, form, has_input: false };
        self.calls_begun += 1;
        self.delta(out, |delta| call.write(delta, Some((id, name)), ""));
        self.calls.insert(block, call);
    }

    fn grow(&mut self, block: BlockId, piece: &Piece, out: &mut Vec<Outgoing>) {
        if let (Piece::Text(text), Some(call)) = (piece, self.calls.get_mut(&block)) {
            call.has_input |= !text.is_empty();
            let call = OpenCall { ..*call };
            return self.delta(out, |delta| call.write(delta, None, text));
        }
        match piece {
            Piece::Annotation(remark) => self.annotate(remark, out),
            Piece::Seal(_) => {}
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Summary { .. } => {
                let strand = self.strands.grow(block, piece);
                self.write_strands(strand, out);
            }
        }
    }

    /// Writes a remark on the text, if it is one of this dialect's.
    fn annotate(&mut self, remark: &Text, out: &mut Vec<Outgoing>) {
        let document = Document::parse(remark.as_str()).ok();
        let citation = document.as_ref().and_then(|document| document.root().field("url_citation"));
        if citation.is_some_and(|citation| citation.kind() == Kind::Object) {
            self.delta(out, |delta| {
                delta.key("annotations");
                delta.begin_array();
                delta.raw(remark);
                delta.end_array();
            });
        }
    }

    fn end(&mut self, block: BlockId, out: &mut Vec<Outgoing>) {
        if let Some(call) = self.calls.remove(&block) {
            return self.end_call(&call, out);
        }
        let strands = self.strands.end(block);
        self.write_strands(strands, out);
    }

    /// Completes a call that was given nothing: clients parse the arguments, and an empty text is no JSON.
    fn end_call(&mut self, call: &OpenCall, out: &mut Vec<Outgoing>) {
        if !call.has_input && call.form != CallForm::Custom {
            self.delta(out, |delta| call.write(delta, None, "{}"));
        }
    }

    fn write_strands(&mut self, strands: impl IntoIterator<Item = Strand>, out: &mut Vec<Outgoing>) {
        for strand in strands {
            self.delta(out, |delta| {
                delta.key(match strand.channel {
                    Channel::Text => "content",
                    Channel::Refusal => "refusal",
                    Channel::Thought => "reasoning_content",
                });
                delta.string_with(|sink| {
                    sink.push(strand.joint);
                    sink.push(&strand.text);
                });
            });
        }
    }

    fn close(&mut self, ending: &Ending, out: &mut Vec<Outgoing>) {
        let rest = self.strands.end_all();
        self.write_strands(rest, out);
        if let Some(failure) = failure_of(ending) {
            out.push(event(encode_error(&failure)));
        } else {
            for call in std::mem::take(&mut self.calls).into_values() {
                self.end_call(&call, out);
            }
            let of_old = self.is_of_old && self.calls_begun == 1;
            let reason = finish_reason(ending, of_old, self.strands.has_refusal());
            self.chunk(out, "{}", Some(reason));
            self.write_usage(out);
            out.push(event("[DONE]".to_owned()));
        }
        self.state = State::Closed;
    }

    fn write_usage(&self, out: &mut Vec<Outgoing>) {
        let (State::Open(head), Some(usage), true) = (&self.state, &self.usage, self.wants_usage) else {
            return;
        };
        let mut writer = Writer::new();
        write_usage(&mut writer, usage);
        out.push(event(format!("{head},\"choices\":[],\"usage\":{}}}", writer.into_string())));
    }

    fn delta(&self, out: &mut Vec<Outgoing>, write: impl FnOnce(&mut Writer)) {
        let mut writer = Writer::with_capacity(64);
        writer.begin_object();
        write(&mut writer);
        writer.end_object();
        self.chunk(out, &writer.into_string(), None);
    }

    fn chunk(&self, out: &mut Vec<Outgoing>, delta: &str, reason: Option<&'static str>) {
        let State::Open(head) = &self.state else { return };
        let mut data = String::with_capacity(head.len() + delta.len() + 96);
        data.push_str(head);
        data.push_str(r#","choices":[{"index":0,"delta":"#);
        data.push_str(delta);
        data.push_str(r#","logprobs":null,"finish_reason":"#);
        match reason {
            Some(reason) => data.extend(["\"", reason, "\""]),
            None => data.push_str("null"),
        }
        data.push_str("}]");
        // Beside a promise of usage, every chunk says that it is not there yet.
        if self.wants_usage {
            data.push_str(r#","usage":null"#);
        }
        data.push('}');
        out.push(event(data));
    }
}

fn event(data: String) -> Outgoing {
    Outgoing { name: None, data }
}

impl OpenCall {
    /// Writes a delta of the call; the first one also says what is called.
    fn write(&self, delta: &mut Writer, first: Option<(&str, &str)>, input: &str) {
        let (kind, field) = match self.form {
            CallForm::Custom => ("custom", "input"),
            CallForm::Function | CallForm::OfOld => ("function", "arguments"),
        };
        if self.form == CallForm::OfOld {
            delta.key("function_call");
        } else {
            delta.key("tool_calls");
            delta.begin_array();
            delta.begin_object();
            delta.field_uint("index", self.index);
            if let Some((id, _)) = first {
                delta.field_str("id", id);
                delta.field_str("type", kind);
            }
            delta.key(kind);
        }
        delta.begin_object();
        if let Some((_, name)) = first {
            delta.field_str("name", name);
        }
        delta.field_str(field, input);
        delta.end_object();
        if self.form != CallForm::OfOld {
            delta.end_object();
            delta.end_array();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StreamDecoder, decode_request};
    use super::*;
    use crate::sse::SseEvent;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use throughline_core::{Assembler, Content, Entry, Failure, FailureKind, Kind as EntryKind, Stop};

    fn ask(fields: &str) -> Ask {
        let body = format!(r#"{{"messages":[]{fields}}}"#);
        decode_request(&Document::parse(body).unwrap()).unwrap()
    }

    fn events(frames: &[Frame], ask: &Ask) -> Vec<String> {
        let stamp = Stamp { id: "7".into(), created_at: 17, model: Some("m".into()), input_tokens: None };
        let (mut encoder, mut out) = (StreamEncoder::new(stamp, ask), Vec::new());
        frames.iter().for_each(|frame| encoder.handle_frame(frame, &mut out));
        out.into_iter().map(|event| event.data).collect()
    }

    fn deltas(frames: &[Frame], ask: &Ask) -> Vec<Value> {
        let chunks =
            events(frames, ask).into_iter().filter_map(|data| serde_json::from_str::<Value>(&data).ok());
        chunks.map(|chunk| chunk["choices"][0]["delta"].clone()).collect()
    }

    fn begun(block: BlockId, kind: BlockKind) -> Frame {
        Frame::Begun { block, kind }
    }

    fn text(block: BlockId) -> Frame {
        begun(block, BlockKind::Text { item_id: None })
    }

    fn call(block: BlockId, id: &str, freeform: bool) -> Frame {
        let (id, name) = (id.into(), "f".into());
        begun(block, BlockKind::Call { id, item_id: None, name, namespace: None, freeform })
    }

    fn grew(block: BlockId, text: &str) -> Frame {
        Frame::Grew { block, piece: Piece::Text(text.into()) }
    }

    fn ended(block: BlockId) -> Frame {
        Frame::Ended { block }
    }

    fn opened() -> Frame {
        Frame::Opened { id: None, model: None }
    }

    fn stopped(stop: Stop) -> Frame {
        Frame::Closed(Ending::Stopped(stop))
    }

    #[test]
    fn an_answer_with_nothing_in_it_is_a_role_and_an_end() {
        let events = events(&[opened(), stopped(Stop::EndTurn)], &ask(""));
        let head = r#"{"id":"chatcmpl-7","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":"#;
        assert_eq!(
            events,
            [
                format!(
                    r#"{head}{{"role":"assistant","content":"","refusal":null}},"logprobs":null,"finish_reason":null}}]}}"#
                ),
                format!(r#"{head}{{}},"logprobs":null,"finish_reason":"stop"}}]}}"#),
                "[DONE]".to_owned(),
            ]
        );
    }

    #[test]
    fn calls_side_by_side_keep_their_index() {
        let frames = [
            opened(),
            call(0, "a", false),
            call(1, "b", true),
            grew(1, "x"),
            grew(0, "{}"),
            ended(1),
            ended(0),
            stopped(Stop::ToolCalls),
        ];
        let deltas = deltas(&frames, &ask(""));
        let first = json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]});
        let second = json!({"tool_calls": [{"index": 1, "id": "b", "type": "custom", "custom": {"name": "f", "input": ""}}]});
        let third = json!({"tool_calls": [{"index": 1, "custom": {"input": "x"}}]});
        let fourth = json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]});
        assert_eq!(deltas[1..5], [first, second, third, fourth]);
    }

    #[test]
    fn a_call_that_was_given_nothing_is_given_an_empty_object() {
        let frames = [opened(), call(0, "a", false), ended(0), stopped(Stop::ToolCalls)];
        assert_eq!(deltas(&frames, &ask(""))[2]["tool_calls"][0]["function"]["arguments"], json!("{}"));
    }

    #[test]
    fn usage_is_told_only_to_those_who_asked() {
        let usage = Frame::Used(Usage { input: 5, output: 2, ..Usage::default() });
        let frames = [opened(), usage, stopped(Stop::EndTurn)];
        assert_eq!(events(&frames, &ask("")).len(), 3);
        let events = events(&frames, &ask(r#","stream":true,"stream_options":{"include_usage":true}"#));
        let chunks: Vec<Value> = events[..3].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        assert_eq!((chunks[0]["usage"].is_null(), chunks[0].get("usage").is_some()), (true, true));
        assert_eq!((&chunks[2]["choices"], &chunks[2]["usage"]["total_tokens"]), (&json!([]), &json!(7)));
    }

    #[test]
    fn an_answer_that_fails_has_neither_a_finish_nor_an_end_mark() {
        for ending in
            [Ending::Failed(Failure::new(FailureKind::Overloaded, "m")), Ending::Broken, Ending::Cancelled]
        {
            let events = events(&[opened(), text(0), grew(0, "Half"), Frame::Closed(ending)], &ask(""));
            let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
            assert!(last["error"]["message"].is_string());
            assert!(!events.iter().any(|data| data == "[DONE]" || data.contains(r#""finish_reason":""#)));
        }
    }

    #[test]
    fn texts_that_grow_side_by_side_are_written_one_after_the_other() {
        let frames = [
            opened(),
            text(0),
            call(1, "a", false),
            text(2),
            grew(2, "two"),
            grew(0, "on"),
            grew(0, "e"),
            ended(2),
            ended(0),
            stopped(Stop::ToolCalls),
        ];
        let contents: Vec<_> = deltas(&frames, &ask(""))
            .iter()
            .filter_map(|delta| delta["content"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(contents, ["", "on", "e", "\ntwo"]);
    }

    #[test]
    fn a_thought_is_told_once_and_in_paragraphs() {
        let summary =
            |index, text: &str| Frame::Grew { block: 0, piece: Piece::Summary { index, text: text.into() } };
        let frames = [
            opened(),
            begun(0, BlockKind::Thought { item_id: None }),
            summary(0, "One"),
            summary(0, "."),
            summary(1, "Two."),
            Frame::Grew { block: 0, piece: Piece::Reasoning("The same.".into()) },
            ended(0),
            stopped(Stop::EndTurn),
        ];
        let thoughts: Vec<_> = deltas(&frames, &ask(""))
            .iter()
            .filter_map(|delta| delta["reasoning_content"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(thoughts, ["One", ".", "\n\nTwo."]);
    }

    #[test]
    fn a_client_of_the_time_before_tools_gets_a_function_call() {
        let frames = [opened(), call(0, "a", false), grew(0, "{}"), ended(0), stopped(Stop::ToolCalls)];
        let ask = ask(r#","functions":[{"name":"f"}]"#);
        let deltas = deltas(&frames, &ask);
        assert_eq!(deltas[1], json!({"function_call": {"name": "f", "arguments": ""}}));
        assert_eq!(deltas[2], json!({"function_call": {"arguments": "{}"}}));
        assert!(events(&frames, &ask).iter().any(|data| data.contains(r#""finish_reason":"function_call""#)));
    }

    /// What a client makes of an answer: its texts, and its calls.
    fn heard(frames: &[Frame]) -> (String, String, Vec<(String, String)>) {
        let mut assembler = Assembler::new(Dialect::Chat);
        frames.iter().for_each(|frame| assembler.handle_frame(frame));
        let entries = assembler.finish().entries;
        let (mut said, mut thought) = (String::new(), String::new());
        for entry in &entries {
            match &entry.kind {
                EntryKind::Said(words) => words.parts.iter().for_each(|part| match &part.content {
                    Content::Text(text) | Content::Refusal(text) => said.push_str(text),
                    _ => {}
                }),
                EntryKind::Thought(thoughts) => {
                    thoughts.content.iter().for_each(|text| thought.push_str(text));
                }
                _ => {}
            }
        }
        let calls = entries.iter().filter_map(Entry::as_call).map(|call| {
            let input = call.input.text().to_string();
            (call.id.to_string(), if input.is_empty() { "{}".to_owned() } else { input })
        });
        let calls = calls.collect();
        said.retain(|c| c != '\n');
        thought.retain(|c| c != '\n');
        (said, thought, calls)
    }

    fn decoded(events: &[String]) -> Vec<Frame> {
        let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
        for data in events {
            decoder.handle_event(&SseEvent { name: None, data: data.as_str().into() }, &mut frames);
        }
        decoder.finish(&mut frames);
        frames
    }

    /// Frames of blocks that all begin, grow in turn, and end.
    fn arbitrary_frames() -> impl Strategy<Value = Vec<Frame>> {
        let block = (0..3u8, prop::collection::vec("[a-z]{1,3}", 0..4));
        prop::collection::vec(block, 0..5).prop_map(|blocks| {
            let mut frames = vec![opened()];
            for (at, (kind, _)) in (0..).zip(&blocks) {
                frames.push(match kind {
                    0 => text(at),
                    1 => begun(at, BlockKind::Thought { item_id: None }),
                    _ => call(at, &format!("call_{at}"), false),
                });
            }
            for turn in 0..4 {
                for (at, (kind, pieces)) in (0..).zip(&blocks) {
                    let Some(piece) = pieces.get(turn).map(|piece| Text::from(piece.as_str())) else {
                        continue;
                    };
                    let piece = if *kind == 1 { Piece::Reasoning(piece) } else { Piece::Text(piece) };
                    frames.push(Frame::Grew { block: at, piece });
                }
            }
            frames.extend((0..).zip(&blocks).map(|(at, _)| ended(at)));
            frames.push(stopped(Stop::EndTurn));
            frames
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn nothing_said_thought_or_called_is_lost_or_mixed(frames in arbitrary_frames()) {
            let sent = events(&frames, &ask(""));
            prop_assert_eq!(heard(&decoded(&sent)), heard(&frames));
        }
    }
}
