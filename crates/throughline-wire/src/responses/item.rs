//! Items of a conversation or an answer, decoded: one item, one entry.
//!
//! Both directions share this: what a client sends back as `input` is what a server gave out as `output`.
//! An item that says nothing in canonical words (hosted tools, references, whatever an implementor invents)
//! becomes an opaque entry that keeps its place in the order.

use super::{fields, parts};
use crate::input;
use crate::json::{DecodeError, Kind as JsonKind, Node};
use crate::shape;
use throughline_core::{
    Call, Entry, Input, Kind, Part, Place, Return, Role, Said, Seal, Text, Thought, outcome,
};

const MESSAGE: &[&str] = &["type", "id", "status", "role", "content"];
const FUNCTION_CALL: &[&str] = &["type", "id", "status", "call_id", "name", "namespace", "arguments"];
const CUSTOM_CALL: &[&str] = &["type", "id", "status", "call_id", "name", "namespace", "input"];
const OUTPUT: &[&str] = &["type", "id", "status", "call_id", "name", "output"];
const REFERENCE: &[&str] = &["type", "id"];
const REASONING: &[&str] = &["type", "id", "status", "summary", "content", "encrypted_content"];

/// Reads the item at position `index` of its list.
pub(super) fn decode_item(node: Node<'_>, index: u32) -> Result<Entry, DecodeError> {
    node.expect_object()?;
    let tag = tag_of(node)?;
    let (kind, known): (_, &[&str]) = match tag.as_str() {
        "message" => (decode_message(node)?, MESSAGE),
        "function_call" => (Some(Kind::Called(decode_function_call(node, index)?)), FUNCTION_CALL),
        "custom_tool_call" => (Some(Kind::Called(decode_custom_call(node, index)?)), CUSTOM_CALL),
        "function_call_output" => (Some(Kind::Returned(decode_output(node, false)?)), OUTPUT),
        "custom_tool_call_output" => (Some(Kind::Returned(decode_output(node, true)?)), OUTPUT),
        "reasoning" => (Some(Kind::Thought(decode_reasoning(node)?)), REASONING),
        "item_reference" => {
            (Some(Kind::Reference { id: node.expect_field("id")?.expect_text()? }), REFERENCE)
        }
        _ => (None, &[]),
    };
    let wire = if kind.is_some() { fields::wire(node, known) } else { fields::whole(node) };
    let mut entry = Entry::new(kind.unwrap_or(Kind::Opaque { kind: tag }));
    entry.wire = Some(wire);
    entry.place = Some(Place { message: index, block: None });
    entry.intact = match &entry.kind {
        Kind::Called(_) => is_whole_call(node),
        Kind::Returned(_) => is_written_output(node),
        _ => true,
    };
    Ok(entry)
}

/// Says whether the output of a result is one that the provider takes: a string, or a list of parts.
fn is_written_output(node: Node<'_>) -> bool {
    node.field("output").is_some_and(|output| matches!(output.kind(), JsonKind::String | JsonKind::Array))
}

/// Says whether a call names itself and its input as it should; otherwise the item says less than the entry.
fn is_whole_call(node: Node<'_>) -> bool {
    let is_text = |name: &str| node.field(name).is_some_and(|value| value.kind() == JsonKind::String);
    is_text("call_id") && (is_text("arguments") || is_text("input"))
}

/// Returns the type of an item, which clients leave out of messages and references.
fn tag_of(node: Node<'_>) -> Result<Text, DecodeError> {
    if let Some(tag) = fields::text(node, "type")? {
        return Ok(tag);
    }
    if fields::given(node, "role").is_some() {
        return Ok(Text::from_static("message"));
    }
    if fields::given(node, "id").is_some() {
        return Ok(Text::from_static("item_reference"));
    }
    node.expect_field("type")?.expect_text()
}

