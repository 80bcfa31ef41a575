//! Requests that are refused, in the words and envelopes of the providers.

use crate::seal::BrokenSeal;
use serde_json::json;
use throughline_core::{Dialect, Failure, FailureKind, Text};
use throughline_validate::{Provider, Violation};
use throughline_wire::{encode_error, status_of};

/// An answer that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Refused {
    /// Returns the refusal that stands for a failure.
    pub(crate) fn new(dialect: Dialect, failure: &Failure) -> Self {
        Self::with_status(dialect, status_of(failure.kind), failure)
    }

    /// Returns the refusal with a status of its own.
    pub(crate) fn with_status(dialect: Dialect, status: u16, failure: &Failure) -> Self {
        Self { status, body: encode_error(dialect, failure), headers: Vec::new() }
    }

    /// Returns the refusal of a body that breaks a rule.
    pub(crate) fn of_violation(dialect: Dialect, provider: Provider, violation: &Violation) -> Self {
        let message = match provider {
            Provider::Anthropic => said_by_anthropic(violation),
            _ => said_by_openai(violation),
        };
        if provider == Provider::Mistral {
            let body = json!({
                "object": "error", "message": message, "type": "invalid_request_error",
                "param": violation.place, "code": "3051",
            });
            return Self { status: 400, body: body.to_string(), headers: Vec::new() };
        }
        Self::new(dialect, &invalid(&message, &violation.place))
    }

    /// Returns the refusal of a seal that is not genuine; `place` is where it stands.
    pub(crate) fn of_seal(dialect: Dialect, broken: &BrokenSeal, place: &str) -> Self {
        let (message, code) = match broken {
            BrokenSeal::Signature => {
                (format!("{}: Invalid `signature` in `thinking` block", dotted(place)), None)
            }
            BrokenSeal::Redacted => {
                (format!("{}: Invalid `data` in `redacted_thinking` block", dotted(place)), None)
            }
            BrokenSeal::Encrypted(data) => {
                let head: String = data.chars().take(8).collect();
                let message = format!(
                    "The encrypted content {head}... could not be verified. Reason: Encrypted content could not \
                     be decrypted or parsed."
                );
                (message, Some(Text::from_static("invalid_encrypted_content")))
            }
        };
        Self::new(dialect, &Failure { code, ..invalid(&message, place) })
    }
}

/// Returns the failure of a request that is wrong at that place.
pub(crate) fn invalid(message: &str, place: &str) -> Failure {
    let param = (!place.is_empty()).then(|| Text::from(place));
    Failure { param, ..Failure::new(FailureKind::InvalidRequest, message) }
}

/// Anthropic begins with the place, in dots.
fn said_by_anthropic(violation: &Violation) -> String {
    let place = dotted(&violation.place);
    if place.is_empty() || violation.message.starts_with(&place) {
        return violation.message.clone();
    }
    format!("{place}: {}", violation.message)
}

/// OpenAI's own sentences begin with a capital and have the place beside them; the rest name it.
fn said_by_openai(violation: &Violation) -> String {
    let is_whole = violation.message.starts_with(|c: char| c.is_uppercase() || c == '\'' || c == '`');
    if is_whole || violation.place.is_empty() {
        return violation.message.clone();
    }
    if violation.message.starts_with("messages ") {
        return format!("Invalid parameter: {}", violation.message);
    }
    format!("Invalid '{}': {}.", violation.place, violation.message.trim_end_matches('.'))
}

/// Writes `messages[1].content[0]` as `messages.1.content.0`.
fn dotted(place: &str) -> String {
    place.replace('[', ".").replace(']', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(message: &str) -> Violation {
        Violation { place: "messages[1].content[0]".into(), rule: "r", message: message.into() }
    }

    #[test]
    fn each_provider_names_the_place_in_its_way() {
        let body = |dialect, provider| {
            Refused::of_violation(dialect, provider, &violation("a string is expected")).body
        };
        let anthropic = body(Dialect::Messages, Provider::Anthropic);
        assert!(anthropic.contains("messages.1.content.0: a string is expected"), "{anthropic}");
        let openai = body(Dialect::Chat, Provider::OpenAiChat);
        assert!(openai.contains("Invalid 'messages[1].content[0]': a string is expected."), "{openai}");
        assert!(openai.contains(r#""param":"messages[1].content[0]""#), "{openai}");
        assert!(body(Dialect::Chat, Provider::Mistral).contains(r#""object":"error""#));
    }
}
