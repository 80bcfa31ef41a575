//! The request to reason, both ways.
//!
//! Three fields play together: `thinking` says how, `output_config.effort` how hard, and `max_tokens` must
//! leave room for it. Other dialects name an effort and count reasoning into their token limit. Where the
//! model wants a budget, the effort is looked up in a table and cut to half of the client's limit. A limit
//! that the client did not give is the default and that budget on top, whichever form the model takes.

use super::generation::{Generation, ThinkingForm};
use super::kept::{given, given_number, given_text};
use crate::json::{DecodeError, Node, Writer};
use throughline_core::{Action, Prompt, Reasoning, Report, Text};

/// What `max_tokens` is when the client sets no limit; the field is required.
pub(super) const DEFAULT_MAX_TOKENS: u64 = 8192;

/// The least budget that is accepted.
const BUDGET_MIN: u64 = 1024;

/// The budget of a client that wants reasoning and does not say how much.
const BUDGET_UNSAID: u64 = 8192;

/// Efforts in the words of any dialect, the budget that each stands for, and this dialect's word.
const EFFORTS: [(&str, u64, &str); 6] = [
    ("minimal", 1024, "low"),
    ("low", 2048, "low"),
    ("medium", 8192, "medium"),
    ("high", 16_384, "high"),
    ("xhigh", 32_768, "xhigh"),
    ("max", 32_768, "max"),
];

/// Reads `thinking` and `output_config.effort`.
pub(super) fn decode(root: Node<'_>) -> Result<Option<Reasoning>, DecodeError> {
    let effort = match given(root, "output_config") {
        Some(config) => given_text(config.expect_object()?, "effort")?,
        None => None,
    };
    let Some(thinking) = given(root, "thinking") else {
        return Ok(effort.map(|effort| Reasoning { effort: Some(effort), ..Reasoning::default() }));
    };
    let kind = thinking.expect_field("type")?.expect_text()?;
    if kind == "disabled" {
        return Ok(Some(Reasoning { effort: Some(Text::from_static("none")), ..Reasoning::default() }));
    }
    let budget = given_number(thinking, "budget_tokens")?;
    let shown = given_text(thinking, "display")?.is_some_and(|display| display == "summarized");
    let summary = shown.then_some(Text::from_static("auto"));
    Ok(Some(Reasoning { effort, budget, summary }))
}

/// How a request that came in another dialect asks the model to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The limit of tokens.
    pub(super) max_tokens: u64,
    /// What becomes of `thinking`.
    pub(super) thinking: Thinking,
    /// What becomes of `output_config.effort`.
    pub(super) effort: Option<&'static str>,
    /// Whether the client wants to read along, which newer models do not offer unasked.
    shows: bool,
}

/// What becomes of `thinking`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It is not mentioned.
    Unasked,
    /// It is turned off.
    Off,
    /// It gets that many tokens.
    Budget(u64),
    /// The model decides.
    Adaptive,
}

impl Plan {
    /// Says whether the model is asked to think, which other settings must respect.
    pub(super) const fn thinks(&self) -> bool {
        matches!(self.thinking, Thinking::Budget(_) | Thinking::Adaptive)
    }

    /// Writes `thinking`.
    pub(super) fn write_thinking(&self, writer: &mut Writer) {
        let kind = match self.thinking {
            Thinking::Unasked => return,
            Thinking::Off => "disabled",
            Thinking::Budget(_) => "enabled",
            Thinking::Adaptive => "adaptive",
        };
        writer.key("thinking");
        writer.begin_object();
        writer.field_str("type", kind);
        if let Thinking::Budget(budget) = self.thinking {
            writer.field_uint("budget_tokens", budget);
        }
        if self.shows && self.thinking == Thinking::Adaptive {
            writer.field_str("display", "summarized");
        }
        writer.end_object();
    }
}

/// Decides how to ask for reasoning, and with which limit.
pub(super) fn plan(prompt: &Prompt<'_>, model: Generation, report: &mut Report) -> Plan {
    let settings = &prompt.ask.settings;
    let limit = settings.max_output_tokens.as_ref().and_then(|limit| whole(limit));
    let mut plan = Plan {
        max_tokens: limit.unwrap_or(DEFAULT_MAX_TOKENS),
        thinking: Thinking::Unasked,
        effort: None,
        shows: settings.reasoning.as_ref().is_some_and(|reasoning| reasoning.summary.is_some()),
    };
    let asked = settings.reasoning.as_ref().filter(|_| !prompt.without_reasoning);
    if let Some(reasoning) = asked {
        ask_for(&mut plan, reasoning, model, limit, report);
    }
    if limit.is_none() {
        let reason = format!("it is required here, and was set to {}", plan.max_tokens);
        report.field(Action::Translated, "max_tokens", reason);
    }
    plan
}

