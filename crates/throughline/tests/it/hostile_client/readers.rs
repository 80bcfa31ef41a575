//! Clients that do not read what they asked for, and WebSockets that are told more than they can hold.

use super::{Answer, Gateway, read_until_closed};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

fn streamed(conversation: &str) -> String {
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": conversation}]});
    body.to_string()
}

#[test]
fn an_answer_that_nobody_reads_is_given_up_and_recorded() {
    let gateway = Gateway::start("no-readers", "limits = { write_timeout = \"1s\" }");
    let ask = |number: usize| {
        let (name, mut stream) = (format!("unread-{number}"), gateway.connect());
        let body = streamed(&name);
        let head = gateway.head(
            "POST",
            "/v1/chat/completions",
            &[("x-throughline-conversation", &name)],
            body.len(),
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        (name, stream)
    };
    let asked: Vec<_> = (0..12).map(ask).collect();
    gateway.serve_the_honest();
    for (name, mut stream) in asked {
        let read = gateway.ended(&name);
        assert_eq!(read["exchanges"][0]["ending"], "cancelled", "{name}");
        let said = read["entries"].as_array().unwrap().iter().find(|entry| entry["side"] == "assistant");
        let said = said.or_else(|| read["entries"].as_array().unwrap().last()).unwrap().to_string();
        assert!(said.contains("still talking"), "what had come is in the record: {said:.200}");
        read_until_closed(&mut stream);
    }
    assert!(gateway.refused("write_timeout") >= 12);
    gateway.came_through();
}

/// Opens a WebSocket.
fn socket(gateway: &Gateway) -> TcpStream {
    let mut stream = gateway.connect();
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let head = gateway.head("GET", "/v1/responses", &upgrade, 0).replace("content-length: 0\r\n", "");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    stream
}

/// Returns the head of a frame, whose mask changes nothing.
fn frame_head(opcode: u8, length: u64) -> Vec<u8> {
    let mut head = vec![opcode, 0x80 | 127];
    head.extend(length.to_be_bytes());
    head.extend([0; 4]);
    head
}

#[test]
fn messages_over_websockets_share_the_memory_of_all_requests() {
    let gateway = Gateway::start("websockets", "");
    // A frame that announces more than is ever taken.
    let mut stream = socket(&gateway);
    stream.write_all(&frame_head(0x81, 1 << 40)).unwrap();
    read_until_closed(&mut stream);
    // Many that are almost whole, in one frame and in fragments.
    let piece = vec![b'a'; 1 << 20];
    let mut held = Vec::new();
    for number in 0..16 {
        let mut stream = socket(&gateway);
        let is_fragmented = number % 2 == 0;
        if !is_fragmented {
            stream.write_all(&frame_head(0x81, 30 << 20)).unwrap();
        }
        for at in 0..29 {
            let mut bytes = Vec::new();
            if is_fragmented {
                bytes.extend(frame_head(if at == 0 { 0x01 } else { 0x00 }, 1 << 20));
            }
            bytes.extend(&piece);
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        held.push(stream);
    }
    gateway.serve_the_honest();
    drop(held);
    // Pings take no turn, however many there are.
    let mut stream = socket(&gateway);
    stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    let ping = [0x89, 0x80, 0, 0, 0, 0].repeat(1000);
    for _ in 0..200 {
        if stream.write_all(&ping).is_err() {
            break;
        }
    }
    gateway.came_through();
}

#[test]
fn a_websocket_whose_client_does_not_read_is_closed() {
    let gateway = Gateway::start("websocket-reader", "limits = { write_timeout = \"1s\" }");
    let body = json!({"type": "response.create", "model": "m", "input": "Talk."}).to_string();
    let mut streams: Vec<TcpStream> = (0..6).map(|_| socket(&gateway)).collect();
    for stream in &mut streams {
        let mut frame = frame_head(0x81, body.len() as u64);
        frame.extend(body.as_bytes());
        stream.write_all(&frame).unwrap();
    }
    gateway.serve_the_honest();
    while gateway.refused("write_timeout") < 6 {}
    streams.iter_mut().for_each(read_until_closed);
    gateway.came_through();
}

#[test]
fn idle_websockets_make_room_for_others() {
    let gateway = Gateway::start("websocket-places", "limits = { connections = 16 }");
    let mut streams: Vec<TcpStream> = (0..40).map(|_| socket(&gateway)).collect();
    gateway.serve_the_honest();
    let mut first = streams.remove(0);
    read_until_closed(&mut first);
    let answer = gateway.get("/healthz");
    assert_eq!(answer.status, 200);
    drop::<Option<Answer>>(Some(answer));
    gateway.came_through();
}
