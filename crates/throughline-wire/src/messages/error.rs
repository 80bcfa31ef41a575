//! The error envelope, both ways.
//!
//! `{"type":"error","error":{"type":…,"message":…}}`, as a body and as the data of an `error` event. Proxies
//! in front of a backend answer with other shapes, with HTML or with nothing; the status then has to do.
//! Clients look for two things beside the type: `prompt is too long` at the start of a message makes them
//! compact the conversation, and other dialects have a code for the same fact.

use super::kept::{given, given_text};
use crate::json::{Document, Kind, Node, Writer};
use crate::status::kind_of_status;
use throughline_core::{Failure, FailureKind, Text};

const TYPES: [(&str, FailureKind); 11] = [
    ("invalid_request_error", FailureKind::InvalidRequest),
    ("authentication_error", FailureKind::Authentication),
    ("permission_error", FailureKind::Permission),
    ("not_found_error", FailureKind::NotFound),
    ("request_too_large", FailureKind::TooLarge),
    ("rate_limit_error", FailureKind::RateLimited),
    ("overloaded_error", FailureKind::Overloaded),
    ("timeout_error", FailureKind::TimedOut),
    ("api_error", FailureKind::Backend),
    // Both are read and never written: a client of this dialect has no other word for them.
    ("billing_error", FailureKind::RateLimited),
    ("conflict_error", FailureKind::Conflict),
];

const TOO_LONG: &str = "prompt is too long";
const TOO_LONG_CODE: &str = "context_length_exceeded";

/// The most characters of a body that is quoted as a message.
const QUOTED_MAX: usize = 500;

/// Reads the failure that an error status and its body stand for.
pub(crate) fn decode_error(status: u16, body: &str) -> Failure {
    let kind = kind_of_status(status);
    let document = Document::parse(body).ok();
    match document.as_ref().map(Document::root).filter(|root| root.kind() == Kind::Object) {
        Some(root) => decode_object(root, kind).unwrap_or_else(|| Failure::new(kind, quoted(status, body))),
        None => Failure::new(kind, quoted(status, body)),
    }
}

/// Reads the failure that an `error` event tells of.
pub(super) fn decode_event(root: Node<'_>) -> Failure {
    let unknown = || Failure::new(FailureKind::Backend, cut(root.raw()));
    decode_object(root, FailureKind::Backend).unwrap_or_else(unknown)
}

/// Reads an envelope, or what others use for one.
fn decode_object(root: Node<'_>, by_status: FailureKind) -> Option<Failure> {
    let error = given(root, "error").unwrap_or(root);
    if let Some(message) = error.as_text() {
        return Some(failure(by_status, message, error));
    }
    let message = ["message", "detail", "msg"].iter().find_map(|name| given(error, name)?.as_text())?;
    let named = error.field("type").and_then(|kind| TYPES.iter().find(|(name, _)| kind.is_str(name)));
    let kind = match named {
        // The catch-all says less than the status does.
        Some((_, FailureKind::Backend)) | None => by_status,
        Some((_, kind)) => *kind,
    };
    Some(failure(kind, message, error))
}

fn failure(kind: FailureKind, message: Text, error: Node<'_>) -> Failure {
    let text = |name| given_text(error, name).ok().flatten();
    let too_long = || message.starts_with(TOO_LONG).then_some(Text::from_static(TOO_LONG_CODE));
    let code = text("code").or_else(too_long);
    Failure { kind, code, param: text("param"), message, refusal: None }
}

/// Makes a message of a body that is no envelope.
fn quoted(status: u16, body: &str) -> Text {
    let body = body.trim();
    if body.is_empty() {
        return Text::from(format!("the backend answered with status {status} and nothing else"));
    }
    if !body.starts_with('<') {
        return Text::from(cut(body));
    }
    let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    match title.map(|(title, _)| title.trim()).filter(|title| !title.is_empty()) {
        Some(title) => Text::from(format!("the backend answered with a page: {}", cut(title))),
        None => Text::from(format!("the backend answered with status {status} and a page")),
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(QUOTED_MAX).map_or(text, |(end, _)| &text[..end])
}

/// Writes a failure as an envelope.
///
/// `code` and `param` are no members of it; clients skip what they do not know.
pub(crate) fn encode_error(failure: &Failure) -> String {
    let mut writer = Writer::with_capacity(failure.message.len() + 96);
    writer.begin_object();
    writer.field_str("type", "error");
    writer.key("error");
    write_error(&mut writer, failure);
    writer.end_object();
    writer.into_string()
}

/// Writes the inner object of an envelope.
pub(super) fn write_error(writer: &mut Writer, failure: &Failure) {
    let named = TYPES[..9].iter().find(|(_, kind)| *kind == failure.kind);
    writer.begin_object();
    writer.field_str("type", named.map_or("invalid_request_error", |(name, _)| name));
    writer.key("message");
    writer.string_with(|sink| {
        let too_long = failure.code.as_ref().is_some_and(|code| code == TOO_LONG_CODE);
        if too_long && !failure.message.starts_with(TOO_LONG) {
            sink.push(TOO_LONG);
            sink.push(": ");
        }
        sink.push(&failure.message);
    });
    if let Some(code) = &failure.code {
        writer.field_str("code", code);
    }
    if let Some(param) = &failure.param {
        writer.field_str("param", param);
    }
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_read_as_its_kind() {
        for (name, kind) in TYPES {
            let body =
                format!(r#"{{"type":"error","error":{{"type":"{name}","message":"m"}},"request_id":null}}"#);
            let expected = if kind == FailureKind::Backend { FailureKind::Overloaded } else { kind };
            assert_eq!(decode_error(529, &body), Failure::new(expected, "m"), "{name}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (_, kind) in &TYPES[..9] {
            let failure = Failure {
                kind: *kind,
                code: Some("c".into()),
                message: "a \"b\"".into(),
                param: Some("tools".into()),
                refusal: None,
            };
            assert_eq!(decode_error(500, &encode_error(&failure)), failure);
        }
    }

    #[test]
    fn a_prompt_that_is_too_long_is_known_by_its_code_abroad() {
        let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}"#;
        assert_eq!(decode_error(400, body).code, Some(TOO_LONG_CODE.into()));
        let foreign = Failure {
            code: Some(TOO_LONG_CODE.into()),
            ..Failure::new(FailureKind::InvalidRequest, "Your input exceeds the window.")
        };
        assert!(encode_error(&foreign).contains("prompt is too long: Your input"));
    }

    #[test]
    fn pages_and_silence_become_sentences() {
        let page = decode_error(502, "<html><head><title>502 Bad Gateway</title></head></html>");
        assert_eq!(
            page,
            Failure::new(FailureKind::Backend, "the backend answered with a page: 502 Bad Gateway")
        );
        let nothing = decode_error(500, "");
        assert_eq!(nothing.message, "the backend answered with status 500 and nothing else");
        assert_eq!(decode_error(401, "no").kind, FailureKind::Authentication);
    }

    #[test]
    fn other_shapes_of_errors_are_understood() {
        for body in
            [r#"{"error":"m"}"#, r#"{"detail":"m"}"#, r#"{"error":{"message":"m","type":"server_error"}}"#]
        {
            assert_eq!(decode_error(503, body), Failure::new(FailureKind::Overloaded, "m"), "{body}");
        }
        assert_eq!(decode_error(400, r#"{"a":1}"#).message, r#"{"a":1}"#);
    }
}
