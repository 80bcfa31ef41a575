//! What a model's name says about the settings that it takes.
//!
//! The provider changed its mind on three settings from one model to the next, and answers 400 to the old
//! form: `thinking.budget_tokens` gave way to `thinking: adaptive` with an effort, sampling parameters were
//! removed, and before that `temperature` and `top_p` were made exclusive. Nothing in a request but the
//! model's name tells which form to write for a client that speaks another dialect.

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingForm {
    /// With a budget of tokens; also what other providers of this dialect understand.
    Budget,
    /// By itself, with an effort as a hint; a budget is still taken.
    Either,
    /// Only by itself, with an effort as a hint.
    Adaptive,
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// How it is asked to think.
    pub(super) thinking: ThinkingForm,
    /// Whether thinking can be turned off.
    pub(super) can_rest: bool,
    /// Whether it takes sampling parameters.
    pub(super) samples: bool,
    /// Whether it takes only one of `temperature` and `top_p`.
    pub(super) one_sampler: bool,
}

impl Generation {
    /// Returns what the model of that name takes; the oldest forms for a name that is not the provider's.
    pub(super) fn of(model: &str) -> Self {
        let version = version(model).unwrap_or((0, 0));
        let thinking = match version {
            (4, 6) => ThinkingForm::Either,
            version if version > (4, 6) => ThinkingForm::Adaptive,
            _ => ThinkingForm::Budget,
        };
        let can_rest = !["fable", "mythos"].iter().any(|family| model.contains(family));
        Self { thinking, can_rest, samples: version < (4, 7), one_sampler: version >= (4, 1) }
    }
}

/// Reads the version: `claude-3-7-sonnet-20250219` is 3.7, `claude-opus-4-20250514` is 4.0.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = &model[model.find("claude-")?..];
    let mut words = name.split(['-', '.', '@', ':']).skip_while(|word| number(word).is_none());
    let major = words.next().and_then(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

/// Reads a word of a version; a date is none.
fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|number| *number < 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_on_either_side_of_the_family() {
        for (model, expected) in [
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some((4, 5))),
            ("anthropic/claude-opus-4.6", Some((4, 6))),
            ("claude-opus-5", Some((5, 0))),
            ("glm-4.6", None),
            ("claude-next", None),
        ] {
            assert_eq!(version(model), expected, "{model}");
        }
    }

    #[test]
    fn newer_models_take_no_budget_and_no_sampling() {
        let opus = Generation::of("claude-opus-4-7");
        assert_eq!((opus.thinking, opus.samples), (ThinkingForm::Adaptive, false));
        let sonnet = Generation::of("claude-sonnet-4-5");
        assert_eq!((sonnet.thinking, sonnet.samples), (ThinkingForm::Budget, true));
        assert_eq!(Generation::of("glm-5.1").thinking, ThinkingForm::Budget);
    }
}
