//! Fields of this dialect's objects: which are filled, and what is kept of those that nobody knows.

use crate::json::Node;
use throughline_core::{Dialect, Extra, Text, Wire};

pub(super) use crate::json::{extras as extras_of, given, given_bool, given_text, is_significant};

/// Returns the field of that name as text, if it is a string with something in it.
pub(super) fn filled(node: Node<'_>, name: &str) -> Option<Text> {
    node.field(name)?.as_text().filter(|text| !text.is_empty())
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
