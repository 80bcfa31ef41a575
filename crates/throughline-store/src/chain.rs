//! Chains: what was said up to an entry, as one digest, by which a resent history is recognised.
//!
//! A client that resends everything sends the same history in its own words: without the reasoning that its
//! dialect has no place for, without the ids of items, with other white space in its JSON, under a system
//! prompt that names the hour. A chain therefore covers what was *said* to and by the model (roles, texts,
//! calls, results) and neither how it stood on the wire nor who said it; arguments of calls, and what only its own
//! dialect understands, by what they mean and not by how they are written. Some entries are silent, and leave
//! the chain as it is: reasoning, handovers and summaries, instructions, calls that clients are not shown, and
//! whatever the operator says before the conversation's first word. What a chain does not cover is still stored, entry by entry.
//!
//! The function is part of the stored format: see docs/decisions/0006 and 0028.

use std::fmt;

use throughline_core::{Content, Entry, Input, Kind, Media, Outcome, Part, Role, Side};

use crate::digest::{Digest, Digester, Domain};
use crate::meaning::meaning;

/// What was said up to an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub(crate) Digest);

/// What an entry adds to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    /// Nothing.
    Silent,
    /// This, unless nothing was said yet: the operator's words.
    Operator(Digest),
    /// This.
    Words(Digest),
}

impl Chain {
    /// The chain of a conversation in which nothing was said yet.
    pub const ROOT: Self = Self(Digest::from_bytes([0; Digest::BYTES]));

    /// Returns the chain after a further entry, and whether that entry counts.
    pub(crate) fn after(self, saying: Saying) -> (Self, bool) {
        let digest = match saying {
            Saying::Silent => return (self, false),
            Saying::Operator(_) if self == Self::ROOT => return (self, false),
            Saying::Operator(digest) | Saying::Words(digest) => digest,
        };
        let mut digester = Digester::new(Domain::Chain);
        digester.raw(self.0.bytes());
        digester.raw(digest.bytes());
        (Self(digester.finish()), true)
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({})", self.0)
    }
}

/// Returns the chain of `entry` behind `parent`; that of `parent` itself if the entry is silent.
#[must_use]
pub fn chain(parent: Chain, entry: &Entry) -> Chain {
    parent.after(Saying::of(entry)).0
}

/// Returns the chain up to each of `entries`, which stand at the beginning of a conversation.
#[must_use]
pub fn chains(entries: &[Entry]) -> Vec<Chain> {
    let mut last = Chain::ROOT;
    let step = |entry| {
        last = chain(last, entry);
        last
    };
    entries.iter().map(step).collect()
}

impl Saying {
    pub(crate) fn of(entry: &Entry) -> Self {
        let mut says = Says(Digester::new(Domain::Saying));
        match &entry.kind {
            Kind::Thought(_) | Kind::HandedOver(_) | Kind::Summarised(_) => return Self::Silent,
            Kind::Said(said) if said.standing => return Self::Silent,
            Kind::Called(_) | Kind::Returned(_) if entry.is_hidden() => return Self::Silent,
            Kind::Said(said) => {
                says.tag(role_tag(said.role));
                says.parts(&said.parts);
            }
            Kind::Called(call) => {
                says.tag(10);
                says.text(&call.id);
                says.text(&call.name);
                match &call.input {
                    // Where arguments are an object, none at all are an empty one.
                    Input::Arguments(text) if text.trim().is_empty() => says.json("{}"),
                    Input::Arguments(text) => says.json(text),
                    Input::Freeform(text) => says.tagged(1, text),
                }
            }
            Kind::Returned(returned) => {
                says.tag(11);
                says.text(returned.call_id.as_deref().unwrap_or_default());
                says.tag(outcome_tag(returned.outcome));
                says.parts(&returned.parts);
            }
            Kind::Reference { id } => {
                says.tag(12);
                says.text(id);
            }
            Kind::Opaque { kind } => {
                says.tag(13);
                says.text(kind);
                says.json(entry.wire.as_ref().map_or("", |wire| &wire.text));
            }
        }
        let digest = says.0.finish();
        if entry.side() == Side::System { Self::Operator(digest) } else { Self::Words(digest) }
    }
}

struct Says(Digester);

impl Says {
    fn tag(&mut self, tag: u8) {
        self.0.raw(&[tag]);
    }

    fn text(&mut self, text: &str) {
        self.0.piece(text.as_bytes());
    }

    /// Takes in a text that is JSON by what it means, and any other as it is.
    fn json(&mut self, text: &str) {
        match meaning(text) {
            Some(meaning) => {
                self.tag(2);
                self.0.piece(&meaning);
            }
            None => self.tagged(0, text),
        }
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            match &part.content {
                Content::Text(text) => self.tagged(20, text),
                Content::Refusal(text) => self.tagged(21, text),
                Content::Image(image) => self.media(22, &image.media),
                Content::File(file) => self.media(23, &file.media),
                Content::Opaque { kind } => {
                    self.tagged(24, kind);
                    self.json(part.wire.as_ref().map_or("", |wire| &wire.text));
                }
            }
        }
    }

    fn media(&mut self, tag: u8, media: &Media) {
        self.tag(tag);
        match media {
            Media::Url(url) => self.tagged(0, url),
            Media::Inline { media_type, base64 } => {
                self.tagged(1, media_type);
                self.text(base64);
            }
            Media::Plain(text) => self.tagged(2, text),
            Media::Stored(id) => self.tagged(3, id),
        }
    }

    fn tagged(&mut self, tag: u8, text: &str) {
        self.tag(tag);
        self.text(text);
    }
}

