//! What a call of `recall` gives back: a pair by its handle, whole or in part, or what a search finds.
//!
//! Everything comes from the history as it was before anything was taken out. Pure.

use std::fmt::Write as _;
use throughline_core::plan::{Found, Handle, find};
use throughline_core::{Entry, Ledger, Part, Text, joined_text};
use throughline_wire::json::Document;

/// What a model asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Pair { handle: Handle, from: Option<u64>, to: Option<u64> },
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
    Unknown(Handle),
    /// The result has fewer lines.
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
            let found = find(handle, entries).ok_or(RecollectError::Unknown(handle))?;
            pair(found, entries, from, to)
        }
        Wish::Search(words) => Ok(vec![Part::text(search(&words, entries, tool))]),
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
            let handle = Handle::parse(last).ok_or_else(|| RecollectError::NoHandle(handle.clone()))?;
            return Ok(Self::Pair { handle, from: number("from_line"), to: number("to_line") });
        }
        let query = text("query").ok_or(RecollectError::NoWish)?;
        Ok(Self::Search(query.split_whitespace().map(str::to_lowercase).collect()))
    }
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
fn lines(text: &str, from: Option<u64>, to: Option<u64>) -> Result<String, RecollectError> {
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

fn search(words: &[String], entries: &[Entry], tool: &Text) -> String {
    let ledger = Ledger::of(entries);
    let mut out = String::new();
    let mut hits = 0;
    for pair in ledger.pairs().iter().rev() {
        let (call, result) = (entries.get(pair.call), pair.result.and_then(|at| entries.get(at)));
        let Some(called) = call.and_then(Entry::as_call).filter(|call| call.name != *tool) else { continue };
        let text = result.and_then(Entry::as_return).map(|returned| joined_text(&returned.parts));
        let text = text.unwrap_or_default();
        let head = format!("{} {}", called.name, called.input.text());
        let all = format!("{head}\n{text}").to_lowercase();
        if !words.iter().all(|word| all.contains(word)) {
            continue;
        }
        hits += 1;
        if hits > HITS_MAX {
            out.push_str("[there is more; search for further words]\n");
            break;
        }
        let _ = writeln!(out, "{}: {}", Handle::of(call, result), cut(&head, SNIPPET_CHARS));
        out.push_str(&snippets(words, &text));
    }
    if hits == 0 {
        format!("nothing in this conversation's tool history has {}", words.join(" "))
    } else {
        out
    }
}

/// Returns the lines of a text in which one of the words occurs, the first few of them.
fn snippets(words: &[String], text: &str) -> String {
    let has_word = |line: &str| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word))
    };
    let lines = text.lines().enumerate().filter(|(_, line)| has_word(line)).take(SNIPPETS_MAX);
    lines.map(|(at, line)| format!("  {}: {}\n", at + 1, cut(line.trim(), SNIPPET_CHARS))).collect()
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
