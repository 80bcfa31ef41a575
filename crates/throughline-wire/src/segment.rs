//! Segments: runs of entries on one side of the conversation, as the message-based dialects group them.
//!
//! Two dialects put several entries into one message. When a message's entries are all there, intact and in
//! order, the message goes out as it came; otherwise one is built from the segment. Both encoders decide
//! that here, so that they agree on what "as it came" means.

use throughline_core::{Dialect, Entry, Kind, Side};

/// A maximal run of entries on one side.
pub(crate) struct Segment<'e> {
    /// Whose side it is.
    pub side: Side,
    /// The entries, at least one.
    pub entries: &'e [Entry],
}

/// Splits entries into segments.
pub(crate) fn segments(entries: &[Entry]) -> impl Iterator<Item = Segment<'_>> {
    entries.chunk_by(|a, b| a.side() == b.side()).map(|entries| Segment { side: entries[0].side(), entries })
}

impl<'e> Segment<'e> {
    /// Splits the segment by the messages that its entries came in.
    pub fn messages(&self) -> impl Iterator<Item = &'e [Entry]> + use<'e> {
        self.entries.chunk_by(same_message)
    }

    /// Says whether the segment can go out as the messages that it came in.
    ///
    /// Calls must stand in the last message of their segment, and results in the first of theirs: the
    /// targets want them side by side.
    pub fn is_verbatim(&self, dialect: Dialect) -> bool {
        let last = self.messages().count().saturating_sub(1);
        self.messages().enumerate().all(|(at, message)| {
            verbatim(message, dialect).is_some()
                && (at == last || !message.iter().any(|entry| matches!(entry.kind, Kind::Called(_))))
                && (at == 0 || !message.iter().any(|entry| matches!(entry.kind, Kind::Returned(_))))
        })
    }
}

fn same_message(a: &Entry, b: &Entry) -> bool {
    match (&a.envelope, &b.envelope) {
        (Some((a, _)), Some((b, _))) => std::sync::Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// Returns the text of the message that `entries` came in, if they are all of it, intact and in order.
pub(crate) fn verbatim(entries: &[Entry], dialect: Dialect) -> Option<&str> {
    let (envelope, _) = entries.first()?.envelope.as_ref()?;
    let whole = envelope.wire.dialect == dialect
        && envelope.entries as usize == entries.len()
        && entries.iter().zip(0..).all(|(entry, at)| {
            entry.intact && entry.envelope.as_ref().is_some_and(|(_, position)| *position == at)
        });
    whole.then(|| envelope.wire.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use throughline_core::{Envelope, Role, Wire};

    fn message(texts: &[&str]) -> Vec<Entry> {
        let wire = Wire { dialect: Dialect::Chat, text: "{}".into(), extras: Vec::new() };
        let envelope = Arc::new(Envelope { wire, entries: u32::try_from(texts.len()).unwrap() });
        let said = |(text, at): (&&str, u32)| {
            let mut entry = Entry::said(Role::Assistant, *text);
            entry.envelope = Some((Arc::clone(&envelope), at));
            entry
        };
        texts.iter().zip(0..).map(said).collect()
    }

    #[test]
    fn a_whole_message_goes_out_as_it_came() {
        let entries = message(&["a", "b"]);
        assert_eq!(verbatim(&entries, Dialect::Chat), Some("{}"));
        assert_eq!(verbatim(&entries, Dialect::Messages), None);
    }

    #[test]
    fn a_message_that_lost_an_entry_or_its_order_does_not() {
        let mut entries = message(&["a", "b"]);
        assert_eq!(verbatim(&entries[..1], Dialect::Chat), None);
        entries.swap(0, 1);
        assert_eq!(verbatim(&entries, Dialect::Chat), None);
    }

    #[test]
    fn an_altered_entry_breaks_its_message() {
        let mut entries = message(&["a"]);
        entries[0].intact = false;
        assert_eq!(verbatim(&entries, Dialect::Chat), None);
    }
}
