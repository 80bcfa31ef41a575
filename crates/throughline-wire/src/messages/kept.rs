//! What is kept of an object of the wire, and how an object is looked at.
//!
//! An object keeps its exact text, and beside it the fields that the canonical model has no word for. A field
//! that says nothing (`null`, `[]`, `{}`) is not worth a line in a report and is not among them; it is in the
//! text all the same.

use crate::json::{DecodeError, Kind, Node, Writer};
use throughline_core::{Dialect, Extra, Number, Text, Wire};

/// The dialect of this folder.
pub(super) const OWN: Dialect = Dialect::Messages;

/// Returns the wire form of an object of which the canonical model expresses the `known` fields.
pub(super) fn wire(node: Node<'_>, known: &[&str]) -> Wire {
    Wire { dialect: OWN, text: node.raw_text(), extras: extras(node, known) }
}

/// Returns the fields that are not `known` and say something.
pub(super) fn extras(node: Node<'_>, known: &[&str]) -> Vec<Extra> {
    node.fields()
        .filter(|(name, value)| !known.contains(&&**name) && is_significant(*value))
        .map(|(name, value)| Extra { name: Text::from(&*name), value: value.raw_text() })
        .collect()
}

/// Says whether a value says anything.
pub(super) fn is_significant(value: Node<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::Array | Kind::Object => !value.is_empty(),
        Kind::Bool | Kind::Number | Kind::String => true,
    }
}

/// Returns the wire form if it is of this dialect.
pub(super) fn own(wire: Option<&Wire>) -> Option<&Wire> {
    wire.filter(|wire| wire.dialect == OWN)
}

/// Appends kept fields to the object that is being written.
pub(super) fn write_extras(writer: &mut Writer, wire: Option<&Wire>) {
    for extra in own(wire).into_iter().flat_map(|wire| &wire.extras) {
        writer.field_raw(&extra.name, &extra.value);
    }
}

/// Returns the field of that name, unless it is `null`, which clients send for absent.
pub(super) fn given<'d>(node: Node<'d>, name: &str) -> Option<Node<'d>> {
    node.field(name).filter(|value| !value.is_null())
}

/// Returns the text of a field that must be a string if it is there.
pub(super) fn given_text(node: Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    given(node, name).map(|value| value.expect_text()).transpose()
}

/// Returns the truth value of a field that must be one if it is there.
pub(super) fn given_bool(node: Node<'_>, name: &str) -> Result<Option<bool>, DecodeError> {
    given(node, name).map(|value| value.expect_bool()).transpose()
}

/// Returns the exact text of a field that must be a number if it is there.
pub(super) fn given_number(node: Node<'_>, name: &str) -> Result<Option<Number>, DecodeError> {
    let number = |value: Node<'_>| match value.kind() {
        Kind::Number => Ok(value.raw_text()),
        kind => Err(value.error(format!("must be a number, not {kind}"))),
    };
    given(node, name).map(number).transpose()
}

/// Returns the type tag of a block, a tool or a source.
pub(super) fn tag(node: Node<'_>) -> Result<Text, DecodeError> {
    node.expect_field("type")?.expect_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn fields_that_say_nothing_are_no_extras() {
        let document =
            Document::parse(r#"{"type":"text","citations":null,"a":[],"b":{},"c":false}"#).unwrap();
        let kept = wire(document.root(), &["type"]);
        assert_eq!(kept.extras, [Extra { name: "c".into(), value: "false".into() }]);
        assert_eq!(kept.text, document.root().raw());
    }
}
