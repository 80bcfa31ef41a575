//! A client's request, decoded: the history it brings, the tools it offers, and its settings.

use crate::{Dialect, Entry, Extra, Text, Wire};

/// A decoded client request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The dialect it was written in.
    pub dialect: Dialect,
    /// The model that was asked for.
    pub model: Option<Text>,
    /// What the client said, including the history it resent.
    pub entries: Vec<Entry>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// Which of them may or must be called.
    pub tool_choice: Option<ToolChoice>,
    /// Everything that shapes the answer.
    pub settings: Settings,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// The answer that this request continues.
    pub previous: Option<Text>,
    /// The stored conversation that this request continues, by its id.
    pub conversation: Option<Text>,
    /// Every top-level field in its order, as it came.
    pub fields: Vec<Extra>,
    /// The names of those among `fields` that the canonical model does not express.
    pub extras: Vec<Text>,
}

/// A tool on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: Text,
    /// The namespace that it was declared in.
    pub namespace: Option<Text>,
    /// What it is for.
    pub description: Option<Text>,
    /// What it takes.
    pub form: ToolForm,
    /// How it was declared on the wire.
    pub wire: Option<Wire>,
    /// Whether `wire` still says the same as the rest.
    pub intact: bool,
}

/// What a tool takes, and who runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolForm {
    /// A JSON object.
    Function {
        /// The JSON schema of the arguments, as the exact text received.
        schema: Option<Text>,
        /// Whether the schema is to be enforced.
        strict: Option<bool>,
    },
    /// Free text.
    Custom {
        /// The format that the text must follow, as the exact text received.
        format: Option<Text>,
    },
    /// Whatever its provider says; the provider runs it.
    Hosted {
        /// The type tag on the wire.
        kind: Text,
    },
}

/// Which tools may or must be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This one.
    Named(Text),
    /// Some of these; the others are shown but must not be called.
    Allowed {
        /// Their names.
        names: Vec<Text>,
        /// Whether one must be called.
        required: bool,
    },
    /// A form that only its own dialect understands, as it came.
    Opaque(Text),
}

/// A number as its exact text, so that `1.10` stays `1.10`.
pub type Number = Text;

/// Everything that shapes the answer but is no part of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The most tokens to answer with.
    pub max_output_tokens: Option<Number>,
    /// Sampling temperature.
    pub temperature: Option<Number>,
    /// Nucleus sampling.
    pub top_p: Option<Number>,
    /// Top-k sampling.
    pub top_k: Option<Number>,
    /// Presence penalty.
    pub presence_penalty: Option<Number>,
    /// Frequency penalty.
    pub frequency_penalty: Option<Number>,
    /// Sampling seed.
    pub seed: Option<Number>,
    /// How many alternatives of each token to report.
    pub top_logprobs: Option<Number>,
    /// Sequences that end the answer.
    pub stop: Vec<Text>,
    /// Whether several tools may be called at once.
    pub parallel_calls: Option<bool>,
    /// The most tool calls in one answer.
    pub max_tool_calls: Option<Number>,
    /// The form of the answer.
    pub format: Option<Format>,
    /// How wordy the answer should be.
    pub verbosity: Option<Text>,
    /// How much the model should reason.
    pub reasoning: Option<Reasoning>,
    /// The client's own notes, a JSON object as it came.
    pub metadata: Option<Text>,
    /// The end user, as the client names them.
    pub user: Option<Text>,
    /// What groups requests for the provider's prompt cache.
    pub cache_key: Option<Text>,
    /// The service tier asked for.
    pub service_tier: Option<Text>,
    /// Whether the answer is to be kept for later reference.
    pub store: Option<bool>,
}

/// The form of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Free text.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema's name.
        name: Option<Text>,
        /// What the schema is for.
        description: Option<Text>,
        /// The schema, as the exact text received.
        schema: Text,
        /// Whether the schema is to be enforced.
        strict: Option<bool>,
    },
}

/// How much the model should reason, in the terms of whichever dialect asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// A level such as `low` or `high`; `none` is off.
    pub effort: Option<Text>,
    /// The most tokens to reason with.
    pub budget: Option<Number>,
    /// What kind of summary to show.
    pub summary: Option<Text>,
}

impl Ask {
    /// Returns a request that no client made: a history, and nothing besides.
    #[must_use]
    pub fn of(dialect: Dialect, entries: Vec<Entry>) -> Self {
        Self {
            dialect,
            model: None,
            entries,
            tools: Vec::new(),
            tool_choice: None,
            settings: Settings::default(),
            stream: false,
            previous: None,
            conversation: None,
            fields: Vec::new(),
            extras: Vec::new(),
        }
    }
}

impl Reasoning {
    /// Says whether the model is asked not to reason.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.effort.as_ref().is_some_and(|effort| effort == "none")
    }
}

impl Tool {
    /// Says whether the provider runs the tool itself.
    #[must_use]
    pub const fn is_hosted(&self) -> bool {
        matches!(self.form, ToolForm::Hosted { .. })
    }
}
