//! Identifiers: the words of a text that a later call is likely to need verbatim.
//!
//! Paths, ids, numbers, names in snake or camel case, dotted names, dates, addresses. What is worth keeping of
//! a result is measured by them. They are known by a hash; the text itself is not kept.

use super::handle::hash;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What kind of identifier it is, from the most to the least telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// A path, a mix of letters and digits, a dotted name.
    Telling,
    /// A name in snake or camel case.
    Name,
    /// Digits only.
    Number,
    /// The name of a member in JSON: it says what a value is, and stands beside every value of its kind.
    Member,
    /// An ordinary word.
    Word,
}

/// Identifiers by number, so that sets of them are small.
#[derive(Default)]
pub(super) struct Lexicon {
    numbers: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
    classes: Vec<Class>,
}

/// Hashes what is a hash already. Unlike the usual one it has no random seed.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl Lexicon {
    /// Returns how many identifiers are known.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns the class of an identifier.
    pub fn class(&self, number: u32) -> Class {
        self.classes[number as usize]
    }

    /// Adds the numbers of all identifiers in `text` to `into`, in their order, as often as they occur.
    pub fn read(&mut self, text: &str, into: &mut Vec<u32>) {
        each(text, |word, class| {
            let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry(hash(word)).or_insert(next);
            match self.classes.get_mut(number as usize) {
                // What occurs anywhere else is not only the name of a member.
                Some(known) if *known >= Class::Member => *known = class,
                Some(_) => {}
                None => self.classes.push(class),
            }
            into.push(number);
        });
    }
}

const LENGTH_MAX: usize = 200;
/// How many digits the number of a line has at most.
const GUTTER_MAX: usize = 7;
/// Words of fewer letters are too common to tell anything.
const WORD_MIN: usize = 6;

/// Calls `found` with each identifier in `text`, and with the telling parts of paths and dotted names.
fn each(text: &str, mut found: impl FnMut(&str, Class)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_inside(bytes[at]) {
            at += 1;
        }
        let word = text[start..at].trim_end_matches(['.', '-', '/', '@']);
        if is_gutter(text, start, at) {
            continue;
        }
        if let Some(class) = class(word) {
            found(word, if names_member(&text[at..]) { Class::Member } else { class });
        }
        if word.contains(['/', '.']) {
            for part in word.split(['/', '.']).filter(|part| part.len() < word.len()) {
                if let Some(class) = class_of_part(part) {
                    found(part, class);
                }
            }
            let last = word.rsplit('/').next().unwrap_or(word);
            if last.len() < word.len()
                && last.contains('.')
                && let Some(class) = class(last)
            {
                found(last, class);
            }
        }
    }
}

/// Says whether the word between `start` and `end` is a number in front of a line, as tools put it there.
fn is_gutter(text: &str, start: usize, end: usize) -> bool {
    let word = &text[start..end];
    if word.len() > GUTTER_MAX || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let before = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let is_first = text[before..start].bytes().all(|byte| byte == b' ' || byte == b'\t');
    let behind = text[end..].trim_start_matches(' ');
    is_first && behind.starts_with(['→', '\t', '|', ':', '│'])
}

/// Says whether what stands before `rest` is the name of a member in JSON.
fn names_member(rest: &str) -> bool {
    rest.strip_prefix('"').is_some_and(|rest| rest.trim_start().starts_with(':'))
}

fn class_of_part(part: &str) -> Option<Class> {
    if part.is_empty() { None } else { class(part) }
}

fn is_inside(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b'@')
}

/// Returns the class of a word; none if it is an ordinary one.
fn class(word: &str) -> Option<Class> {
    let bytes = word.as_bytes();
    if !(3..=LENGTH_MAX).contains(&bytes.len()) {
        return None;
    }
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let has_letters = bytes.iter().any(u8::is_ascii_alphabetic);
    if digits > 0 && !has_letters {
        return (digits >= 3).then_some(Class::Number);
    }
    if bytes.len() < 4 {
        return None;
    }
    if digits > 0 {
        return Some(Class::Telling);
    }
    if bytes.len() < 5 {
        return None;
    }
    let within = |c: char| word.trim_matches(c).contains(c);
    if within('/') || within('.') || word.contains('@') {
        return Some(Class::Telling);
    }
    let is_camel =
        || bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    if within('_') || is_camel() {
        return Some(Class::Name);
    }
    let is_word = bytes.len() >= WORD_MIN && bytes.iter().all(u8::is_ascii_alphabetic);
    is_word.then_some(Class::Word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, |word, class| {
            if class != Class::Word {
                words.push(word.to_owned());
            }
        });
        words
    }

    #[test]
    fn what_a_later_call_may_need_is_found() {
        assert_eq!(
            found("in src/plan/fill.rs: fn water_fill(x)"),
            ["src/plan/fill.rs", "fill.rs", "water_fill"]
        );
        assert_eq!(
            found("user mia_li_3668 flew HAT170 on 2024-05-15 for $304, ok?"),
            ["mia_li_3668", "HAT170", "2024-05-15", "304"]
        );
        assert_eq!(found("the quick brown fox, 12 times; getName() is"), ["getName"]);
    }

    #[test]
    fn the_number_of_a_line_is_no_identifier() {
        assert_eq!(found("   439→let total_sum = 1024;\n  440|x\n441:y\n443\tq"), ["total_sum", "1024"]);
        assert_eq!(found("1024 files"), ["1024"]);
    }

    #[test]
    fn an_identifier_has_one_number() {
        let mut lexicon = Lexicon::default();
        let mut numbers = Vec::new();
        lexicon.read("foo_bar baz_qux foo_bar", &mut numbers);
        lexicon.read("baz_qux", &mut numbers);
        assert_eq!(numbers, [0, 1, 0, 1]);
        assert_eq!(lexicon.class(0), Class::Name);
    }

    #[test]
    fn the_name_of_a_member_is_told_from_its_value() {
        let mut lexicon = Lexicon::default();
        let mut numbers = Vec::new();
        lexicon.read(r#"{"user_id": "mia_li", "order_id" :"W12"}"#, &mut numbers);
        let classes: Vec<Class> = numbers.iter().map(|number| lexicon.class(*number)).collect();
        assert_eq!(classes, [Class::Member, Class::Name, Class::Member]);
        lexicon.read("by user_id", &mut numbers);
        assert_eq!(lexicon.class(0), Class::Name, "it is a name as well");
    }
}
