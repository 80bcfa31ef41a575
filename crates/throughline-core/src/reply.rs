//! A backend's answer, decoded: what it said and called, how it ended, what it cost.

use crate::{Dialect, Entry, Extra, Failure, Text};

/// A decoded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The backend's id of the answer.
    pub id: Option<Text>,
    /// The model that answered.
    pub model: Option<Text>,
    /// What it said, thought and called, in its order.
    pub entries: Vec<Entry>,
    /// How it ended.
    pub ending: Ending,
    /// What it cost, where the backend says.
    pub usage: Option<Usage>,
    /// The dialect and the top-level fields of the answer, where it came whole.
    pub fields: Option<(Dialect, Vec<Extra>)>,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The model came to a stop.
    Stopped(Stop),
    /// The backend gave up, and says why.
    Failed(Failure),
    /// The connection ended before the answer did.
    Broken,
    /// Someone called it off.
    Cancelled,
}

/// Why a model came to a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It had said all it wanted.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolCalls,
    /// It ran into the limit of output tokens.
    MaxTokens,
    /// It ran into the end of the context window.
    ContextWindow,
    /// It produced a stop sequence.
    Sequence(Option<Text>),
    /// It refused.
    Refusal,
    /// A filter cut it off.
    Filtered,
    /// The provider paused a long turn, to be continued.
    Paused,
    /// A reason that only its own dialect knows.
    Other(Text),
}

impl Stop {
    /// Says whether the answer is shorter than the model wanted it to be.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        matches!(self, Self::MaxTokens | Self::ContextWindow | Self::Filtered)
    }
}

/// Tokens that a request and its answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the prompt, those read from and written to a cache included.
    pub input: u64,
    /// Those of the prompt that were read from a cache.
    pub cache_read: u64,
    /// Those of the prompt that were written to a cache.
    pub cache_written: u64,
    /// All tokens of the answer, reasoning included.
    pub output: u64,
    /// Those of the answer that were reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Returns what both took together. A backend may report any number, so that a sum stops at the largest there is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    /// Returns this usage with everything that a later report knows better.
    ///
    /// Providers report piecemeal: the prompt at the start, the answer at the end, zeros for what they
    /// do not know yet.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            input: self.input.max(later.input),
            cache_read: self.cache_read.max(later.cache_read),
            cache_written: self.cache_written.max(later.cache_written),
            output: self.output.max(later.output),
            reasoning: self.reasoning.max(later.reasoning),
        }
    }
}

/// Corrects a stop reason that the calls beside it contradict.
///
/// Some backends say that the turn is over although a tool was called, and an agent that believes them
/// stops in silence; others announce calls that never came.
#[must_use]
pub fn settled_stop(stop: Stop, has_calls: bool) -> Stop {
    match (stop, has_calls) {
        (Stop::EndTurn, true) => Stop::ToolCalls,
        (Stop::ToolCalls, false) => Stop::EndTurn,
        (stop, _) => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_hides_calls_is_corrected_and_the_reverse() {
        assert_eq!(settled_stop(Stop::EndTurn, true), Stop::ToolCalls);
        assert_eq!(settled_stop(Stop::ToolCalls, false), Stop::EndTurn);
        assert_eq!(settled_stop(Stop::MaxTokens, true), Stop::MaxTokens);
    }

    #[test]
    fn a_later_report_of_zero_does_not_erase_an_earlier_one() {
        let start = Usage { input: 900, cache_read: 800, ..Usage::default() };
        let end = Usage { output: 12, ..Usage::default() };
        let all = start.updated(end);
        assert_eq!((all.input, all.cache_read, all.output), (900, 800, 12));
    }
}
