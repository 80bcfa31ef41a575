//! Messages, read into entries.
//!
//! A message becomes one entry or several (reasoning, text, then each call), which share its envelope. One
//! that holds nothing still becomes an entry, so that it cannot vanish. A role that nobody knows makes the
//! whole message opaque.

use super::WITHOUT_ID;
use super::calls::{decode_calls, decode_function_call};
use super::extras::{extras_of, filled, given, given_text, is_significant};
use super::known;
use super::parts::{decode_content, decode_part, is_foreign_block};
use crate::json::{DecodeError, Kind as JsonKind, Node, quote};
use crate::shape;
use std::sync::Arc;
use throughline_core::outcome::unmarked;
use throughline_core::{
    Call, Content, Dialect, Entry, Envelope, Input, Kind, Part, Place, Return, Role, Said, Text, Thought,
    Wire,
};

/// What a message holds, before it is wrapped into its envelope.
pub(super) struct Held {
    /// What happened.
    pub kind: Kind,
    /// The object that said so, where it is one of its own.
    pub wire: Option<Wire>,
    /// Which of the message's calls it is.
    pub block: Option<u32>,
    /// Whether the message can be sent as it came.
    pub intact: bool,
}

impl Held {
    fn lone(kind: Kind) -> Self {
        Self { kind, wire: None, block: None, intact: true }
    }
}

/// Reads all messages of a request.
pub(super) fn decode_messages(messages: Node<'_>) -> Result<Vec<Entry>, DecodeError> {
    messages.expect_array()?;
    let mut entries = Vec::new();
    for (node, at) in messages.items().zip(0..) {
        let mut held = decode_message(node, at, &entries)?;
        let is_foreign = has_foreign_blocks(node) || has_bare_value(node);
        held.iter_mut().for_each(|held| held.intact &= !is_foreign);
        entries.extend(enveloped(held, node, at));
    }
    Ok(entries)
}

/// Gives the entries of a message their envelope.
pub(super) fn enveloped(held: Vec<Held>, node: Node<'_>, message: u32) -> impl Iterator<Item = Entry> {
    let wire = Wire { dialect: Dialect::Chat, text: node.raw_text(), extras: message_extras(node) };
    let count = u32::try_from(held.len()).unwrap_or(u32::MAX);
    let envelope = Arc::new(Envelope { wire, entries: count });
    held.into_iter().zip(0..).map(move |(held, position)| Entry {
        wire: held.wire,
        envelope: Some((Arc::clone(&envelope), position)),
        place: Some(Place { message, block: held.block }),
        intact: held.intact,
        ..Entry::new(held.kind)
    })
}

fn decode_message(node: Node<'_>, at: u32, earlier: &[Entry]) -> Result<Vec<Held>, DecodeError> {
    let role = node.expect_field("role")?.expect_text()?;
    shape::check(node, known::MESSAGE)?;
    let said = |role| -> Result<Vec<Held>, DecodeError> {
        let parts = decode_content(node.field("content"))?;
        Ok(vec![Held::lone(Kind::Said(Said { role, parts, standing: false }))])
    };
    match role.as_str() {
        "user" | "assistant" if has_tool_blocks(node) => decode_tool_blocks(node, &role),
        "system" => said(Role::System),
        "developer" => said(Role::Developer),
        "user" => said(Role::User),
        "assistant" => decode_assistant(node, &format!("{WITHOUT_ID}{at}")),
        "tool" => Ok(vec![decode_result(node, earlier)?]),
        "function" => Ok(vec![decode_function_result(node, earlier)?]),
        _ => {
            let wire = Wire { dialect: Dialect::Chat, text: node.raw_text(), extras: Vec::new() };
            Ok(vec![Held { wire: Some(wire), ..Held::lone(Kind::Opaque { kind: role }) }])
        }
    }
}

