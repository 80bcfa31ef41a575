//! Refusals that name their own remedy: what was wrong, and what is done about it before the same is sent again (R41).
//!
//! A table of words to a cause, and of a cause to a repair. Words decide here as they do for rejections, so each row
//! holds what one provider was seen to write. A repair changes only what the refusal names; it is tried once, before
//! the client has seen a byte, and holds for the conversation if it helped.

use throughline_core::Failure;

/// What is done to a request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Reasoning that cannot be verified is left out.
    DropReasoning,
    /// Items go without the ids of their provider, and reasoning that is nothing without its id is left out.
    DropItemIds,
    /// The last message is the user's.
    EndWithUser,
    /// Ids of calls are short and plain.
    ShortenIds,
    /// Messages hold nothing but what every server of the dialect knows.
    PlainMessages,
    /// The prompt is made to fit into a window that is smaller than was known.
    FitWindow,
}

/// A set of repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs(u8);

/// What a refusal must say, all of it, for a repair to be the answer.
const REFUSALS: &[(&[&str], Repair)] = &[
    // Anthropic, of signatures that are altered, foreign, or bound to another prefix.
    (&["invalid", "signature", "thinking"], Repair::DropReasoning),
    (&["thinking", "cannot be modified"], Repair::DropReasoning),
    (&["redacted_thinking", "invalid"], Repair::DropReasoning),
    (&["bound to a different conversation"], Repair::DropReasoning),
    // OpenAI, of encrypted reasoning.
    (&["encrypted content", "could not be"], Repair::DropReasoning),
    (&["invalid_encrypted_content"], Repair::DropReasoning),
    (&["encrypted_content", "invalid"], Repair::DropReasoning),
    (&["of type 'reasoning'", "without its required following item"], Repair::DropReasoning),
    // OpenAI, of items that it does not have, or not under this id.
    (&["items are not persisted"], Repair::DropItemIds),
    (&["item with id", "not found"], Repair::DropItemIds),
    (&["without its required 'reasoning' item"], Repair::DropItemIds),
    (&["expected an id that begins with"], Repair::DropItemIds),
    (&["duplicate item found"], Repair::DropItemIds),
    // Anthropic, Mistral, vLLM.
    (&["prefill"], Repair::EndWithUser),
    (&["must end with a user message"], Repair::EndWithUser),
    (&["expected last role user"], Repair::EndWithUser),
    (&["last message", "must", "user"], Repair::EndWithUser),
    // OpenAI's Chat Completions, and those who copy it.
    (&["tool_call", "maximum length"], Repair::ShortenIds),
    (&["tool_call", "string_above_max_length"], Repair::ShortenIds),
    (&["tool call id", "must be"], Repair::ShortenIds),
];

/// What a server says of a field that it does not know.
const UNKNOWN_FIELD: &[&str] = &[
    "extra inputs are not permitted",
    "extra fields not permitted",
    "additional properties are not allowed",
    "additional properties",
    "is unsupported",
    "unknown field",
    "unexpected property",
    "unrecognized key",
];

/// Fields of messages that clients and servers write and others do not know.
const LOOSE_FIELDS: &[&str] = &[
    "cache_control",
    "name",
    "reasoning",
    "annotations",
    "refusal",
    "audio",
    "provider",
    "vendor",
    "prefix",
];

/// Returns the repair that a refusal asks for, if it asks for one.
#[must_use]
pub fn repair(status: u16, failure: &Failure) -> Option<Repair> {
    if !matches!(status, 400 | 404 | 422) {
        return None;
    }
    let said = [Some(&failure.message), failure.code.as_ref(), failure.param.as_ref()];
    let said = said.into_iter().flatten().map(|text| text.to_lowercase()).collect::<Vec<_>>().join(" ");
    let says = |words: &&[&str]| words.iter().all(|word| said.contains(word));
    let named = REFUSALS.iter().find(|(words, _)| says(words)).map(|(_, repair)| *repair);
    named.or_else(|| names_loose_field(&said).then_some(Repair::PlainMessages))
}

