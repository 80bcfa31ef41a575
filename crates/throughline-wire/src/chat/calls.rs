//! Calls of an assistant message, both ways.
//!
//! A call is a function call with its arguments as a string of JSON, or a custom call with free text. Real
//! clients also send arguments as an object, no arguments at all, no type and no id.

use super::WITHOUT_ID;
use super::extras::{given, given_text, nested_wire, own, wire_of};
use super::history::Held;
use crate::input::{as_object, from_arguments};
use crate::json::{DecodeError, Kind as JsonKind, Node, Writer};
use std::borrow::Cow;
use throughline_core::{Action, Call, Dialect, Entry, Extra, Input, Kind, Report, Rules, Text};

/// Reads the calls of an assistant message.
pub(super) fn decode_calls(message: Node<'_>, stem: &str) -> Result<Vec<Held>, DecodeError> {
    let Some(calls) = given(message, "tool_calls") else { return Ok(Vec::new()) };
    calls.expect_array()?.items().zip(0..).map(|(call, at)| decode_call(call, at, stem)).collect()
}

/// Reads the one call of a message of the time before tools, which has no id.
pub(super) fn decode_function_call(message: Node<'_>, stem: &str) -> Result<Option<Held>, DecodeError> {
    let Some(call) = given(message, "function_call") else { return Ok(None) };
    let kind = Kind::Called(Call {
        id: Text::from(format!("{stem}_0")),
        item_id: None,
        name: call.expect_field("name")?.expect_text()?,
        namespace: None,
        input: from_arguments(decode_arguments(call)),
    });
    // It is no object that could stand among `tool_calls`, so its own text is of no use.
    Ok(Some(Held { kind, wire: None, block: None, intact: true }))
}

fn decode_call(node: Node<'_>, at: u32, stem: &str) -> Result<Held, DecodeError> {
    node.expect_object()?;
    let kind = match given(node, "type") {
        Some(kind) => kind.expect_text()?,
        None if node.field("custom").is_some() => Text::from_static("custom"),
        None => Text::from_static("function"),
    };
    let id = given_text(node, "id")?.filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| Text::from(format!("{stem}_{at}")));
    let (name, input, wire) = match kind.as_str() {
        "function" => {
            let function = node.expect_field("function")?;
            let wire =
                nested_wire(node, &["id", "type", "index", "function"], "function", &["name", "arguments"]);
            // Arguments that are no string are not what servers expect; the text is of no use then.
            let wire = Some(wire).filter(|_| given(function, "arguments").is_some_and(is_string));
            (function.expect_field("name")?, from_arguments(decode_arguments(function)), wire)
        }
        "custom" => {
            let custom = node.expect_field("custom")?;
            let input = given_text(custom, "input")?;
            let wire = nested_wire(node, &["id", "type", "index", "custom"], "custom", &["name", "input"]);
            (custom.expect_field("name")?, Input::Freeform(input.unwrap_or_default()), Some(wire))
        }
        _ => {
            return Ok(Held {
                kind: Kind::Opaque { kind },
                wire: Some(wire_of(node, &[])),
                block: Some(at),
                intact: true,
            });
        }
    };
    let call = Call { id, item_id: None, name: name.expect_text()?, namespace: None, input };
    Ok(Held { kind: Kind::Called(call), wire, block: Some(at), intact: true })
}

fn is_string(node: Node<'_>) -> bool {
    node.kind() == JsonKind::String
}

/// Returns the arguments of a function object: the string's text, or the text of whatever else is there.
pub(super) fn decode_arguments(function: Node<'_>) -> Text {
    let Some(arguments) = given(function, "arguments") else { return Text::default() };
    arguments.as_text().unwrap_or_else(|| arguments.raw_text())
}

/// Says whether the entry is half of a pair that the client gave no id.
///
/// A client may well send such an id back that it was once given; then this only means that the pair stays
/// or is rebuilt as one.
pub(super) fn is_loose(entry: &Entry) -> bool {
    match &entry.kind {
        Kind::Called(call) => call.id.starts_with(WITHOUT_ID),
        Kind::Returned(returned) => returned.call_id.as_ref().is_none_or(|id| id.starts_with(WITHOUT_ID)),
        _ => false,
    }
}

