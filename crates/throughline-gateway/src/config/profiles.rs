//! Profiles of the user's own: a rule set that is built in, and what differs from it.

use super::resolve::Resolver;
use serde::Deserialize;
use std::num::NonZeroUsize;
use throughline_core::{Charset, Rules, SystemRule, Text, Wording};

/// `[[profiles]]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSection {
    /// Its name.
    pub name: Option<String>,
    /// The profile that it starts from: one that is built in, or one further up in the file.
    pub base: Option<String>,
    /// The fewest characters of a call id.
    pub call_id_min: Option<NonZeroUsize>,
    /// The most characters of a call id.
    pub call_id_max: Option<NonZeroUsize>,
    /// What a call id is made of: `any`, `word` (letters, digits, `_`, `-`) or `alphanumeric`.
    pub call_id_chars: Option<CharsName>,
    /// Whether a call id may occur only once in a request.
    pub unique_call_ids: Option<bool>,
    /// The most characters of a tool's name.
    pub tool_name_max: Option<NonZeroUsize>,
    /// Whether arguments must be a JSON object.
    pub object_arguments: Option<bool>,
    /// Whether tools must be on offer as soon as the history has calls.
    pub tools_for_history: Option<bool>,
    /// Whether tools that take free text exist.
    pub custom_tools: Option<bool>,
    /// Whether hosted tools and unknown items may be sent back to it.
    pub own_extensions: Option<bool>,
    /// Whether a result may hold images and files.
    pub media_in_results: Option<bool>,
    /// Whether a result may have several parts.
    pub parts_in_results: Option<bool>,
    /// Whether files can be sent along.
    pub files: Option<bool>,
    /// Whether text without a visible character may be sent.
    pub blank_text: Option<bool>,
    /// Where system messages may stand: `anywhere`, `beside-or-within`, `beside` or `first`.
    pub system: Option<SystemName>,
    /// Whether `developer` is a role of its own.
    pub developer_role: Option<bool>,
    /// Whether the first message must be the user's.
    pub user_first: Option<bool>,
    /// Whether user and assistant must take turns.
    pub alternate: Option<bool>,
    /// Whether the user may speak right after tool results.
    pub user_after_results: Option<bool>,
    /// Whether the last message may be the assistant's.
    pub assistant_last: Option<bool>,
    /// Whether all reasoning is refused.
    pub reasoning_refused: Option<bool>,
    /// Whether reasoning without a seal is refused.
    pub reasoning_sealed: Option<bool>,
    /// Whether reasoning must stand beside calls, if only an empty one (`reasoning_content`).
    pub reasoning_with_calls: Option<bool>,
    /// Whether, while the model reasons, the turn under way must open with reasoning.
    pub reasoning_leads: Option<bool>,
    /// Whose words it has for settings: `own` (the dialect's provider's newest), `common`, or `closed` (Mistral's; others are refused).
    pub wording: Option<WordingName>,
    /// Whether `none` is an effort; else reasoning is switched off by a field of its own.
    pub effort_none: Option<bool>,
    /// Whether `max` is an effort.
    pub effort_max: Option<bool>,
    /// Whether it can be told that only some tools may be called.
    pub selects_tools: Option<bool>,
    /// Whether each call must carry its model's mark, as Gemini 3 wants.
    pub marked_calls: Option<bool>,
}

/// What ids are made of, as it is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum CharsName {
    /// Anything.
    Any,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Letters and digits.
    Alphanumeric,
}

/// Where system messages may stand, as it is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SystemName {
    /// Anywhere in the conversation.
    Anywhere,
    /// Beside the conversation, or as messages in it.
    BesideOrWithin,
    /// Only beside the conversation.
    Beside,
    /// Only as one message, the first.
    First,
}

/// Whose words a backend has, as it is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum WordingName {
    /// Those of the dialect's own provider.
    Own,
    /// Those that everybody took over from it.
    Common,
    /// Few of its own, and no others.
    Closed,
}

impl CharsName {
    const fn charset(self) -> Charset {
        match self {
            Self::Any => Charset::Any,
            Self::Word => Charset::Word,
            Self::Alphanumeric => Charset::Alphanumeric,
        }
    }
}

impl SystemName {
    const fn rule(self) -> SystemRule {
        match self {
            Self::Anywhere => SystemRule::Anywhere,
            Self::BesideOrWithin => SystemRule::BesideOrWithin,
            Self::Beside => SystemRule::Beside,
            Self::First => SystemRule::First,
        }
    }
}

