//! Pains 16, 17 and 23, and the ids of pain 3: answers, whole and streamed.

use super::*;
use throughline_core::{Ending, Frame, Stop};
use throughline_wire::sse::write_event;
use throughline_wire::{Stamp, StreamDecoder, StreamEncoder, decode_reply, encode_reply};

fn stamp() -> Stamp {
    Stamp { id: "0a1b".into(), created_at: 1_700_000_000, model: None, input_tokens: Some(1234) }
}

/// Returns the request that the answers here answer.
fn asked(dialect: Dialect) -> Ask {
    let mut body = match dialect {
        Dialect::Chat => chat(&json!([user("Read.")])),
        Dialect::Messages => messages(&json!([user("Read.")])),
        Dialect::Responses => responses(&json!([user("Read.")])),
    };
    body["stream"] = json!(true);
    if dialect == Dialect::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    ask(dialect, &body)
}

fn frames(from: Dialect, events: &[Value]) -> Vec<Frame> {
    let mut bytes = String::new();
    events.iter().for_each(|event| write_event(&mut bytes, event["type"].as_str(), &event.to_string()));
    let mut decoder = StreamDecoder::new(from);
    let mut frames = Vec::new();
    decoder.feed(bytes.as_bytes(), &mut frames).unwrap();
    decoder.finish(&mut frames);
    frames
}

/// Passes a stream on, and returns the events that the client gets.
fn pass_on(from: Dialect, events: &[Value], to: Dialect) -> Vec<Value> {
    let mut encoder = StreamEncoder::new(to, stamp(), &asked(to));
    let mut out = Vec::new();
    frames(from, events).iter().for_each(|frame| encoder.handle_frame(frame, &mut out));
    let data = out.iter().filter(|event| event.data != "[DONE]");
    data.map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}

/// What an event says of a call: the key that the dialect knows it by, an id if it begins, a piece of its
/// arguments if it grows.
type OfCall = (Value, Option<String>, Option<String>);

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Reads an event as a client of that dialect would; written apart from the decoders under test.
fn of_calls(dialect: Dialect, event: &Value) -> Vec<OfCall> {
    match (dialect, event["type"].as_str()) {
        (Dialect::Chat, _) => {
            let calls = event["choices"][0]["delta"]["tool_calls"].as_array().into_iter().flatten();
            calls
                .map(|call| (call["index"].clone(), text(&call["id"]), text(&call["function"]["arguments"])))
                .collect()
        }
        (Dialect::Messages, Some("content_block_start")) if event["content_block"]["type"] == "tool_use" => {
            vec![(event["index"].clone(), text(&event["content_block"]["id"]), None)]
        }
        (Dialect::Messages, Some("content_block_delta")) if event["delta"]["type"] == "input_json_delta" => {
            vec![(event["index"].clone(), None, text(&event["delta"]["partial_json"]))]
        }
        (Dialect::Responses, Some("response.output_item.added"))
            if event["item"]["type"] == "function_call" =>
        {
            vec![(event["item"]["id"].clone(), text(&event["item"]["call_id"]), None)]
        }
        (Dialect::Responses, Some("response.function_call_arguments.delta")) => {
            vec![(event["item_id"].clone(), None, text(&event["delta"]))]
        }
        _ => Vec::new(),
    }
}

