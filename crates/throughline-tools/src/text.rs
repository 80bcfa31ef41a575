//! From bytes to text that a model can be shown.
//!
//! Escape sequences of terminals are taken out, bytes that are no UTF-8 are replaced, and so is NUL, which some
//! providers refuse. Each of these is counted, so that it can be said. Line breaks stay as they are.

/// The replacement for NUL: its visible symbol.
const NUL_SYMBOL: char = '\u{2400}';

/// Bytes as text, and what had to be done for that.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cleaned {
    pub(crate) text: String,
    escapes: usize,
    invalid: usize,
    nuls: usize,
}

/// Where in an escape sequence of a terminal one is.
enum Escape {
    /// Outside.
    None,
    /// Behind ESC.
    Begun,
    /// Behind ESC and an intermediate byte, as in `ESC ( B`.
    Designating,
    /// In `ESC [ … letter`.
    Control,
    /// In a string that ends with BEL or `ESC \`, such as a window title.
    Text,
    /// In such a string, behind an ESC.
    TextEnding,
}

impl Cleaned {
    /// Returns what has to be said about the text that is shown as `name`.
    pub(crate) fn notes(&self, name: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.escapes > 0 {
            notes.push(format!("{name}: {} terminal escape sequences were taken out", self.escapes));
        }
        if self.invalid > 0 {
            notes
                .push(format!("{name}: {} sequences that are not UTF-8 are shown as \u{fffd}", self.invalid));
        }
        if self.nuls > 0 {
            notes.push(format!("{name}: {} NUL bytes are shown as {NUL_SYMBOL}", self.nuls));
        }
        notes
    }
}

/// Returns `bytes` as text.
pub(crate) fn clean(bytes: &[u8]) -> Cleaned {
    let mut text = String::with_capacity(bytes.len());
    let mut invalid = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            invalid += 1;
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    let (text, escapes) = if text.contains('\u{1b}') { without_escapes(&text) } else { (text, 0) };
    let nuls = text.matches('\0').count();
    let text = if nuls > 0 { text.replace('\0', &NUL_SYMBOL.to_string()) } else { text };
    Cleaned { text, escapes, invalid, nuls }
}

fn without_escapes(text: &str) -> (String, usize) {
    let mut kept = String::with_capacity(text.len());
    let mut count = 0;
    let mut state = Escape::None;
    for c in text.chars() {
        state = match (state, c) {
            (Escape::None, '\u{1b}') => {
                count += 1;
                Escape::Begun
            }
            (Escape::None, _) => {
                kept.push(c);
                Escape::None
            }
            (Escape::Begun, '[') => Escape::Control,
            (Escape::Begun, ']' | 'P' | 'X' | '^' | '_') => Escape::Text,
            (Escape::Begun, ' '..='/') => Escape::Designating,
            (Escape::Control, '\u{20}'..='\u{3f}') => Escape::Control,
            (Escape::Text, '\u{1b}') => Escape::TextEnding,
            (Escape::Text, '\u{7}') => Escape::None,
            (Escape::Text, _) => Escape::Text,
            // What is no part of a sequence ends it and is text again.
            (Escape::Begun | Escape::Control | Escape::Designating, '\n' | '\r' | '\t') => {
                kept.push(c);
                Escape::None
            }
            (Escape::Begun | Escape::Designating | Escape::Control | Escape::TextEnding, _) => Escape::None,
        };
    }
    (kept, count)
}

/// Returns the beginning and the end of `text`, in about `bytes_max` bytes, with `gap` told what is missing.
pub(crate) fn preview(text: &str, bytes_max: usize, gap: impl Fn(&str) -> String) -> String {
    let head = head_end(text, bytes_max * 2 / 3);
    let tail = tail_start(text, bytes_max / 3).max(head);
    let missing = &text[head..tail];
    let left_out = format!("{} bytes, {} lines,", missing.len(), missing.matches('\n').count());
    let line_break = |piece: &str| if piece.is_empty() || piece.ends_with('\n') { "" } else { "\n" };
    let before = &text[..head];
    format!("{before}{}{}\n{}", line_break(before), gap(&left_out), &text[tail..])
}

