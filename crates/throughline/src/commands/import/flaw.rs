//! What in a session could not be read as it is, and how that is said.

use std::fmt;
use throughline_carry::Damage;

/// Something in a session that could not be read as it is. The rest was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A line was left out.
    Line {
        /// Its number.
        number: u64,
        /// Why.
        damage: Damage,
    },
    /// A part of a document was left out.
    Part(Damage),
    /// A line holds bytes that are no text, which the history cannot keep.
    Bytes {
        /// Its number.
        number: u64,
        /// Where in it the first one is.
        at: usize,
    },
}

impl Flaw {
    /// Returns the number of the line that it is in, if it is in a line.
    pub const fn line(&self) -> Option<u64> {
        match self {
            Self::Line { number, .. } | Self::Bytes { number, .. } => Some(*number),
            Self::Part(_) => None,
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { number, damage } => {
                write!(f, "line {number} could not be read and was left out: {damage}")
            }
            Self::Part(damage) => write!(f, "not all of it could be read; left out: {damage}"),
            Self::Bytes { number, at } => {
                write!(
                    f,
                    "line {number} is not UTF-8 (from byte {at} on): what is no text in it became U+FFFD"
                )
            }
        }
    }
}

/// Makes text of bytes; says where they were none.
pub fn text_of(bytes: Vec<u8>) -> (String, Option<usize>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
        }
    }
}

/// Makes text of a whole document; says in which line it was none.
pub fn document_of(bytes: Vec<u8>) -> (String, Vec<Flaw>) {
    let (text, first) = text_of(bytes);
    let flaw = first.map(|first| {
        let before = &text[..first];
        let begins = before.rfind('\n').map_or(0, |last| last + 1);
        Flaw::Bytes { number: before.matches('\n').count() as u64 + 1, at: first - begins }
    });
    (text, flaw.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_found_by_line() {
        let (text, flaws) = document_of(b"{\n \"a\": \"\xff\"}".to_vec());
        assert_eq!(text, "{\n \"a\": \"\u{fffd}\"}");
        assert_eq!(flaws, [Flaw::Bytes { number: 2, at: 7 }]);
        assert_eq!(document_of(b"{}\n".to_vec()).1, []);
    }
}
