//! A streamed answer, read: chunks to frames.
//!
//! Everything of the answer is in `choices[0].delta`: text, a refusal, reasoning under one of two names, and
//! pieces of calls. There are no blocks on the wire, so they are made here: text of one kind is a block until
//! another kind begins, and a call is a block until the answer ends, or until something else begins and its
//! arguments are complete, so that dialects which know only one block at a time need not wait.
//!
//! `finish_reason` does not end the stream: usage may follow. `[DONE]` does, or the end of the connection.

use super::WITHOUT_ID;
use super::error::find_failure;
use super::extras::{filled, given};
use super::finish::{decode_finish, settled};
use super::stream_calls::{CallDelta, Stage, StreamedCall, find_call};
use super::usage::decode_usage;
use crate::json::{Document, Kind, Node};
use crate::order::Order;
use crate::sse::SseEvent;
use throughline_core::{BlockId, BlockKind, Ending, Failure, FailureKind, Frame, Piece, Stop, Text, Usage};

/// Turns the events of one answer into frames.
#[derive(Default)]
pub(crate) struct StreamDecoder {
    state: State,
}

#[derive(Default)]
enum State {
    /// Nothing has been said yet.
    #[default]
    Waiting,
    /// The answer is under way.
    Open(Box<Answer>),
    /// The answer is over; whatever follows is ignored.
    Closed,
}

/// An answer under way.
struct Answer {
    /// What the ids of calls are made from that have none.
    stem: String,
    next_block: BlockId,
    order: Order,
    talk: Option<(Talk, BlockId)>,
    calls: Vec<StreamedCall>,
    has_refusal: bool,
    usage: Option<Usage>,
    /// How it will have ended once nothing more comes.
    ending: Option<Ending>,
}

/// What a block that is no call holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Talk {
    Text,
    Refusal,
    Thought,
}

impl StreamDecoder {
    /// Returns a decoder that has seen nothing.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns how many calls it keeps track of.
    pub(crate) fn calls(&self) -> usize {
        match &self.state {
            State::Open(answer) => answer.calls.len(),
            State::Waiting | State::Closed => 0,
        }
    }

    /// Takes the next event.
    pub(crate) fn handle_event(&mut self, event: &SseEvent, frames: &mut Vec<Frame>) {
        let data = event.data.trim();
        if matches!(self.state, State::Closed) || data.is_empty() {
            return;
        }
        if data == "[DONE]" {
            let ending = self.opened(None, frames).map_or(Ending::Broken, Answer::ending_at_mark);
            return self.close(ending, frames);
        }
        match Document::parse(event.data.as_str()) {
            Ok(document) if document.root().kind() == Kind::Object => {
                self.handle_chunk(event, document.root(), frames);
            }
            _ => self.alien(event, frames),
        }
    }

    /// Ends the stream, whether the answer is over or not.
    pub(crate) fn finish(&mut self, frames: &mut Vec<Frame>) {
        let ending = self.opened(None, frames).and_then(|answer| answer.ending.take());
        self.close(ending.unwrap_or(Ending::Broken), frames);
    }

    fn handle_chunk(&mut self, event: &SseEvent, chunk: Node<'_>, frames: &mut Vec<Frame>) {
        if let Some(failure) = failure_in(event, chunk) {
            self.opened(Some(chunk), frames);
            return self.close(Ending::Failed(failure), frames);
        }
        let (choices, usage) = (chunk.field("choices"), find_usage(chunk));
        if choices.is_none() && usage.is_none() {
            return self.alien(event, frames);
        }
        let choice = choices.and_then(|choices| choices.items().find(is_first));
        // Azure opens with a chunk that is about the prompt and has neither id nor model.
        if choice.is_none() && usage.is_none() {
            return;
        }
        let Some(answer) = self.opened(Some(chunk), frames) else { return };
        if let Some(usage) =
            usage.or_else(|| choice.and_then(|choice| choice.field("usage")).and_then(decode_usage))
        {
            answer.use_tokens(usage, frames);
        }
        let Some(choice) = choice else { return };
        // A server that did not mean to stream sends the whole message.
        if let Some(delta) = given(choice, "delta").or_else(|| given(choice, "message")) {
            answer.take_delta(delta, frames);
        }
        if let Some(reason) = filled(choice, "finish_reason") {
            answer.note_ending(decode_finish(&reason));
        }
        if let Some(failure) = given(choice, "error").and_then(|_| find_failure(None, choice)) {
            self.close(Ending::Failed(failure), frames);
        }
    }

