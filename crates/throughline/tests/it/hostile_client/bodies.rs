//! Bodies: bombs, more than there is memory for, bodies that never come, and bodies that nobody reads.

use super::{Answer, Gateway, request};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Has many clients send the same at the same time, with honest ones among them; returns the answers.
fn all_at_once(gateway: &Gateway, clients: usize, headers: &[(&str, &str)], body: &[u8]) -> Vec<Answer> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let honest = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                gateway.serve_the_honest();
            }
        });
        let sent: Vec<_> = (0..clients)
            .map(|_| scope.spawn(|| gateway.post("/v1/chat/completions", headers, body)))
            .collect();
        let answers = sent.into_iter().map(|client| client.join().unwrap()).collect();
        is_over.store(true, Ordering::SeqCst);
        honest.join().unwrap();
        answers
    })
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn bombs_unpack_within_the_memory_of_all_requests() {
    let gateway = Gateway::start("bombs", "");
    let letters = request(&"a".repeat(13 << 20));
    let bomb = zstd(&letters);
    assert!(bomb.len() < 16 * 1024, "{}", bomb.len());
    let answers = all_at_once(&gateway, 8, &[("content-encoding", "zstd")], &bomb);
    answers.iter().for_each(Answer::is_orderly);
    assert!(gateway.refused("memory") > 0, "not all of them fit");
    let alone = all_at_once(&gateway, 1, &[("content-encoding", "zstd")], &bomb);
    assert_eq!(alone[0].status, 200, "one of them does: {alone:?}");
    let larger = zstd(&request(&"a".repeat(40 << 20)));
    let answers = all_at_once(&gateway, 4, &[("content-encoding", "zstd")], &larger);
    assert!(answers.iter().all(|answer| [413, 503].contains(&answer.status)), "{answers:?}");
    let spaces = gzip(&" ".repeat(500 << 20));
    let answers = all_at_once(&gateway, 4, &[("content-encoding", "gzip")], &spaces);
    assert!(answers.iter().all(|answer| [413, 503].contains(&answer.status)), "{answers:?}");
    gateway.came_through();
}

#[test]
fn plain_bodies_share_the_memory_too() {
    let gateway = Gateway::start("plain-bodies", "");
    let body = request(&"lorem ipsum ".repeat((13 << 20) / 12));
    let answers = all_at_once(&gateway, 8, &[], body.as_bytes());
    answers.iter().for_each(Answer::is_orderly);
    let alone = all_at_once(&gateway, 1, &[], body.as_bytes());
    assert_eq!(alone[0].status, 200, "one of them fits: {alone:?}");
    gateway.came_through();
}

#[test]
fn json_with_very_many_values_counts_for_what_it_takes() {
    let gateway = Gateway::start("values", "");
    let parts = vec![r#"{"type":"text","text":"a"}"#; 50_000].join(",");
    for (what, body) in [
        ("numbers", format!(r#"{{"model":"m","messages":[{}1]}}"#, "1,".repeat(10 << 20))),
        ("unknown numbers", format!(r#"{{"model":"m","x":[{}1],"messages":[]}}"#, "1,".repeat(10 << 20))),
        ("empty objects", format!(r#"{{"model":"m","messages":[{}{{}}]}}"#, "{},".repeat(10 << 20))),
        ("depth", format!(r#"{{"model":"m","messages":{}"#, "[".repeat(10 << 20))),
        ("keys", format!(r#"{{"model":"m",{}"messages":[]}}"#, r#""k":1,"#.repeat(5 << 20))),
        ("parts", format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{parts}]}}]}}"#)),
    ] {
        let answers = all_at_once(&gateway, 3, &[], body.as_bytes());
        answers.iter().for_each(Answer::is_orderly);
        let is_fine =
            answers.iter().all(|answer| (answer.status == 200) == (what == "parts" && answer.status != 503));
        assert!(is_fine, "{what}: {answers:?}");
    }
    gateway.came_through();
}

#[test]
fn a_body_that_is_refused_is_read_until_its_sender_listens() {
    let gateway = Gateway::start("unread", "auth = { keys = [\"secret\"] }");
    let body = request(&"a".repeat(20 << 20));
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/nothing"] {
        // Written whole before anything is read, as most clients do.
        let answer = gateway.post(path, &[], body.as_bytes());
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.contains("throughline_no_key"), "{answer:?}");
    }
    let mut stream = gateway.connect();
    let key = ("x-api-key", "secret");
    stream.write_all(gateway.head("POST", "/v1/messages", &[key], 80 << 20).as_bytes()).unwrap();
    stream.write_all(&vec![b' '; 80 << 20]).unwrap();
    let answer = Answer::read(&mut stream).unwrap();
    assert_eq!(answer.status, 413);
    assert!(answer.body.contains("throughline_body_too_large"), "{answer:?}");
    // Whoever asks first is told before anything was sent.
    let mut stream = gateway.connect();
    let expect = ("expect", "100-continue");
    stream.write_all(gateway.head("POST", "/v1/messages", &[key, expect], 80 << 20).as_bytes()).unwrap();
    assert_eq!(Answer::read(&mut stream).unwrap().status, 413);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(gateway.asked(), 0, "nobody without a key had a backend asked");
    drop(gateway);
}

#[test]
fn a_body_that_never_comes_holds_up_nobody() {
    let gateway =
        Gateway::start("no-bodies", "limits = { request_timeout = \"1s\", concurrent_requests = 64 }");
    let open = |_| {
        let mut stream = gateway.connect();
        stream.write_all(gateway.head("POST", "/v1/messages", &[], 20 << 20).as_bytes()).unwrap();
        stream.write_all(b"{").unwrap();
        stream
    };
    let mut streams: Vec<_> = (0..40).map(open).collect();
    gateway.serve_the_honest();
    for stream in &mut streams {
        let answer = Answer::read(stream).unwrap();
        assert_eq!(answer.status, 408, "{answer:?}");
        assert!(answer.body.contains("throughline_request_timeout"), "{answer:?}");
    }
    assert_eq!(gateway.refused("request_timeout"), 40);
    gateway.came_through();
}
