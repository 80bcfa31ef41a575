//! What must hold for any JSON, checked against `serde_json` on random texts.
//!
//! The texts are built as text, not printed from values, so that they have what printers never write: odd
//! whitespace, needless escapes, repeated keys, every form of number. For "is this JSON at all" the oracle is
//! `RawValue`, which checks the grammar and nothing else; a `Value` also refuses half a surrogate pair and
//! numbers beyond a double, which are valid JSON and accepted here.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

fn whitespace() -> impl Strategy<Value = &'static str> + Clone {
    prop_oneof![4 => Just(""), 1 => select(vec![" ", "\n", "\t", "\r\n  "])]
}

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?"
}

/// Inside of a string literal, in pieces that decode on their own.
fn string_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{1,12}",
        1 => "[^\u{0}-\u{1f}\"\\\\]{1,4}",
        2 => r#"\\["\\/bfnrt]"#,
        1 => r"\\u[0-9a-cA-C][0-9a-fA-F]{3}",
        1 => r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}",
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop::collection::vec(string_piece(), 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn key() -> impl Strategy<Value = String> {
    let common =
        vec![r#""a""#, r#""b""#, r#""\u0061""#, r#""odd key""#, r#""""#].into_iter().map(String::from);
    prop_oneof![3 => select(common.collect::<Vec<_>>()), 1 => string()]
}

fn json() -> impl Strategy<Value = String> {
    let word = select(vec!["null", "true", "false"]).prop_map(String::from);
    prop_oneof![word, number(), string()].prop_recursive(4, 24, 4, |inner| {
        let spaced = (whitespace(), inner, whitespace()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
        let item = spaced.clone();
        let field = (whitespace(), key(), whitespace(), spaced)
            .prop_map(|(before, key, after, value)| format!("{before}{key}{after}:{value}"));
        let list = |items: Vec<String>| items.join(",");
        prop_oneof![
            prop::collection::vec(item, 0..4).prop_map(move |items| format!("[{}]", list(items))),
            prop::collection::vec(field, 0..5).prop_map(move |fields| format!("{{{}}}", list(fields))),
        ]
    })
}

fn object() -> impl Strategy<Value = String> {
    prop::collection::vec((key(), json()), 0..6).prop_map(|fields| {
        let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key} : {value}")).collect();
        format!("{{ {} }}", fields.join(" , "))
    })
}

/// A small damage to a text: drop a character, put one in, or put one in the place of another.
fn damage() -> impl Strategy<Value = (Index, bool, &'static str)> {
    let bits = vec![
        "", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "+", "\n", "\u{1}", "\u{7f}",
        "\u{a0}", "\\u", "\\ud800", "\\x", "é", "null", "tru",
    ];
    (any::<Index>(), any::<bool>(), select(bits))
}

fn damaged(text: &str, damages: &[(Index, bool, &str)]) -> String {
    let mut characters: Vec<String> = text.chars().map(String::from).collect();
    for (at, replace, bit) in damages {
        let at = at.index(characters.len());
        characters.splice(at..at + usize::from(*replace), [(*bit).to_owned()]);
    }
    characters.concat()
}

fn parse(text: &str) -> Document {
    Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Builds what `serde_json` would have built, out of nodes and their raw text.
fn to_value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::String => Value::String(node.as_str().expect("a string").into_owned()),
        Kind::Array => node.items().map(to_value).collect(),
        Kind::Object => node.fields().map(|(key, value)| (key.into_owned(), to_value(value))).collect(),
        Kind::Null | Kind::Bool | Kind::Number => serde_json::from_str(node.raw()).expect("a scalar"),
    }
}

fn every_node<'d>(node: Node<'d>, found: &mut Vec<Node<'d>>) {
    found.push(node);
    node.items().for_each(|item| every_node(item, found));
    node.fields().for_each(|(_, value)| every_node(value, found));
}