const fn role_tag(role: Role) -> u8 {
    match role {
        Role::System => 0,
        Role::Developer => 1,
        Role::User => 2,
        Role::Assistant => 3,
    }
}

const fn outcome_tag(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::Error => 1,
        Outcome::Denied => 2,
        Outcome::Interrupted => 3,
        Outcome::Unknown => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Dialect, Said, Thought, Wire};

    fn user(text: &str) -> Entry {
        Entry::said(Role::User, text)
    }

    fn last(entries: &[Entry]) -> Chain {
        chains(entries).last().copied().unwrap_or(Chain::ROOT)
    }

    fn call(item_id: Option<&str>) -> Entry {
        let call = Call {
            id: "call_1".into(),
            item_id: item_id.map(Into::into),
            name: "read".into(),
            namespace: None,
            input: Input::Arguments("{}".into()),
        };
        Entry::new(Kind::Called(call))
    }

    #[test]
    fn what_clients_leave_out_does_not_count() {
        let thought = Entry::new(Kind::Thought(Thought { content: vec!["hm".into()], ..Thought::default() }));
        let full = last(&[user("a"), thought, call(Some("item_1"))]);
        assert_eq!(full, last(&[user("a"), call(None)]));
    }

    #[test]
    fn what_clients_are_not_shown_does_not_count() {
        let mut hidden = call(None);
        let Kind::Called(of) = &mut hidden.kind else { panic!("no call") };
        of.namespace = Some(Entry::OWN_TOOLS.into());
        assert_eq!(last(&[user("a"), hidden, call(None)]), last(&[user("a"), call(None)]));
    }

    #[test]
    fn a_system_prompt_that_changes_is_still_the_same_conversation() {
        let standing = |text: &str| {
            Entry::new(Kind::Said(Said { role: Role::System, parts: vec![Part::text(text)], standing: true }))
        };
        let monday = last(&[standing("It is Monday."), Entry::said(Role::System, "m"), user("a")]);
        let tuesday = last(&[standing("It is Tuesday."), Entry::said(Role::Developer, "t"), user("a")]);
        assert_eq!(monday, tuesday);
        assert_ne!(last(&[user("a"), Entry::said(Role::System, "b")]), last(&[user("a")]));
    }

    #[test]
    fn the_wire_form_does_not_count_and_the_words_do() {
        let mut wired = user("a");
        wired.wire = Some(Wire { dialect: Dialect::Chat, text: "{}".into(), extras: Vec::new() });
        assert_eq!(last(&[wired]), last(&[user("a")]));
        assert_ne!(last(&[user("a")]), last(&[user("b")]));
        assert_ne!(last(&[user("a")]), last(&[Entry::said(Role::Assistant, "a")]));
        assert_ne!(last(&[user("a"), user("b")]), last(&[user("b"), user("a")]));
    }

    fn called(arguments: &str) -> Chain {
        let mut entry = call(None);
        let Kind::Called(of) = &mut entry.kind else { panic!("no call") };
        of.input = Input::Arguments(arguments.into());
        last(&[user("a"), entry])
    }

    #[test]
    fn arguments_count_by_what_they_mean() {
        let first = called(r#"{"path":"é","n":1.10}"#);
        assert_eq!(first, called("{ \"n\": 1.1,\n \"path\": \"\\u00e9\" }"));
        assert_ne!(first, called(r#"{"path":"e","n":1.10}"#));
        assert_eq!(called(""), called("{}"), "no arguments are an empty object where there must be one");
        // What is not JSON is nobody's to print anew.
        assert_ne!(called(r#"{"path":"a"#), called(r#"{"path": "a"#));
        assert_ne!(called("null"), called("0"));
    }

    #[test]
    fn what_only_its_own_dialect_understands_counts_by_what_it_means() {
        let opaque = |text: &str| {
            let mut entry = Entry::new(Kind::Opaque { kind: "web_search_call".into() });
            entry.wire = Some(Wire { dialect: Dialect::Responses, text: text.into(), extras: Vec::new() });
            last(&[user("a"), entry])
        };
        assert_eq!(
            opaque(r#"{"type":"web_search_call","id":"w"}"#),
            opaque(r#"{"id": "w", "type": "web_search_call"}"#)
        );
        assert_ne!(
            opaque(r#"{"type":"web_search_call","id":"w"}"#),
            opaque(r#"{"type":"web_search_call","id":"v"}"#)
        );
    }

    #[test]
    fn the_function_is_part_of_the_format() {
        // A changed value means that no stored conversation is recognised any more.
        assert_eq!(
            format!("{:?}", last(&[user("a"), call(None)])),
            "Chain(9e7da5ea12eb663cedfa9fb4f9beed1b)"
        );
    }
}
