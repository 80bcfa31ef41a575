//! A turn: the tool loop as a state machine, from one input of the user until nothing is left to run.
//!
//! It is told facts (`handle_*`) and says what should happen next ([`Turn::next_step`]). It runs nothing and asks
//! nobody, so it is the same live and in a replay. What it sees to:
//!
//! - Calls are run one after another in the order of the answer, each once, however often it was announced.
//! - Only a whole answer is acted upon: what broke off, failed or was cut short ends as what it is.
//! - Every call gets exactly one result, be it one that says why the call was not run, before the model is asked
//!   again and before the turn is over.
//! - Asking again is safe as long as nothing of the answer was acted upon, so that is all that is tried again.

#[cfg(test)]
mod tests;

use crate::{Call, Ending, Entry, Failure, FailureKind, Outcome, Part, Stop};
use std::collections::VecDeque;

/// How far a turn may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// The most calls that are run; what is called beyond is not.
    pub max_tool_calls: u32,
    /// How often in a row an answer that broke off is asked for again.
    pub retries: u32,
}

/// The tool loop.
#[derive(Clone, Debug)]
pub struct Turn {
    limits: TurnLimits,
    phase: Phase,
    /// Calls of the latest answer that nobody has dealt with.
    batch: VecDeque<Call>,
    /// What came of the others.
    settled: Vec<Settled>,
    /// What the answer under way was asked for with.
    asked: Vec<Settled>,
    runs: u32,
    retries: u32,
    is_cancelled: bool,
    is_limited: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    /// The model is to be asked.
    Due { again: bool },
    /// It is asked.
    Asking,
    /// The next call of the batch is to be dealt with.
    Between,
    /// A call is run.
    Running(Call),
    /// What is settled is to be kept, and then the turn is over.
    Closing(Conclusion),
    /// The turn is over.
    Over,
}

/// What should happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnStep {
    /// Ask the model. What it answers is the next fact.
    Ask {
        /// What came of the calls of its last answer, in their order; before the first answer, of calls that an
        /// earlier turn left open.
        results: Vec<Settled>,
        /// Whether the same was asked before and the answer is to be disregarded.
        again: bool,
        /// Whether it may call tools; if not, it can only sum up.
        offers_tools: bool,
    },
    /// Run a call. What came of it is the next fact.
    Run(Call),
    /// Keep what came of calls: the model is not asked again in this turn, but the history has to have it.
    Keep(Vec<Settled>),
    /// Nothing: the turn is over.
    Finish(Conclusion),
}

/// A call, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The call.
    pub call: Call,
    /// What came of it.
    pub settlement: Settlement,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It was dealt with, and this is what the model is told.
    Returned(Outcome, Vec<Part>),
    /// It was not run, or nobody knows.
    Closed(Closing),
}

/// Why a call has no result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// All calls that the turn may run were used up.
    Limit,
    /// The turn was called off.
    Cancelled,
    /// The answer that made it was cut short, so that the call may be too.
    CutShort,
    /// The program ended while it may have been running: nobody knows what it did.
    Lost,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// As its last answer did; before the first one, as what prevented it.
    Answer(Ending),
    /// All calls that it may run were used up.
    Limited,
}

impl Turn {
    /// Begins a turn; `open` are calls that an earlier one left without a result.
    #[must_use]
    pub fn new(limits: TurnLimits, open: impl IntoIterator<Item = Call>) -> Self {
        let lost = |call| Settled { call, settlement: Settlement::Closed(Closing::Lost) };
        Self {
            limits,
            phase: Phase::Due { again: false },
            batch: VecDeque::new(),
            settled: open.into_iter().map(lost).collect(),
            asked: Vec::new(),
            runs: 0,
            retries: 0,
            is_cancelled: false,
            is_limited: false,
        }
    }

    /// Returns what should happen next; nothing as long as a fact is waited for, and when the turn is over.
    pub fn next_step(&mut self) -> Option<TurnStep> {
        loop {
            match self.phase.clone() {
                Phase::Due { .. } if self.is_cancelled => {
                    self.phase = Phase::Closing(Conclusion::Answer(Ending::Cancelled));
                }
                Phase::Due { again } => {
                    self.phase = Phase::Asking;
                    self.asked = std::mem::take(&mut self.settled);
                    let (results, offers_tools) = (self.asked.clone(), !self.is_limited);
                    return Some(TurnStep::Ask { results, again, offers_tools });
                }
                Phase::Between => match self.batch.pop_front() {
                    None => self.phase = Phase::Due { again: false },
                    Some(call) => {
                        if let Some(step) = self.begin(call) {
                            return Some(step);
                        }
                    }
                },
                Phase::Closing(conclusion) => {
                    if !self.settled.is_empty() {
                        return Some(TurnStep::Keep(std::mem::take(&mut self.settled)));
                    }
                    self.phase = Phase::Over;
                    return Some(TurnStep::Finish(conclusion));
                }
                Phase::Asking | Phase::Running(_) | Phase::Over => return None,
            }
        }
    }

