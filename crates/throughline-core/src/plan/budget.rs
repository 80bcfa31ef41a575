//! The budget: how much a prompt may have, and how hard the planner works for it (R06).

use super::Tokens;

/// How many tokens a prompt may have, and what is done when it has more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most that the whole prompt may have; without it there is no such limit.
    pub prompt: Option<Tokens>,
    /// What of it is kept free for the answer.
    pub reserve: Tokens,
    /// The most that calls and results together may have before they are shortened; `truncation_threshold`.
    pub tool_history: Option<Tokens>,
    /// How many of the latest calls stay whole unless they alone exceed the limit; then the largest are excerpted
    /// first, and none is dropped. Without it, a few stay whole while that leaves enough room for what is older.
    pub recent_calls_to_keep: Option<usize>,
    /// Down to how many hundredths of the limit a step frees, so that the next one is far away.
    pub target_percent: u64,
    /// What may be done at all.
    pub policy: Policy,
}

/// What the planner may do when a prompt is too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Everything, the gentlest first.
    #[default]
    Default,
    /// No excerpts: old results are masked, from the oldest on.
    Mask,
    /// Nothing: a prompt that does not fit is an error.
    Off,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            prompt: None,
            reserve: Tokens(0),
            tool_history: None,
            recent_calls_to_keep: None,
            target_percent: 35,
            policy: Policy::Default,
        }
    }
}

impl Budget {
    /// Returns the most that the prompt may have, with the reserve kept free.
    #[must_use]
    pub fn limit(&self) -> Option<Tokens> {
        self.prompt.map(|prompt| prompt.less(self.reserve))
    }
}

impl Budget {
    /// Returns the same with a prompt of at most so many tokens; nothing if it is held to fewer already.
    #[must_use]
    pub fn below(&self, tokens: Tokens) -> Option<Self> {
        let is_lower = self.limit().is_none_or(|limit| tokens < limit);
        is_lower.then(|| Self { prompt: Some(tokens), reserve: Tokens(0), ..self.clone() })
    }
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Default, Self::Mask, Self::Off];

    /// Returns the name that the configuration knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Mask => "mask",
            Self::Off => "off",
        }
    }

    /// Returns the policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}
