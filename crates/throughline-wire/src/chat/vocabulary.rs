//! What the servers call things, and what they have no word for.
//!
//! OpenAI renamed the token limit. Mistral has its own word for the seed and refuses a request for any field
//! that it does not know, even one that is `null` or stands in a message. Everybody else takes or ignores
//! what OpenAI takes. So a request for Mistral is reduced to what Mistral knows, though it came in this very
//! dialect; for the others, what the client said in this dialect is its own affair.

use crate::json::Document;
use throughline_core::{Rules, Wording};

/// The words of one server.
pub(super) struct Vocabulary {
    /// What the most tokens of an answer are called.
    pub token_limit: &'static str,
    /// What the sampling seed is called.
    pub seed: &'static str,
    /// The canonical settings that it does not know.
    pub unknown: &'static [&'static str],
    /// All that it knows, where it refuses the rest.
    pub closed: Option<Closed>,
}

/// All fields that a server knows.
#[derive(Clone, Copy)]
pub(super) struct Closed {
    /// Those of a request, if others are refused there too.
    request: Option<&'static [&'static str]>,
    message: &'static [&'static str],
}

const OPENAI: Vocabulary =
    Vocabulary { token_limit: "max_completion_tokens", seed: "seed", unknown: &["top_k"], closed: None };

const MISTRAL: Vocabulary = Vocabulary {
    token_limit: "max_tokens",
    seed: "random_seed",
    unknown: &["top_k", "top_logprobs", "verbosity", "user", "service_tier", "store", "stream_options"],
    closed: Some(Closed {
        request: Some(&[
            "model",
            "messages",
            "stream",
            "temperature",
            "top_p",
            "n",
            "max_tokens",
            "presence_penalty",
            "frequency_penalty",
            "stop",
            "random_seed",
            "metadata",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "response_format",
            "prediction",
            "reasoning_effort",
            "prompt_mode",
            "prompt_cache_key",
            "guardrails",
            "safe_prompt",
        ]),
        message: &["role", "content", "tool_calls", "tool_call_id", "prefix"],
    }),
};

const OTHERS: Vocabulary =
    Vocabulary { token_limit: "max_tokens", seed: "seed", unknown: &["store", "service_tier"], closed: None };

/// Servers that take requests as everybody does, and refuse messages with a field that they do not know.
const STRICT: Vocabulary = Vocabulary {
    closed: Some(Closed {
        request: None,
        message: &["role", "content", "refusal", "tool_calls", "tool_call_id", "reasoning_content"],
    }),
    ..OTHERS
};

/// Returns the words of the server with those rules.
pub(super) fn vocabulary(rules: &Rules) -> &'static Vocabulary {
    match rules.wording {
        Wording::Own | Wording::Common if !rules.own_extensions => &STRICT,
        Wording::Own => &OPENAI,
        Wording::Closed => &MISTRAL,
        Wording::Common => &OTHERS,
    }
}

impl Vocabulary {
    /// Returns what a field of a request that came in this dialect is called; nothing if it is refused.
    pub fn name_of<'n>(&'n self, field: &'n str) -> Option<&'n str> {
        let Some(closed) = self.closed else { return Some(field) };
        if closed.request.is_none() {
            return Some(field);
        }
        match field {
            "max_completion_tokens" => Some(self.token_limit),
            "seed" => Some(self.seed),
            _ => Some(field).filter(|field| closed.request.is_none_or(|known| known.contains(field))),
        }
    }
}

impl Closed {
    /// Says whether a field of a message is known.
    pub fn knows(&self, field: &str) -> bool {
        self.message.contains(&field)
    }

    /// Says whether all fields of a message are known.
    pub fn knows_all(&self, message: &str) -> bool {
        Document::parse(message)
            .is_ok_and(|document| document.root().fields().all(|(name, _)| self.knows(&name)))
    }
}
