//! Attempts: what is sent next, to whom and in which form, until a backend answers or none is left.
//!
//! A pure state machine. The exchange asks for the [`next_step`](Attempts::next_step), performs it, and says
//! with a `handle_*` what came of it. Waiting is data, so tests need no clock.
//!
//! - A feature that a backend rejects is left out at once: tool history becomes text (R08), state becomes the
//!   full history (R26). What worked instead is a [`Lesson`]; if it does not work either, the first error is
//!   the one returned, since its cause was another.
//! - What a refusal names as wrong is repaired and sent again, once for each cause (R41).
//! - Connect errors, 429, 502, 503 and 529 are repeated, with growing pauses, or as `Retry-After` says.
//! - Then the next destination is tried, if the failure was the backend's and not the request's.
//! - Once an answer has begun, nothing is repeated.

use super::{Ability, Decision, Rejection, Repair, Repairs, Verdict};
use std::time::Duration;

/// A form in which a request can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether tool history is sent as such; else it is text.
    pub native: bool,
    /// Whether it continues from what the backend keeps; else all of the history is sent.
    pub state: bool,
    /// Whether the backend may be asked to keep the answer.
    pub keep: bool,
    /// What is repaired because the backend refused it.
    pub repairs: Repairs,
}

/// One destination, and what may be tried there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// How to begin.
    pub form: Form,
    /// Whether a rejection of tool history may be answered with text.
    pub may_embed: bool,
    /// Whether success would say something new about tool history.
    pub is_in_doubt: bool,
    /// Whether success would say something new about state.
    pub is_state_in_doubt: bool,
    /// Whether it says something about the backend that it does not have the state to continue from: nobody
    /// is surprised that an old answer is gone.
    pub must_have_state: bool,
}

/// How often and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often the same is sent again.
    pub retries: u32,
    /// The first pause; each one after it is twice as long.
    pub pause: Duration,
    /// The longest pause of our own making.
    pub pause_max: Duration,
    /// The longest pause that a backend may ask for. If it asks for more, it counts as failed.
    pub asked_pause_max: Duration,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<E> {
    /// Wait, then send.
    Send {
        /// To which destination, by its number.
        leg: usize,
        /// In which form.
        form: Form,
        /// How long to wait before.
        after: Duration,
        /// Which attempt it is, over all destinations, from zero.
        attempt: u32,
    },
    /// Pass the answer on.
    Answer {
        /// Whose it is.
        leg: usize,
        /// What was learned on the way.
        lessons: Vec<Lesson>,
    },
    /// Give up with this error.
    Fail(E),
}

/// What an attempt came to, short of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// No connection.
    Connect,
    /// Connected, but no answer in time.
    TimedOut,
    /// What came is no answer, or more than is taken of one. Asking again would bring the same.
    Unusable,
    /// An error status.
    Status {
        /// Which one.
        status: u16,
        /// How long the backend wants us to wait.
        retry_after: Option<Duration>,
        /// The feature that it rejected, if that was it.
        rejection: Option<Rejection>,
    },
}

/// Something that was found out about a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// About which one.
    pub leg: usize,
    /// About what.
    pub ability: Ability,
    /// What was found.
    pub verdict: Verdict,
    /// How, in words for people.
    pub words: &'static str,
}

/// The attempts of one exchange. `E` is an error as the client would be told of it.
#[derive(Debug)]
pub struct Attempts<E> {
    legs: Vec<Leg>,
    policy: RetryPolicy,
    has_tool_history: bool,
    chance: u64,
    leg: usize,
    form: Form,
    sent: u32,
    retries: u32,
    /// The errors of this destination that a change of form was the answer to.
    rejected: Option<E>,
    lessons: Vec<Lesson>,
    /// What the first destination said, for when nobody answers.
    first: Option<E>,
    state: State<E>,
}

#[derive(Debug)]
enum State<E> {
    Ready { after: Duration },
    Sent,
    Answered,
    Failed(Option<E>),
}

/// What is said of a backend that refuses to be asked to keep an answer.
const REFUSES_TO_STORE: &str = "it refuses to store";

/// For how long an answer that a backend was asked to keep should be there. Providers keep them for weeks,
/// servers of one's own as long as they run.
const STATE_FRESH: Duration = Duration::from_secs(60 * 60);

