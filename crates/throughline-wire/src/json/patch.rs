//! Changing a few fields of a JSON object and nothing else.
//!
//! A body that is forwarded in its own dialect may still need another model name or a flag removed. Every
//! other field keeps its key and value as written, and its place; only the whitespace between fields goes.

use super::index::{Document, Kind, Node};
use super::scan::SyntaxError;
use super::write::Writer;

/// A change to one field of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit<'a> {
    /// Gives the field this value: in its place if it is there, at the end if it is not.
    Set {
        /// The name of the field, unescaped.
        name: &'a str,
        /// The value, as JSON.
        value: &'a str,
    },
    /// Takes the field away, if it is there.
    Remove {
        /// The name of the field, unescaped.
        name: &'a str,
    },
}

/// Returns the JSON object `raw` with the edits made.
///
/// Of several edits to one name the last counts. A field that is set is written once, even if the object
/// repeated its key. Anything but an object is an error.
pub fn patch(raw: &str, edits: &[Edit<'_>]) -> Result<String, SyntaxError> {
    let document = Document::parse(raw)?;
    let root = document.root();
    if root.kind() != Kind::Object {
        return Err(SyntaxError::unexpected(raw, root.offset(), "an object"));
    }
    let mut writer = Writer::with_capacity(raw.len() + edits.iter().map(added_length).sum::<usize>());
    writer.begin_object();
    let mut unwritten = last_edits(edits);
    for (key, value) in root.pairs() {
        if !edits.iter().any(|edit| key.is_str(edit.name())) {
            writer.raw_field(key.raw(), value.raw());
        } else if let Some(value) = take_value(&mut unwritten, key) {
            writer.raw_field(key.raw(), value);
        }
    }
    for edit in unwritten {
        if let Edit::Set { name, value } = edit {
            writer.field_raw(name, value);
        }
    }
    writer.end_object();
    Ok(writer.into_string())
}

impl<'a> Edit<'a> {
    fn name(&self) -> &'a str {
        match self {
            Self::Set { name, .. } | Self::Remove { name } => name,
        }
    }
}

/// Returns the edits that count: for each name the last.
fn last_edits<'a>(edits: &[Edit<'a>]) -> Vec<Edit<'a>> {
    let is_last =
        |(at, edit): &(usize, &Edit<'a>)| edits[at + 1..].iter().all(|later| later.name() != edit.name());
    edits.iter().enumerate().filter(is_last).map(|(_, edit)| *edit).collect()
}

/// Takes the edit of this key out of `unwritten` and returns the value it sets, if it sets one.
fn take_value<'a>(unwritten: &mut Vec<Edit<'a>>, key: Node<'_>) -> Option<&'a str> {
    let at = unwritten.iter().position(|edit| key.is_str(edit.name()))?;
    match unwritten.remove(at) {
        Edit::Set { value, .. } => Some(value),
        Edit::Remove { .. } => None,
    }
}

fn added_length(edit: &Edit<'_>) -> usize {
    match edit {
        Edit::Set { name, value } => name.len() + value.len() + r#","":"#.len(),
        Edit::Remove { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::SyntaxProblem;
    use super::*;

    #[test]
    fn other_fields_keep_their_text_and_place() {
        let raw = r#"{ "z": 1.10, "model" : "old", "\u0061": { "b": [ ] }, "stream": true }"#;
        let edits = [
            Edit::Set { name: "model", value: "\"new\"" },
            Edit::Remove { name: "stream" },
            Edit::Set { name: "extra", value: "[1]" },
        ];
        let patched = patch(raw, &edits).expect("an object");
        assert_eq!(patched, r#"{"z":1.10,"model":"new","\u0061":{ "b": [ ] },"extra":[1]}"#);
    }

    #[test]
    fn a_repeated_key_is_written_once() {
        let edits = [Edit::Set { name: "a", value: "0" }];
        assert_eq!(patch(r#"{"a":1,"b":2,"\u0061":3}"#, &edits).expect("an object"), r#"{"a":0,"b":2}"#);
        let edits = [Edit::Remove { name: "a" }];
        assert_eq!(patch(r#"{"a":1,"b":2,"\u0061":3}"#, &edits).expect("an object"), r#"{"b":2}"#);
    }

    #[test]
    fn the_last_edit_of_a_name_counts() {
        let edits = [Edit::Set { name: "a", value: "1" }, Edit::Remove { name: "a" }];
        assert_eq!(patch("{}", &edits).expect("an object"), "{}");
        let edits = [Edit::Remove { name: "a" }, Edit::Set { name: "a", value: "1" }];
        assert_eq!(patch(r#"{"a":0}"#, &edits).expect("an object"), r#"{"a":1}"#);
    }

    #[test]
    fn only_objects_can_be_patched() {
        let error = patch(" [1]", &[]).expect_err("an array");
        let problem = SyntaxProblem::UnexpectedCharacter { found: '[', expected: "an object" };
        assert_eq!(error, SyntaxError { offset: 1, problem });
    }
}
