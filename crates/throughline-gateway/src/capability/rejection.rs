//! Which errors mean that a backend cannot take what it was sent, rather than that it was wrong.
//!
//! Backends have no code for it, so words decide, and they decide cautiously: a request that is refused for
//! its length, a signature, a pairing or a schema must not teach that tool history is not understood. What
//! speaks for another cause is looked for first and ends the search. When it is unclear, it is not a
//! rejection: the client then gets the backend's own error, which is right in any case.

use super::repair::{Repair, refused_window, repair};
use throughline_core::Failure;

/// A feature of a request that a backend rejected as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It does not take tool calls and results in the history (R08).
    NativeTools,
    /// It does not, or no longer, have the response to continue from (R26).
    StateGone,
    /// It keeps no state.
    StateUnsupported,
    /// It refuses to be asked to keep the answer.
    StoreRefused,
    /// It names something that can be repaired (R41).
    Repairable(Repair),
    /// The prompt is longer than its window, which it names.
    TooLong {
        /// How many tokens fit.
        window: u64,
    },
}

/// Returns what the backend rejected, if it rejected a feature and nothing else was wrong; `body` is what it wrote.
#[must_use]
pub fn rejection(status: u16, failure: &Failure, body: &str) -> Option<Rejection> {
    let words = Words::of(failure);
    if let Some(window) = refused_window(status, failure, body) {
        return Some(Rejection::TooLong { window });
    }
    if let Some(repair) = repair(status, failure) {
        return Some(Rejection::Repairable(repair));
    }
    match status {
        400 | 404 | 409 | 422 if words.speak_of_state() => words.rejected_state(status),
        400 | 403 | 422 if words.refuse_to_store() => Some(Rejection::StoreRefused),
        400 | 422 if words.reject_native_tools() => Some(Rejection::NativeTools),
        400 | 422 if words.find_fault_with_shape() || says_nothing(body) => Some(Rejection::NativeTools),
        422 if words.blames_a_message() => Some(Rejection::NativeTools),
        500 if words.speak_of_a_template() => Some(Rejection::NativeTools),
        _ => None,
    }
}

/// Says whether a refusal gives no reason at all: then what is least common about a request is the likeliest.
fn says_nothing(body: &str) -> bool {
    let body = body.trim().trim_matches(['"', '{', '}', '.']).to_lowercase();
    ["", "bad request", "400 bad request", "invalid request", "error", "null"].contains(&body.as_str())
}

/// Words for tool history on the wire, in all dialects.
const TOOL_ITEMS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "tool_call",
    "toolcall",
    "tool_use",
    "tooluse",
    "tool_result",
    "toolresult",
    "tool message",
    "tool role",
    "role tool",
    "role: tool",
    "role 'tool'",
    "role: 'tool'",
    "role \"tool\"",
    "role: \"tool\"",
    "role `tool`",
    "role=tool",
    "roleenum.tool",
    "'tool'",
    "`tool`",
    "\"tool\"",
];

/// Words for not knowing what something is.
const NOT_TAKEN: &[&str] = &[
    "unsupported",
    "not supported",
    "not support",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "not recognized",
    "not allowed",
    "not permitted",
    "extra inputs",
    "extra fields",
    "invalid",
    "not valid",
    "not a valid",
    "no matching",
    "does not match any",
    "did not match any",
    "expected one of",
    "should be one of",
    "must be one of",
    "input should be",
    "supported values",
    "discriminator",
    "deserialize",
    "not implemented",
];

/// Words for another cause. One of them is enough.
const OTHER_CAUSES: &[&str] = &[
    // length
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "too long",
    "too large",
    "too many",
    "token limit",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "reduce the length",
    "exceed",
    "maximum length",
    "string_above_max_length",
    // reasoning
    "signature",
    "thinking",
    "encrypted",
    "reasoning",
    "thought",
    // pairing, order, ids
    "without",
    "no tool output",
    "no tool call found",
    "must be followed",
    "must be a response",
    "corresponding",
    "did not have",
    "no previous",
    "preceding",
    "preceeding",
    "previous turn",
    "immediately after",
    "not found",
    "missing",
    "required",
    "duplicate",
    "unique",
    "after role",
    "after 'tool'",
    "alternate",
    "first message",
    "last message",
    "final position",
    "pattern",
    "call id",
    "call_id",
    "tool_use_id",
    "tool_use.id",
    "does not match the",
    // tools on offer, their arguments
    "tools[",
    "tools.",
    "`tools`",
    "'tools'",
    "support tools",
    "support tool use",
    "support function calling",
    "schema",
    "tool_choice",
    "parallel_tool_calls",
    "arguments",
    "tool name",
    "function name",
    "valid json",
    "invalid json",
    "json_invalid",
    // content
    "image",
    "document",
    "media",
    "base64",
    "empty",
    "whitespace",
    "utf-8",
    "utf8",
    // everything around it
    "temperature",
    "top_p",
    "response_format",
    "stop sequence",
    "api key",
    "api_key",
    "credit",
    "billing",
    "quota",
    "balance",
    "rate limit",
    "policy",
    "safety",
    "content_filter",
    "flagged",
    "model_not_found",
    "invalid model",
    "no such model",
    "does not exist",
    "metadata",
];

