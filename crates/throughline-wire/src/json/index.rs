//! A JSON text and the index over it.
//!
//! The index is one flat list in source order: an array is followed by its items, an object by its keys and
//! values in turn, and every entry knows where the next sibling is. Sixteen bytes per value, no tree, no
//! copies; a [`Node`] is a reference to the document and a position in that list. A key given twice keeps
//! both places in [`Node::fields`], and [`Node::field`] answers with the last, as most readers of JSON do.

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::sync::Arc;

use throughline_core::Text;

use super::escape;
use super::scan::{self, Entry, SyntaxError};
use super::write::quote;

/// A JSON text that was checked once and can be read at any place.
#[derive(Debug, Clone)]
pub struct Document {
    text: Arc<str>,
    /// Never empty: the root comes first.
    entries: Vec<Entry>,
}

/// A value within a [`Document`].
#[derive(Clone, Copy)]
pub struct Node<'d> {
    document: &'d Document,
    index: u32,
}

/// What sort of JSON value a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, kept as it was written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Document {
    /// Reads a text that holds exactly one JSON value.
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, SyntaxError> {
        let text = text.into();
        let entries = scan::scan_whole(&text)?;
        Ok(Self { text, entries })
    }

    /// Reads the next value of a text that holds several, one after the other (as JSON Lines does).
    ///
    /// Returns the value and where it ended, which is the `start` of the next call, or `None` when only
    /// whitespace was left. All offsets count from the start of `text`, which the documents share.
    pub fn parse_prefix(text: &Arc<str>, start: usize) -> Result<Option<(Self, usize)>, SyntaxError> {
        let Some(entries) = scan::scan_next(text, start)? else { return Ok(None) };
        let document = Self { text: Arc::clone(text), entries };
        let end = document.root().entry().end as usize;
        Ok(Some((document, end)))
    }

    /// Returns the value that is the whole document.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node { document: self, index: 0 }
    }

    /// Returns the text this document was read from.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}

