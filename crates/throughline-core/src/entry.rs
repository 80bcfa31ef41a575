//! Entries: the immutable items of a conversation's history.
//!
//! An entry says what happened (something was said, thought, called, returned, handed over, summarised),
//! who it came from, and how it stood on the wire. Entries are never edited in place in the record; the
//! copies that are rendered for a backend may be, and then say so by no longer being intact.

use crate::{ConversationId, EntryId, Envelope, Origin, Part, Text, Trace, Wire};
use std::sync::Arc;

/// One item of history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What happened.
    pub kind: Kind,
    /// The backend that said it, where that is known.
    pub origin: Option<Origin>,
    /// How it stood on the wire, where it was an object of its own there.
    pub wire: Option<Wire>,
    /// The wire message that it came in, and its position among that message's entries.
    pub envelope: Option<(Arc<Envelope>, u32)>,
    /// Where in the client's request it stood.
    pub place: Option<Place>,
    /// Whether `wire` and `envelope` still say the same as `kind`.
    pub intact: bool,
    /// Where a copy that is rendered for a backend comes from.
    pub trace: Trace,
}

/// Where in a request an entry stood: which message or item, and which block or call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of the message or item.
    pub message: u32,
    /// Index of the block or call inside it.
    pub block: Option<u32>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Someone said something.
    Said(Said),
    /// The model reasoned.
    Thought(Thought),
    /// The model called a tool.
    Called(Call),
    /// A tool returned.
    Returned(Return),
    /// One backend took over from another.
    HandedOver(Handover),
    /// A span of history was summarised.
    Summarised(Summary),
    /// An earlier item that the client names by its id instead of resending it.
    Reference {
        /// The id.
        id: Text,
    },
    /// An item that only its own dialect understands; the wire form is all there is.
    Opaque {
        /// The type tag on the wire.
        kind: Text,
    },
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator, with the highest authority.
    System,
    /// The developer, where a dialect tells them from the system.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub parts: Vec<Part>,
    /// Whether it stands beside the conversation (instructions) rather than in it.
    pub standing: bool,
}

/// A model's reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thought {
    /// Summaries that the provider made of it.
    pub summary: Vec<Text>,
    /// The reasoning itself, where the provider shows it.
    pub content: Vec<Text>,
    /// What binds it to its issuer.
    pub seal: Option<Seal>,
    /// The provider's id of the item.
    pub item_id: Option<Text>,
}

/// What binds reasoning to the backend and model that issued it; any change of a byte voids it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// A signature over readable reasoning.
    Signature(Text),
    /// Reasoning that the provider withheld, encrypted.
    Redacted(Text),
    /// The provider's own encrypted form of the reasoning.
    Encrypted(Text),
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The id that the result refers to.
    pub id: Text,
    /// The provider's id of the item, where that is another one.
    pub item_id: Option<Text>,
    /// The tool's name.
    pub name: Text,
    /// The namespace that the tool was declared in.
    pub namespace: Option<Text>,
    /// What the tool was given.
    pub input: Input,
}

/// What a tool was given, as the exact text received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Arguments, meant to be a JSON object, which models do not always manage.
    Arguments(Text),
    /// Free text, of a custom tool.
    Freeform(Text),
}

impl Call {
    /// Says whether the other announces this call again: it shares an id with it, and calls the same with the same.
    #[must_use]
    pub fn is_same_call(&self, other: &Self) -> bool {
        let item = self.item_id.as_ref().filter(|id| !id.is_empty());
        let shares_id = self.id == other.id || (item.is_some() && item == other.item_id.as_ref());
        shares_id
            && (&self.name, &self.namespace, &self.input) == (&other.name, &other.namespace, &other.input)
    }
}

impl Input {
    /// Returns the text, whatever it is meant to be.
    #[must_use]
    pub fn text(&self) -> &Text {
        match self {
            Self::Arguments(text) | Self::Freeform(text) => text,
        }
    }
}

/// A tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// The id of the call that it answers, where the client gave one.
    pub call_id: Option<Text>,
    /// The provider's or client's id of the item.
    pub item_id: Option<Text>,
    /// The tool's name, where the result repeats it.
    pub name: Option<Text>,
    /// What the tool said.
    pub parts: Vec<Part>,
    /// How it went.
    pub outcome: Outcome,
    /// Whether it answers a custom tool.
    pub freeform: bool,
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The tool did what it was asked.
    Ok,
    /// The tool failed.
    Error,
    /// The call was not permitted.
    Denied,
    /// The call was stopped before it was through.
    Interrupted,
    /// Nobody knows whether the tool ran.
    Unknown,
}