    fn alien(&mut self, event: &SseEvent, frames: &mut Vec<Frame>) {
        self.opened(None, frames);
        frames.push(Frame::Alien { name: event.name.clone(), data: event.data.clone() });
    }

    /// Returns the answer under way, which begins with the first chunk; nothing if it is over.
    fn opened(&mut self, chunk: Option<Node<'_>>, frames: &mut Vec<Frame>) -> Option<&mut Answer> {
        if matches!(self.state, State::Waiting) {
            let id = chunk.and_then(|chunk| filled(chunk, "id"));
            let model = chunk.and_then(|chunk| filled(chunk, "model"));
            self.state = State::Open(Box::new(Answer::new(id.as_ref())));
            frames.push(Frame::Opened { id, model });
        }
        match &mut self.state {
            State::Open(answer) => Some(answer),
            State::Waiting | State::Closed => None,
        }
    }

    fn close(&mut self, ending: Ending, frames: &mut Vec<Frame>) {
        if let State::Open(mut answer) = std::mem::replace(&mut self.state, State::Closed) {
            answer.close(ending, frames);
        }
    }
}

fn is_first(choice: &Node<'_>) -> bool {
    choice.field("index").and_then(|index| index.as_u64()).unwrap_or(0) == 0
}

/// Returns the failure that the chunk tells of instead of going on.
fn failure_in(event: &SseEvent, chunk: Node<'_>) -> Option<Failure> {
    let is_error_event = event.name.as_ref().is_some_and(|name| name == "error");
    let is_error_object = chunk.field("object").is_some_and(|object| object.is_str("error"));
    if given(chunk, "error").is_none() && !is_error_event && !is_error_object {
        return None;
    }
    let untold = || Failure::new(FailureKind::Backend, event.data.clone());
    Some(find_failure(None, chunk).unwrap_or_else(untold))
}

/// Reads the usage of a chunk, from where OpenAI has it or from where Groq used to.
fn find_usage(chunk: Node<'_>) -> Option<Usage> {
    let of_groq = || chunk.field("x_groq").and_then(|groq| groq.field("usage"));
    chunk.field("usage").and_then(decode_usage).or_else(|| of_groq().and_then(decode_usage))
}

impl Answer {
    fn new(id: Option<&Text>) -> Self {
        Self {
            stem: id.map_or_else(|| format!("{WITHOUT_ID}0"), |id| format!("call_{id}")),
            next_block: 0,
            order: Order::default(),
            talk: None,
            calls: Vec::new(),
            has_refusal: false,
            usage: None,
            ending: None,
        }
    }

    /// Reports usage, once: some servers repeat it with every chunk.
    fn use_tokens(&mut self, usage: Usage, frames: &mut Vec<Frame>) {
        if self.usage != Some(usage) {
            self.usage = Some(usage);
            frames.push(Frame::Used(usage));
        }
    }

    /// Keeps the reason that says more: some servers follow `tool_calls` up with a `stop`.
    fn note_ending(&mut self, ending: Ending) {
        if self.ending.is_none() || ending != Ending::Stopped(Stop::EndTurn) {
            self.ending = Some(ending);
        }
    }

    /// Returns how the answer ended if the end mark comes now: without a reason given, one that is in the middle of a
    /// call was cut off, by a proxy that closes every stream with the mark.
    fn ending_at_mark(&mut self) -> Ending {
        let is_cut_off = self.calls.iter().any(|call| !call.is_complete());
        let without_reason = if is_cut_off { Ending::Broken } else { Ending::Stopped(Stop::EndTurn) };
        self.ending.take().unwrap_or(without_reason)
    }

