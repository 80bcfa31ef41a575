//! What a recall gives back: a pair whole or in part, the lines of it that are looked for, or what a search finds (R32).
//!
//! Everything comes from the history as it was before anything was taken out. A first answer is short: it says how to
//! have the rest, and a model that knows what it looks for gives the words.

use super::{Found, Handle};
use crate::{Entry, Part, joined_text};
use std::fmt::Write as _;

/// What of a pair is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Words that the lines have; none for all lines.
    pub words: Vec<String>,
    /// The first line.
    pub from_line: Option<u64>,
    /// The last line.
    pub to_line: Option<u64>,
}

/// The lines that were asked for are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} lines, and the first one that you asked for is behind them or behind the last one")]
pub struct NoSuchLines(pub usize);

/// How many bytes a first answer has: about 1,500 tokens of the densest text that is common.
const FIRST_BYTES: usize = 4_200;
/// How many bytes are given back at once where both ends were named.
const BYTES_MAX: usize = 24_000;
/// How many lines around one that was looked for are shown.
const NEIGHBOURS: usize = 2;
/// How much is shown of a long line, around what was looked for.
const LINE_BYTES: usize = 400;
/// How much of a call is shown in front of its result.
const HEAD_BYTES: usize = 600;
/// How many pairs a search finds at most, and how much it shows of each.
const HITS_MAX: usize = 8;
const SNIPPETS_MAX: usize = 3;
const SNIPPET_BYTES: usize = 160;

impl Wanted {
    /// Returns the words of a query, as they are compared.
    #[must_use]
    pub fn words_of(query: &str) -> Vec<String> {
        query.split_whitespace().map(str::to_lowercase).collect()
    }
}

/// Returns what is wanted of a pair.
///
/// # Errors
/// When it has no such lines.
pub fn recollect(found: Found, entries: &[Entry], wanted: &Wanted) -> Result<Vec<Part>, NoSuchLines> {
    let call = found.call.and_then(|at| entries[at].as_call());
    let head = call.map(|call| format!("{} {}", call.name, call.input.text()));
    let result = found.result.map(|at| &entries[at]);
    let parts = result.and_then(|entry| match (entry.as_return(), entry.as_said()) {
        (Some(returned), _) => Some(&returned.parts),
        (_, said) => said.map(|said| &said.parts),
    });
    let Some(parts) = parts else {
        return Ok(vec![Part::text(format!("{}\n[it has no result]", head.unwrap_or_default()))]);
    };

    let text = joined_text(parts);
    if !wanted.words.is_empty() {
        let within = lines_between(&text, wanted)?;
        return Ok(vec![Part::text(matching(head.as_deref(), &within, &wanted.words))]);
    }
    let lines = lines(&text, wanted.from_line, wanted.to_line)?;
    if wanted.from_line.is_some() || wanted.to_line.is_some() {
        return Ok(vec![Part::text(lines)]);
    }
    let text = head.map_or_else(|| lines.clone(), |head| format!("{}\n\n{lines}", clipped_head(&head)));
    let others = parts.iter().filter(|part| part.as_text().is_none()).cloned();
    Ok(std::iter::once(Part::text(text)).chain(others).collect())
}

fn clipped_head(head: &str) -> String {
    let shown = cut(head, HEAD_BYTES);
    if shown.len() == head.len() {
        return shown.to_owned();
    }
    format!("{shown}[.. {} more bytes of the call; a query finds them]", head.len() - shown.len())
}

/// A line with its number, from 1.
struct Line<'t> {
    number: usize,
    text: &'t str,
}

fn lines_between<'t>(text: &'t str, wanted: &Wanted) -> Result<Vec<Line<'t>>, NoSuchLines> {
    let count = text.lines().count();
    let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let first = wanted.from_line.map_or(1, |line| index(line).max(1));
    let last = wanted.to_line.map_or(count, index);
    if first > last.min(count) && count > 0 {
        return Err(NoSuchLines(count));
    }
    let all = text.lines().enumerate().map(|(at, text)| Line { number: at + 1, text });
    Ok(all.filter(|line| (first..=last).contains(&line.number)).collect())
}

