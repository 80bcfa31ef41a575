//! HTTP/2 without TLS, frame by frame: streams that are reset at once, heads without an end, and pages that come this
//! way.

use super::{Gateway, read_until_closed};
use std::io::{Read, Write};
use std::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Writes a header as it is, without any table.
fn header(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        block.push(u8::try_from(text.len()).unwrap());
        block.extend(text.as_bytes());
    }
}

fn head(method: &str, path: &str, authority: Option<&str>, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    header(&mut block, ":method", method);
    header(&mut block, ":scheme", "http");
    header(&mut block, ":path", path);
    if let Some(authority) = authority {
        header(&mut block, ":authority", authority);
    }
    headers.iter().for_each(|(name, value)| header(&mut block, name, value));
    block
}

fn open(gateway: &Gateway) -> TcpStream {
    let mut stream = gateway.connect();
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

/// Reads frames until one of that kind has come, or the connection is closed; returns its payload.
fn until(stream: &mut TcpStream, kind: u8) -> Option<Vec<u8>> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).ok()?;
        if head[3] == kind {
            return Some(payload);
        }
    }
}

#[test]
fn streams_that_are_reset_at_once_end_the_connection() {
    let gateway = Gateway::start("rapid-reset", "");
    let mut stream = open(&gateway);
    let authority = gateway.address.clone();
    for number in 0..20_000_u32 {
        let id = 2 * number + 1;
        let head = head("GET", "/v1/models", Some(&authority), &[]);
        let mut both = frame(HEADERS, END_HEADERS | END_STREAM, id, &head);
        both.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
        if stream.write_all(&both).is_err() {
            break;
        }
    }
    // It says why, unless what it did not read any more has cut that off.
    let _ = until(&mut stream, GOAWAY);
    gateway.serve_the_honest();
    gateway.came_through();
}

#[test]
fn a_head_without_an_end_ends_the_connection() {
    let gateway = Gateway::start("continuations", "");
    let mut block = head("GET", "/v1/models", Some(&gateway.address), &[]);
    let filler = "f".repeat(120);
    while block.len() < 8192 {
        header(&mut block, "x-filler", &filler);
    }
    let mut stream = open(&gateway);
    stream.write_all(&frame(HEADERS, END_STREAM, 1, &block)).unwrap();
    let more = frame(CONTINUATION, 0, 1, &block[..block.len() / 127 * 127]);
    for _ in 0..100_000 {
        if stream.write_all(&more).is_err() {
            break;
        }
    }
    read_until_closed(&mut stream);
    gateway.came_through();
}

#[test]
fn pings_and_settings_without_an_end_take_nothing() {
    let gateway = Gateway::start("pings", "");
    for filler in [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])] {
        let mut stream = open(&gateway);
        stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        // Nothing is read: once the answers fill the way back, no more is taken.
        for _ in 0..200_000 {
            if stream.write_all(&filler).is_err() {
                break;
            }
        }
        gateway.serve_the_honest();
    }
    gateway.came_through();
}

#[test]
fn the_host_of_a_request_is_checked_with_http2_too() {
    let gateway = Gateway::start("http2-guard", "");
    let own = gateway.address.clone();
    let body = super::request("Hello.");
    let json = ("content-type", "application/json");
    for (authority, headers, expected) in [
        (Some(own.as_str()), vec![json], "\"ok\""),
        (Some("evil.example"), vec![json], "throughline_not_local"),
        (None, vec![json], "throughline_not_local"),
        (Some(own.as_str()), vec![json, ("host", "evil.example")], "throughline_not_local"),
        (None, vec![json, ("host", own.as_str())], "\"ok\""),
        (Some(own.as_str()), vec![json, ("origin", "http://evil.example")], "throughline_cross_origin"),
        (Some(own.as_str()), vec![json, ("sec-fetch-site", "cross-site")], "throughline_cross_origin"),
    ] {
        let before = gateway.asked();
        let mut stream = open(&gateway);
        let head = head("POST", "/v1/chat/completions", authority, &headers);
        stream.write_all(&frame(HEADERS, END_HEADERS, 1, &head)).unwrap();
        stream.write_all(&frame(DATA, END_STREAM, 1, body.as_bytes())).unwrap();
        let answer = until(&mut stream, DATA).unwrap_or_default();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains(expected), "{authority:?} {headers:?}: {answer}");
        assert_eq!(gateway.asked() - before, usize::from(expected == "\"ok\""), "{authority:?} {headers:?}");
    }
    gateway.came_through();
}