/// Reads a message, unless its role is one that only the specification has heard of (`critic`).
fn decode_message(node: Node<'_>) -> Result<Option<Kind>, DecodeError> {
    let role = match fields::text(node, "role")?.as_deref() {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some(_) => return Ok(None),
        // Only servers forget the role, and they only speak for the model.
        None if is_output(node) => Role::Assistant,
        None => return Err(node.expect_field("role").err().unwrap_or_else(|| node.error("has no role"))),
    };
    let parts = parts::decode_content(fields::given(node, "content"))?;
    Ok(Some(Kind::Said(Said { role, parts, standing: false })))
}

fn is_output(message: Node<'_>) -> bool {
    let is_output_part = |part: Node<'_>| {
        part.field("type").is_some_and(|tag| tag.is_str("output_text") || tag.is_str("refusal"))
    };
    message.field("content").is_some_and(|content| content.items().any(is_output_part))
}

fn decode_function_call(node: Node<'_>, index: u32) -> Result<Call, DecodeError> {
    let arguments = call_text(node, "arguments")?;
    decode_call(node, index, input::from_arguments(arguments))
}

fn decode_custom_call(node: Node<'_>, index: u32) -> Result<Call, DecodeError> {
    let text = call_text(node, "input")?;
    decode_call(node, index, Input::Freeform(text))
}

fn decode_call(node: Node<'_>, index: u32, input: Input) -> Result<Call, DecodeError> {
    let item_id = fields::text(node, "id")?;
    let id = match fields::text(node, "call_id")? {
        Some(id) => id,
        None => item_id.clone().unwrap_or_else(|| Text::from(format!("call_{index}"))),
    };
    let name = node.expect_field("name")?.expect_text()?;
    Ok(Call { id, item_id, name, namespace: fields::text(node, "namespace")?, input })
}

/// Returns what a call was given: a string, though some write the object itself.
fn call_text(node: Node<'_>, name: &str) -> Result<Text, DecodeError> {
    match fields::given(node, name) {
        Some(value) if value.kind() == JsonKind::Object => Ok(value.raw_text()),
        Some(value) => value.expect_text(),
        None => Ok(Text::default()),
    }
}

fn decode_output(node: Node<'_>, freeform: bool) -> Result<Return, DecodeError> {
    let output = node.field("output").ok_or_else(|| shape::missing(node, "output"))?;
    let parts = match output.kind() {
        JsonKind::Null => Vec::new(),
        // Some programs write what the tool returned itself, and not its text.
        JsonKind::Object => vec![Part::text(output.raw_text())],
        _ => parts::decode_content(Some(output))?,
    };
    // The dialect cannot say that a tool failed, so a mark in the text may.
    let (outcome, parts) = outcome::unmarked(parts, false, false);
    Ok(Return {
        call_id: fields::text(node, "call_id")?,
        item_id: fields::text(node, "id")?,
        name: fields::text(node, "name")?,
        parts,
        outcome,
        freeform,
    })
}

fn decode_reasoning(node: Node<'_>) -> Result<Thought, DecodeError> {
    Ok(Thought {
        summary: texts(node, "summary")?,
        content: texts(node, "content")?,
        seal: fields::text(node, "encrypted_content")?.map(Seal::Encrypted),
        item_id: fields::text(node, "id")?,
    })
}