/// Returns the lines that have the words, with their neighbours; if none has all of them, those that have any.
fn matching(head: Option<&str>, lines: &[Line<'_>], words: &[String]) -> String {
    let lower: Vec<String> = lines.iter().map(|line| line.text.to_lowercase()).collect();
    let has_all = |line: &String| words.iter().all(|word| line.contains(word.as_str()));
    let has_any = |line: &String| words.iter().any(|word| line.contains(word.as_str()));
    let is_strict = lower.iter().any(has_all);
    let is_match = |at: usize| if is_strict { has_all(&lower[at]) } else { has_any(&lower[at]) };
    let matches: Vec<usize> = (0..lines.len()).filter(|at| is_match(*at)).collect();

    let mut out = String::new();
    if let Some(head) = head {
        let at = words.iter().find_map(|word| head.to_lowercase().find(word.as_str()));
        let shown = at.map_or_else(|| cut(head, SNIPPET_BYTES).to_owned(), |at| around(head, at, LINE_BYTES));
        let _ = writeln!(out, "{shown}");
    }
    if matches.is_empty() {
        let _ = write!(out, "[no line of {} has {}]", lines.len(), words.join(" or "));
        return out;
    }
    let mut next = 0;
    for (nth, at) in matches.iter().enumerate() {
        let start = at.saturating_sub(NEIGHBOURS).max(next);
        let end = (at + NEIGHBOURS + 1).min(lines.len()).max(start);
        let mut piece = String::new();
        if start > next && next > 0 {
            piece.push_str("[..]\n");
        }
        for here in start..end {
            let place = words.iter().filter_map(|word| lower[here].find(word.as_str())).min();
            let shown = around(lines[here].text, place.unwrap_or(0), LINE_BYTES);
            let _ = writeln!(piece, "{}: {shown}", lines[here].number);
        }
        if !out.is_empty() && out.len() + piece.len() > FIRST_BYTES && nth > 0 {
            let line = lines[*at].number;
            let _ = write!(out, "[{nth} of {} lines found; go on with from_line {line}]", matches.len());
            return out;
        }
        out.push_str(&piece);
        next = end.max(next);
    }
    out
}

/// Returns the lines of a text from one to another, as many as can be given back at once.
///
/// # Errors
/// When there are no such lines.
pub fn lines(text: &str, from: Option<u64>, to: Option<u64>) -> Result<String, NoSuchLines> {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let first = from.map_or(0, |line| index(line).saturating_sub(1));
    let last = to.map_or(all.len(), |line| index(line).min(all.len()));
    if (from.is_some() || to.is_some()) && first >= last {
        return Err(NoSuchLines(all.len()));
    }
    let most = if from.is_some() && to.is_some() { BYTES_MAX } else { FIRST_BYTES };
    let mut given = String::new();
    for (at, line) in all[first..last].iter().enumerate() {
        if !given.is_empty() && given.len() + line.len() > most {
            let next = first + at + 1;
            let _ = write!(
                given,
                "[up to line {} of {}; go on with from_line {next}, or with a query for the lines that you need]",
                next - 1,
                all.len()
            );
            return Ok(given);
        }
        let shown = cut(line, most);
        given.push_str(shown);
        if shown.len() < line.len() {
            let _ = writeln!(
                given,
                "[.. {} more bytes of this line; a query finds them]",
                line.len() - shown.len()
            );
        }
    }
    Ok(given)
}

/// Lists pairs, one on each line, with the handle by which each can be had.
#[must_use]
pub fn list(pairs: &[(Found, Handle)], entries: &[Entry], tool: &str) -> String {
    let mut out = String::new();
    for (found, handle) in pairs {
        let Some(head) = head(*found, entries, tool) else { continue };
        let _ = writeln!(out, "{handle}: {}", cut(&head, SNIPPET_BYTES).replace('\n', " "));
    }
    out
}

/// Finds the pairs that have all words, the latest first, with the lines in which the words stand; calls of `tool` itself
/// are not searched.
#[must_use]
pub fn search(words: &[String], pairs: &[(Found, Handle)], entries: &[Entry], tool: &str) -> String {
    let mut out = String::new();
    let mut hits = 0;
    for (found, handle) in pairs.iter().rev() {
        let Some(head) = head(*found, entries, tool) else { continue };
        let result = found.result.and_then(|at| entries.get(at));
        let text = result.and_then(Entry::as_return).map(|returned| joined_text(&returned.parts));
        let text = text.unwrap_or_default();
        let all = format!("{head}\n{text}").to_lowercase();
        if !words.iter().all(|word| all.contains(word)) {
            continue;
        }
        hits += 1;
        if hits > HITS_MAX || out.len() > FIRST_BYTES {
            out.push_str("[there is more; search for further words]\n");
            break;
        }
        let _ = writeln!(out, "{handle}: {}", cut(&head, SNIPPET_BYTES));
        out.push_str(&snippets(words, &text));
    }
    if hits == 0 {
        format!("nothing in this conversation's tool history has {}", words.join(" "))
    } else {
        out
    }
}

/// Returns what a pair called; nothing for calls of `tool` itself.
fn head(found: Found, entries: &[Entry], tool: &str) -> Option<String> {
    let call = entries.get(found.call?)?.as_call().filter(|call| call.name != tool)?;
    Some(format!("{} {}", call.name, call.input.text()))
}

/// Returns the lines of a text in which the words occur, the first few of them; of a long line, what stands around the
/// word. Lines that have all of the words come before those that have some.
#[must_use]
pub fn snippets(words: &[String], text: &str) -> String {
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let lower = line.to_lowercase();
        let places: Vec<usize> = words.iter().filter_map(|word| lower.find(word.as_str())).collect();
        if let Some(first) = places.iter().min() {
            found.push((words.len() - places.len(), at, around(line, *first, SNIPPET_BYTES)));
        }
    }
    found.sort_by_key(|(missing, at, _)| (*missing, *at));
    found.truncate(SNIPPETS_MAX);
    found.sort_by_key(|(_, at, _)| *at);
    found.into_iter().map(|(_, at, line)| format!("  {}: {line}\n", at + 1)).collect()
}

