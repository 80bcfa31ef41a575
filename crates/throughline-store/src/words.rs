//! Words: what of an entry can be found, and what finds it.
//!
//! Stores differ in their full-text engines; what counts as a word, what a query means and what a snippet
//! shows are decided here, so that all of them find the same. A word is a run of letters and digits, in small
//! letters. Arguments are JSON, and are indexed without its escapes.

use std::collections::BTreeSet;

use throughline_core::{Content, Entry, Kind, Part, Text};

use crate::Field;

/// What of an entry can be found, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findable {
    pub talk: String,
    pub input: String,
    pub output: String,
}

/// Words that must stand side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub open: bool,
}

/// Beyond this, a text is not indexed; it is still kept, and still read.
const FINDABLE_BYTES_MAX: usize = 256 * 1024;

/// Beyond this, the end of a word is not in an index.
const INDEXED_WORD_BYTES_MAX: usize = 128;

const SNIPPET_CHARS_BEFORE: usize = 40;
const SNIPPET_CHARS_MAX: usize = 160;

impl Findable {
    /// Returns what of `entry` can be found.
    pub fn of(entry: &Entry) -> Self {
        let mut found = Self::default();
        match &entry.kind {
            Kind::Said(said) => found.talk = parts_text(&said.parts),
            Kind::Thought(thought) => {
                let texts: Vec<&str> =
                    thought.summary.iter().chain(&thought.content).map(Text::as_str).collect();
                found.talk = texts.join("\n");
            }
            Kind::Called(call) => found.input = format!("{} {}", call.name, unescaped(call.input.text())),
            Kind::Returned(returned) => found.output = parts_text(&returned.parts),
            Kind::HandedOver(handover) => found.talk = handover.reason.to_string(),
            Kind::Summarised(summary) => found.talk = summary.text.to_string(),
            Kind::Opaque { .. } => {
                found.output = entry.wire.as_ref().map(|wire| unescaped(&wire.text)).unwrap_or_default();
            }
            Kind::Reference { .. } => {}
        }
        for text in [&mut found.talk, &mut found.input, &mut found.output] {
            text.truncate(text.floor_char_boundary(FINDABLE_BYTES_MAX));
        }
        found
    }

    /// Returns the words that occur in it, each once.
    pub fn distinct(&self) -> BTreeSet<String> {
        let all = self.fields(None).flat_map(words);
        all.map(|(_, word)| indexed(&lowercase(word)).to_owned()).collect()
    }

    /// Says whether all terms occur, in that field if one is given.
    pub fn matches(&self, terms: &[Term], field: Option<Field>) -> bool {
        terms.iter().all(|term| self.fields(field).any(|text| find(text, term).is_some()))
    }

    /// Returns the text around the first match, or the beginning of it all, on one line.
    pub fn snippet(&self, terms: &[Term], field: Option<Field>) -> String {
        let matched = terms
            .iter()
            .find_map(|term| self.fields(field).find_map(|text| find(text, term).map(|at| (text, at))));
        let first = || self.fields(field).find(|text| !text.is_empty()).unwrap_or("");
        let (text, at) = matched.unwrap_or_else(|| (first(), 0));
        around(text, at)
    }

    fn fields(&self, field: Option<Field>) -> impl Iterator<Item = &str> {
        let all = [(Field::Talk, &self.talk), (Field::Input, &self.input), (Field::Output, &self.output)];
        all.into_iter()
            .filter(move |(name, _)| field.is_none_or(|field| field == *name))
            .map(|(_, text)| text.as_str())
    }
}

impl Term {
    /// Says whether it occurs in a text.
    pub fn occurs_in(&self, text: &str) -> bool {
        find(text, self).is_some()
    }

    /// Returns the words as the indexes hold them, each with whether what is held may go on.
    pub fn held(&self) -> impl Iterator<Item = (&str, bool)> {
        let last = self.words.len().saturating_sub(1);
        self.words.iter().enumerate().map(move |(at, word)| {
            let held = indexed(word);
            (held, (self.open && at == last) || held.len() < word.len())
        })
    }
}

/// Returns the part of a word that an index of words holds: nobody types more of it, and indexes have limits.
fn indexed(word: &str) -> &str {
    &word[..word.floor_char_boundary(INDEXED_WORD_BYTES_MAX)]
}

/// Reads a query; nothing if it has words but none that can be looked for.
pub(crate) fn terms(query: &str) -> Option<Vec<Term>> {
    let mut terms = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let (piece, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
                rest.split_at(end.max(first.len_utf8()))
            }
        };
        let (piece, after, open) = match after.strip_prefix('*') {
            Some(after) => (piece, after, true),
            None => (piece, after, piece.ends_with('*')),
        };
        let words: Vec<String> = words(piece).map(|(_, word)| lowercase(word)).collect();
        if !words.is_empty() {
            terms.push(Term { words, open });
        }
        rest = after.trim_start();
    }
    (!terms.is_empty() || query.trim().is_empty()).then_some(terms)
}

