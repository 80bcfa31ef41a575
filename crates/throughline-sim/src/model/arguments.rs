//! Values that satisfy a JSON schema, taken from a message where it has something to offer.
//!
//! Required properties are filled; optional ones only when the message names them or holds what they are
//! for. References, combinations, enumerations, bounds, lengths and formats are observed; a `pattern` is not.

use super::finds::{Finds, Meaning};
use serde_json::{Map, Value, json};

/// How deep schemas are followed; a recursive one has no end.
const DEPTH_MAX: usize = 24;
/// How long a text is that stands in for something better, in characters.
const STAND_IN_MAX: usize = 200;

/// Returns arguments for a tool with that schema.
pub(super) fn arguments(schema: &Value, finds: Finds) -> Value {
    Filler { root: schema, finds }.value(schema, "", 0)
}

/// Returns an answer, as JSON, that satisfies a schema; what is to be said goes where there is text.
pub(super) fn answer(schema: &str, wish: &str, words: &str) -> String {
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return "{}".to_owned() };
    let finds = Finds { words: Some(words.to_owned()), ..Finds::of(wish) };
    arguments(&schema, finds).to_string()
}

/// Returns the properties of a schema that may be filled with one text each, with what they are for.
pub(super) fn text_properties(schema: &Value) -> Vec<(String, Meaning, bool)> {
    let filler = Filler { root: schema, finds: Finds::default() };
    let schema = filler.resolved(schema);
    let required = required_of(&schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let is_text = |schema: &Value| type_of(&filler.resolved(schema)) == "string";
    let texts = properties.iter().filter(|(_, schema)| is_text(schema));
    texts.map(|(name, _)| (name.clone(), Meaning::of(name), required.contains(name))).collect()
}

struct Filler<'a> {
    root: &'a Value,
    finds: Finds,
}

