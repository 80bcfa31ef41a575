//! Why an answer ended, both ways.
//!
//! OpenAI has five words; servers have added theirs. `stop` is said of a refusal too, and by some servers
//! although a tool was called. In the other direction there is no word for an answer that failed or broke
//! off: it is said to have been cut at the limit, which every client takes for an incomplete answer, and an
//! `error` stands beside it.

use throughline_core::{Ending, Failure, FailureKind, Stop, Text, settled_stop};

/// Returns how an answer ended that gave this reason.
pub(super) fn decode_finish(reason: &str) -> Ending {
    Ending::Stopped(match reason {
        "stop" | "eos" | "eos_token" | "end_turn" | "complete" | "" => Stop::EndTurn,
        "tool_calls" | "function_call" | "tool_use" => Stop::ToolCalls,
        "length" | "max_tokens" => Stop::MaxTokens,
        "model_length" => Stop::ContextWindow,
        "stop_sequence" => Stop::Sequence(None),
        "content_filter" => Stop::Filtered,
        "refusal" => Stop::Refusal,
        "error" => return failed(FailureKind::Backend, "the backend gave up in the middle of the answer"),
        // DeepSeek's word for having run out of machines in the middle of an answer.
        "insufficient_system_resource" => {
            return failed(FailureKind::Overloaded, "the backend ran out of resources");
        }
        other => Stop::Other(Text::from(other)),
    })
}

fn failed(kind: FailureKind, message: &'static str) -> Ending {
    Ending::Failed(Failure::new(kind, Text::from_static(message)))
}

/// Corrects an ending by what the answer held.
pub(super) fn settled(ending: Ending, has_calls: bool, has_refusal: bool) -> Ending {
    match ending {
        Ending::Stopped(Stop::EndTurn) if has_refusal && !has_calls => Ending::Stopped(Stop::Refusal),
        Ending::Stopped(stop) => Ending::Stopped(settled_stop(stop, has_calls)),
        ending => ending,
    }
}

/// Returns the word for an ending.
///
/// `of_old` is a client of the time before tools; `has_refusal` says that the words of a refusal were given.
pub(super) fn finish_reason(ending: &Ending, of_old: bool, has_refusal: bool) -> &'static str {
    let Ending::Stopped(stop) = ending else { return "length" };
    match stop {
        Stop::EndTurn | Stop::Sequence(_) => "stop",
        Stop::ToolCalls if of_old => "function_call",
        Stop::ToolCalls => "tool_calls",
        Stop::Refusal if has_refusal => "stop",
        Stop::Refusal | Stop::Filtered => "content_filter",
        // A pause, or a reason that nobody here knows, is no end that the model chose.
        Stop::MaxTokens | Stop::ContextWindow | Stop::Paused | Stop::Other(_) => "length",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_stop_and_is_told_by_its_words() {
        let refused = settled(decode_finish("stop"), false, true);
        assert_eq!(refused, Ending::Stopped(Stop::Refusal));
        assert_eq!(finish_reason(&refused, false, true), "stop");
        assert_eq!(finish_reason(&refused, false, false), "content_filter");
    }

    #[test]
    fn stop_although_a_tool_was_called_is_corrected() {
        assert_eq!(settled(decode_finish("stop"), true, false), Ending::Stopped(Stop::ToolCalls));
        assert_eq!(settled(decode_finish("tool_calls"), false, false), Ending::Stopped(Stop::EndTurn));
    }

    #[test]
    fn nothing_that_failed_looks_complete() {
        for ending in [Ending::Broken, Ending::Cancelled, decode_finish("error")] {
            assert_eq!(finish_reason(&ending, false, false), "length");
        }
    }
}
