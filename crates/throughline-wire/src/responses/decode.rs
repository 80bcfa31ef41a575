//! A request of this dialect, decoded.
//!
//! One walk over the items, and one look at each field that has a canonical word. Fields nobody here knows
//! stay in [`Ask::fields`] as they came, and are named in [`Ask::extras`] so that nothing is lost in silence
//! where the request goes abroad.

use super::{fields, item, known, settings, tools};
use crate::json::{DecodeError, Document, Kind as JsonKind, Node};
use crate::shape;
use throughline_core::{Ask, Dialect, Entry, Kind, Place, Role, Said, Text, Tool};

/// The fields that the canonical model expresses.
const CANONICAL: [&str; 28] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "previous_response_id",
    "conversation",
    "stream",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "top_logprobs",
    "stop",
    "parallel_tool_calls",
    "max_tool_calls",
    "text",
    "reasoning",
    "metadata",
    "safety_identifier",
    "user",
    "prompt_cache_key",
    "service_tier",
    "store",
    // Which transport the request came over; says nothing to a model.
    "type",
];

/// Reads the body of a request.
pub(crate) fn decode_request(document: &Document) -> Result<Ask, DecodeError> {
    let root = document.root().expect_object()?;
    shape::check(root, known::REQUEST)?;
    let mut extras = foreign_fields(root);
    let settings = settings::decode_settings(root, &mut extras)?;
    let mut entries: Vec<Entry> = decode_instructions(root)?.into_iter().collect();
    let mut tools = tools::decode_tools(root)?;
    decode_input(root, &mut entries, &mut tools)?;
    Ok(Ask {
        dialect: Dialect::Responses,
        model: fields::text(root, "model")?,
        entries,
        tools,
        tool_choice: tools::decode_choice(root)?,
        settings,
        stream: fields::flag(root, "stream")?.unwrap_or(false),
        previous: fields::text(root, "previous_response_id")?,
        conversation: decode_conversation(root)?,
        fields: fields::all(root),
        extras,
    })
}

/// Returns the names of the fields that mean something and have no canonical word.
fn foreign_fields(root: Node<'_>) -> Vec<Text> {
    root.fields()
        .filter(|(name, value)| {
            !CANONICAL.contains(&&**name) && fields::is_significant(*value) && !is_default(name, *value)
        })
        .map(|(name, _)| Text::from(&*name))
        .collect()
}

/// Says whether the field asks for what happens anyway.
fn is_default(name: &str, value: Node<'_>) -> bool {
    match name {
        "background" => value.as_bool() == Some(false),
        "truncation" => value.is_str("disabled"),
        _ => false,
    }
}

/// Reads `instructions`; empty ones, which Codex sends, say nothing.
fn decode_instructions(root: Node<'_>) -> Result<Option<Entry>, DecodeError> {
    let Some(node) = fields::given(root, "instructions") else { return Ok(None) };
    let text = node.expect_text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let mut entry = Entry::said(Role::System, text);
    if let Kind::Said(Said { standing, .. }) = &mut entry.kind {
        *standing = true;
    }
    entry.wire = Some(fields::whole(node));
    Ok(Some(entry))
}

/// Reads `conversation`, an id or an object that holds nothing else.
fn decode_conversation(root: Node<'_>) -> Result<Option<Text>, DecodeError> {
    match fields::given(root, "conversation") {
        Some(node) if node.kind() == JsonKind::Object => fields::text(node, "id"),
        Some(node) => node.expect_text().map(Some),
        None => Ok(None),
    }
}

fn decode_input(root: Node<'_>, entries: &mut Vec<Entry>, tools: &mut Vec<Tool>) -> Result<(), DecodeError> {
    let Some(input) = fields::given(root, "input") else { return Ok(()) };
    if let Some(text) = input.as_text() {
        // A bare string is no item, so the entry has no wire form of its own.
        let mut entry = Entry::said(Role::User, text);
        entry.place = Some(Place { message: 0, block: None });
        entries.push(entry);
        return Ok(());
    }
    let list = input.expect_array().map_err(|_| input.error("must be a string or an array of items"))?;
    for (node, index) in list.items().zip(0..) {
        let entry = item::decode_item(node, index)?;
        if let Kind::Opaque { kind } = &entry.kind
            && declares_tools(kind)
        {
            add_tools(node, tools)?;
        }
        entries.push(entry);
    }
    Ok(())
}

/// Says whether an item puts tools on offer in the middle of a conversation.
///
/// The newest Codex models get no `tools` at all but an `additional_tools` item, and a tool search answers
/// with the tools that it found. Where the item cannot go, its tools still must.
pub(super) fn declares_tools(kind: &str) -> bool {
    matches!(kind, "additional_tools" | "tool_search_output")
}

fn add_tools(item: Node<'_>, tools: &mut Vec<Tool>) -> Result<(), DecodeError> {
    for tool in tools::decode_tools(item)? {
        if !tools.iter().any(|known| known.name == tool.name && known.namespace == tool.namespace) {
            tools.push(tool);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(json: &str) -> Ask {
        decode_request(&Document::parse(json).unwrap()).unwrap()
    }

    #[test]
    fn a_string_is_one_user_message() {
        let ask = decode(r#"{"model":"m","input":"hi","instructions":"be brief"}"#);
        let roles: Vec<_> =
            ask.entries.iter().map(|entry| entry.as_said().map(|said| (said.role, said.standing))).collect();
        assert_eq!(roles, [Some((Role::System, true)), Some((Role::User, false))]);
    }

    #[test]
    fn fields_keep_their_order_and_text_and_foreign_ones_are_named() {
        let ask = decode(
            r#"{"x":{"b":1.10},"input":[],"include":[],"background":false,"truncation":"auto","y":null}"#,
        );
        let names: Vec<_> = ask.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["x", "input", "include", "background", "truncation", "y"]);
        assert_eq!(ask.fields[0].value, r#"{"b":1.10}"#);
        assert_eq!(ask.extras, ["x", "truncation"]);
    }

    #[test]
    fn tools_declared_by_an_item_are_on_offer_too() {
        let ask = decode(
            r#"{"input":[{"type":"additional_tools","role":"developer","tools":[
                {"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}],
                "tools":[{"type":"function","name":"f"}]}"#,
        );
        let names: Vec<_> =
            ask.tools.iter().map(|tool| (tool.namespace.as_deref(), tool.name.as_str())).collect();
        assert_eq!(names, [(None, "f"), (Some("n"), "f")]);
        assert_eq!(ask.entries[0].kind, Kind::Opaque { kind: "additional_tools".into() });
    }

    #[test]
    fn an_error_names_the_item() {
        let document = Document::parse(r#"{"input":[{"role":"user","content":7}]}"#).unwrap();
        let error = decode_request(&document).unwrap_err();
        assert_eq!(error.path, "input[0].content");
        let document = Document::parse(r#"{"temperature":"hot"}"#).unwrap();
        assert!(
            decode_request(&document).unwrap_err().to_string().starts_with("temperature: must be a number")
        );
    }
}