    fn take_delta(&mut self, delta: Node<'_>, frames: &mut Vec<Frame>) {
        // Two names for one thing; servers in transition send both.
        let reasoning = filled(delta, "reasoning_content").or_else(|| filled(delta, "reasoning"));
        self.grow(Talk::Thought, reasoning, frames);
        self.grow(Talk::Text, filled(delta, "content"), frames);
        if let Some(content) = delta.field("content") {
            content.items().for_each(|part| self.take_part(part, frames));
        }
        self.grow(Talk::Refusal, filled(delta, "refusal"), frames);
        if let Some(annotations) = delta.field("annotations") {
            annotations.items().for_each(|remark| self.annotate(remark, frames));
        }
        if let Some(call) = given(delta, "function_call") {
            self.take_function_call(call, frames);
        }
        for call in delta.field("tool_calls").into_iter().flat_map(Node::items) {
            match CallDelta::decode(call) {
                Some(delta) => self.take_call(&delta, frames),
                None => self.take_opaque(call, frames),
            }
        }
    }

    /// Takes a content part: Mistral streams them, and its reasoning is one of them.
    fn take_part(&mut self, part: Node<'_>, frames: &mut Vec<Frame>) {
        self.grow(Talk::Text, filled(part, "text"), frames);
        for thinking in part.field("thinking").into_iter().flat_map(Node::items) {
            self.grow(Talk::Thought, filled(thinking, "text"), frames);
        }
    }

    fn annotate(&mut self, remark: Node<'_>, frames: &mut Vec<Frame>) {
        if let Some((Talk::Text, block)) = self.talk {
            frames.push(Frame::Grew { block, piece: Piece::Annotation(remark.raw_text()) });
        }
    }

    fn grow(&mut self, talk: Talk, text: Option<Text>, frames: &mut Vec<Frame>) {
        let Some(text) = text else { return };
        let block = match self.talk {
            Some((current, block)) if current == talk => block,
            _ => self.begin_talk(talk, frames),
        };
        let piece = if talk == Talk::Thought { Piece::Reasoning(text) } else { Piece::Text(text) };
        frames.push(Frame::Grew { block, piece });
    }

    fn begin_talk(&mut self, talk: Talk, frames: &mut Vec<Frame>) -> BlockId {
        self.settle_calls(frames);
        let kind = match talk {
            Talk::Text => BlockKind::Text { item_id: None },
            Talk::Refusal => BlockKind::Refusal { item_id: None },
            Talk::Thought => BlockKind::Thought { item_id: None },
        };
        self.has_refusal |= talk == Talk::Refusal;
        let block = self.begin(kind, frames);
        self.talk = Some((talk, block));
        block
    }

    fn begin(&mut self, kind: BlockKind, frames: &mut Vec<Frame>) -> BlockId {
        self.begin_at(None, kind, frames)
    }

    fn begin_at(&mut self, index: Option<u64>, kind: BlockKind, frames: &mut Vec<Frame>) -> BlockId {
        if let Some((_, block)) = self.talk.take() {
            frames.push(Frame::Ended { block });
        }
        let block = self.next_block;
        self.next_block += 1;
        self.order.note(index, block);
        frames.push(Frame::Begun { block, kind });
        block
    }

    /// Takes a delta of the one call that an answer of the time before tools may hold, which has no id.
    fn take_function_call(&mut self, call: Node<'_>, frames: &mut Vec<Frame>) {
        let input = given(call, "arguments");
        let id = Some(Text::from(format!("{}_0", self.stem)));
        let input =
            input.map(|input| input.as_text().unwrap_or_else(|| input.raw_text())).unwrap_or_default();
        let delta = CallDelta { index: None, id, name: filled(call, "name"), input, freeform: false };
        self.take_call(&delta, frames);
    }

    fn take_opaque(&mut self, call: Node<'_>, frames: &mut Vec<Frame>) {
        self.settle_calls(frames);
        let kind = filled(call, "type").unwrap_or_default();
        let block = self.begin(BlockKind::Opaque { kind, text: call.raw_text() }, frames);
        frames.push(Frame::Ended { block });
    }

