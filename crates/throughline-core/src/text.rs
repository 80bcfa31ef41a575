//! Text that is shared rather than copied.
//!
//! A request of an agent is mostly text that nobody will change: it is read once and written once. A
//! [`Text`] is therefore a slice of the body it came from, or a shared allocation of its own, and cloning
//! one copies no characters. That is what lets a rendered prompt and the record hold the same entries.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A piece of immutable UTF-8 text that is cheap to clone.
#[derive(Clone)]
pub struct Text(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    // Offsets are `u32`: a body over 4 GiB is refused long before it gets here, and entries are many.
    Shared { source: Arc<str>, start: u32, end: u32 },
}

impl Text {
    /// Returns a text that lives as long as the program.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Repr::Static(text))
    }

    /// Returns the given range of `source` without copying it.
    ///
    /// A range that is not on character boundaries, or a source beyond 4 GiB, has no such slice; the
    /// nearest meaning is a copy of nothing, which would lose content, so this panics instead.
    ///
    /// # Panics
    /// When `range` is out of bounds or splits a character.
    #[must_use]
    pub fn slice(source: &Arc<str>, range: Range<usize>) -> Self {
        assert!(source.get(range.clone()).is_some(), "range {range:?} is not a slice of the source");
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) => Self(Repr::Shared { source: Arc::clone(source), start, end }),
            _ => Self::from(&source[range]),
        }
    }

    /// Returns the given range of this text without copying it.
    ///
    /// # Panics
    /// When `range` is out of bounds or splits a character.
    #[must_use]
    pub fn sliced(&self, range: Range<usize>) -> Self {
        assert!(self.as_str().get(range.clone()).is_some(), "range {range:?} is not a slice of the text");
        match &self.0 {
            Repr::Static(text) => Self::from_static(&text[range]),
            Repr::Shared { source, start, .. } => {
                let start = *start as usize;
                Self::slice(source, start + range.start..start + range.end)
            }
        }
    }

    /// Returns the text as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(text) => text,
            Repr::Shared { source, start, end } => &source[*start as usize..*end as usize],
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from_static("")
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(Arc::<str>::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(Arc::<str>::from(text))
    }
}

impl From<Arc<str>> for Text {
    fn from(source: Arc<str>) -> Self {
        let end = u32::try_from(source.len()).expect("a single text stays below 4 GiB");
        Self(Repr::Shared { source, start: 0, end })
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl std::borrow::Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_slice_shares_its_source_too() {
        let source: Arc<str> = Arc::from("one two three");
        let text = Text::slice(&source, 4..13).sliced(4..9);
        assert_eq!(text, "three");
        assert!(std::ptr::eq(text.as_str(), &raw const source[8..13]));
        assert_eq!(Text::from_static("abc").sliced(1..2), "b");
    }

    #[test]
    fn a_slice_shares_its_source() {
        let source: Arc<str> = Arc::from("one two");
        let text = Text::slice(&source, 4..7);
        assert_eq!(text, "two");
        assert_eq!(Arc::strong_count(&source), 2);
    }

    #[test]
    #[should_panic(expected = "not a slice")]
    fn a_slice_never_splits_a_character() {
        let source: Arc<str> = Arc::from("é");
        let _ = Text::slice(&source, 0..1);
    }
}
