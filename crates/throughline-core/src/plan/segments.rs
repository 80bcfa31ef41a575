//! Segments: the pieces that a text may be cut into.
//!
//! A segment is a line, several short lines, or a piece of a long one. Cuts are made at ends of lines where
//! there are any, else behind a comma or a blank, never inside a character and, in the raw text of a JSON
//! string, never inside an escape.

use super::arguments::unit_length;
use std::ops::Range;

/// Lines longer than this are cut.
const LINE_MAX: usize = 160;
/// Where the pieces of a long line end.
const PIECE: Range<usize> = 60..140;
/// Lines shorter than this are taken together with the next.
const LINE_MIN: usize = 32;

/// Cuts a range of `text`; `escaped` says that it is the raw text of a JSON string.
pub(super) fn cut(text: &str, range: Range<usize>, escaped: bool) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = range.start;
    let mut at = range.start;
    while at < range.end {
        let end = line_end(text, at..range.end, escaped);
        if end - at > LINE_MAX {
            if at > start {
                segments.push(start..at);
            }
            long_line(text, at..end, escaped, &mut segments);
            start = end;
        } else if end - start >= LINE_MIN {
            segments.push(start..end);
            start = end;
        }
        at = end;
    }
    if start < range.end {
        segments.push(start..range.end);
    }
    segments
}

fn line_end(text: &str, range: Range<usize>, escaped: bool) -> usize {
    if !escaped {
        return text[range.clone()].find('\n').map_or(range.end, |at| range.start + at + 1);
    }
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        let unit = unit_length(&bytes[at..range.end]);
        if &bytes[at..(at + unit).min(range.end)] == b"\\n" {
            return at + unit;
        }
        at += unit;
    }
    range.end
}

fn long_line(text: &str, line: Range<usize>, escaped: bool, segments: &mut Vec<Range<usize>>) {
    let mut at = line.start;
    while line.end - at > LINE_MAX {
        let end = piece_end(text, at, escaped);
        segments.push(at..end);
        at = end;
    }
    segments.push(at..line.end);
}

/// Returns where the piece that begins at `start` best ends.
fn piece_end(text: &str, start: usize, escaped: bool) -> usize {
    let bytes = text.as_bytes();
    let window = start + PIECE.start..start + PIECE.end;
    let last = |is: fn(u8, u8) -> bool| window.clone().rev().find(|at| is(bytes[*at], bytes[at + 1]));
    let comma = last(|byte, next| byte == b',' && matches!(next, b' ' | b'"' | b'{' | b'\\'));
    let found = comma.or_else(|| last(|byte, _| byte == b' ')).map_or(window.end, |at| at + 1);
    boundary(text, start, found, escaped)
}

/// Returns the last place up to `end` that is between two units of the text.
fn boundary(text: &str, start: usize, end: usize, escaped: bool) -> usize {
    if !escaped {
        return text.floor_char_boundary(end);
    }
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        let next = at + unit_length(&bytes[at..]);
        if next > end {
            return text.floor_char_boundary(at);
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(text: &str, escaped: bool) -> Vec<&str> {
        cut(text, 0..text.len(), escaped).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn short_lines_stay_together() {
        let long = "a line that is long enough to stand alone\n";
        assert_eq!(pieces(&format!("a\nb\n{long}c\n"), false), [&format!("a\nb\n{long}"), "c\n"]);
    }

    #[test]
    fn a_long_line_is_cut_behind_a_comma() {
        let line = r#"{"id": "reservation_1", "price": 100},"#.repeat(10);
        for piece in &pieces(&line, false)[..2] {
            assert!(piece.ends_with(','), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn segments_cover_the_text_and_split_no_unit(text in "([a-z ,é😀\n]|\\\\n|\\\\u00e9|\\\\ud83d\\\\ude00){0,400}", escaped: bool) {
            let text = if escaped { text.replace('\n', "\\n") } else { text };
            let pieces = pieces(&text, escaped);
            prop_assert_eq!(pieces.concat(), text.clone());
            for piece in pieces.iter().filter(|_| escaped) {
                let slashes = piece.bytes().rev().take_while(|byte| *byte == b'\\').count();
                prop_assert_eq!(slashes % 2, 0, "{}", piece);
                prop_assert!(!piece.starts_with("u00e9") && !piece.starts_with("\\ude00"));
            }
        }
    }
}
