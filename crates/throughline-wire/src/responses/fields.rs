//! Reading fields leniently: absent and `null` mean the same, and what nobody here knows is kept.
//!
//! Clients and servers of this dialect write `null` for nearly anything they do not mean, so no decoder
//! looks at a field without coming through here.

use crate::json::{DecodeError, Kind, Node};
use throughline_core::{Dialect, Extra, Text, Wire};

/// Returns the field if it is there and not `null`.
pub(super) fn given<'d>(node: Node<'d>, name: &str) -> Option<Node<'d>> {
    node.field(name).filter(|value| !value.is_null())
}

/// Returns the text of a field that must be a string if it is given.
pub(super) fn text(node: Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    given(node, name).map(|value| value.expect_text()).transpose()
}

/// Returns the truth value of a field that must be one if it is given.
pub(super) fn flag(node: Node<'_>, name: &str) -> Result<Option<bool>, DecodeError> {
    given(node, name).map(|value| value.expect_bool()).transpose()
}

/// Returns the exact text of a field that must be a number if it is given.
pub(super) fn number(node: Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    let exact = |value: Node<'_>| match value.kind() {
        Kind::Number => Ok(value.raw_text()),
        kind => Err(value.error(format!("must be a number, not {kind}"))),
    };
    given(node, name).map(exact).transpose()
}

/// Returns the items of a field that must be an array if it is given.
pub(super) fn items<'d>(
    node: Node<'d>,
    name: &str,
) -> Result<impl Iterator<Item = Node<'d>> + use<'d>, DecodeError> {
    let array = given(node, name).map(|value| value.expect_array()).transpose()?;
    Ok(array.into_iter().flat_map(Node::items))
}

/// Returns the text of a field if it is one, and nothing for anything else.
///
/// For answers, where a value of the wrong type is the server's mistake and no reason to lose the rest.
pub(super) fn lenient_text(node: Node<'_>, name: &str) -> Option<Text> {
    node.field(name).and_then(|value| value.as_text())
}

/// Says whether losing the value would lose anything.
pub(super) fn is_significant(value: Node<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::Array | Kind::Object => !value.is_empty(),
        _ => true,
    }
}

/// Returns every field of an object, as it came.
pub(super) fn all(node: Node<'_>) -> Vec<Extra> {
    node.fields().map(|(name, value)| extra(&name, value)).collect()
}

/// Returns the wire form of an object of which the canonical model expresses the fields in `known`.
pub(super) fn wire(node: Node<'_>, known: &[&str]) -> Wire {
    let extras = node
        .fields()
        .filter(|(name, value)| !known.contains(&name.as_ref()) && is_significant(*value))
        .map(|(name, value)| extra(&name, value))
        .collect();
    Wire { dialect: Dialect::Responses, text: node.raw_text(), extras }
}

/// Returns the wire form of an object that the canonical model only knows as a whole.
pub(super) fn whole(node: Node<'_>) -> Wire {
    Wire { dialect: Dialect::Responses, text: node.raw_text(), extras: Vec::new() }
}

fn extra(name: &str, value: Node<'_>) -> Extra {
    Extra { name: Text::from(name), value: value.raw_text() }
}