    fn take_call(&mut self, delta: &CallDelta, frames: &mut Vec<Frame>) {
        let at = find_call(&self.calls, delta).unwrap_or_else(|| {
            self.settle_calls(frames);
            self.calls.push(StreamedCall::new(delta));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.learn(delta);
        if let Some(piece) = call.accept(delta) {
            match call.stage {
                Stage::Open(block) => {
                    frames.push(Frame::Grew { block, piece: Piece::Text(piece.clone()) });
                }
                Stage::Unbegun | Stage::Ended => call.held.push_str(piece),
            }
        }
        if call.id.is_some() && !call.name.is_empty() && !call.held.is_empty() {
            self.begin_call(at, frames);
        }
    }

    /// Announces a call, with the input that came before it could be.
    fn begin_call(&mut self, at: usize, frames: &mut Vec<Frame>) {
        if self.calls[at].stage != Stage::Unbegun {
            return;
        }
        let made_up = || Text::from(format!("{}_{at}", self.stem));
        let call = &self.calls[at];
        let kind = BlockKind::Call {
            id: call.id.clone().unwrap_or_else(made_up),
            item_id: None,
            name: Text::from(call.name.as_str()),
            namespace: None,
            freeform: call.freeform,
        };
        // Some servers give every call the same index.
        let is_shared = self.calls.iter().filter(|other| other.index == call.index).count() > 1;
        let index = call.index.filter(|_| !is_shared);
        let block = self.begin_at(index, kind, frames);
        let call = &mut self.calls[at];
        call.stage = Stage::Open(block);
        let held = std::mem::take(&mut call.held);
        if !held.is_empty() {
            frames.push(Frame::Grew { block, piece: Piece::Text(held.into()) });
        }
    }

    /// Announces the calls that have a name, and ends those that are complete, before something else begins.
    fn settle_calls(&mut self, frames: &mut Vec<Frame>) {
        for at in 0..self.calls.len() {
            if !self.calls[at].name.is_empty() {
                self.begin_call(at, frames);
            }
            if self.calls[at].is_complete() {
                self.end_call(at, frames);
            }
        }
    }

    fn end_call(&mut self, at: usize, frames: &mut Vec<Frame>) {
        if let Stage::Open(block) = self.calls[at].stage {
            self.calls[at].stage = Stage::Ended;
            frames.push(Frame::Ended { block });
        }
    }

    fn close(&mut self, ending: Ending, frames: &mut Vec<Frame>) {
        // A call that never got a name is still told of, if it is told apart by an id.
        for at in 0..self.calls.len() {
            if self.calls[at].id.is_some() {
                self.begin_call(at, frames);
            }
        }
        self.settle_calls(frames);
        if let Some((_, block)) = self.talk.take() {
            frames.push(Frame::Ended { block });
        }
        (0..self.calls.len()).for_each(|at| self.end_call(at, frames));
        let has_calls = self.calls.iter().any(|call| call.stage == Stage::Ended);
        frames.extend(self.order.frame());
        frames.push(Frame::Closed(settled(ending, has_calls, self.has_refusal)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::SseDecoder;
    use proptest::prelude::*;
    use throughline_core::{Assembler, Dialect, Input, Kind as EntryKind, Reply};

    macro_rules! golden {
        ($name:literal) => {
            include_str!(concat!("../../tests/golden/streams/chat/", $name, ".sse"))
        };
    }

    fn feed(decoder: &mut StreamDecoder, data: &str, frames: &mut Vec<Frame>) {
        decoder.handle_event(&SseEvent { name: None, data: data.into() }, frames);
    }

    /// Returns the frames of a stream that is cut into two pieces at `cut`.
    fn frames_of(stream: &str, cut: usize) -> Vec<Frame> {
        let (mut sse, mut decoder, mut frames) = (SseDecoder::new(1 << 20), StreamDecoder::new(), Vec::new());
        let cut = cut.min(stream.len());
        for piece in [&stream.as_bytes()[..cut], &stream.as_bytes()[cut..]] {
            sse.feed(piece).unwrap();
            while let Some(event) = sse.next_event() {
                decoder.handle_event(&event, &mut frames);
            }
        }
        while let Some(event) = sse.finish() {
            decoder.handle_event(&event, &mut frames);
        }
        decoder.finish(&mut frames);
        check_legal(&frames);
        frames
    }

    /// Checks what every stream must keep: one opening, one end, blocks that begin, grow and end in order.
    fn check_legal(frames: &[Frame]) {
        let mut open = Vec::new();
        let mut begun = 0;
        for (at, frame) in frames.iter().enumerate() {
            match frame {
                Frame::Opened { .. } => assert_eq!(at, 0),
                Frame::Begun { block, .. } => {
                    assert_eq!(*block, begun);
                    begun += 1;
                    open.push(*block);
                }
                Frame::Grew { block, .. } => assert!(open.contains(block)),
                Frame::Ended { block } => {
                    assert!(open.contains(block));
                    open.retain(|other| other != block);
                }
                Frame::Closed(_) => assert_eq!((at, open.len()), (frames.len() - 1, 0)),
                Frame::Used(_) | Frame::Ordered(_) | Frame::Alien { .. } => {}
            }
        }
        assert!(matches!(frames.first(), Some(Frame::Opened { .. })));
        assert!(matches!(frames.last(), Some(Frame::Closed(_))));
    }

    fn reply_of(stream: &str) -> Reply {
        let mut assembler = Assembler::new(Dialect::Chat);
        frames_of(stream, 0).iter().for_each(|frame| assembler.handle_frame(frame));
        assembler.finish()
    }

    fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
        let calls = reply.entries.iter().filter_map(throughline_core::Entry::as_call);
        calls.map(|call| (call.id.as_str(), call.name.as_str(), call.input.text().as_str())).collect()
    }

    /// Checks a stream that calls `read_file` once.
    fn check_one_call(stream: &str, id: &str) {
        let reply = reply_of(stream);
        assert_eq!(calls(&reply), [(id, "read_file", "{\"path\": \"a\"}")]);
        assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls));
    }

    #[test]
    fn id_and_name_on_every_delta_are_one_call() {
        check_one_call(golden!("deviations-repeated-id-and-name"), "call_1");
    }

    #[test]
    fn empty_id_and_name_on_later_deltas_change_nothing() {
        check_one_call(golden!("deviations-empty-id-and-name"), "call_1");
    }

    #[test]
    fn a_whole_call_that_comes_twice_is_made_once() {
        check_one_call(golden!("deviations-repeated-whole-call"), "call_1");
    }

    #[test]
    fn a_name_in_pieces_is_one_name() {
        check_one_call(golden!("deviations-name-in-pieces"), "call_1");
    }

    #[test]
    fn a_call_without_an_id_gets_one() {
        check_one_call(golden!("deviations-missing-id"), "call_chatcmpl-PqgkN9mXQtlloXnwzQwPpYFq1aPxQ_0");
    }

    #[test]
    fn stop_although_a_tool_was_called_is_corrected() {
        check_one_call(golden!("deviations-stop-although-tools"), "call_1");
    }

    #[test]
    fn parallel_calls_never_mix_whatever_their_index() {
        for stream in [
            golden!("deviations-missing-index"),
            golden!("deviations-same-index"),
            golden!("deviations-whole-call-in-one-chunk"),
        ] {
            let reply = reply_of(stream);
            let paths = [("call_1", "{\"path\": \"a\"}"), ("call_2", "{\"path\": \"b\"}")];
            assert_eq!(calls(&reply), paths.map(|(id, path)| (id, "read_file", path)));
        }
    }

    #[test]
    fn arguments_as_an_object_are_taken_as_their_text() {
        let reply = reply_of(golden!("deviations-arguments-as-object"));
        assert_eq!(calls(&reply), [("call_1", "read_file", r#"{"path":"a"}"#)]);
    }

    #[test]
    fn an_id_may_come_later_than_the_name() {
        let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
        let call = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
        feed(&mut decoder, &call(r#"{"index":0,"function":{"name":"f","arguments":"{\"a\""}}"#), &mut frames);
        assert_eq!(frames.len(), 1);
        feed(&mut decoder, &call(r#"{"index":0,"id":"late","function":{"arguments":":1}"}}"#), &mut frames);
        decoder.finish(&mut frames);
        check_legal(&frames);
        let grew = Frame::Grew { block: 0, piece: Piece::Text("{\"a\":1}".into()) };
        assert!(frames.contains(&grew));
        assert!(matches!(&frames[1], Frame::Begun { kind: BlockKind::Call { id, .. }, .. } if id == "late"));
        assert_eq!(frames.last(), Some(&Frame::Closed(Ending::Broken)));
    }

    #[test]
    fn a_complete_call_ends_when_the_next_one_begins() {
        let frames = frames_of(golden!("deviations-same-index"), 0);
        let begun = frames.iter().rposition(|frame| matches!(frame, Frame::Begun { .. })).unwrap();
        let ended = frames.iter().position(|frame| matches!(frame, Frame::Ended { .. })).unwrap();
        assert!(ended < begun);
    }

    #[test]
    fn a_call_without_arguments_is_announced_all_the_same() {
        let reply = reply_of(golden!("call-without-arguments"));
        let inputs: Vec<_> = calls(&reply).into_iter().map(|(_, name, input)| (name, input)).collect();
        assert_eq!(inputs, [("now", ""), ("now", "{}")]);
    }

    #[test]
    fn free_text_of_a_custom_call_is_no_json() {
        let reply = reply_of(golden!("custom-call"));
        assert!(
            matches!(&reply.entries[0].as_call().unwrap().input, Input::Freeform(text) if text.starts_with("BEGIN"))
        );
    }

    #[test]
    fn a_function_call_of_old_is_a_call() {
        let reply = reply_of(golden!("legacy-function-call"));
        let [(id, name, arguments)] = calls(&reply)[..] else { panic!("one call") };
        assert!(id.starts_with("call_chatcmpl-"));
        assert_eq!((name, arguments), ("get_weather", "{\n  \"city\": \"Rome\"\n}"));
        assert_eq!(reply.ending, Ending::Stopped(Stop::ToolCalls));
    }

    #[test]
    fn reasoning_has_two_names_and_is_told_once() {
        for stream in [golden!("deviations-reasoning-field"), golden!("deviations-reasoning-both-fields")] {
            let reply = reply_of(stream);
            let EntryKind::Thought(thought) = &reply.entries[0].kind else { panic!("a thought") };
            assert_eq!(thought.content, ["Read it."]);
            assert_eq!(reply.entries[1].as_said().unwrap().parts[0].as_text().unwrap(), "Done.");
        }
    }

    #[test]
    fn a_refusal_is_a_block_of_its_own() {
        assert_eq!(reply_of(golden!("refusal")).ending, Ending::Stopped(Stop::Refusal));
    }

    #[test]
    fn usage_is_found_wherever_it_stands() {
        for stream in [
            golden!("text"),
            golden!("deviations-usage-in-choice-object"),
            golden!("deviations-usage-in-last-choice"),
            golden!("deviations-usage-on-every-chunk"),
        ] {
            assert!(reply_of(stream).usage.is_some_and(|usage| usage.input > 0 && usage.output > 0));
        }
    }

    #[test]
    fn an_error_ends_the_answer_and_its_blocks() {
        for stream in [golden!("failed"), golden!("failed-with-done")] {
            assert!(matches!(reply_of(stream).ending, Ending::Failed(_)), "{stream}");
        }
        // An old llama.cpp says so in a field that no reader of events knows.
        assert_eq!(reply_of(golden!("failed-inside-call")).ending, Ending::Broken);
    }

    #[test]
    fn a_missing_end_mark_is_no_failure_but_a_missing_finish_is() {
        assert_eq!(reply_of(golden!("no-done")).ending, Ending::Stopped(Stop::EndTurn));
        assert_eq!(reply_of(golden!("deviations-no-finish-reason")).ending, Ending::Stopped(Stop::EndTurn));
        for stream in
            [golden!("truncated"), golden!("truncated-inside-call"), golden!("truncated-inside-line")]
        {
            assert_eq!(reply_of(stream).ending, Ending::Broken);
        }
        assert_eq!(reply_of("").ending, Ending::Broken);
    }

    #[test]
    fn two_calls_under_one_id_are_both_kept() {
        for index in [r#""index":0,"#, ""] {
            let call = |path: &str| {
                let arguments = format!(r#"{{\"path\":\"{path}\"}}"#);
                let call =
                    format!(r#"{{{index}"id":"x","function":{{"name":"f","arguments":"{arguments}"}}}}"#);
                format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
            };
            let reply = reply_of(&format!("{}{}{}data: [DONE]\n\n", call("a"), call("b"), call("b")));
            let inputs: Vec<_> = calls(&reply).into_iter().map(|(id, _, input)| (id, input)).collect();
            assert_eq!(inputs, [("x", r#"{"path":"a"}"#), ("x", r#"{"path":"b"}"#)], "{index}");
        }
    }

    #[test]
    fn an_end_mark_in_the_middle_of_a_call_is_a_broken_stream() {
        let call = |arguments: &str| {
            let call =
                format!(r#"{{"index":0,"id":"call_1","function":{{"name":"f","arguments":"{arguments}"}}}}"#);
            format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\ndata: [DONE]\n\n")
        };
        assert_eq!(reply_of(&call(r#"{\"path\": "#)).ending, Ending::Broken);
        assert_eq!(reply_of(&call("")).ending, Ending::Broken);
        assert_eq!(reply_of(&call("{}")).ending, Ending::Stopped(Stop::ToolCalls));
    }

    #[test]
    fn only_the_first_choice_counts() {
        let reply = reply_of(golden!("two-choices"));
        assert_eq!(reply.entries.len(), 1);
    }

    #[test]
    fn a_chunk_about_the_prompt_does_not_open_the_answer() {
        let frames = frames_of(golden!("deviations-empty-choices-first"), 0);
        assert!(matches!(&frames[0], Frame::Opened { id: Some(_), model: Some(_) }));
    }

    #[test]
    fn what_nobody_understands_is_passed_on() {
        let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
        for data in ["{\"type\":\"ping\"}", "not json", "7"] {
            feed(&mut decoder, data, &mut frames);
        }
        decoder.finish(&mut frames);
        check_legal(&frames);
        assert_eq!(frames.iter().filter(|frame| matches!(frame, Frame::Alien { .. })).count(), 3);
    }

    #[test]
    fn nothing_follows_the_end() {
        let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
        feed(&mut decoder, "[DONE]", &mut frames);
        feed(&mut decoder, r#"{"choices":[{"delta":{"content":"late"}}]}"#, &mut frames);
        decoder.finish(&mut frames);
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn mistral_streams_its_reasoning_in_parts() {
        let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
        let parts = r#"[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Yes."}]"#;
        feed(&mut decoder, &format!(r#"{{"choices":[{{"delta":{{"content":{parts}}}}}]}}"#), &mut frames);
        assert!(frames.contains(&Frame::Grew { block: 0, piece: Piece::Reasoning("Hm.".into()) }));
        assert!(frames.contains(&Frame::Grew { block: 1, piece: Piece::Text("Yes.".into()) }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn how_the_bytes_were_cut_does_not_matter(
            stream in prop::sample::select(vec![
                golden!("text-then-call"), golden!("parallel-calls"), golden!("thinking-then-call"),
                golden!("crlf-and-comments"), golden!("deviations-missing-index"), golden!("failed-inside-call"),
            ]),
            cut in 0usize..4_000,
        ) {
            prop_assert_eq!(frames_of(stream, cut), frames_of(stream, 0));
        }

        #[test]
        fn no_chunk_breaks_the_rules_of_frames(chunks in prop::collection::vec(arbitrary_chunk(), 0..12), done: bool) {
            let (mut decoder, mut frames) = (StreamDecoder::new(), Vec::new());
            chunks.iter().for_each(|chunk| feed(&mut decoder, chunk, &mut frames));
            if done {
                feed(&mut decoder, "[DONE]", &mut frames);
            }
            decoder.finish(&mut frames);
            check_legal(&frames);
        }
    }

    fn arbitrary_chunk() -> impl Strategy<Value = String> {
        let call = (
            prop::sample::select(vec!["", r#""index":0,"#, r#""index":1,"#]),
            prop::sample::select(vec!["", r#""id":"a","#, r#""id":"b","#, r#""id":"","#]),
            prop::sample::select(vec!["", r#""name":"f","#, r#""name":"g","#]),
            prop::sample::select(vec!["", "{", "}", "{}", " ", "12"]),
        )
            .prop_map(|(index, id, name, arguments)| {
                format!(r#""tool_calls":[{{{index}{id}"function":{{{name}"arguments":"{arguments}"}}}}]"#)
            });
        let delta = prop_oneof![
            call,
            Just(r#""content":"x""#.to_owned()),
            Just(r#""reasoning":"x""#.to_owned()),
            Just(r#""refusal":"x""#.to_owned()),
            Just(r#""tool_calls":[{"type":"acme"}]"#.to_owned()),
            Just(r#""function_call":{"name":"f","arguments":"{}"}"#.to_owned()),
        ];
        let reason = prop::sample::select(vec!["null", "\"stop\"", "\"tool_calls\"", "\"error\""]);
        (delta, reason).prop_map(|(delta, reason)| {
            format!(r#"{{"choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":{reason}}}]}}"#)
        })
    }
}
