//! What a call of `recall` gives back: a pair by its handle, whole or in part, the list of a whole range, or what a
//! search finds.
//!
//! Everything comes from the history as it was before anything was taken out. Pure.

use throughline_core::plan::{
    self, Found, Handle, HandleRange, NoSuchLines, Wanted, find, find_range, handles, list, search,
};
use throughline_core::{Entry, Part, Text};
use throughline_wire::json::Document;

/// What a model asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Pair { handle: Handle, wanted: Wanted },
    Range { range: HandleRange, wanted: Wanted },
    Search(Vec<String>),
}

/// Why there is nothing to give back; said to the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecollectError {
    /// The arguments are no JSON object.
    #[error("the arguments must be a JSON object with a `handle` or a `query`")]
    NoObject,
    /// Neither a handle nor a query was given.
    #[error("give a `handle`, as it stands where something was cut, or a `query` with words to search for")]
    NoWish,
    /// That is no handle.
    #[error("`{0}` is not a handle; handles have four to eight letters and digits, such as e5m8")]
    NoHandle(Text),
    /// Nothing has the handle.
    #[error("nothing in this conversation has the handle `{0}`; search for it with a `query`")]
    Unknown(HandleRange),
    /// The result, or the list, has fewer lines.
    #[error(transparent)]
    NoLines(#[from] NoSuchLines),
}

/// Returns what the arguments of a call ask for among `entries`; calls of `tool` itself are not searched.
///
/// # Errors
/// When they ask for nothing that there is.
pub fn recollect(arguments: &str, entries: &[Entry], tool: &Text) -> Result<Vec<Part>, RecollectError> {
    match Wish::read(arguments)? {
        Wish::Pair { handle, wanted } => {
            let unknown = RecollectError::Unknown(HandleRange { first: handle, last: handle });
            let found = find(handle, entries).ok_or(unknown)?;
            Ok(plan::recollect(found, entries, &wanted)?)
        }
        Wish::Range { range, wanted } => {
            let found = find_range(range, entries);
            if found.is_empty() {
                return Err(RecollectError::Unknown(range));
            }
            let pairs = named(&found, entries);
            let told = if wanted.words.is_empty() {
                plan::lines(&list(&pairs, entries, tool), wanted.from_line, wanted.to_line)?
            } else {
                search(&wanted.words, &pairs, entries, tool)
            };
            Ok(vec![Part::text(told)])
        }
        Wish::Search(words) => Ok(vec![Part::text(search(&words, &handles(entries), entries, tool))]),
    }
}

/// Returns the pairs that were found with their handles.
fn named(found: &[Found], entries: &[Entry]) -> Vec<(Found, Handle)> {
    handles(entries).into_iter().filter(|(pair, _)| found.contains(pair)).collect()
}

impl Wish {
    fn read(arguments: &str) -> Result<Self, RecollectError> {
        let document = Document::parse(arguments).map_err(|_| RecollectError::NoObject)?;
        let root = document.root();
        let text = |name: &str| {
            root.field(name).and_then(|value| value.as_text()).filter(|text| !text.trim().is_empty())
        };
        let number = |name: &str| root.field(name).and_then(|value| value.as_u64());
        let words = text("query").map_or_else(Vec::new, |text| Wanted::words_of(&text));
        let Some(handle) = text("handle") else {
            return if words.is_empty() { Err(RecollectError::NoWish) } else { Ok(Self::Search(words)) };
        };

        // Models copy the word in front of it as well.
        let last = handle.split_whitespace().last().unwrap_or_default().trim_matches(['`', ']', '[']);
        let range = HandleRange::parse(last).ok_or_else(|| RecollectError::NoHandle(handle.clone()))?;
        let wanted = Wanted { words, from_line: number("from_line"), to_line: number("to_line") };
        Ok(match range.single() {
            Some(handle) => Self::Pair { handle, wanted },
            None => Self::Range { range, wanted },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Call, Input, Kind, Outcome, Return, joined_text};

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
        assert_eq!(behind, Err(RecollectError::NoLines(NoSuchLines(3))));
        let short = handle.short();
        let found = said(&format!(r#"{{"handle":"{short}","query":"GAMMA"}}"#)).unwrap();
        assert_eq!(found, "read {\"path\":\"one.rs\"}\n1: Alpha\n2: beta\n3: gamma\n");
    }

    #[test]
    fn a_range_lists_its_pairs_and_can_be_searched() {
        let entries = entries();
        let (a, b) =
            (Handle::of(entries.first(), entries.get(1)), Handle::of(entries.get(2), entries.get(3)));
        let (a, b) = (a.short(), b.short());
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
