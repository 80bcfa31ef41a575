//! What a model asks for, as terms that a store can search for and a text can be scored by.
//!
//! Models write questions, not queries: words that carry nothing are left out, and a word that occurs nowhere is tried
//! again by its stem. Words are what the store's index takes for words: runs of letters and digits, in small letters.

use std::collections::BTreeSet;

/// The most terms of a query that are searched for.
const TERMS_MAX: usize = 16;

/// The shortest word that is tried again by its stem, and the shortest stem.
const STEMMED_CHARS_MIN: usize = 5;
const STEM_CHARS_MIN: usize = 4;

/// Endings that are taken off for the stem, the longest first.
const ENDINGS: [&str; 9] = ["ations", "ation", "ings", "ing", "ions", "ion", "ed", "es", "s"];

/// Words that say nothing about what is looked for.
const EMPTY_WORDS: &[&str] = &[
    "a", "about", "again", "agent", "all", "an", "and", "any", "are", "as", "at", "be", "been", "before",
    "by", "can", "could", "did", "do", "does", "find", "for", "from", "get", "give", "had", "has", "have",
    "how", "i", "in", "into", "is", "it", "its", "last", "me", "my", "of", "on", "or", "our", "please",
    "saw", "say", "said", "see", "seen", "show", "that", "the", "their", "then", "there", "these", "they",
    "this", "those", "to", "used", "was", "we", "were", "what", "when", "where", "which", "while", "who",
    "why", "with", "would", "you", "your",
];

/// Words that must stand side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    words: Vec<String>,
    /// Whether the last word may go on.
    open: bool,
}

/// A text as words, in small letters.
#[derive(Debug)]
pub struct Words(String);

impl Term {
    /// Reads a query; empty if it has no word.
    pub fn parse(query: &str) -> Vec<Self> {
        let all = pieces(query);
        let telling: Vec<Self> = all.iter().filter(|term| !term.is_empty_word()).cloned().collect();
        let mut terms = if telling.is_empty() { all } else { telling };

        let mut seen = BTreeSet::new();
        terms.retain(|term| seen.insert(term.for_store()));
        terms.truncate(TERMS_MAX);
        terms
    }

    /// Returns the term as a store reads it.
    pub fn for_store(&self) -> String {
        let end = if self.open { "*" } else { "" };
        format!("\"{}\"{end}", self.words.join(" "))
    }

    /// Returns the term by its stem, for where it occurs nowhere as it is; none if there is no other.
    pub fn stemmed(&self) -> Option<Self> {
        let (last, before) = self.words.split_last()?;
        if self.open || last.chars().count() < STEMMED_CHARS_MIN {
            return None;
        }
        let stem = ENDINGS.iter().find_map(|ending| last.strip_suffix(ending));
        let stem = stem.filter(|stem| stem.chars().count() >= STEM_CHARS_MIN).unwrap_or(last);
        let words = before.iter().cloned().chain([stem.to_owned()]).collect();
        Some(Self { words, open: true })
    }

    /// Returns how often the term occurs.
    pub fn count(&self, text: &Words) -> usize {
        let Some((last, before)) = self.words.split_last() else { return 0 };
        let mut found = 0;
        let mut words = text.iter();
        loop {
            let mut ahead = words.clone();
            if words.next().is_none() {
                return found;
            }
            let begins = before.iter().all(|wanted| ahead.next() == Some(wanted.as_str()));
            let ends = |word: &str| if self.open { word.starts_with(last.as_str()) } else { word == last };
            if begins && ahead.next().is_some_and(ends) {
                found += 1;
            }
        }
    }

    /// Returns where in a line the first word of the term begins, in bytes of the line in small letters.
    pub fn find(&self, lower_line: &str) -> Option<usize> {
        let first = self.words.first()?;
        let is_phrase_here = self.count(&Words(lower_line.to_owned())) > 0;
        is_phrase_here.then(|| lower_line.find(first.as_str())).flatten()
    }

    fn is_empty_word(&self) -> bool {
        matches!(self.words.as_slice(), [word] if EMPTY_WORDS.contains(&word.as_str()))
    }
}

impl Words {
    /// Reads a text.
    pub fn new(text: &str) -> Self {
        Self(text.chars().flat_map(char::to_lowercase).collect())
    }

    /// Returns how many words there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
    }
}

/// Splits a query at its spaces, but not inside quotation marks; a `*` behind a piece lets its last word go on.
fn pieces(query: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for (at, part) in query.split('"').enumerate() {
        let is_quoted = at % 2 == 1;
        let pieces: Vec<&str> = if is_quoted { vec![part] } else { part.split_whitespace().collect() };
        terms.extend(pieces.into_iter().filter_map(term));
    }
    terms
}

fn term(piece: &str) -> Option<Term> {
    let words: Vec<String> = Words::new(piece).iter().map(str::to_owned).collect();
    (!words.is_empty()).then(|| Term { words, open: piece.ends_with('*') })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Vec<String> {
        Term::parse(query).iter().map(Term::for_store).collect()
    }

    #[test]
    fn words_that_carry_nothing_are_left_out_unless_there_are_no_others() {
        assert_eq!(
            parsed("What did cargo test say about src/main.rs?"),
            ["\"cargo\"", "\"test\"", "\"src main rs\""]
        );
        assert_eq!(parsed("what is it"), ["\"what\"", "\"is\"", "\"it\""]);
        assert_eq!(parsed("\"not found\" conn* conn*"), ["\"not found\"", "\"conn\"*"]);
        assert!(parsed(" -- ").is_empty());
    }

    #[test]
    fn terms_are_counted_as_words_side_by_side() {
        let text = Words::new("Error: file not found; FILE Not Found. notfound");
        let count = |query: &str| Term::parse(query)[0].count(&text);
        assert_eq!(
            (count("error"), count("\"not found\""), count("not*"), count("\"found not\"")),
            (1, 2, 3, 0)
        );
    }

    #[test]
    fn a_stem_is_what_a_word_begins_with() {
        let stem = |word: &str| Term::parse(word)[0].stemmed().map(|term| term.for_store());
        assert_eq!(stem("migrations").as_deref(), Some("\"migr\"*"));
        assert_eq!(stem("failing").as_deref(), Some("\"fail\"*"));
        assert_eq!(stem("invoice").as_deref(), Some("\"invoice\"*"));
        assert_eq!((stem("id"), stem("conn*")), (None, None));
    }
}