    /// Takes an answer: what the model said and called, in its order, and how that ended.
    pub fn handle_answer(&mut self, entries: &[Entry], ending: &Ending) {
        if !matches!(self.phase, Phase::Asking) {
            return;
        }
        if self.may_ask_again(ending) {
            self.retries += 1;
            self.settled = std::mem::take(&mut self.asked);
            self.phase = Phase::Due { again: true };
            return;
        }
        self.retries = 0;
        self.asked.clear();
        self.batch = calls_of(entries);
        let is_whole = matches!(ending, Ending::Stopped(stop) if is_whole(stop));
        if is_whole && !self.batch.is_empty() && !self.is_limited {
            self.phase = Phase::Between;
            return;
        }
        let closing = match ending {
            _ if self.is_cancelled || *ending == Ending::Cancelled => Closing::Cancelled,
            _ if is_whole => Closing::Limit,
            _ => Closing::CutShort,
        };
        let rest: Vec<Call> = self.batch.drain(..).collect();
        rest.into_iter().for_each(|call| self.close(call, closing));
        let conclusion = if is_whole && self.is_limited {
            Conclusion::Limited
        } else {
            Conclusion::Answer(ending.clone())
        };
        self.phase = Phase::Closing(conclusion);
    }

    /// Takes that there is no answer, and that asking for it again was tried.
    pub fn handle_failure(&mut self, failure: Failure) {
        if matches!(self.phase, Phase::Asking) {
            // What the model was to be told is in the history by now, or is not to be there.
            self.asked.clear();
            self.phase = Phase::Closing(Conclusion::Answer(Ending::Failed(failure)));
        }
    }

    /// Takes what came of the call that is run.
    pub fn handle_return(&mut self, outcome: Outcome, parts: Vec<Part>) {
        if let Phase::Running(call) = std::mem::replace(&mut self.phase, Phase::Between) {
            self.settled.push(Settled { call, settlement: Settlement::Returned(outcome, parts) });
        }
    }

    /// Takes that the user has called the turn off. Whatever is under way still ends with its own fact.
    pub fn handle_cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Returns what came of calls since the model was last asked.
    #[must_use]
    pub fn settled(&self) -> &[Settled] {
        &self.settled
    }

    /// Returns how many calls were run.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// Begins with a call, unless it is not to be run.
    fn begin(&mut self, call: Call) -> Option<TurnStep> {
        if self.is_cancelled {
            self.close(call, Closing::Cancelled);
            return None;
        }
        if self.runs >= self.limits.max_tool_calls {
            self.is_limited = true;
            self.close(call, Closing::Limit);
            return None;
        }
        self.runs += 1;
        self.phase = Phase::Running(call.clone());
        Some(TurnStep::Run(call))
    }

    fn close(&mut self, call: Call, closing: Closing) {
        self.settled.push(Settled { call, settlement: Settlement::Closed(closing) });
    }

    fn may_ask_again(&self, ending: &Ending) -> bool {
        let is_passing = match ending {
            Ending::Broken => true,
            Ending::Failed(failure) => matches!(
                failure.kind,
                FailureKind::RateLimited
                    | FailureKind::Overloaded
                    | FailureKind::TimedOut
                    | FailureKind::Backend
            ),
            Ending::Stopped(_) | Ending::Cancelled => false,
        };
        is_passing && !self.is_cancelled && self.retries < self.limits.retries
    }
}

/// Returns the calls of an answer that somebody has to run, each once.
///
/// One that is announced twice is the same in everything but perhaps one of its ids. Two that differ in what they
/// call are two, also under one id: some servers give the same one to every call.
fn calls_of(entries: &[Entry]) -> VecDeque<Call> {
    let mut calls: VecDeque<Call> = VecDeque::new();
    for call in entries.iter().filter(|entry| !entry.is_hidden()).filter_map(Entry::as_call) {
        if !calls.iter().any(|known| known.is_same_call(call)) {
            calls.push_back(call.clone());
        }
    }
    calls
}

const fn is_whole(stop: &Stop) -> bool {
    !stop.is_incomplete()
}

impl Closing {
    /// Returns how the call is taken to have gone.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Limit => Outcome::Denied,
            Self::Cancelled | Self::CutShort => Outcome::Interrupted,
            Self::Lost => Outcome::Unknown,
        }
    }
}

impl Settled {
    /// Returns how the call went.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match &self.settlement {
            Settlement::Returned(outcome, _) => *outcome,
            Settlement::Closed(closing) => closing.outcome(),
        }
    }
}

impl Conclusion {
    /// Returns the conclusion in a word: `completed` only if the model said all that it wanted.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Answer(Ending::Stopped(stop)) if stop.is_incomplete() => "incomplete",
            Self::Answer(Ending::Stopped(Stop::Refusal)) => "refused",
            Self::Answer(Ending::Stopped(Stop::Paused)) => "paused",
            Self::Answer(Ending::Stopped(_)) => "completed",
            Self::Answer(Ending::Failed(_)) => "failed",
            Self::Answer(Ending::Broken) => "broken",
            Self::Answer(Ending::Cancelled) => "cancelled",
            Self::Limited => "limited",
        }
    }
}
