//! Differences for people to look at before they agree.
//!
//! What is shown comes from a model and from files, and it is shown in a terminal: control characters are made
//! visible, so that no text can hide a change or pretend another.

use similar::TextDiff;
use std::time::Duration;

/// After this, a difference is computed less exactly.
const TIME_MAX: Duration = Duration::from_millis(500);
/// The longest difference that is shown.
const BYTES_MAX: usize = 256 * 1024;

/// Returns a unified diff of two texts, or nothing if they are the same.
#[must_use]
pub fn unified_diff(from: &str, to: &str, before: &str, after: &str) -> String {
    let (before, after) = (visible(before), visible(after));
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(&before, &after);
    diff.unified_diff().context_radius(3).header(from, to).to_string()
}

/// Returns as much of a unified diff as is shown before somebody agrees.
pub(crate) fn unified(from: &str, to: &str, before: &[u8], after: &[u8]) -> String {
    let mut text = unified_diff(from, to, &String::from_utf8_lossy(before), &String::from_utf8_lossy(after));
    if text.len() > BYTES_MAX {
        let end = text.floor_char_boundary(BYTES_MAX);
        let left_out = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[… {left_out} more bytes of this difference …]\n"));
    }
    text
}

/// Returns how many lines are added and removed.
///
/// This is part of what models are told, so it must not depend on how fast the machine is: texts that differ in too
/// many lines for an exact answer count as replaced from the first difference to the last.
pub(crate) fn counts(before: &[u8], after: &[u8]) -> (usize, usize) {
    const EXACT_MAX: usize = 4_000_000;
    let lines = |text: &'_ [u8]| -> Vec<Vec<u8>> {
        text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (before, after) = (lines(before), lines(after));
    let same_start = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[same_start..], &after[same_start..]);
    let same_end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[..before.len() - same_end], &after[..after.len() - same_end]);
    if before.len() * after.len() > EXACT_MAX {
        return (after.len(), before.len());
    }
    let (mut added, mut removed) = (0, 0);
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, before, after) {
        if op.tag() != similar::DiffTag::Equal {
            added += op.new_range().len();
            removed += op.old_range().len();
        }
    }
    (added, removed)
}

/// Returns `text` with its control characters as symbols, line breaks and tabs excepted.
pub(crate) fn visible(text: &str) -> String {
    let symbol = |c: char| match c {
        '\n' | '\t' => c,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(c),
        '\u{7f}' => '\u{2421}',
        // Other controls, and what changes the direction of writing.
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(symbol).collect()
}