fn block_types(node: Node<'_>) -> impl Iterator<Item = Text> + '_ {
    let blocks = node.field("content").into_iter().flat_map(Node::items);
    blocks.filter_map(|block| block.field("type").and_then(|kind| kind.as_text()))
}

/// Says whether the content holds blocks of another dialect, which clients leave there when they change dialects.
fn has_foreign_blocks(node: Node<'_>) -> bool {
    block_types(node).any(|kind| is_foreign_block(&kind))
}

/// Says whether the content is neither text nor a list of parts; some programs write what a tool returned itself.
fn has_bare_value(node: Node<'_>) -> bool {
    node.field("content").is_some_and(|content| content.kind() == JsonKind::Object)
}

fn has_tool_blocks(node: Node<'_>) -> bool {
    block_types(node).any(|kind| matches!(kind.as_str(), "tool_use" | "tool_result"))
}

/// Reads a message with calls and results as the Messages dialect has them: each is what it is there.
fn decode_tool_blocks(node: Node<'_>, role: &str) -> Result<Vec<Held>, DecodeError> {
    let role = if role == "user" { Role::User } else { Role::Assistant };
    let (mut held, mut said): (Vec<Held>, Vec<Part>) = (Vec::new(), Vec::new());
    let say = |said: &mut Vec<Part>, held: &mut Vec<Held>| {
        let parts = std::mem::take(said);
        if !parts.is_empty() {
            held.push(Held::lone(Kind::Said(Said { role, parts, standing: false })));
        }
    };
    for (block, at) in node.field("content").into_iter().flat_map(Node::items).zip(0_u32..) {
        let text = |name: &str| block.field(name).and_then(|value| value.as_text());
        let kind = match text("type").as_deref() {
            Some("tool_use") => Kind::Called(Call {
                id: text("id").unwrap_or_else(|| Text::from(format!("{WITHOUT_ID}{at}"))),
                item_id: None,
                name: block.expect_field("name")?.expect_text()?,
                namespace: None,
                input: Input::Arguments(
                    block.field("input").map(|input| input.raw_text()).unwrap_or_default(),
                ),
            }),
            Some("tool_result") => {
                let parts = decode_value(block.field("content"))?;
                let is_error = block.field("is_error").and_then(|flag| flag.as_bool()).unwrap_or(false);
                let (outcome, parts) = unmarked(parts, true, is_error);
                let call_id = text("tool_use_id");
                Kind::Returned(Return { call_id, item_id: None, name: None, parts, outcome, freeform: false })
            }
            _ => {
                said.push(decode_part(block)?);
                continue;
            }
        };
        say(&mut said, &mut held);
        held.push(Held { block: Some(at), ..Held::lone(kind) });
    }
    say(&mut said, &mut held);
    Ok(held)
}

/// Reads what a tool returned: content, or any value, which counts as its text.
fn decode_value(content: Option<Node<'_>>) -> Result<Vec<Part>, DecodeError> {
    match content {
        Some(value) if value.kind() == JsonKind::Object => Ok(vec![Part::text(value.raw_text())]),
        content => decode_content(content),
    }
}

/// Reads an assistant message: reasoning, then what is said, then the calls.
///
/// `stem` is what the ids of calls are made from that have none.
pub(super) fn decode_assistant(node: Node<'_>, stem: &str) -> Result<Vec<Held>, DecodeError> {
    let mut held: Vec<Held> =
        decode_reasoning(node)?.map(Kind::Thought).map(Held::lone).into_iter().collect();
    let mut calls = decode_calls(node, stem)?;
    calls.extend(decode_function_call(node, stem)?);
    let mut parts = decode_content(node.field("content"))?;
    if let Some(refusal) = given(node, "refusal") {
        parts.push(Part { content: Content::Refusal(refusal.expect_text()?), wire: None });
    }
    // Beside calls or reasoning an empty string says no more than `null`.
    let is_empty = |part: &Part| part.wire.is_none() && part.as_text().is_some_and(|text| text.is_empty());
    if !parts.iter().all(is_empty) || (calls.is_empty() && held.is_empty()) {
        held.push(Held::lone(Kind::Said(Said { role: Role::Assistant, parts, standing: false })));
    }
    held.append(&mut calls);
    Ok(held)
}

/// Reads the reasoning of an assistant message, for which servers have two names.
fn decode_reasoning(node: Node<'_>) -> Result<Option<Thought>, DecodeError> {
    let of_deepseek = given_text(node, "reasoning_content")?;
    let of_openrouter = reasoning_text(node);
    // Sealed reasoning is in the extras of the message; without an entry nobody would know it is there.
    let has_details = node.field("reasoning_details").is_some_and(is_significant);
    if of_deepseek.is_none() && of_openrouter.is_none() && !has_details {
        return Ok(None);
    }
    let repeats = of_deepseek == of_openrouter;
    let texts = of_deepseek.into_iter().chain(of_openrouter.filter(|_| !repeats));
    let content = texts.filter(|text| !text.is_empty()).collect();
    Ok(Some(Thought { content, ..Thought::default() }))
}

fn reasoning_text(node: Node<'_>) -> Option<Text> {
    node.field("reasoning").and_then(|text| text.as_text())
}

fn decode_result(node: Node<'_>, earlier: &[Entry]) -> Result<Held, DecodeError> {
    let id = given_text(node, "tool_call_id")?;
    let id = id.filter(|id| !id.is_empty());
    let name = given_text(node, "name")?;
    let freeform =
        id.as_ref().and_then(|id| last_call(earlier, |call| &call.id == id)).is_some_and(is_freeform);
    let parts = decode_value(node.field("content"))?;
    Ok(Held::lone(returned(id, name, parts, freeform)))
}

/// Reads a result of the time before tools, which refers to its call by the function's name.
///
/// Some clients write the old role and the new id; then the id counts.
fn decode_function_result(node: Node<'_>, earlier: &[Entry]) -> Result<Held, DecodeError> {
    if filled(node, "tool_call_id").is_some() {
        return decode_result(node, earlier);
    }
    let name = given_text(node, "name")?;
    let call = name.as_ref().and_then(|name| last_call(earlier, |call| &call.name == name));
    let parts = decode_value(node.field("content"))?;
    Ok(Held::lone(returned(call.map(|call| call.id.clone()), name, parts, false)))
}

fn returned(call_id: Option<Text>, name: Option<Text>, parts: Vec<Part>, freeform: bool) -> Kind {
    let is_list = parts.first().is_some_and(|part| part.wire.is_some());
    let (outcome, mut parts) = unmarked(parts, false, false);
    // A part that lost its mark is still a part of a list, which not every target takes.
    if let Some(part) = parts.first_mut().filter(|part| is_list && part.wire.is_none()) {
        let text = format!(r#"{{"type":"text","text":{}}}"#, quote(part.as_text().map_or("", Text::as_str)));
        part.wire = Some(Wire { dialect: Dialect::Chat, text: text.into(), extras: Vec::new() });
    }
    Kind::Returned(Return { call_id, item_id: None, name, parts, outcome, freeform })
}

fn last_call(earlier: &[Entry], is_it: impl Fn(&Call) -> bool) -> Option<&Call> {
    earlier.iter().rev().filter_map(Entry::as_call).find(|call| is_it(call))
}

const fn is_freeform(call: &Call) -> bool {
    matches!(call.input, Input::Freeform(_))
}

/// Returns the fields of a message that its entries do not express.
fn message_extras(node: Node<'_>) -> Vec<throughline_core::Extra> {
    const ASSISTANT: [&str; 6] =
        ["role", "content", "refusal", "tool_calls", "function_call", "reasoning_content"];
    let mut extras = match filled(node, "role").as_deref() {
        Some("assistant") | None => extras_of(node, &ASSISTANT),
        Some("tool" | "function") => extras_of(node, &["role", "content", "tool_call_id", "name"]),
        Some("system" | "developer" | "user") => extras_of(node, &["role", "content"]),
        // The message is opaque as a whole.
        Some(_) => Vec::new(),
    };
    if node.field("reasoning").is_some_and(|text| text.kind() == JsonKind::String) {
        extras.retain(|extra| extra.name != "reasoning");
    }
    extras
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;
    use throughline_core::Outcome;

    fn decode(messages: &str) -> Vec<Entry> {
        let document = Document::parse(messages).unwrap();
        decode_messages(document.root()).unwrap()
    }

    fn shape(entry: &Entry) -> &'static str {
        match &entry.kind {
            Kind::Said(_) => "said",
            Kind::Thought(_) => "thought",
            Kind::Called(_) => "called",
            Kind::Returned(_) => "returned",
            Kind::Opaque { .. } => "opaque",
            _ => "other",
        }
    }

    fn shapes(messages: &str) -> Vec<&'static str> {
        decode(messages).iter().map(shape).collect()
    }

    #[test]
    fn reasoning_comes_before_text_and_text_before_calls() {
        let message = r#"[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
            {"id":"b","function":{"name":"g"}}],"content":"Hm.","reasoning_content":"Think."}]"#;
        assert_eq!(shapes(message), ["thought", "said", "called", "called"]);
        let entries = decode(message);
        let (envelope, position) = entries[3].envelope.as_ref().unwrap();
        assert_eq!((envelope.entries, *position), (4, 3));
        assert_eq!(entries[3].place, Some(Place { message: 0, block: Some(1) }));
        assert_eq!(entries[3].as_call().unwrap().input, Input::Arguments("".into()));
    }

    #[test]
    fn blocks_of_another_dialect_are_read_as_what_they_are() {
        let entries = decode(
            r#"[{"role":"assistant","content":[{"type":"text","text":"Look."},
                {"type":"tool_use","id":"a","name":"read","input":{"path":"x"}}]},
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"one","is_error":true},
                {"type":"text","text":"And?"}]},
              {"role":"user","content":[{"type":"input_text","text":"b"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]},
              {"role":"tool","tool_call_id":"b","content":{"ok":true}}]"#,
        );
        let shapes: Vec<_> = entries.iter().map(shape).collect();
        assert_eq!(shapes, ["said", "called", "returned", "said", "said", "returned"]);
        assert_eq!(entries[1].as_call().unwrap().input.text(), r#"{"path":"x"}"#);
        assert_eq!(entries[2].as_return().unwrap().outcome, Outcome::Error);
        assert!(matches!(entries[4].as_said().unwrap().parts[1].content, Content::Image(_)));
        assert_eq!(entries[5].as_return().unwrap().parts[0].as_text().unwrap(), r#"{"ok":true}"#);
        assert!(entries.iter().all(|entry| !entry.intact));
    }

    #[test]
    fn a_message_that_holds_nothing_is_still_an_entry() {
        let messages = r#"[{"role":"assistant","content":null},{"role":"user","content":[]},{"role":"assistant"},
            {"role":"assistant","content":"","tool_calls":[]}]"#;
        assert_eq!(shapes(messages), ["said"; 4]);
    }

    #[test]
    fn an_empty_string_beside_calls_says_nothing() {
        let message = r#"[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}]"#;
        assert_eq!(shapes(message), ["called"]);
    }

    #[test]
    fn reasoning_under_both_names_is_one_thought() {
        let message = r#"[{"role":"assistant","content":"a","reasoning":"Hm.","reasoning_content":"Hm.","reasoning_details":[{"data":"x"}]}]"#;
        let entries = decode(message);
        let Kind::Thought(thought) = &entries[0].kind else { panic!("a thought") };
        assert_eq!(thought.content, ["Hm."]);
        let (envelope, _) = entries[0].envelope.as_ref().unwrap();
        assert_eq!(envelope.wire.extras[0].name, "reasoning_details");
        assert_eq!(envelope.wire.extras.len(), 1);
    }

    #[test]
    fn a_function_result_refers_to_the_nearest_call_of_that_name() {
        let entries = decode(
            r#"[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
            {"role":"function","name":"f","content":"1"},
            {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{ }"}},
            {"role":"function","name":"f","content":"2"},
            {"role":"function","name":"g","content":"3"}]"#,
        );
        let ids: Vec<_> = entries.iter().filter_map(Entry::as_call).map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_without_id_0_0", "call_without_id_2_0"]);
        let of: Vec<_> =
            entries.iter().filter_map(Entry::as_return).map(|result| result.call_id.as_deref()).collect();
        assert_eq!(of, [Some(ids[0]), Some(ids[1]), None]);
    }

    #[test]
    fn a_result_without_an_id_names_no_call() {
        let entries = decode(
            r#"[{"role":"tool","name":"f","content":"1"},{"role":"tool","tool_call_id":"","content":"[tool error]\nno"}]"#,
        );
        let results: Vec<_> = entries.iter().filter_map(Entry::as_return).collect();
        assert_eq!((results[0].call_id.as_ref(), results[0].name.as_deref()), (None, Some("f")));
        assert_eq!((results[1].call_id.as_ref(), results[1].outcome), (None, Outcome::Error));
        assert_eq!(results[1].parts, [Part::text("no")]);
    }

    #[test]
    fn a_function_result_with_an_id_is_an_ordinary_result() {
        let entries = decode(r#"[{"role":"function","tool_call_id":"call_1","name":"f","content":"1"}]"#);
        assert_eq!(entries[0].as_return().unwrap().call_id.as_deref(), Some("call_1"));
        assert!(entries[0].envelope.as_ref().unwrap().0.wire.extras.is_empty());
    }

    #[test]
    fn an_unknown_role_makes_the_message_opaque() {
        let entries = decode(r#"[{"role":"critic","content":7}]"#);
        assert_eq!(entries[0].kind, Kind::Opaque { kind: "critic".into() });
    }

    #[test]
    fn known_fields_of_a_wrong_type_are_refused_by_their_path() {
        let check = |messages: &str, expected: &str| {
            let document = Document::parse(messages).unwrap();
            assert_eq!(decode_messages(document.root()).unwrap_err().to_string(), expected);
        };
        check("[{}]", "[0].role: is required (at byte 1)");
        check("[7]", "[0]: must be an object, not a number (at byte 1)");
        check(
            r#"[{"role":"tool","tool_call_id":7}]"#,
            "[0].tool_call_id: must be a string, not a number (at byte 31)",
        );
        check(
            r#"[{"role":"assistant","tool_calls":{}}]"#,
            "[0].tool_calls: must be an array, not an object (at byte 34)",
        );
    }
}