/// Reads words that must stand side by side, the last of which goes on if a `*` follows; nothing if there are none.
pub(crate) fn phrase(text: &str) -> Option<Term> {
    let words: Vec<String> = words(text).map(|(_, word)| lowercase(word)).collect();
    (!words.is_empty()).then(|| Term { words, open: text.trim_end().ends_with('*') })
}

/// Returns where the term first occurs.
fn find(text: &str, term: &Term) -> Option<usize> {
    let (last, before) = term.words.split_last()?;
    let mut found = words(text);
    loop {
        let mut ahead = found.clone();
        let at = found.next()?.0;
        let begins = before.iter().all(|wanted| ahead.next().is_some_and(|(_, word)| is_word(word, wanted)));
        let ends = |word| if term.open { begins_with(word, last) } else { is_word(word, last) };
        if begins && ahead.next().is_some_and(|(_, word)| ends(word)) {
            return Some(at);
        }
    }
}

/// Returns a word in small letters, each taken by itself: the full-text engines know no Greek finals either.
fn lowercase(word: &str) -> String {
    word.chars().flat_map(char::to_lowercase).collect()
}

/// Says whether a word is the wanted one, which is in small letters.
fn is_word(word: &str, wanted: &str) -> bool {
    word.chars().flat_map(char::to_lowercase).eq(wanted.chars())
}

fn begins_with(word: &str, wanted: &str) -> bool {
    let mut letters = word.chars().flat_map(char::to_lowercase);
    wanted.chars().all(|wanted| letters.next() == Some(wanted))
}

/// Returns the words of a text, each with where it begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

fn parts_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::Text(text) | Content::Refusal(text) => Some(text.as_str()),
            Content::File(file) => file.name.as_deref(),
            Content::Image(_) | Content::Opaque { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// Returns JSON with its escapes undone as far as they are understood, for finding and not for reading.
fn unescaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut after = after.chars();
        match after.next() {
            Some('n' | 'r' | 't' | 'b' | 'f') => text.push(' '),
            Some('u') => {
                let digits = after.as_str().get(..4);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                text.push(code.and_then(char::from_u32).unwrap_or(' '));
                after = after.as_str().get(4..).unwrap_or("").chars();
            }
            Some(other) => text.push(other),
            None => {}
        }
        rest = after.as_str();
    }
    text.push_str(rest);
    text
}

fn around(text: &str, at: usize) -> String {
    let start = text[..at].char_indices().rev().take(SNIPPET_CHARS_BEFORE).last().map_or(at, |(at, _)| at);
    let end = text[start..].char_indices().nth(SNIPPET_CHARS_MAX).map_or(text.len(), |(len, _)| start + len);
    let line: Vec<&str> = text[start..end].split_whitespace().collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    format!("{before}{}{after}", line.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Input, Role};

    fn term(words: &[&str], open: bool) -> Term {
        Term { words: words.iter().map(|word| (*word).to_owned()).collect(), open }
    }

    #[test]
    fn a_query_is_read_as_people_write_it() {
        assert_eq!(
            terms(r#"Error "not found" src/main.rs test*"#).unwrap(),
            [
                term(&["error"], false),
                term(&["not", "found"], false),
                term(&["src", "main", "rs"], false),
                term(&["test"], true),
            ]
        );
        assert_eq!(terms("  "), Some(Vec::new()));
        assert_eq!(terms("-- \"\" *"), None);
        assert_eq!(terms("\"open end").unwrap(), [term(&["open", "end"], false)]);
        assert_eq!(terms("\"é\"*x").unwrap(), [term(&["é"], true), term(&["x"], false)]);
    }

    #[test]
    fn arguments_are_found_without_their_escapes() {
        let input = Input::Arguments(r#"{"command":"cat a\nrm \u0062 \"c\""}"#.into());
        let call = Call { id: "1".into(), item_id: None, name: "Bash".into(), namespace: None, input };
        let found = Findable::of(&Entry::new(Kind::Called(call)));
        for query in ["bash", "rm b", "\"rm b c\"", "comm*"] {
            assert!(found.matches(&terms(query).unwrap(), Some(Field::Input)), "{query}");
        }
        assert!(!found.matches(&terms("rm").unwrap(), Some(Field::Output)));
        assert!(!found.matches(&terms("nrm").unwrap(), None));
    }

    #[test]
    fn a_snippet_shows_the_first_match() {
        let text = format!("{} the needle\n\n here {}", "hay ".repeat(100), "stack ".repeat(100));
        let found = Findable::of(&Entry::said(Role::User, text));
        let snippet = found.snippet(&terms("needle").unwrap(), None);
        assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.contains("the needle here stack"), "{snippet}");
    }

    #[test]
    fn a_very_long_text_is_cut_between_characters() {
        let found = Findable::of(&Entry::said(Role::User, "é".repeat(FINDABLE_BYTES_MAX)));
        assert_eq!(found.talk.len(), FINDABLE_BYTES_MAX);
    }
}
