//! Differences for people to look at before they agree.
//!
//! What is shown comes from a model and from files, and it is shown in a terminal: what cannot be seen is written out,
//! so that no text can hide a change or pretend another. Nothing is left out for its length.

use crate::visible::visible;
use similar::TextDiff;
use std::borrow::Cow;
use std::time::Duration;

/// After this, a difference is computed less exactly.
const TIME_MAX: Duration = Duration::from_millis(500);

/// Returns a unified diff of two texts, or nothing if they are the same.
#[must_use]
pub fn unified_diff(from: &str, to: &str, before: &str, after: &str) -> String {
    let (before, after) = with_plain_breaks(before, after);
    let (before, after) = (visible(&before), visible(&after));
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_lines(&*before, &*after);
    diff.unified_diff().context_radius(3).header(from, to).to_string()
}

/// Returns a unified diff of two contents, as it is shown before somebody agrees.
pub(crate) fn unified(from: &str, to: &str, before: &[u8], after: &[u8]) -> String {
    unified_diff(from, to, &String::from_utf8_lossy(before), &String::from_utf8_lossy(after))
}

/// Returns texts that both end their lines the way of Windows with plain line breaks. Where only one does, that is a
/// change to be seen.
fn with_plain_breaks<'t>(before: &'t str, after: &'t str) -> (Cow<'t, str>, Cow<'t, str>) {
    let has_crlf_alone = |text: &str| text.matches('\n').count() == text.matches("\r\n").count();
    if before.contains('\r') && has_crlf_alone(before) && has_crlf_alone(after) {
        return (before.replace("\r\n", "\n").into(), after.replace("\r\n", "\n").into());
    }
    (before.into(), after.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_line_breaks_are_a_change_and_the_same_ones_are_not() {
        let diff = |before, after| unified_diff("a", "b", before, after);
        assert_eq!(diff("x\r\ny\r\n", "x\r\nz\r\n"), "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n");
        assert!(diff("x\r\n", "x\n").contains("-x<U+000D>\n+x\n"));
        assert!(diff("x\n", "x\r\n").contains("+x<U+000D>\n"));
        // What is written out is told from what was written so.
        assert!(diff("<U+001B>\n", "\u{1b}\n").contains("+<U+001B>"));
    }

    #[test]
    fn a_long_difference_is_shown_whole() {
        let after: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        assert!(diff_of(&after).ends_with("+line 99999\n"));
    }

    fn diff_of(after: &str) -> String {
        unified("/dev/null", "b", b"", after.as_bytes())
    }
}
