//! The error envelope, both ways.
//!
//! The specification names five types but uses another spelling in its own example, and has none for wrong
//! credentials. One constant per kind of failure is written here; `invalid_request_error` is what SDKs know.
//! Reading goes by the HTTP status where there is one, and by the code where an error came inside a stream.

use super::fields;
use crate::json::{Document, Kind, Node, Writer};
use crate::status::kind_of_status;
use throughline_core::{Failure, FailureKind, Text};

/// The most of a body that is no JSON which is repeated to the client.
const MAX_EXCERPT: usize = 300;

/// What a kind of failure is called: the type in an error envelope, the code in a failed response.
const WORDS: [(FailureKind, &str, &str); 10] = [
    // Clients take this code for a request that would fail again and do not retry.
    (FailureKind::InvalidRequest, "invalid_request_error", "invalid_prompt"),
    (FailureKind::Authentication, "authentication_error", "invalid_api_key"),
    (FailureKind::Permission, "permission_error", "permission_denied"),
    (FailureKind::NotFound, "not_found", "not_found"),
    (FailureKind::Conflict, "invalid_request_error", "conflict"),
    (FailureKind::TooLarge, "invalid_request_error", "request_too_large"),
    (FailureKind::RateLimited, "too_many_requests", "rate_limit_exceeded"),
    (FailureKind::Overloaded, "server_error", "server_is_overloaded"),
    (FailureKind::TimedOut, "server_error", "server_error"),
    (FailureKind::Backend, "server_error", "server_error"),
];

/// Reads the body that came with an error status.
pub(crate) fn decode_error(status: u16, body: &str) -> Failure {
    let kind = kind_of_status(status);
    let document = Document::parse(body).ok();
    let failure = document.as_ref().and_then(|document| decode_body(document.root(), kind));
    failure.unwrap_or_else(|| Failure::new(kind, excerpt(status, body)))
}

/// Writes the body of an error.
pub(crate) fn encode_error(failure: &Failure) -> String {
    let mut writer = Writer::with_capacity(failure.message.len() + 128);
    writer.begin_object();
    writer.key("error");
    writer.begin_object();
    writer.field_str("type", words(failure.kind).0);
    write_optional(&mut writer, "code", failure.code.as_ref());
    writer.field_str("message", &failure.message);
    write_optional(&mut writer, "param", failure.param.as_ref());
    writer.end_object();
    writer.end_object();
    writer.into_string()
}

/// Reads the error of a failed response or of an `error` event, which come without a status.
pub(super) fn decode_stream_error(error: Node<'_>) -> Failure {
    let code = fields::lenient_text(error, "code");
    let tag = fields::lenient_text(error, "type");
    let kind = code.as_deref().and_then(kind_of_word).or_else(|| tag.as_deref().and_then(kind_of_word));
    let message = fields::lenient_text(error, "message").unwrap_or_else(|| {
        code.clone().unwrap_or(Text::from_static("The backend reported an error without saying which."))
    });
    Failure {
        kind: kind.unwrap_or(FailureKind::Backend),
        code,
        message,
        param: fields::lenient_text(error, "param"),
        refusal: None,
    }
}

/// Returns the code that stands for a failure in a response.
pub(super) fn code_of(failure: &Failure) -> Text {
    failure.code.clone().unwrap_or(Text::from_static(words(failure.kind).1))
}

fn words(kind: FailureKind) -> (&'static str, &'static str) {
    let found = WORDS.iter().find(|(known, ..)| *known == kind);
    found.map_or(("server_error", "server_error"), |(_, tag, code)| (tag, code))
}

fn kind_of_word(word: &str) -> Option<FailureKind> {
    Some(match word {
        "rate_limit_exceeded"
        | "insufficient_quota"
        | "usage_limit_reached"
        | "usage_not_included"
        | "too_many_requests"
        | "rate_limit_error" => FailureKind::RateLimited,
        "server_is_overloaded" | "slow_down" | "overloaded_error" | "service_unavailable_error" => {
            FailureKind::Overloaded
        }
        "model_not_found" | "not_found" | "not_found_error" => FailureKind::NotFound,
        "invalid_api_key" | "authentication_error" => FailureKind::Authentication,
        "permission_denied" | "permission_error" => FailureKind::Permission,
        "request_too_large" => FailureKind::TooLarge,
        "timeout" | "request_timeout" | "vector_store_timeout" => FailureKind::TimedOut,
        "context_length_exceeded"
        | "cyber_policy"
        | "invalid_encrypted_content"
        | "previous_response_not_found" => FailureKind::InvalidRequest,
        word if word.starts_with("invalid_") => FailureKind::InvalidRequest,
        _ => return None,
    })
}

