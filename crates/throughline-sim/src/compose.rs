//! From a draft to an answer: ids, seals, the price; and the frames of it as a stream.

use crate::counting;
use crate::model::{Draft, DraftCall};
use crate::seal::Sealer;
use throughline_core::{
    Ask, BlockKind, Call, Content, Dialect, Ending, Entry, Frame, Input, Kind, Part, Piece, Reply, Role,
    Said, Seal, Stop, Text, Thought, Usage,
};
use throughline_validate::Provider;

/// How many bytes of text a delta has.
const DELTA_BYTES: usize = 24;
/// The most characters that Mistral allows, and demands, of an id.
const MISTRAL_ID_LEN: usize = 9;

/// What an answer is made with.
pub(crate) struct Composer<'a> {
    /// The request, with all its history.
    pub(crate) prompt: &'a Ask,
    /// Who issues ids and seals.
    pub(crate) sealer: &'a Sealer,
    /// Whose rules hold.
    pub(crate) provider: Provider,
    /// What distinguishes this answer from others.
    pub(crate) answer_id: &'a str,
}

impl Composer<'_> {
    /// Makes the answer.
    pub(crate) fn reply(&self, draft: &Draft) -> Reply {
        let mut entries = Vec::new();
        entries.extend(draft.reasoning.as_ref().and_then(|text| self.thought(text, draft.is_redacted)));
        let text = draft.text.as_ref().filter(|text| !text.is_empty());
        entries.extend(text.map(|text| Entry::said(Role::Assistant, text.as_str())));
        entries.extend(draft.refusal.as_ref().map(|text| refusal(text)));
        entries.extend(draft.calls.iter().enumerate().map(|(index, call)| self.call(index, call)));
        Reply {
            id: None,
            model: self.prompt.model.clone(),
            entries,
            ending: Ending::Stopped(stop_of(draft)),
            usage: Some(counting::usage(draft, counting::prompt_tokens(self.prompt))),
            fields: None,
        }
    }

    fn model(&self) -> &str {
        self.prompt.model.as_deref().unwrap_or_default()
    }

    /// Returns a thought in the form that the dialect shows; none where it shows none.
    fn thought(&self, text: &str, is_redacted: bool) -> Option<Entry> {
        let shown = || vec![Text::from(text)];
        let thought = match self.prompt.dialect {
            Dialect::Messages if is_redacted => {
                let seal = Seal::Redacted(self.sealer.sealed(self.model(), text).into());
                Thought { seal: Some(seal), ..Thought::default() }
            }
            Dialect::Messages => {
                let seal = Seal::Signature(self.sealer.signature(self.model(), text).into());
                Thought { content: shown(), seal: Some(seal), ..Thought::default() }
            }
            Dialect::Responses => {
                let asked = self.prompt.settings.reasoning.as_ref();
                let is_summarised = asked.is_some_and(|reasoning| reasoning.summary.is_some());
                let seal = || Seal::Encrypted(self.sealer.sealed(self.model(), text).into());
                Thought {
                    summary: if is_summarised { shown() } else { Vec::new() },
                    seal: self.includes_seals().then(seal),
                    ..Thought::default()
                }
            }
            // OpenAI and Mistral keep it to themselves; others show it.
            Dialect::Chat if !self.provider.shows_reasoning() => return None,
            Dialect::Chat => Thought { content: shown(), ..Thought::default() },
        };
        Some(Entry::new(Kind::Thought(thought)))
    }

    /// Says whether a Responses request asks for reasoning in its encrypted form.
    fn includes_seals(&self) -> bool {
        let include = self.prompt.fields.iter().find(|field| field.name == "include");
        include.is_some_and(|field| field.value.contains("reasoning.encrypted_content"))
    }

    fn call(&self, index: usize, call: &DraftCall) -> Entry {
        let id = self.sealer.id(&["call", self.answer_id, &index.to_string()]);
        let id = match (self.prompt.dialect, self.provider) {
            (Dialect::Messages, _) => format!("toolu_{id}"),
            (_, Provider::Mistral) => id[..MISTRAL_ID_LEN].to_owned(),
            _ => format!("call_{id}"),
        };
        Entry::new(Kind::Called(Call {
            id: id.into(),
            item_id: None,
            name: call.name.clone(),
            namespace: call.namespace.clone(),
            input: call.input.clone(),
        }))
    }
}

fn refusal(text: &str) -> Entry {
    let part = Part { content: Content::Refusal(Text::from(text)), wire: None };
    Entry::new(Kind::Said(Said { role: Role::Assistant, parts: vec![part], standing: false }))
}

fn stop_of(draft: &Draft) -> Stop {
    match &draft.stop {
        Some(stop) => stop.clone(),
        None if draft.refusal.is_some() => Stop::Refusal,
        None if !draft.calls.is_empty() => Stop::ToolCalls,
        None => Stop::EndTurn,
    }
}

/// Returns the frames that a reply is streamed as.
pub(crate) fn frames(reply: &Reply) -> Vec<Frame> {
    let usage = reply.usage.unwrap_or_default();
    let mut frames = vec![
        Frame::Opened { id: reply.id.clone(), model: reply.model.clone() },
        Frame::Used(Usage { input: usage.input, ..Usage::default() }),
    ];
    for (block, entry) in (0..).zip(&reply.entries) {
        if let Some((kind, pieces)) = block_of(entry) {
            frames.push(Frame::Begun { block, kind });
            frames.extend(pieces.into_iter().map(|piece| Frame::Grew { block, piece }));
            frames.push(Frame::Ended { block });
        }
    }
    frames.push(Frame::Used(usage));
    frames.push(Frame::Closed(reply.ending.clone()));
    frames
}

fn block_of(entry: &Entry) -> Option<(BlockKind, Vec<Piece>)> {
    match &entry.kind {
        Kind::Said(said) => match &said.parts.first()?.content {
            Content::Refusal(text) => Some((BlockKind::Refusal { item_id: None }, texts(text))),
            Content::Text(text) => Some((BlockKind::Text { item_id: None }, texts(text))),
            _ => None,
        },
        Kind::Thought(thought) => {
            let mut pieces = Vec::new();
            for (index, text) in (0..).zip(&thought.summary) {
                pieces.extend(deltas(text).map(|text| Piece::Summary { index, text }));
            }
            pieces.extend(thought.content.iter().flat_map(deltas).map(Piece::Reasoning));
            pieces.extend(thought.seal.clone().map(Piece::Seal));
            Some((BlockKind::Thought { item_id: None }, pieces))
        }
        Kind::Called(call) => {
            let kind = BlockKind::Call {
                id: call.id.clone(),
                item_id: None,
                name: call.name.clone(),
                namespace: call.namespace.clone(),
                freeform: matches!(call.input, Input::Freeform(_)),
            };
            Some((kind, texts(call.input.text())))
        }
        _ => None,
    }
}

fn texts(text: &Text) -> Vec<Piece> {
    deltas(text).map(Piece::Text).collect()
}

/// Cuts a text into deltas, never inside a character.
fn deltas(text: &Text) -> impl Iterator<Item = Text> + use<> {
    let mut deltas = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let mut end = DELTA_BYTES.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (delta, after) = rest.split_at(end);
        deltas.push(Text::from(delta));
        rest = after;
    }
    deltas.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_the_text_and_no_character_is_split() {
        let text = Text::from("aé".repeat(40));
        let joined: String = deltas(&text).map(|delta| delta.as_str().to_owned()).collect();
        assert_eq!(joined, text.as_str());
        assert!(deltas(&text).count() > 3);
    }
}
