//! Profiles: the rule sets of providers and servers that speak a dialect which is not their own.
//!
//! Each starts from the nearest set and states what differs, and where that is known from. A deviation that no field
//! of the rules expresses is a field to be added, not a branch. Users add their own in the configuration, in the
//! same way: a base, and what differs.

use crate::rules::{Charset, EffortRule, NameRule, ReasoningRule, Rules, SystemRule, Wording};
use crate::{Dialect, Text};

/// Where providers and servers are found, and the profile that holds there.
///
/// A port is one that a server on the user's own machine has unless it is told otherwise.
const PLACES: &[(&str, Option<u16>, &str)] = &[
    ("api.anthropic.com", None, "anthropic"),
    ("api.openai.com", None, "openai-chat"),
    ("api.openai.com", None, "openai-responses"),
    ("openrouter.ai", None, "openrouter"),
    ("ai-gateway.vercel.sh", None, "vercel"),
    ("api.deepseek.com", None, "deepseek"),
    ("api.moonshot.ai", None, "kimi"),
    ("api.moonshot.cn", None, "kimi"),
    ("api.z.ai", None, "glm"),
    ("open.bigmodel.cn", None, "glm"),
    ("generativelanguage.googleapis.com", None, "gemini"),
    ("api.mistral.ai", None, "mistral"),
    ("localhost", Some(11_434), "ollama"),
    ("localhost", Some(1_234), "lm-studio"),
];

impl Rules {
    /// Returns the profile of whoever is at that host and port, if it is known and speaks that dialect.
    #[must_use]
    pub fn of_place(host: &str, port: Option<u16>, dialect: Dialect) -> Option<Self> {
        let host = if matches!(host, "127.0.0.1" | "[::1]" | "::1") { "localhost" } else { host };
        let is_there = |place: &&(&str, Option<u16>, &str)| {
            place.0.eq_ignore_ascii_case(host) && (place.1.is_none() || place.1 == port)
        };
        let there = PLACES.iter().filter(is_there).filter_map(|(_, _, name)| Self::from_name(name));
        there.into_iter().find(|rules| rules.dialect == dialect)
    }

    /// Returns the profiles that are built in.
    pub(crate) fn profiles() -> Vec<Self> {
        vec![
            Self::openrouter(),
            Self::vercel(),
            Self::kimi(),
            Self::glm(),
            Self::gemini(),
            Self::vllm(),
            Self::llama_cpp(),
            Self::ollama(),
            Self::lm_studio(),
        ]
    }

    /// Routes to everybody, so what it is sent must suit the strictest: ids and arguments as Anthropic wants them.
    fn openrouter() -> Self {
        Self {
            name: Text::from_static("openrouter"),
            call_id: NameRule::up_to(64, Charset::Word),
            unique_call_ids: true,
            object_arguments: true,
            custom_tools: false,
            blank_text: false,
            parts_in_results: false,
            wording: Wording::Common,
            effort: EffortRule { has_none: true, has_max: true },
            selects_tools: false,
            ..Self::openai_chat()
        }
    }

    fn vercel() -> Self {
        Self { name: Text::from_static("vercel"), developer_role: false, ..Self::openrouter() }
    }

    /// Wants `reasoning_content` beside calls, as DeepSeek does, and refuses messages without a word.
    fn kimi() -> Self {
        Self { name: Text::from_static("kimi"), blank_text: false, unique_call_ids: true, ..Self::deepseek() }
    }

    /// Has DeepSeek's switch for reasoning, and does not want it back.
    fn glm() -> Self {
        Self {
            name: Text::from_static("glm"),
            blank_text: false,
            assistant_last: false,
            reasoning: ReasoningRule::default(),
            ..Self::deepseek()
        }
    }

    /// Gemini's compatible endpoint: from Gemini 3 on, a call without the mark of its model is refused, unless it
    /// says that it is another's.
    fn gemini() -> Self {
        Self {
            name: Text::from_static("gemini"),
            call_id: NameRule::up_to(64, Charset::Word),
            unique_call_ids: true,
            object_arguments: true,
            custom_tools: false,
            own_extensions: false,
            blank_text: false,
            parts_in_results: false,
            refusals: false,
            system: SystemRule::First,
            developer_role: false,
            user_first: true,
            assistant_last: false,
            reasoning: ReasoningRule { refused: true, ..ReasoningRule::default() },
            wording: Wording::Common,
            effort: EffortRule { has_none: true, has_max: false },
            selects_tools: false,
            marked_calls: true,
            ..Self::openai_chat()
        }
    }

    /// What it makes of a conversation is up to the model's template, and most of those are strict.
    fn vllm() -> Self {
        Self {
            name: Text::from_static("vllm"),
            call_id: NameRule::up_to(64, Charset::Word),
            refusals: false,
            ..Self::strict_chat()
        }
    }

    fn llama_cpp() -> Self {
        Self { name: Text::from_static("llama-cpp"), files: false, ..Self::vllm() }
    }

    fn ollama() -> Self {
        Self { name: Text::from_static("ollama"), files: false, ..Self::vllm() }
    }

    fn lm_studio() -> Self {
        Self { name: Text::from_static("lm-studio"), files: false, ..Self::vllm() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_by_where_it_holds() {
        let name =
            |host, port, dialect| Rules::of_place(host, port, dialect).map(|rules| rules.name.to_string());
        for (host, port, dialect, expected) in [
            ("api.openai.com", None, Dialect::Responses, Some("openai-responses")),
            ("api.openai.com", None, Dialect::Chat, Some("openai-chat")),
            ("API.Z.AI", None, Dialect::Chat, Some("glm")),
            ("api.z.ai", None, Dialect::Messages, None),
            ("127.0.0.1", Some(11_434), Dialect::Chat, Some("ollama")),
            ("localhost", Some(8_000), Dialect::Chat, None),
            ("example.com", None, Dialect::Chat, None),
        ] {
            assert_eq!(name(host, port, dialect).as_deref(), expected, "{host} {port:?} {dialect}");
        }
    }

    #[test]
    fn every_place_names_a_profile() {
        for (host, _, name) in PLACES {
            assert!(Rules::from_name(name).is_some(), "{host}");
        }
    }

    #[test]
    fn no_two_profiles_share_a_name() {
        let mut names: Vec<Text> = Rules::built_in().into_iter().map(|rules| rules.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
