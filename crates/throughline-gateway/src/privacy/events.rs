//! Events of a stream: a secret comes in pieces of a few letters, each in an event of its own.
//!
//! What stands at the same place of each event is joined, and looked through as one text. Of what is found, the event
//! in which it begins keeps the mark, and the others lose their piece.

use super::Privacy;
use super::json::{escaped, leaves, unescaped};
use std::collections::BTreeMap;
use std::ops::Range;
use throughline_store::ProviderEvent;

/// A string within an event.
struct Piece {
    event: usize,
    content: Range<usize>,
    text: String,
}

impl Privacy {
    /// Returns events without what the rules find in each, or over several of them.
    pub(super) fn events(&self, events: Vec<ProviderEvent>) -> Vec<ProviderEvent> {
        let mut events: Vec<ProviderEvent> = events;
        for event in &mut events {
            event.data = self.kept(&event.data);
        }
        let mut by_path: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for (number, event) in events.iter().enumerate().filter(|(_, event)| event.data.starts_with('{')) {
            for leaf in leaves(&event.data) {
                let text = unescaped(&event.data[leaf.content.clone()]).into_owned();
                by_path.entry(leaf.path).or_default().push(Piece {
                    event: number,
                    content: leaf.content,
                    text,
                });
            }
        }
        let mut changes: BTreeMap<(usize, usize), (Range<usize>, String)> = BTreeMap::new();
        for pieces in by_path.into_values().filter(|pieces| pieces.len() > 1) {
            self.spread(pieces, &mut changes);
        }
        // From behind, so that what comes before keeps its place.
        for ((event, _), (content, text)) in changes.into_iter().rev() {
            let mut data = events[event].data.to_string();
            data.replace_range(content, &escaped(&text));
            events[event].data = data.into();
        }
        events
    }

    /// Finds what is spread over several pieces, and notes what becomes of each of them.
    fn spread(&self, pieces: Vec<Piece>, changes: &mut BTreeMap<(usize, usize), (Range<usize>, String)>) {
        let joined: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let found = self.found(&joined);
        if found.is_empty() {
            return;
        }
        let mut start = 0;
        for piece in pieces {
            let (from, to) = (start, start + piece.text.len());
            start = to;
            let mut text = String::new();
            let mut copied = from;
            for (range, mark) in &found {
                if range.end <= from || range.start >= to {
                    continue;
                }
                text.push_str(&joined[copied..range.start.max(copied)]);
                if range.start >= from {
                    text.push_str(mark);
                }
                copied = range.end.min(to);
            }
            text.push_str(&joined[copied..to]);
            if text != piece.text {
                changes.insert((piece.event, piece.content.start), (piece.content, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::SECRETS;
    use throughline_store::Moment;

    fn event(data: String) -> ProviderEvent {
        ProviderEvent { at: Moment(0), name: None, data: data.into() }
    }

    #[test]
    fn a_secret_in_pieces_is_found() {
        let delta =
            |text: &str| event(format!(r#"{{"id":"c1","choices":[{{"delta":{{"content":"{text}"}}}}]}}"#));
        let pieces = ["the key \\\"AK", "IAIOSF", "ODNN7EXA", "MPLE\\\" is", " it"];
        let events = pieces.map(delta).into_iter().chain([event("[DONE]".to_owned())]).collect();
        let kept = Privacy::new(SECRETS).unwrap().events(events);
        let all: Vec<&str> = kept.iter().map(|event| event.data.as_str()).collect();
        assert!(!all.concat().contains("IOSF") && !all.concat().contains("ODNN7"), "{all:?}");
        let wanted = ["the key \\\"[redacted:aws-key]", "", "", "\\\" is", " it"].map(delta);
        assert_eq!(kept[..5], wanted);
        assert_eq!(all[5], "[DONE]");
    }

    #[test]
    fn events_without_secrets_keep_their_bytes() {
        let given = vec![event(r#"{"delta" : {"text":"a\u00e9"}}"#.to_owned()), event("not json".to_owned())];
        assert_eq!(Privacy::new(SECRETS).unwrap().events(given.clone()), given);
    }
}