/// Reads the shapes in which servers wrap an error: the envelope, a bare string, a framework's `detail`.
fn decode_body(root: Node<'_>, kind: FailureKind) -> Option<Failure> {
    let root = if root.kind() == Kind::Array { root.items().next()? } else { root };
    if let Some(error) = fields::given(root, "error").or_else(|| fields::given(root, "detail")) {
        return decode_inner(error, kind);
    }
    decode_inner(root, kind)
}

fn decode_inner(error: Node<'_>, kind: FailureKind) -> Option<Failure> {
    if let Some(message) = error.as_text() {
        return Some(Failure::new(kind, message));
    }
    // A list of what is wrong with which field, as one common web framework writes it.
    let error = if error.kind() == Kind::Array { error.items().next()? } else { error };
    let message = fields::lenient_text(error, "message").or_else(|| fields::lenient_text(error, "msg"))?;
    let param = fields::lenient_text(error, "param").or_else(|| blamed_field(error));
    Some(Failure { kind, code: fields::lenient_text(error, "code"), message, param, refusal: None })
}

fn blamed_field(error: Node<'_>) -> Option<Text> {
    error.field("loc")?.items().filter_map(|step| step.as_text()).last()
}

/// Returns a sentence about a body that says nothing in JSON; pages in HTML say nothing to anyone.
fn excerpt(status: u16, body: &str) -> String {
    let body = body.trim();
    if body.is_empty() || body.starts_with('<') {
        return format!("The backend answered with status {status} and no readable error.");
    }
    let end = body.char_indices().nth(MAX_EXCERPT).map_or(body.len(), |(at, _)| at);
    format!("The backend answered with status {status}: {}", &body[..end])
}

fn write_optional(writer: &mut Writer, name: &str, value: Option<&Text>) {
    match value {
        Some(value) => writer.field_str(name, value),
        None => writer.field_null(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_keeps_code_and_param() {
        let body = r#"{"error":{"message":"No.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#;
        let failure = decode_error(400, body);
        assert_eq!(failure.kind, FailureKind::InvalidRequest);
        assert_eq!(
            (failure.code.as_deref(), failure.param.as_deref()),
            (Some("context_length_exceeded"), Some("input"))
        );
        assert_eq!(
            encode_error(&failure),
            r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"No.","param":"input"}}"#
        );
    }

    #[test]
    fn a_code_that_is_a_number_says_nothing() {
        let failure = decode_error(500, r#"{"error":{"code":500,"message":"m","type":"server_error"}}"#);
        assert_eq!((failure.code, failure.kind), (None, FailureKind::Backend));
    }

    #[test]
    fn html_empty_and_plain_bodies_become_a_sentence() {
        assert!(decode_error(502, "<html>nginx</html>").message.ends_with("no readable error."));
        assert!(decode_error(500, "").message.contains("status 500"));
        assert!(decode_error(503, "no healthy upstream\n").message.ends_with(": no healthy upstream"));
    }

    #[test]
    fn other_shapes_are_read_for_their_message() {
        let detail = r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]}"#;
        let failure = decode_error(422, detail);
        assert_eq!((failure.message.as_str(), failure.param.as_deref()), ("Field required", Some("model")));
        assert_eq!(decode_error(400, r#"{"detail":"bad"}"#).message, "bad");
        assert_eq!(decode_error(400, r#"{"error":"bad"}"#).message, "bad");
        assert_eq!(decode_error(400, r#"[{"error":{"message":"bad"}}]"#).message, "bad");
    }

    #[test]
    fn an_error_in_a_stream_is_sorted_by_its_code() {
        let kind = |json: &str| decode_stream_error(Document::parse(json).unwrap().root()).kind;
        assert_eq!(kind(r#"{"code":"rate_limit_exceeded","message":"m"}"#), FailureKind::RateLimited);
        assert_eq!(
            kind(r#"{"type":"invalid_request_error","code":null,"message":"m"}"#),
            FailureKind::InvalidRequest
        );
        assert_eq!(kind(r#"{"code":"server_is_overloaded"}"#), FailureKind::Overloaded);
        assert_eq!(kind("{}"), FailureKind::Backend);
    }

    #[test]
    fn every_kind_has_words() {
        for (kind, tag, _) in WORDS {
            let body = encode_error(&Failure::new(kind, "m"));
            assert!(body.contains(&format!(r#""type":"{tag}","code":null"#)));
        }
    }
}