/// Follows a path from the root, reading its notation independently of how it was written.
fn follow<'d>(root: Node<'d>, path: &str) -> Option<Node<'d>> {
    let (mut at, mut rest) = (root, path);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"").map(|_| &rest[1..]) {
            let mut strings = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            at = at.field(&strings.next()?.ok()?)?;
            rest = quoted[strings.byte_offset()..].strip_prefix(']')?;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (position, after) = index.split_once(']')?;
            at = at.items().nth(position.parse().ok()?)?;
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            at = at.field(&name[..end])?;
            rest = &name[end..];
        }
    }
    Some(at)
}

fn write(writer: &mut Writer, value: &Value) {
    match value {
        Value::Null => writer.null(),
        Value::Bool(value) => writer.bool(*value),
        Value::Number(number) => writer.raw(&number.to_string()),
        Value::String(text) => writer.string(text),
        Value::Array(items) => {
            writer.begin_array();
            items.iter().for_each(|item| write(writer, item));
            writer.end_array();
        }
        Value::Object(fields) => {
            writer.begin_object();
            for (key, value) in fields {
                writer.key(key);
                write(writer, value);
            }
            writer.end_object();
        }
    }
}

/// Names for edits: some that the objects use, one that they do not.
fn edit() -> impl Strategy<Value = (&'static str, Option<&'static str>)> {
    let name = select(vec!["a", "b", "odd key", "absent"]);
    (name, prop::option::of(select(vec!["0", "[ 1 ]", "\"x\""])))
}