/// Words for a request that is too long.
const LENGTH_CAUSES: &[&str] = &["context length", "context size", "too long", "too large", "maximum"];

/// What a failure says, in lower case.
struct Words {
    message: String,
    code: String,
    param: String,
}

impl Words {
    fn of(failure: &Failure) -> Self {
        let lower = |text: Option<&str>| text.unwrap_or_default().to_lowercase();
        Self {
            message: failure.message.to_lowercase(),
            code: lower(failure.code.as_deref()),
            param: lower(failure.param.as_deref()),
        }
    }

    fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.message.contains(word) || self.code.contains(word))
    }

    fn reject_native_tools(&self) -> bool {
        if self.has_any(OTHER_CAUSES) || !self.blames_an_item() {
            return false;
        }
        self.is_bare_invalid_input() || (self.has_any(TOOL_ITEMS) && self.has_any(NOT_TAKEN))
    }

    /// Says whether the field to blame, if one is named, is an item of the history or says what kind it is.
    fn blames_an_item(&self) -> bool {
        let mut segments = self.param.split(['.', '[', ']']).filter(|segment| !segment.is_empty());
        let Some(first) = segments.next() else { return true };
        let is_number = |segment: &str| segment.chars().all(|c| c.is_ascii_digit());
        let last = segments.next_back().unwrap_or(first);
        let names_kind = ["input", "messages", "content", "type", "role", "tool_calls"].contains(&last);
        ["input", "messages", "body", "request"].contains(&first)
            && (is_number(last) || names_kind || TOOL_ITEMS.contains(&last))
    }

    /// What validators of schemas write about a message whose content is no string: that of a call, or of a result.
    fn find_fault_with_shape(&self) -> bool {
        let message = self.message.trim_end_matches(['.', '!', ' ']);
        let is_required = message == "required" || message.ends_with(": required");
        (is_required && self.blames_an_item())
            || message.starts_with("invalid input: expected")
            || message.contains(": invalid input: expected")
            || (message.contains("expected string, received") && self.blames_an_item())
    }

    /// Says whether a field of a message is to blame, as FastAPI names it: by the last step of its path.
    fn blames_a_message(&self) -> bool {
        const FIELDS: [&str; 7] =
            ["content", "role", "tool_calls", "tool_call_id", "messages", "input", "output"];
        FIELDS.contains(&self.param.as_str()) && !self.has_any(LENGTH_CAUSES)
    }

    /// Says whether the template of a model, which turns messages into a prompt, gave up on them.
    fn speak_of_a_template(&self) -> bool {
        self.has_any(&["template", "jinja", "minja", "raise_exception", "roles are supported"])
            || (self.has_any(TOOL_ITEMS) && self.has_any(NOT_TAKEN) && !self.has_any(LENGTH_CAUSES))
    }

    /// Some gateways say nothing but this, to anything whose type they do not know.
    fn is_bare_invalid_input(&self) -> bool {
        let message = self.message.trim_end_matches(['.', '!', ' ']);
        message == "invalid input"
            || message.ends_with(": invalid input")
            || message.ends_with(" - invalid input")
    }

    fn speak_of_state(&self) -> bool {
        self.has_any(&["previous_response", "previous response"]) || self.param == "previous_response_id"
    }

    fn rejected_state(&self, status: u16) -> Option<Rejection> {
        let is_gone = status == 404
            || self.has_any(&["not found", "not_found", "expired", "does not exist", "no longer", "deleted"]);
        if is_gone {
            return Some(Rejection::StateGone);
        }
        // "Previous response cannot be used for this organization due to Zero Data Retention."
        let is_refused = self.has_any(NOT_TAKEN) || self.has_any(&["data retention"]);
        is_refused.then_some(Rejection::StateUnsupported)
    }

    /// "Store must be set to false", says a server for those who must not store.
    fn refuse_to_store(&self) -> bool {
        let names_it = self.param == "store"
            || self.message.starts_with("store must")
            || self.has_any(&["'store'", "`store`", "\"store\""]);
        names_it && (self.has_any(NOT_TAKEN) || self.has_any(&["must be", "data retention", "cannot"]))
    }
}

#[cfg(test)]
mod tests;