/// Returns the texts of a list of parts; of a bare string, which some servers write, that string.
pub(super) fn texts(node: Node<'_>, name: &str) -> Result<Vec<Text>, DecodeError> {
    let Some(list) = fields::given(node, name) else { return Ok(Vec::new()) };
    if let Some(text) = list.as_text() {
        return Ok(vec![text]);
    }
    let text_of = |part: Node<'_>| match part.as_text() {
        Some(text) => Ok(text),
        None => Ok(fields::text(part.expect_object()?, "text")?.unwrap_or_default()),
    };
    list.expect_array()?.items().map(text_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn decode(json: &str) -> Entry {
        let document = Document::parse(json).unwrap();
        decode_item(document.root(), 3).unwrap()
    }

    fn problem(json: &str) -> String {
        let document = Document::parse(json).unwrap();
        decode_item(document.root(), 0).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_type_is_a_message_or_a_reference() {
        assert!(decode(r#"{"role":"user","content":"hi"}"#).as_said().is_some());
        assert_eq!(decode(r#"{"id":"msg_1"}"#).kind, Kind::Reference { id: "msg_1".into() });
        assert!(problem(r#"{"content":"hi"}"#).starts_with("type: is required"));
    }

    #[test]
    fn an_unheard_of_role_is_kept_whole() {
        let entry = decode(r#"{"type":"message","role":"critic","content":[]}"#);
        assert_eq!(entry.kind, Kind::Opaque { kind: "message".into() });
    }

    #[test]
    fn a_call_without_call_id_goes_by_its_item_id() {
        let call = |json| decode(json).as_call().cloned().unwrap();
        let by_item = call(r#"{"type":"function_call","id":"fc_1","name":"f","arguments":"{}"}"#);
        assert_eq!(by_item.id, "fc_1");
        assert_eq!(call(r#"{"type":"function_call","name":"f","arguments":null}"#).id, "call_3");
    }

    #[test]
    fn a_call_that_was_completed_here_is_not_sent_as_it_came() {
        assert!(decode(r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#).intact);
        assert!(!decode(r#"{"type":"function_call","name":"f","arguments":"{}"}"#).intact);
        assert!(!decode(r#"{"type":"function_call","call_id":"c","name":"f","arguments":{}}"#).intact);
    }

    #[test]
    fn an_output_that_is_null_or_an_object_is_taken_as_what_it_means() {
        let result = |output: &str| {
            decode(&format!(r#"{{"type":"function_call_output","call_id":"c","output":{output}}}"#))
        };
        let null = result("null");
        assert_eq!((null.as_return().unwrap().parts.len(), null.intact), (0, false));
        let object = result(r#"{"ok":true}"#);
        assert_eq!(
            (object.as_return().unwrap().parts[0].as_text().unwrap().as_str(), object.intact),
            (r#"{"ok":true}"#, false)
        );
        assert!(result("\"plain\"").intact);
        assert!(
            problem(r#"{"type":"function_call_output","call_id":"c"}"#).starts_with("output: is required")
        );
    }

    #[test]
    fn reasoning_with_null_content_and_null_seal_has_neither() {
        let json = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"content":null,
            "encrypted_content":null,"id":"rs_1"}"#;
        let Kind::Thought(thought) = decode(json).kind else { panic!("no thought") };
        assert_eq!(thought.summary, ["s"]);
        assert_eq!((thought.content.len(), thought.seal, thought.item_id), (0, None, Some("rs_1".into())));
    }

    #[test]
    fn status_and_ids_are_no_extras_but_phase_is() {
        let json = r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant",
            "phase":"commentary","content":[],"x":null}"#;
        let names: Vec<_> = decode(json).wire.unwrap().extras.into_iter().map(|extra| extra.name).collect();
        assert_eq!(names, ["phase"]);
    }

    #[test]
    fn a_known_field_of_the_wrong_type_is_refused_with_its_place() {
        assert_eq!(
            problem(r#"{"type":"function_call","call_id":1,"name":"f"}"#),
            "call_id: must be a string, not a number (at byte 34)"
        );
        assert!(problem(r#"{"role":"user","content":{}}"#).contains("content: must be a string or an array"));
    }

    #[test]
    fn our_wrapper_around_free_text_is_taken_off() {
        let json = r#"{"type":"function_call","call_id":"c","name":"f",
            "arguments":"{\"throughline_input\":\"*** Begin\"}"}"#;
        assert_eq!(decode(json).as_call().unwrap().input, Input::Freeform("*** Begin".into()));
    }
}
