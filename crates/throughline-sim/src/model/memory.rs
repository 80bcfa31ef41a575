//! "From memory": what the prompt holds about something, in its own words, or that it holds nothing.
//!
//! Paths, quotations, numbers and names with signs in them are strong marks: if the wish has any, something
//! that bears none of them does not answer it. Results are preferred to what was merely said.

use super::scene::{Scene, Seen};
use super::speech;
use super::words::{names, words};

const ASKING: &[&str] = &["from memory", "without tools", "without using tools", "without calling"];

/// Words of such questions that say nothing about what is asked for.
const GENERIC: &[&str] = &[
    "memory", "tool", "tools", "using", "without", "call", "result", "output", "return", "answer", "again",
    "just", "only", "earlier", "before", "quote", "repeat", "exact", "word", "verbatim", "read", "file",
    "remember", "recall", "anything", "ask", "first", "last", "line", "about", "was", "know",
];

/// Says whether the wish is to be answered from memory.
pub(super) fn is_asked(wish: &str) -> bool {
    let wish = wish.to_lowercase();
    ASKING.iter().any(|asking| wish.contains(asking))
}

/// Answers the wish from what the prompt holds.
pub(super) fn recall(scene: &Scene) -> String {
    let marks = Marks::of(&scene.wish);
    if marks.is_empty() {
        return match scene.results.last() {
            Some(last) => speech::quote(std::slice::from_ref(last)),
            None => last_words(scene),
        };
    }
    let fitting = |seen: &Seen| marks.score(&format!("{}\n{}", seen.context, seen.text));
    if let Some(seen) = best(&scene.results, fitting) {
        return speech::quote(std::slice::from_ref(seen));
    }
    match best(&scene.said, |text| marks.score(text)) {
        Some(text) => format!("My prompt holds no tool result for that; it says:\n{}", marks.passage(text)),
        None => "My prompt does not hold that.".to_owned(),
    }
}

fn last_words(scene: &Scene) -> String {
    match scene.said.last() {
        Some(text) => format!("My prompt holds no tool result; it says:\n{text}"),
        None => "My prompt does not hold that.".to_owned(),
    }
}

/// Returns the last of those that score most, if any scores.
fn best<T>(all: &[T], score: impl Fn(&T) -> usize) -> Option<&T> {
    all.iter()
        .map(|one| (score(one), one))
        .filter(|(score, _)| *score > 0)
        .max_by_key(|(score, _)| *score)
        .map(|(_, one)| one)
}

/// What something must hold to be what is asked for.
struct Marks {
    strong: Vec<String>,
    weak: Vec<String>,
}

impl Marks {
    fn of(wish: &str) -> Self {
        let mut strong = Vec::new();
        let mut rest = String::new();
        for token in wish.split_whitespace() {
            let bare = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
            let has_sign = bare.contains(['/', '_', '.', '-', '@', '=']) || bare.contains("::");
            let has_digit = bare.contains(|c: char| c.is_ascii_digit());
            if bare.len() > 1 && (has_sign || has_digit) {
                strong.push(bare.to_lowercase());
            } else {
                rest.push_str(bare);
                rest.push(' ');
            }
        }
        let weak = words(&rest).into_iter().filter(|word| !GENERIC.contains(&word.as_str())).collect();
        Self { strong, weak }
    }

    fn is_empty(&self) -> bool {
        self.strong.is_empty() && self.weak.is_empty()
    }

    /// Says how well a text fits; not at all, if it bears none of the strong marks.
    fn score(&self, text: &str) -> usize {
        let strong = self.strong.iter().filter(|mark| names(text, mark)).count();
        if strong == 0 && !self.strong.is_empty() {
            return 0;
        }
        let held = words(text);
        strong * 10 + self.weak.iter().filter(|mark| held.contains(mark)).count()
    }

    /// Returns the lines of a text that fit; the whole of it, if no single line does.
    fn passage(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().filter(|line| self.score(line) > 0).collect();
        if lines.is_empty() { text.to_owned() } else { lines.join("\n") }
    }
}
