//! Entries as they are kept: their words, their wire form and their envelope, redacted alike.

use super::Privacy;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_core::{Content, Entry, Envelope, Input, Kind, Media, Part, Seal, Text, Thought, Wire};
use throughline_store::{Chain, chain};

/// The envelope before and after, so that entries of one message still share it.
type LastEnvelope = Option<(Arc<Envelope>, Arc<Envelope>)>;

impl Privacy {
    /// Returns entries as they are kept.
    #[must_use]
    pub fn entries<'e>(&self, entries: &'e [Entry]) -> Cow<'e, [Entry]> {
        if !self.is_active() {
            return Cow::Borrowed(entries);
        }
        let mut last = None;
        Cow::Owned(entries.iter().map(|entry| self.entry(entry, &mut last)).collect())
    }

    /// Puts what a client said back into a history that was read from the record: the record has it redacted, and
    /// the backend is to be shown what was said.
    pub fn restore(&self, history: &mut [Entry], said: &[Entry]) {
        if !self.is_active() {
            return;
        }
        let kept = self.entries(said);
        let changed = said.iter().zip(kept.iter()).filter(|(said, kept)| said.kind != kept.kind);
        let originals: BTreeMap<Chain, &Entry> =
            changed.filter_map(|(said, kept)| Some((alone(kept)?, said))).collect();
        if originals.is_empty() {
            return;
        }
        for entry in history {
            if let Some(original) = alone(entry).and_then(|saying| originals.get(&saying)) {
                *entry = Entry { origin: entry.origin.clone(), ..(*original).clone() };
            }
        }
    }

    fn entry(&self, entry: &Entry, last: &mut LastEnvelope) -> Entry {
        let is_signed =
            |thought: &Thought| matches!(thought.seal, Some(Seal::Signature(_) | Seal::Redacted(_)));
        let kind = match &entry.kind {
            Kind::Thought(thought) if is_signed(thought) => entry.kind.clone(),
            kind => self.kind(kind),
        };
        let wire = match &entry.kind {
            Kind::Thought(thought) if is_signed(thought) => entry.wire.clone(),
            _ => entry.wire.as_ref().map(|wire| self.wire(wire)),
        };
        let envelope =
            entry.envelope.as_ref().map(|(envelope, place)| (self.envelope(envelope, last), *place));
        Entry { kind, wire, envelope, ..entry.clone() }
    }

    fn kind(&self, kind: &Kind) -> Kind {
        let mut kind = kind.clone();
        match &mut kind {
            Kind::Said(said) => self.parts(&mut said.parts),
            Kind::Returned(returned) => self.parts(&mut returned.parts),
            Kind::Thought(thought) => {
                thought
                    .summary
                    .iter_mut()
                    .chain(&mut thought.content)
                    .for_each(|text| *text = self.kept(text));
            }
            Kind::Called(call) => {
                call.input = match &call.input {
                    Input::Arguments(text) => Input::Arguments(self.kept(text)),
                    Input::Freeform(text) => Input::Freeform(self.kept(text)),
                };
            }
            Kind::HandedOver(handover) => {
                handover.reason = self.kept(&handover.reason);
                handover.brief = handover.brief.as_ref().map(|brief| self.kept(brief));
            }
            Kind::Summarised(summary) => summary.text = self.kept(&summary.text),
            _ => {}
        }
        kind
    }

    fn parts(&self, parts: &mut [Part]) {
        for part in parts {
            match &mut part.content {
                Content::Text(text) | Content::Refusal(text) => *text = self.kept(text),
                Content::File(file) => {
                    if let Media::Plain(text) = &mut file.media {
                        *text = self.kept(text);
                    }
                }
                _ => {}
            }
            part.wire = part.wire.as_ref().map(|wire| self.wire(wire));
        }
    }

    fn wire(&self, wire: &Wire) -> Wire {
        let mut wire = wire.clone();
        wire.text = self.kept(&wire.text);
        for extra in &mut wire.extras {
            extra.value = self.kept(&extra.value);
        }
        wire
    }

    fn envelope(&self, envelope: &Arc<Envelope>, last: &mut LastEnvelope) -> Arc<Envelope> {
        if let Some((before, after)) = last
            && Arc::ptr_eq(before, envelope)
        {
            return Arc::clone(after);
        }
        let wire = self.wire(&envelope.wire);
        let redacted = if wire == envelope.wire {
            Arc::clone(envelope)
        } else {
            Arc::new(Envelope { wire, entries: envelope.entries })
        };
        *last = Some((Arc::clone(envelope), Arc::clone(&redacted)));
        redacted
    }
}

/// Returns what an entry says by itself; nothing if it is silent.
fn alone(entry: &Entry) -> Option<Chain> {
    // Behind any word: before the first one, the operator's count for nothing.
    let behind = chain(Chain::ROOT, &Entry::said(throughline_core::Role::User, Text::from_static("")));
    Some(chain(behind, entry)).filter(|chain| *chain != behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::SECRETS;
    use throughline_core::{Dialect, Role};
    use throughline_store::chains;
    use throughline_wire::decode_request;

    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

    fn entries() -> Vec<Entry> {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"key {KEY}"}},{{"role":"assistant","content":null,
            "tool_calls":[{{"id":"c","type":"function","function":{{"name":"bash","arguments":"{{\"command\":\"use {KEY}\"}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"got {KEY}"}}]}}"#
        );
        decode_request(Dialect::Chat, body).unwrap().entries
    }

    #[test]
    fn nothing_of_an_entry_holds_the_secret() {
        let privacy = Privacy::new(SECRETS).unwrap();
        let kept = privacy.entries(&entries()).into_owned();
        assert!(!format!("{kept:?}").contains(KEY));
        assert_eq!(privacy.entries(&kept).into_owned(), kept, "what is redacted stays as it is");
        assert_ne!(chains(&kept), chains(&entries()));
    }

    #[test]
    fn what_a_client_said_is_put_back() {
        let privacy = Privacy::new(SECRETS).unwrap();
        let said = entries();
        let mut history = privacy.entries(&said).into_owned();
        history.insert(0, Entry::said(Role::User, "something else"));
        privacy.restore(&mut history, &said);
        assert_eq!(history[1..], said[..]);
    }
}
