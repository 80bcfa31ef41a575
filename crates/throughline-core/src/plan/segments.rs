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

/// Records of JSON up to this length stay in one piece.
const RECORD_MAX: usize = 400;
/// Parts of a record shorter than this together are taken together.
const RECORD_MIN: usize = 120;
/// Hunks of a diff up to this length stay in one piece.
const HUNK_MAX: usize = 700;

/// Cuts a range of `text`; `escaped` says that it is the raw text of a JSON string.
pub(super) fn cut(text: &str, range: Range<usize>, escaped: bool) -> Vec<Range<usize>> {
    let piece = &text[range.clone()];
    if !escaped && piece.len() > LINE_MAX {
        if piece.trim_start().starts_with(['{', '[']) {
            return records(text, range);
        }
        if piece.starts_with("@@ ") || piece.contains("\n@@ ") {
            return hunks(text, range);
        }
    }
    cut_lines(text, range, escaped)
}

/// Cuts at ends of lines.
pub(super) fn cut_lines(text: &str, range: Range<usize>, escaped: bool) -> Vec<Range<usize>> {
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

/// Cuts a diff between its hunks, and large hunks at ends of lines.
fn hunks(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let mut start = range.start;
    let starts_hunk = |line: &str| line.starts_with("@@ ") || line.starts_with("diff ");
    let mut at = range.start;
    while at < range.end {
        let end = line_end(text, at..range.end, false);
        let is_end = end >= range.end || starts_hunk(&text[end..range.end]);
        if is_end {
            if end - start <= HUNK_MAX {
                segments.push(start..end);
            } else {
                segments.extend(cut_lines(text, start..end, false));
            }
            start = end;
        }
        at = end;
    }
    segments
}

/// A place where JSON can be cut: behind a comma or an opening bracket, and how deep that is.
struct Break {
    at: usize,
    depth: usize,
}

/// Cuts JSON by record: a value that is short enough stays whole, a longer one is cut between its members or elements.
fn records(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let breaks = breaks(text, range.clone());
    let mut segments = Vec::new();
    cut_records(text, range, &breaks, &mut segments);
    segments
}

fn cut_records(text: &str, range: Range<usize>, breaks: &[Break], segments: &mut Vec<Range<usize>>) {
    if range.len() <= RECORD_MAX {
        segments.push(range);
        return;
    }
    let inside: Vec<&Break> =
        breaks.iter().filter(|found| range.start < found.at && found.at < range.end).collect();
    let Some(depth) = inside.iter().map(|found| found.depth).min() else {
        segments.extend(cut_lines(text, range, false));
        return;
    };
    let ends = inside.iter().filter(|found| found.depth == depth).map(|found| found.at);
    let first = breaks.partition_point(|found| found.at <= range.start);
    let last = breaks.partition_point(|found| found.at < range.end);
    let inner = &breaks[first..last];
    let mut start = range.start;
    let mut whole: Option<Range<usize>> = None;
    for end in ends.chain([range.end]) {
        let part = start..end;
        start = end;
        match &mut whole {
            Some(before) if part.end - before.start <= RECORD_MIN => before.end = part.end,
            before => {
                if let Some(before) = before.replace(part) {
                    cut_records(text, before, inner, segments);
                }
            }
        }
    }
    if let Some(rest) = whole {
        cut_records(text, rest, inner, segments);
    }
}

fn breaks(text: &str, range: Range<usize>) -> Vec<Break> {
    let bytes = text.as_bytes();
    let (mut breaks, mut depth, mut at) = (Vec::new(), 0_usize, range.start);
    while at < range.end {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < range.end && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => {
                depth += 1;
                breaks.push(Break { at: at + 1, depth });
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => breaks.push(Break { at: at + 1, depth }),
            _ => {}
        }
        at += 1;
    }
    breaks
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
    fn json_is_cut_by_record() {
        let flight = |number: usize| {
            format!(
                r#"{{"flight_number": "HAT{number}", "origin": "JFK", "prices": {{"basic": 53, "business": 304}}}}"#
            )
        };
        let flights: Vec<String> = (100..120).map(flight).collect();
        let json = format!("[{}]", flights.join(", "));
        let pieces = pieces(&json, false);
        assert!(pieces.len() >= flights.len(), "{pieces:?}");
        for flight in &flights {
            assert!(pieces.iter().any(|piece| piece.contains(flight.as_str())), "{flight} was cut apart");
        }
    }

    #[test]
    fn a_diff_is_cut_by_hunk() {
        let hunk = |at: usize| format!("@@ -{at},2 +{at},2 @@\n let before = {at};\n-old_{at}\n+new_{at}\n");
        let diff = format!("--- a/x.rs\n+++ b/x.rs\n{}{}{}", hunk(100), hunk(200), hunk(300));
        let pieces = pieces(&diff, false);
        assert_eq!(pieces[1..], [hunk(100), hunk(200), hunk(300)]);
    }

    #[test]
    fn a_long_line_is_cut_behind_a_comma() {
        let line = r#"{"id": "reservation_1", "price": 100},"#.repeat(10).replacen('{', "x{", 1);
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
