//! Fields: which are given, which are known, and what is kept of the others.

use crate::json::{Kind, Node};
use throughline_core::{Dialect, Extra, Text, Wire};

/// Returns the field of that name, unless it is `null`, which clients write where they mean nothing.
pub(super) fn given<'d>(node: Node<'d>, name: &str) -> Option<Node<'d>> {
    node.field(name).filter(|value| !value.is_null())
}

/// Returns the field of that name as text, if it is a string with something in it.
pub(super) fn filled(node: Node<'_>, name: &str) -> Option<Text> {
    node.field(name)?.as_text().filter(|text| !text.is_empty())
}

/// Says whether the value says anything: not `null`, nor an empty array or object.
pub(super) fn is_significant(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Null => false,
        Kind::Array | Kind::Object => !node.is_empty(),
        Kind::Bool | Kind::Number | Kind::String => true,
    }
}

/// Returns the significant fields of an object that are not among the known ones.
pub(super) fn extras_of(node: Node<'_>, known: &[&str]) -> Vec<Extra> {
    node.fields()
        .filter(|(name, value)| !known.contains(&&**name) && is_significant(*value))
        .map(|(name, value)| Extra { name: Text::from(&*name), value: value.raw_text() })
        .collect()
}

/// Returns what is kept of an object whose content lies in an inner object of the name `inner`.
///
/// Extras of the inner object are named `inner.name`, so that they find their way back into it.
pub(super) fn nested_wire(node: Node<'_>, known: &[&str], inner: &str, known_inner: &[&str]) -> Wire {
    let mut wire = wire_of(node, known);
    if let Some(object) = node.field(inner) {
        let nested = extras_of(object, known_inner);
        wire.extras.extend(
            nested
                .into_iter()
                .map(|extra| Extra { name: Text::from(format!("{inner}.{}", extra.name)), ..extra }),
        );
    }
    wire
}

/// Returns what is kept of an object: its text, and the fields that are not among the known ones.
pub(super) fn wire_of(node: Node<'_>, known: &[&str]) -> Wire {
    Wire { dialect: Dialect::Chat, text: node.raw_text(), extras: extras_of(node, known) }
}

/// Returns the wire form if it is of this dialect.
pub(super) fn own(wire: Option<&Wire>) -> Option<&Wire> {
    wire.filter(|wire| wire.dialect == Dialect::Chat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn what_says_nothing_is_no_extra() {
        let document = Document::parse(r#"{"a":null,"b":[],"c":{},"d":false,"e":1.10}"#).unwrap();
        let extras = extras_of(document.root(), &["d"]);
        assert_eq!(extras, [Extra { name: "e".into(), value: "1.10".into() }]);
    }

    #[test]
    fn an_extra_of_the_inner_object_names_it() {
        let document = Document::parse(r#"{"function":{"name":"f","x":1},"y":2}"#).unwrap();
        let wire = nested_wire(document.root(), &["function"], "function", &["name"]);
        let names: Vec<_> = wire.extras.iter().map(|extra| extra.name.as_str()).collect();
        assert_eq!(names, ["y", "function.x"]);
    }
}
