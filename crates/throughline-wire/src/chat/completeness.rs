//! Whether a JSON object or array that arrives in pieces is all there.
//!
//! A stream does not say that a call has all its arguments until the whole answer ends. This looks at each
//! byte once and only counts brackets: it answers "complete" a little too willingly for broken JSON, which
//! costs nothing, since a complete call is only closed once another one begins.

/// How far the text has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Completeness {
    /// Nothing but white space so far.
    #[default]
    Unbegun,
    /// Inside the object or array.
    Open {
        /// How many brackets are open.
        depth: u32,
        /// Where in a string the text stands.
        string: InString,
    },
    /// The outermost bracket was closed.
    Complete,
    /// Neither an object nor an array, so there is no telling.
    Other,
}

/// Where in a string the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InString {
    /// Outside.
    No,
    /// Inside.
    Yes,
    /// Inside, behind a backslash.
    Escaped,
}

impl Completeness {
    /// Says how far the text has come with another piece.
    pub fn after(self, piece: &str) -> Self {
        piece.bytes().fold(self, Self::advance)
    }

    fn advance(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Unbegun, b' ' | b'\t' | b'\n' | b'\r') => Self::Unbegun,
            (Self::Unbegun, b'{' | b'[') => Self::Open { depth: 1, string: InString::No },
            (Self::Unbegun, _) => Self::Other,
            (Self::Open { depth, string }, byte) => Self::inside(depth, string, byte),
            (Self::Complete | Self::Other, _) => self,
        }
    }

    const fn inside(depth: u32, string: InString, byte: u8) -> Self {
        let (depth, string) = match (string, byte) {
            (InString::Escaped, _) => (depth, InString::Yes),
            (InString::Yes, b'\\') => (depth, InString::Escaped),
            (InString::Yes, b'"') => (depth, InString::No),
            (InString::No, b'"') => (depth, InString::Yes),
            (InString::No, b'{' | b'[') => (depth + 1, InString::No),
            (InString::No, b'}' | b']') if depth == 1 => return Self::Complete,
            (InString::No, b'}' | b']') => (depth - 1, InString::No),
            (string, _) => (depth, string),
        };
        Self::Open { depth, string }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;
    use proptest::prelude::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        let after = |text| Completeness::default().after(text);
        assert_eq!(after(r#" {"a":"}\"}","b":[1]}"#), Completeness::Complete);
        assert!(matches!(after(r#"{"a":"}\"}"#), Completeness::Open { .. }));
        assert_eq!(after("12"), Completeness::Other);
        assert_eq!(after("\n"), Completeness::Unbegun);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn whatever_parses_is_complete_and_no_prefix_of_it_is(text in r#"\{"[a-z{}\[\]]{0,4}(\\")?":(\[[0-9]?\]|\{\}|"[}\]]*")\}"#, cut in 0usize..40) {
            prop_assume!(Document::parse(text.as_str()).is_ok());
            let cut = cut % text.len();
            prop_assert_eq!(Completeness::default().after(&text), Completeness::Complete);
            prop_assert_ne!(Completeness::default().after(&text[..cut]), Completeness::Complete);
            prop_assert_eq!(Completeness::default().after(&text[..cut]).after(&text[cut..]), Completeness::Complete);
        }
    }
}