/// Returns the id and the arguments of each call in a stream, in the order in which they begin.
fn calls_in(dialect: Dialect, events: &[Value]) -> Vec<(String, String)> {
    let mut calls: Vec<(Value, String, String)> = Vec::new();
    for (key, id, piece) in events.iter().flat_map(|event| of_calls(dialect, event)) {
        calls.extend(id.map(|id| (key.clone(), id, String::new())));
        if let Some(piece) = piece {
            let call = calls.iter_mut().find(|(known, ..)| *known == key);
            call.unwrap_or_else(|| panic!("{key} grows before it begins")).2.push_str(&piece);
        }
    }
    calls.into_iter().map(|(_, id, arguments)| (id, arguments)).collect()
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

/// Two calls whose arguments arrive in turns, in the dialect that allows it by index.
fn interleaved_chat() -> Vec<Value> {
    let begun = |at: usize, id: &str| {
        let call =
            json!({"index": at, "id": id, "type": "function", "function": {"name": "read", "arguments": ""}});
        chunk(&json!({"tool_calls": [call]}), &Value::Null)
    };
    let grew = |at: usize, piece: &str| {
        chunk(&json!({"tool_calls": [{"index": at, "function": {"arguments": piece}}]}), &Value::Null)
    };
    vec![
        chunk(&json!({"role": "assistant", "content": "Both."}), &Value::Null),
        begun(0, "call_a"),
        begun(1, "call_b"),
        grew(1, "{\"path\":"),
        grew(0, "{\"path\""),
        grew(1, "\"b.rs\"}"),
        grew(0, ":\"a.rs\"}"),
        chunk(&json!({}), &json!("tool_calls")),
    ]
}

/// The same two calls from a server that opens both blocks before it fills them.
fn interleaved_messages() -> Vec<Value> {
    let begun = |at: usize, id: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        json!({"type": "content_block_start", "index": at, "content_block": block})
    };
    let grew = |at: usize, piece: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": piece});
        json!({"type": "content_block_delta", "index": at, "delta": delta})
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 1},
    });
    vec![
        json!({"type": "message_start", "message": message}),
        begun(0, "call_a"),
        begun(1, "call_b"),
        grew(1, "{\"path\":\"b.rs\"}"),
        grew(0, "{\"path\":\"a.rs\"}"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
}

/// sglang#39782, litellm PR 15315, bifrost PR 3441: parallel calls came out as one block.
#[test]
fn pain_16_parallel_calls_never_merge_in_a_stream() {
    let expected = [("call_a", "{\"path\":\"a.rs\"}"), ("call_b", "{\"path\":\"b.rs\"}")];
    let expected = expected.map(|(id, arguments)| (id.to_owned(), arguments.to_owned()));
    let streams = [(Dialect::Chat, interleaved_chat()), (Dialect::Messages, interleaved_messages())];
    for (from, events) in &streams {
        for to in Dialect::ALL {
            let passed = pass_on(*from, events, to);
            assert_eq!(calls_in(to, &passed), expected, "{from} -> {to}: {passed:#?}");
        }
        // Blocks of this dialect come one after the other: none begins before the last one ended.
        let mut open = 0;
        for event in pass_on(*from, events, Dialect::Messages) {
            open += i32::from(event["type"] == "content_block_start");
            open -= i32::from(event["type"] == "content_block_stop");
            assert!((0..=1).contains(&open), "{open} blocks are open at {event}");
        }
        assert_eq!(open, 0);
    }
}

fn stop_in(dialect: Dialect, events: &[Value]) -> Vec<Value> {
    let found = events.iter().filter_map(|event| match dialect {
        Dialect::Chat => event["choices"].get(0).map(|choice| choice["finish_reason"].clone()),
        Dialect::Messages => event["delta"].get("stop_reason").cloned(),
        Dialect::Responses => event["response"]
            .get("status")
            .filter(|_| event["type"] != "response.in_progress" && event["type"] != "response.created")
            .cloned(),
    });
    found.filter(|stop| !stop.is_null()).collect()
}

/// litellm#34692, pgedge-postgres-mcp#217: the loop stops in silence; and the reverse, pi#9681.
#[test]
fn pain_17_the_stop_reason_tells_of_the_calls_that_are_there() {
    let mut hiding = interleaved_chat();
    *hiding.last_mut().unwrap() = chunk(&json!({}), &json!("stop"));
    let claiming =
        [chunk(&json!({"content": "Done."}), &Value::Null), chunk(&json!({}), &json!("tool_calls"))];
    assert_eq!(stop_in(Dialect::Messages, &pass_on(Dialect::Chat, &hiding, Dialect::Messages)), ["tool_use"]);
    assert_eq!(stop_in(Dialect::Chat, &pass_on(Dialect::Chat, &hiding, Dialect::Chat)), ["tool_calls"]);
    assert_eq!(
        stop_in(Dialect::Messages, &pass_on(Dialect::Chat, &claiming, Dialect::Messages)),
        ["end_turn"]
    );
    assert_eq!(stop_in(Dialect::Chat, &pass_on(Dialect::Chat, &claiming, Dialect::Chat)), ["stop"]);
    // The same where the answer comes whole.
    let answer = |stop: &str, content: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 9, "output_tokens": 9},
        })
    };
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]);
    let said = json!([{"type": "text", "text": "Done."}]);
    for (answer, stop, sent) in [
        (answer("end_turn", call), Stop::ToolCalls, "tool_calls"),
        (answer("tool_use", said), Stop::EndTurn, "stop"),
    ] {
        let reply = decode_reply(Dialect::Messages, answer.to_string()).unwrap();
        assert_eq!(reply.ending, Ending::Stopped(stop));
        let whole = encode_reply(Dialect::Chat, &reply, &stamp(), &asked(Dialect::Chat));
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], sent);
    }
}