impl WordingName {
    const fn wording(self) -> Wording {
        match self {
            Self::Own => Wording::Own,
            Self::Common => Wording::Common,
            Self::Closed => Wording::Closed,
        }
    }
}

/// Checks the profiles of a file, and returns them in its order.
pub(super) fn resolve_all(resolver: &mut Resolver<'_>, sections: &[ProfileSection]) -> Vec<Rules> {
    let mut profiles: Vec<Rules> = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let path = format!("profiles[{index}]");
        let Some(name) = section.name.as_deref().filter(|name| !name.is_empty()) else {
            resolver.problem(&format!("{path}.name"), "a profile needs a name");
            continue;
        };
        if find(&profiles, name).is_some() {
            resolver.problem(&format!("{path}.name"), format!("there is a profile `{name}` already"));
        }
        let base = section.base.as_deref().unwrap_or_default();
        let Some(base) = find(&profiles, base) else {
            let known = names(&profiles);
            let what = format!("no profile is called `{base}`; there are {known}");
            resolver.problem(&format!("{path}.base"), what);
            continue;
        };
        resolver.note_as(&format!("profiles.{name}.base"), &format!("{path}.base"), &*base.name);
        let rules = overridden(base, section);
        if rules.call_id.min > rules.call_id.max {
            let what = format!("no id has {} to {} characters", rules.call_id.min, rules.call_id.max);
            resolver.problem(&format!("{path}.call_id_max"), what);
        }
        profiles.push(Rules { name: Text::from(name), ..rules });
    }
    profiles
}

/// Returns the profile of that name: one of the user's own, or one that is built in.
pub(super) fn find(own: &[Rules], name: &str) -> Option<Rules> {
    own.iter().find(|rules| rules.name == name).cloned().or_else(|| Rules::from_name(name))
}

/// Returns the names of all profiles.
pub(super) fn names(own: &[Rules]) -> String {
    let all = Rules::built_in();
    let names: Vec<&str> = all.iter().chain(own).map(|rules| rules.name.as_str()).collect();
    names.join(", ")
}

fn overridden(base: Rules, section: &ProfileSection) -> Rules {
    let mut rules = base;
    set(&mut rules.call_id.min, section.call_id_min.map(NonZeroUsize::get));
    set(&mut rules.call_id.max, section.call_id_max.map(NonZeroUsize::get));
    set(&mut rules.call_id.charset, section.call_id_chars.map(CharsName::charset));
    set(&mut rules.unique_call_ids, section.unique_call_ids);
    set(&mut rules.tool_name.max, section.tool_name_max.map(NonZeroUsize::get));
    set(&mut rules.object_arguments, section.object_arguments);
    set(&mut rules.tools_for_history, section.tools_for_history);
    set(&mut rules.custom_tools, section.custom_tools);
    set(&mut rules.own_extensions, section.own_extensions);
    set(&mut rules.media_in_results, section.media_in_results);
    set(&mut rules.parts_in_results, section.parts_in_results);
    set(&mut rules.files, section.files);
    set(&mut rules.blank_text, section.blank_text);
    set(&mut rules.system, section.system.map(SystemName::rule));
    rest_overridden(rules, section)
}

fn rest_overridden(base: Rules, section: &ProfileSection) -> Rules {
    let mut rules = base;
    set(&mut rules.developer_role, section.developer_role);
    set(&mut rules.user_first, section.user_first);
    set(&mut rules.alternate, section.alternate);
    set(&mut rules.user_after_results, section.user_after_results);
    set(&mut rules.assistant_last, section.assistant_last);
    set(&mut rules.reasoning.refused, section.reasoning_refused);
    set(&mut rules.reasoning.needs_seal, section.reasoning_sealed);
    set(&mut rules.reasoning.required_with_calls, section.reasoning_with_calls);
    set(&mut rules.reasoning.leads_open_turn, section.reasoning_leads);
    set(&mut rules.wording, section.wording.map(WordingName::wording));
    set(&mut rules.effort.has_none, section.effort_none);
    set(&mut rules.effort.has_max, section.effort_max);
    set(&mut rules.selects_tools, section.selects_tools);
    set(&mut rules.marked_calls, section.marked_calls);
    rules
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}
