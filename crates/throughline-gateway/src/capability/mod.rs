//! Capability: what a backend can do, decided in one place (R07).
//!
//! Pure. The configuration has the first word; what was learned, from a header, a listing or an attempt, the
//! second, for as long as it holds; and where nobody knows, it is tried. What is learned is plain data that
//! the caller keeps, by backend, model and ability, in milliseconds of a clock that it reads itself.

mod attempts;
mod rejection;
mod repair;
mod retry_after;
mod told;

pub use attempts::{Attempts, Failed, Form, Leg, Lesson, RetryPolicy, Step};
pub use rejection::{Rejection, rejection};
pub use repair::{Repair, Repairs};
pub use retry_after::retry_after;
pub use told::{CAPABILITIES_HEADER, ListedModel, from_headers, from_listing};

use crate::config::Choice;
use std::fmt;
use throughline_core::Text;

/// How long a verdict of an attempt holds.
pub const TRIED_HOLDS_MS: i64 = 24 * 60 * 60 * 1000;

/// How long a backend is taken at its word.
pub const TOLD_HOLDS_MS: i64 = 60 * 60 * 1000;

/// Something that some backends can do and others cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Take tool history as tool calls and results.
    NativeToolHistory,
    /// Continue from a `previous_response_id`.
    ServerState,
}

/// Whether a backend has an ability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has.
    Yes,
    /// It has not.
    No,
}

/// What told us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// An attempt.
    Tried,
    /// A header of an answer.
    Header,
    /// A listing of models.
    Listing,
}

/// A verdict that was found out, and until when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// What it is about.
    pub ability: Ability,
    /// The verdict.
    pub verdict: Verdict,
    /// What told us.
    pub evidence: Evidence,
    /// In its own words, such as the error message.
    pub words: Text,
    /// When, in milliseconds.
    pub at: i64,
    /// Until when it holds, in milliseconds.
    pub expires: i64,
}

/// What is known about an ability, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The configuration says so. Nothing is tried, and nothing overrules it.
    Set(Verdict),
    /// It was learned. It may have changed, and an attempt may show that.
    Learned(Learned),
    /// Nobody knows, or what was known no longer holds.
    Unknown {
        /// What was known.
        expired: Option<Learned>,
    },
}

/// Decides about an ability.
///
/// `learned` is the verdict about the model in question, or else the one about all models of the backend.
#[must_use]
pub fn decide(flag: Choice, learned: Option<&Learned>, now: i64) -> Decision {
    match (flag, learned) {
        (Choice::Always, _) => Decision::Set(Verdict::Yes),
        (Choice::Never, _) => Decision::Set(Verdict::No),
        (Choice::Auto, Some(learned)) if learned.holds(now) => Decision::Learned(learned.clone()),
        (Choice::Auto, learned) => Decision::Unknown { expired: learned.cloned() },
    }
}

impl Ability {
    /// Both, in a fixed order.
    pub const ALL: [Self; 2] = [Self::NativeToolHistory, Self::ServerState];

    /// Returns the name that the configuration and the record know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NativeToolHistory => "native_tool_history",
            Self::ServerState => "server_state",
        }
    }

    /// Returns the ability of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ability| ability.name() == name)
    }
}

impl Verdict {
    /// Returns the name that the record knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
        }
    }

    /// Returns the verdict of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Yes, Self::No].into_iter().find(|verdict| verdict.name() == name)
    }
}

impl Evidence {
    /// Returns the name that the record knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tried => "tried",
            Self::Header => "header",
            Self::Listing => "listing",
        }
    }

    const fn holds_ms(self) -> i64 {
        match self {
            Self::Tried => TRIED_HOLDS_MS,
            Self::Header | Self::Listing => TOLD_HOLDS_MS,
        }
    }
}

impl Learned {
    /// Returns a verdict that was found out now.
    #[must_use]
    pub fn new(ability: Ability, verdict: Verdict, evidence: Evidence, words: Text, now: i64) -> Self {
        Self { ability, verdict, evidence, words, at: now, expires: now.saturating_add(evidence.holds_ms()) }
    }

    /// Says whether the verdict still holds.
    #[must_use]
    pub const fn holds(&self, now: i64) -> bool {
        now < self.expires
    }