impl Leg {
    /// Returns how to approach a destination about whose abilities these decisions were made.
    ///
    /// `state_age` says how long ago the answer was given that could be continued from, if there is one. Where
    /// nobody knows whether it is kept, that is tried: the full history can be sent at once when it is not.
    #[must_use]
    pub fn new(native: &Decision, server_state: &Decision, state_age: Option<Duration>) -> Self {
        let refuses = matches!(server_state, Decision::Learned(learned) if learned.words == REFUSES_TO_STORE);
        let form = Form {
            native: native.verdict() != Some(Verdict::No),
            state: state_age.is_some() && server_state.verdict() != Some(Verdict::No),
            keep: !refuses,
            repairs: Repairs::NONE,
        };
        let is_fresh = state_age.is_some_and(|age| age < STATE_FRESH);
        Self {
            form,
            may_embed: native.is_open(),
            is_in_doubt: matches!(native, Decision::Unknown { .. }),
            is_state_in_doubt: matches!(server_state, Decision::Unknown { .. }),
            must_have_state: is_fresh && server_state.is_open(),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            pause: Duration::from_millis(500),
            pause_max: Duration::from_secs(8),
            asked_pause_max: Duration::from_secs(20),
        }
    }
}

impl<E> Attempts<E> {
    /// Returns the machine for these destinations, of which there is at least one.
    ///
    /// `seed` spreads the pauses, so that many clients do not come back at the same moment.
    ///
    /// # Panics
    /// When there is no destination.
    #[must_use]
    pub fn new(legs: Vec<Leg>, has_tool_history: bool, policy: RetryPolicy, seed: u64) -> Self {
        let form = legs.first().expect("a route has a first destination").form;
        Self {
            legs,
            policy,
            has_tool_history,
            chance: seed,
            leg: 0,
            form,
            sent: 0,
            retries: 0,
            rejected: None,
            lessons: Vec::new(),
            first: None,
            state: State::Ready { after: Duration::ZERO },
        }
    }

    /// Says what is to be done next. Nothing, while an attempt is under way or after the end was told.
    pub fn next_step(&mut self) -> Option<Step<E>> {
        match &mut self.state {
            State::Ready { after } => {
                let after = *after;
                self.state = State::Sent;
                let attempt = self.sent;
                self.sent += 1;
                Some(Step::Send { leg: self.leg, form: self.form, after, attempt })
            }
            State::Sent => None,
            State::Answered => {
                self.state = State::Failed(None);
                Some(Step::Answer { leg: self.leg, lessons: std::mem::take(&mut self.lessons) })
            }
            State::Failed(error) => error.take().map(Step::Fail),
        }
    }

    /// Is told that what was sent held no tool history after all, so that an answer says nothing about that.
    pub const fn handle_no_tool_history(&mut self) {
        self.has_tool_history = false;
    }

    /// Is told that an answer has begun. From here on nothing is repeated.
    pub fn handle_answer(&mut self) {
        if !matches!(self.state, State::Sent) {
            return;
        }
        if self.form.native && self.has_tool_history && self.legs[self.leg].is_in_doubt {
            self.learn(Ability::NativeToolHistory, Verdict::Yes, "it took them");
        }
        if self.form.state && self.legs[self.leg].is_state_in_doubt {
            self.learn(Ability::ServerState, Verdict::Yes, "it went on from its own answer");
        }
        self.state = State::Answered;
    }

    /// Is told that the attempt under way failed before an answer began.
    pub fn handle_failure(&mut self, failed: Failed, error: E) {
        if !matches!(self.state, State::Sent) {
            return;
        }
        if let Some(form) = self.simpler_form(failed) {
            self.form = form;
            self.rejected.get_or_insert(error);
            self.state = State::Ready { after: Duration::ZERO };
        } else if let Some(after) = self.pause_before_retry(failed) {
            self.retries += 1;
            self.state = State::Ready { after };
        } else if failed.is_the_backends() {
            self.try_next_leg(error);
        } else {
            // The simpler form did not help, so the cause was another: the first error tells it.
            let error = self.rejected.take().unwrap_or(error);
            self.state = State::Failed(Some(self.first.take().unwrap_or(error)));
        }
    }

