//! Failures: why a request was not answered, in no dialect's words yet.

use crate::Text;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is; decides the status a client sees.
    pub kind: FailureKind,
    /// A short name for programs.
    pub code: Option<Text>,
    /// A sentence for people.
    pub message: Text,
    /// The field that is to blame.
    pub param: Option<Text>,
    /// How the backend itself put it, for whoever passes the failure on; nothing here is decided by it.
    pub refusal: Option<Refusal>,
}

/// How a backend refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status that it answered with.
    pub status: u16,
    /// For how many seconds it wants to be left alone.
    pub retry_after: Option<u32>,
}

/// The kinds of failure that clients tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The request is wrong, and would be so again.
    InvalidRequest,
    /// The credentials are missing or wrong.
    Authentication,
    /// The credentials do not suffice.
    Permission,
    /// There is no such thing.
    NotFound,
    /// The request contradicts the state of things.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// Too many requests, or too little credit.
    RateLimited,
    /// The backend is there but has no capacity.
    Overloaded,
    /// The backend took too long.
    TimedOut,
    /// The backend, or something in front of it, broke.
    Backend,
}

/// How long the words of a failure may be, in bytes.
const WORDS_MAX: usize = 4096;

impl Failure {
    /// Cuts the words of a failure to a length that people read and a log takes.
    pub fn shorten(&mut self) {
        let words = [Some(&mut self.message), self.code.as_mut(), self.param.as_mut()];
        for text in words.into_iter().flatten().filter(|text| text.len() > WORDS_MAX) {
            *text = Text::from(format!("{}…", &text[..text.floor_char_boundary(WORDS_MAX)]));
        }
    }

    /// Returns a failure of that kind with nothing but a message.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<Text>) -> Self {
        Self { kind, code: None, message: message.into(), param: None, refusal: None }
    }
}
