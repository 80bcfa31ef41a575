//! The known fields of a request, and what they must hold.
//!
//! `max_tokens` is required by the provider, but not by the request that only counts tokens, nor by a gateway
//! whose backends can do without it. Zero is documented: it fills the prompt cache without an answer.

use crate::json::{DecodeError, Kind, Node};
use crate::shape::{self, ANY_OBJECT, Field, Shape, TEXTS, at_least, may, must};

/// The fields of a request, but for its messages, whose decoder looks for itself.
pub(super) const REQUEST: &[Field] = &[
    may("model", Shape::Text),
    may("stream", Shape::Flag),
    may("max_tokens", at_least(0)),
    may("temperature", Shape::Number(0.0, 1.0)),
    may("top_p", Shape::Number(0.0, 1.0)),
    may("top_k", at_least(0)),
    may("stop_sequences", TEXTS),
    may("system", Shape::TextOr(&Shape::List(&SYSTEM_BLOCK))),
    may("tools", Shape::List(&Shape::Such(tool))),
    may("tool_choice", TOOL_CHOICE),
    may("thinking", THINKING),
    may("output_config", Shape::Object(&[may("effort", Shape::Text), may("format", FORMAT)])),
    may("output_format", FORMAT),
    may("metadata", Shape::Object(&[may("user_id", Shape::Text)])),
    may("service_tier", Shape::Text),
    may("inference_geo", Shape::Text),
    may("speed", Shape::Text),
    may("container", Shape::TextOr(&CONTAINER)),
    may("context_management", Shape::Object(&[may("edits", Shape::List(&EDIT))])),
    may("mcp_servers", Shape::List(&MCP_SERVER)),
    CACHE_CONTROL,
];

/// What every block may carry.
pub(super) const BLOCK: &[Field] = &[CACHE_CONTROL];

const CACHE_CONTROL: Field = may(
    "cache_control",
    Shape::Object(&[must("type", Shape::OneOf(&["ephemeral"])), may("ttl", Shape::OneOf(&["5m", "1h"]))]),
);

/// Nothing but text can be said beside the conversation.
const SYSTEM_BLOCK: Shape =
    Shape::Object(&[must("type", Shape::OneOf(&["text"])), must("text", Shape::Text), CACHE_CONTROL]);

const SERIAL: Field = may("disable_parallel_tool_use", Shape::Flag);
const TOOL_CHOICE: Shape =
    Shape::Tagged(&[("auto", &[SERIAL]), ("any", &[SERIAL]), ("tool", &[must("name", Shape::Text), SERIAL])]);

const DISPLAY: Field = may("display", Shape::Text);
const THINKING: Shape = Shape::Tagged(&[
    ("enabled", &[must("budget_tokens", at_least(1024)), DISPLAY]),
    ("adaptive", &[DISPLAY]),
]);

const FORMAT: Shape = Shape::Tagged(&[("json_schema", &[must("schema", ANY_OBJECT)])]);

/// What is to be done with the history when it grows.
const EDIT: Shape = Shape::Tagged(&[
    (
        "clear_tool_uses_20250919",
        &[
            may("trigger", Shape::Tagged(&[("input_tokens", AMOUNT), ("tool_uses", AMOUNT)])),
            may("keep", Shape::Tagged(&[("tool_uses", &[must("value", at_least(0))])])),
            may("clear_at_least", Shape::Tagged(&[("input_tokens", &[must("value", at_least(0))])])),
            may("exclude_tools", TEXTS),
            may("clear_tool_inputs", Shape::Such(flag_or_names)),
        ],
    ),
    ("clear_thinking_20251015", &[may("keep", Shape::Such(turns))]),
    (
        "compact_20260112",
        &[
            may("trigger", Shape::Tagged(&[("input_tokens", AMOUNT)])),
            may("pause_after_compaction", Shape::Flag),
            may("instructions", Shape::Text),
        ],
    ),
]);
const AMOUNT: &[Field] = &[must("value", at_least(1))];

fn flag_or_names(node: Node<'_>) -> Result<(), DecodeError> {
    match node.kind() {
        Kind::Bool => Ok(()),
        Kind::Array => node.items().try_for_each(|name| name.expect_str().map(drop)),
        kind => Err(node.error(format!("must be true, false or an array of tool names, not {kind}"))),
    }
}

fn turns(node: Node<'_>) -> Result<(), DecodeError> {
    match node.kind() {
        Kind::String if node.is_str("all") => Ok(()),
        Kind::Object => shape::check_tagged(node, &[("thinking_turns", AMOUNT)]),
        _ => Err(node.error("must be `all` or an object with a number of `thinking_turns`".to_owned())),
    }
}

const CONTAINER: Shape = Shape::Object(&[may("id", Shape::Text), may("skills", Shape::List(&ANY_OBJECT))]);

const MCP_SERVER: Shape = Shape::Tagged(&[(
    "url",
    &[
        must("name", Shape::Text),
        must("url", Shape::Text),
        may("authorization_token", Shape::Text),
        may("tool_configuration", ANY_OBJECT),
    ],
)]);

/// The tools that a client declares; those that the provider defines have a type of their own.
const TOOL: &[Field] = &[
    may("type", Shape::Text),
    must("name", Shape::Text),
    must("input_schema", ANY_OBJECT),
    may("description", Shape::Text),
    may("strict", Shape::Flag),
    may("defer_loading", Shape::Flag),
    may("eager_input_streaming", Shape::Flag),
    may("allowed_callers", TEXTS),
    may("input_examples", Shape::List(&ANY_OBJECT)),
    CACHE_CONTROL,
];

const PROVIDED_TOOL: &[Field] = &[may("type", Shape::Text), may("name", Shape::Text), CACHE_CONTROL];

fn tool(node: Node<'_>) -> Result<(), DecodeError> {
    let kind = node.expect_object()?.field("type").filter(|kind| kind.kind() == Kind::String);
    let is_provided = kind.is_some_and(|kind| !kind.is_str("custom"));
    shape::check(node, if is_provided { PROVIDED_TOOL } else { TOOL })
}
