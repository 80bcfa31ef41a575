//! Any text as JSON: accepted exactly where `serde_json` accepts it, and read as the same values.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use throughline_wire::json::{Document, Edit, Kind, Node, SyntaxProblem, patch, quote};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert_eq!(serde_json::from_str::<String>(&quote(text)).expect("a string"), text);
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    match Document::parse(text) {
        Ok(document) => {
            assert!(is_json, "accepted, but is not JSON");
            check_values(text, &document);
        }
        // Where nesting ends is a decision of ours; the oracle has none.
        Err(error) if error.problem == SyntaxProblem::TooDeep => {}
        Err(error) => {
            assert!(!is_json, "JSON, but refused: {error}");
            assert!(text.is_char_boundary(error.offset));
        }
    }
});

fn check_values(text: &str, document: &Document) {
    assert_eq!(document.root().raw(), text.trim_matches([' ', '\t', '\r', '\n']));
    if document.root().kind() == Kind::Object {
        let edits = [Edit::Set { name: "model", value: "\"x\"" }, Edit::Remove { name: "input" }];
        let patched = patch(text, &edits).expect("an object");
        let patched = Document::parse(patched).expect("still JSON");
        assert!(patched.root().field("model").is_some_and(|model| model.is_str("x")));
        assert!(patched.root().field("input").is_none());
    }
    // A `Value` refuses half a surrogate pair and numbers beyond a double, which are read here.
    if let Ok(expected) = serde_json::from_str::<Value>(text) {
        assert_eq!(value(document.root()), expected);
    }
}

fn value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::String => Value::String(node.as_str().expect("a string").into_owned()),
        Kind::Array => node.items().map(value).collect(),
        Kind::Object => node.fields().map(|(key, field)| (key.into_owned(), value(field))).collect(),
        Kind::Null | Kind::Bool | Kind::Number => serde_json::from_str(node.raw()).expect("a scalar"),
    }
}