fn names_loose_field(said: &str) -> bool {
    let is_named = |field: &&str| {
        ["'", "`", "\"", ".", "["].iter().any(|before| said.contains(&format!("{before}{field}")))
            || said.ends_with(&format!(" {field}"))
    };
    UNKNOWN_FIELD.iter().any(|words| said.contains(words)) && LOOSE_FIELDS.iter().any(is_named)
}

/// What stands in front of the size of a window in a refusal.
const WINDOW_WORDS: &[&str] = &[
    "maximum context length is only ",
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed is ",
    "context window of ",
    "context window is ",
    "context length is only ",
    "context length is ",
    "context length of ",
    "available context size (",
    "max_model_len=",
    "max_model_len of ",
    "\"n_ctx\":",
    "n_ctx: ",
    "n_ctx = ",
];

/// No window is smaller.
const WINDOW_LEAST: u64 = 256;

/// Returns the window that a refusal names, if it refuses a prompt for its length.
#[must_use]
pub fn refused_window(status: u16, failure: &Failure, body: &str) -> Option<u64> {
    if !matches!(status, 400 | 413 | 422 | 500) {
        return None;
    }
    let message = failure.message.to_lowercase();
    let found = window_in(&message).or_else(|| too_long(&message)).or_else(|| {
        let is_about_it = message.contains("context size") || message.contains("context length");
        is_about_it.then(|| window_in(&body.to_lowercase())).flatten()
    });
    found.filter(|window| *window >= WINDOW_LEAST)
}

fn window_in(text: &str) -> Option<u64> {
    let behind = WINDOW_WORDS.iter().find_map(|words| text.split_once(words));
    behind.and_then(|(_, rest)| leading_number(rest))
}

/// Reads "prompt is too long: 210000 tokens > 200000 maximum".
fn too_long(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("prompt is too long")?;
    leading_number(rest.split_once('>')?.1.trim_start())
}

fn leading_number(text: &str) -> Option<u64> {
    let is_part = |c: &char| c.is_ascii_digit() || matches!(c, ',' | '_');
    let digits: String = text.trim_start().chars().take_while(is_part).filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Repair {
    /// All of them, in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::DropReasoning,
        Self::DropItemIds,
        Self::EndWithUser,
        Self::ShortenIds,
        Self::PlainMessages,
        Self::FitWindow,
    ];

    /// Returns the name that the record knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropReasoning => "drop-reasoning",
            Self::DropItemIds => "drop-item-ids",
            Self::EndWithUser => "end-with-user",
            Self::ShortenIds => "shorten-ids",
            Self::PlainMessages => "plain-messages",
            Self::FitWindow => "fit-window",
        }
    }

    /// Returns what the report says about it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DropReasoning => "the backend refused reasoning that it cannot verify: left out",
            Self::DropItemIds => "the backend refused ids of items: sent without them",
            Self::EndWithUser => {
                "the backend refused to go on from the assistant's words: the user speaks last"
            }
            Self::ShortenIds => "the backend refused ids of calls: shortened",
            Self::PlainMessages => "the backend refused fields of messages: left out",
            Self::FitWindow => "the backend refused the prompt for its length: made to fit",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::DropReasoning => 1,
            Self::DropItemIds => 2,
            Self::EndWithUser => 4,
            Self::ShortenIds => 8,
            Self::PlainMessages => 16,
            Self::FitWindow => 32,
        }
    }
}

impl Repairs {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// Says whether a repair is among them.
    #[must_use]
    pub const fn has(self, repair: Repair) -> bool {
        self.0 & repair.bit() != 0
    }

    /// Returns the set with one more.
    #[must_use]
    pub const fn with(self, repair: Repair) -> Self {
        Self(self.0 | repair.bit())
    }

    /// Returns those that hold for the rest of a conversation: a window is remembered of the model instead.
    #[must_use]
    pub const fn lasting(self) -> Self {
        Self(self.0 & !Repair::FitWindow.bit())
    }

