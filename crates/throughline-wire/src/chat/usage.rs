//! What an answer cost, both ways.
//!
//! The prompt's tokens include the cached ones here. Where the cached ones are told differs: in the details,
//! as OpenAI has it; in a field of its own, as DeepSeek has it; or beside the totals, as Moonshot has it.

use super::extras::given;
use crate::json::{Kind, Node, Writer};
use throughline_core::Usage;

/// Reads a usage object; anything else tells nothing.
pub(super) fn decode_usage(node: Node<'_>) -> Option<Usage> {
    if node.kind() != Kind::Object || node.is_empty() {
        return None;
    }
    let prompt = given(node, "prompt_tokens_details");
    let completion = given(node, "completion_tokens_details");
    let cached = prompt.map_or(0, |details| count(details, "cached_tokens"));
    let elsewhere = count(node, "prompt_cache_hit_tokens").max(count(node, "cached_tokens"));
    Some(Usage {
        input: count(node, "prompt_tokens"),
        cache_read: cached.max(elsewhere),
        cache_written: prompt.map_or(0, |details| count(details, "cache_write_tokens")),
        output: count(node, "completion_tokens"),
        reasoning: completion.map_or(0, |details| count(details, "reasoning_tokens")),
    })
}

fn count(node: Node<'_>, name: &str) -> u64 {
    node.field(name).and_then(|count| count.as_u64()).unwrap_or(0)
}

/// Writes a usage object.
pub(super) fn write_usage(writer: &mut Writer, usage: &Usage) {
    writer.begin_object();
    writer.field_uint("prompt_tokens", usage.input);
    writer.field_uint("completion_tokens", usage.output);
    writer.field_uint("total_tokens", usage.input.saturating_add(usage.output));
    writer.key("prompt_tokens_details");
    writer.begin_object();
    writer.field_uint("cached_tokens", usage.cache_read);
    if usage.cache_written > 0 {
        writer.field_uint("cache_write_tokens", usage.cache_written);
    }
    writer.end_object();
    writer.key("completion_tokens_details");
    writer.begin_object();
    writer.field_uint("reasoning_tokens", usage.reasoning);
    writer.end_object();
    writer.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(text: &str) -> Option<Usage> {
        decode_usage(Document::parse(text).unwrap().root())
    }

    #[test]
    fn what_is_written_is_read_again() {
        let usage = Usage { input: 900, cache_read: 800, cache_written: 50, output: 12, reasoning: 7 };
        let mut writer = Writer::new();
        write_usage(&mut writer, &usage);
        assert_eq!(decode(&writer.into_string()), Some(usage));
    }

    #[test]
    fn cached_tokens_are_found_wherever_they_are_told() {
        let cached = |text| decode(text).unwrap().cache_read;
        assert_eq!(cached(r#"{"prompt_tokens":9,"prompt_cache_hit_tokens":3}"#), 3);
        assert_eq!(cached(r#"{"prompt_tokens":9,"cached_tokens":4,"prompt_tokens_details":null}"#), 4);
        assert_eq!(decode("null"), None);
        assert_eq!(decode("{}"), None);
    }
}
