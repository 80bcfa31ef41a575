//! What a call of `recall` gives back: a pair by its handle, whole or in part, the list of a whole range, or what a
//! search finds.
//!
//! Everything comes from the history as it was before anything was taken out. Pure.

use std::fmt::Write as _;
use throughline_core::plan::{Found, Handle, HandleRange, find, find_range};
use throughline_core::{Entry, Ledger, Part, Text, joined_text};
use throughline_wire::json::Document;

/// What a model asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Pair { handle: Handle, from: Option<u64>, to: Option<u64> },
    Range { range: HandleRange, words: Vec<String>, from: Option<u64>, to: Option<u64> },
    Search(Vec<String>),
}

/// Why there is nothing to give back; said to the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecollectError {
    /// The arguments are no JSON object.
    #[error("the arguments must be a JSON object with a `handle` or a `query`")]
    NoObject,
    /// Neither a handle nor a query was given.
    #[error(
        "give a `handle`, as it stands where something was left out, or a `query` with words to search for"
    )]
    NoWish,
    /// That is no handle.
    #[error("`{0}` is not a handle; handles have eight letters and digits, such as e5m8fv2z")]
    NoHandle(Text),
    /// Nothing has the handle.
    #[error("nothing in this conversation has the handle `{0}`; search for it with a `query`")]
    Unknown(HandleRange),
    /// The result, or the list, has fewer lines.
    #[error(
        "there are {0} lines, and the first one that you asked for is behind them or behind the last one"
    )]
    NoLines(usize),
}

/// How much of a result is given back at once.
const CHARS_MAX: usize = 24_000;
/// How many pairs a search finds at most, and how much it shows of each.
const HITS_MAX: usize = 8;
const SNIPPETS_MAX: usize = 3;
const SNIPPET_CHARS: usize = 160;

/// Returns what the arguments of a call ask for among `entries`; calls of `tool` itself are not searched.
///
/// # Errors
/// When they ask for nothing that there is.
pub fn recollect(arguments: &str, entries: &[Entry], tool: &Text) -> Result<Vec<Part>, RecollectError> {
    match Wish::read(arguments)? {
        Wish::Pair { handle, from, to } => {
            let unknown = RecollectError::Unknown(HandleRange { first: handle, last: handle });
            pair(find(handle, entries).ok_or(unknown)?, entries, from, to)
        }
        Wish::Range { range, words, from, to } => {
            let found = find_range(range, entries);
            if found.is_empty() {
                return Err(RecollectError::Unknown(range));
            }
            let told = if words.is_empty() {
                lines(&list(&found, entries, tool), from, to)?
            } else {
                search(&words, &found, entries, tool)
            };
            Ok(vec![Part::text(told)])
        }
        Wish::Search(words) => {
            let ledger = Ledger::of(entries);
            let pairs = ledger.pairs().iter();
            let all: Vec<Found> =
                pairs.map(|pair| Found { call: Some(pair.call), result: pair.result }).collect();
            Ok(vec![Part::text(search(&words, &all, entries, tool))])
        }
    }
}

impl Wish {
    fn read(arguments: &str) -> Result<Self, RecollectError> {
        let document = Document::parse(arguments).map_err(|_| RecollectError::NoObject)?;
        let root = document.root();
        let text = |name: &str| {
            root.field(name).and_then(|value| value.as_text()).filter(|text| !text.trim().is_empty())
        };
        let number = |name: &str| root.field(name).and_then(|value| value.as_u64());
        if let Some(handle) = text("handle") {
            // Models copy the word in front of it as well.
            let last = handle.split_whitespace().last().unwrap_or_default().trim_matches(['`', ']', '[']);
            let range = HandleRange::parse(last).ok_or_else(|| RecollectError::NoHandle(handle.clone()))?;
            let (from, to) = (number("from_line"), number("to_line"));
            return Ok(match range.single() {
                Some(handle) => Self::Pair { handle, from, to },
                None => Self::Range {
                    range,
                    words: text("query").map_or_else(Vec::new, |text| words(&text)),
                    from,
                    to,
                },
            });
        }
        Ok(Self::Search(words(&text("query").ok_or(RecollectError::NoWish)?)))
    }
}

/// Returns the words of a query, as they are compared.
fn words(query: &str) -> Vec<String> {
    query.split_whitespace().map(str::to_lowercase).collect()
}

