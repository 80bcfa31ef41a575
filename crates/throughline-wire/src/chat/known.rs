//! The known fields of a request, and what they must hold.
//!
//! Numbers have the ranges of OpenAI. Servers that speak the dialect have further fields (`top_k`, `reasoning`,
//! `thinking`); those are theirs, and only looked at where the canonical model has a word for them.

use crate::json::{DecodeError, Node};
use crate::shape::{ANY_OBJECT, Field, Shape, TEXTS, at_least, may, must};

/// The fields of a request, but for its messages and tools, whose decoders look for themselves.
pub(super) const REQUEST: &[Field] = &[
    may("model", Shape::Text),
    may("stream", Shape::Flag),
    may("stream_options", STREAM_OPTIONS),
    may("n", Shape::Such(one_answer)),
    may("max_tokens", at_least(1)),
    may("max_completion_tokens", at_least(1)),
    may("temperature", Shape::Number(0.0, 2.0)),
    may("top_p", Shape::Number(0.0, 1.0)),
    may("presence_penalty", Shape::Number(-2.0, 2.0)),
    may("frequency_penalty", Shape::Number(-2.0, 2.0)),
    may("logit_bias", Shape::Map(&Shape::Number(-100.0, 100.0))),
    may("logprobs", Shape::Flag),
    may("top_logprobs", Shape::Whole(0, 20)),
    may("seed", Shape::Whole(i64::MIN, i64::MAX)),
    may("stop", Shape::TextOr(&TEXTS)),
    may("parallel_tool_calls", Shape::Flag),
    may("response_format", RESPONSE_FORMAT),
    may("modalities", TEXTS),
    may("audio", ANY_OBJECT),
    may("prediction", Shape::Tagged(&[("content", &[must("content", Shape::TextOr(&PARTS))])])),
    may("web_search_options", ANY_OBJECT),
    may("reasoning_effort", Shape::Text),
    may("verbosity", Shape::Text),
    may("metadata", Shape::Map(&Shape::Text)),
    may("user", Shape::Text),
    may("safety_identifier", Shape::Text),
    may("prompt_cache_key", Shape::Text),
    may("prompt_cache_retention", Shape::Text),
    may("service_tier", Shape::Text),
    may("store", Shape::Flag),
];

/// What a message may have besides what its decoder reads.
pub(super) const MESSAGE: &[Field] = &[may("name", Shape::Text), may("audio", ANY_OBJECT)];

/// A choice among some of the tools.
pub(super) const ALLOWED_TOOLS: &[Field] = &[may("mode", Shape::OneOf(&["auto", "required"]))];

/// A part that holds sound, which no other dialect takes. Mistral's is a bare string.
pub(super) const AUDIO_PART: &[Field] = &[must("input_audio", Shape::TextOr(&AUDIO))];

const AUDIO: Shape = Shape::Object(&[may("data", Shape::Text), may("format", Shape::Text)]);

const STREAM_OPTIONS: Shape =
    Shape::Object(&[may("include_usage", Shape::Flag), may("include_obfuscation", Shape::Flag)]);

const RESPONSE_FORMAT: Shape = Shape::Tagged(&[("json_schema", &[must("json_schema", JSON_SCHEMA)])]);

/// The name, which OpenAI wants, is left out by clients of local servers.
const JSON_SCHEMA: Shape = Shape::Object(&[
    may("name", Shape::Text),
    may("description", Shape::Text),
    may("schema", ANY_OBJECT),
    may("strict", Shape::Flag),
]);

const PARTS: Shape = Shape::List(&ANY_OBJECT);

/// Refuses to ask for several answers: of one request the history keeps one, and that is what goes on.
fn one_answer(n: Node<'_>) -> Result<(), DecodeError> {
    match n.as_f64() {
        Some(1.0) => Ok(()),
        Some(many) if many > 1.0 && many.fract() == 0.0 => {
            Err(n.error(format!("must be 1, not {}: the gateway keeps one answer to each request", n.raw())))
        }
        Some(_) => Err(n.error(format!("must be a whole number from 1 up, not {}", n.raw()))),
        None => Err(n.error(format!("must be a number, not {}", n.kind()))),
    }
}