/// Returns what stands around a place in a line. Tools that answer in JSON have all they say on one line.
fn around(line: &str, at: usize, bytes: usize) -> String {
    if line.len() <= bytes {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.min(line.len()).saturating_sub(bytes / 3));
    let before = if from > 0 { "…" } else { "" };
    let shown = cut(&line[from..], bytes);
    let after = if from + shown.len() < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

/// Returns at most so many bytes of a text, on the boundary of a character.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, result};
    use super::*;

    fn told(text: &str, wanted: &Wanted) -> String {
        let entries = [call("a", "Read", r#"{"file_path":"a.rs"}"#), result("a", text)];
        let found = Found { call: Some(0), result: Some(1) };
        joined_text(&recollect(found, &entries, wanted).unwrap()).to_string()
    }

    fn long_text() -> String {
        (1..=900).map(|line| format!("let value_{line} = compute({line});\n")).collect()
    }

    #[test]
    fn a_first_answer_is_short_and_says_how_to_have_the_rest() {
        let first = told(&long_text(), &Wanted::default());
        assert!(first.len() < FIRST_BYTES + 400 && first.contains("go on with from_line"), "{first}");
        let both = Wanted { from_line: Some(600), to_line: Some(800), ..Wanted::default() };
        assert_eq!(told(&long_text(), &both).lines().count(), 201);
    }

    #[test]
    fn a_query_gives_the_lines_that_have_the_words_with_their_neighbours() {
        let wanted = Wanted { words: Wanted::words_of("VALUE_700"), ..Wanted::default() };
        let found = told(&long_text(), &wanted);
        let numbers: Vec<&str> = found.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
        assert_eq!(numbers, ["698", "699", "700", "701", "702"]);
        let none = Wanted { words: Wanted::words_of("nowhere"), ..Wanted::default() };
        assert!(told("a\nb", &none).ends_with("[no line of 2 has nowhere]"));
        let many = Wanted { words: Wanted::words_of("compute"), ..Wanted::default() };
        let found = told(&long_text(), &many);
        assert!(found.len() < FIRST_BYTES + 400 && found.contains("of 900 lines found"), "{found}");
    }

    #[test]
    fn of_a_long_line_what_stands_around_the_word_is_shown() {
        let line = format!("{}é needle {}", "x".repeat(5_000), "y".repeat(5_000));
        let shown = snippets(&["needle".to_owned()], &line);
        assert!(shown.contains("é needle yyy"), "{shown}");
        assert!(shown.len() < SNIPPET_BYTES + 20, "{shown}");
        assert_eq!(snippets(&["short".to_owned()], "a short line"), "  1: a short line\n");
        let words = ["one".to_owned(), "two".to_owned()];
        assert_eq!(snippets(&words, "one\none\none\none two"), "  1: one\n  2: one\n  4: one two\n");
    }
}