impl Filler<'_> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEPTH_MAX {
            return Value::Null;
        }
        let schema = &self.resolved(schema);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(allowed, schema);
        }
        match type_of(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" => self.number(schema, name, true),
            "number" => self.number(schema, name, false),
            "boolean" => self.flag(schema, name),
            "null" => Value::Null,
            _ => self.text(schema, name),
        }
    }

    /// Follows references and picks a branch of every combination.
    fn resolved(&self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        for _ in 0..DEPTH_MAX {
            if let Some(target) = self.target(&schema) {
                schema = target;
            } else if let Some(branch) = branch(&schema) {
                schema = merged(without(&schema, &["anyOf", "oneOf"]), &branch);
            } else if let Some(all) = schema.get("allOf").and_then(Value::as_array).cloned() {
                schema = all.iter().fold(without(&schema, &["allOf"]), |into, part| {
                    let part = self.target(part).unwrap_or_else(|| part.clone());
                    merged(into, &part)
                });
            } else {
                break;
            }
        }
        schema
    }

    fn target(&self, schema: &Value) -> Option<Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer).cloned()
    }

    fn one_of(&self, allowed: &[Value], schema: &Value) -> Value {
        let is_named = |value: &&Value| {
            value.as_str().is_some_and(|text| super::words::names(&self.finds.message, text))
        };
        let default = schema.get("default").filter(|default| allowed.contains(default));
        let first = allowed.iter().find(|value| !value.is_null()).or(allowed.first());
        allowed.iter().find(is_named).or(default).or(first).cloned().unwrap_or_default()
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = required_of(schema);
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for name in &required {
            let inner = properties.get(name).cloned().unwrap_or_else(|| json!({ "type": "string" }));
            object.insert(name.clone(), self.value(&inner, name, depth + 1));
        }
        for (name, inner) in properties.iter().filter(|(name, _)| !required.contains(name)) {
            if self.offers(inner, name) {
                object.insert(name.clone(), self.value(inner, name, depth + 1));
            }
        }
        if let (true, Some((name, inner))) = (object.is_empty(), properties.iter().next()) {
            object.insert(name.clone(), self.value(inner, name, depth + 1));
        }
        in_order(object, properties)
    }

    /// Says whether the message holds something for a property that could be left out.
    fn offers(&mut self, schema: &Value, name: &str) -> bool {
        let schema = self.resolved(schema);
        let named = self.finds.named(name);
        match type_of(&schema) {
            "string" => {
                let meaning = Meaning::of(name);
                let is_found = matches!(meaning, Meaning::Path | Meaning::Command | Meaning::Url)
                    && !self.finds.queue(meaning).is_empty();
                is_found || named.is_some_and(|(_, tied)| tied)
            }
            "integer" | "number" => named.is_some_and(|(value, _)| value.parse::<f64>().is_ok()),
            "boolean" => named.is_some_and(|(value, tied)| tied || is_truth(&value).is_some()),
            _ => false,
        }
    }

    fn array(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(each) = schema.get("prefixItems").and_then(Value::as_array) {
            return each.iter().map(|item| self.value(item, name, depth + 1)).collect();
        }
        let any_text = json!({ "type": "string" });
        let item = schema.get("items").filter(|items| items.is_object()).unwrap_or(&any_text).clone();
        let size = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let meaning = Meaning::of(name);
        let is_text = type_of(&self.resolved(&item)) == "string";
        if is_text && meaning == Meaning::Command {
            let command = self.text(&item, name);
            return json!(["bash", "-lc", command]);
        }
        let found = if is_text { self.finds.queue(meaning).len() } else { 0 };
        let most = size("maxItems").unwrap_or(usize::MAX);
        let count = found.max(size("minItems").unwrap_or(0)).max(1).min(most);
        (0..count).map(|_| self.value(&item, name, depth + 1)).collect()
    }

    fn number(&mut self, schema: &Value, name: &str, is_whole: bool) -> Value {
        let fits = |text: &str| number_of(text, is_whole).filter(|number| is_within(schema, number));
        if let Some(number) = self.finds.named(name).and_then(|(value, _)| fits(&value)) {
            return number;
        }
        if let Some(at) = self.finds.numbers.iter().position(|text| fits(text).is_some()) {
            return self.finds.numbers.remove(at).and_then(|text| fits(&text)).unwrap_or_default();
        }
        let default = schema.get("default").filter(|default| default.is_number());
        default.cloned().unwrap_or_else(|| least(schema, is_whole))
    }

    fn flag(&self, schema: &Value, name: &str) -> Value {
        let named = self.finds.named(name).and_then(|(value, _)| is_truth(&value));
        named.map(Value::Bool).or_else(|| schema.get("default").cloned()).unwrap_or(Value::Bool(false))
    }

    fn text(&mut self, schema: &Value, name: &str) -> Value {
        let given = schema.get("default").or_else(|| schema.get("examples")?.get(0)).and_then(Value::as_str);
        let text = match schema.get("format").and_then(Value::as_str).and_then(example) {
            Some(example) => self.formatted(name, example),
            None => {
                let found = self.taken(name).or_else(|| given.map(str::to_owned));
                found.unwrap_or_else(|| self.stand_in(name))
            }
        };
        let size = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        Value::String(fitted(text, size("minLength").unwrap_or(0), size("maxLength").unwrap_or(usize::MAX)))
    }

    /// Takes a text that is tied to the name or must be an address; any other may not have the format.
    fn formatted(&mut self, name: &str, example: &str) -> String {
        let tied = self.finds.named(name).filter(|(_, tied)| *tied).map(|(value, _)| value);
        let url = || self.finds.urls.pop_front().filter(|_| example.starts_with("http"));
        tied.or_else(url).unwrap_or_else(|| example.to_owned())
    }

    /// Takes what the message holds for a text of that name.
    fn taken(&mut self, name: &str) -> Option<String> {
        if let Some((value, true)) = self.finds.named(name) {
            return Some(value);
        }
        let meaning = Meaning::of(name);
        match (&self.finds.words, meaning) {
            (Some(words), Meaning::Other | Meaning::Query) => Some(words.clone()),
            _ => self.finds.queue(meaning).pop_front(),
        }
    }

    /// Returns something harmless for a text that the message holds nothing for.
    fn stand_in(&self, name: &str) -> String {
        let message: String = self.finds.message.chars().take(STAND_IN_MAX).collect();
        match Meaning::of(name) {
            Meaning::Path if name.to_lowercase().contains("file") => "README.md".to_owned(),
            Meaning::Path => ".".to_owned(),
            // Whatever the message says, it must do no harm if somebody runs it.
            Meaning::Command => format!("echo '{}'", message.replace('\'', "'\\''")),
            Meaning::Url => "https://example.com/".to_owned(),
            Meaning::Place | Meaning::Query | Meaning::Other => message,
        }
    }
}

