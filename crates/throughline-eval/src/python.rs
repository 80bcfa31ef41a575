//! The few habits of Python that the reference's figures depend on: characters instead of bytes, how values are
//! printed, and what counts as white space.

use serde_json::Value;

/// Returns the first characters of a text.
pub fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

/// Returns the last characters of a text.
pub fn tail(text: &str, chars: usize) -> &str {
    if chars == 0 {
        return text;
    }
    text.char_indices().rev().nth(chars - 1).map_or(text, |(at, _)| &text[at..])
}

/// Returns how many characters a text has.
pub fn len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Says whether a character is white space.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Says whether a character is part of a word.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns a number as `str` prints it.
pub fn number(number: &serde_json::Number) -> String {
    number.to_string()
}

/// Returns a value as `json.dumps` prints it.
pub fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Value::Number(value) => out.push_str(&number(value)),
        Value::String(text) => quote(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                quote(out, name);
                out.push_str(": ");
                write(out, field);
            }
            out.push('}');
        }
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}
