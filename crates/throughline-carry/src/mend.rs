//! Documents that are damaged: what is whole in them is read, and what is not is named.
//!
//! A session that is one document is an object with a list in it, and most of what goes wrong with a file goes wrong
//! in one place of that list: it breaks off there, or an element is not JSON. The element is taken out, or the list
//! closed, until the rest can be read. Nothing is made up: every element that is read stood in the file as it is.

use crate::Damage;
use std::ops::Range;
use throughline_wire::json::{Document, SyntaxError};

/// How many elements are taken out of one document at most.
const MENDS_MAX: usize = 100;

/// Reads a document, without what of its lists cannot be read.
pub(crate) fn document(text: &str) -> Result<(Document, Vec<Damage>), Damage> {
    let error = match Document::parse(text) {
        Ok(document) => return Ok((document, Vec::new())),
        Err(error) => error,
    };
    let mut mending = Mending { text: text.to_owned(), taken: 0, damaged: Vec::new() };
    let mut error_now = error;
    for _ in 0..MENDS_MAX {
        if !mending.mend(&error_now) {
            break;
        }
        match Document::parse(mending.text.as_str()) {
            Ok(document) => return Ok((document, mending.damaged)),
            Err(next) => error_now = next,
        }
    }
    Err(error.into())
}

struct Mending {
    text: String,
    /// How many elements were taken out, so that the next is named by the number that it had.
    taken: usize,
    damaged: Vec<Damage>,
}

/// An element of a list that stands directly in the document.
#[derive(Debug, PartialEq, Eq)]
struct Element {
    number: usize,
    start: usize,
    /// Where it ends, if it does.
    end: Option<usize>,
}

impl Mending {
    /// Takes out what an error is about; says whether there was anything to be taken out.
    fn mend(&mut self, error: &SyntaxError) -> bool {
        let Some(element) = element_at(&self.text, error.offset) else { return false };
        let number = element.number + self.taken;
        match element.end {
            // It breaks off behind a whole element.
            Some(end) if end <= error.offset => {
                self.cut(end);
                self.note(format!("it breaks off behind element {number}: {}", error.problem));
            }
            Some(end) => {
                self.take_out(element.start..end);
                self.taken += 1;
                self.note(format!("element {number} of its list: {}", error.problem));
            }
            None => {
                self.cut(element.start);
                self.note(format!("it breaks off in element {number} of its list: {}", error.problem));
            }
        }
        true
    }

    fn note(&mut self, words: String) {
        self.damaged.push(Damage(words));
    }

    /// Ends the list and the document before an offset.
    fn cut(&mut self, at: usize) {
        let kept = self.text[..at].trim_end().trim_end_matches(',').len();
        self.text.truncate(kept);
        self.text.push_str("]}");
    }

    /// Takes out an element and the comma that belongs to it.
    fn take_out(&mut self, range: Range<usize>) {
        let before = self.text[..range.start].trim_end();
        let rest = &self.text[range.end..];
        let (start, end) = match rest.trim_start().strip_prefix(',') {
            Some(after) => (range.start, self.text.len() - after.len()),
            None => (before.strip_suffix(',').unwrap_or(before).len(), range.end),
        };
        self.text.replace_range(start..end, "");
    }
}

/// Returns the last element that begins at or before an offset.
fn element_at(text: &str, offset: usize) -> Option<Element> {
    let mut open = Vec::new();
    let (mut in_string, mut escaped, mut number) = (false, false, 1);
    let mut found: Option<Element> = None;
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        let is_in_list = open == [b'{', b'['];
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                if is_in_list {
                    if at > offset {
                        break;
                    }
                    found = Some(Element { number, start: at, end: None });
                }
                number = if open == [b'{'] { 1 } else { number };
                open.push(byte);
            }
            b',' if is_in_list => number += 1,
            b'}' | b']' => {
                open.pop();
                if let Some(found) = found.as_mut().filter(|found| found.end.is_none())
                    && open == [b'{', b'[']
                {
                    found.end = Some(at + 1);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, &[&str])>) {
        let read = document(text).ok();
        let read = read.map(|(document, damaged)| (document.text().to_string(), damaged));
        let expected = expected.map(|(text, words)| {
            (text.to_owned(), words.iter().map(|words| (*words).to_owned()).collect::<Vec<_>>())
        });
        let words = |damaged: Vec<Damage>| damaged.into_iter().map(|damage| damage.0).collect::<Vec<_>>();
        assert_eq!(read.map(|(text, damaged)| (text, words(damaged))), expected, "{text}");
    }

    #[test]
    fn what_is_whole_in_a_damaged_document_is_read() {
        check(r#"{"a":[{"b":1}]}"#, Some((r#"{"a":[{"b":1}]}"#, &[])));
        let ends = "the JSON text ends too early";
        check(
            r#"{"s":{"id":"x"},"a":[{"b":1},{"b":"]"#,
            Some((
                r#"{"s":{"id":"x"},"a":[{"b":1}]}"#,
                &[&format!("it breaks off in element 2 of its list: {ends}")],
            )),
        );
        check(
            r#"{"a":[{"b":1} , "#,
            Some((r#"{"a":[{"b":1}]}"#, &[&format!("it breaks off behind element 1: {ends}")])),
        );
        let odd = "expected a value, found '}'";
        check(
            r#"{"a":[{"b":},{"b":"\"{"},{"b":}]}"#,
            Some((
                r#"{"a":[{"b":"\"{"}]}"#,
                &[&format!("element 1 of its list: {odd}"), &format!("element 3 of its list: {odd}")],
            )),
        );
        for hopeless in ["", "garbage", "{", r#"{"a":"#, r#"{"a":["#] {
            check(hopeless, None);
        }
    }
}
