//! The steps of an edit, on bytes.
//!
//! Models do not see carriage returns: in a file whose lines all end with CR LF, a plain line break in either text
//! means CR LF. Everything outside of what is replaced stays byte for byte.

use crate::call::EditStep;
use crate::text::nearest_lines;
use memchr::memmem;
use std::borrow::Cow;

/// Why a step cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error("old_string does not stand in the file{nearest}")]
    NotThere { nearest: String },
    #[error(
        "old_string stands in the file {count} times, first on lines {lines}; add lines around it to make it unique, or set replace_all"
    )]
    Ambiguous { count: usize, lines: String },
    #[error("old_string and new_string are the same")]
    Same,
    #[error("old_string is empty, but the file is not; say what to replace, or use write")]
    Empty,
    #[error("there are {lines} lines, so nothing can be inserted behind line {line}")]
    NoLine { lines: usize, line: u64 },
}

/// Says whether the steps make a file if there is none.
pub(super) fn creates(steps: &[EditStep]) -> bool {
    matches!(steps.first(), Some(EditStep::Replace { old, .. }) if old.is_empty())
}

/// Returns `bytes` after the step.
pub(super) fn apply(bytes: &[u8], step: &EditStep) -> Result<Vec<u8>, ReplaceError> {
    match step {
        EditStep::Replace { old, new, all } => replace(bytes, old, new, *all),
        EditStep::Insert { line, text } => insert(bytes, *line, text),
    }
}

fn replace(bytes: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, ReplaceError> {
    if old.is_empty() {
        return if bytes.is_empty() { Ok(new.as_bytes().to_vec()) } else { Err(ReplaceError::Empty) };
    }
    if old == new {
        return Err(ReplaceError::Same);
    }
    let crlf = ends_all_lines_with_crlf(bytes);
    let (old_text, new_text) = (in_style(old, crlf), in_style(new, crlf));
    let places: Vec<usize> = memmem::find_iter(bytes, old_text.as_bytes()).collect();
    match places.len() {
        0 => Err(not_there(bytes, old)),
        1 => Ok(put(bytes, &places, old_text.len(), new_text.as_bytes())),
        _ if all => Ok(put(bytes, &places, old_text.len(), new_text.as_bytes())),
        count => Err(ReplaceError::Ambiguous { count, lines: line_numbers(bytes, &places) }),
    }
}

fn put(bytes: &[u8], places: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len() + new.len());
    let mut copied = 0;
    for place in places {
        result.extend_from_slice(&bytes[copied..*place]);
        result.extend_from_slice(new);
        copied = place + length;
    }
    result.extend_from_slice(&bytes[copied..]);
    result
}

fn insert(bytes: &[u8], line: u64, text: &str) -> Result<Vec<u8>, ReplaceError> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let behind = usize::try_from(line).unwrap_or(usize::MAX);
    if behind > lines.len() {
        return Err(ReplaceError::NoLine { lines: lines.len(), line });
    }
    let crlf = ends_all_lines_with_crlf(bytes);
    let line_break = if crlf { "\r\n" } else { "\n" };
    let mut result = lines[..behind].concat();
    if !result.is_empty() && !result.ends_with(b"\n") {
        result.extend_from_slice(line_break.as_bytes());
    }
    result.extend_from_slice(in_style(text, crlf).as_bytes());
    if !text.ends_with('\n') {
        result.extend_from_slice(line_break.as_bytes());
    }
    result.extend_from_slice(&lines[behind..].concat());
    Ok(result)
}

fn ends_all_lines_with_crlf(bytes: &[u8]) -> bool {
    let breaks = memchr::memchr_iter(b'\n', bytes);
    let mut any = false;
    for at in breaks {
        any = true;
        if at == 0 || bytes[at - 1] != b'\r' {
            return false;
        }
    }
    any
}

fn in_style(text: &str, crlf: bool) -> Cow<'_, str> {
    if crlf && text.contains('\n') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn not_there(bytes: &[u8], old: &str) -> ReplaceError {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let wanted = old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old);
    ReplaceError::NotThere { nearest: nearest_lines(&lines, wanted) }
}

fn line_numbers(bytes: &[u8], places: &[usize]) -> String {
    const NAMED_MAX: usize = 5;
    let number = |place: &usize| (memchr::memchr_iter(b'\n', &bytes[..*place]).count() + 1).to_string();
    places.iter().take(NAMED_MAX).map(number).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(old: &str, new: &str) -> EditStep {
        EditStep::Replace { old: old.to_owned(), new: new.to_owned(), all: false }
    }

    #[test]
    fn a_line_break_in_a_crlf_file_means_crlf() {
        let edited = apply(b"a\r\nb\r\nc\r\n", &one("a\nb", "x\ny\nz")).expect("it fits");
        assert_eq!(edited, b"x\r\ny\r\nz\r\nc\r\n");
    }

    #[test]
    fn an_insertion_goes_behind_its_line() {
        let step = |line| EditStep::Insert { line, text: "new".to_owned() };
        assert_eq!(apply(b"a\nb", &step(0)), Ok(b"new\na\nb".to_vec()));
        assert_eq!(apply(b"a\nb", &step(2)), Ok(b"a\nb\nnew\n".to_vec()));
        assert_eq!(apply(b"a\nb", &step(3)), Err(ReplaceError::NoLine { lines: 2, line: 3 }));
    }

    proptest! {
        /// The law of an edit: what is around the one occurrence stays, byte for byte.
        #[test]
        fn an_edit_changes_the_one_place_and_nothing_else(
            before in prop::collection::vec(any::<u8>().prop_filter("not the text", |b| *b != b'#'), 0..200),
            after in prop::collection::vec(any::<u8>().prop_filter("not the text", |b| *b != b'#'), 0..200),
            new in "[a-z]{0,20}",
        ) {
            let bytes = [&before[..], b"#old#", &after[..]].concat();
            let edited = apply(&bytes, &one("#old#", &new)).expect("it stands there once");
            prop_assert_eq!(edited, [&before[..], new.as_bytes(), &after[..]].concat());
        }

        #[test]
        fn two_places_are_one_too_many(gap in "[a-z\n]{1,50}") {
            let text = format!("#{gap}#");
            let refused = matches!(apply(text.as_bytes(), &one("#", "x")), Err(ReplaceError::Ambiguous { count: 2, .. }));
            prop_assert!(refused);
            let all = EditStep::Replace { old: "#".to_owned(), new: "x".to_owned(), all: true };
            prop_assert_eq!(apply(text.as_bytes(), &all), Ok(format!("x{gap}x").into_bytes()));
        }
    }
}
