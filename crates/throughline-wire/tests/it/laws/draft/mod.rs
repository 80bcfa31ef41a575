//! Request bodies of the three dialects, written from a plan.
//!
//! A draft is legal by the provider's rules: calls paired, ids fitting, thinking signed, text filled. A wild
//! one also has what only the newest client or another vendor would send: fields, parts, items and tools
//! that nobody here knows. A draft can be broken before it is printed.

mod chat;
mod messages;
mod responses;

use super::plan::{Call, Plan};
use super::texts::{Dice, Json, object, raw, text, typed};
use throughline_core::Dialect;

/// A request body that is not printed yet.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// What the list of messages or items is called.
    list_name: &'static str,
    /// The messages or items.
    pub list: Vec<Json>,
    /// Every other field.
    pub fields: Vec<(String, Json)>,
}

/// Writes a plan down in a dialect.
pub(super) fn draft(dialect: Dialect, plan: &Plan, wild: bool, dice: &mut Dice) -> Draft {
    match dialect {
        Dialect::Chat => chat::draft(plan, wild, dice),
        Dialect::Messages => messages::draft(plan, wild, dice),
        Dialect::Responses => responses::draft(plan, wild, dice),
    }
}

/// Writes a plan down as the text of a body.
pub(super) fn body(dialect: Dialect, plan: &Plan, wild: bool) -> String {
    let mut dice = plan.dice();
    draft(dialect, plan, wild, &mut dice).print(&mut dice)
}

impl Draft {
    fn new(list_name: &'static str, list: Vec<Json>) -> Self {
        Self { list_name, list, fields: Vec::new() }
    }

    fn set(&mut self, name: &str, value: Json) {
        self.fields.push((name.to_owned(), value));
    }

    /// Sets a field now and then.
    fn maybe(&mut self, name: &str, value: Json, dice: &mut Dice) {
        if dice.one_in(4) {
            self.set(name, value);
        }
    }

    pub(super) fn print(&self, dice: &mut Dice) -> String {
        let list = Json::List(self.list.clone());
        // The Responses dialect takes a bare string for a single message of the user.
        let list = match (&self.list[..], self.list_name) {
            ([Json::Text(only)], "input") => text(only),
            _ => list,
        };
        let fields = [vec![(self.list_name.to_owned(), list)], self.fields.clone()].concat();
        Json::Object(fields).print(dice)
    }
}

/// Fields that no dialect knows.
fn unknown_fields(draft: &mut Draft, dice: &mut Dice) {
    draft.maybe("x_unknown", super::texts::unknown_value(dice), dice);
    draft.maybe("vendor.options", object([("deep", super::texts::unknown_value(dice))]), dice);
}

/// Returns the schema of a tool, in one of several writings.
fn schema(dice: &mut Dice) -> Json {
    raw(dice.pick(&[
        r#"{"type":"object","properties":{}}"#,
        r#"{ "type": "object", "properties": {"n":{"type":"number","minimum":1.10}}, "required":["n"] }"#,
        r#"{"properties":{"z":{"type":"string"},"a":{"enum":[1e0,null]}},"type":"object","x":["z","a"]}"#,
    ]))
}

/// Returns an id that no other call of the plan has, and that the dialect's provider takes.
fn call_id(dialect: Dialect, number: usize, dice: &mut Dice) -> String {
    let longest = if dialect == Dialect::Chat { 40 } else { 64 };
    let plain = format!("call_{number}");
    match dice.roll(4) {
        1 => format!("toolu_01{number}AbCdEfGhIjKlMnOpQrStUv"),
        2 if dialect != Dialect::Messages => format!("functions.read:{number}"),
        3 => format!("{plain}_{}", "x".repeat(longest - plain.len() - 1)),
        _ => plain,
    }
}

/// Returns the content of a message: a string if one text is all there is, as a rule.
fn content(parts: Vec<Json>, only_text: Option<&str>, dice: &mut Dice) -> Json {
    match only_text {
        Some(only) if !dice.one_in(3) => text(only),
        _ => Json::List(parts),
    }
}

/// Returns the only text of a list that has nothing else.
fn only(texts: &[String], others: usize) -> Option<&str> {
    match texts {
        [only] if others == 0 => Some(only),
        _ => None,
    }
}

/// A part or block that nobody knows.
fn unknown_part(dice: &mut Dice) -> Json {
    typed("x_hologram", [("x", super::texts::unknown_value(dice))])
}

/// Returns the texts of a result, with the mark of an error where the dialect has no field for it.
fn marked(call: &Call) -> Vec<String> {
    let mut texts = call.texts.clone();
    match texts.first_mut().filter(|first| !first.is_empty()) {
        Some(first) if call.is_error => *first = format!("[tool error]\n{first}"),
        None if call.is_error => texts = vec!["[tool error]".to_owned()],
        _ => {}
    }
    texts
}
