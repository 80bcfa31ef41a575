//! One pass over JSON text that checks it and notes where every value lies.
//!
//! The grammar is RFC 8259 to the letter, with two decisions where it leaves room: nesting ends at
//! [`MAX_DEPTH`], and a `\u` escape may be half of a surrogate pair (real transcripts are cut in the middle
//! of emoji). Numbers are checked but not evaluated, so any size is accepted. The scanner does not recurse:
//! what is open is kept on a stack of its own, and no input can exhaust the thread's.

use super::escape::plain_end;
use super::index::Kind;

/// How many arrays and objects may be open at once.
pub const MAX_DEPTH: usize = 128;

/// How many values and keys one text may hold: each takes its place in the index, whatever it says.
pub const MAX_VALUES: usize = 2_000_000;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (at byte {offset})")]
pub struct SyntaxError {
    /// Where in the text the problem is, in bytes.
    pub offset: usize,
    /// What the problem is.
    pub problem: SyntaxProblem,
}

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxProblem {
    /// The text stops inside a value.
    #[error("the JSON text ends too early")]
    UnexpectedEnd,
    /// Something else belongs here.
    #[error("expected {expected}, found {found:?}")]
    UnexpectedCharacter {
        /// What stands there.
        found: char,
        /// What may stand there, in words.
        expected: &'static str,
    },
    /// A backslash that starts no escape of JSON.
    #[error("invalid escape in a string")]
    InvalidEscape,
    /// A control character that a string may only hold in escaped form.
    #[error("control character U+{0:04X} in a string must be escaped")]
    ControlCharacter(u8),
    /// A number with a leading zero or a missing digit.
    #[error("invalid number")]
    InvalidNumber,
    /// More than [`MAX_DEPTH`] open arrays and objects.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More than `MAX_VALUES` values.
    #[error("more than {MAX_VALUES} values")]
    TooMany,
    /// Something follows the one value the text was to hold.
    #[error("unexpected text after the JSON value")]
    TrailingCharacters,
    /// Offsets are 32 bits wide.
    #[error("longer than 4 GiB")]
    TooLong,
}

impl SyntaxError {
    /// Returns the error of `text` not having `expected` at `offset`.
    pub(super) fn unexpected(text: &str, offset: usize, expected: &'static str) -> Self {
        let problem = match text.get(offset..).map(|rest| rest.chars().next()) {
            Some(Some(found)) => SyntaxProblem::UnexpectedCharacter { found, expected },
            Some(None) => SyntaxProblem::UnexpectedEnd,
            None => SyntaxProblem::UnexpectedCharacter { found: char::REPLACEMENT_CHARACTER, expected },
        };
        Self { offset, problem }
    }
}

/// One value, or one key, of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The index of the first entry behind this one and all it contains.
    pub(super) skip: u32,
    pub(super) kind: Kind,
    /// Whether this is a string with at least one backslash in it.
    pub(super) escaped: bool,
}

/// Indexes the one value that `text` holds.
pub(super) fn scan_whole(text: &str) -> Result<Vec<Entry>, SyntaxError> {
    let mut scanner = Scanner::new(text, 0)?;
    scanner.run()?;
    if scanner.at < text.len() {
        return Err(scanner.error(SyntaxProblem::TrailingCharacters));
    }
    Ok(scanner.entries)
}

/// Indexes the next value of `text` from `start` on, if anything but whitespace is there.
pub(super) fn scan_next(text: &str, start: usize) -> Result<Option<Vec<Entry>>, SyntaxError> {
    let mut scanner = Scanner::new(text, start)?;
    scanner.skip_whitespace();
    if scanner.at >= text.len() {
        return Ok(None);
    }
    scanner.run()?;
    scanner.check_delimited()?;
    Ok(Some(scanner.entries))
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    entries: Vec<Entry>,
    /// The entries of the arrays and objects not yet closed, outermost first.
    open: Vec<u32>,
}