fn pair(
    found: Found,
    entries: &[Entry],
    from: Option<u64>,
    to: Option<u64>,
) -> Result<Vec<Part>, RecollectError> {
    let call = found.call.and_then(|at| entries[at].as_call());
    let head = call.map(|call| format!("{} {}", call.name, call.input.text()));
    let Some(returned) = found.result.and_then(|at| entries[at].as_return()) else {
        let head = head.unwrap_or_default();
        return Ok(vec![Part::text(format!("{head}\n[it has no result]"))]);
    };
    let text = joined_text(&returned.parts);
    let lines = lines(&text, from, to)?;
    if from.is_some() || to.is_some() {
        return Ok(vec![Part::text(lines)]);
    }
    let text = head.map_or_else(|| lines.clone(), |head| format!("{head}\n\n{lines}"));
    let others = returned.parts.iter().filter(|part| part.as_text().is_none()).cloned();
    Ok(std::iter::once(Part::text(text)).chain(others).collect())
}

/// Returns the lines of a text from one to another, as many as can be given back at once.
pub(crate) fn lines(text: &str, from: Option<u64>, to: Option<u64>) -> Result<String, RecollectError> {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let first = from.map_or(0, |line| index(line).saturating_sub(1));
    let last = to.map_or(all.len(), |line| index(line).min(all.len()));
    if (from.is_some() || to.is_some()) && first >= last {
        return Err(RecollectError::NoLines(all.len()));
    }
    let mut given = String::new();
    for (at, line) in all[first..last].iter().enumerate() {
        if !given.is_empty() && given.len() + line.len() > CHARS_MAX {
            let next = first + at + 1;
            let _ = write!(given, "[up to line {} of {}; go on with from_line {next}]", next - 1, all.len());
            return Ok(given);
        }
        given.push_str(cut(line, CHARS_MAX));
    }
    Ok(given)
}

/// Lists pairs, one on each line, with the handle by which each can be had.
fn list(pairs: &[Found], entries: &[Entry], tool: &Text) -> String {
    let mut out = String::new();
    for found in pairs {
        let Some((head, handle)) = head(*found, entries, tool) else { continue };
        let _ = writeln!(out, "{handle}: {}", cut(&head, SNIPPET_CHARS).replace('\n', " "));
    }
    out
}

/// Returns what a pair called, and its handle; nothing for calls of `tool` itself.
fn head(found: Found, entries: &[Entry], tool: &Text) -> Option<(String, Handle)> {
    let call = found.call.and_then(|at| entries.get(at));
    let called = call.and_then(Entry::as_call).filter(|call| call.name != *tool)?;
    let handle = Handle::of(call, found.result.and_then(|at| entries.get(at)));
    Some((format!("{} {}", called.name, called.input.text()), handle))
}

fn search(words: &[String], pairs: &[Found], entries: &[Entry], tool: &Text) -> String {
    let mut out = String::new();
    let mut hits = 0;
    for found in pairs.iter().rev() {
        let Some((head, handle)) = head(*found, entries, tool) else { continue };
        let result = found.result.and_then(|at| entries.get(at));
        let text = result.and_then(Entry::as_return).map(|returned| joined_text(&returned.parts));
        let text = text.unwrap_or_default();
        let all = format!("{head}\n{text}").to_lowercase();
        if !words.iter().all(|word| all.contains(word)) {
            continue;
        }
        hits += 1;
        if hits > HITS_MAX {
            out.push_str("[there is more; search for further words]\n");
            break;
        }
        let _ = writeln!(out, "{handle}: {}", cut(&head, SNIPPET_CHARS));
        out.push_str(&snippets(words, &text));
    }
    if hits == 0 {
        format!("nothing in this conversation's tool history has {}", words.join(" "))
    } else {
        out
    }
}

/// Returns the lines of a text in which one of the words occurs, the first few of them; of a long line, what
/// stands around the word.
pub(crate) fn snippets(words: &[String], text: &str) -> String {
    let found = text.lines().enumerate().filter_map(|(at, line)| {
        let line = line.trim();
        let lower = line.to_lowercase();
        let word = words.iter().filter_map(|word| lower.find(word.as_str())).min()?;
        Some((at, around(line, word)))
    });
    found.take(SNIPPETS_MAX).map(|(at, line)| format!("  {}: {line}\n", at + 1)).collect()
}

