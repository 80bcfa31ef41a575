//! The dialect over a WebSocket: a request in a frame, and events in frames.

use crate::json::{DecodeError, Document, Edit, Kind, Writer, patch, quote};
use crate::sse::SseEvent;
use throughline_core::Text;

/// The events that end a response.
const LAST_EVENTS: [&str; 3] = ["response.completed", "response.incomplete", "response.failed"];

/// A request as it came in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// The request as it would come in the body of a `POST`.
    pub body: String,
    /// The response that it continues.
    pub previous: Option<Text>,
    /// Whether an answer is wanted; if not, the request is only to be continued later.
    pub generates: bool,
}

/// What an event of a stream is for a client at a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A frame.
    Frame,
    /// The frame that ends the response.
    LastFrame,
    /// An error, which ends the response if no frame does.
    Error,
    /// Nothing: it belongs to the framing of a stream.
    Framing,
}

impl SocketRequest {
    /// Reads a frame: a request with a type, of which some fields are about the transport alone.
    ///
    /// # Errors
    /// When it is no such request.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        let document = Document::parse(text)?;
        let root = document.root().expect_object()?;
        let kind = root.expect_field("type")?;
        if !kind.is_str("response.create") {
            return Err(kind.error("must be `response.create`"));
        }

        let given = |name: &str| root.field(name).filter(|value| !value.is_null());
        let generate = given("generate").map(|generate| generate.expect_bool()).transpose()?;
        let previous = given("previous_response_id").and_then(|previous| previous.as_text());

        let edits = [
            Edit::Remove { name: "type" },
            Edit::Remove { name: "generate" },
            Edit::Remove { name: "background" },
            Edit::Set { name: "stream", value: "true" },
        ];
        Ok(Self { body: patch(text, &edits)?, previous, generates: generate != Some(false) })
    }
}

impl SocketEvent {
    /// Says what an event of a stream is.
    #[must_use]
    pub fn from_sse(event: &SseEvent) -> Self {
        let Ok(document) = Document::parse(event.data.as_str()) else { return Self::Framing };
        let kind = document.root().field("type").and_then(|kind| kind.as_text());
        match kind.or_else(|| event.name.clone()) {
            None => Self::Framing,
            Some(kind) if kind == "error" => Self::Error,
            Some(kind) if LAST_EVENTS.contains(&kind.as_str()) => Self::LastFrame,
            Some(_) => Self::Frame,
        }
    }
}

/// Returns the id of the response that an event ended, if the response can be continued.
#[must_use]
pub fn continuable_response(event: &str) -> Option<Text> {
    let document = Document::parse(event).ok()?;
    let is_failed = document.root().field("type")?.is_str("response.failed");
    document.root().field("response")?.field("id")?.as_text().filter(|_| !is_failed)
}

/// Returns the frame for an error body, if that is one; its code is what clients go by, so there always is one.
#[must_use]
pub fn socket_error(status: u16, body: &str) -> Option<String> {
    let document = Document::parse(body).ok()?;
    let error = document.root().field("error").filter(|error| error.kind() == Kind::Object)?;
    let has_code = error.field("code").is_some_and(|code| !code.is_null());
    let kind = error.field("type").and_then(|kind| kind.as_text());
    let code = quote(kind.as_deref().unwrap_or("server_error"));
    let edits = [Edit::Set { name: "code", value: &code }];
    let error = patch(error.raw(), if has_code { &[] } else { &edits }).ok()?;

    let mut writer = Writer::with_capacity(error.len() + 64);
    writer.begin_object();
    writer.field_str("type", "error");
    writer.field_uint("status", u64::from(status));
    writer.field_raw("error", &error);
    writer.end_object();
    Some(writer.into_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_request_without_what_is_about_the_transport() {
        let frame =
            r#"{"type":"response.create","generate":false,"previous_response_id":"resp_1","input":"hi"}"#;
        let request = SocketRequest::decode(frame).unwrap();
        assert_eq!(request.body, r#"{"previous_response_id":"resp_1","input":"hi","stream":true}"#);
        assert_eq!(request.previous.as_deref(), Some("resp_1"));
        assert!(!request.generates);
        assert!(SocketRequest::decode(r#"{"type":"response.cancel"}"#).is_err());
    }

    #[test]
    fn an_error_frame_always_has_a_code() {
        let frame =
            socket_error(400, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#).unwrap();
        assert!(frame.contains(r#""code":"invalid_request_error""#), "{frame}");
        assert_eq!(socket_error(500, r#"{"error":"text"}"#), None);
    }

    #[test]
    fn the_mark_at_the_end_of_a_stream_is_no_frame() {
        let event = |data: &'static str| SseEvent { name: None, data: data.into() };
        assert_eq!(SocketEvent::from_sse(&event("[DONE]")), SocketEvent::Framing);
        assert_eq!(SocketEvent::from_sse(&event(r#"{"type":"response.failed"}"#)), SocketEvent::LastFrame);
        assert_eq!(SocketEvent::from_sse(&event(r#"{"type":"error"}"#)), SocketEvent::Error);
    }
}