/// litellm#41406, CLIProxyAPI#1700, sglang#20678, gateway#1180: a meter that shows an empty context.
#[test]
fn pain_23_the_first_event_tells_the_size_of_the_prompt() {
    let mut events = interleaved_chat();
    let usage = json!({
        "prompt_tokens": 1300, "completion_tokens": 40, "total_tokens": 1340,
        "prompt_tokens_details": {"cached_tokens": 1000},
    });
    events.push(json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": usage,
    }));
    let passed = pass_on(Dialect::Chat, &events, Dialect::Messages);
    // Nobody knows better yet than the estimate that came with the request.
    assert_eq!(passed[0]["message"]["usage"]["input_tokens"], 1234);
    let last = passed.iter().rfind(|event| event["type"] == "message_delta").unwrap();
    assert_eq!(last["usage"]["output_tokens"], 40);
    assert_eq!(last["usage"]["input_tokens"], 300, "this dialect counts cached tokens apart");
    assert_eq!(last["usage"]["cache_read_input_tokens"], 1000);
    let completed = pass_on(Dialect::Chat, &events, Dialect::Responses).pop().unwrap();
    assert_eq!(completed["response"]["usage"]["input_tokens"], 1300);
    assert_eq!(completed["response"]["usage"]["input_tokens_details"]["cached_tokens"], 1000);
}

/// litellm PR 37956: the id in the stream was not the id that the next request could continue from.
#[test]
fn pain_03_an_answer_has_one_id_from_its_first_event_to_its_whole_form() {
    for (from, events) in [(Dialect::Chat, interleaved_chat()), (Dialect::Messages, interleaved_messages())] {
        let passed = pass_on(from, &events, Dialect::Responses);
        let ids: Vec<&str> = passed.iter().filter_map(|event| event["response"]["id"].as_str()).collect();
        assert!(ids.len() >= 2 && ids.iter().all(|id| id.contains("0a1b")), "{ids:?}");
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        // Items have one id each, too: announced, done, and in the whole.
        let last = passed.last().unwrap();
        let of = |kind: &str| -> Vec<Value> {
            passed
                .iter()
                .filter(|event| event["type"] == kind)
                .map(|event| event["item"]["id"].clone())
                .collect()
        };
        let whole: Vec<Value> =
            last["response"]["output"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        assert_eq!(of("response.output_item.added"), whole);
        assert_eq!(of("response.output_item.done"), whole);
        let mut assembler = throughline_core::Assembler::new(from);
        frames(from, &events).iter().for_each(|frame| assembler.handle_frame(frame));
        let reply = assembler.finish();
        let answer = encode_reply(Dialect::Responses, &reply, &stamp(), &asked(Dialect::Responses));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], ids[0]);
        let call_ids = |output: &Value| -> Vec<Value> {
            output.as_array().unwrap().iter().filter_map(|item| item.get("call_id").cloned()).collect()
        };
        assert_eq!(call_ids(&answer["output"]), call_ids(&last["response"]["output"]));
    }
}
