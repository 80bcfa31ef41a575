//! Before a request is complete: connections that are held open, heads that never end or are too large.

use super::{Answer, Gateway, read_until_closed};
use std::io::Write;
use std::net::TcpStream;

/// Opens connections that each say something, and nothing more.
fn held(gateway: &Gateway, count: usize, opening: &str) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = gateway.connect();
        stream.write_all(opening.as_bytes()).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

#[test]
fn who_is_slow_with_a_head_is_disconnected() {
    let gateway =
        Gateway::start("slow-heads", "limits = { header_timeout = \"500ms\", idle_timeout = \"1s\" }");
    for opening in
        ["", "P", "POST /v1/responses HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: localhost\r\nx-a: b\r\n"]
    {
        let mut streams = held(&gateway, 40, opening);
        gateway.serve_the_honest();
        streams.iter_mut().for_each(read_until_closed);
    }
    assert!(gateway.refused("header_timeout") >= 120, "each that had said something was counted");
    gateway.came_through();
}

#[test]
fn who_holds_connections_open_shuts_nobody_out() {
    let gateway = Gateway::start("connections", "limits = { connections = 24 }");
    for opening in ["", "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\n"] {
        let _held = held(&gateway, 120, opening);
        gateway.serve_the_honest();
    }
    // With requests under way on all of them, which wait for their bodies, there is nothing to close.
    let body = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    let mut busy = Vec::new();
    let refused = loop {
        // One whose head the gateway has not read yet makes room for the next, so that 24 may not be enough.
        busy.extend(held(&gateway, 1, body));
        let mut stream = gateway.connect();
        let _ = stream.write_all(gateway.head("GET", "/healthz", &[], 0).as_bytes());
        match Answer::read(&mut stream) {
            Ok(answer) if answer.status == 503 => break answer,
            other => drop(other),
        }
    };
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.body.contains("throughline_busy"), "{refused:?}");
    drop(busy);
    while TcpStream::connect(&gateway.address).is_err() || gateway_is_full(&gateway) {}
    assert!(gateway.refused("evicted") > 0 && gateway.refused("connections") > 0);
    gateway.came_through();
}

fn gateway_is_full(gateway: &Gateway) -> bool {
    let mut stream = gateway.connect();
    let _ = stream.write_all(gateway.head("GET", "/healthz", &[], 0).as_bytes());
    Answer::read(&mut stream).map_or(true, |answer| answer.status == 503)
}

#[test]
fn heads_that_are_too_large_are_refused_everywhere() {
    let gateway = Gateway::start("large-heads", "");
    let paths = ["/healthz", "/", "/metrics", "/v1/models", "/v1/messages", "/api/conversations", "/nothing"];
    for (what, headers, status) in [
        ("more than header_bytes", format!("x-ballast: {}\r\n", "b".repeat(70_000)), 413),
        ("more than is ever read", format!("x-ballast: {}\r\n", "b".repeat(4_000_000)), 431),
        ("very many", "x: y\r\n".repeat(20_000), 431),
    ] {
        for path in paths {
            let mut stream = gateway.connect();
            // What is refused on the way is not read to its end.
            let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", gateway.address);
            let answer = Answer::read(&mut stream);
            // A connection that is reset because of what was not read may lose the plain refusal of HTTP itself.
            let status_seen = answer.as_ref().map_or(431, |answer| answer.status);
            assert_eq!(status_seen, status, "{what}: {path}: {answer:?}");
        }
    }
    let long = gateway.get(&format!("/api/search?q={}", "a".repeat(66_000)));
    assert!([413, 414].contains(&long.status), "{long:?}");
    gateway.came_through();
}

#[test]
fn what_is_not_http_is_not_answered_for_long() {
    let gateway = Gateway::start("no-http", "limits = { header_timeout = \"500ms\" }");
    for garbage in
        [&b"\0\0\0\0\r\n\r\n"[..], b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", &[0xff; 70_000]]
    {
        let mut stream = gateway.connect();
        let _ = stream.write_all(garbage);
        read_until_closed(&mut stream);
    }
    gateway.came_through();
}
