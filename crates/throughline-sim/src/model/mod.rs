//! The model behind the simulated backend: simple, deterministic, and of use.
//!
//! It reads canonical entries and knows no dialect. Whatever reaches it shows in what it says: it quotes the
//! results it was given, word for word, and says so when its prompt does not hold what it is asked for.
//! It reads no clock and draws no randomness; the same prompt gets the same answer.

mod arguments;
mod brief;
mod choose;
mod finds;
mod limits;
mod memory;
mod scene;
mod speech;
mod words;

pub(crate) use limits::tokens_of;
pub(crate) use scene::Scene;

use throughline_core::{Ask, Format, Input, Stop, Text, ToolChoice};

/// An answer before it has ids, seals and a price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// What it thought before it spoke.
    pub(crate) reasoning: Option<String>,
    /// Whether the thought is withheld, and only its sealed form is shown.
    pub(crate) is_redacted: bool,
    /// What it says.
    pub(crate) text: Option<String>,
    /// What it says when it refuses.
    pub(crate) refusal: Option<String>,
    /// The tools it calls.
    pub(crate) calls: Vec<DraftCall>,
    /// Why it stopped, where that is not plain from the rest.
    pub(crate) stop: Option<Stop>,
}

/// A call that has no id yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DraftCall {
    /// The tool's name.
    pub(crate) name: Text,
    /// The namespace that it was declared in.
    pub(crate) namespace: Option<Text>,
    /// What it is given.
    pub(crate) input: Input,
}

impl Draft {
    /// Returns an answer in words.
    pub(crate) fn saying(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Returns an answer that calls tools.
    pub(crate) fn calling(calls: Vec<DraftCall>) -> Self {
        Self { calls, ..Self::default() }
    }

    /// Keeps the answer within the limits of the request.
    pub(crate) fn limited(mut self, ask: &Ask) -> Self {
        limits::apply(&mut self, &ask.settings);
        self
    }
}

/// Answers a request.
pub(crate) fn think(ask: &Ask) -> Draft {
    let scene = Scene::of(&ask.entries);
    let mut draft = answer(ask, &scene);
    if is_asked_to_reason(ask) {
        draft.reasoning = Some(speech::reasoning(&scene, &draft));
    }
    draft.limited(ask)
}

/// Calls a tool by its name, with arguments taken from what the user said.
pub(crate) fn call_by_name(ask: &Ask, scene: &Scene, name: &str) -> DraftCall {
    choose::call_by_name(ask, scene, name)
}

/// Quotes the last result, or says that there is none.
pub(crate) fn quote_last(scene: &Scene) -> String {
    scene.results.last().map_or_else(
        || "No tool result has reached me.".to_owned(),
        |last| speech::quote(std::slice::from_ref(last)),
    )
}

/// Says whether the request wants the model to reason.
pub(crate) fn is_asked_to_reason(ask: &Ask) -> bool {
    ask.settings.reasoning.as_ref().is_some_and(|reasoning| !reasoning.is_off())
}

fn answer(ask: &Ask, scene: &Scene) -> Draft {
    let must_call = matches!(
        ask.tool_choice,
        Some(ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Allowed { required: true, .. })
    );
    let text = match (must_call, scene.fresh()) {
        (true, _) => None,
        (false, [_, ..]) => Some(speech::quote(scene.fresh())),
        (false, []) if memory::is_asked(&scene.wish) => Some(memory::recall(scene)),
        (false, []) => None,
    };
    let Some(text) = text else {
        let calls = choose::plan(ask, scene);
        if calls.is_empty() {
            return Draft::saying(formatted(ask, scene, speech::describe(scene)));
        }
        return Draft::calling(calls);
    };
    Draft::saying(formatted(ask, scene, text))
}

/// Puts the words into the form that was asked for.
fn formatted(ask: &Ask, scene: &Scene, text: String) -> String {
    match &ask.settings.format {
        Some(Format::JsonSchema { schema, .. }) => arguments::answer(schema, &scene.wish, &text),
        Some(Format::JsonObject) => serde_json::json!({ "answer": text }).to_string(),
        Some(Format::Text) | None => text,
    }
}

#[cfg(test)]
mod tests;
