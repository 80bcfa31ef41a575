//! What a JSON text means, as bytes that are the same however it is written.
//!
//! Clients parse what they are shown and print it anew: with other white space, other escapes, other digits, and
//! their members in another order. What they mean by it is the same, and so are the bytes that are made of it here.
//! Numbers are what a 64-bit float makes of them, since that is all that JavaScript keeps; of members with the same
//! name the last counts, as for parsers.
//!
//! One pass, without recursion. A list or object is put in order when it ends, and if it is long its digest stands
//! for it from then on: so nothing is moved or digested once for each level around it. The bytes are part of the
//! stored format: see docs/decisions/0028.

use std::ops::Range;

use memchr::memchr2;

use crate::digest::{Digest, Domain};

/// Deeper than the parsers of most clients go; what is deeper still has no meaning here.
const DEPTH_MAX: usize = 1_024;

/// Lists and objects of up to so many bytes stand for themselves.
const INLINE_MAX: usize = 64;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const TEXT: u8 = 4;
const LIST: u8 = 5;
const OBJECT: u8 = 6;
/// Added to the tag of a list or object whose digest stands for it.
const DIGESTED: u8 = 0x80;

/// Returns what `text` means; nothing if it is not JSON.
pub(crate) fn meaning(text: &str) -> Option<Vec<u8>> {
    let mut scan = Scan {
        text: text.as_bytes(),
        at: 0,
        out: Vec::with_capacity(text.len() + 16),
        open: Vec::new(),
        members: Vec::new(),
    };
    scan.whole()?;
    Some(scan.out)
}

/// A JSON text on its way to what it means.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
    /// The lists and objects around what comes next.
    open: Vec<Open>,
    /// The members of all open objects.
    members: Vec<Member>,
}

/// A list or object that has not ended.
struct Open {
    is_object: bool,
    /// Where it begins in what is written.
    start: usize,
    /// Where its members begin among all.
    members: usize,
}

/// A member of an object, by where it stands in what is written.
struct Member {
    start: usize,
    name_end: usize,
}

impl Scan<'_> {
    fn whole(&mut self) -> Option<()> {
        loop {
            self.blank();
            match self.peek()? {
                b'{' => {
                    self.begin(true)?;
                    if !self.take(b'}') {
                        self.name()?;
                        continue;
                    }
                    self.end();
                }
                b'[' => {
                    self.begin(false)?;
                    if !self.take(b']') {
                        continue;
                    }
                    self.end();
                }
                _ => self.scalar()?,
            }
            if !self.goes_on()? {
                self.blank();
                return (self.at == self.text.len()).then_some(());
            }
        }
    }

    /// Ends what ends behind a value, and says whether another value follows.
    fn goes_on(&mut self) -> Option<bool> {
        while let Some(open) = self.open.last() {
            let close = if open.is_object { b'}' } else { b']' };
            if self.take(close) {
                self.end();
            } else if self.take(b',') {
                if close == b'}' {
                    self.name()?;
                }
                return Some(true);
            } else {
                return None;
            }
        }
        Some(false)
    }

    fn begin(&mut self, is_object: bool) -> Option<()> {
        if self.open.len() == DEPTH_MAX {
            return None;
        }
        self.at += 1;
        self.open.push(Open { is_object, start: self.out.len(), members: self.members.len() });
        self.out.extend([if is_object { OBJECT } else { LIST }, 0]);
        Some(())
    }

    fn end(&mut self) {
        let Some(Open { start, members, .. }) = self.open.pop() else { return };
        self.sort(start + 2, members);
        self.members.truncate(members);
        let content = &self.out[start + 2..];
        match u8::try_from(content.len()) {
            Ok(length) if content.len() <= INLINE_MAX => self.out[start + 1] = length,
            _ => {
                let digest = Digest::of(Domain::Meaning, content);
                self.out[start] |= DIGESTED;
                self.out.truncate(start + 1);
                self.out.extend(digest.bytes());
            }
        }
    }

    /// Puts the members of the innermost object in the order of their names; of equal names the last stays.
    fn sort(&mut self, start: usize, first: usize) {
        let (out, members) = (&self.out, &self.members[first..]);
        let name = |member: &Member| &out[member.start..member.name_end];
        if members.is_sorted_by(|one, next| name(one) < name(next)) {
            return;
        }
        let ends = members.iter().skip(1).map(|member| member.start).chain([out.len()]);
        let mut spans: Vec<(&[u8], Range<usize>)> =
            members.iter().zip(ends).map(|(member, end)| (name(member), member.start..end)).collect();
        spans.sort_by_key(|(name, _)| *name);
        let mut sorted = Vec::with_capacity(out.len() - start);
        for (at, (name, span)) in spans.iter().enumerate() {
            if spans.get(at + 1).is_none_or(|(next, _)| next != name) {
                sorted.extend_from_slice(&out[span.clone()]);
            }
        }
        self.out.truncate(start);
        self.out.append(&mut sorted);
    }

    fn name(&mut self) -> Option<()> {
        self.blank();
        let start = self.out.len();
        self.string()?;
        self.members.push(Member { start, name_end: self.out.len() });
        self.take(b':').then_some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b't' => self.word(b"true", TRUE),
            b'f' => self.word(b"false", FALSE),
            b'n' => self.word(b"null", NULL),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8], tag: u8) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            self.out.push(tag);
        })
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let number: f64 = str::from_utf8(&self.text[start..self.at]).ok()?.parse().ok()?;
        // Minus nothing is nothing: JavaScript prints it without its sign.
        let number = if number == 0.0 { 0.0 } else { number };
        self.out.push(NUMBER);
        self.out.extend(number.to_bits().to_le_bytes());
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        self.out.push(TEXT);
        let start = self.out.len();
        self.out.extend([0; size_of::<u64>()]);
        loop {
            let rest = &self.text[self.at..];
            let plain = &rest[..memchr2(b'"', b'\\', rest)?];
            if plain.iter().any(|byte| *byte < 0x20) {
                return None;
            }
            self.out.extend_from_slice(plain);
            self.at += plain.len() + 1;
            if rest[plain.len()] == b'"' {
                break;
            }
            self.escape()?;
        }
        let (length, content) = self.out[start..].split_at_mut(size_of::<u64>());
        length.copy_from_slice(&(content.len() as u64).to_le_bytes());
        Some(())
    }

    /// Writes what the escape stands for whose backslash was read.
    fn escape(&mut self) -> Option<()> {
        let escape = self.peek()?;
        self.at += 1;
        self.out.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unit(),
            _ => return None,
        });
        Some(())
    }

    fn unit(&mut self) -> Option<()> {
        let unit = hex(self.text.get(self.at..self.at + 4)?)?;
        self.at += 4;
        let low = match self.text.get(self.at..self.at + 6) {
            Some([b'\\', b'u', digits @ ..]) if (0xd800..0xdc00).contains(&unit) => hex(digits),
            _ => None,
        };
        let code = match low.filter(|low| (0xdc00..0xe000).contains(low)) {
            Some(low) => {
                self.at += 6;
                0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
            }
            None => unit,
        };
        match char::from_u32(code) {
            Some(c) => self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            // Half of a pair is kept by whoever prints it again, so it is told apart here as well.
            None => self.out.extend([0xed, 0x80 | (code >> 6 & 0x3f) as u8, 0x80 | (code & 0x3f) as u8]),
        }
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Takes a sign, with the white space before it.
    fn take(&mut self, sign: u8) -> bool {
        self.blank();
        let is_it = self.peek() == Some(sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests;
