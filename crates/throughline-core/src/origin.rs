//! Where something came from: the dialect it was written in, and the backend and model that said it.

use crate::Text;
use std::fmt;

/// One of the three wire protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Chat Completions.
    Chat,
    /// Messages.
    Messages,
    /// Responses, of which OpenResponses is the open specification.
    Responses,
}

impl Dialect {
    /// All dialects, in a fixed order.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Messages, Self::Responses];

    /// Returns the name that users write.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// Returns the dialect of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who said something: a backend, the dialect it spoke, and the model that answered.
///
/// Reasoning that its issuer has sealed may only go back to an equal origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The configured name of the backend.
    pub backend: Text,
    /// The dialect it spoke.
    pub dialect: Dialect,
    /// The model that answered.
    pub model: Text,
}

/// A field that the canonical model has no word for, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The field's name.
    pub name: Text,
    /// The exact text of its value.
    pub value: Text,
}

/// What is kept of the wire form of an entry, a part or a tool.
///
/// Written in its own dialect again, an intact one is emitted as `text`, byte for byte; an altered one is
/// built anew and `extras` are added to it. In another dialect the extras have no place and are reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The dialect that `text` is written in.
    pub dialect: Dialect,
    /// The exact text of the object on the wire.
    pub text: Text,
    /// The fields of that object which the canonical model does not express.
    pub extras: Vec<Extra>,
}

/// The wire message that one or several entries came in.
///
/// Some dialects put a whole turn into one message. When all its entries are sent again, unaltered and in
/// their order, the message is sent as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The dialect and text of the message, and the fields beside its content.
    pub wire: Wire,
    /// How many entries it held.
    pub entries: u32,
}
