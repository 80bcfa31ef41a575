//! Changes to JSON that leave it JSON.
//!
//! A changed byte mostly makes a body that is refused at once, and nothing behind the parser is tried. Here
//! a value is taken out, doubled, moved, or put in the place of another, so that what arrives is a
//! request with something wrong in it.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// Changes the JSON at the start of `data` in place, and returns its new length.
///
/// Now and then, and where there is no JSON, bytes are changed instead.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed) | 1);
    let parsed = serde_json::from_slice::<Value>(&data[..size]).ok().filter(|_| dice.roll(16) != 0);
    let Some(mut value) = parsed else { return fuzzer_mutate(data, size, max_size) };
    for _ in 0..=dice.roll(3) {
        let donor = pick(&value, &mut dice).clone();
        change(&mut value, donor, &mut dice);
    }
    let text = value.to_string();
    if text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

/// Changes a stream of events in place, and returns its new length: an event is lost, repeated, moved, cut off,
/// or says something else.
pub fn mutate_events(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed) | 1);
    let text = std::str::from_utf8(&data[..size]).ok().filter(|_| dice.roll(8) != 0);
    let Some(text) = text else { return fuzzer_mutate(data, size, max_size) };
    let mut events: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
    for _ in 0..=dice.roll(3) {
        change_events(&mut events, &mut dice);
    }
    let text = events.join("\n\n");
    if text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

fn change_events(events: &mut Vec<String>, dice: &mut Dice) {
    if events.is_empty() {
        return;
    }
    let (at, other) = (dice.roll(events.len()), dice.roll(events.len()));
    match dice.roll(8) {
        0 => drop(events.remove(at)),
        1 => events.insert(other, events[at].clone()),
        2 => events.swap(at, other),
        3 => events.truncate(at + 1),
        _ => {
            let Some((before, data)) = events[at].split_once("data: ") else { return };
            let Ok(mut value) = serde_json::from_str::<Value>(data) else { return };
            let donor = pick(&value, dice).clone();
            change(&mut value, donor, dice);
            events[at] = format!("{before}data: {value}");
        }
    }
}

/// Pseudo-random numbers that depend on the seed alone, so that a finding can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }
}

/// Returns some value inside `value`.
fn pick<'v>(value: &'v Value, dice: &mut Dice) -> &'v Value {
    let inside: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    if inside.is_empty() || dice.roll(5) == 0 { value } else { pick(inside[dice.roll(inside.len())], dice) }
}

/// Goes down to some list or object, and changes one thing in it.
fn change(value: &mut Value, donor: Value, dice: &mut Dice) {
    let deeper = dice.roll(4) != 0;
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = dice.roll(items.len());
            if deeper && (items[at].is_array() || items[at].is_object()) {
                return change(&mut items[at], donor, dice);
            }
            change_list(items, at, donor, dice);
        }
        Value::Object(fields) if !fields.is_empty() => {
            let at = dice.roll(fields.len());
            let name = fields.keys().nth(at).cloned().unwrap_or_default();
            if deeper && fields[&name].is_array() | fields[&name].is_object() {
                return change(&mut fields[&name], donor, dice);
            }
            change_object(fields, &name, donor, dice);
        }
        other => *other = donor,
    }
}

fn change_list(items: &mut Vec<Value>, at: usize, donor: Value, dice: &mut Dice) {
    let other = dice.roll(items.len());
    match dice.roll(6) {
        0 => drop(items.remove(at)),
        1 => items.insert(at, items[other].clone()),
        2 => items.swap(at, other),
        3 => items.insert(at, donor),
        4 => items[at] = donor,
        _ => items[at] = scalar(dice),
    }
}

fn change_object(fields: &mut Map<String, Value>, name: &str, donor: Value, dice: &mut Dice) {
    match dice.roll(6) {
        0 => drop(fields.remove(name)),
        1 => drop(fields.insert(name.to_owned(), donor)),
        2 => {
            let value = fields.remove(name).unwrap_or_default();
            fields.insert(format!("{name}_x"), value);
        }
        3 => drop(fields.insert(name.to_owned(), json!([donor]))),
        4 => {
            let text = fields[name].as_str().map(|text| format!("{text}{text}"));
            fields.insert(name.to_owned(), text.map_or(Value::Null, Value::String));
        }
        _ => drop(fields.insert(name.to_owned(), scalar(dice))),
    }
}

/// Returns something that is often not expected.
fn scalar(dice: &mut Dice) -> Value {
    let values = [
        Value::Null,
        json!(""),
        json!(" \n"),
        json!([]),
        json!({}),
        json!(0),
        json!(-1.5),
        json!(true),
        json!("{\"a\":"),
        json!("[tool error]\nno"),
        json!("Context (tool result):\nx"),
        json!("[attachments of tool result call_1]"),
        json!("{\"throughline_input\":\"x\"}"),
        json!("data:image/png;base64,AAAA"),
        json!("user"),
        json!("assistant"),
        json!("text"),
        json!("call_1"),
    ];
    values[dice.roll(values.len())].clone()
}
