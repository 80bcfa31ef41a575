//! The error envelope, both ways.
//!
//! OpenAI's is `{"error": {message, type, param, code}}`. Servers and what stands in front of them answer
//! with much else: an error that is a string, a bare `message`, FastAPI's `detail`, a list around the object,
//! a page of HTML, or nothing. Whatever it is, the client gets a sentence and a kind.

use super::extras::{filled, given};
use crate::json::{Document, Kind, Node, Writer};
use crate::status::kind_of_status;
use throughline_core::{Failure, FailureKind, Text};

/// How much of a body that nobody understands is quoted, in characters.
const QUOTED_MAX: usize = 500;

/// Reads the body that came with an error status.
pub(crate) fn decode_error(status: u16, body: &str) -> Failure {
    let of_json = Document::parse(body).ok().and_then(|document| {
        let root = document.root();
        find_failure(Some(status), root.items().next().unwrap_or(root))
    });
    of_json.unwrap_or_else(|| Failure::new(kind_of_status(status), quoted(status, body)))
}

/// Returns the failure that an object tells of, in any of the known ways; nothing if it tells of none.
///
/// A stream and an answer have no status of their own; then the words decide.
pub(super) fn find_failure(status: Option<u16>, root: Node<'_>) -> Option<Failure> {
    let error = given(root, "error");
    let told = match error {
        Some(error) if error.kind() == Kind::Object => error,
        Some(error) => {
            let message = error.as_text().unwrap_or_else(|| error.raw_text());
            return Some(Failure::new(status.map_or(FailureKind::Backend, kind_of_status), message));
        }
        None => root,
    };
    let message = message_of(told).or_else(|| error.map(|error| error.raw_text()))?;
    let (code, kind_word) = (filled(told, "code"), filled(told, "type"));
    let words = [code.as_deref(), kind_word.as_deref()];
    let number = given(told, "code").and_then(|code| code.as_u64()).and_then(|code| u16::try_from(code).ok());
    let status = status.or(number.filter(|number| (400..600).contains(number)));
    Some(Failure {
        kind: status.map_or_else(|| kind_of_words(&words), kind_of_status),
        code: code.or(kind_word),
        message,
        param: filled(told, "param").or_else(|| blamed_field(root)),
        refusal: None,
    })
}

/// Returns the field that FastAPI's first finding is about: the last name on the way to it.
fn blamed_field(root: Node<'_>) -> Option<Text> {
    let finding = root.field("detail")?.items().next()?;
    finding.field("loc")?.items().filter_map(|step| step.as_text()).last()
}

/// Returns the sentence of an error: OpenAI's field, or FastAPI's, which is a string or a list of findings.
fn message_of(node: Node<'_>) -> Option<Text> {
    if let Some(message) =
        ["message", "detail", "msg", "error_description"].iter().find_map(|name| filled(node, name))
    {
        return Some(message);
    }
    let detail = node.field("detail")?;
    let finding = detail.items().next().and_then(|first| filled(first, "msg"));
    finding.or_else(|| given(node, "detail").map(|detail| detail.raw_text()))
}

fn kind_of_words(words: &[Option<&str>; 2]) -> FailureKind {
    let kinds = words.iter().flatten().filter_map(|word| kind_of_word(word));
    kinds.into_iter().next().unwrap_or(FailureKind::Backend)
}

fn kind_of_word(word: &str) -> Option<FailureKind> {
    Some(match word {
        "invalid_request_error" | "context_length_exceeded" | "invalid_prompt" | "BadRequestError" => {
            FailureKind::InvalidRequest
        }
        "authentication_error" | "invalid_api_key" => FailureKind::Authentication,
        "permission_error" | "permission_denied" => FailureKind::Permission,
        "not_found_error" | "model_not_found" => FailureKind::NotFound,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "requests" | "tokens" => {
            FailureKind::RateLimited
        }
        "overloaded"
        | "overloaded_error"
        | "server_is_overloaded"
        | "slow_down"
        | "unavailable_error"
        | "service_unavailable" => FailureKind::Overloaded,
        "timeout" | "timeout_error" => FailureKind::TimedOut,
        _ => return None,
    })
}