/// Makes the edits on a value, as the oracle of `patch`.
fn edited(mut value: Value, edits: &[(&str, Option<&str>)]) -> Value {
    let fields = value.as_object_mut().expect("an object");
    for (name, set) in edits {
        match set {
            Some(set) => drop(fields.insert((*name).to_owned(), serde_json::from_str(set).expect("valid"))),
            None => drop(fields.shift_remove(*name)),
        }
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_text_is_accepted_exactly_if_it_is_json(
        text in json(),
        damages in prop::collection::vec(damage(), 0..4),
    ) {
        let text = damaged(&text, &damages);
        let accepted = Document::parse(&*text);
        prop_assert_eq!(accepted.is_ok(), serde_json::from_str::<&RawValue>(&text).is_ok(), "{:?}", accepted);
        if serde_json::from_str::<Value>(&text).is_ok() {
            prop_assert!(accepted.is_ok());
        }
        if let Err(error) = accepted {
            prop_assert!(text.is_char_boundary(error.offset), "{} in {:?}", error, text);
        }
    }

    #[test]
    fn any_mixture_of_tokens_is_judged_alike(
        tokens in prop::collection::vec(
            select(vec!["[", "]", "{", "}", ",", ":", "\"a\"", "1", "-0.5e3", "null", "true", " "]), 0..10,
        ),
    ) {
        let text = tokens.concat();
        prop_assert_eq!(Document::parse(&*text).is_ok(), serde_json::from_str::<&RawValue>(&text).is_ok());
    }

    #[test]
    fn nodes_mean_what_serde_json_reads(text in json()) {
        let expected: Value = serde_json::from_str(&text).expect("generated JSON");
        prop_assert_eq!(to_value(parse(&text).root()), expected);
    }

    #[test]
    fn the_raw_text_of_a_value_is_that_value(text in json()) {
        let document = parse(&text);
        let mut nodes = Vec::new();
        every_node(document.root(), &mut nodes);
        for node in nodes {
            let raw: Value = serde_json::from_str(node.raw()).expect("raw text is JSON");
            prop_assert_eq!(&raw, &to_value(node));
            prop_assert!(text[node.offset()..].starts_with(node.raw()));
            prop_assert_eq!(node.raw_text(), node.raw());
            // Repeated keys count each for themselves here, but not in a `Value`.
            let length = raw.as_array().map_or(0, Vec::len) + raw.as_object().map_or(0, serde_json::Map::len);
            prop_assert!(node.len() == length || node.kind() == Kind::Object && node.len() > length);
            prop_assert_eq!(node.is_empty(), length == 0);
        }
    }

    #[test]
    fn strings_are_unescaped_like_serde_json_does(literal in string()) {
        let expected: String = serde_json::from_str(&literal).expect("generated string");
        let document = parse(&literal);
        prop_assert_eq!(document.root().as_str().expect("a string"), expected.as_str());
        prop_assert_eq!(document.root().as_text().expect("a string"), expected.as_str());
        prop_assert!(document.root().is_str(&expected));
        let longer = format!("{expected}x");
        prop_assert!(!document.root().is_str(&longer));
    }

    #[test]
    fn a_path_leads_to_its_value(text in json()) {
        // Printed from a value, so that no key is repeated and every path has one end.
        let value: Value = serde_json::from_str(&text).expect("generated JSON");
        let document = parse(&value.to_string());
        let mut nodes = Vec::new();
        every_node(document.root(), &mut nodes);
        for node in nodes {
            let found = follow(document.root(), &node.path());
            prop_assert_eq!(found.map(|found| found.offset()), Some(node.offset()), "{}", node.path());
        }
    }

    #[test]
    fn values_in_a_row_are_read_one_by_one(texts in prop::collection::vec(json(), 0..5)) {
        let text: Arc<str> = Arc::from(texts.join("\n"));
        let (mut start, mut raws) = (0, Vec::new());
        while let Some((document, end)) = Document::parse_prefix(&text, start).expect("valid") {
            prop_assert!(end > start);
            raws.push(document.root().raw().to_owned());
            start = end;
        }
        prop_assert_eq!(raws, texts);
    }

    #[test]
    fn text_is_quoted_like_serde_json_does(text in any::<String>(), controls in "[\u{0}-\u{7f}]{0,40}") {
        for text in [text, controls] {
            prop_assert_eq!(quote(&text), serde_json::to_string(&text).expect("a string"));
        }
    }

    #[test]
    fn pieces_of_a_string_are_written_as_one(pieces in prop::collection::vec(any::<String>(), 0..4)) {
        let mut writer = Writer::new();
        writer.string_with(|sink| pieces.iter().for_each(|piece| sink.push(piece)));
        prop_assert_eq!(writer.into_string(), quote(&pieces.concat()));
    }

    #[test]
    fn values_are_written_like_serde_json_does(text in json()) {
        let value: Value = serde_json::from_str(&text).expect("generated JSON");
        let mut writer = Writer::new();
        write(&mut writer, &value);
        prop_assert_eq!(writer.into_string(), value.to_string());
    }

    #[test]
    fn a_patch_changes_what_it_names(text in object(), edits in prop::collection::vec(edit(), 0..4)) {
        let before: Value = serde_json::from_str(&text).expect("generated JSON");
        let given: Vec<_> = edits.iter().map(|(name, set)| match set {
            Some(value) => Edit::Set { name, value },
            None => Edit::Remove { name },
        }).collect();
        let patched = patch(&text, &given).expect("an object");
        let after: Value = serde_json::from_str(&patched).expect("still JSON");
        prop_assert_eq!(after, edited(before, &edits));
        prop_assert_eq!(patch(&patched, &given).expect("an object"), patched);
    }

    #[test]
    fn a_patch_leaves_all_else_as_written(text in object(), edits in prop::collection::vec(edit(), 0..4)) {
        let given: Vec<_> = edits.iter().map(|(name, _)| Edit::Set { name, value: "0" }).collect();
        let patched = patch(&text, &given).expect("an object");
        let (before, after) = (parse(&text), parse(&patched));
        let others = |document: &Document| -> Vec<(String, String)> {
            let pairs = document.root().pairs();
            let untouched = pairs.filter(|(key, _)| !edits.iter().any(|(name, _)| key.is_str(name)));
            untouched.map(|(key, value)| (key.raw().to_owned(), value.raw().to_owned())).collect()
        };
        prop_assert_eq!(others(&before), others(&after));
    }
}
