//! Why a request failed: how, where, and in whose words.

use super::json::optional;
use throughline_store::{Attempt, Exchange};
use throughline_wire::json::Writer;

/// A request that was not answered as it should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFailure<'e> {
    /// How it ended.
    pub how: FailureWay,
    /// The backend that was tried last, and the model there.
    pub backend: Option<&'e str>,
    /// The model that was sent.
    pub model: Option<&'e str>,
    /// The HTTP status that the backend answered with, else the one that the client saw.
    pub status: Option<u16>,
    /// Why, in the words of whoever refused it.
    pub words: &'e str,
    /// How many times it was tried.
    pub tries: usize,
}

/// How a request can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureWay {
    /// Nobody answered.
    Failed,
    /// The answer broke off.
    Broken,
    /// The client hung up before the answer was through.
    Cancelled,
}

impl FailureWay {
    /// Returns how an exchange of this ending failed, if it did.
    fn from_ending(ending: Option<&str>) -> Option<Self> {
        match ending? {
            "failed" => Some(Self::Failed),
            "broken" => Some(Self::Broken),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// Returns the word that the record has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns it as a sentence begins.
    const fn words(self) -> &'static str {
        match self {
            Self::Failed => "request failed",
            Self::Broken => "answer broke off",
            Self::Cancelled => "client disconnected",
        }
    }
}

/// Returns why an exchange failed; nothing, if it did not.
#[must_use]
pub fn failure_of(exchange: &Exchange) -> Option<RequestFailure<'_>> {
    let how = FailureWay::from_ending(exchange.ending.as_deref())?;
    let explains = |attempt: &&Attempt| attempt.failure.is_some();
    let tried = exchange.attempts.iter().rev().find(explains).or_else(|| exchange.attempts.last());
    let words = tried.and_then(|attempt| attempt.failure.as_deref());
    Some(RequestFailure {
        how,
        backend: tried.map(|attempt| &*attempt.backend),
        model: tried.and_then(|attempt| attempt.model.as_deref()),
        status: tried.and_then(|attempt| attempt.status).or(exchange.status),
        words: words.unwrap_or(match tried {
            Some(_) => "no reason was given",
            None => "no backend was tried",
        }),
        tries: exchange.attempts.len(),
    })
}

impl RequestFailure<'_> {
    /// Returns it on one line: what failed, where, why.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = self.how.words().to_owned();
        if let Some(backend) = self.backend {
            line.push_str(&format!(" at {backend}"));
        }
        if let Some(model) = self.model {
            line.push_str(&format!(" ({model})"));
        }
        if let Some(status) = self.status.filter(|status| *status != 200) {
            line.push_str(&format!(", {status}"));
        }
        let words: Vec<&str> = self.words.split_whitespace().collect();
        line.push_str(&format!(": {}", words.join(" ")));
        if self.tries > 1 {
            line.push_str(&format!(" (tried {} times)", self.tries));
        }
        line
    }
}

/// Writes why an exchange failed; `null`, if it did not.
pub(super) fn write_failure(writer: &mut Writer, exchange: &Exchange) {
    writer.key("failure");
    let Some(failure) = failure_of(exchange) else { return writer.null() };
    writer.begin_object();
    writer.field_str("what", failure.how.name());
    optional(writer, "backend", failure.backend);
    optional(writer, "model", failure.model);
    match failure.status {
        Some(status) => writer.field_uint("status", status.into()),
        None => writer.field_null("status"),
    }
    writer.field_str("message", failure.words);
    writer.field_uint("tries", failure.tries as u64);
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{ConversationId, Dialect};
    use throughline_store::{ExchangeId, Moment};

    fn attempt(backend: &str, status: Option<u16>, failure: Option<&str>) -> Attempt {
        Attempt {
            model: Some("m-1".into()),
            ended: Some(Moment(2)),
            status,
            failure: failure.map(Into::into),
            ..Attempt::begun(backend.into(), Dialect::Messages, Moment(1))
        }
    }

    fn exchange(ending: &str, attempts: Vec<Attempt>) -> Exchange {
        let conversation = ConversationId::new("c");
        let begun = Exchange::begun(ExchangeId::new("x"), conversation, Dialect::Messages, Moment(1));
        Exchange { ending: Some(ending.into()), status: Some(502), attempts, ..begun }
    }

    #[test]
    fn a_failure_says_what_where_and_why_in_the_providers_words() {
        let refused = exchange(
            "failed",
            vec![
                attempt("claude", Some(400), Some("messages.2: `tool_use` ids\nwere found without results")),
                attempt("claude", None, None),
            ],
        );
        assert_eq!(
            failure_of(&refused).unwrap().line(),
            "request failed at claude (m-1), 400: messages.2: `tool_use` ids were found without results \
             (tried 2 times)"
        );
        let unasked = exchange("failed", Vec::new());
        assert_eq!(failure_of(&unasked).unwrap().line(), "request failed, 502: no backend was tried");
        let broken = exchange("broken", vec![attempt("glm", Some(200), Some("the stream ended early"))]);
        assert_eq!(
            failure_of(&broken).unwrap().line(),
            "answer broke off at glm (m-1): the stream ended early"
        );
        assert_eq!(failure_of(&exchange("end_turn", vec![attempt("glm", Some(200), None)])), None);
    }
}
