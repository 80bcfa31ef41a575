//! Where an entry on its way to a backend comes from, and what was done to it.

use std::fmt;
use std::sync::Arc;

/// Where an entry comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// Nobody keeps track of it.
    #[default]
    Untracked,
    /// It was made for the backend.
    Added(Addition),
    /// It comes from one entry.
    From(Share),
    /// It comes from several entries.
    Joined(Arc<[Share]>),
}

/// What one source gave to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The source.
    pub source: Source,
    /// What was done to it.
    pub treatments: Treatments,
}

/// An entry that something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// An entry of the record, by its position on the branch that the request stands on.
    Record(u32),
    /// An entry of the request that the record does not have, by the message that it came in, from 1 on; 0 stands
    /// for instructions beside the conversation.
    Request(u32),
}

/// Something that was done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Treatment {
    /// It goes by another id or name.
    Renamed,
    /// It stands in another role.
    Translated,
    /// It was rewritten so that the backend takes it.
    Adapted,
    /// It stands at another point of the conversation.
    Moved,
    /// It stands in one with others.
    Joined,
    /// It stands in several places.
    Split,
    /// Only an excerpt is shown.
    Excerpted,
    /// Only a line is shown that says what is missing.
    Masked,
    /// Only a line is shown: a later call shows the same anew.
    Superseded,
    /// Only a line is shown, as the client asks.
    Cleared,
    /// It shows a file that was written since.
    Stale,
    /// It is told as text.
    Retold,
    /// The handover brief stands before it, in the same message.
    BehindBrief,
    /// It was named by an id, and what it stands for was sent.
    Resolved,
    /// The client resends it in other words of the same meaning.
    Resent,
}

/// Everything that was done to an entry; nothing means that it is shown as it is.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Treatments(u16);

/// Something that was made for a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addition {
    /// The result of a call that nothing answered.
    ClosingResult,
    /// The summary of what was left out.
    Summary,
    /// The handover brief.
    Brief,
    /// The user's words before an assistant who may not speak first.
    OpeningWords,
    /// The assistant's words between tool results and the user.
    WordsBetween,
    /// The user's words behind an assistant who may not speak last.
    ClosingWords,
    /// Empty reasoning beside calls.
    EmptyReasoning,
}

impl Treatment {
    /// All treatments; the position of each is its bit in stored bytes, so that new ones go to the end.
    pub const ALL: [Self; 15] = [
        Self::Renamed,
        Self::Translated,
        Self::Adapted,
        Self::Moved,
        Self::Joined,
        Self::Split,
        Self::Excerpted,
        Self::Masked,
        Self::Superseded,
        Self::Cleared,
        Self::Stale,
        Self::Retold,
        Self::BehindBrief,
        Self::Resolved,
        Self::Resent,
    ];

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl Treatments {
    /// Nothing was done.
    pub const AS_IS: Self = Self(0);

    /// Returns these and one more.
    #[must_use]
    pub const fn with(self, treatment: Treatment) -> Self {
        Self(self.0 | treatment.bit())
    }

    /// Says whether this was done.
    #[must_use]
    pub const fn contains(self, treatment: Treatment) -> bool {
        self.0 & treatment.bit() != 0
    }

    /// Says whether the entry is shown as it is.
    #[must_use]
    pub const fn is_as_is(self) -> bool {
        self.0 == 0
    }

    /// Returns all that was done.
    pub fn iter(self) -> impl Iterator<Item = Treatment> {
        Treatment::ALL.into_iter().filter(move |treatment| self.contains(*treatment))
    }

    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the treatments with these bits; none if a bit means nothing.
    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let known = Treatment::ALL.into_iter().fold(0, |known, treatment| known | treatment.bit());
        u16::try_from(bits).ok().filter(|bits| bits & !known == 0).map(Self)
    }
}

impl fmt::Debug for Treatments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Addition {
    /// All additions; the position of each is its number in stored bytes, so that new ones go to the end.
    pub const ALL: [Self; 7] = [
        Self::ClosingResult,
        Self::Summary,
        Self::Brief,
        Self::OpeningWords,
        Self::WordsBetween,
        Self::ClosingWords,
        Self::EmptyReasoning,
    ];
}

impl From<Source> for Trace {
    fn from(source: Source) -> Self {
        Self::From(Share { source, treatments: Treatments::AS_IS })
    }
}

impl Trace {
    /// Returns what the sources gave.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        match self {
            Self::Untracked | Self::Added(_) => &[],
            Self::From(share) => std::slice::from_ref(share),
            Self::Joined(shares) => shares,
        }
    }

    /// Says whether the entry is a handover brief, or has one in front of it.
    #[must_use]
    pub fn holds_brief(&self) -> bool {
        let is_behind = |share: &Share| share.treatments.contains(Treatment::BehindBrief);
        *self == Self::Added(Addition::Brief) || self.shares().iter().any(is_behind)
    }

    /// Returns the trace of an entry to which this was done as well.
    #[must_use]
    pub fn with(&self, treatment: Treatment) -> Self {
        let treated = |share: &Share| Share { treatments: share.treatments.with(treatment), ..*share };
        match self {
            Self::Untracked | Self::Added(_) => self.clone(),
            Self::From(share) => Self::From(treated(share)),
            Self::Joined(shares) => Self::Joined(shares.iter().map(treated).collect()),
        }
    }

    /// Notes that this was done to the entry.
    pub fn note(&mut self, treatment: Treatment) {
        *self = self.with(treatment);
    }

    /// Takes in the trace of an entry that was joined with this one.
    pub fn join(&mut self, other: &Self) {
        let others = other.with(Treatment::Joined);
        let own = self.with(Treatment::Joined);
        let shares: Vec<Share> = own.shares().iter().chain(others.shares()).copied().collect();
        match (shares.as_slice(), &*self) {
            ([], Self::Untracked) => *self = other.clone(),
            ([], _) => {}
            ([only], _) => *self = Self::From(*only),
            (all, _) => *self = Self::Joined(all.into()),
        }
    }

    /// Returns the trace of an entry that was joined from entries with these traces.
    #[must_use]
    pub fn joined<'t>(traces: impl IntoIterator<Item = &'t Self>) -> Self {
        let mut traces = traces.into_iter();
        let mut whole = traces.next().cloned().unwrap_or_default();
        traces.for_each(|trace| whole.join(trace));
        whole
    }
}
