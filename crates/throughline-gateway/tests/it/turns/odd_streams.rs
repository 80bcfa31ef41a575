//! Streams that are not as the documents have them: whatever comes is kept as it came, and what can be run is run once.

use super::{Stage, calls_of};
use serde_json::{Value, json};
use throughline_core::{Dialect, Outcome};
use throughline_gateway::turn::is_note;

/// One tool call as a stream brings it.
#[derive(Clone, Copy)]
struct Piece {
    id: &'static str,
    path: &'static str,
    /// Where in the answer it stands.
    index: u64,
}

const A: Piece = Piece { id: "call_a", path: "a.txt", index: 0 };
const B: Piece = Piece { id: "call_b", path: "b.txt", index: 1 };

/// How the arguments of a call come.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Manner {
    Deltas,
    Whole,
}

fn event(name: &str, data: Value) -> Value {
    json!({"event": name, "data": data})
}

fn plain(data: Value) -> Value {
    json!({"data": data})
}

fn arguments(piece: Piece) -> String {
    json!({"path": piece.path}).to_string()
}

fn begin(dialect: Dialect) -> Vec<Value> {
    match dialect {
        Dialect::Responses => {
            let response = json!({"id": "resp_odd", "object": "response", "model": "m", "status": "in_progress", "output": []});
            vec![event("response.created", json!({"type": "response.created", "response": response}))]
        }
        Dialect::Messages => vec![event(
            "message_start",
            json!({"type": "message_start", "message": {"id": "msg_odd", "type": "message", "role": "assistant",
                "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        )],
        Dialect::Chat => vec![chunk(json!({"role": "assistant"}), None)],
    }
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    plain(
        json!({"id": "chatcmpl-odd", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}),
    )
}

fn end(dialect: Dialect) -> Vec<Value> {
    match dialect {
        Dialect::Responses => {
            let response =
                json!({"id": "resp_odd", "object": "response", "model": "m", "status": "completed"});
            vec![event("response.completed", json!({"type": "response.completed", "response": response}))]
        }
        Dialect::Messages => vec![
            event(
                "message_delta",
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
            ),
            event("message_stop", json!({"type": "message_stop"})),
        ],
        Dialect::Chat => vec![chunk(json!({}), Some("tool_calls"))],
    }
}

fn item(piece: Piece, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{}", piece.id), "call_id": piece.id, "name": "read", "arguments": arguments})
}

fn announced(dialect: Dialect, piece: Piece) -> Value {
    match dialect {
        Dialect::Responses => event(
            "response.output_item.added",
            json!({"type": "response.output_item.added", "output_index": piece.index, "item": item(piece, "")}),
        ),
        Dialect::Messages => event(
            "content_block_start",
            json!({"type": "content_block_start", "index": piece.index,
                "content_block": {"type": "tool_use", "id": piece.id, "name": "read", "input": {}}}),
        ),
        Dialect::Chat => chunk(
            json!({"tool_calls": [{"index": piece.index, "id": piece.id, "type": "function",
                "function": {"name": "read", "arguments": ""}}]}),
            None,
        ),
    }
}

fn deltas(dialect: Dialect, piece: Piece) -> Vec<Value> {
    let whole = arguments(piece);
    let (head, tail) = whole.split_at(5);
    let delta = |text: &str| match dialect {
        Dialect::Responses => event(
            "response.function_call_arguments.delta",
            json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{}", piece.id),
                "output_index": piece.index, "delta": text}),
        ),
        Dialect::Messages => event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": piece.index,
                "delta": {"type": "input_json_delta", "partial_json": text}}),
        ),
        Dialect::Chat => {
            chunk(json!({"tool_calls": [{"index": piece.index, "function": {"arguments": text}}]}), None)
        }
    };
    vec![delta(head), delta(tail)]
}

fn done(dialect: Dialect, piece: Piece, arguments: &str) -> Vec<Value> {
    match dialect {
        Dialect::Responses => vec![event(
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": piece.index, "item": item(piece, arguments)}),
        )],
        Dialect::Messages => {
            vec![event("content_block_stop", json!({"type": "content_block_stop", "index": piece.index}))]
        }
        Dialect::Chat => Vec::new(),
    }
}

