//! The inside of a JSON string: which bytes stand for themselves, and how the others are written and read.
//!
//! Bodies are mostly strings, and strings are mostly plain, so everything here moves in runs: find the next
//! byte that is not plain, copy what lies before it, deal with that one byte. Reading assumes a string that
//! the scanner has already accepted; it never fails, and half a surrogate pair reads as U+FFFD.

use memchr::memchr;

/// Returns where the plain run starting at `from` ends: at a quote, a backslash, a control character or the
/// end of `bytes`.
///
/// Runs in source code are some thirty bytes long. At that length eight bytes at a time beat both a table and
/// a vectorised search for the quote with a second look for control characters; only long prose prefers those.
pub(super) fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or_default();
    at + tail.iter().take_while(|byte| is_plain(**byte)).count()
}

/// Appends `text` to `out` with everything escaped that JSON wants escaped, and nothing else.
pub(super) fn escape_into(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let end = plain_end(bytes, from);
        out.push_str(&text[from..end]);
        let Some(byte) = bytes.get(end) else { return };
        out.push_str(match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            control => CONTROL_ESCAPES[usize::from(*control)],
        });
        from = end + 1;
    }
}

/// Returns what the string with this content (the text between its quotes) means.
pub(super) fn unescape(content: &str) -> String {
    // An escape is never shorter than what it stands for.
    let mut out = String::with_capacity(content.len());
    for piece in Pieces::of(content) {
        match piece {
            Piece::Run(run) => out.push_str(run),
            Piece::Escape(character) => out.push(character),
        }
    }
    out
}

/// Tells whether the string with this content means `text`, without building what it means.
pub(super) fn means(content: &str, text: &str) -> bool {
    let unmatched = Pieces::of(content).try_fold(text, |rest, piece| match piece {
        Piece::Run(run) => rest.strip_prefix(run),
        Piece::Escape(character) => rest.strip_prefix(character),
    });
    unmatched == Some("")
}

/// A part of a string's content: a run that stands for itself, or one escape.
enum Piece<'t> {
    Run(&'t str),
    Escape(char),
}

struct Pieces<'t> {
    rest: &'t str,
}

impl<'t> Pieces<'t> {
    fn of(content: &'t str) -> Self {
        Self { rest: content }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let (piece, length) = match self.rest.as_bytes() {
            [] => return None,
            [b'\\', b'u', ..] => unicode_escape(self.rest),
            [b'\\', letter, ..] => (Piece::Escape(simple_escape(*letter)), 2),
            bytes => {
                let length = memchr(b'\\', bytes).unwrap_or(bytes.len());
                (Piece::Run(&self.rest[..length]), length)
            }
        };
        self.rest = &self.rest[length..];
        Some(piece)
    }
}

fn simple_escape(letter: u8) -> char {
    match letter {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        itself => char::from(itself),
    }
}

/// Reads the `\uXXXX` at the start of `text`, together with a second one when the two are a pair.
fn unicode_escape(text: &str) -> (Piece<'_>, usize) {
    let units = [code_unit(text), text.get(6..).and_then(code_unit)];
    match char::decode_utf16(units.into_iter().flatten()).next() {
        Some(Ok(character)) => (Piece::Escape(character), 6 * character.len_utf16()),
        _ => (Piece::Escape(char::REPLACEMENT_CHARACTER), 6),
    }
}

fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// Marks the high bit of every byte of `word` that is not plain.
///
/// The borrow of a subtraction may also mark bytes above the first one marked, so only the lowest mark
/// is to be trusted; it is the only one wanted.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    // XOR with ASCII leaves the high bit alone, so one look at the word itself serves all three.
    (control | quote | backslash) & !word & HIGHS
}

const CONTROL_ESCAPES: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b", "\\t",
    "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013",
    "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c",
    "\\u001d", "\\u001e", "\\u001f",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape_into(&mut out, text);
        out
    }

    #[test]
    fn every_byte_is_found_wherever_it_stands_in_a_word() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut bytes = [b'a'; 20];
                bytes[place] = byte;
                let expected = if is_plain(byte) { 20 } else { place };
                assert_eq!(plain_end(&bytes, 0), expected, "byte {byte:#x} at {place}");
            }
        }
    }

    #[test]
    fn only_what_json_demands_is_escaped() {
        assert_eq!(
            escaped("a\"b\\c/\n\r\t\u{8}\u{c}\u{1b}\u{7f}é\u{2028}"),
            "a\\\"b\\\\c/\\n\\r\\t\\b\\f\\u001b\u{7f}é\u{2028}"
        );
    }

    #[test]
    fn a_surrogate_pair_is_one_character() {
        assert_eq!(unescape("a\\uD83D\\ude00b"), "a😀b");
    }

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character() {
        assert_eq!(unescape("\\ud800"), "\u{fffd}");
        assert_eq!(unescape("\\udc00x"), "\u{fffd}x");
        assert_eq!(unescape("\\ud800\\u0041"), "\u{fffd}A");
        assert_eq!(unescape("\\ud800\\ud83d\\ude00"), "\u{fffd}😀");
        assert_eq!(unescape("\\ud800é"), "\u{fffd}é");
    }

    #[test]
    fn an_escaped_key_is_compared_by_what_it_means() {
        assert!(means("mod\\u0065l", "model"));
        assert!(!means("mod\\u0065l", "models"));
        assert!(!means("mod\\u0065ls", "model"));
        assert!(!means("", "model"));
        assert!(means("", ""));
    }
}