/// Returns a sentence about a body that is no error envelope.
fn quoted(status: u16, body: &str) -> Text {
    let body = body.trim();
    if body.is_empty() {
        return Text::from(format!("the backend answered with status {status} and no body"));
    }
    if body.starts_with('<') {
        let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        let title = title.map_or("no title", |(title, _)| title.trim());
        return Text::from(format!("the backend answered with status {status} and a web page ({title})"));
    }
    Text::from(body.chars().take(QUOTED_MAX).collect::<String>())
}

/// Writes the error envelope.
pub(crate) fn encode_error(failure: &Failure) -> String {
    let mut writer = Writer::with_capacity(failure.message.len() + 128);
    writer.begin_object();
    write_error(&mut writer, failure);
    writer.end_object();
    writer.into_string()
}

/// Writes the field `error`.
pub(super) fn write_error(writer: &mut Writer, failure: &Failure) {
    let (kind_word, default_code) = words_of(failure.kind);
    let code = failure.code.as_ref().map(Text::as_str).or(default_code);
    writer.key("error");
    writer.begin_object();
    writer.field_str("message", &failure.message);
    writer.field_str("type", kind_word);
    write_optional(writer, "param", failure.param.as_ref().map(Text::as_str));
    write_optional(writer, "code", code);
    writer.end_object();
}

fn write_optional(writer: &mut Writer, name: &str, text: Option<&str>) {
    match text {
        Some(text) => writer.field_str(name, text),
        None => writer.field_null(name),
    }
}

/// Returns the `type` of a failure, and the code that tells it from others of that type.
const fn words_of(kind: FailureKind) -> (&'static str, Option<&'static str>) {
    match kind {
        FailureKind::InvalidRequest | FailureKind::Conflict | FailureKind::TooLarge => {
            ("invalid_request_error", None)
        }
        FailureKind::NotFound => ("not_found_error", None),
        FailureKind::Authentication => ("authentication_error", None),
        FailureKind::Permission => ("permission_error", None),
        FailureKind::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
        FailureKind::Overloaded => ("server_error", Some("overloaded")),
        FailureKind::TimedOut => ("server_error", Some("timeout")),
        FailureKind::Backend => ("server_error", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_way_of_telling_an_error_is_understood() {
        let cases = [
            (400, r#"{"error":{"message":"m","type":"invalid_request_error","param":"p","code":null}}"#, "m"),
            (400, r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#, "m"),
            (404, r#"{"error":"m"}"#, "m"),
            (422, r#"{"detail":"m"}"#, "m"),
            (422, r#"{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}"#, "m"),
            (429, r#"[{"error":{"message":"m","code":429}}]"#, "m"),
            (500, "", "the backend answered with status 500 and no body"),
            (
                502,
                "<html><title>Bad Gateway</title>",
                "the backend answered with status 502 and a web page (Bad Gateway)",
            ),
            (504, "upstream request timeout\n", "upstream request timeout"),
            (500, "[]", "[]"),
        ];
        for (status, body, message) in cases {
            let failure = decode_error(status, body);
            assert_eq!((failure.message.as_str(), failure.kind), (message, kind_of_status(status)), "{body}");
        }
    }

    #[test]
    fn without_a_status_the_words_decide() {
        let kind = |body: &str| {
            find_failure(None, Document::parse(body).unwrap().root()).map(|failure| failure.kind)
        };
        assert_eq!(kind(r#"{"error":{"message":"m","code":429}}"#), Some(FailureKind::RateLimited));
        assert_eq!(
            kind(r#"{"error":{"message":"m","type":"x","code":"slow_down"}}"#),
            Some(FailureKind::Overloaded)
        );
        assert_eq!(
            kind(r#"{"error":{"message":"m","type":"invalid_request_error"}}"#),
            Some(FailureKind::InvalidRequest)
        );
        assert_eq!(kind(r#"{"error":{"code":17}}"#), Some(FailureKind::Backend));
        assert_eq!(kind(r#"{"choices":[],"error":null}"#), None);
    }

    #[test]
    fn a_kind_survives_the_envelope() {
        for kind in [
            FailureKind::InvalidRequest,
            FailureKind::Authentication,
            FailureKind::Permission,
            FailureKind::NotFound,
            FailureKind::RateLimited,
            FailureKind::Overloaded,
            FailureKind::TimedOut,
            FailureKind::Backend,
        ] {
            let body = encode_error(&Failure::new(kind, "m"));
            let found = find_failure(None, Document::parse(body).unwrap().root()).unwrap();
            assert_eq!((found.kind, found.message.as_str()), (kind, "m"));
        }
    }
}
