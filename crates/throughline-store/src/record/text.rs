//! Bytes, numbers and texts of a record.
//!
//! Numbers are little-endian groups of seven bits. A text is its length, shifted by two bits to make room for
//! how it is stored: in full, as a slice of the record's context, or as a slice of the context that is a JSON
//! string's inside and has to be unescaped. The context is the record's outermost wire text.

use std::sync::Arc;

use memchr::memmem;
use throughline_core::Text;

use super::RecordError;
use crate::digest::Digest;

const IN_FULL: u64 = 0;
const SLICE: u64 = 1;
const ESCAPED: u64 = 2;

/// Shorter texts are stored in full: a slice would hardly be shorter.
const SLICE_BYTES_MIN: usize = 8;

#[derive(Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    context: Text,
    /// Where in the context the last slice ended; the next one usually follows.
    cursor: usize,
}

pub(crate) struct Reader<'b> {
    rest: &'b [u8],
    context: Arc<str>,
}

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub fn digest(&mut self, digest: Digest) {
        self.out.extend_from_slice(digest.bytes());
    }

    pub fn text(&mut self, text: &str) {
        if let Some(at) = self.find(text) {
            return self.slice(SLICE, at, text.len());
        }
        for escaped in [escape(text, false), escape(text, true)].into_iter().flatten() {
            if let Some(at) = self.find(&escaped) {
                return self.slice(ESCAPED, at, escaped.len());
            }
        }
        self.number((text.len() as u64) << 2 | IN_FULL);
        self.out.extend_from_slice(text.as_bytes());
    }

    pub fn optional(&mut self, text: Option<&Text>) {
        self.byte(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    /// Lets the texts that follow be slices of this one.
    pub fn set_context(&mut self, context: &Text) {
        self.context = context.clone();
        self.cursor = 0;
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn find(&self, text: &str) -> Option<usize> {
        if text.len() < SLICE_BYTES_MIN || text.len() > self.context.len() {
            return None;
        }
        let context = self.context.as_bytes();
        let behind = memmem::find(&context[self.cursor..], text.as_bytes()).map(|at| at + self.cursor);
        behind.or_else(|| memmem::find(context, text.as_bytes()))
    }

    fn slice(&mut self, how: u64, at: usize, len: usize) {
        self.number((len as u64) << 2 | how);
        self.number(at as u64);
        // The wire form of an object comes before the texts in it, so the next search begins where this
        // slice does, not where it ends.
        self.cursor = at;
    }
}

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, context: Arc::from("") }
    }

    pub fn byte(&mut self) -> Result<u8, RecordError> {
        Ok(self.bytes(1)?[0])
    }

    pub fn number(&mut self) -> Result<u64, RecordError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(RecordError::Invalid("number"))
    }

    pub fn small(&mut self) -> Result<u32, RecordError> {
        u32::try_from(self.number()?).map_err(|_| RecordError::Invalid("number"))
    }

    pub fn digest(&mut self) -> Result<Digest, RecordError> {
        Digest::from_slice(self.bytes(Digest::BYTES)?).ok_or(RecordError::CutOff)
    }

    pub fn text(&mut self) -> Result<Text, RecordError> {
        let head = self.number()?;
        let len = usize::try_from(head >> 2).map_err(|_| RecordError::CutOff)?;
        if head & 3 == IN_FULL {
            let bytes = self.bytes(len)?;
            return std::str::from_utf8(bytes).map(Text::from).map_err(|_| RecordError::Invalid("text"));
        }
        let at = usize::try_from(self.number()?).map_err(|_| RecordError::Invalid("slice"))?;
        let range = at..at.checked_add(len).ok_or(RecordError::Invalid("slice"))?;
        let slice = self.context.get(range.clone()).ok_or(RecordError::Invalid("slice"))?;
        match head & 3 {
            SLICE => Ok(Text::slice(&self.context, range)),
            ESCAPED => unescape(slice).map(Text::from).ok_or(RecordError::Invalid("escape")),
            _ => Err(RecordError::Invalid("text")),
        }
    }

    pub fn optional(&mut self) -> Result<Option<Text>, RecordError> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    pub fn flag(&mut self) -> Result<bool, RecordError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RecordError::Invalid("flag")),
        }
    }

    /// Lets the texts that follow be slices of this one, and returns it as such a slice.
    pub fn set_context(&mut self, context: &Text) -> Text {
        self.context = Arc::from(context.as_str());
        Text::slice(&self.context, 0..context.len())
    }

    /// Lets the texts that follow be slices of this one.
    pub fn share_context(&mut self, context: &Arc<str>) {
        self.context = Arc::clone(context);
    }

    pub fn context(&self) -> Arc<str> {
        Arc::clone(&self.context)
    }

    /// Reads a list whose items take at least one byte each.
    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let count = self.small()? as usize;
        if count > self.rest.len() {
            return Err(RecordError::CutOff);
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn bytes(&mut self, len: usize) -> Result<&'b [u8], RecordError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(RecordError::CutOff)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Returns the text as the inside of a JSON string, in the way of most writers; with `ascii` in the way of
/// those that escape everything else, too. Nothing if that is the text itself.
fn escape(text: &str, ascii: bool) -> Option<String> {
    let needs = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20) || ascii && *byte >= 0x80;
    let first = text.as_bytes().iter().position(needs)?;
    if ascii && text.is_ascii() {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    // The first byte that needs escaping begins a character.
    escaped.push_str(&text[..first]);
    for c in text[first..].chars() {
        push_escaped(&mut escaped, c, ascii);
    }
    Some(escaped)
}

fn push_escaped(escaped: &mut String, c: char, ascii: bool) {
    match c {
        '"' => escaped.push_str("\\\""),
        '\\' => escaped.push_str("\\\\"),
        '\n' => escaped.push_str("\\n"),
        '\r' => escaped.push_str("\\r"),
        '\t' => escaped.push_str("\\t"),
        '\u{8}' => escaped.push_str("\\b"),
        '\u{c}' => escaped.push_str("\\f"),
        c if c < ' ' || ascii && !c.is_ascii() => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    escaped.extend(char::from_digit(u32::from(*unit) >> shift & 0xf, 16));
                }
            }
        }
        c => escaped.push(c),
    }
}

