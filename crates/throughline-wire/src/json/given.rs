//! Fields that may be left out: absent and `null` mean the same, which is how clients of all dialects have it.
//!
//! Also what is worth keeping of the fields that a decoder does not know.

use super::expect::DecodeError;
use super::index::{Kind, Node};
use throughline_core::{Extra, Number, Text};

/// Returns the field of that name, unless it is `null`.
pub(crate) fn given<'d>(node: Node<'d>, name: &str) -> Option<Node<'d>> {
    node.field(name).filter(|value| !value.is_null())
}

/// Returns the text of a field that must be a string if it is given.
pub(crate) fn given_text(node: Node<'_>, name: &str) -> Result<Option<Text>, DecodeError> {
    given(node, name).map(|value| value.expect_text()).transpose()
}

/// Returns the truth value of a field that must be one if it is given.
pub(crate) fn given_bool(node: Node<'_>, name: &str) -> Result<Option<bool>, DecodeError> {
    given(node, name).map(|value| value.expect_bool()).transpose()
}

/// Returns the exact text of a field that must be a number if it is given.
pub(crate) fn given_number(node: Node<'_>, name: &str) -> Result<Option<Number>, DecodeError> {
    let exact = |value: Node<'_>| match value.kind() {
        Kind::Number => Ok(value.raw_text()),
        kind => Err(value.error(format!("must be a number, not {kind}"))),
    };
    given(node, name).map(exact).transpose()
}

/// Says whether losing the value would lose anything: not with `null`, nor an empty array or object.
pub(crate) fn is_significant(value: Node<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::Array | Kind::Object => !value.is_empty(),
        Kind::Bool | Kind::Number | Kind::String => true,
    }
}

/// Returns the significant fields of an object that are not among the known ones.
pub(crate) fn extras(node: Node<'_>, known: &[&str]) -> Vec<Extra> {
    node.fields()
        .filter(|(name, value)| !known.contains(&&**name) && is_significant(*value))
        .map(|(name, value)| Extra { name: Text::from(&*name), value: value.raw_text() })
        .collect()
}
