//! What is kept of an object of the wire, and how an object is looked at.
//!
//! An object keeps its exact text, and beside it the fields that the canonical model has no word for. A field
//! that says nothing (`null`, `[]`, `{}`) is not worth a line in a report and is not among them; it is in the
//! text all the same.

use crate::json::{DecodeError, Node, Writer};
use throughline_core::{Dialect, Text, Wire};

pub(super) use crate::json::{extras, given, given_bool, given_number, given_text, is_significant};

/// The dialect of this folder.
pub(super) const OWN: Dialect = Dialect::Messages;

/// Returns the wire form of an object of which the canonical model expresses the `known` fields.
pub(super) fn wire(node: Node<'_>, known: &[&str]) -> Wire {
    Wire { dialect: OWN, text: node.raw_text(), extras: extras(node, known) }
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

/// Returns the type tag of a block, a tool or a source.
pub(super) fn tag(node: Node<'_>) -> Result<Text, DecodeError> {
    node.expect_field("type")?.expect_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;
    use throughline_core::Extra;

    #[test]
    fn fields_that_say_nothing_are_no_extras() {
        let document =
            Document::parse(r#"{"type":"text","citations":null,"a":[],"b":{},"c":false}"#).unwrap();
        let kept = wire(document.root(), &["type"]);
        assert_eq!(kept.extras, [Extra { name: "c".into(), value: "false".into() }]);
        assert_eq!(kept.text, document.root().raw());
    }
}
