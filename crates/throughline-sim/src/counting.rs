//! What a prompt and an answer cost: four bytes of text are a token, an image is 256.

use crate::model::{Draft, tokens_of};
use throughline_core::{Ask, Content, Entry, Kind, Part, ToolForm, Usage};

const IMAGE_TOKENS: u64 = 256;

/// Returns how many tokens a prompt has.
pub(crate) fn prompt_tokens(ask: &Ask) -> u64 {
    let said: usize = ask.entries.iter().map(entry_bytes).sum();
    let offered: usize = ask
        .tools
        .iter()
        .map(|tool| {
            let described = tool.description.as_ref().map_or(0, |text| text.len());
            let taken = match &tool.form {
                ToolForm::Function { schema, .. } => schema.as_ref().map_or(0, |text| text.len()),
                ToolForm::Custom { format } => format.as_ref().map_or(0, |text| text.len()),
                ToolForm::Hosted { kind } => kind.len(),
            };
            tool.name.len() + described + taken
        })
        .sum();
    let images =
        ask.entries.iter().flat_map(parts_of).filter(|part| matches!(part.content, Content::Image(_)));
    tokens_of(said + offered) + IMAGE_TOKENS * images.count() as u64
}

/// Returns what an answer cost.
pub(crate) fn usage(draft: &Draft, input: u64) -> Usage {
    let reasoning = tokens_of(draft.reasoning.as_ref().map_or(0, String::len));
    let words = [&draft.text, &draft.refusal].into_iter().flatten().map(|text| tokens_of(text.len()));
    let calls = draft.calls.iter().map(|call| tokens_of(call.name.len() + call.input.text().len()));
    let output = reasoning + words.chain(calls).sum::<u64>();
    Usage { input, output, reasoning, ..Usage::default() }
}

fn parts_of(entry: &Entry) -> &[Part] {
    match &entry.kind {
        Kind::Said(said) => &said.parts,
        Kind::Returned(returned) => &returned.parts,
        _ => &[],
    }
}

fn entry_bytes(entry: &Entry) -> usize {
    let said: usize = parts_of(entry).iter().filter_map(Part::as_text).map(|text| text.len()).sum();
    let other = match &entry.kind {
        Kind::Thought(thought) => thought.summary.iter().chain(&thought.content).map(|text| text.len()).sum(),
        Kind::Called(call) => call.name.len() + call.input.text().len(),
        Kind::Summarised(summary) => summary.text.len(),
        _ => 0,
    };
    said + other
}
