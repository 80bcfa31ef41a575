//! Text split into the pieces that a vocabulary merges, none of which a token crosses.
//!
//! The vocabularies define the split by regular expressions with look-ahead. These are the same alternatives,
//! in the same order, written out by hand: a general engine that backtracks is slow on hostile text, and
//! one that overflowed its stack on a megabyte of spaces is why none is used.

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

/// Which of the two ways to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Words end where capitals begin, and take their contraction with them.
    O200k,
    /// Contractions are pieces of their own.
    Cl100k,
}

/// The pieces of a text.
#[derive(Debug)]
pub(crate) struct Pieces<'t> {
    split: Split,
    rest: &'t str,
}

/// What a character is, as far as the split cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    /// A letter that is neither, such as an ideograph.
    Letter,
    Mark,
    Number,
    Space,
    Symbol,
}

impl<'t> Pieces<'t> {
    pub(crate) const fn new(split: Split, text: &'t str) -> Self {
        Self { split, rest: text }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let first = self.rest.chars().next()?;
        let end = match self.split {
            Split::O200k => o200k(self.rest, first),
            Split::Cl100k => cl100k(self.rest, first),
        };
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(piece)
    }
}

fn o200k(text: &str, first: char) -> usize {
    let class = class_of(first);
    let words = |end| end + contraction(&text[end..]);
    if let Some(end) = cased_word(text, first, class) {
        return words(end);
    }
    match class {
        Class::Number => numbers(text),
        Class::Space if !first_symbol_follows(text, first) => o200k_space(text),
        _ => symbols(text, |c| matches!(c, '\r' | '\n' | '/')),
    }
}

fn cl100k(text: &str, first: char) -> usize {
    let contracted = contraction(text);
    if contracted > 0 {
        return contracted;
    }
    let class = class_of(first);
    let begin = if class.is_letter() || !may_lead(first, class) { 0 } else { first.len_utf8() };
    let letters = run(&text[begin..], |_, class| class.is_letter());
    if letters > 0 {
        return begin + letters;
    }
    match class {
        Class::Number => numbers(text),
        Class::Space if !first_symbol_follows(text, first) => cl100k_space(text),
        _ => symbols(text, |c| matches!(c, '\r' | '\n')),
    }
}

/// Returns the end of a word with the one character that may lead it: capitals, then small letters.
fn cased_word(text: &str, first: char, class: Class) -> Option<usize> {
    let lead = may_lead(first, class).then(|| first.len_utf8());
    let begins = [lead, Some(0)];
    let ending_small = |begin: usize| small_word(&text[begin..]).map(|end| begin + end);
    let capitals = |begin: usize| {
        let end = run(&text[begin..], |_, class| class.is_upper_like());
        (end > 0).then_some(begin + end)
    };
    let begins = || begins.into_iter().flatten();
    begins().find_map(ending_small).or_else(|| begins().find_map(capitals))
}

/// Returns the end of a word that ends in at least one letter that is not a capital.
fn small_word(text: &str) -> Option<usize> {
    let mut soft = None;
    for (at, c) in text.char_indices() {
        match class_of(c) {
            Class::Upper => {}
            Class::Letter | Class::Mark => soft = Some(at + c.len_utf8()),
            Class::Lower => return Some(at + run(&text[at..], |_, class| class.is_lower_like())),
            Class::Number | Class::Space | Class::Symbol => break,
        }
    }
    // No small letter follows: the word ends with the last character that may pass for one.
    soft
}

/// Returns the length of an English contraction at the beginning, in either case; 0 if there is none.
fn contraction(text: &str) -> usize {
    let Some(after) = text.strip_prefix('\'') else { return 0 };
    let mut chars = after.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else { return 0 };
    match (first.to_ascii_lowercase(), second.map(|c| c.to_ascii_lowercase())) {
        // The long s is a case of s.
        ('s' | 't' | 'm' | 'd' | 'ſ', _) => 1 + first.len_utf8(),
        ('r' | 'v', Some('e')) | ('l', Some('l')) => 3,
        _ => 0,
    }
}

/// Returns the end of at most three digits.
fn numbers(text: &str) -> usize {
    text.chars().take(3).take_while(|c| class_of(*c) == Class::Number).map(char::len_utf8).sum()
}

