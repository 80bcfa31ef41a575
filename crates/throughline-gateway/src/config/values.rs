//! Values that the configuration has a form of its own for. Each is read from TOML and from a variable alike.

use serde::Deserialize;
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use throughline_core::{Dialect, EmbedForm, ForeignReasoning, plan};

/// Whether something is done.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// In every case.
    Always,
    /// In no case.
    Never,
    /// As the backend allows, which is found out.
    #[default]
    Auto,
}

/// What becomes of a request whose history cannot be written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OnStoreFailure {
    /// It fails.
    #[default]
    Reject,
    /// It is answered, and the answer says that it was not recorded.
    Pass,
}

/// What becomes of reasoning in the history.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningPolicy {
    /// A backend's own goes back to it; other backends' is left out.
    #[default]
    KeepOwn,
    /// A backend's own goes back to it; what is readable of other backends' becomes text.
    AsText,
    /// All of it is left out.
    Drop,
}

/// How tool history is handed over to another backend.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverMode {
    /// As it is, rendered for the new backend.
    Native,
    /// As a brief, in text.
    Brief,
    /// Native where that works and fits, else as a brief.
    #[default]
    Auto,
}

/// Who writes the summary in a brief.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum HandoverSummary {
    /// Nobody.
    Off,
    /// Throughline, by rule.
    #[default]
    Digest,
    /// A model.
    Model,
}

/// What a tool does, as far as deduplication is concerned.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ToolKind {
    /// Reads something that can be read again.
    Read,
    /// Changes something.
    Write,
    /// Runs a command.
    Command,
    /// Searches.
    Search,
    /// Anything else.
    Other,
}

/// Which policy decides what is shortened.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Everything is tried, the gentlest first.
    #[default]
    Default,
    /// Old results are masked, and nothing is excerpted.
    Mask,
    /// Nothing is shortened: what does not fit is an error.
    Off,
}

/// How many tokens a whole prompt may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Budget {
    /// The backend's window less the reserve.
    #[default]
    Auto,
    /// That many.
    Tokens(u64),
}

/// A dialect, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialectName(pub Dialect);

/// A limit of time: a number of seconds, or a text such as `"500ms"`, `"10s"` or `"5m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Duration);

/// What clients may ask for and what is sent: a table of patterns, or a list of names sent as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models(pub BTreeMap<String, String>);

/// Reads a value from the text of a variable or a flag.
pub fn from_text<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, serde::de::value::Error> {
    T::deserialize(text.into_deserializer())
}

impl Choice {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
            Self::Auto => "auto",
        }
    }
}

impl OnStoreFailure {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Pass => "pass",
        }
    }
}

impl ReasoningPolicy {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KeepOwn => "keep-own",
            Self::AsText => "as-text",
            Self::Drop => "drop",
        }
    }

    /// Says whether reasoning goes back to the backend that issued it.
    #[must_use]
    pub const fn keeps_own(self) -> bool {
        !matches!(self, Self::Drop)
    }

    /// Returns what is done with reasoning that a backend did not issue.
    #[must_use]
    pub const fn foreign(self) -> ForeignReasoning {
        match self {
            Self::AsText => ForeignReasoning::AsText,
            Self::KeepOwn | Self::Drop => ForeignReasoning::Drop,
        }
    }
}

/// How results are written where tool history is sent as text.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum TextEmbed {
    /// `Context (tool result):` and the result, without the call.
    #[default]
    Plain,
    /// Call and result behind HTML comments that name them.
    Comments,
}

impl TextEmbed {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Comments => "comments",
        }
    }

    /// Returns the form that it means.
    #[must_use]
    pub const fn form(self) -> EmbedForm {
        match self {
            Self::Plain => EmbedForm::Plain,
            Self::Comments => EmbedForm::Comments,
        }
    }
}

impl HandoverMode {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Brief => "brief",
            Self::Auto => "auto",
        }
    }
}

impl HandoverSummary {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Digest => "digest",
            Self::Model => "model",
        }
    }
}

impl Policy {
    /// Returns the policy of the planner.
    #[must_use]
    pub const fn plans(self) -> plan::Policy {
        match self {
            Self::Default => plan::Policy::Default,
            Self::Mask => plan::Policy::Mask,
            Self::Off => plan::Policy::Off,
        }
    }

    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.plans().name()
    }
}