impl<'d> Node<'d> {
    /// Returns what sort of value this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.entry().kind
    }

    /// Returns the value exactly as it was written.
    #[must_use]
    pub fn raw(&self) -> &'d str {
        let entry = self.entry();
        &self.document.text[entry.start as usize..entry.end as usize]
    }

    /// Returns the value exactly as it was written, as a slice that shares the document's text.
    #[must_use]
    pub fn raw_text(&self) -> Text {
        let entry = self.entry();
        Text::slice(&self.document.text, entry.start as usize..entry.end as usize)
    }

    /// Returns where in the document's text the value starts, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.entry().start as usize
    }

    /// Tells whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// Returns the truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    /// Returns the number, if it is one written as a whole number that fits.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.number()?.parse().ok()
    }

    /// Returns the nearest floating-point number, if this is a number and there is a finite one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// Returns what the string means, if this is one; a copy only where something was escaped.
    #[must_use]
    pub fn as_str(&self) -> Option<Cow<'d, str>> {
        let content = self.content()?;
        Some(if self.entry().escaped {
            Cow::Owned(escape::unescape(content))
        } else {
            Cow::Borrowed(content)
        })
    }

    /// Returns what the string means, if this is one, sharing the document's text unless something was
    /// escaped; then the result is an allocation of its own of exactly the right size.
    #[must_use]
    pub fn as_text(&self) -> Option<Text> {
        let content = self.content()?;
        let entry = self.entry();
        Some(if entry.escaped {
            Text::from(escape::unescape(content))
        } else {
            Text::slice(&self.document.text, entry.start as usize + 1..entry.end as usize - 1)
        })
    }

    /// Tells whether this is a string that means `text`, without copying anything.
    #[must_use]
    pub fn is_str(&self, text: &str) -> bool {
        let is_meant = if self.entry().escaped { escape::means } else { str::eq };
        self.content().is_some_and(|content| is_meant(content, text))
    }

    /// Returns the items of an array in order; nothing for any other kind.
    pub fn items(self) -> impl Iterator<Item = Self> {
        self.children(Kind::Array)
    }

    /// Returns the fields of an object in the order written, repeated keys included; nothing for any
    /// other kind.
    pub fn fields(self) -> impl Iterator<Item = (Cow<'d, str>, Self)> {
        self.pairs().map(|(key, value)| (key.as_str().unwrap_or_default(), value))
    }

    /// Returns the field of an object with this name: the last one, if the key is repeated.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Self> {
        let same_name = self.pairs().filter(|(key, _)| key.is_str(name));
        same_name.last().map(|(_, value)| value)
    }

    /// Returns how many items or fields there are; zero for a value that is neither array nor object.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items().count() + self.pairs().count()
    }

    /// Tells whether there are no items and no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entry().skip == self.index + 1
    }

    /// Returns the way from the root to this value, like `messages[3].content[0].type`.
    ///
    /// Nothing is kept for this while reading: the way is found again from the root, since only errors ask.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = String::new();
        let mut at = self.document.root();
        while at.index != self.index {
            let item = at.items().enumerate().find(|(_, item)| item.contains(*self));
            let field = at.pairs().find(|(_, value)| value.contains(*self));
            at = match (item, field) {
                (Some((position, item)), _) => {
                    path.push_str(&format!("[{position}]"));
                    item
                }
                (_, Some((key, value))) => {
                    push_key(&mut path, &key.as_str().unwrap_or_default());
                    value
                }
                // A key, which only this module can hold as a node: the way leads to its object.
                (None, None) => break,
            };
        }
        path
    }

    /// Returns keys and values in the order written, the keys as nodes.
    pub(crate) fn pairs(self) -> impl Iterator<Item = (Self, Self)> {
        let mut parts = self.children(Kind::Object);
        iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    fn children(self, of: Kind) -> impl Iterator<Item = Self> {
        let end = self.entry().skip;
        let mut next = if self.kind() == of { self.index + 1 } else { end };
        iter::from_fn(move || {
            let child = Self { index: next, ..self };
            (next < end).then(|| {
                next = child.entry().skip;
                child
            })
        })
    }

    fn contains(self, other: Self) -> bool {
        (self.index..self.entry().skip).contains(&other.index)
    }

    fn number(&self) -> Option<&'d str> {
        (self.kind() == Kind::Number).then(|| self.raw())
    }

    /// Returns what stands between the quotes of a string.
    fn content(&self) -> Option<&'d str> {
        let entry = self.entry();
        let inside = entry.start as usize + 1..entry.end as usize - 1;
        (entry.kind == Kind::String).then(|| &self.document.text[inside])
    }

    fn entry(&self) -> &'d Entry {
        &self.document.entries[self.index as usize]
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.kind(), self.raw())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// Appends one key to a path: plain names as `.name`, anything else in brackets and quotes.
pub(super) fn push_key(path: &mut String, key: &str) {
    let starts_like_a_name = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !starts_like_a_name || key.contains(|other: char| !other.is_ascii_alphanumeric() && other != '_') {
        path.push_str(&format!("[{}]", quote(key)));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Document {
        Document::parse(text).expect("valid JSON")
    }

    #[test]
    fn values_keep_their_exact_text() {
        let document = parse(r#" {"n": 1.10, "big":12345678901234567890123, "o" : { "b":1, "a" :2 } } "#);
        let root = document.root();
        assert_eq!(root.field("n").expect("n").raw(), "1.10");
        assert_eq!(root.field("big").expect("big").raw(), "12345678901234567890123");
        assert_eq!(root.field("o").expect("o").raw_text(), r#"{ "b":1, "a" :2 }"#);
    }

    #[test]
    fn plain_strings_are_slices_of_the_body() {
        let document = parse(r#"["plain", "es\ncaped"]"#);
        let [plain, escaped] = document.root().items().collect::<Vec<_>>()[..] else { panic!("two items") };
        assert!(matches!(plain.as_str(), Some(Cow::Borrowed("plain"))));
        let text = plain.as_text().expect("a string");
        assert_eq!(text.as_ptr(), document.text()[2..].as_ptr());
        assert_eq!(escaped.as_text().expect("a string"), "es\ncaped");
    }

    #[test]
    fn scalars_are_read_only_as_what_they_are() {
        let document = parse(r#"[null, true, 7, -1, 2.5, "7", 1e999]"#);
        let items: Vec<_> = document.root().items().collect();
        assert!(items[0].is_null());
        assert_eq!(items[1].as_bool(), Some(true));
        assert_eq!(
            items.iter().map(Node::as_u64).collect::<Vec<_>>(),
            [None, None, Some(7), None, None, None, None]
        );
        assert_eq!(items[4].as_f64(), Some(2.5));
        assert_eq!(items[5].as_f64(), None);
        assert_eq!(items[6].as_f64(), None);
    }

    #[test]
    fn the_last_of_repeated_keys_wins_and_all_are_listed() {
        let document = parse(r#"{"a":1,"b":2,"\u0061":3}"#);
        assert_eq!(document.root().field("a").and_then(|a| a.as_u64()), Some(3));
        let keys: Vec<_> = document.root().fields().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "b", "a"]);
        assert_eq!(document.root().len(), 3);
    }

    #[test]
    fn lookups_in_other_kinds_find_nothing() {
        let document = parse(r#"["a", 1]"#);
        assert!(document.root().field("a").is_none());
        assert_eq!(document.root().fields().count(), 0);
        assert_eq!(document.root().items().filter(Node::is_empty).count(), 2);
        assert!(!document.root().is_empty());
    }

    #[test]
    fn a_path_leads_from_the_root_to_the_value() {
        let document = parse(r#"{"messages":[{},{"content":[{"type":"text","odd key":[[0]]}]}]}"#);
        let part = |name| {
            let messages = document.root().field("messages")?;
            messages.items().nth(1)?.field("content")?.items().next()?.field(name)
        };
        assert_eq!(document.root().path(), "");
        assert_eq!(part("type").expect("type").path(), "messages[1].content[0].type");
        let odd = part("odd key").and_then(|odd| odd.items().next()?.items().next()).expect("nested");
        assert_eq!(odd.path(), r#"messages[1].content[0]["odd key"][0][0]"#);
    }

    #[test]
    fn several_values_in_one_text_are_read_one_by_one() {
        let text: Arc<str> = Arc::from("{\"a\":1}\n\n[2]3 \"x\"\"y\"\n");
        let (mut raws, mut start) = (Vec::new(), 0);
        while let Some((document, end)) = Document::parse_prefix(&text, start).expect("valid") {
            raws.push(document.root().raw_text());
            start = end;
        }
        assert_eq!(raws, ["{\"a\":1}", "[2]", "3", "\"x\"", "\"y\""]);
        assert!(Document::parse_prefix(&text, text.len() + 1).expect("nothing").is_none());
    }

    #[test]
    fn a_bare_value_that_runs_into_the_next_is_refused() {
        let text: Arc<str> = Arc::from("1true");
        assert_eq!(Document::parse_prefix(&text, 0).expect_err("glued").offset, 1);
    }
}
