//! Scripts: what the simulated backend answers, instead of thinking.
//!
//! A script is a JSON file with `turns`, which are answered one after the other whatever is asked, and
//! `rules`, which look at the prompt. The format is described in `docs/sim.md`; unknown fields are errors.

use crate::delivery::Manner;
use crate::model::{self, Draft, DraftCall, Scene};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use throughline_core::{Ask, Input, Stop, Text};

/// What the simulated backend answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Answers, in the order of the requests.
    #[serde(default)]
    turns: Vec<Turn>,
    /// What becomes of requests beyond the last turn.
    #[serde(default)]
    then: Then,
    /// What is called until when; asked before the turns.
    #[serde(default)]
    rules: Vec<Rule>,
}

/// What is wrong with a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is no JSON, or says something that scripts do not have.
    #[error("the script is not valid: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A turn says nothing, or two things at once.
    #[error("turns[{turn}]: {problem}")]
    Turn {
        /// Which one.
        turn: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is nothing in it.
    #[error("the script has neither `turns` nor `rules`")]
    Empty,
}

/// What becomes of requests beyond the last turn.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    /// The model thinks for itself.
    #[default]
    Think,
    /// The turns begin again.
    Repeat,
    /// The last turn is given again.
    Last,
}

/// One answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Turn {
    text: Option<String>,
    quote: bool,
    reasoning: Option<String>,
    redacted: bool,
    calls: Vec<ScriptedCall>,
    refusal: Option<String>,
    stop: Option<String>,
    error: Option<ScriptedError>,
    malformed: Option<String>,
    events: Vec<ScriptedEvent>,
    slow_ms: Option<u64>,
    cut_off: Option<usize>,
    hang: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    input: Option<String>,
}

/// An answer that is none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedError {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) code: Option<String>,
    /// The whole body, instead of an envelope around the message.
    #[serde(default)]
    pub(crate) body: Option<Value>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// An event as it is to be sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedEvent {
    #[serde(default)]
    pub(crate) event: Option<String>,
    pub(crate) data: Value,
}

/// What is called until so many results are seen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    call: String,
    #[serde(default = "one")]
    until: usize,
    #[serde(default = "one")]
    at_once: usize,
    #[serde(default)]
    arguments: Option<Value>,
}

/// What is done about a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It is answered, perhaps with an error behind what was said.
    Answer { draft: Draft, manner: Manner, error: Option<ScriptedError> },
    /// It is refused.
    Refuse(ScriptedError),
    /// These bytes are the body.
    Bytes { body: String, manner: Manner },
    /// These events are the stream.
    Events { events: Vec<ScriptedEvent>, manner: Manner },
}

impl Act {
    /// Returns the act of answering with what the model makes of it.
    pub(crate) fn thinking(ask: &Ask) -> Self {
        Self::Answer { draft: model::think(ask), manner: Manner::default(), error: None }
    }
}

const fn one() -> usize {
    1
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When it is no JSON, has fields that scripts do not have, or a turn that says nothing.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(text)?;
        if script.turns.is_empty() && script.rules.is_empty() {
            return Err(ScriptError::Empty);
        }
        for (turn, given) in script.turns.iter().enumerate() {
            given.check().map_err(|problem| ScriptError::Turn { turn, problem })?;
        }
        Ok(script)
    }

    /// Returns what is done about the request of that number, counted from zero.
    pub(crate) fn act(&self, number: usize, ask: &Ask) -> Act {
        let scene = Scene::of(&ask.entries);
        if !self.rules.is_empty() {
            let draft = self.by_rules(ask, &scene).limited(ask);
            return Act::Answer { draft, manner: Manner::default(), error: None };
        }
        let turn = match (self.turns.get(number), self.then) {
            (Some(turn), _) => Some(turn),
            (None, Then::Think) => None,
            (None, Then::Repeat) => self.turns.get(number % self.turns.len().max(1)),
            (None, Then::Last) => self.turns.last(),
        };
        turn.map_or_else(|| Act::thinking(ask), |turn| turn.act(ask, &scene))
    }

    /// Calls what the first rule says that has not seen its results; with none left, quotes the last result.
    fn by_rules(&self, ask: &Ask, scene: &Scene) -> Draft {
        let seen = scene.results.len();
        let Some(rule) = self.rules.iter().find(|rule| seen < rule.until) else {
            return Draft::saying(model::quote_last(scene));
        };
        let calls = (seen..rule.until).take(rule.at_once.max(1));
        Draft::calling(calls.map(|number| rule.call(number, ask, scene)).collect())
    }
}

