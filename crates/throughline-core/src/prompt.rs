//! Prompts: what a backend will be given, in no dialect yet.

use crate::normalise::normalise;
use crate::{
    Action, Ask, Entry, ForeignReasoning, NameMap, Origin, Report, Rules, Strategy, Text, Tool, ToolChoice,
};

/// Whom a prompt is for, and how its history is to be shown.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// What the backend accepts.
    pub rules: &'a Rules,
    /// How tool history is shown.
    pub strategy: Strategy,
    /// Which backend and model it is, where that is known; decides whose reasoning is its own.
    pub origin: Option<Origin>,
    /// What is done with reasoning that it did not issue.
    pub foreign_reasoning: ForeignReasoning,
    /// The model name to send, if it is not the one that was asked for.
    pub model: Option<Text>,
}

/// What a backend will be given.
///
/// Promises to the encoders: every call in `entries` is followed by its result and every result preceded by
/// its call; all results of a batch stand right behind it; ids and names follow the target's rules;
/// only `Said`, `Thought`, `Called`, `Returned` and the target's own `Opaque` entries occur.
#[derive(Clone, Debug)]
pub struct Prompt<'a> {
    /// The request that it was made from, for the settings and for what goes out as it came.
    pub ask: &'a Ask,
    /// What the backend accepts.
    pub rules: &'a Rules,
    /// The model name to send.
    pub model: Option<Text>,
    /// The history to show.
    pub entries: Vec<Entry>,
    /// The tools to offer.
    pub tools: Vec<Tool>,
    /// Which of them may or must be called.
    pub tool_choice: Option<ToolChoice>,
    /// Whether the request for reasoning is to be left out.
    pub without_reasoning: bool,
    /// Tool names as declared, and as they are sent.
    pub names: NameMap,
    /// Call ids as they came, and as they are sent.
    pub ids: NameMap,
}

impl<'a> Target<'a> {
    /// Returns the target with those rules, shown native history, of unknown origin.
    #[must_use]
    pub fn new(rules: &'a Rules) -> Self {
        Self {
            rules,
            strategy: Strategy::Native,
            origin: None,
            foreign_reasoning: ForeignReasoning::Drop,
            model: None,
        }
    }
}

impl Prompt<'_> {
    /// Says whether the prompt is written in the dialect that the request came in.
    #[must_use]
    pub fn stays_in_dialect(&self) -> bool {
        self.ask.dialect == self.rules.dialect
    }
}

/// Turns a request into the prompt for one backend, and says what was changed for it.
#[must_use]
pub fn prepare<'a>(ask: &'a Ask, target: &Target<'a>) -> (Prompt<'a>, Report) {
    let mut report = Report { strategy: target.strategy.name(), ..Report::default() };
    let prompt = normalise(ask, target, &mut report);
    report_foreign_fields(&prompt, &mut report);
    (prompt, report)
}

fn report_foreign_fields(prompt: &Prompt<'_>, report: &mut Report) {
    if prompt.stays_in_dialect() {
        return;
    }
    for name in &prompt.ask.extras {
        let reason = format!("no counterpart in {}", prompt.rules.dialect);
        report.field(Action::Dropped, name.clone(), reason);
    }
}