/// A call from its announcement to its end.
fn call(dialect: Dialect, piece: Piece, manner: Manner) -> Vec<Value> {
    let whole = arguments(piece);
    match (manner, dialect) {
        (Manner::Deltas, _) => {
            let mut events = vec![announced(dialect, piece)];
            events.extend(deltas(dialect, piece));
            events.extend(done(dialect, piece, ""));
            events
        }
        (Manner::Whole, Dialect::Responses) => done(dialect, piece, &whole),
        (Manner::Whole, Dialect::Messages) => vec![
            event(
                "content_block_start",
                json!({"type": "content_block_start", "index": piece.index,
                    "content_block": {"type": "tool_use", "id": piece.id, "name": "read", "input": {"path": piece.path}}}),
            ),
            event("content_block_stop", json!({"type": "content_block_stop", "index": piece.index})),
        ],
        (Manner::Whole, Dialect::Chat) => vec![chunk(
            json!({"tool_calls": [{"index": piece.index, "id": piece.id, "type": "function",
                "function": {"name": "read", "arguments": whole}}]}),
            None,
        )],
    }
}

async fn staged(dialect: Dialect, middle: Vec<Value>) -> Stage {
    let events: Vec<Value> = begin(dialect).into_iter().chain(middle).chain(end(dialect)).collect();
    Stage::new(dialect, json!([{"events": events}, {"quote": true}])).await
}

