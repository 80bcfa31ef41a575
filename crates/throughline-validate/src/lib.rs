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
mod profiles;
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
    /// OpenRouter's Chat Completions API.
    OpenRouter,
    /// Vercel's AI Gateway.
    Vercel,
    /// DeepSeek's Chat Completions API, while the model reasons.
    DeepSeek,
    /// Moonshot's Chat Completions API, for models that reason.
    Kimi,
    /// Z.ai's Chat Completions API.
    Glm,
    /// Gemini's endpoint that is compatible with Chat Completions, for Gemini 3.
    Gemini,
    /// vLLM, with a strict template.
    Vllm,
    /// The server of llama.cpp, with a strict template.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
}

impl Provider {
    /// All of them, with the names that users choose them by.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::OpenAiResponses, "openai-responses"),
        (Self::Anthropic, "anthropic"),
        (Self::OpenAiChat, "openai-chat"),
        (Self::Mistral, "mistral"),
        (Self::StrictChat, "strict-chat"),
        (Self::OpenRouter, "openrouter"),
        (Self::Vercel, "vercel"),
        (Self::DeepSeek, "deepseek"),
        (Self::Kimi, "kimi"),
        (Self::Glm, "glm"),
        (Self::Gemini, "gemini"),
        (Self::Vllm, "vllm"),
        (Self::LlamaCpp, "llama-cpp"),
        (Self::Ollama, "ollama"),
        (Self::LmStudio, "lm-studio"),
    ];

    /// Returns the one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(provider, _)| provider)
    }

    /// Says whether it speaks Chat Completions.
    pub const fn is_chat(self) -> bool {
        !matches!(self, Self::OpenAiResponses | Self::Anthropic)
    }

    /// Says whether its models show what they thought, where the dialect has no word for that.
    pub const fn shows_reasoning(self) -> bool {
        !matches!(self, Self::OpenAiResponses | Self::OpenAiChat | Self::Mistral | Self::Gemini)
    }
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
        Provider::OpenRouter | Provider::Vercel => chat::check(&mut report, &body, &profiles::ROUTER),
        Provider::DeepSeek => chat::check(&mut report, &body, &profiles::DEEPSEEK),
        Provider::Kimi => chat::check(&mut report, &body, &profiles::KIMI),
        Provider::Glm => chat::check(&mut report, &body, &profiles::GLM),
        Provider::Gemini => chat::check(&mut report, &body, &profiles::GEMINI),
        Provider::Vllm | Provider::LlamaCpp | Provider::Ollama | Provider::LmStudio => {
            chat::check(&mut report, &body, &profiles::LOCAL);
        }
    }
    report.violations
}