/// Says whether the wire form of a call suits the target.
pub(super) fn is_sendable(entry: &Entry, call: &Call, rules: &Rules) -> bool {
    if rules.marked_calls && !is_marked(entry) {
        return false;
    }
    match &call.input {
        Input::Freeform(_) => rules.custom_tools,
        Input::Arguments(text) if rules.object_arguments => {
            own(entry.wire.as_ref()).is_some()
                && matches!(as_object(&call.input), Cow::Borrowed(object) if object.len() == text.len())
        }
        // Without a text of its own it is a call of the time before tools, or its arguments were no string.
        Input::Arguments(_) => own(entry.wire.as_ref()).is_some() || is_loose(entry),
    }
}

/// Where a call carries the mark of the model that made it.
const MARK_FIELD: &str = "extra_content";

/// The mark of a call that another model made: Gemini's word for leaving it unchecked.
const FOREIGN_MARK: &str = r#"{"google":{"thought_signature":"skip_thought_signature_validator"}}"#;

/// Says whether a call carries the mark of the model that made it.
fn is_marked(entry: &Entry) -> bool {
    own(entry.wire.as_ref()).is_some_and(|wire| wire.extras.iter().any(|extra| extra.name == MARK_FIELD))
}

/// Writes one of the calls of an assistant message.
pub(super) fn write_call(
    writer: &mut Writer,
    entry: &Entry,
    call: &Call,
    rules: &Rules,
    report: &mut Report,
) {
    let wire = own(entry.wire.as_ref());
    if let Some(wire) = wire.filter(|_| entry.intact && !is_loose(entry) && is_sendable(entry, call, rules)) {
        return writer.raw(&wire.text);
    }
    let came_here =
        entry.envelope.as_ref().is_some_and(|(envelope, _)| envelope.wire.dialect == Dialect::Chat);
    if came_here && wire.is_none() && !is_loose(entry) {
        report.entry(Action::Repaired, entry.place, "arguments are sent as a string");
    }
    let extras: &[Extra] = wire.map_or(&[], |wire| &wire.extras);
    writer.begin_object();
    writer.field_str("id", &call.id);
    match &call.input {
        Input::Freeform(text) if rules.custom_tools => {
            write_inner(writer, "custom", &call.name, "input", text, extras);
        }
        input => {
            let arguments = sent_arguments(entry, input, rules, report);
            write_inner(writer, "function", &call.name, "arguments", &arguments, extras);
        }
    }
    for extra in extras.iter().filter(|extra| !extra.name.contains('.')) {
        writer.field_raw(&extra.name, &extra.value);
    }
    if rules.marked_calls && !is_marked(entry) {
        report.entry(Action::Translated, entry.place, "the call is marked as another model's");
        writer.field_raw(MARK_FIELD, FOREIGN_MARK);
    }
    writer.end_object();
}

fn write_inner(writer: &mut Writer, kind: &str, name: &str, field: &str, text: &str, extras: &[Extra]) {
    writer.field_str("type", kind);
    writer.key(kind);
    writer.begin_object();
    writer.field_str("name", name);
    writer.field_str(field, text);
    for extra in extras {
        if let Some(name) = extra.name.strip_prefix(kind).and_then(|name| name.strip_prefix('.')) {
            writer.field_raw(name, &extra.value);
        }
    }
    writer.end_object();
}

fn sent_arguments<'e>(entry: &Entry, input: &'e Input, rules: &Rules, report: &mut Report) -> Cow<'e, str> {
    if let Input::Arguments(text) = input
        && !rules.object_arguments
    {
        return Cow::Borrowed(text.as_str());
    }
    let object = as_object(input);
    match input {
        Input::Freeform(_) => {
            report.entry(Action::Translated, entry.place, "free text is wrapped into an object");
        }
        Input::Arguments(text) if object != text.as_str() => {
            report.entry(
                Action::Repaired,
                entry.place,
                "arguments that are no JSON object are wrapped into one",
            );
        }
        Input::Arguments(_) => {}
    }
    object
}
