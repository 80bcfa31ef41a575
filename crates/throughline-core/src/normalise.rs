//! The normaliser.
use crate::{Ask, Prompt, Report, Target, NameMap};
pub(crate) fn normalise<'a>(ask: &'a Ask, target: &Target<'a>, _report: &mut Report) -> Prompt<'a> {
    Prompt { ask, rules: target.rules, model: target.model.clone().or_else(|| ask.model.clone()), entries: ask.entries.clone(), tools: ask.tools.clone(), tool_choice: ask.tool_choice.clone(), without_reasoning: false, names: NameMap::default(), ids: NameMap::default() }
}