/// Returns what stands around a place in a line. Tools that answer in JSON have all they say on one line.
fn around(line: &str, at: usize) -> String {
    if line.len() <= SNIPPET_CHARS {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.min(line.len()).saturating_sub(SNIPPET_CHARS / 3));
    let before = if from > 0 { "…" } else { "" };
    let shown = cut(&line[from..], SNIPPET_CHARS);
    let after = if from + shown.len() < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

/// Returns at most so many bytes of a text, on the boundary of a character.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Input, Kind, Outcome, Return};

    fn entries() -> Vec<Entry> {
        let call = |id: &str, path: &str| {
            let input = Input::Arguments(format!(r#"{{"path":"{path}"}}"#).into());
            let call = Call { id: id.into(), item_id: None, name: "read".into(), namespace: None, input };
            Entry::new(Kind::Called(call))
        };
        let result = |id: &str, text: &str| {
            let parts = vec![Part::text(text)];
            let (outcome, call_id) = (Outcome::Ok, Some(id.into()));
            let returned = Return { call_id, item_id: None, name: None, parts, outcome, freeform: false };
            Entry::new(Kind::Returned(returned))
        };
        vec![
            call("a", "one.rs"),
            result("a", "Alpha\nbeta\ngamma\n"),
            call("b", "two.rs"),
            result("b", "delta"),
        ]
    }

    fn said(arguments: &str) -> Result<String, RecollectError> {
        let parts = recollect(arguments, &entries(), &Text::from_static("recall"))?;
        Ok(joined_text(&parts).to_string())
    }

    #[test]
    fn of_a_long_line_what_stands_around_the_word_is_shown() {
        let line = format!("{}é needle {}", "x".repeat(5_000), "y".repeat(5_000));
        let shown = snippets(&["needle".to_owned()], &line);
        assert!(shown.contains("é needle yyy"), "{shown}");
        assert!(shown.len() < SNIPPET_CHARS + 20, "{shown}");
        assert_eq!(snippets(&["short".to_owned()], "a short line"), "  1: a short line\n");
    }

    #[test]
    fn a_pair_is_had_by_its_handle_whole_and_in_part() {
        let entries = entries();
        let handle = Handle::of(entries.first(), entries.get(1));
        let whole = said(&format!(r#"{{"handle":"recall {handle}"}}"#)).unwrap();
        assert_eq!(whole, "read {\"path\":\"one.rs\"}\n\nAlpha\nbeta\ngamma\n");
        let part = said(&format!(r#"{{"handle":"{handle}","from_line":2,"to_line":2}}"#)).unwrap();
        assert_eq!(part, "beta\n");
        let behind = said(&format!(r#"{{"handle":"{handle}","from_line":9}}"#));
        assert_eq!(behind, Err(RecollectError::NoLines(3)));
    }

    #[test]
    fn a_range_lists_its_pairs_and_can_be_searched() {
        let entries = entries();
        let (a, b) =
            (Handle::of(entries.first(), entries.get(1)), Handle::of(entries.get(2), entries.get(3)));
        let listed = said(&format!(r#"{{"handle":"recall {a}..{b}"}}"#)).unwrap();
        assert_eq!(listed, format!("{a}: read {{\"path\":\"one.rs\"}}\n{b}: read {{\"path\":\"two.rs\"}}\n"));
        let second = said(&format!(r#"{{"handle":"{a}..{b}","from_line":2}}"#)).unwrap();
        assert!(second.starts_with(&format!("{b}: read")), "{second}");
        let found = said(&format!(r#"{{"handle":"{a}..{b}","query":"delta"}}"#)).unwrap();
        assert!(found.starts_with(&format!("{b}: ")) && found.contains("1: delta"), "{found}");
        assert!(matches!(said(r#"{"handle":"aaaaaaaa..bbbbbbbb"}"#), Err(RecollectError::Unknown(_))));
    }

    #[test]
    fn a_search_wants_every_word() {
        let found = said(r#"{"query":"ALPHA one.rs"}"#).unwrap();
        assert!(found.contains("read {\"path\":\"one.rs\"}\n  1: Alpha\n"), "{found}");
        assert!(said(r#"{"query":"alpha delta"}"#).unwrap().starts_with("nothing"));
    }

    #[test]
    fn what_makes_no_sense_is_explained() {
        assert_eq!(said("nonsense"), Err(RecollectError::NoObject));
        assert_eq!(said("{}"), Err(RecollectError::NoWish));
        assert_eq!(said(r#"{"handle":"?"}"#), Err(RecollectError::NoHandle("?".into())));
        assert!(matches!(said(r#"{"handle":"aaaaaaaa"}"#), Err(RecollectError::Unknown(_))));
    }
}