/// Returns the type of a schema; of several, the first that is not null.
fn type_of(schema: &Value) -> &str {
    let of_list = |types: &Value| -> Option<String> {
        let names = types.as_array()?.iter().filter_map(Value::as_str);
        names.clone().find(|name| *name != "null").or(names.clone().next()).map(str::to_owned)
    };
    const TYPES: [&str; 7] = ["object", "array", "integer", "number", "boolean", "null", "string"];
    let named = match schema.get("type") {
        Some(Value::String(name)) => Some(name.clone()),
        Some(types) => of_list(types),
        None => None,
    };
    match named {
        Some(name) => TYPES.into_iter().find(|known| *known == name).unwrap_or("string"),
        None if schema.get("properties").is_some() || schema.get("required").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None => "string",
    }
}

fn required_of(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the first branch of a choice that is not null.
fn branch(schema: &Value) -> Option<Value> {
    let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let is_null = |branch: &&Value| branch.get("type").is_some_and(|name| name == "null");
    branches.iter().find(|branch| !is_null(branch)).or(branches.first()).cloned()
}

fn without(schema: &Value, keys: &[&str]) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.retain(|key, _| !keys.contains(&key.as_str()));
    }
    schema
}

/// Adds the constraints of `part` to those of `schema`.
fn merged(mut schema: Value, part: &Value) -> Value {
    let (Some(into), Some(part)) = (schema.as_object_mut(), part.as_object()) else { return schema };
    for (key, value) in part {
        match (into.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                known.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                known.extend(more.iter().cloned());
            }
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
    schema
}

/// Returns the members in the order in which the schema lists them.
fn in_order(mut object: Map<String, Value>, properties: &Map<String, Value>) -> Value {
    let mut ordered = Map::new();
    for name in properties.keys() {
        if let Some(value) = object.shift_remove(name) {
            ordered.insert(name.clone(), value);
        }
    }
    ordered.extend(object);
    Value::Object(ordered)
}

fn number_of(text: &str, is_whole: bool) -> Option<Value> {
    match text.parse::<i64>() {
        Ok(whole) => Some(json!(whole)),
        Err(_) if is_whole => None,
        Err(_) => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| json!(number)),
    }
}

fn bound(schema: &Value, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn is_within(schema: &Value, number: &Value) -> bool {
    let Some(number) = number.as_f64() else { return false };
    bound(schema, "minimum").is_none_or(|least| number >= least)
        && bound(schema, "maximum").is_none_or(|most| number <= most)
        && bound(schema, "exclusiveMinimum").is_none_or(|least| number > least)
        && bound(schema, "exclusiveMaximum").is_none_or(|most| number < most)
        && bound(schema, "multipleOf").is_none_or(|step| step != 0.0 && number % step == 0.0)
}

/// Returns the number nearest to one, from below upwards, that the bounds allow.
fn least(schema: &Value, is_whole: bool) -> Value {
    let step = bound(schema, "multipleOf").filter(|step| *step > 0.0);
    let floor =
        bound(schema, "minimum").or_else(|| bound(schema, "exclusiveMinimum").map(|least| least + 1.0));
    let ceiling =
        bound(schema, "maximum").or_else(|| bound(schema, "exclusiveMaximum").map(|most| most - 1.0));
    let mut number = floor.unwrap_or_else(|| ceiling.map_or(1.0, |most| most.min(1.0)));
    if let Some(step) = step {
        number = (number / step).ceil() * step;
    }
    if is_whole || number.fract() == 0.0 { json!(number.ceil() as i64) } else { json!(number) }
}

fn is_truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Returns a text of that format.
fn example(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-01-01T00:00:00Z",
        "date" => "2026-01-01",
        "time" => "00:00:00Z",
        "email" => "someone@example.com",
        "uri" | "url" => "https://example.com/",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "ipv4" => "192.0.2.1",
        "hostname" => "example.com",
        _ => return None,
    })
}

/// Cuts or repeats a text until its length is allowed.
fn fitted(text: String, least: usize, most: usize) -> String {
    let length = text.chars().count();
    if length > most {
        return text.chars().take(most).collect();
    }
    if length < least {
        let seed = if text.is_empty() { "x".to_owned() } else { text };
        return seed.chars().cycle().take(least).collect();
    }
    text
}

#[cfg(test)]
mod tests;