impl Turn {
    fn check(&self) -> Result<(), &'static str> {
        let speaks = self.text.is_some()
            || self.quote
            || self.reasoning.is_some()
            || self.refusal.is_some()
            || !self.calls.is_empty();
        let ways = [speaks, self.malformed.is_some(), !self.events.is_empty()];
        match ways.iter().filter(|way| **way).count() {
            0 if self.error.is_none() && self.hang.is_none() => Err("says nothing"),
            0 | 1 => Ok(()),
            _ => Err("can only have one of: words and calls, `malformed`, `events`"),
        }
    }

    fn act(&self, ask: &Ask, scene: &Scene) -> Act {
        let manner =
            Manner { delay: self.slow_ms.map(Duration::from_millis), cut_off: self.cut_off, hang: self.hang };
        if let Some(body) = &self.malformed {
            return Act::Bytes { body: body.clone(), manner };
        }
        if !self.events.is_empty() {
            return Act::Events { events: self.events.clone(), manner };
        }
        let draft = self.draft(scene);
        match &self.error {
            Some(error) if draft == Draft::default() => Act::Refuse(error.clone()),
            error => Act::Answer { draft: draft.limited(ask), manner, error: error.clone() },
        }
    }

    fn draft(&self, scene: &Scene) -> Draft {
        let quoted = self.quote.then(|| model::quote_last(scene));
        let text = match (&self.text, quoted) {
            (Some(text), Some(quoted)) => Some(format!("{text}\n{quoted}")),
            (text, quoted) => quoted.or_else(|| text.clone()),
        };
        Draft {
            reasoning: self.reasoning.clone(),
            is_redacted: self.redacted,
            text,
            refusal: self.refusal.clone(),
            calls: self.calls.iter().map(ScriptedCall::draft).collect(),
            stop: self.stop.as_deref().map(stop_named),
        }
    }
}

impl ScriptedCall {
    fn draft(&self) -> DraftCall {
        let input = match (&self.input, &self.arguments) {
            (Some(input), _) => Input::Freeform(Text::from(input.as_str())),
            (None, arguments) => Input::Arguments(argument_text(arguments.as_ref())),
        };
        DraftCall { name: Text::from(self.name.as_str()), namespace: None, input }
    }
}

impl Rule {
    /// Returns the call of that number; `{n}` in its arguments is the number, counted from one.
    fn call(&self, number: usize, ask: &Ask, scene: &Scene) -> DraftCall {
        let mut call = model::call_by_name(ask, scene, &self.call);
        if let Some(arguments) = &self.arguments {
            let text = argument_text(Some(arguments)).replace("{n}", &(number + 1).to_string());
            call.input = Input::Arguments(text.into());
        }
        call
    }
}

/// Returns arguments as text; a string is taken as it is, so that they need not be JSON.
fn argument_text(arguments: Option<&Value>) -> Text {
    match arguments {
        None => Text::from_static("{}"),
        Some(Value::String(text)) => Text::from(text.as_str()),
        Some(value) => Text::from(value.to_string()),
    }
}

fn stop_named(name: &str) -> Stop {
    match name {
        "end_turn" => Stop::EndTurn,
        "tool_calls" => Stop::ToolCalls,
        "max_tokens" => Stop::MaxTokens,
        "context_window" => Stop::ContextWindow,
        "refusal" => Stop::Refusal,
        "filtered" => Stop::Filtered,
        "paused" => Stop::Paused,
        other => Stop::Other(Text::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn problem(script: &str) -> String {
        Script::parse(script).expect_err("a bad script").to_string()
    }

    #[test]
    fn bad_scripts_are_refused_with_the_place() {
        assert!(problem("{").contains("line 1"));
        assert!(problem(r#"{"turns":[{"txt":"x"}]}"#).contains("unknown field `txt`"));
        assert_eq!(problem(r#"{"turns":[{"text":"x"},{}]}"#), "turns[1]: says nothing");
        assert!(problem(r#"{"turns":[{"text":"x","malformed":"y"}]}"#).starts_with("turns[0]: can only"));
        assert_eq!(problem("{}"), "the script has neither `turns` nor `rules`");
    }

    #[test]
    fn a_string_of_arguments_is_taken_as_it_is() {
        assert_eq!(argument_text(Some(&Value::from("{\"a\": 1.10"))), "{\"a\": 1.10");
        assert_eq!(argument_text(Some(&serde_json::json!({ "a": 1 }))), "{\"a\":1}");
    }
}
