//! Arguments looked into as far as the planner must, without a JSON library.
//!
//! Models mean arguments to be a JSON object. The scanner finds the strings in it and checks on the way that
//! it is one: what is not JSON is left as it came. Strings are named by their range in the raw text, so that
//! a shortened argument can be made of pieces of it, and stays valid.

use std::ops::Range;

/// A string value in arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The name of the member that it is the value of, or is nested below, at the top level.
    pub name: Range<usize>,
    /// Where the raw text of it is, between its quotes.
    pub raw: Range<usize>,
    /// Whether it is itself the value of the member at the top level.
    pub is_member: bool,
}

/// How deep values may nest.
const DEPTH_MAX: usize = 64;

/// Finds all strings in `text`; none if it is not a JSON object.
pub(super) fn leaves(text: &str) -> Option<Vec<Leaf>> {
    Scan::whole(text).map(|scan| scan.leaves)
}

/// A member of arguments at the top level, by where it stands in the raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub name: Range<usize>,
    /// Its value, with the quotes of a string.
    pub value: Range<usize>,
}

/// Finds the members of `text`; none if it is not a JSON object.
pub(super) fn members(text: &str) -> Option<Vec<Member>> {
    Scan::whole(text).map(|scan| scan.members)
}

/// Returns the value of the first of `names` that is a string at the top level, and which one it was.
pub(super) fn member<'n>(text: &str, leaves: &[Leaf], names: &[&'n str]) -> Option<(&'n str, String)> {
    names.iter().find_map(|name| {
        let leaf = leaves.iter().find(|leaf| leaf.is_member && text[leaf.name.clone()] == **name)?;
        Some((*name, unescaped(&text[leaf.raw.clone()])))
    })
}

/// Returns the raw text of a JSON string as what it means; a broken escape stays as it is.
pub(super) fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let unit = unit_length(&rest.as_bytes()[at..]);
        let escape = &rest[at..(at + unit).min(rest.len())];
        match meaning(escape) {
            Some(c) => text.push(c),
            None => text.push_str(escape),
        }
        rest = &rest[at + escape.len()..];
    }
    text.push_str(rest);
    text
}

fn meaning(escape: &str) -> Option<char> {
    let hex = |text: Option<&str>| text.and_then(|text| u32::from_str_radix(text, 16).ok());
    match escape.as_bytes().get(1)? {
        b'n' => Some('\n'),
        b't' => Some('\t'),
        b'r' => Some('\r'),
        b'b' => Some('\u{8}'),
        b'f' => Some('\u{c}'),
        b'u' => {
            let high = hex(escape.get(2..6))?;
            match hex(escape.get(8..12)) {
                Some(low) => char::from_u32(0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff)),
                None => char::from_u32(high),
            }
        }
        other => Some(char::from(*other)),
    }
}

/// Returns how many bytes the escape at the start of `raw` takes; a surrogate pair is never taken apart.
pub(super) fn unit_length(raw: &[u8]) -> usize {
    let surrogate = |at: usize, digits: &[u8]| {
        raw.get(at) == Some(&b'\\')
            && raw.get(at + 1) == Some(&b'u')
            && raw.get(at + 2).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'd'))
            && raw.get(at + 3).is_some_and(|byte| digits.contains(&byte.to_ascii_lowercase()))
    };
    match raw {
        [b'\\', b'u', ..] if surrogate(0, b"89ab") && surrogate(6, b"cdef") => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => 1,
    }
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    name: Range<usize>,
    leaves: Vec<Leaf>,
    members: Vec<Member>,
}

impl<'t> Scan<'t> {
    /// Scans a text that must be a JSON object.
    fn whole(text: &'t str) -> Option<Self> {
        let (leaves, members) = (Vec::new(), Vec::new());
        let mut scan = Self { bytes: text.as_bytes(), at: 0, name: 0..0, leaves, members };
        scan.blank();
        if scan.peek() != Some(b'{') {
            return None;
        }
        scan.value(0)?;
        scan.blank();
        (scan.at == scan.bytes.len()).then_some(scan)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.peek()? {
            b'{' => self.members(depth),
            b'[' => self.elements(depth),
            b'"' => {
                let raw = self.string()?;
                self.leaves.push(Leaf { name: self.name.clone(), raw, is_member: depth == 1 });
                Some(())
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn members(&mut self, depth: usize) -> Option<()> {
        self.take(b'{')?;
        self.blank();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            self.blank();
            let name = self.string()?;
            if depth == 0 {
                self.name = name;
            }
            self.blank();
            self.take(b':')?;
            self.blank();
            let start = self.at;
            self.value(depth + 1)?;
            if depth == 0 {
                self.members.push(Member { name: self.name.clone(), value: start..self.at });
            }
            self.blank();
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    fn elements(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        self.blank();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.blank();
            // An element is never a member, however deep the array.
            self.value(depth + 2)?;
            self.blank();
            if self.take(b',').is_none() {
                return self.take(b']');
            }
        }
    }

    fn string(&mut self) -> Option<Range<usize>> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at - 1)
    }

    fn escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_with_the_member_that_they_belong_to() {
        let text = r#"{"path": "a\nb", "edits": [{"old": "x"}], "n": -1.5e3, "deep": {"path": "no"}}"#;
        let leaves = leaves(text).unwrap();
        let found: Vec<_> = leaves
            .iter()
            .map(|leaf| (&text[leaf.name.clone()], &text[leaf.raw.clone()], leaf.is_member))
            .collect();
        assert_eq!(found, [("path", r"a\nb", true), ("edits", "x", false), ("deep", "no", false)]);
        assert_eq!(member(text, &leaves, &["file", "path"]), Some(("path", "a\nb".to_owned())));
        assert_eq!(member(text, &leaves, &["old"]), None);
    }

    #[test]
    fn what_is_not_a_json_object_has_no_leaves() {
        for text in
            ["", "[]", "{", r#"{"a":}"#, r#"{"a":"b"} x"#, "{\"a\":\"\n\"}", r#"{"a":"\x"}"#, r#"{"a" "b"}"#]
        {
            assert_eq!(leaves(text), None, "{text}");
        }
        assert_eq!(leaves(&format!("{}{}", "{\"a\":".repeat(100), "}".repeat(100))), None);
    }

    #[test]
    fn escapes_mean_what_they_say() {
        assert_eq!(unescaped(r#"a\n\"\\\u00e9\ud83d\ude00z"#), "a\n\"\\é😀z");
    }
}