    /// Says whether this verdict should be kept in place of `known`.
    ///
    /// An attempt is believed over what a backend says of itself, for as long as it holds.
    #[must_use]
    pub fn supersedes(&self, known: Option<&Self>, now: i64) -> bool {
        match known.filter(|known| known.holds(now)) {
            Some(known) if known.evidence == Evidence::Tried => self.evidence == Evidence::Tried,
            _ => true,
        }
    }

    /// Returns evidence and words as one text, for the record and for people: `tried: Invalid input`.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{}: {}", self.evidence.name(), &*self.words)
    }

    /// Takes apart what [`Learned::reason`] put together. Unknown evidence counts as an attempt.
    #[must_use]
    pub fn parse_reason(reason: &str) -> (Evidence, Text) {
        let all = [Evidence::Tried, Evidence::Header, Evidence::Listing];
        let parts = reason.split_once(": ").and_then(|(name, words)| {
            Some((all.into_iter().find(|evidence| evidence.name() == name)?, Text::from(words)))
        });
        parts.unwrap_or((Evidence::Tried, Text::from(reason)))
    }
}

impl Decision {
    /// Returns the verdict, if there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<Verdict> {
        match self {
            Self::Set(verdict) => Some(*verdict),
            Self::Learned(learned) => Some(learned.verdict),
            Self::Unknown { .. } => None,
        }
    }

    /// Says whether an attempt may show otherwise.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Set(_))
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(verdict) => write!(f, "{} (configured)", verdict.name()),
            Self::Learned(learned) => write!(f, "{} ({})", learned.verdict.name(), learned.reason()),
            Self::Unknown { expired: None } => f.write_str("not known yet"),
            Self::Unknown { expired: Some(was) } => {
                write!(f, "not known any more (was {}, {})", was.verdict.name(), was.reason())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(verdict: Verdict, evidence: Evidence, at: i64) -> Learned {
        Learned::new(Ability::NativeToolHistory, verdict, evidence, "Invalid input".into(), at)
    }

    #[test]
    fn the_configuration_has_the_first_word() {
        let no = learned(Verdict::No, Evidence::Tried, 0);
        assert_eq!(decide(Choice::Always, Some(&no), 1), Decision::Set(Verdict::Yes));
        assert_eq!(decide(Choice::Never, None, 1), Decision::Set(Verdict::No));
        assert!(!decide(Choice::Always, Some(&no), 1).is_open());
    }

    #[test]
    fn a_verdict_holds_until_it_expires_and_then_nobody_knows() {
        let no = learned(Verdict::No, Evidence::Tried, 1000);
        for (now, expected) in [
            (1000, Some(Verdict::No)),
            (1000 + TRIED_HOLDS_MS - 1, Some(Verdict::No)),
            (1000 + TRIED_HOLDS_MS, None),
        ] {
            let decision = decide(Choice::Auto, Some(&no), now);
            assert_eq!(decision.verdict(), expected, "{now}");
            assert!(decision.is_open());
        }
        let expired = decide(Choice::Auto, Some(&no), i64::MAX);
        assert_eq!(expired.to_string(), "not known any more (was no, tried: Invalid input)");
        assert_eq!(decide(Choice::Auto, None, 0).to_string(), "not known yet");
    }

    #[test]
    fn an_attempt_is_believed_over_what_a_backend_says_of_itself() {
        let tried = learned(Verdict::No, Evidence::Tried, 0);
        let told = learned(Verdict::Yes, Evidence::Header, 5);
        assert!(!told.supersedes(Some(&tried), 5));
        assert!(told.supersedes(Some(&tried), TRIED_HOLDS_MS));
        assert!(tried.supersedes(Some(&told), 5));
        assert!(told.supersedes(None, 5) && told.supersedes(Some(&told), 5));
    }

    #[test]
    fn names_and_reasons_are_read_as_they_are_written() {
        for ability in Ability::ALL {
            assert_eq!(Ability::from_name(ability.name()), Some(ability));
        }
        for evidence in [Evidence::Tried, Evidence::Header, Evidence::Listing] {
            let reason = learned(Verdict::No, evidence, 0).reason();
            assert_eq!(Learned::parse_reason(&reason), (evidence, "Invalid input".into()));
        }
        assert_eq!(Learned::parse_reason("odd: words"), (Evidence::Tried, "odd: words".into()));
        assert_eq!(Verdict::from_name("no"), Some(Verdict::No));
    }
}