/// Returns where a beginning of at most `max` bytes ends: behind a line if there is one in its second half.
fn head_end(text: &str, max: usize) -> usize {
    let end = text.floor_char_boundary(max);
    match text[..end].rfind('\n') {
        Some(at) if at >= end / 2 => at + 1,
        _ => end,
    }
}

/// Returns where an end of at most `max` bytes starts: before a line if there is one in its first half.
fn tail_start(text: &str, max: usize) -> usize {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max));
    match text[start..].find('\n') {
        Some(at) if at <= (text.len() - start) / 2 => start + at + 1,
        _ => start,
    }
}

/// Says whether the bytes are no text: a NUL near the beginning, as git decides it.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8_000)].contains(&0)
}

/// Returns, in words, which lines come nearest to one that was looked for and is not there.
pub(crate) fn nearest_lines(lines: &[&[u8]], wanted: &str) -> String {
    const LINES_MAX: usize = 20_000;
    const NAMED_MAX: usize = 3;
    let wanted: Vec<char> = wanted.trim().chars().take(200).collect();
    let mut scored: Vec<(usize, usize, String)> = Vec::new();
    for (index, line) in lines.iter().take(LINES_MAX).enumerate() {
        let text = String::from_utf8_lossy(line).trim_end().chars().take(200).collect::<String>();
        let score = likeness(&text.trim().chars().collect::<Vec<_>>(), &wanted);
        if score >= 50 {
            scored.push((100 - score, index + 1, text));
        }
    }
    scored.sort();
    let near: Vec<String> =
        scored.iter().take(NAMED_MAX).map(|(_, number, text)| format!("{number}: {text:?}")).collect();
    if near.is_empty() { String::new() } else { format!("; nearest lines: {}", near.join(", ")) }
}

/// Returns how alike two lines are, in percent: by what they have in common at both ends.
fn likeness(a: &[char], b: &[char]) -> usize {
    let longer = a.len().max(b.len());
    if a.is_empty() || b.is_empty() {
        return 0;
    }
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    (start + end) * 100 / longer
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_of_every_kind_are_taken_out() {
        let colours =
            clean(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b]8;;http://x\x1b\\b \x1b(Bc\x1b=d\x1b[?25le");
        assert_eq!((colours.text.as_str(), colours.escapes), ("red ab cde", 7));
    }

    #[test]
    fn a_broken_escape_does_not_swallow_lines() {
        assert_eq!(clean(b"a\x1b[\nb\x1b\nc").text, "a\nb\nc");
    }

    #[test]
    fn what_is_no_text_is_shown_and_counted() {
        let cleaned = clean(b"a\xff\xfeb\0c");
        assert_eq!(cleaned.text, "a\u{fffd}\u{fffd}b\u{2400}c");
        assert_eq!(cleaned.notes("stdout").len(), 2);
    }

    #[test]
    fn a_preview_cuts_between_lines() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let shown = preview(&text, 90, |left_out| format!("[{left_out}]"));
        assert!(shown.starts_with("line 0\nline 1\n"), "{shown}");
        assert!(shown.ends_with("\nline 98\nline 99\n"), "{shown}");
        assert!(shown.contains("bytes, 89 lines,]\n"), "{shown}");
    }

    proptest! {
        #[test]
        fn plain_text_is_left_alone(text in "[^\u{0}\u{1b}]{0,200}") {
            prop_assert_eq!(clean(text.as_bytes()).text, text);
        }

        #[test]
        fn anything_is_cleaned(bytes: Vec<u8>) {
            let cleaned = clean(&bytes);
            let controls = cleaned.text.contains(['\0', '\u{1b}']);
            prop_assert!(!controls);
        }

        #[test]
        fn a_preview_holds_both_ends(text in "\\PC{200,400}", max in 1_usize..150) {
            let shown = preview(&text, max, |_| "GAP".to_owned());
            let (head, tail) = shown.split_once("GAP\n").expect("there is a gap");
            prop_assert!(text.starts_with(head.trim_end_matches('\n')) && text.ends_with(tail));
            prop_assert!(shown.len() <= max + 8);
        }
    }
}
