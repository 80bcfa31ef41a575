//! The names that users write on the command line, and what they stand for.

use clap::ValueEnum;
use throughline_carry::Agent;
use throughline_core::Dialect;
use throughline_core::plan::Policy;
use throughline_gateway::config::Approve;
use throughline_gateway::view::UsageBy;
use throughline_sim::Provider;

/// What to show of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// What user and model said, and a line for each tool call
    Talk,
    /// Every entry: instructions, thoughts, calls, results, and where each came from
    Full,
    /// Each tool call with its result, and how it stands
    Pairs,
    /// Each exchange: attempts, changes, and the body that was sent, to the byte; of long ones the latest bodies
    Sent,
}

/// What conversations are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortName {
    /// When something was last added
    Updated,
    /// What they cost
    Cost,
    /// How many tokens they took
    Tokens,
    /// How many exchanges they took
    Exchanges,
}

/// What usage is added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UsageByName {
    /// The day, in UTC
    Day,
    /// The model that answered
    Model,
    /// The client that asked
    Client,
    /// The conversation
    Conversation,
    /// The directory that the conversation works in
    Project,
}

/// An agent, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AgentName {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// opencode
    Opencode,
}

/// What a conversation can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormName {
    /// A session of Claude Code
    ClaudeCode,
    /// A session of Codex
    Codex,
    /// A session that opencode imports
    Opencode,
    /// A request body of OpenAI Responses
    Responses,
    /// A request body of Anthropic Messages
    Messages,
    /// A request body of Chat Completions
    Chat,
    /// A document for people
    Markdown,
    /// One page for a browser, which needs nothing else
    Html,
    /// Our own form, which loses nothing
    Jsonl,
}

/// A policy, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PolicyName {
    /// Everything, the gentlest first
    Default,
    /// No excerpts: old results are masked
    Mask,
    /// Nothing: what does not fit is an error
    Off,
}

/// Which actions run without asking, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ApproveName {
    /// None: you are asked before every change of a file and every command
    Ask,
    /// Edits: you are asked before every command
    Edits,
    /// All: you are never asked
    All,
    /// None, and you are not asked either: tools may only read
    None,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A dialect, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DialectName {
    /// OpenAI Responses / OpenResponses
    Responses,
    /// Anthropic Messages
    Messages,
    /// Chat Completions
    Chat,
}

/// A strategy, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StrategyName {
    /// As tool calls and results
    Native,
    /// As text in the user's role
    TextEmbed,
}

/// A form of text-embed, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EmbedName {
    /// A heading and the result
    Plain,
    /// Comments that name call and result
    Comments,
}

/// What becomes of foreign reasoning, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ReasoningName {
    /// Left out
    Drop,
    /// What is readable of it becomes text
    AsText,
}

/// Whose rules hold for Chat Completions, as users write it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ChatProfile {
    /// OpenAI's
    OpenaiChat,
    /// Mistral's
    Mistral,
    /// Those of local servers with a strict template
    StrictChat,
    /// OpenRouter's
    Openrouter,
    /// Those of Vercel's AI Gateway
    Vercel,
    /// DeepSeek's
    Deepseek,
    /// Moonshot's
    Kimi,
    /// Z.ai's
    Glm,
    /// Those of Gemini's compatible endpoint
    Gemini,
    /// vLLM's
    Vllm,
    /// Those of llama.cpp's server
    LlamaCpp,
    /// Ollama's
    Ollama,
    /// LM Studio's
    LmStudio,
}

impl Color {
    /// Makes this the choice for everything that is printed.
    pub fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

impl From<ApproveName> for Approve {
    fn from(name: ApproveName) -> Self {
        match name {
            ApproveName::Ask => Self::Ask,
            ApproveName::Edits => Self::Edits,
            ApproveName::All => Self::All,
            ApproveName::None => Self::None,
        }
    }
}

impl From<UsageByName> for UsageBy {
    fn from(name: UsageByName) -> Self {
        match name {
            UsageByName::Day => Self::Day,
            UsageByName::Model => Self::Model,
            UsageByName::Client => Self::Client,
            UsageByName::Conversation => Self::Conversation,
            UsageByName::Project => Self::Project,
        }
    }
}

impl From<DialectName> for Dialect {
    fn from(name: DialectName) -> Self {
        match name {
            DialectName::Responses => Self::Responses,
            DialectName::Messages => Self::Messages,
            DialectName::Chat => Self::Chat,
        }
    }
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Default => Self::Default,
            PolicyName::Mask => Self::Mask,
            PolicyName::Off => Self::Off,
        }
    }
}

impl From<AgentName> for Agent {
    fn from(name: AgentName) -> Self {
        match name {
            AgentName::ClaudeCode => Self::ClaudeCode,
            AgentName::Codex => Self::Codex,
            AgentName::Opencode => Self::Opencode,
        }
    }
}

impl From<ChatProfile> for Provider {
    fn from(profile: ChatProfile) -> Self {
        match profile {
            ChatProfile::OpenaiChat => Self::OpenAiChat,
            ChatProfile::Mistral => Self::Mistral,
            ChatProfile::StrictChat => Self::StrictChat,
            ChatProfile::Openrouter => Self::OpenRouter,
            ChatProfile::Vercel => Self::Vercel,
            ChatProfile::Deepseek => Self::DeepSeek,
            ChatProfile::Kimi => Self::Kimi,
            ChatProfile::Glm => Self::Glm,
            ChatProfile::Gemini => Self::Gemini,
            ChatProfile::Vllm => Self::Vllm,
            ChatProfile::LlamaCpp => Self::LlamaCpp,
            ChatProfile::Ollama => Self::Ollama,
            ChatProfile::LmStudio => Self::LmStudio,
        }
    }
}
