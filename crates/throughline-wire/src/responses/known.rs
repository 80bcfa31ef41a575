//! The known fields of a request, and what they must hold.
//!
//! The provider wants at least 16 for `max_output_tokens`; other backends of the dialect do not, so that is
//! left to them. Clients of this dialect write `null` for nearly anything that they do not mean.

use crate::shape::{ANY_OBJECT, Field, Shape, TEXTS, at_least, may, must};

/// The fields of a request, but for its input and tools, whose decoders look for themselves.
pub(super) const REQUEST: &[Field] = &[
    may("model", Shape::Text),
    may("instructions", Shape::Text),
    may("previous_response_id", Shape::Text),
    may("conversation", Shape::TextOr(&Shape::Object(&[must("id", Shape::Text)]))),
    may("prompt", PROMPT),
    may("include", TEXTS),
    may("stream", Shape::Flag),
    may("stream_options", Shape::Object(&[may("include_obfuscation", Shape::Flag)])),
    may("background", Shape::Flag),
    may("store", Shape::Flag),
    may("truncation", Shape::OneOf(&["auto", "disabled"])),
    may("max_output_tokens", at_least(1)),
    may("max_tool_calls", at_least(1)),
    may("parallel_tool_calls", Shape::Flag),
    may("temperature", Shape::Number(0.0, 2.0)),
    may("top_p", Shape::Number(0.0, 1.0)),
    may("presence_penalty", Shape::Number(-2.0, 2.0)),
    may("frequency_penalty", Shape::Number(-2.0, 2.0)),
    may("top_logprobs", Shape::Whole(0, 20)),
    may("text", Shape::Object(&[may("format", FORMAT), may("verbosity", Shape::Text)])),
    may("reasoning", REASONING),
    may("metadata", Shape::Map(&Shape::Text)),
    may("user", Shape::Text),
    may("safety_identifier", Shape::Text),
    may("prompt_cache_key", Shape::Text),
    may("prompt_cache_retention", Shape::Text),
    may("service_tier", Shape::Text),
    may("context_management", Shape::List(&EDIT)),
];

/// What is to be done with the history when it grows.
const EDIT: Shape = Shape::Tagged(&[("compaction", &[may("compact_threshold", at_least(1))])]);

/// A choice among some of the tools.
pub(super) const ALLOWED_TOOLS: &[Field] =
    &[may("mode", Shape::OneOf(&["auto", "required"])), must("tools", Shape::List(&ANY_OBJECT))];

const PROMPT: Shape =
    Shape::Object(&[must("id", Shape::Text), may("version", Shape::Text), may("variables", ANY_OBJECT)]);

const REASONING: Shape = Shape::Object(&[
    may("effort", Shape::Text),
    may("summary", Shape::Text),
    may("generate_summary", Shape::Text),
]);

const FORMAT: Shape = Shape::Tagged(&[(
    "json_schema",
    &[
        must("name", Shape::Text),
        must("schema", ANY_OBJECT),
        may("description", Shape::Text),
        may("strict", Shape::Flag),
    ],
)]);
