//! What is known of a client by the headers in which it names itself.

use http::{HeaderMap, header};
use throughline_wire::ReasoningEvents;

/// Says whether the client is Codex.
#[must_use]
pub fn is_codex(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text("originator").starts_with("codex") || text(header::USER_AGENT.as_str()).starts_with("codex")
}

/// Returns what the client calls the events of raw reasoning.
///
/// OpenAI's own clients have a name for them that the specification does not, and pass over the others.
#[must_use]
pub fn reasoning_events(headers: &HeaderMap) -> ReasoningEvents {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_sdk = ["OpenAI/", "AsyncOpenAI/"].iter().any(|name| agent.starts_with(name));
    if is_sdk || is_codex(headers) { ReasoningEvents::OpenAi } else { ReasoningEvents::Spec }
}
