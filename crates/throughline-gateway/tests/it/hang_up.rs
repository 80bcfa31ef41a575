//! A client that goes away in the middle of an answer: the backend is let go, and the record says so.
//!
//! The backend is a bare socket, so that the end of the connection can be seen as such.

use crate::house::{House, Room};
use serde_json::{Value, json};
use throughline_core::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
pub const WORD: &str = "halfway";

/// Answers with the beginning of a stream, then waits until the other side hangs up.
pub async fn answer_until_hung_up(listener: TcpListener, opening: &str) {
    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await;
    socket.write_all(format!("{HEAD}{opening}").as_bytes()).await.unwrap();
    let mut rest = Vec::new();
    // Both an orderly end and a reset are hanging up.
    let _ = socket.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{rest:?}");
}

pub async fn read_request(socket: &mut TcpStream) {
    let mut seen = Vec::new();
    let missing = loop {
        assert_ne!(socket.read_buf(&mut seen).await.unwrap(), 0);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            break length.parse::<usize>().unwrap() - body.len();
        }
    };
    socket.read_exact(&mut vec![0; missing]).await.unwrap();
}

/// Returns the beginning of an answer that says one word.
pub fn opening(dialect: Dialect) -> String {
    let events = match dialect {
        Dialect::Chat => vec![
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
                {"index": 0, "delta": {"role": "assistant", "content": WORD}, "finish_reason": null}]}),
        ],
        Dialect::Messages => vec![
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
                "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORD}}),
        ],
        Dialect::Responses => vec![
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1",
                "object": "response", "status": "in_progress", "model": "m", "output": []}}),
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {
                "type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}}),
            json!({"type": "response.content_part.added", "sequence_number": 2, "item_id": "msg_1",
                "output_index": 0, "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}),
            json!({"type": "response.output_text.delta", "sequence_number": 3, "item_id": "msg_1",
                "output_index": 0, "content_index": 0, "delta": WORD}),
        ],
    };
    let event = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}

/// Reads a conversation over and over until its last exchange has ended.
async fn ended(house: &House, conversation: &str) -> Value {
    let url = format!("{}/api/conversations/{conversation}", house.url);
    let http = reqwest::Client::new();
    loop {
        let text = http.get(&url).send().await.unwrap().text().await.unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        if read["exchanges"][0]["ended"].is_string() {
            return read;
        }
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_call_of_the_backend_and_the_record_says_so() {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut room = Room::new("slow", to);
            room.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
            let house = House::new(vec![room]).await;
            let opening = opening(to);
            let backend = tokio::spawn(async move { answer_until_hung_up(listener, &opening).await });

            let mut client = crate::client::Client::new(&house.url, from);
            client.stream = true;
            client.say("Tell me a long story");
            let conversation = client.hang_up_after("slow", WORD).await;
            backend.await.unwrap();

            let read = ended(&house, &conversation).await;
            assert_eq!(read["exchanges"][0]["ending"], "cancelled", "{from} to {to}: {read}");
            let said = read["entries"].as_array().unwrap().iter().any(|entry| entry["text"] == WORD);
            assert!(said, "what had come is kept; {from} to {to}: {read}");
            house.stop().await;
        }
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_before_the_answer_begins_is_in_the_record_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut room = Room::new("slow", Dialect::Chat);
    room.base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    let house = House::new(vec![room]).await;
    let body = json!({"model": "slow", "messages": [{"role": "user", "content": "Tell me"}]}).to_string();
    let address = house.url.strip_prefix("http://").unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-throughline-conversation: left\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();

    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await;
    drop(client);
    let mut rest = Vec::new();
    // Both an orderly end and a reset are hanging up.
    let _ = socket.read_to_end(&mut rest).await;

    let read = ended(&house, "left").await;
    assert_eq!(read["exchanges"][0]["ending"], "cancelled", "{read}");
    house.stop().await;
}