impl ToolKind {
    /// Returns the word that is written for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Command => "command",
            Self::Search => "search",
            Self::Other => "other",
        }
    }

    /// Returns the kind as the planner knows it.
    #[must_use]
    pub const fn plans(self) -> plan::ToolKind {
        match self {
            Self::Read => plan::ToolKind::Read,
            Self::Write => plan::ToolKind::Write,
            Self::Command => plan::ToolKind::Command,
            Self::Search => plan::ToolKind::Search,
            Self::Other => plan::ToolKind::Other,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Tokens(tokens) => write!(f, "{tokens}"),
        }
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) { write!(f, "{}s", millis / 1000) } else { write!(f, "{millis}ms") }
    }
}

impl TimeLimit {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().ok().filter(|number| *number > 0)?;
        match text[digits..].trim() {
            "ms" => Some(Self(Duration::from_millis(number))),
            "" | "s" => Some(Self(Duration::from_secs(number))),
            "m" => Some(Self(Duration::from_secs(number.checked_mul(60)?))),
            "h" => Some(Self(Duration::from_secs(number.checked_mul(3600)?))),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for DialectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Dialect::from_name(&name).map(Self).ok_or_else(|| {
            Error::custom(format!("unknown dialect `{name}`, expected `responses`, `messages` or `chat`"))
        })
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BudgetVisitor)
    }
}

impl<'de> Deserialize<'de> for TimeLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeLimitVisitor)
    }
}

impl<'de> Deserialize<'de> for Models {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelsVisitor)
    }
}

struct BudgetVisitor;

impl Visitor<'_> for BudgetVisitor {
    type Value = Budget;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`auto` or a number of tokens above zero")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Budget, E> {
        match u64::try_from(number) {
            Ok(tokens) if tokens > 0 => Ok(Budget::Tokens(tokens)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Budget, E> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Budget::Auto),
            (_, Ok(number)) => self.visit_i64(number),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

struct TimeLimitVisitor;

impl Visitor<'_> for TimeLimitVisitor {
    type Value = TimeLimit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time above zero, such as 10 (seconds), \"500ms\", \"10s\" or \"5m\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<TimeLimit, E> {
        match u64::try_from(number) {
            Ok(seconds) if seconds > 0 => Ok(TimeLimit(Duration::from_secs(seconds))),
            _ => Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TimeLimit, E> {
        TimeLimit::parse(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

struct ModelsVisitor;

impl<'de> Visitor<'de> for ModelsVisitor {
    type Value = Models;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table such as { \"*opus*\" = \"claude-opus-4-5\" } or a list of model names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Models, A::Error> {
        let mut models = BTreeMap::new();
        while let Some(name) = names.next_element::<String>()? {
            models.insert(name, "*".to_owned());
        }
        Ok(Models(models))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Models, A::Error> {
        let mut models = BTreeMap::new();
        while let Some((asked, sent)) = entries.next_entry::<String, String>()? {
            models.insert(asked, sent);
        }
        Ok(Models(models))
    }
}

/// A share, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Ratio(pub f64);

impl TryFrom<f64> for Ratio {
    type Error = &'static str;

    fn try_from(ratio: f64) -> Result<Self, Self::Error> {
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err("expected a number from 0 to 1") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in
            [("10", 10_000), ("10s", 10_000), ("500ms", 500), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(from_text(text), Ok(TimeLimit(Duration::from_millis(millis))), "{text}");
        }
        for wrong in ["", "0", "s", "-1", "1.5s", "10 parsecs", "99999999999999999999s"] {
            assert!(from_text::<TimeLimit>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(TimeLimit(Duration::from_secs(90)).to_string(), "90s");
        assert_eq!(TimeLimit(Duration::from_millis(1500)).to_string(), "1500ms");
    }

    #[test]
    fn a_budget_is_auto_or_a_number() {
        assert_eq!(from_text("auto"), Ok(Budget::Auto));
        assert_eq!(from_text("1000"), Ok(Budget::Tokens(1000)));
        for wrong in ["0", "-5", "lots"] {
            assert!(from_text::<Budget>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_read_as_they_are_shown() {
        for choice in [Choice::Always, Choice::Never, Choice::Auto] {
            assert_eq!(from_text(choice.name()), Ok(choice));
        }
        for policy in [ReasoningPolicy::KeepOwn, ReasoningPolicy::AsText, ReasoningPolicy::Drop] {
            assert_eq!(from_text(policy.name()), Ok(policy));
        }
        for mode in [HandoverMode::Native, HandoverMode::Brief, HandoverMode::Auto] {
            assert_eq!(from_text(mode.name()), Ok(mode));
        }
        let error = from_text::<Choice>("sometimes").unwrap_err().to_string();
        assert!(error.contains("always"), "{error}");
    }
}
