//! More of everything than anybody can hold.

use super::backend::{Act, Backend, bytes, forever};
use super::{DIALECTS, STREAM, Scene, WHOLE, chunk, delta, sse, streamed, whole};
use serde_json::json;

/// Bodies that do not end, whatever the dialect.
fn endless() -> Vec<(&'static str, Act)> {
    let error =
        "HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let refusal = error.replace("500 Internal Server Error", "400 Bad Request");
    let huge = WHOLE.replace("connection: close", "content-length: 10000000000");
    let gzip = WHOLE.replace("connection: close", "connection: close\r\ncontent-encoding: gzip");
    vec![
        ("a whole answer without end", forever(format!("{WHOLE}{{\"id\":\""), "x")),
        ("a whole answer of spaces", forever(WHOLE, " ")),
        ("a whole answer of brackets", forever(WHOLE, "[")),
        ("a whole answer of numbers", forever(format!("{WHOLE}["), "0,")),
        ("ten gigabytes announced", forever(huge, "x")),
        ("an answer packed without end", forever(gzip, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0])),
        ("an error without end", forever(format!("{error}{{\"error\":{{\"message\":\""), "x")),
        ("a refusal without end", forever(format!("{refusal}{{\"error\":{{\"message\":\""), "x")),
        ("a line without end", forever(format!("{STREAM}data: "), "x")),
        ("an event without end", forever(STREAM, "data: x\n")),
        ("headers without end", forever("HTTP/1.1 200 OK\r\n", "x-more: and more\r\n")),
        ("a header without end", forever("HTTP/1.1 200 OK\r\nx-more: ", "more")),
    ]
}

/// Streams of small things that do not end.
fn endless_streams(dialect: &str) -> Vec<(&'static str, Act)> {
    let (opening, _) = streamed(dialect, "flood");
    let opening = format!("{STREAM}{}", sse(&opening));
    vec![
        ("comments without end", forever(STREAM, ": ping\n\n")),
        ("pings without end", forever(STREAM, "event: ping\ndata: {\"type\": \"ping\"}\n\n")),
        ("unknown events without end", forever(STREAM, "event: x\ndata: {\"type\":\"acme.x\"}\n\n")),
        ("what is no JSON without end", forever(STREAM, "data: nonsense\n\n")),
        ("comments without end behind a beginning", forever(opening.clone(), ": ping\n\n")),
        ("text without end", forever(opening, sse(&[delta(dialect, &"word ".repeat(20_000))]))),
    ]
}

#[test]
fn no_body_is_read_without_end() {
    let mut scene = Scene::new("bodies", "", "");
    for (case, act) in endless() {
        for (dialect, stream) in DIALECTS.into_iter().zip([false, true, true]) {
            scene.backend.act(act.clone());
            let told = scene.ask(dialect, dialect, stream);
            told.assert_failed(case);
            // A connection that broke off is tried again; a flood is not.
            let asked = scene.backend.seen().len();
            assert!(asked == 1 || case.contains("header"), "{case}: asked {asked} times");
            scene.gateway.assert_small(case);
        }
        scene.assert_serves(case);
        scene.backend.seen();
    }
}

#[test]
fn no_stream_goes_on_without_end() {
    // Small limits, so that small events reach them soon.
    let mut scene = Scene::new("streams", "[limits]\nanswer_bytes = 1048576", "");
    for dialect in DIALECTS {
        for (case, act) in endless_streams(dialect) {
            for client in [dialect, if dialect == "chat" { "messages" } else { "chat" }] {
                scene.backend.act(act.clone());
                scene.ask(client, dialect, true).assert_failed(case);
            }
            scene.backend.act(act);
            scene.ask(dialect, dialect, false).assert_failed(case);
            scene.gateway.assert_small(case);
        }
    }
    scene.assert_serves("streams without end");
}

