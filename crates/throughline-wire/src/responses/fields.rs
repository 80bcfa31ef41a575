//! Reading fields leniently: absent and `null` mean the same, and what nobody here knows is kept.
//!
//! Clients and servers of this dialect write `null` for nearly anything they do not mean, so no decoder
//! looks at a field without coming through here.

use crate::json::{DecodeError, Node, extras};
use throughline_core::{Dialect, Extra, Text, Wire};

pub(super) use crate::json::{
    given, given_bool as flag, given_number as number, given_text as text, is_significant,
};

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

/// Returns every field of an object, as it came.
pub(super) fn all(node: Node<'_>) -> Vec<Extra> {
    node.fields().map(|(name, value)| Extra { name: Text::from(&*name), value: value.raw_text() }).collect()
}

/// Returns the wire form of an object of which the canonical model expresses the fields in `known`.
pub(super) fn wire(node: Node<'_>, known: &[&str]) -> Wire {
    Wire { dialect: Dialect::Responses, text: node.raw_text(), extras: extras(node, known) }
}

/// Returns the wire form of an object that the canonical model only knows as a whole.
pub(super) fn whole(node: Node<'_>) -> Wire {
    Wire { dialect: Dialect::Responses, text: node.raw_text(), extras: Vec::new() }
}