/// One backend took over from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Who had the conversation before.
    pub from: Option<Origin>,
    /// Who has it now.
    pub to: Origin,
    /// What asked for it, in a word: `cli`, `http`, `model`, `header`, `failover`, `config` or `continue`.
    pub by: Text,
    /// Why, in words for people.
    pub reason: Text,
    /// What the backend was given in place of all that came before; none if it was shown that itself.
    pub brief: Option<Text>,
    /// The conversation that the brief tells of besides this one, if it is to be continued here.
    pub continues: Option<Continued>,
}

/// A conversation that another one goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continued {
    /// Which one.
    pub conversation: ConversationId,
    /// Up to where.
    pub entry: EntryId,
}

/// A span of history in few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The words.
    pub text: Text,
    /// How many entries it stands for.
    pub covers: u32,
}

/// Which side of the conversation an entry is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The operator's.
    System,
    /// The user's, where tool results are too.
    User,
    /// The model's.
    Assistant,
}

impl Entry {
    /// The namespace of calls that the gateway answers itself. No client declared the tool, and none sees the
    /// call: the namespace is a mark in the record, and never sent.
    pub const OWN_TOOLS: &str = "throughline";

    /// The tool's name in results of such calls.
    pub const OWN_RESULT: &str = "throughline.recall";

    /// The same, where the call stood beside calls of the client's own tools.
    pub const OWN_RESULT_BESIDE: &str = "throughline.recall.beside";

    /// Says whether clients are not shown the entry: a call that the gateway answered itself, or its result.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        match &self.kind {
            Kind::Called(call) => call.namespace.as_deref() == Some(Self::OWN_TOOLS),
            Kind::Returned(returned) => {
                matches!(returned.name.as_deref(), Some(Self::OWN_RESULT | Self::OWN_RESULT_BESIDE))
            }
            _ => false,
        }
    }

    /// Returns an entry that was made here, with no wire form.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            origin: None,
            wire: None,
            envelope: None,
            place: None,
            intact: true,
            trace: Trace::Untracked,
        }
    }

    /// Returns an entry in which `role` says `text`.
    #[must_use]
    pub fn said(role: Role, text: impl Into<Text>) -> Self {
        Self::new(Kind::Said(Said { role, parts: vec![Part::text(text)], standing: false }))
    }

    /// Returns the same entry with another kind, no longer intact.
    #[must_use]
    pub fn altered(&self, kind: Kind) -> Self {
        Self { kind, intact: false, ..self.clone() }
    }

    /// Returns the side that the entry is shown on.
    #[must_use]
    pub fn side(&self) -> Side {
        match &self.kind {
            Kind::Said(said) => said.role.side(),
            Kind::Thought(_) | Kind::Called(_) | Kind::Reference { .. } | Kind::Opaque { .. } => {
                Side::Assistant
            }
            Kind::Returned(_) | Kind::Summarised(_) | Kind::HandedOver(_) => Side::User,
        }
    }

    /// Says whether these are instructions, which stand beside the conversation and not in it.
    #[must_use]
    pub fn is_standing(&self) -> bool {
        self.as_said().is_some_and(|said| said.standing)
    }

    /// Says whether these are instructions that the latest ones of `before` say already.
    ///
    /// Who leaves the history to others still says with each request what holds for it; that makes it one thing said,
    /// and not one for each request.
    #[must_use]
    pub fn restates<'e>(&self, before: impl DoubleEndedIterator<Item = &'e Self>) -> bool {
        let Some(said) = self.as_said().filter(|said| said.standing) else { return false };
        let in_force = before.rev().find(|entry| entry.is_standing()).and_then(Self::as_said);
        let contents = |part: &Part| part.content.clone();
        let same = |other: &Said| {
            other.role == said.role && other.parts.iter().map(contents).eq(said.parts.iter().map(contents))
        };
        in_force.is_some_and(same)
    }

    /// Returns the call, if this is one.
    #[must_use]
    pub fn as_call(&self) -> Option<&Call> {
        match &self.kind {
            Kind::Called(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the result, if this is one.
    #[must_use]
    pub fn as_return(&self) -> Option<&Return> {
        match &self.kind {
            Kind::Returned(returned) => Some(returned),
            _ => None,
        }
    }

    /// Returns what was said, if this is something said.
    #[must_use]
    pub fn as_said(&self) -> Option<&Said> {
        match &self.kind {
            Kind::Said(said) => Some(said),
            _ => None,
        }
    }
}

impl Role {
    /// Returns the side that this role is on.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::System | Self::Developer => Side::System,
            Self::User => Side::User,
            Self::Assistant => Side::Assistant,
        }
    }
}

impl Outcome {
    /// Says whether the result is to be taken as a failure.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Ok)
    }
}
