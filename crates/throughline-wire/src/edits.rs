//! What a client asks to have done with its history before a model sees it: `context_management`.
//!
//! Two dialects have such a field. A backend that knows it does what it says itself; for others it is done
//! before they are asked. The shapes of what is known are checked when a request is decoded, so what is read
//! here is right or unknown.

use crate::json::{Document, Node};
use throughline_core::plan::{ClearCalls, Clearing, Inputs, Tokens, When};
use throughline_core::{Ask, Dialect, Text};

/// The field that holds it, in both dialects.
pub const CONTEXT_FIELD: &str = "context_management";

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextEdits {
    /// What is to be cleared.
    pub clearing: Clearing,
    /// Above how many tokens the history is to be compacted.
    pub compact_above: Option<u64>,
    /// What is asked for beside that and nobody here knows how to do.
    pub unknown: Vec<Text>,
}

/// What the provider clears by, where a request leaves it open.
const CLEAR_ABOVE_TOKENS: u64 = 100_000;
const CALLS_KEPT: usize = 3;
const TURNS_KEPT: usize = 1;
const COMPACT_ABOVE_TOKENS: u64 = 150_000;

/// Returns what a request asks to have done with its history, if it has the field at all.
#[must_use]
pub fn context_edits(ask: &Ask) -> Option<ContextEdits> {
    let field = ask.fields.iter().rev().find(|field| field.name == CONTEXT_FIELD)?;
    let document = Document::parse(field.value.as_str()).ok()?;
    let root = document.root();
    let list = match ask.dialect {
        Dialect::Messages => root.field("edits"),
        Dialect::Responses => Some(root),
        Dialect::Chat => return None,
    };
    let mut edits = ContextEdits::default();
    for edit in list.iter().flat_map(|list| list.items()) {
        edits.take(edit);
    }
    Some(edits)
}

impl ContextEdits {
    fn take(&mut self, edit: Node<'_>) {
        let kind = edit.field("type").and_then(|kind| kind.as_text()).unwrap_or_default();
        match kind.as_str() {
            "clear_tool_uses_20250919" => self.clearing.calls = Some(clear_calls(edit)),
            "clear_thinking_20251015" => self.clearing.thoughts_of = thoughts_of(edit),
            "compact_20260112" => {
                let above = edit.field("trigger").and_then(value_of);
                self.compact_above = Some(above.unwrap_or(COMPACT_ABOVE_TOKENS));
                for (name, is_asked) in [
                    (
                        "pause_after_compaction",
                        edit.field("pause_after_compaction").and_then(|it| it.as_bool()),
                    ),
                    ("instructions", edit.field("instructions").map(|it| !it.is_null())),
                ] {
                    if is_asked == Some(true) {
                        self.unknown.push(Text::from(format!("{kind}.{name}")));
                    }
                }
            }
            "compaction" => {
                let above = edit.field("compact_threshold").and_then(|above| above.as_u64());
                self.compact_above = Some(above.unwrap_or(COMPACT_ABOVE_TOKENS));
            }
            _ => self.unknown.push(kind),
        }
    }
}

fn clear_calls(edit: Node<'_>) -> ClearCalls {
    let trigger = edit.field("trigger");
    let when = match trigger.and_then(value_of) {
        Some(calls) if trigger.is_some_and(|it| is_of(it, "tool_uses")) => When::Calls(whole(calls)),
        Some(tokens) => When::Tokens(Tokens(tokens)),
        None => When::Tokens(Tokens(CLEAR_ABOVE_TOKENS)),
    };
    let inputs = match edit.field("clear_tool_inputs") {
        Some(names) if names.items().next().is_some() => Inputs::Of(texts(names)),
        Some(all) if all.as_bool() == Some(true) => Inputs::All,
        Some(_) | None => Inputs::None,
    };
    ClearCalls {
        when,
        keep: edit.field("keep").and_then(value_of).map_or(CALLS_KEPT, whole),
        at_least: Tokens(edit.field("clear_at_least").and_then(value_of).unwrap_or_default()),
        spared: edit.field("exclude_tools").map(texts).unwrap_or_default(),
        inputs,
    }
}

/// Returns of how many turns reasoning is kept; nothing if of all.
fn thoughts_of(edit: Node<'_>) -> Option<usize> {
    match edit.field("keep").filter(|keep| !keep.is_null()) {
        Some(keep) if keep.is_str("all") || is_of(keep, "all") => None,
        Some(keep) => Some(value_of(keep).map_or(TURNS_KEPT, whole)),
        None => Some(TURNS_KEPT),
    }
}

fn is_of(node: Node<'_>, kind: &str) -> bool {
    node.field("type").is_some_and(|it| it.is_str(kind))
}

fn value_of(node: Node<'_>) -> Option<u64> {
    node.field("value")?.as_u64()
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn texts(list: Node<'_>) -> Vec<Text> {
    list.items().filter_map(|item| item.as_text()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_request;

    fn messages(edits: &str) -> Option<ContextEdits> {
        let body = format!(
            r#"{{"max_tokens":9,"messages":[{{"role":"user","content":"x"}}],"context_management":{{"edits":{edits}}}}}"#
        );
        context_edits(&decode_request(Dialect::Messages, body).unwrap())
    }

    #[test]
    fn what_is_left_open_is_as_the_provider_has_it() {
        let calls = ClearCalls {
            when: When::Tokens(Tokens(100_000)),
            keep: 3,
            at_least: Tokens(0),
            spared: Vec::new(),
            inputs: Inputs::None,
        };
        let clearing = Clearing { calls: Some(calls), thoughts_of: Some(1) };
        let edits = messages(r#"[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]"#);
        assert_eq!(edits, Some(ContextEdits { clearing, ..ContextEdits::default() }));
        let compacted = messages(r#"[{"type":"compact_20260112","pause_after_compaction":true}]"#).unwrap();
        assert_eq!(compacted.compact_above, Some(150_000));
        assert_eq!(compacted.unknown, ["compact_20260112.pause_after_compaction"]);
        assert_eq!(messages("[]"), Some(ContextEdits::default()));
        assert_eq!(messages(r#"[{"type":"of tomorrow"}]"#).unwrap().unknown, ["of tomorrow"]);
    }

    #[test]
    fn everything_that_is_said_is_read() {
        let edits = messages(
            r#"[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":7},
                "keep":{"type":"tool_uses","value":2},"clear_at_least":{"type":"input_tokens","value":500},
                "exclude_tools":["memory"],"clear_tool_inputs":["write"]}]"#,
        );
        let calls = edits.unwrap().clearing.calls.unwrap();
        assert_eq!((calls.when, calls.keep, calls.at_least), (When::Calls(7), 2, Tokens(500)));
        assert_eq!((calls.spared, calls.inputs), (vec!["memory".into()], Inputs::Of(vec!["write".into()])));
        let all = messages(r#"[{"type":"clear_thinking_20251015","keep":"all"}]"#);
        assert_eq!(all, Some(ContextEdits::default()), "nothing is to be done");
    }

    #[test]
    fn responses_are_compacted_above_a_threshold() {
        let body = r#"{"input":"x","context_management":[{"type":"compaction","compact_threshold":5000}]}"#;
        let edits = context_edits(&decode_request(Dialect::Responses, body.to_owned()).unwrap()).unwrap();
        assert_eq!(edits.compact_above, Some(5000));
    }
}