/// Returns the end of symbols, with the space that may lead them and what may trail them.
fn symbols(text: &str, trails: impl Fn(char) -> bool) -> usize {
    let begin = usize::from(text.starts_with(' '));
    let end = begin + run(&text[begin..], |_, class| class.is_symbol());
    end + run(&text[end..], |c, _| trails(c))
}

fn o200k_space(text: &str) -> usize {
    let end = run(text, |_, class| class == Class::Space);
    last_break(&text[..end]).unwrap_or_else(|| before_word(text, end))
}

fn cl100k_space(text: &str) -> usize {
    let end = run(text, |_, class| class == Class::Space);
    if end == text.len() {
        return end;
    }
    last_break(&text[..end]).unwrap_or_else(|| before_word(text, end))
}

/// Returns the end of the last line break in white space.
fn last_break(space: &str) -> Option<usize> {
    space.rfind(['\r', '\n']).map(|at| at + 1)
}

/// Returns the end of white space, without its last character if a word follows that may take it.
fn before_word(text: &str, end: usize) -> usize {
    let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
    if end == text.len() || end == last { end } else { end - last }
}

/// Says whether a space is followed by symbols, and so leads them.
fn first_symbol_follows(text: &str, first: char) -> bool {
    first == ' ' && text[1..].chars().next().is_some_and(|c| class_of(c).is_symbol())
}

fn may_lead(c: char, class: Class) -> bool {
    !matches!(c, '\r' | '\n') && !class.is_letter() && class != Class::Number
}

/// Returns the end of the leading characters that `takes` accepts.
fn run(text: &str, takes: impl Fn(char, Class) -> bool) -> usize {
    text.char_indices().find(|(_, c)| !takes(*c, class_of(*c))).map_or(text.len(), |(at, _)| at)
}

impl Class {
    const fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Letter)
    }

    const fn is_upper_like(self) -> bool {
        matches!(self, Self::Upper | Self::Letter | Self::Mark)
    }

    const fn is_lower_like(self) -> bool {
        matches!(self, Self::Lower | Self::Letter | Self::Mark)
    }

    const fn is_symbol(self) -> bool {
        matches!(self, Self::Symbol | Self::Mark)
    }
}

fn class_of(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Number,
        ' ' | '\t'..='\r' => Class::Space,
        '\0'..='\x7f' => Class::Symbol,
        _ if c.is_whitespace() => Class::Space,
        _ => beyond_ascii(c),
    }
}

fn beyond_ascii(c: char) -> Class {
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::UppercaseLetter | GeneralCategory::TitlecaseLetter => Class::Upper,
        GeneralCategory::LowercaseLetter => Class::Lower,
        GeneralCategory::ModifierLetter | GeneralCategory::OtherLetter => Class::Letter,
        GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark => {
            Class::Mark
        }
        GeneralCategory::DecimalNumber | GeneralCategory::LetterNumber | GeneralCategory::OtherNumber => {
            Class::Number
        }
        _ => Class::Symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(split: Split, text: &str) -> Vec<&str> {
        Pieces::new(split, text).collect()
    }

    #[test]
    fn words_take_one_space_and_leave_the_others() {
        assert_eq!(split(Split::O200k, "a   bc  "), ["a", "  ", " bc", "  "]);
        assert_eq!(split(Split::Cl100k, "a   bc  "), ["a", "  ", " bc", "  "]);
    }

    #[test]
    fn camel_case_is_split_by_one_and_not_by_the_other() {
        assert_eq!(split(Split::O200k, "getURLOf"), ["get", "URLOf"]);
        assert_eq!(split(Split::Cl100k, "getURLOf"), ["getURLOf"]);
    }

    #[test]
    fn contractions_go_with_the_word_or_alone() {
        assert_eq!(split(Split::O200k, "we'LL it's"), ["we'LL", " it's"]);
        assert_eq!(split(Split::Cl100k, "we'LL it's"), ["we", "'LL", " it", "'s"]);
    }

    #[test]
    fn line_breaks_end_white_space_and_symbols() {
        assert_eq!(split(Split::O200k, "x {\n\n  y//\n/z"), ["x", " {\n\n", " ", " y", "//\n/", "z"]);
        assert_eq!(split(Split::O200k, "x \n  y"), ["x", " \n", " ", " y"]);
        assert_eq!(split(Split::Cl100k, "x\n  "), ["x", "\n  "]);
    }
}
