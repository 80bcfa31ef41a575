//! What a backend knows of ours, and what it must not be told.

use super::backend::{Act, bytes, pieces};
use super::{DIALECTS, STREAM, Scene, answer, delta, request, sse, streamed, whole};
use crate::talk::path;
use serde_json::{Value, json};

const KEY: &str = "sk-hostile-0123456789abcdefXYZ";

/// The key, with every letter escaped as JSON may have it.
fn escaped() -> String {
    KEY.chars().map(|c| format!("\\u{:04x}", c as u32)).collect()
}

fn refusal(status: &str, body: &str) -> Act {
    bytes(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()))
}

/// Streams that say the key in pieces: of so many letters each, one event after the other.
fn in_pieces(dialect: &str, letters: usize) -> String {
    let (mut events, end) = streamed(dialect, &format!("pieces-{dialect}-{letters}"));
    events.push(delta(dialect, "the key is "));
    let key: Vec<char> = KEY.chars().collect();
    events.extend(key.chunks(letters).map(|piece| delta(dialect, &piece.iter().collect::<String>())));
    events.push(delta(dialect, ", and that is it"));
    events.extend(end);
    sse(&events)
}

fn echoes(dialect: &str) -> Vec<(&'static str, bool, Act)> {
    let said = answer(dialect, "echo", "KEY and KEY").to_string();
    let stream = in_pieces(dialect, 5);
    let split = stream.replace("the key is ", &format!("the key is {KEY} "));
    vec![
        (
            "in an error",
            false,
            refusal("401 Unauthorized", &json!({"error": {"message": format!("bad key {KEY}")}}).to_string()),
        ),
        (
            "in an error that is a page",
            false,
            refusal("500 Internal Server Error", &format!("<html>authorization: Bearer {KEY}</html>")),
        ),
        (
            "in an error, escaped",
            false,
            refusal("400 Bad Request", &format!(r#"{{"error":{{"message":"bad key {}"}}}}"#, escaped())),
        ),
        ("in a whole answer", false, whole(&said.replace("KEY", KEY))),
        ("in a whole answer, escaped", false, whole(&said.replace("KEY", &escaped()))),
        (
            "in a whole answer, within JSON",
            false,
            whole(&said.replace("KEY", &format!(r#"{{\"k\":\"{}\"}}"#, escaped().replace('\\', r"\\")))),
        ),
        ("in a stream", true, bytes(format!("{STREAM}{split}"))),
        ("in a stream, byte by byte", true, pieces(STREAM, split.bytes().map(|byte| vec![byte]).collect())),
        (
            "in one event, escaped",
            true,
            bytes(format!("{STREAM}{}", stream.replace("the key is ", &escaped()))),
        ),
        ("in deltas of a letter", true, bytes(format!("{STREAM}{}", in_pieces(dialect, 1)))),
        ("in deltas of three letters", true, bytes(format!("{STREAM}{}", in_pieces(dialect, 3)))),
        ("in deltas of seven letters", true, bytes(format!("{STREAM}{}", in_pieces(dialect, 7)))),
    ]
}

/// Returns all that the strings of an answer say, joined: what a client would put together.
fn joined(body: &str) -> String {
    let mut all = String::new();
    let texts = ["content", "text", "delta", "message"];
    for data in body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line)) {
        let mut open: Vec<(String, Value)> =
            serde_json::from_str(data).map(|value| (String::new(), value)).into_iter().collect();
        while let Some((name, value)) = open.pop() {
            match value {
                Value::String(text) if texts.contains(&name.as_str()) => all += &text,
                Value::Array(items) => open.extend(items.into_iter().map(|item| (name.clone(), item))),
                Value::Object(fields) => open.extend(fields),
                _ => {}
            }
        }
    }
    all
}

#[test]
fn a_key_that_is_echoed_reaches_nobody() {
    let scene = Scene::new("echo", "", &format!("api_key = \"{KEY}\""));
    for dialect in DIALECTS {
        for (case, stream, act) in echoes(dialect) {
            for client in DIALECTS {
                scene.backend.act(act.clone());
                let told = scene.ask(client, dialect, stream);
                let case = format!("{case}, {dialect} to {client}");
                for (what, text) in [
                    ("as it came", told.body.clone()),
                    ("put together", joined(&told.body)),
                    ("in its head", told.head),
                ] {
                    assert!(!text.contains(KEY) && !text.contains(&KEY[4..]), "{case}, {what}: {text}");
                }
                if told.status == 200 {
                    assert!(told.body.contains("[redacted:credential]"), "{case}: {}", told.body);
                }
            }
        }
    }
    let written = scene.gateway.written();
    assert!(written.contains("[redacted:credential]"), "{written}");
    assert!(!written.contains(KEY) && !written.contains(&KEY[8..]));
}

#[test]
fn texts_without_a_key_are_passed_on_as_they_are() {
    let scene = Scene::new("no-echo", "", &format!("api_key = \"{KEY}\""));
    for dialect in DIALECTS {
        // All of it but the last letter, and its beginning again and again.
        let words =
            ["sk-", "sk-hostile", "-0123456789abcdef", " no sk-hostil", "ity sk-host", "ile-0 ", "é\"\\\n"];
        let (mut events, end) = streamed(dialect, &format!("plain-{dialect}"));
        events.extend(words.iter().map(|word| delta(dialect, word)));
        events.extend(end);
        scene.backend.act(bytes(format!("{STREAM}{}", sse(&events))));
        for client in DIALECTS {
            let told = scene.ask(client, dialect, true);
            assert!(joined(&told.body).contains(&words.concat()), "{dialect} to {client}: {}", told.body);
        }
    }
}

#[test]
fn a_key_of_the_gateway_is_passed_on_to_no_backend() {
    let lines = "[auth]\nkeys = [\"gateway-key-1\", \"gateway-key-2\"]";
    let scene = Scene::new("passthrough", lines, "api_key = \"passthrough\"");
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    let header = |key: &str| ("x-api-key", key.to_owned());
    let cases = [
        (vec![bearer("gateway-key-1")], None),
        (vec![header("gateway-key-2")], None),
        (vec![bearer("gateway-key-1"), header("gateway-key-2")], None),
        (vec![bearer("gateway-key-1"), header("of-the-client")], Some("x-api-key: of-the-client")),
    ];
    for dialect in DIALECTS {
        for (headers, passed) in &cases {
            scene.backend.act(super::fine(dialect));
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let told = scene.ask_with(dialect, dialect, false, &headers);
            let seen = scene.backend.seen().join("\n");
            assert!(!seen.contains("gateway-key"), "{headers:?}: {seen}");
            match passed {
                Some(passed) => assert!(told.status == 200 && seen.contains(passed), "{headers:?}: {seen}"),
                None => {
                    assert_eq!((told.status, seen.as_str()), (401, ""), "{headers:?}: {}", told.body);
                    assert!(told.body.contains("only a key of this gateway"), "{}", told.body);
                }
            }
        }
    }
}

#[test]
fn a_response_without_an_id_that_can_be_used_has_one_of_ours() {
    let scene = Scene::new("no-ids", "", "");
    for id in [
        json!(7),
        json!(null),
        json!(""),
        json!("../../x"),
        json!("conversation:one"),
        json!("x".repeat(2000)),
    ] {
        let mut said = answer("responses", "x", "well");
        said["id"] = id.clone();
        scene.backend.act(whole(&said.to_string()));
        let told = scene.ask("responses", "responses", false);
        let told: Value = serde_json::from_str(&told.body).unwrap();
        assert!(told["id"].as_str().unwrap().starts_with("resp_0"), "{id}: {told}");
        let (status, ..) =
            scene.gateway.ask(&format!("/v1/responses/{}", told["id"].as_str().unwrap()), &[], "");
        assert_eq!(status, 200, "{id}");
    }
}

#[test]
fn a_response_id_that_is_used_twice_never_mixes_conversations() {
    for stream in [false, true] {
        let scene = Scene::new(&format!("ids-{stream}"), "", "");
        let act = || {
            if !stream {
                return whole(&answer("responses", "resp_same", "well").to_string());
            }
            let (mut events, end) = streamed("responses", "resp_same");
            events.push(delta("responses", "well"));
            events.extend(end);
            bytes(format!("{STREAM}{}", sse(&events)))
        };
        let begin = |words: &str| {
            scene.backend.act(act());
            let body = request("responses", "responses", stream, words).to_string();
            let (status, _, body) = scene.gateway.ask(path("responses"), &[], &body);
            assert_eq!(status, 200, "{body}");
            let data = body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&body);
            let first: Value = serde_json::from_str(data).unwrap();
            let id = if stream { &first["response"]["id"] } else { &first["id"] };
            (id.as_str().unwrap().to_owned(), body)
        };
        let (first, _) = begin("the secret of the first is apples");
        let (second, body) = begin("the secret of the second is pears");
        assert_eq!(first, "resp_same");
        assert!(second != first && !body.contains("\"id\":\"resp_same\""), "{body}");
        scene.backend.seen();
        for (id, own, other) in [(&first, "apples", "pears"), (&second, "pears", "apples")] {
            let mut body = request("responses", "chat", false, "and now?");
            body["previous_response_id"] = json!(id);
            scene.backend.act(super::fine("chat"));
            let (status, _, told) = scene.gateway.ask(path("responses"), &[], &body.to_string());
            let seen = scene.backend.seen().join("\n");
            assert_eq!(status, 200, "{told}");
            assert!(seen.contains(own) && !seen.contains(other), "{id}: {seen}");
        }
    }
}
