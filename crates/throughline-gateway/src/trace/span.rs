//! A span, before it is written.

use throughline_core::Text;

/// Something that took time, with what there is to say about it.
#[derive(Clone, Debug)]
pub struct Span {
    /// The trace it belongs to.
    pub trace: [u8; 16],
    /// Its own id.
    pub id: [u8; 8],
    /// The span above it.
    pub parent: Option<[u8; 8]>,
    /// What other systems have put into the trace.
    pub state: Option<Text>,
    /// What it is called.
    pub name: Text,
    /// Who waits for whom.
    pub kind: Kind,
    /// When it began, in nanoseconds since 1970.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// What there is to say about it.
    pub attributes: Vec<(&'static str, Value)>,
    /// What kind of error it ended with; never a message.
    pub error: Option<Text>,
}

/// Who waits for whom; the numbers are OTLP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody else.
    Internal = 1,
    /// A client for us.
    Server = 2,
    /// We for a backend.
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Text),
    /// A number.
    Number(u64),
    /// Several texts.
    List(Vec<Text>),
}

impl Span {
    /// Adds an attribute, if there is anything to say.
    pub fn say(&mut self, name: &'static str, value: impl Into<Said>) {
        self.attributes.extend(value.into().0.map(|value| (name, value)));
    }

    /// Marks it as ended with an error of that kind, if there was one.
    pub fn fail(&mut self, kind: Option<Text>) {
        self.say("error.type", kind.clone());
        self.error = kind;
    }
}

/// A value that may be missing.
pub struct Said(Option<Value>);

impl From<Text> for Said {
    fn from(text: Text) -> Self {
        Self(Some(Value::Text(text)))
    }
}

impl From<Option<Text>> for Said {
    fn from(text: Option<Text>) -> Self {
        Self(text.map(Value::Text))
    }
}

impl From<u64> for Said {
    fn from(number: u64) -> Self {
        Self(Some(Value::Number(number)))
    }
}

impl From<Option<u64>> for Said {
    fn from(number: Option<u64>) -> Self {
        Self(number.map(Value::Number))
    }
}

impl From<Option<Value>> for Said {
    fn from(value: Option<Value>) -> Self {
        Self(value)
    }
}