    /// Says whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns them in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Repair> {
        Repair::ALL.into_iter().filter(move |repair| self.has(*repair))
    }

    /// Reads names as they are written by [`Repairs::names`]; one that this version does not know is passed over.
    #[must_use]
    pub fn from_names(names: &str) -> Self {
        let known = |name: &str| Repair::ALL.into_iter().find(|repair| repair.name() == name);
        names.split_whitespace().filter_map(known).fold(Self::NONE, Self::with)
    }

    /// Returns the names.
    #[must_use]
    pub fn names(self) -> String {
        self.iter().map(Repair::name).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{FailureKind, Text};

    fn failure(message: &str) -> Failure {
        Failure::new(FailureKind::InvalidRequest, Text::from(message))
    }

    #[test]
    fn what_providers_write_names_a_repair() {
        for (message, expected) in [
            ("messages.1.content.0: Invalid `signature` in `thinking` block", Repair::DropReasoning),
            (
                "messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
                Repair::DropReasoning,
            ),
            ("messages.1.content.0: Invalid `data` in `redacted_thinking` block", Repair::DropReasoning),
            ("The block is bound to a different conversation", Repair::DropReasoning),
            (
                "The encrypted content gAAA... could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
                Repair::DropReasoning,
            ),
            (
                "Item with id 'rs_123' not found. Items are not persisted when `store` is set to false.",
                Repair::DropItemIds,
            ),
            (
                "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
                Repair::DropItemIds,
            ),
            (
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
                Repair::DropReasoning,
            ),
            ("Invalid 'input[2].id': 'call_1'. Expected an ID that begins with 'fc'.", Repair::DropItemIds),
            (
                "This model does not support assistant message prefill. The conversation must end with a user message.",
                Repair::EndWithUser,
            ),
            (
                "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
                Repair::EndWithUser,
            ),
            (
                "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 64 instead.",
                Repair::ShortenIds,
            ),
            ("messages.2.tool.name: Extra inputs are not permitted", Repair::PlainMessages),
            (
                "'messages.1' : for 'role:tool' the following must be satisfied[('messages.1' : property 'name' is unsupported)]",
                Repair::PlainMessages,
            ),
            (
                "messages.0.user.content.0.cache_control: Extra inputs are not permitted",
                Repair::PlainMessages,
            ),
        ] {
            assert_eq!(repair(400, &failure(message)), Some(expected), "{message}");
        }
    }

    #[test]
    fn other_refusals_name_none() {
        for message in [
            "Invalid API key",
            "max_tokens: must be at least 1",
            "messages: Extra inputs are not permitted",
            "tools.0.custom.input_schema: JSON schema is invalid",
            "Unexpected role 'tool'",
        ] {
            assert_eq!(repair(400, &failure(message)), None, "{message}");
        }
        assert_eq!(repair(500, &failure("Invalid `signature` in `thinking` block")), None);
    }

    #[test]
    fn a_window_is_read_from_a_refusal() {
        for (message, window) in [
            (
                "This model's maximum context length is 32768 tokens. However, you requested 40960 tokens.",
                32_768,
            ),
            ("This model's maximum prompt length is 131072 but the request contains 200000 tokens.", 131_072),
            ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
            (
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
                1_048_576,
            ),
            ("the request exceeds the available context size (4,096 tokens), try increasing it", 4_096),
        ] {
            assert_eq!(refused_window(400, &failure(message), ""), Some(window), "{message}");
        }
        let said = "the request exceeds the available context size, try increasing it";
        assert_eq!(
            refused_window(400, &failure(said), r#"{"error":{"n_prompt_tokens":9000,"n_ctx":8192}}"#),
            Some(8_192)
        );
        assert_eq!(refused_window(400, &failure("max_tokens is too large: 32768"), ""), None);
    }

    #[test]
    fn a_set_is_read_as_it_is_written() {
        let set = Repairs::NONE.with(Repair::EndWithUser).with(Repair::DropReasoning).with(Repair::FitWindow);
        assert_eq!(set.names(), "drop-reasoning end-with-user fit-window");
        assert_eq!(Repairs::from_names(&set.names()), set);
        assert!(!set.lasting().has(Repair::FitWindow) && set.lasting().has(Repair::EndWithUser));
    }
}