/// What the grammar allows next.
#[derive(Clone, Copy)]
enum Expect {
    Value,
    FirstItem,
    FirstKey,
    Key,
    CommaOrEnd,
    Nothing,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str, start: usize) -> Result<Self, SyntaxError> {
        if u32::try_from(text.len()).is_err() {
            return Err(SyntaxError { offset: 0, problem: SyntaxProblem::TooLong });
        }
        Ok(Self { text, at: start, entries: Vec::new(), open: Vec::new() })
    }

    /// Reads one value and the whitespace behind it.
    fn run(&mut self) -> Result<(), SyntaxError> {
        let mut expect = Expect::Value;
        loop {
            self.skip_whitespace();
            expect = match (expect, self.peek()) {
                (Expect::FirstItem, Some(b']')) | (Expect::FirstKey, Some(b'}')) => self.close(),
                (Expect::Value | Expect::FirstItem, first) => self.value(first)?,
                (Expect::FirstKey | Expect::Key, first) => self.key(first)?,
                (Expect::CommaOrEnd, next) => self.comma_or_end(next)?,
                (Expect::Nothing, _) => return Ok(()),
            };
        }
    }

    fn value(&mut self, first: Option<u8>) -> Result<Expect, SyntaxError> {
        match first {
            Some(b'"') => self.string()?,
            Some(b'{') => return self.open(Kind::Object, Expect::FirstKey),
            Some(b'[') => return self.open(Kind::Array, Expect::FirstItem),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true", Kind::Bool)?,
            Some(b'f') => self.literal("false", Kind::Bool)?,
            Some(b'n') => self.literal("null", Kind::Null)?,
            _ => return Err(self.unexpected("a value")),
        }
        Ok(self.after_value())
    }

    fn key(&mut self, first: Option<u8>) -> Result<Expect, SyntaxError> {
        if first != Some(b'"') {
            return Err(self.unexpected("a key in double quotes"));
        }
        self.string()?;
        self.skip_whitespace();
        if self.eat(b':') { Ok(Expect::Value) } else { Err(self.unexpected("`:`")) }
    }

    fn comma_or_end(&mut self, next: Option<u8>) -> Result<Expect, SyntaxError> {
        match (next, self.innermost()) {
            (Some(b','), innermost) => {
                self.check_count()?;
                self.at += 1;
                Ok(if innermost == Some(Kind::Object) { Expect::Key } else { Expect::Value })
            }
            (Some(b'}'), Some(Kind::Object)) | (Some(b']'), Some(Kind::Array)) => Ok(self.close()),
            (_, Some(Kind::Object)) => Err(self.unexpected("`,` or `}`")),
            _ => Err(self.unexpected("`,` or `]`")),
        }
    }

    fn check_count(&self) -> Result<(), SyntaxError> {
        if self.entries.len() < MAX_VALUES { Ok(()) } else { Err(self.error(SyntaxProblem::TooMany)) }
    }

    fn after_value(&self) -> Expect {
        if self.open.is_empty() { Expect::Nothing } else { Expect::CommaOrEnd }
    }

    fn innermost(&self) -> Option<Kind> {
        self.open.last().map(|index| self.entries[*index as usize].kind)
    }

    fn open(&mut self, kind: Kind, then: Expect) -> Result<Expect, SyntaxError> {
        if self.open.len() == MAX_DEPTH {
            return Err(self.error(SyntaxProblem::TooDeep));
        }
        self.check_count()?;
        self.open.push(offset(self.entries.len()));
        // Its end is not known before it is closed.
        self.push(self.at, kind, false);
        self.at += 1;
        Ok(then)
    }

    fn close(&mut self) -> Expect {
        self.at += 1;
        let skip = offset(self.entries.len());
        if let Some(index) = self.open.pop() {
            let entry = &mut self.entries[index as usize];
            entry.end = offset(self.at);
            entry.skip = skip;
        }
        self.after_value()
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        let (start, mut escaped) = (self.at, false);
        self.at += 1;
        loop {
            self.at = plain_end(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(control) => return Err(self.error(SyntaxProblem::ControlCharacter(*control))),
                None => return Err(self.error(SyntaxProblem::UnexpectedEnd)),
            }
            escaped = true;
        }
        self.at += 1;
        self.push(start, Kind::String, escaped);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let length = match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'u', digits @ ..] if digits.iter().take(4).all(u8::is_ascii_hexdigit) => 6,
            [] => 2,
            _ => return Err(self.error(SyntaxProblem::InvalidEscape)),
        };
        // An escape cut off by the end of the text is an early end rather than a wrong escape.
        self.at = self.text.len().min(self.at + length);
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        } else if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.error(SyntaxProblem::InvalidNumber));
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        self.push(start, Kind::Number, false);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            let problem =
                if rest.is_empty() { SyntaxProblem::UnexpectedEnd } else { SyntaxProblem::InvalidNumber };
            return Err(self.error(problem));
        }
        self.at += count;
        Ok(())
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at..];
        let matched = rest.iter().zip(word.as_bytes()).take_while(|(found, wanted)| found == wanted).count();
        let start = self.at;
        self.at += matched;
        if matched < word.len() {
            return Err(self.unexpected(word));
        }
        self.push(start, kind, false);
        Ok(())
    }

    /// Refuses a number or literal that runs into further text: in `1true` nothing says where to cut.
    fn check_delimited(&self) -> Result<(), SyntaxError> {
        let runs_on = self.at < self.text.len()
            && self.entries.first().is_some_and(|root| {
                let delimits_itself = matches!(root.kind, Kind::String | Kind::Array | Kind::Object);
                !delimits_itself && root.end == offset(self.at)
            });
        if runs_on { Err(self.error(SyntaxProblem::TrailingCharacters)) } else { Ok(()) }
    }

    /// Notes a value from `start` to here.
    fn push(&mut self, start: usize, kind: Kind, escaped: bool) {
        let skip = offset(self.entries.len() + 1);
        self.entries.push(Entry { start: offset(start), end: offset(self.at), skip, kind, escaped });
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(is_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn error(&self, problem: SyntaxProblem) -> SyntaxError {
        SyntaxError { offset: self.at, problem }
    }

    fn unexpected(&self, expected: &'static str) -> SyntaxError {
        SyntaxError::unexpected(self.text, self.at, expected)
    }
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Narrows an offset or an index; both are at most the length of the text, which was checked to fit.
fn offset(value: usize) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (usize, SyntaxProblem) {
        let error = scan_whole(text).expect_err(text);
        (error.offset, error.problem)
    }

    #[test]
    fn an_entry_takes_sixteen_bytes() {
        assert_eq!(size_of::<Entry>(), 16);
    }

    #[test]
    fn every_problem_says_where_it_is() {
        use SyntaxProblem::*;
        assert_eq!(problem(""), (0, UnexpectedEnd));
        assert_eq!(problem("[1,"), (3, UnexpectedEnd));
        assert_eq!(problem("\"abc"), (4, UnexpectedEnd));
        assert_eq!(problem("\"abc\\"), (5, UnexpectedEnd));
        assert_eq!(problem("\"\\u12"), (5, UnexpectedEnd));
        assert_eq!(problem("tru"), (3, UnexpectedEnd));
        assert_eq!(problem("-"), (1, UnexpectedEnd));
        assert_eq!(problem("trie"), (2, UnexpectedCharacter { found: 'i', expected: "true" }));
        assert_eq!(problem("[1 2]"), (3, UnexpectedCharacter { found: '2', expected: "`,` or `]`" }));
        assert_eq!(problem("{\"a\" 1}"), (5, UnexpectedCharacter { found: '1', expected: "`:`" }));
        assert_eq!(problem("[é]"), (1, UnexpectedCharacter { found: 'é', expected: "a value" }));
        assert_eq!(problem("\"a\\x\""), (2, InvalidEscape));
        assert_eq!(problem("\"\\u00g0\""), (1, InvalidEscape));
        assert_eq!(problem("\"a\nb\""), (2, ControlCharacter(10)));
        assert_eq!(problem("01"), (1, InvalidNumber));
        assert_eq!(problem("1.x"), (2, InvalidNumber));
        assert_eq!(problem("1 2"), (2, TrailingCharacters));
    }

    #[test]
    fn a_problem_reads_as_a_sentence() {
        let error = scan_whole("[1}").expect_err("mismatched");
        assert_eq!(error.to_string(), "expected `,` or `]`, found '}' (at byte 2)");
    }

    #[test]
    fn trailing_commas_are_refused() {
        assert!(scan_whole("[1,]").is_err());
        assert!(scan_whole("{\"a\":1,}").is_err());
        assert!(scan_whole("[,]").is_err());
    }

    #[test]
    fn values_are_limited() {
        let many = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert!(scan_whole(&many(MAX_VALUES - 2)).is_ok());
        assert_eq!(problem(&many(MAX_VALUES)).1, SyntaxProblem::TooMany);
    }

    #[test]
    fn depth_is_limited_without_recursion() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(scan_whole(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(problem(&nested(MAX_DEPTH + 1)), (MAX_DEPTH, SyntaxProblem::TooDeep));
        assert_eq!(problem(&"[".repeat(100_000)), (MAX_DEPTH, SyntaxProblem::TooDeep));
    }

    #[test]
    fn numbers_of_any_size_are_accepted() {
        assert!(scan_whole("1e999").is_ok());
        assert!(scan_whole("123456789012345678901234567890").is_ok());
    }
}
