//! What the known fields of a request must hold, as tables.
//!
//! Each dialect lists its fields in its own `known.rs`, and a request is held against that list before it is
//! read. What stands in no list is not looked at: an unknown field survives, and so does an unknown `type` of
//! an object that comes in several. `null` counts as absent.
//!
//! The tables say what the dialect's own provider refuses from every model and every account. What depends on
//! the model (how many tokens, which effort) is for the backend to say.

use crate::json::{DecodeError, Kind, Node};

/// What a value must be.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A string.
    Text,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number from here to there.
    Whole(i64, i64),
    /// A number from here to there.
    Number(f64, f64),
    /// An array whose items all have this shape.
    List(&'static Self),
    /// An object whose values all have this shape.
    Map(&'static Self),
    /// An object with these fields among others.
    Object(&'static [Field]),
    /// An object whose `type` says which fields it has.
    Tagged(&'static [(&'static str, &'static [Field])]),
    /// A string, or else something of this shape.
    TextOr(&'static Self),
    /// Whatever this function lets pass.
    Such(fn(Node<'_>) -> Result<(), DecodeError>),
}

/// A field of an object, and what it must hold.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    name: &'static str,
    shape: Shape,
    required: bool,
}

/// Returns a field that may be left out.
pub(crate) const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

/// Returns a field that must be there.
pub(crate) const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

/// An object of which only that is known.
pub(crate) const ANY_OBJECT: Shape = Shape::Object(&[]);

/// A list of strings.
pub(crate) const TEXTS: Shape = Shape::List(&Shape::Text);

/// A count: of tokens, of calls.
pub(crate) const fn at_least(least: i64) -> Shape {
    Shape::Whole(least, i64::MAX)
}

/// Holds an object against its table.
///
/// # Errors
/// For the first field that is not what it must be.
pub(crate) fn check(object: Node<'_>, table: &[Field]) -> Result<(), DecodeError> {
    object.expect_object()?;
    for (name, value) in object.fields().filter(|(_, value)| !value.is_null()) {
        if let Some(field) = table.iter().find(|field| field.name == name) {
            field.shape.check(value)?;
        }
    }
    let is_missing =
        |field: &&Field| field.required && object.field(field.name).is_none_or(|it| it.is_null());
    match table.iter().find(is_missing) {
        Some(field) => Err(missing(object, field.name)),
        None => Ok(()),
    }
}

/// Returns the error that a field is not there.
pub(crate) fn missing(object: Node<'_>, name: &str) -> DecodeError {
    match object.expect_field(name) {
        Err(error) => error,
        Ok(value) => value.error("is required"),
    }
}

impl Shape {
    fn check(self, value: Node<'_>) -> Result<(), DecodeError> {
        match self {
            Self::Text => value.expect_str().map(drop),
            Self::OneOf(words) => check_word(value, words),
            Self::Flag => value.expect_bool().map(drop),
            Self::Whole(least, most) => check_whole(value, least, most),
            Self::Number(least, most) => check_number(value, least, most),
            Self::List(item) => value.expect_array()?.items().try_for_each(|it| item.check(it)),
            Self::Map(shape) => value.expect_object()?.fields().try_for_each(|(_, it)| shape.check(it)),
            Self::Object(fields) => check(value, fields),
            Self::Tagged(variants) => check_tagged(value, variants),
            Self::TextOr(_) if value.kind() == Kind::String => Ok(()),
            Self::TextOr(other) => other.check(value).map_err(|error| or_text(error, value)),
            Self::Such(lets_pass) => lets_pass(value),
        }
    }
}

/// Adds to an error about the value itself that a string would do as well.
fn or_text(mut error: DecodeError, value: Node<'_>) -> DecodeError {
    if error.offset == value.offset()
        && let Some(rest) = error.problem.strip_prefix("must be ")
    {
        error.problem = format!("must be a string or {rest}");
    }
    error
}

fn check_word(value: Node<'_>, words: &[&str]) -> Result<(), DecodeError> {
    let word = value.expect_str()?;
    if words.contains(&&*word) {
        return Ok(());
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    Err(value.error(format!("must be {}, not `{word}`", quoted.join(" or "))))
}

pub(crate) fn check_tagged(value: Node<'_>, variants: &[(&str, &[Field])]) -> Result<(), DecodeError> {
    let tag = value.expect_field("type")?.expect_str()?;
    match variants.iter().find(|(known, _)| *known == tag) {
        Some((_, fields)) => check(value, fields),
        None => Ok(()),
    }
}

fn check_whole(value: Node<'_>, least: i64, most: i64) -> Result<(), DecodeError> {
    let number = expect_number(value)?;
    // A number beyond 64 bits is within a limit that stands for none; that it is too large is the backend's
    // affair.
    #[expect(clippy::cast_precision_loss, reason = "limits are small, or stand for none")]
    let is_within =
        (least == i64::MIN || number >= least as f64) && (most == i64::MAX || number <= most as f64);
    if number.fract() == 0.0 && is_within {
        return Ok(());
    }
    let range = match (least, most) {
        (i64::MIN, _) => String::new(),
        (_, i64::MAX) => format!(" from {least} up"),
        _ => format!(" from {least} to {most}"),
    };
    Err(value.error(format!("must be a whole number{range}, not {}", value.raw())))
}

fn check_number(value: Node<'_>, least: f64, most: f64) -> Result<(), DecodeError> {
    if (least..=most).contains(&expect_number(value)?) {
        return Ok(());
    }
    Err(value.error(format!("must be a number from {least} to {most}, not {}", value.raw())))
}

fn expect_number(value: Node<'_>) -> Result<f64, DecodeError> {
    value.as_f64().ok_or_else(|| value.error(format!("must be a number, not {}", value.kind())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    const TABLE: &[Field] = &[
        may("limit", at_least(1)),
        may("share", Shape::Number(0.0, 1.0)),
        may("seed", Shape::Whole(i64::MIN, i64::MAX)),
        may("word", Shape::OneOf(&["auto", "off"])),
        may("labels", Shape::Map(&Shape::Text)),
        may("list", Shape::TextOr(&TEXTS)),
        may("kind", Shape::Tagged(&[("deep", &[must("depth", Shape::Whole(0, 9))])])),
    ];

    fn problem(body: &str) -> Option<String> {
        let document = Document::parse(body).unwrap();
        check(document.root(), TABLE).err().map(|error| format!("{}: {}", error.path, error.problem))
    }

    #[test]
    fn what_fits_passes_and_so_does_what_nobody_knows() {
        for body in [
            "{}",
            r#"{"limit":1,"share":0.5,"seed":-7,"word":"off","labels":{"a":"b"},"list":"x"}"#,
            r#"{"limit":2.0,"share":1,"seed":123456789012345678901234567890,"list":["x","y"]}"#,
            r#"{"limit":null,"labels":null,"kind":null,"unknown":[{"limit":"x"}]}"#,
            r#"{"kind":{"type":"deep","depth":3,"other":1}}"#,
            r#"{"kind":{"type":"brand new","depth":"x"}}"#,
        ] {
            assert_eq!(problem(body), None, "{body}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_way_and_what_it_should_be() {
        for (body, said) in [
            (r#"{"limit":0}"#, "limit: must be a whole number from 1 up, not 0"),
            (r#"{"limit":-1}"#, "limit: must be a whole number from 1 up, not -1"),
            (r#"{"limit":1.5}"#, "limit: must be a whole number from 1 up, not 1.5"),
            (r#"{"limit":"1"}"#, "limit: must be a number, not a string"),
            (r#"{"seed":0.1}"#, "seed: must be a whole number, not 0.1"),
            (r#"{"share":1.01}"#, "share: must be a number from 0 to 1, not 1.01"),
            (r#"{"word":"on"}"#, "word: must be `auto` or `off`, not `on`"),
            (r#"{"labels":{"a":"b","c":1}}"#, "labels.c: must be a string, not a number"),
            (r#"{"labels":{"a":null}}"#, "labels.a: must be a string, not null"),
            (r#"{"list":7}"#, "list: must be a string or an array, not a number"),
            (r#"{"list":["a",{}]}"#, "list[1]: must be a string, not an object"),
            (r#"{"kind":{}}"#, "kind.type: is required"),
            (r#"{"kind":{"type":"deep"}}"#, "kind.depth: is required"),
            (r#"{"kind":{"type":"deep","depth":null}}"#, "kind.depth: is required"),
            (
                r#"{"kind":{"type":"deep","depth":10}}"#,
                "kind.depth: must be a whole number from 0 to 9, not 10",
            ),
            ("[]", ": must be an object, not an array"),
        ] {
            assert_eq!(problem(body).as_deref(), Some(said), "{body}");
        }
    }
}
