//! Rules: what a backend accepts, as data.
//!
//! The normaliser and the encoders read nothing but these. A backend that deviates gets a rule set of its own,
//! its *profile*, and not a branch in the code. The sets below are those of the dialects' own providers and of two
//! common families; `profiles.rs` has the others.

use crate::{Dialect, Text};

/// What a backend accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The name that users choose it by.
    pub name: Text,
    /// The dialect it speaks.
    pub dialect: Dialect,
    /// What a call id may look like.
    pub call_id: NameRule,
    /// Whether a call id may occur only once in a request.
    pub unique_call_ids: bool,
    /// What a tool name may look like.
    pub tool_name: NameRule,
    /// Whether arguments must be the text of a JSON object.
    pub object_arguments: bool,
    /// Whether tools must be on offer as soon as the history holds tool calls.
    pub tools_for_history: bool,
    /// Whether custom tools, which take free text, exist.
    pub custom_tools: bool,
    /// Whether tools can be declared in namespaces.
    pub namespaces: bool,
    /// Whether the target's own hosted tools and unknown items may be sent back to it.
    pub own_extensions: bool,
    /// Whether a result may hold images and files.
    pub media_in_results: bool,
    /// Whether a result may consist of several parts.
    pub parts_in_results: bool,
    /// Whether files can be sent along.
    pub files: bool,
    /// Whether a refusal is anything else than text.
    pub refusals: bool,
    /// Whether text without a visible character may be sent.
    pub blank_text: bool,
    /// Where system messages may stand.
    pub system: SystemRule,
    /// Whether `developer` is a role of its own.
    pub developer_role: bool,
    /// Whether the first message must be the user's.
    pub user_first: bool,
    /// Whether user and assistant must take turns.
    pub alternate: bool,
    /// Whether the user may speak right after tool results.
    pub user_after_results: bool,
    /// Whether the last message may be the assistant's.
    pub assistant_last: bool,
    /// What is demanded of reasoning.
    pub reasoning: ReasoningRule,
    /// Whose words it has for settings.
    pub wording: Wording,
    /// How much reasoning is asked for.
    pub effort: EffortRule,
    /// Whether it can be told that only some of the tools on offer may be called.
    pub selects_tools: bool,
    /// Whether every call must carry a mark of the model that made it, or one that says that it is another's.
    pub marked_calls: bool,
}

/// Whose words a backend has for settings, where a dialect has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Those of the dialect's own provider, the newest.
    Own,
    /// Those that everybody took over from it.
    Common,
    /// Few of its own; it refuses all others.
    Closed,
}

/// How much reasoning can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffortRule {
    /// Whether none is an effort; else reasoning has a switch of its own.
    pub has_none: bool,
    /// Whether there is an effort beyond the highest that the dialect's own provider has.
    pub has_max: bool,
}

/// What an id or a name may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRule {
    /// The fewest characters.
    pub min: usize,
    /// The most characters.
    pub max: usize,
    /// Which characters.
    pub charset: Charset,
}

/// A set of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Anything.
    Any,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Letters and digits.
    Alphanumeric,
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRule {
    /// Anywhere in the conversation.
    Anywhere,
    /// Beside the conversation, or as messages in it.
    BesideOrWithin,
    /// Only beside the conversation.
    Beside,
    /// Only as one message, the first.
    First,
}

/// What a backend demands of the reasoning that it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningRule {
    /// Whether all reasoning is rejected.
    pub refused: bool,
    /// Whether reasoning without a seal is rejected.
    pub needs_seal: bool,
    /// Whether reasoning must be followed by something in the same turn.
    pub needs_follower: bool,
    /// Whether an assistant turn with tool calls must carry reasoning, if only an empty one.
    pub required_with_calls: bool,
    /// Whether, while the model is asked to reason, the turn that is under way must open with reasoning.
    pub leads_open_turn: bool,
}

/// What is done with reasoning that a backend did not issue itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignReasoning {
    /// It is left out.
    #[default]
    Drop,
    /// What is readable of it is retold as text.
    AsText,
}

impl NameRule {
    /// Returns the rule of names with that many characters at most.
    #[must_use]
    pub const fn up_to(max: usize, charset: Charset) -> Self {
        Self { min: 1, max, charset }
    }

    /// Says whether `name` follows the rule.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        let length = name.chars().count();
        self.min <= length && length <= self.max && name.chars().all(|c| self.charset.contains(c))
    }
}

impl Charset {
    /// Says whether `c` is in the set.
    #[must_use]
    pub const fn contains(self, c: char) -> bool {
        match self {
            Self::Any => true,
            Self::Word => c.is_ascii_alphanumeric() || c == '_' || c == '-',
            Self::Alphanumeric => c.is_ascii_alphanumeric(),
        }
    }
}

