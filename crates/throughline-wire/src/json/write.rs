//! Writing JSON into one growing string.
//!
//! The writer puts in commas and escapes strings; it does not check that what is begun is ended, which is
//! up to the encoder that calls it. Raw values go in untouched, so text that arrived as JSON leaves as the
//! same bytes.

use std::fmt::{self, Write as _};

use super::escape::escape_into;

/// Appends JSON to a string.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
    /// Whether a value stands directly before, so that the next key or item needs a comma.
    after_value: bool,
}

/// Takes the pieces of one JSON string; see [`Writer::string_with`].
#[derive(Debug)]
pub struct StringSink<'w> {
    out: &'w mut String,
}

/// Returns `text` as a JSON string, quotes included.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut writer = Writer::with_capacity(text.len() + 2);
    writer.string(text);
    writer.into_string()
}

impl Writer {
    /// Returns an empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty writer with room for `capacity` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { out: String::with_capacity(capacity), after_value: false }
    }

    /// Returns what was written.
    #[must_use]
    pub fn into_string(self) -> String {
        self.out
    }

    /// Opens an object; keys and values follow in turn.
    pub fn begin_object(&mut self) {
        self.begin('{');
    }

    /// Closes the object opened last.
    pub fn end_object(&mut self) {
        self.end('}');
    }

    /// Opens an array; its items follow.
    pub fn begin_array(&mut self) {
        self.begin('[');
    }

    /// Closes the array opened last.
    pub fn end_array(&mut self) {
        self.end(']');
    }

    /// Writes the key of the value that follows.
    pub fn key(&mut self, name: &str) {
        self.string(name);
        self.colon();
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.string_with(|sink| sink.push(text));
    }

    /// Writes one string from several pieces, without putting them together first.
    pub fn string_with(&mut self, write: impl FnOnce(&mut StringSink<'_>)) {
        self.separate();
        self.out.push('"');
        write(&mut StringSink { out: &mut self.out });
        self.out.push('"');
    }

    /// Writes a value that is JSON already, as it is.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.out.push_str(json);
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.raw("null");
    }

    /// Writes a whole number.
    pub fn uint(&mut self, value: u64) {
        self.separate();
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
    }

    /// Writes a field that is a string.
    pub fn field_str(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    /// Writes a field whose value is JSON already.
    pub fn field_raw(&mut self, name: &str, json: &str) {
        self.key(name);
        self.raw(json);
    }

    /// Writes a field that is `true` or `false`.
    pub fn field_bool(&mut self, name: &str, value: bool) {
        self.key(name);
        self.bool(value);
    }

    /// Writes a field that is a whole number.
    pub fn field_uint(&mut self, name: &str, value: u64) {
        self.key(name);
        self.uint(value);
    }

    /// Writes a field that is `null`.
    pub fn field_null(&mut self, name: &str) {
        self.key(name);
        self.null();
    }

    /// Writes a field of which both sides are JSON already.
    pub(super) fn raw_field(&mut self, key: &str, json: &str) {
        self.raw(key);
        self.colon();
        self.raw(json);
    }

    fn begin(&mut self, bracket: char) {
        self.separate();
        self.out.push(bracket);
        self.after_value = false;
    }

    fn end(&mut self, bracket: char) {
        self.out.push(bracket);
        self.after_value = true;
    }

    fn colon(&mut self) {
        self.out.push(':');
        self.after_value = false;
    }

    fn separate(&mut self) {
        if self.after_value {
            self.out.push(',');
        }
        self.after_value = true;
    }
}

impl StringSink<'_> {
    /// Appends a piece, escaped as needed.
    pub fn push(&mut self, piece: &str) {
        escape_into(self.out, piece);
    }
}

impl fmt::Write for StringSink<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.push(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_come_where_they_belong() {
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("a", "x");
        writer.key("b");
        writer.begin_array();
        writer.uint(1);
        writer.begin_object();
        writer.end_object();
        writer.null();
        writer.end_array();
        writer.field_bool("c", false);
        writer.field_uint("d", u64::MAX);
        writer.field_raw("e", "{ \"x\": 1.10 }");
        writer.field_null("f");
        writer.end_object();
        let expected =
            r#"{"a":"x","b":[1,{},null],"c":false,"d":18446744073709551615,"e":{ "x": 1.10 },"f":null}"#;
        assert_eq!(writer.into_string(), expected);
    }

    #[test]
    fn a_string_can_be_written_in_pieces() {
        let mut writer = Writer::new();
        writer.begin_array();
        writer.string_with(|sink| {
            sink.push("say \"");
            let _ = write!(sink, "{}\n.", 42);
        });
        writer.string_with(|_| ());
        writer.end_array();
        assert_eq!(writer.into_string(), r#"["say \"42\n.",""]"#);
    }
}
