//! What the validators share: a JSON value that knows its place, and tables that describe objects.

use super::Violation;
use serde_json::Value;
use std::collections::BTreeSet;

static NULL: Value = Value::Null;

/// A condition on a whole body that no table can express.
pub(super) type Rule = fn(&mut Report, &Node<'_>);

/// A value inside a body, and where it was found.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) place: String,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, place: String::new() }
    }

    /// Returns the member `key`; a missing one is null, at the place where it was missed.
    pub(super) fn get(&self, key: &str) -> Self {
        let dot = if self.place.is_empty() { "" } else { "." };
        Self { value: self.value.get(key).unwrap_or(&NULL), place: format!("{}{dot}{key}", self.place) }
    }

    /// Returns the elements of an array, and nothing for any other value.
    pub(super) fn items(&self) -> Vec<Self> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let node = |(index, value)| Self { value, place: format!("{}[{index}]", self.place) };
        items.iter().enumerate().map(node).collect()
    }

    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the text of the member `key`, empty when there is none.
    pub(super) fn str(&self, key: &str) -> &'a str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> &'a str {
        self.str("type")
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some_and(|value| !value.is_null())
    }

    /// Says whether the member `key` is absent, null, or an empty string, list or object.
    pub(super) fn lacks(&self, key: &str) -> bool {
        match self.value.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(members)) => members.is_empty(),
            Some(_) => false,
        }
    }
}

/// The violations found so far.
#[derive(Default)]
pub(super) struct Report {
    pub(super) violations: Vec<Violation>,
}

impl Report {
    pub(super) fn add(&mut self, at: &Node<'_>, rule: &'static str, message: impl Into<String>) {
        self.violations.push(Violation { place: at.place.clone(), rule, message: message.into() });
    }

    /// Adds a violation unless `holds`.
    pub(super) fn require(
        &mut self,
        holds: bool,
        at: &Node<'_>,
        rule: &'static str,
        message: impl Into<String>,
    ) {
        if !holds {
            self.add(at, rule, message);
        }
    }

    /// Adds a violation for each node whose text came before in the list.
    pub(super) fn require_unique(&mut self, nodes: &[Node<'_>], rule: &'static str, message: &str) {
        let mut seen = BTreeSet::new();
        for node in nodes {
            self.require(seen.insert(node.text()), node, rule, format!("{message}: {}", node.text()));
        }
    }
}

/// What a field may hold.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Any,
    Text,
    /// A string of one to so many characters.
    Filled(usize),
    /// A name of one to so many letters, digits, underscores and dashes.
    Name(usize),
    OneOf(&'static [&'static str]),
    Flag,
    /// A whole number, at least this.
    Whole(i64),
    Number(f64, f64),
    Object,
    List,
    FilledList,
    TextOrList,
    TextOrFilledList,
    TextOrObject,
}

/// How often a field may be missing.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Required,
    Optional,
    /// May be null as well as absent.
    Nullable,
}

/// One row of a table that describes an object.
#[derive(Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    presence: Presence,
}

pub(super) const fn req(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Required }
}

pub(super) const fn opt(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Optional }
}

pub(super) const fn maybe(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, presence: Presence::Nullable }
}