fn ask_for(
    plan: &mut Plan,
    reasoning: &Reasoning,
    model: Generation,
    limit: Option<u64>,
    report: &mut Report,
) {
    if reasoning.is_off() {
        plan.thinking = if model.can_rest { Thinking::Off } else { Thinking::Unasked };
        return;
    }
    let budget = reasoning.budget.as_ref().and_then(|budget| whole(budget));
    let adaptive = match model.thinking {
        ThinkingForm::Budget => false,
        ThinkingForm::Either => budget.is_none(),
        ThinkingForm::Adaptive => true,
    };
    let word = reasoning.effort.as_deref();
    let known = EFFORTS.iter().find(|(effort, ..)| Some(*effort) == word);
    if word.is_some() && known.is_none() {
        report.field(Action::Dropped, "reasoning", "an effort that is not known here");
    }
    if adaptive {
        plan.thinking = Thinking::Adaptive;
        let room = budget.or(known.map(|(_, budget, _)| *budget)).unwrap_or(BUDGET_UNSAID);
        plan.max_tokens = limit.unwrap_or(DEFAULT_MAX_TOKENS + room);
        plan.effort =
            known.map(|(.., own)| *own).or_else(|| budget.map(effort_of)).map(|own| within(own, model));
        if word.is_none() && budget.is_some() {
            report.field(Action::Translated, "reasoning", "this model takes an effort in place of a budget");
        }
        return;
    }
    let wanted = budget.or(known.map(|(_, budget, _)| *budget)).unwrap_or(BUDGET_UNSAID);
    give_budget(plan, wanted, limit, report);
}

fn give_budget(plan: &mut Plan, wanted: u64, limit: Option<u64>, report: &mut Report) {
    let budget = limit.map_or(wanted, |limit| wanted.min(limit / 2)).max(BUDGET_MIN);
    match limit {
        Some(limit) if limit <= budget => {
            let reason = format!("a limit of {limit} tokens leaves no room for it");
            return report.field(Action::Dropped, "reasoning", reason);
        }
        Some(_) => {}
        None => plan.max_tokens = DEFAULT_MAX_TOKENS + budget,
    }
    plan.thinking = Thinking::Budget(budget);
    report.field(
        Action::Translated,
        "reasoning",
        format!("this model takes a budget, which is {budget} tokens"),
    );
}

/// Returns the effort that a budget comes closest to.
fn effort_of(budget: u64) -> &'static str {
    let fits = EFFORTS[1..].iter().find(|(_, most, _)| budget <= *most);
    fits.map_or("max", |(.., own)| own)
}

/// Returns an effort that the model knows: `xhigh` came with the models that think only by themselves.
fn within(effort: &'static str, model: Generation) -> &'static str {
    if effort == "xhigh" && model.thinking == ThinkingForm::Either { "max" } else { effort }
}

/// Reads a number of tokens; one that is written `1e4` counts too.
fn whole(number: &str) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
    let rounded = |float: f64| (0.0..9e15).contains(&float).then_some(float as u64);
    number.parse().ok().or_else(|| number.parse().ok().and_then(rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(limit: Option<u64>, effort: &str, model: &str) -> (Plan, Report) {
        let mut report = Report::default();
        let mut plan = Plan {
            max_tokens: limit.unwrap_or(DEFAULT_MAX_TOKENS),
            thinking: Thinking::Unasked,
            effort: None,
            shows: false,
        };
        let reasoning = Reasoning { effort: Some(effort.into()), ..Reasoning::default() };
        ask_for(&mut plan, &reasoning, Generation::of(model), limit, &mut report);
        (plan, report)
    }

    #[test]
    fn the_budget_stays_below_the_limit() {
        let (plan, _) = planned(Some(4096), "high", "claude-sonnet-4-5");
        assert_eq!((plan.thinking, plan.max_tokens), (Thinking::Budget(2048), 4096));
        let (plan, _) = planned(None, "high", "claude-sonnet-4-5");
        assert_eq!((plan.thinking, plan.max_tokens), (Thinking::Budget(16_384), 8192 + 16_384));
    }

    #[test]
    fn a_limit_without_room_means_no_thinking() {
        let (plan, report) = planned(Some(1024), "low", "claude-sonnet-4-5");
        assert_eq!(plan.thinking, Thinking::Unasked);
        assert_eq!(report.count(Action::Dropped), 1);
    }

    #[test]
    fn models_that_think_by_themselves_get_an_effort() {
        let (plan, report) = planned(Some(1000), "minimal", "claude-opus-5");
        assert_eq!((plan.thinking, plan.effort), (Thinking::Adaptive, Some("low")));
        assert_eq!(report.changes, []);
        let (plan, _) = planned(None, "xhigh", "claude-opus-4-6");
        assert_eq!((plan.effort, plan.max_tokens), (Some("max"), 8192 + 32_768));
    }

    #[test]
    fn none_turns_it_off_where_that_is_possible() {
        assert_eq!(planned(None, "none", "claude-opus-5").0.thinking, Thinking::Off);
        assert_eq!(planned(None, "none", "claude-fable-5").0.thinking, Thinking::Unasked);
    }
}