#[tokio::test]
async fn arguments_may_come_by_deltas_alone_or_whole_at_the_end() {
    for dialect in Dialect::ALL {
        for manner in [Manner::Deltas, Manner::Whole] {
            let stage = staged(dialect, call(dialect, A, manner)).await;
            let (finished, log) = stage.run("Read a.txt").await;
            assert_eq!(log, ["ask", "run read", "ok read", "ask"], "{dialect} {manner:?}");
            assert_eq!(finished.conclusion.word(), "completed");
            assert!(stage.answer().await.contains("alpha"), "{dialect} {manner:?}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_announced_twice_runs_once() {
    for dialect in Dialect::ALL {
        let mut events = call(dialect, A, Manner::Deltas);
        match dialect {
            // Announced again under another item id, and ended twice.
            Dialect::Responses => {
                let mut again = announced(dialect, A);
                again["data"]["item"]["id"] = json!("fc_other");
                events.insert(1, again);
                events.extend(done(dialect, A, &arguments(A)));
            }
            Dialect::Messages => events.insert(1, announced(dialect, A)),
            Dialect::Chat => events.extend(call(dialect, A, Manner::Whole)),
        }
        let stage = staged(dialect, events).await;
        let (finished, log) = stage.run("Read a.txt").await;
        assert_eq!(log, ["ask", "run read", "ok read", "ask"], "{dialect}");
        assert_eq!(finished.calls, 1);
        assert_eq!(calls_of(&stage.branch().await).len(), 1, "{dialect}");
    }
}

#[tokio::test]
async fn calls_run_in_the_order_of_the_answer_whatever_comes_first() {
    for dialect in Dialect::ALL {
        let mut events = call(dialect, B, Manner::Deltas);
        events.extend(call(dialect, A, Manner::Deltas));
        let stage = staged(dialect, events).await;
        stage.run("Read both").await;
        let returned = stage.returned().await;
        assert!(returned[0].1.contains("alpha") && returned[1].1.contains("beta"), "{dialect}: {returned:?}");
    }
}

#[tokio::test]
async fn items_that_are_the_providers_own_are_left_alone() {
    for dialect in Dialect::ALL {
        let foreign = match dialect {
            Dialect::Responses => vec![event(
                "response.output_item.done",
                json!({"type": "response.output_item.done", "output_index": 0,
                    "item": {"type": "web_search_call", "id": "ws_1", "status": "completed"}}),
            )],
            Dialect::Messages => vec![
                event(
                    "content_block_start",
                    json!({"type": "content_block_start", "index": 0, "content_block":
                        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}}),
                ),
                event("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
            ],
            Dialect::Chat => vec![chunk(
                json!({"tool_calls": [{"index": 7, "id": "odd_1", "type": "odd_tool", "odd": {}}]}),
                None,
            )],
        };
        let mut events = foreign;
        events.extend(call(dialect, B, Manner::Deltas));
        let stage = staged(dialect, events).await;
        let (finished, log) = stage.run("Read b.txt").await;
        assert_eq!(finished.calls, 1, "{dialect} {log:?}");
        assert!(stage.returned().await[0].1.contains("beta"), "{dialect}");
    }
}

#[tokio::test]
async fn unknown_events_and_invalid_json_are_kept_as_they_came() {
    for dialect in Dialect::ALL {
        let odd = [
            json!({"event": "surprise", "data": {"type": "surprise", "x": 1}}),
            json!({"event": "response.odd", "data": "not json {"}),
            json!({"data": "[1, 2"}),
        ];
        let mut events = odd.to_vec();
        events.extend(call(dialect, A, Manner::Deltas));
        if dialect != Dialect::Messages {
            events.push(json!({"data": "{\"choices\": \"odd\"}"}));
        }
        let stage = staged(dialect, events).await;
        let (finished, _) = stage.run("Read a.txt").await;
        assert_eq!((finished.conclusion.word(), finished.calls), ("completed", 1), "{dialect}");
        let kept: Vec<(Option<String>, String)> = stage
            .events()
            .await
            .into_iter()
            .filter(|event| !is_note(event))
            .map(|event| (event.name.map(|name| name.to_string()), event.data.to_string()))
            .collect();
        for (name, data) in [(Some("response.odd"), "not json {"), (None, "[1, 2")] {
            assert!(kept.contains(&(name.map(str::to_owned), data.to_owned())), "{dialect}: {kept:#?}");
        }
        assert!(kept.iter().any(|(name, _)| name.as_deref() == Some("surprise")), "{dialect}");
    }
}

#[tokio::test]
async fn a_stream_without_its_end_mark_is_taken_for_what_it_says() {
    // The answers above lack `[DONE]` already; here the last event is missing as well.
    for dialect in Dialect::ALL {
        let mut events = begin(dialect);
        events.extend(call(dialect, A, Manner::Deltas));
        events.extend(end(dialect).into_iter().take(usize::from(dialect != Dialect::Responses)));
        let stage = Stage::new(dialect, json!([{"events": events}])).await;
        let (finished, log) = stage.run("Read a.txt").await;
        if dialect == Dialect::Responses {
            // Nothing says that the answer was whole, so nothing of it is run.
            assert_eq!((finished.conclusion.word(), finished.calls), ("broken", 0), "{log:?}");
            assert_eq!(stage.returned().await[0].0, Outcome::Interrupted);
        } else {
            assert!(finished.calls >= 1, "{dialect} {log:?}");
        }
        stage.assert_settled().await;
    }
}

#[tokio::test]
async fn a_failure_in_the_stream_ends_the_turn_as_failed() {
    for dialect in Dialect::ALL {
        let failed = match dialect {
            Dialect::Responses => {
                let error = json!({"code": "invalid_prompt", "message": "No."});
                let response =
                    json!({"id": "resp_odd", "object": "response", "status": "failed", "error": error});
                event("response.failed", json!({"type": "response.failed", "response": response}))
            }
            Dialect::Messages => event(
                "error",
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}),
            ),
            Dialect::Chat => plain(json!({"error": {"type": "invalid_request_error", "message": "No."}})),
        };
        let mut events = begin(dialect);
        events.extend(call(dialect, A, Manner::Deltas));
        events.push(failed);
        let stage = Stage::new(dialect, json!([{"events": events}])).await;
        let (finished, log) = stage.run("Read a.txt").await;
        assert_eq!((finished.conclusion.word(), finished.calls), ("failed", 0), "{dialect} {log:?}");
        stage.assert_settled().await;
    }
}
