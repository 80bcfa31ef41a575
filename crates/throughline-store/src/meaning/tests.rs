//! The laws of meaning: any way of writing a value means the same, and different values mean something else.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// A value, apart from how it is written.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

/// Writes a value in one of many ways, by numbers drawn from a seed.
struct Printer(u64);

impl Printer {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn blank(&mut self, out: &mut String) {
        out.push_str(["", "", " ", "\n\t", "\r\n"][self.draw(5) as usize]);
    }

    fn value(&mut self, value: &Value, out: &mut String) {
        self.blank(out);
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(is_true) => write!(out, "{is_true}").unwrap(),
            Value::Number(number) => self.number(*number, out),
            Value::Text(text) => self.text(text, out),
            Value::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    self.value(value, out);
                }
                self.blank(out);
                out.push(']');
            }
            Value::Object(members) => self.object(members, out),
        }
        self.blank(out);
    }

    fn object(&mut self, members: &BTreeMap<String, Value>, out: &mut String) {
        let mut order: Vec<(&String, Value)> =
            members.iter().map(|(name, value)| (name, value.clone())).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.draw(at as u64 + 1) as usize);
        }
        if let Some((name, _)) = order.last().filter(|_| self.draw(3) == 0) {
            // What came earlier under the same name does not count.
            order.insert(0, (name, Value::List(vec![Value::Text("not this".into())])));
        }
        out.push('{');
        for (at, (name, value)) in order.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            self.blank(out);
            self.text(name, out);
            self.blank(out);
            out.push(':');
            self.value(value, out);
        }
        self.blank(out);
        out.push('}');
    }

    fn number(&mut self, number: f64, out: &mut String) {
        let plain = format!("{number}");
        match self.draw(4) {
            0 => write!(out, "{number:e}").unwrap(),
            1 => out.push_str(&format!("{number:e}").replace('e', "E+").replace("+-", "-")),
            2 if plain.contains('.') => write!(out, "{plain}00").unwrap(),
            2 => write!(out, "{plain}.0").unwrap(),
            _ => out.push_str(&plain),
        }
    }

    fn text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            let must = c < ' ' || c == '"' || c == '\\';
            match (c, self.draw(4)) {
                ('\n', 0) => out.push_str("\\n"),
                ('/', 0) => out.push_str("\\/"),
                (c, 1) => {
                    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04X}").unwrap());
                }
                (c, _) if must => write!(out, "\\u{:04x}", u32::from(c)).unwrap(),
                (c, _) => out.push(c),
            }
        }
        out.push('"');
    }
}

fn written(value: &Value, seed: u64) -> String {
    let mut out = String::new();
    Printer(seed).value(value, &mut out);
    out
}

fn values() -> impl Strategy<Value = Value> {
    let text = "[ab/\"\\\\\n\u{1}é😀]{0,3}|.{60,70}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3..4_i32).prop_map(|number| Value::Number(f64::from(number) / 2.0)),
        prop::num::f64::NORMAL.prop_map(Value::Number),
        text.prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map("[ab]{0,2}|é", inner, 0..4).prop_map(Value::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_way_of_writing_a_value_means_the_same(value in values(), one: u64, other: u64) {
        let (one, other) = (written(&value, one), written(&value, other));
        prop_assert!(meaning(&one).is_some(), "{one}");
        prop_assert_eq!(meaning(&one), meaning(&other), "{} and {}", one, other);
    }

    #[test]
    fn values_that_differ_mean_something_else(one in values(), other in values(), seed: u64) {
        let same = meaning(&written(&one, seed)) == meaning(&written(&other, seed));
        prop_assert_eq!(same, one == other);
        let wrapped = |value: Value| written(&Value::List(vec![value]), seed);
        prop_assert_ne!(meaning(&wrapped(one.clone())), meaning(&written(&one, seed)));
    }

    #[test]
    fn whatever_is_given_is_no_trouble(text in r#"[\[\]{}",:0-9.eE+\\untrfalse \-]{0,24}|\PC{0,24}"#) {
        let _ = meaning(&text);
    }
}

#[test]
fn what_is_not_json_means_nothing() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "{]",
        "[1,]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "1 2",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "0x1",
        "NaN",
        "Infinity",
        "nul",
        "truex",
        "\"",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "'a'",
        "\u{feff}{}",
    ] {
        assert_eq!(meaning(text), None, "{text}");
    }
}

#[test]
fn numbers_are_what_a_float_makes_of_them() {
    let same = |one: &str, other: &str| meaning(one) == meaning(other) && meaning(one).is_some();
    assert!(same("1.10", "1.1") && same("1e2", "100") && same("-0", "0") && same("-0.0", "0"));
    assert!(same("12345678901234567890", "12345678901234567000"), "as JavaScript prints it");
    assert!(!same("1", "2") && !same("1", "\"1\"") && !same("0.1", "0.10000000000000002"));
    let digits = "9".repeat(100_000);
    assert!(meaning(&digits).is_some());
}

#[test]
fn half_of_a_pair_is_told_apart() {
    let meanings =
        [r#""\ud800""#, r#""\ud801""#, r#""\udc00""#, "\"\u{fffd}\"", r#""\ud800\udc00""#, r#""\ud800x""#];
    let mut meanings = meanings.map(|text| meaning(text).unwrap()).to_vec();
    meanings.sort();
    meanings.dedup();
    assert_eq!(meanings.len(), 6);
    assert_eq!(meaning(r#""\uD83D\uDE00""#), meaning("\"😀\""));
}

#[test]
fn depth_costs_no_stack_and_has_an_end() {
    let nested = |depth: usize, inner: &str| {
        let (open, close) = ("{\"b\":[".repeat(depth), "],\"a\":1}".repeat(depth));
        format!("{open}{inner}{close}")
    };
    assert!(meaning(&nested(DEPTH_MAX / 2, "1")).is_some());
    assert_ne!(meaning(&nested(500, "1")), meaning(&nested(500, "2")));
    assert_eq!(meaning(&nested(DEPTH_MAX / 2 + 1, "1")), None);
    assert_eq!(meaning(&"[".repeat(10_000_000)), None);
}

#[test]
fn the_bytes_are_part_of_the_format() {
    // Other bytes mean that stored conversations with calls are no longer recognised.
    let bytes = meaning(
        r#"{"b": [1.50, "é"], "a": {"long": "0123456789012345678901234567890123456789012345678901234567"}}"#,
    );
    assert_eq!(Digest::of(Domain::Meaning, &bytes.unwrap()).to_string(), "1b9112a3c5d3433e5a2bb0bcf51620ff");
}
