//! How long streamed answers take from dialect to dialect, event by event, against `serde_json` reading the
//! data of each event into a `Value` and printing it. Run it with `just bench`.

#![expect(clippy::disallowed_types, reason = "a bench reads the clock")]

mod rounds;

use rounds::{Rounds, parse_and_print};
use serde_json::{Value, json};
use std::hint::black_box;
use throughline_core::{Ask, Dialect, Frame};
use throughline_wire::sse::write_event;
use throughline_wire::{Stamp, StreamDecoder, StreamEncoder, decode_request};

const DELTAS: usize = 200;

fn main() {
    let mut rounds = Rounds::default();
    for from in Dialect::ALL {
        let events = stream(from);
        let mut bytes = String::new();
        events.iter().for_each(|(name, data)| write_event(&mut bytes, name.as_deref(), data));
        rounds.yardstick(format!("{from}: serde_json, {} events", events.len()), move || {
            events.iter().filter(|(_, data)| data != "[DONE]").for_each(|(_, data)| parse_and_print(data));
        });
        for to in Dialect::ALL {
            let (bytes, ask) = (bytes.clone(), asked(to));
            rounds.case(format!("{from} -> {to} stream"), None, move || {
                black_box(pass_on(from, to, black_box(bytes.as_bytes()), &ask));
            });
        }
    }
    rounds.run();
}

fn asked(dialect: Dialect) -> Ask {
    let body = match dialect {
        Dialect::Responses => r#"{"model":"m","input":"Go on.","stream":true}"#,
        Dialect::Chat | Dialect::Messages => {
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Go on."}],"stream":true}"#
        }
    };
    decode_request(dialect, body).expect("the sample is well-formed")
}

fn pass_on(from: Dialect, to: Dialect, bytes: &[u8], ask: &Ask) -> String {
    let stamp = Stamp { id: "bench1".into(), created_at: 1, model: None, input_tokens: Some(1) };
    let mut decoder = StreamDecoder::new(from);
    let mut encoder = StreamEncoder::new(to, stamp, ask);
    let (mut frames, mut events, mut out) = (Vec::new(), Vec::new(), String::new());
    let mut flush = |frames: &mut Vec<Frame>| {
        frames.drain(..).for_each(|frame| encoder.handle_frame(&frame, &mut events));
        events.drain(..).for_each(|event| write_event(&mut out, event.name, &event.data));
    };
    // A backend sends a packet for every few tokens.
    for piece in bytes.chunks(300) {
        decoder.feed(piece, &mut frames).expect("events are small");
        flush(&mut frames);
    }
    decoder.finish(&mut frames);
    flush(&mut frames);
    out
}

/// Returns a streamed answer of some text and a tool call, in that dialect.
fn stream(dialect: Dialect) -> Vec<(Option<String>, String)> {
    let events = match dialect {
        Dialect::Chat => chat_stream(),
        Dialect::Messages => messages_stream(),
        Dialect::Responses => responses_stream(),
    };
    let named = |event: Value| {
        let name = event["type"].as_str().map(str::to_owned);
        (name, event.to_string())
    };
    let mut events: Vec<_> = events.into_iter().map(named).collect();
    if dialect == Dialect::Chat {
        events.push((None, "[DONE]".to_owned()));
    }
    events
}

fn delta(number: usize) -> String {
    format!(" word{number}{}", if number.is_multiple_of(8) { "\n\t\"quoted\"" } else { "" })
}

fn chat_stream() -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend((0..DELTAS / 2).map(|at| chunk(json!({"content": delta(at)}), Value::Null)));
    let call =
        json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}});
    events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    events.extend((0..DELTAS / 2).map(|at| {
        let piece = json!({"index": 0, "function": {"arguments": delta(at)}});
        chunk(json!({"tool_calls": [piece]}), Value::Null)
    }));
    events.push(chunk(json!({}), json!("tool_calls")));
    events
}

fn messages_stream() -> Vec<Value> {
    let begun =
        |at: usize, block: Value| json!({"type": "content_block_start", "index": at, "content_block": block});
    let grew = |at: usize, delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
    let ended = |at: usize| json!({"type": "content_block_stop", "index": at});
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 1},
    });
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        begun(0, json!({"type": "text", "text": ""})),
    ];
    events.extend((0..DELTAS / 2).map(|at| grew(0, json!({"type": "text_delta", "text": delta(at)}))));
    events.push(ended(0));
    events.push(begun(1, json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})));
    let piece = |at| grew(1, json!({"type": "input_json_delta", "partial_json": delta(at)}));
    events.extend((0..DELTAS / 2).map(piece));
    events.push(ended(1));
    events.push(json!({
        "type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": 200},
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

fn responses_stream() -> Vec<Value> {
    let response = |status: &str, output: Value| json!({"id": "resp_1", "object": "response", "status": status, "model": "m", "output": output});
    let text: String = (0..DELTAS / 2).map(delta).collect();
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let message = json!({
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part],
    });
    let call = json!({
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": text,
        "status": "completed",
    });
    let item = |at: usize, mut item: Value, change: &str, empty: Value| {
        item["status"] = json!("in_progress");
        item[change] = empty;
        json!({"type": "response.output_item.added", "output_index": at, "item": item})
    };
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        item(0, message.clone(), "content", json!([])),
        json!({
            "type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": []},
        }),
    ];
    let grew = |kind: &str, id: &str, output: usize, at: usize| json!({"type": kind, "item_id": id, "output_index": output, "content_index": 0, "delta": delta(at)});
    let texts = (0..DELTAS / 2).map(|at| grew("response.output_text.delta", "msg_1", 0, at));
    events.extend(texts);
    let about = |kind: &str, at: usize, field: &str, value: Value| {
        let id = if at == 0 { "msg_1" } else { "fc_1" };
        json!({"type": kind, "item_id": id, "output_index": at, "content_index": 0, field: value})
    };
    events.push(about("response.output_text.done", 0, "text", json!(text)));
    events.push(about("response.content_part.done", 0, "part", part));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": message}));
    events.push(item(1, call.clone(), "arguments", json!("")));
    let pieces = (0..DELTAS / 2).map(|at| grew("response.function_call_arguments.delta", "fc_1", 1, at));
    events.extend(pieces);
    events.push(about("response.function_call_arguments.done", 1, "arguments", json!(text)));
    events.push(json!({"type": "response.output_item.done", "output_index": 1, "item": call}));
    let output = json!([message, call]);
    events.push(json!({"type": "response.completed", "response": response("completed", output)}));
    (0..).zip(&mut events).for_each(|(number, event)| event["sequence_number"] = json!(number));
    events
}