/// Returns the text that the inside of a JSON string, as [`escape`] writes it, stands for.
fn unescape(escaped: &str) -> Option<String> {
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let letter = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + letter.len_utf8()..];
        match letter {
            '"' | '\\' => text.push(letter),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'u' => {
                let (c, after) = unescape_unicode(rest)?;
                text.push(c);
                rest = after;
            }
            _ => return None,
        }
    }
    text.push_str(rest);
    Some(text)
}

/// Reads what follows `\u`: four digits, and a second such group if the first is half of a pair.
fn unescape_unicode(rest: &str) -> Option<(char, &str)> {
    let unit = |rest: &str| u16::from_str_radix(rest.get(..4)?, 16).ok();
    let first = unit(rest)?;
    let rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(u32::from(first)).map(|c| (c, rest));
    }
    let second = unit(rest.strip_prefix("\\u")?)?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, &rest[6..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_that_stands_escaped_in_the_context_is_a_slice_of_it() {
        let context = Text::from(r#"{"text":"one\ntwo \"three\""}"#);
        let mut writer = Writer::default();
        writer.set_context(&context);
        writer.text("one\ntwo \"three\"");
        let bytes = writer.finish();
        assert_eq!(bytes.len(), 2);
        let mut reader = Reader::new(&bytes);
        reader.set_context(&context);
        assert_eq!(reader.text().unwrap(), "one\ntwo \"three\"");
    }

    #[test]
    fn an_impossible_slice_is_an_error() {
        let mut reader = Reader::new(&[10 << 2 | 1, 90]);
        reader.set_context(&Text::from("short"));
        assert_eq!(reader.text(), Err(RecordError::Invalid("slice")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn escaping_is_reversible(text in r#"[\x00-\x7f"\\\n😀é\u{2028}]{0,20}"#, ascii: bool) {
            let escaped = escape(&text, ascii).unwrap_or_else(|| text.clone());
            if escaped != text || !text.contains('\\') {
                prop_assert_eq!(unescape(&escaped), Some(text));
            }
        }

        #[test]
        fn any_text_comes_back_whatever_the_context(text in ".{0,30}", before in ".{0,9}", ascii: bool) {
            let escaped = escape(&text, ascii).unwrap_or_else(|| text.clone());
            let context = Text::from(format!("{before}{escaped}{before}"));
            let mut writer = Writer::default();
            writer.set_context(&context);
            writer.text(&text);
            writer.number(7);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            reader.set_context(&context);
            prop_assert_eq!(reader.text().unwrap(), text.as_str());
            prop_assert_eq!(reader.number(), Ok(7));
        }
    }
}
