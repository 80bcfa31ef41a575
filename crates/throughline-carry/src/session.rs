//! What a session file tells: facts about the session, and pieces of its tree.

use crate::Millis;
use throughline_core::{Entry, Text, Usage};

/// What is known about a session as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The agent's id of it; a sub-agent's has that of its session in front.
    pub id: Option<Text>,
    /// Its title, or the first words of the user.
    pub title: Option<Text>,
    /// The directory it works in.
    pub cwd: Option<Text>,
    /// The model that answered last.
    pub model: Option<Text>,
    /// The version of the agent.
    pub version: Option<Text>,
    /// The session of which this one is a sub-agent's, or that it was forked from.
    pub parent: Option<Text>,
    /// When it began.
    pub started: Option<Millis>,
    /// When something was last added.
    pub updated: Option<Millis>,
    /// How many times the user asked something.
    pub turns: u64,
    /// How many tool calls there are.
    pub calls: u64,
    /// How many results.
    pub results: u64,
}

/// Where in the tree of a session a piece stands: the number of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot(pub u32);

/// Entries that a line of a session brought, one behind another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its place.
    pub spot: Spot,
    /// The piece that it stands behind; none at a beginning.
    pub behind: Option<Spot>,
    /// The sub-agent whose line it is, if it is not the session's own.
    pub thread: Option<Text>,
    /// When it was written.
    pub at: Option<Millis>,
    /// What happened.
    pub entries: Vec<Entry>,
    /// What the answer that this is a part of took.
    pub answered: Option<Answered>,
}

/// What an answer of a model took, as the session tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What tells the answer from the others of the session; every piece of it has the same, and the last one counts.
    pub id: Text,
    /// The model.
    pub model: Option<Text>,
    /// Its tokens.
    pub usage: Option<Usage>,
    /// Why there is none, in the words of whoever refused.
    pub failure: Option<Text>,
}

/// What a session that is one document holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// What is known about it.
    pub facts: Facts,
    /// What happened in it.
    pub pieces: Vec<Piece>,
    /// What of it could not be read, and why.
    pub damaged: Vec<Damage>,
}

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub String);

impl Facts {
    pub(crate) fn saw(&mut self, at: Option<Millis>) {
        self.started = match (self.started, at) {
            (Some(started), Some(at)) => Some(started.min(at)),
            (started, at) => started.or(at),
        };
        self.updated = self.updated.max(at);
    }

    pub(crate) fn counted(&mut self, entries: &[Entry]) {
        self.calls += entries.iter().filter(|entry| entry.as_call().is_some()).count() as u64;
        self.results += entries.iter().filter(|entry| entry.as_return().is_some()).count() as u64;
    }

    /// Takes the first line of what the user said first as the title, unless there is one.
    pub(crate) fn begin_with(&mut self, words: &str) {
        const CHARS_MAX: usize = 80;
        let line = words.lines().map(str::trim).find(|line| !line.is_empty());
        if let Some(line) = line.filter(|_| self.title.is_none()) {
            self.title = Some(line.chars().take(CHARS_MAX).collect::<String>().into());
        }
    }
}