/// Answers that are as large as they may be, and made to be larger than that in memory.
fn dense(dialect: &str) -> Vec<(&'static str, String)> {
    let size = 7 << 20;
    let fill = |open: &str, item: &str, close: &str| {
        format!("{open}{}{close}", vec![item; size / (item.len() + 1)].join(","))
    };
    let (open, close) = match dialect {
        "chat" => (
            r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":["#,
            "]}}]}",
        ),
        "messages" => (r#"{"id":"m","type":"message","role":"assistant","content":["#, "]}"),
        _ => (r#"{"id":"r","object":"response","status":"completed","output":["#, "]}"),
    };
    vec![
        ("empty objects", fill(open, "{}", close)),
        ("empty calls", fill(open, r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#, close)),
        ("numbers beside the answer", fill("{\"x\":[", "0", "]}")),
        ("pairs of brackets beside the answer", fill("{\"x\":[", "[]", "]}")),
        ("the same key again and again", fill("{", "\"a\":1", "}")),
        ("a number of seven megabytes", format!("{{\"id\":{}}}", "9".repeat(size))),
        ("deep brackets", format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2))),
    ]
}

#[test]
fn dense_answers_do_not_grow_in_memory() {
    let mut scene = Scene::new("dense", "", "");
    for dialect in DIALECTS {
        for (case, body) in dense(dialect) {
            scene.backend.act(whole(&body));
            scene.ask(dialect, dialect, false).assert_failed(case);
            scene.backend.act(bytes(format!("{STREAM}data: {body}\n\n")));
            scene.ask(dialect, dialect, true).assert_failed(case);
            scene.gateway.assert_small(case);
        }
    }
    scene.assert_serves("dense answers");
}

#[test]
fn an_answer_as_large_as_it_may_be_is_passed_on() {
    let mut scene = Scene::new("large", "", "");
    let words = "word ".repeat(1_500_000);
    for dialect in DIALECTS {
        scene.backend.act(whole(&super::answer(dialect, &format!("large-{dialect}"), &words).to_string()));
        for client in DIALECTS {
            let told = scene.ask(client, dialect, false);
            assert!(told.status == 200 && told.body.contains(&words), "{client} {dialect}: {}", told.status);
        }
        scene.gateway.assert_small("a large answer");
    }
}

#[test]
fn calls_are_counted() {
    let mut scene = Scene::new("calls", "", "");
    let call = |index: usize| {
        chunk(
            &json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "type": "function",
                "function": {"name": "read_file", "arguments": "{}"}}]}),
            None,
        )
    };
    let nameless = |index: usize| {
        chunk(&json!({"tool_calls": [{"index": index, "function": {"arguments": "{"}}]}), None)
    };
    let many: Vec<_> = (0..100_000).map(call).collect();
    let held: Vec<_> = (0..100_000).map(nameless).collect();
    let arguments = "x".repeat(50 << 20);
    let large = json!({"tool_calls": [{"index": u64::MAX, "id": "c", "type": "function",
        "function": {"name": "read_file", "arguments": arguments}}]});
    let cases = [
        ("100,000 calls", sse(&many)),
        ("100,000 calls without a name", sse(&held)),
        ("a call with arguments of 50 MB", sse(&[chunk(&large, None)])),
    ];
    for (case, body) in cases {
        for client in DIALECTS {
            scene.backend.act(bytes(format!("{STREAM}{body}")));
            scene.ask(client, "chat", true).assert_failed(case);
        }
        scene.gateway.assert_small(case);
    }
    scene.assert_serves("calls");
}

#[test]
fn what_follows_the_end_is_not_waited_for() {
    let mut scene = Scene::new("behind", "", "");
    for dialect in DIALECTS {
        let (mut events, end) = streamed(dialect, &format!("end-{dialect}"));
        events.push(delta(dialect, "word"));
        events.extend(end);
        let done = if dialect == "chat" { "data: [DONE]\n\n" } else { "" };
        let opening = format!("{STREAM}{}{done}", sse(&events));
        scene.backend.act(forever(opening, "data: [DONE]\n\n"));
        let told = scene.ask(dialect, dialect, true);
        assert!(told.status == 200 && told.body.contains("word"), "{dialect}: {}", told.body);
        scene.gateway.assert_small("what follows the end");
    }
}

#[test]
fn a_listing_is_bounded_before_any_client_asks() {
    let backend = Backend::start();
    backend.list(forever(format!("{WHOLE}{{\"data\":["), "{\"id\":\"model\"},"));
    let mut scene = Scene::before(backend, "listing", "", "");
    scene.assert_serves("an endless listing");
    // Each backend is asked at the start, at the same time; the log says what came of it.
    let is_asked = || std::fs::read_to_string(scene.gateway.folder.join("log")).unwrap();
    while is_asked().matches("no models listed").count() < DIALECTS.len() {
        std::thread::yield_now();
    }
    scene.gateway.assert_small("an endless listing");
}

#[test]
fn names_of_models_are_plain_and_bounded() {
    let backend = Backend::start();
    let models =
        [json!({"id": "plain"}), json!({"id": "\u{1b}[2J\u{7}evil"}), json!({"id": "x".repeat(1 << 20)})];
    backend.list(whole(&json!({"data": models}).to_string()));
    let scene = Scene::before(backend, "names", "", "");
    let listed = loop {
        let listed = scene.gateway.ask("/v1/models", &[], "").2;
        if listed.contains("plain") {
            break listed;
        }
    };
    assert!(!listed.contains("evil") && listed.len() < 100_000, "{}", listed.len());
}
