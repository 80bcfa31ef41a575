//! Answers that are small, and odd: in their status, their type, their letters, their numbers and their pace.

use super::backend::{Act, Backend, bytes, trickle};
use super::{DIALECTS, STREAM, Scene, WHOLE, answer, delta, sse, streamed, whole};
use serde_json::json;

#[test]
fn an_answer_that_gets_nowhere_is_ended() {
    // One that brings nothing but pings and comments is ended by `progress`, one that brings no head by `idle`.
    let scene = Scene::new("trickle", "", "timeouts = { idle = \"2s\", progress = \"600ms\" }");
    for dialect in DIALECTS {
        let (mut events, _) = streamed(dialect, "slow");
        events.push(delta(dialect, "word"));
        let opening = format!("{STREAM}{}", sse(&events));
        let cases = [
            ("comments", true, trickle(STREAM, ": x\n\n")),
            ("pings", true, trickle(STREAM, "event: ping\ndata: {\"type\": \"ping\"}\n\n")),
            ("half an event", true, trickle(format!("{STREAM}data: "), "x")),
            ("comments behind a beginning", true, trickle(opening.clone(), ": x\n\n")),
            (
                "pings behind a beginning",
                true,
                trickle(opening.clone(), "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
            ),
            ("half an event behind a beginning", true, trickle(format!("{opening}data: "), "x")),
            ("a whole answer", false, trickle(format!("{WHOLE}{{\"id\":\""), "x")),
            ("a head", false, trickle("HTTP/1.1 200 OK\r\nx-a: ", "x")),
            ("100 Continue", false, trickle("", "HTTP/1.1 100 Continue\r\n\r\n")),
        ];
        for (case, stream, act) in cases {
            scene.backend.act(act);
            scene.ask(dialect, dialect, stream).assert_failed(case);
        }
    }
    scene.assert_serves("answers that get nowhere");
}

/// Answers that are none.
fn odd() -> Vec<(&'static str, Act)> {
    let head = |status: &str, rest: &str| bytes(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{rest}"));
    vec![
        ("no head", bytes("")),
        ("half a head", bytes("HTTP/1.1 200 O")),
        ("another protocol", bytes("SSH-2.0-OpenSSH_9.6\r\n")),
        ("204", head("204 No Content", "\r\n{\"id\":1}")),
        ("304", head("304 Not Modified", "\r\n")),
        ("101", head("101 Switching Protocols", "upgrade: x\r\n\r\n")),
        ("no body", head("200 OK", "content-type: application/json\r\ncontent-length: 0\r\n\r\n")),
        (
            "less than announced",
            head("200 OK", "content-type: application/json\r\ncontent-length: 100\r\n\r\n{}"),
        ),
        ("a page", head("200 OK", "content-type: text/html\r\n\r\n<html>hello</html>")),
        (
            "a page that says it is a stream",
            head("200 OK", "content-type: text/event-stream\r\n\r\n<html>hello</html>"),
        ),
        ("no UTF-8", bytes([WHOLE.as_bytes(), b"{\"id\":\"\xff\xfe\"}"].concat())),
        ("zeros", bytes([WHOLE.as_bytes(), &[0; 100]].concat())),
        ("chunks that are none", bytes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")),
        ("a list", whole("[]")),
        ("null", whole("null")),
        ("a string", whole("\"hello\"")),
        ("a status beyond all", bytes("HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n")),
    ]
}

#[test]
fn what_is_no_answer_is_an_error() {
    let scene = Scene::new("odd", "", "");
    for (case, act) in odd() {
        for dialect in DIALECTS {
            for stream in [false, true] {
                scene.backend.act(act.clone());
                scene.ask(dialect, dialect, stream).assert_failed(case);
            }
        }
        scene.assert_serves(case);
    }
}

#[test]
fn a_backend_leads_nobody_elsewhere() {
    let elsewhere = Backend::start();
    elsewhere.act(super::fine("chat"));
    let scene = Scene::new("redirect", "", "api_key = \"sk-only-for-one-0123\"");
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let location = format!(
            "HTTP/1.1 {status}\r\nlocation: http://{}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n",
            elsewhere.address
        );
        for dialect in DIALECTS {
            scene.backend.act(bytes(location.clone()));
            scene.ask(dialect, dialect, false).assert_failed(status);
        }
    }
    assert_eq!(elsewhere.seen(), Vec::<String>::new());
}

#[test]
fn a_pause_that_is_asked_for_is_not_waited_for_without_end() {
    let scene = Scene::new("pause", "", "");
    for pause in ["99999999999", "18446744073709551615", "1e300", "-1", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        scene.backend.act(bytes(format!(
            "HTTP/1.1 429 Too Many\r\nretry-after: {pause}\r\ncontent-length: 0\r\n\r\n"
        )));
        scene.ask("chat", "chat", false).assert_failed(pause);
    }
}

#[test]
fn numbers_beyond_all_bounds_do_no_harm() {
    let scene = Scene::new("numbers", "", "prices = { input = 1000000.0, output = 1000000.0 }");
    for number in
        ["18446744073709551615", "9223372036854775807", "-1", "1e308", "0.5", "99999999999999999999999999"]
    {
        for dialect in DIALECTS {
            let mut said = answer(dialect, &format!("numbers-{dialect}{number}"), "well");
            for field in
                ["prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"]
            {
                if said["usage"].get(field).is_some() {
                    said["usage"][field] = json!("NUMBER");
                }
            }
            said["created"] = json!("NUMBER");
            let body = said.to_string().replace("\"NUMBER\"", number);
            for client in DIALECTS {
                scene.backend.act(whole(&body));
                let told = scene.ask(client, dialect, false);
                assert!(
                    told.status == 200 && told.body.contains("well"),
                    "{number}: {} {}",
                    told.status,
                    told.body
                );
            }
        }
    }
    // Sums of them do none either: two answers in one conversation.
    let mut said = answer("chat", "sum", "well");
    said["usage"] = json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX});
    let in_one = [("x-throughline-conversation", "one")];
    for _ in 0..2 {
        scene.backend.act(whole(&said.to_string()));
        assert_eq!(scene.ask_with("chat", "chat", false, &in_one).status, 200);
    }
    let (status, _, listed) = scene.gateway.ask("/api/conversations?totals=true", &[], "");
    assert_eq!(status, 200, "{listed}");
    assert_eq!(scene.gateway.ask("/metrics", &[], "").0, 200);
    scene.assert_serves("numbers");
}

#[test]
fn letters_that_steer_terminals_stay_out_of_the_log() {
    let scene = Scene::new("letters", "", "");
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\n forged=line";
    scene.backend.act(bytes(format!(
        "HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n{}",
        json!({"error": {"message": evil, "code": evil, "type": evil}})
    )));
    scene.ask("chat", "chat", false).assert_failed("an error with control characters");
    let mut said = answer("responses", "x", "well");
    said["id"] = json!(format!("resp_{evil}"));
    said["model"] = json!(evil);
    scene.backend.act(whole(&said.to_string()));
    let told = scene.ask("responses", "responses", false);
    assert_eq!(told.status, 200, "{}", told.body);
    assert!(!told.body.contains("owned") || !told.body.contains("\"id\":\"resp_\\u001b"), "{}", told.body);
    let log = std::fs::read_to_string(scene.gateway.folder.join("log")).unwrap();
    assert!(!log.contains('\u{1b}') && !log.contains('\u{7}'), "{log:?}");
    assert!(!log.lines().any(|line| line.starts_with(" forged")), "{log}");
}