/// What becomes of fields that the table does not name.
#[derive(Clone, Copy)]
pub(super) enum Extras {
    Ignored,
    /// Refused, in these words.
    Refused(&'static str),
}

/// A table for the objects whose `type` is `kind`.
pub(super) struct Variant {
    pub(super) kind: &'static str,
    pub(super) fields: &'static [Field],
    pub(super) extras: Extras,
}

/// Holds an object against its table.
pub(super) fn check_fields(report: &mut Report, node: &Node<'_>, fields: &[Field], extras: Extras) {
    check_known(report, node, fields, extras, &[]);
}

/// Holds a tagged object against the table of its `type`; `rule` is broken when there is none.
pub(super) fn check_variant(report: &mut Report, node: &Node<'_>, variants: &[Variant], rule: &'static str) {
    match variants.iter().find(|variant| variant.kind == node.kind()) {
        Some(variant) => check_known(report, node, variant.fields, variant.extras, &["type"]),
        None => report.add(node, rule, unexpected(node.kind(), variants.iter().map(|v| v.kind))),
    }
}

fn check_known(report: &mut Report, node: &Node<'_>, fields: &[Field], extras: Extras, tags: &[&str]) {
    let Some(object) = node.value.as_object() else {
        return report.add(node, "wrong-type", "an object is expected");
    };
    for field in fields {
        check_field(report, &node.get(field.name), field, object.contains_key(field.name));
    }
    let Extras::Refused(why) = extras else { return };
    for key in object.keys() {
        let known = tags.contains(&key.as_str()) || fields.iter().any(|field| field.name == key);
        report.require(known, &node.get(key), "unknown-field", format!("{why}: {key}"));
    }
}

fn check_field(report: &mut Report, node: &Node<'_>, field: &Field, present: bool) {
    if !present {
        let needed = field.presence == Presence::Required;
        return report.require(!needed, node, "missing-field", "this field is required");
    }
    if node.value.is_null() && field.presence == Presence::Nullable {
        return;
    }
    if let Err((rule, message)) = field.kind.admits(node.value) {
        report.add(node, rule, message);
    }
}

type Fault = (&'static str, String);

impl Kind {
    /// Says which rule a value breaks that stands where this kind is expected.
    fn admits(self, value: &Value) -> Result<(), Fault> {
        let typed = match self {
            Self::Any => true,
            Self::Text | Self::Filled(_) | Self::Name(_) | Self::OneOf(_) => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Whole(_) => value.is_i64() || value.is_u64(),
            Self::Number(..) => value.is_number(),
            Self::Object => value.is_object(),
            Self::List | Self::FilledList => value.is_array(),
            Self::TextOrList | Self::TextOrFilledList => value.is_string() || value.is_array(),
            Self::TextOrObject => value.is_string() || value.is_object(),
        };
        if typed { self.admits_value(value) } else { Err(("wrong-type", self.expected().to_owned())) }
    }

    fn admits_value(self, value: &Value) -> Result<(), Fault> {
        let text = value.as_str().unwrap_or_default();
        match self {
            Self::Filled(_) if text.is_empty() => Err(("empty-string", "the string is empty".to_owned())),
            Self::Filled(most) if text.chars().count() > most => {
                Err(("string-too-long", format!("the string should have at most {most} characters")))
            }
            Self::Name(most) if !is_name(text, most) => {
                Err(("invalid-name", format!("'{text}' should match '^[a-zA-Z0-9_-]{{1,{most}}}$'")))
            }
            Self::OneOf(known) if !known.contains(&text) => {
                Err(("value-not-allowed", unexpected(text, known.iter().copied())))
            }
            Self::Whole(least) if value.as_i64().is_some_and(|number| number < least) => {
                Err(("out-of-range", format!("the number should be at least {least}")))
            }
            Self::Number(least, most) if !value.as_f64().is_some_and(|n| (least..=most).contains(&n)) => {
                Err(("out-of-range", format!("the number should be between {least} and {most}")))
            }
            Self::FilledList | Self::TextOrFilledList if value.as_array().is_some_and(Vec::is_empty) => {
                Err(("empty-list", "empty array: an array with minimum length 1 is expected".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Any => "any value is expected",
            Self::Text | Self::Filled(_) | Self::Name(_) | Self::OneOf(_) => "a string is expected",
            Self::Flag => "a boolean is expected",
            Self::Whole(_) => "an integer is expected",
            Self::Number(..) => "a number is expected",
            Self::Object => "an object is expected",
            Self::List | Self::FilledList => "an array is expected",
            Self::TextOrList | Self::TextOrFilledList => "a string or an array is expected",
            Self::TextOrObject => "a string or an object is expected",
        }
    }
}

/// Says whether `text` is one to `most` letters, digits, underscores and dashes.
pub(super) fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

fn unexpected(found: &str, known: impl Iterator<Item = &'static str>) -> String {
    format!("Invalid value: '{found}'. Supported values are: {}", known.collect::<Vec<_>>().join(", "))
}

/// Checks OpenAI's limits on `metadata`: 16 pairs, keys of 64 and string values of 512 characters.
pub(super) fn check_metadata(report: &mut Report, body: &Node<'_>) {
    let metadata = body.get("metadata");
    let Some(pairs) = metadata.value.as_object() else { return };
    let too_many = "metadata should have at most 16 properties";
    report.require(pairs.len() <= 16, &metadata, "metadata-too-large", too_many);
    for (key, value) in pairs {
        let fits = key.chars().count() <= 64 && value.as_str().is_some_and(|s| s.chars().count() <= 512);
        let limits = "metadata keys have at most 64 and values, all strings, at most 512 characters";
        report.require(fits, &metadata.get(key), "metadata-too-large", limits);
    }
}

/// Checks that `stream_options` comes with `stream`.
pub(super) fn check_stream_options(report: &mut Report, body: &Node<'_>) {
    let streams = body.get("stream").value == &Value::Bool(true);
    let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    let options = body.get("stream_options");
    report.require(
        streams || !body.has("stream_options"),
        &options,
        "stream-options-without-stream",
        message,
    );
}
