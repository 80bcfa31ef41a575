//! Validators of request bodies: every reason a provider would have to answer 400.
//!
//! They are written from the providers' documentation, their published request types and the error texts
//! reported in public, never from our encoders: they are the judge of those. Two limits follow from
//! looking at the body alone. A feature behind a beta header counts as enabled, and what only the
//! provider can know (is the signature genuine, does the stored response exist) is not judged. Where a
//! rule depends on the model, the stricter model is assumed unless the row says otherwise.
//!
//! A plain condition on one field is a row of a table (see `shape`); anything that needs more than one
//! field is a small function listed in its provider's `RULES`. Adding either is one line there.

mod chat;
mod messages;
mod responses;
mod shape;
#[cfg(test)]
mod testing;

use serde_json::Value;
use shape::{Node, Report};

/// A place that answers requests, with its own idea of a well-formed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API.
    OpenAiChat,
    /// Mistral's Chat Completions API.
    Mistral,
    /// A local Chat Completions server with a strict chat template: alternating roles, plain text in tool
    /// messages, ids of at most 40 characters, arguments that parse as a JSON object, no developer role.
    StrictChat,
}

/// One rule that a body breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, as a JSON path such as `messages[1].content[0].text`; empty for the whole body.
    pub place: String,
    /// Which rule, by its kebab-case name.
    pub rule: &'static str,
    /// What the provider would say, as near to its own words as is known.
    pub message: String,
}

/// Lists every rule of `provider` that `body` breaks; none when the provider would accept it.
pub fn validate(provider: Provider, body: &Value) -> Vec<Violation> {
    let mut report = Report::default();
    let body = Node::root(body);
    match provider {
        Provider::OpenAiResponses => responses::check(&mut report, &body),
        Provider::Anthropic => messages::check(&mut report, &body),
        Provider::OpenAiChat => chat::check(&mut report, &body, &chat::OPENAI),
        Provider::Mistral => chat::check(&mut report, &body, &chat::MISTRAL),
        Provider::StrictChat => chat::check(&mut report, &body, &chat::STRICT),
    }
    report.violations
}
