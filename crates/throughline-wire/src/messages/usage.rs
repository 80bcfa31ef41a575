//! Token counts and stop reasons, both ways.
//!
//! Here `input_tokens` leaves out what was read from or written to the cache; everywhere else the prompt is
//! counted whole.

use super::kept::given;
use crate::json::{Node, Writer};
use throughline_core::{Stop, Text, Usage};

/// Reads token counts; what is missing or no number counts as zero.
pub(super) fn decode_usage(usage: Node<'_>) -> Usage {
    let count = |name| usage.field(name).and_then(|count| count.as_u64()).unwrap_or(0);
    let (cache_read, cache_written) =
        (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let details = given(usage, "output_tokens_details");
    Usage {
        input: count("input_tokens").saturating_add(cache_read).saturating_add(cache_written),
        cache_read,
        cache_written,
        output: count("output_tokens"),
        reasoning: details.and_then(|details| details.field("thinking_tokens")?.as_u64()).unwrap_or(0),
    }
}

/// Writes token counts.
pub(super) fn write_usage(writer: &mut Writer, usage: Usage) {
    writer.begin_object();
    let cached = usage.cache_read.saturating_add(usage.cache_written);
    writer.field_uint("input_tokens", usage.input.saturating_sub(cached));
    writer.field_uint("cache_creation_input_tokens", usage.cache_written);
    writer.field_uint("cache_read_input_tokens", usage.cache_read);
    writer.field_uint("output_tokens", usage.output);
    if usage.reasoning > 0 {
        writer.key("output_tokens_details");
        writer.begin_object();
        writer.field_uint("thinking_tokens", usage.reasoning);
        writer.end_object();
    }
    writer.end_object();
}

/// Reads `stop_reason` and `stop_sequence` of an answer or of a `message_delta`; nothing if it goes on.
pub(super) fn decode_stop(object: Node<'_>) -> Option<Stop> {
    let reason = given(object, "stop_reason")?.as_text()?;
    Some(match reason.as_str() {
        "end_turn" => Stop::EndTurn,
        "tool_use" => Stop::ToolCalls,
        "max_tokens" => Stop::MaxTokens,
        "stop_sequence" => Stop::Sequence(given(object, "stop_sequence").and_then(|text| text.as_text())),
        "pause_turn" => Stop::Paused,
        "refusal" => Stop::Refusal,
        "model_context_window_exceeded" => Stop::ContextWindow,
        _ => Stop::Other(reason),
    })
}

/// Returns the word for a stop, and the sequence that caused it.
///
/// `compaction` is a word of this dialect that only it knows; any other such word is from elsewhere, and a
/// client would not know what to do with it.
pub(super) fn stop_words(stop: &Stop) -> (&'static str, Option<&Text>) {
    match stop {
        Stop::EndTurn => ("end_turn", None),
        Stop::ToolCalls => ("tool_use", None),
        Stop::MaxTokens => ("max_tokens", None),
        Stop::ContextWindow => ("model_context_window_exceeded", None),
        Stop::Sequence(sequence) => ("stop_sequence", sequence.as_ref()),
        Stop::Refusal | Stop::Filtered => ("refusal", None),
        Stop::Paused => ("pause_turn", None),
        Stop::Other(word) if word == "compaction" => ("compaction", None),
        Stop::Other(_) => ("end_turn", None),
    }
}

/// Writes `stop_reason` and `stop_sequence`; both `null` for an answer that did not come to a stop.
pub(super) fn write_stop(writer: &mut Writer, stop: Option<&Stop>) {
    let (reason, sequence) = stop.map(stop_words).unzip();
    match reason {
        Some(reason) => writer.field_str("stop_reason", reason),
        None => writer.field_null("stop_reason"),
    }
    match sequence.flatten() {
        Some(sequence) => writer.field_str("stop_sequence", sequence),
        None => writer.field_null("stop_sequence"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn input_tokens_leave_out_the_cache_and_ours_do_not() {
        let text = r#"{"input_tokens":12,"cache_creation_input_tokens":2048,"cache_read_input_tokens":10240,"output_tokens":140,"output_tokens_details":{"thinking_tokens":128}}"#;
        let usage = decode_usage(Document::parse(text).unwrap().root());
        assert_eq!((usage.input, usage.output, usage.reasoning), (12 + 2048 + 10_240, 140, 128));
        let mut writer = Writer::new();
        write_usage(&mut writer, usage);
        assert_eq!(writer.into_string(), text);
    }

    #[test]
    fn every_word_for_a_stop_is_read_and_written() {
        for word in [
            "end_turn",
            "tool_use",
            "max_tokens",
            "stop_sequence",
            "pause_turn",
            "refusal",
            "model_context_window_exceeded",
            "compaction",
        ] {
            let document = Document::parse(format!(r#"{{"stop_reason":"{word}"}}"#)).unwrap();
            assert_eq!(stop_words(&decode_stop(document.root()).unwrap()).0, word);
        }
        assert_eq!(stop_words(&Stop::Other("content_filter_v2".into())).0, "end_turn");
    }
}
