//! Tool input made sendable, and made out again.
//!
//! Models produce arguments that are not JSON, and custom tools take free text; some targets take nothing
//! but a JSON object. The text is then wrapped into an object with one field of ours, and unwrapped where
//! such an object comes back, so that the exact text survives the way there and back.

use crate::json::{Document, Kind, Writer};
use std::borrow::Cow;
use std::sync::Arc;
use throughline_core::{Entry, Input, Text};

/// The field that holds arguments which are not the text of a JSON object.
pub(crate) const ARGUMENTS_FIELD: &str = "throughline_arguments";

/// The field that holds the free text of a custom tool.
pub(crate) const FREEFORM_FIELD: &str = "throughline_input";

/// The schema that stands in for a custom tool where custom tools do not exist.
pub(crate) const FREEFORM_SCHEMA: &str = concat!(
    r#"{"type":"object","properties":{"throughline_input":{"type":"string","#,
    r#""description":"The input of the tool, as free text."}},"required":["throughline_input"],"#,
    r#""additionalProperties":false}"#
);

/// Returns the input as the text of a JSON object; borrowed if it is one already.
pub(crate) fn as_object(input: &Input) -> Cow<'_, str> {
    match input {
        Input::Arguments(text) if is_object(text) => Cow::Borrowed(text.as_str()),
        Input::Arguments(text) if text.is_empty() => Cow::Borrowed("{}"),
        Input::Arguments(text) => Cow::Owned(wrap(ARGUMENTS_FIELD, text)),
        Input::Freeform(text) => Cow::Owned(wrap(FREEFORM_FIELD, text)),
    }
}

/// Says whether an entry is a call without arguments, which are written as an empty object.
pub(crate) fn is_filled_in(entry: &Entry) -> bool {
    let call = entry.as_call();
    call.is_some_and(|call| matches!(&call.input, Input::Arguments(text) if text.is_empty()))
}

/// Returns the input that an arguments text stands for, unwrapping what was wrapped here.
pub(crate) fn from_arguments(text: Text) -> Input {
    // Most arguments are not ours: one cheap look saves indexing them.
    if !text.contains("\"throughline_") {
        return Input::Arguments(text);
    }
    unwrap(&text).unwrap_or(Input::Arguments(text))
}

fn unwrap(text: &Text) -> Option<Input> {
    let document = Document::parse(Arc::<str>::from(text.as_str())).ok()?;
    let mut fields = document.root().fields();
    let (name, value) = fields.next()?;
    if fields.next().is_some() {
        return None;
    }
    match &*name {
        ARGUMENTS_FIELD => value.as_text().map(Input::Arguments),
        FREEFORM_FIELD => value.as_text().map(Input::Freeform),
        _ => None,
    }
}

/// Says whether `text` is a JSON object and nothing around it.
///
/// White space around it would not survive being embedded, so it does not count as one.
fn is_object(text: &str) -> bool {
    text.starts_with('{')
        && text.ends_with('}')
        && Document::parse(text).is_ok_and(|document| document.root().kind() == Kind::Object)
}

fn wrap(field: &str, text: &str) -> String {
    let mut writer = Writer::with_capacity(text.len() + field.len() + 16);
    writer.begin_object();
    writer.field_str(field, text);
    writer.end_object();
    writer.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_object_is_sent_as_it_is() {
        let input = Input::Arguments(r#"{"b": 1.10, "a": [1e0]}"#.into());
        assert_eq!(as_object(&input), r#"{"b": 1.10, "a": [1e0]}"#);
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(as_object(&Input::Arguments("".into())), "{}");
    }

    #[test]
    fn truncated_json_is_wrapped() {
        let input = Input::Arguments(r#"{"path": "a"#.into());
        assert_eq!(as_object(&input), r#"{"throughline_arguments":"{\"path\": \"a"}"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn the_exact_text_comes_back(text in r#"\PC{1,20}|\{"a": ?\d\}| \{\}|\{\} |\[1\]"#, freeform: bool) {
            let input = if freeform { Input::Freeform(text.into()) } else { Input::Arguments(text.into()) };
            prop_assert_eq!(from_arguments(Text::from(&*as_object(&input))), input);
        }
    }
}