impl Rules {
    /// Returns the rules that a dialect's own provider applies.
    #[must_use]
    pub fn of_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Self::openai_chat(),
            Dialect::Messages => Self::anthropic(),
            Dialect::Responses => Self::openai_responses(),
        }
    }

    /// Returns all rule sets that are built in.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        let of_dialects = [
            Self::openai_responses(),
            Self::anthropic(),
            Self::openai_chat(),
            Self::deepseek(),
            Self::mistral(),
            Self::strict_chat(),
        ];
        of_dialects.into_iter().chain(Self::profiles()).collect()
    }

    /// Returns the built-in rule set of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::built_in().into_iter().find(|rules| rules.name == name)
    }

    /// Returns the one name that stands for a tool and its namespace, where there are no namespaces.
    #[must_use]
    pub fn full_name(&self, namespace: Option<&Text>, name: &Text) -> Text {
        match namespace.filter(|_| !self.namespaces) {
            Some(namespace) => Text::from(format!("{namespace}__{name}")),
            None => name.clone(),
        }
    }

    fn openai_responses() -> Self {
        Self {
            name: Text::from_static("openai-responses"),
            dialect: Dialect::Responses,
            call_id: NameRule::up_to(64, Charset::Any),
            unique_call_ids: true,
            tool_name: NameRule::up_to(64, Charset::Word),
            object_arguments: false,
            tools_for_history: false,
            custom_tools: true,
            namespaces: true,
            own_extensions: true,
            media_in_results: true,
            parts_in_results: true,
            files: true,
            refusals: true,
            blank_text: true,
            system: SystemRule::BesideOrWithin,
            developer_role: true,
            user_first: false,
            alternate: false,
            user_after_results: true,
            assistant_last: true,
            reasoning: ReasoningRule { needs_follower: true, ..ReasoningRule::default() },
            wording: Wording::Own,
            effort: EffortRule { has_none: true, has_max: false },
            selects_tools: true,
            marked_calls: false,
        }
    }

    fn anthropic() -> Self {
        Self {
            name: Text::from_static("anthropic"),
            dialect: Dialect::Messages,
            call_id: NameRule::up_to(64, Charset::Word),
            tool_name: NameRule::up_to(64, Charset::Word),
            object_arguments: true,
            tools_for_history: true,
            custom_tools: false,
            namespaces: false,
            blank_text: false,
            system: SystemRule::Beside,
            developer_role: false,
            user_first: true,
            reasoning: ReasoningRule { needs_seal: true, leads_open_turn: true, ..ReasoningRule::default() },
            ..Self::openai_responses()
        }
    }

    pub(crate) fn openai_chat() -> Self {
        Self {
            name: Text::from_static("openai-chat"),
            dialect: Dialect::Chat,
            // "Expected a string with maximum length 40": newer models were seen to take 64, but not all do.
            call_id: NameRule::up_to(40, Charset::Any),
            unique_call_ids: false,
            namespaces: false,
            media_in_results: false,
            system: SystemRule::Anywhere,
            reasoning: ReasoningRule::default(),
            ..Self::openai_responses()
        }
    }

    pub(crate) fn deepseek() -> Self {
        Self {
            name: Text::from_static("deepseek"),
            call_id: NameRule::up_to(64, Charset::Word),
            object_arguments: true,
            custom_tools: false,
            parts_in_results: false,
            developer_role: false,
            reasoning: ReasoningRule { required_with_calls: true, ..ReasoningRule::default() },
            wording: Wording::Common,
            effort: EffortRule { has_none: false, has_max: true },
            selects_tools: false,
            ..Self::openai_chat()
        }
    }

    fn mistral() -> Self {
        Self {
            name: Text::from_static("mistral"),
            call_id: NameRule { min: 9, max: 9, charset: Charset::Alphanumeric },
            unique_call_ids: true,
            object_arguments: true,
            custom_tools: false,
            blank_text: false,
            parts_in_results: false,
            files: false,
            refusals: false,
            // A system message may follow another or the user, but no answer and no result.
            system: SystemRule::First,
            developer_role: false,
            user_after_results: false,
            assistant_last: false,
            reasoning: ReasoningRule { refused: true, ..ReasoningRule::default() },
            wording: Wording::Closed,
            effort: EffortRule { has_none: true, has_max: true },
            selects_tools: false,
            ..Self::openai_chat()
        }
    }

    pub(crate) fn strict_chat() -> Self {
        Self {
            name: Text::from_static("strict-chat"),
            call_id: NameRule::up_to(40, Charset::Word),
            unique_call_ids: true,
            object_arguments: true,
            custom_tools: false,
            own_extensions: false,
            blank_text: false,
            parts_in_results: false,
            system: SystemRule::First,
            developer_role: false,
            user_first: true,
            alternate: true,
            assistant_last: false,
            wording: Wording::Common,
            effort: EffortRule { has_none: true, has_max: true },
            selects_tools: false,
            ..Self::openai_chat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_set_is_found_by_its_name() {
        for rules in Rules::built_in() {
            assert_eq!(Rules::from_name(&rules.name), Some(rules));
        }
        assert_eq!(Rules::from_name("nobody"), None);
    }

    #[test]
    fn mistral_wants_exactly_nine_alphanumerics() {
        let rule = Rules::mistral().call_id;
        assert!(rule.admits("abcDEF123"));
        assert!(!rule.admits("abcDEF12"));
        assert!(!rule.admits("abc-EF123"));
    }
}