    /// Returns the form without what the backend rejected, if it was sent and may be left out.
    fn simpler_form(&mut self, failed: Failed) -> Option<Form> {
        let Failed::Status { rejection: Some(rejection), .. } = failed else { return None };
        let (leg, form) = (self.legs[self.leg], self.form);
        match rejection {
            Rejection::NativeTools => {
                let may = form.native && self.has_tool_history && leg.may_embed;
                may.then(|| {
                    self.learn(Ability::NativeToolHistory, Verdict::No, "it rejected tool items");
                    // Text retells the whole of the history; none of it is left for the backend to keep.
                    Form { native: false, state: false, ..form }
                })
            }
            Rejection::StateGone => form.state.then(|| {
                if leg.must_have_state {
                    self.learn(Ability::ServerState, Verdict::No, "it does not have its own answer");
                }
                Form { state: false, ..form }
            }),
            Rejection::StateUnsupported => form.state.then(|| {
                self.learn(Ability::ServerState, Verdict::No, "it goes on from no answer");
                Form { state: false, ..form }
            }),
            Rejection::Repairable(repair) => Self::repaired(form, repair),
            // What the backend keeps is of a length that it has taken before, and what is sent instead is shorter.
            Rejection::TooLong { .. } => Self::repaired(Form { state: false, ..form }, Repair::FitWindow),
            Rejection::StoreRefused => form.keep.then(|| {
                self.learn(Ability::ServerState, Verdict::No, REFUSES_TO_STORE);
                Form { state: false, keep: false, ..form }
            }),
        }
    }

    /// Returns the form with one more repair, if that was not tried already.
    fn repaired(form: Form, repair: Repair) -> Option<Form> {
        let may = !form.repairs.has(repair);
        may.then(|| Form { repairs: form.repairs.with(repair), ..form })
    }

    /// Notes a lesson. It is told only if an answer follows, so that a failure teaches nothing.
    fn learn(&mut self, ability: Ability, verdict: Verdict, words: &'static str) {
        self.lessons.push(Lesson { leg: self.leg, ability, verdict, words });
    }

    fn pause_before_retry(&mut self, failed: Failed) -> Option<Duration> {
        if !failed.is_worth_a_retry() || self.retries >= self.policy.retries {
            return None;
        }
        let own = self.own_pause();
        match failed.retry_after() {
            Some(asked) if asked > self.policy.asked_pause_max => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }

    /// Returns a pause that grows with each retry, shortened by up to a quarter by chance.
    fn own_pause(&mut self) -> Duration {
        let grown = self.policy.pause.saturating_mul(1 << self.retries.min(16)).min(self.policy.pause_max);
        self.chance = split_mix(self.chance);
        let share = u32::try_from(self.chance % 251).unwrap_or_default();
        grown - (grown / 1000).saturating_mul(share)
    }

    fn try_next_leg(&mut self, error: E) {
        // What was rejected here before is no verdict: nothing worked instead.
        let leg = self.leg;
        self.lessons.retain(|lesson| lesson.leg != leg);
        let error = self.rejected.take().unwrap_or(error);
        let first = self.first.take().unwrap_or(error);
        self.leg += 1;
        if let Some(next) = self.legs.get(self.leg) {
            self.form = next.form;
            self.retries = 0;
            self.first = Some(first);
            self.state = State::Ready { after: Duration::ZERO };
        } else {
            self.state = State::Failed(Some(first));
        }
    }
}

impl Failed {
    const fn is_worth_a_retry(self) -> bool {
        matches!(self, Self::Connect | Self::Status { status: 429 | 502 | 503 | 529, .. })
    }

    /// Says whether another backend might do better: the request itself is not to blame.
    const fn is_the_backends(self) -> bool {
        match self {
            Self::Connect | Self::TimedOut | Self::Unusable => true,
            Self::Status { status, .. } => matches!(status, 401..=404 | 408 | 429 | 500..),
        }
    }

    const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => retry_after,
            Self::Connect | Self::TimedOut | Self::Unusable => None,
        }
    }
}

/// Returns the next number of a sequence that looks random.
const fn split_mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
