//! What stands in the place of what was taken out: how much it was, and how to have it back (R20, R32).
//!
//! The words never change for the same decision: they are part of the prompt's prefix. In arguments they
//! stand inside JSON strings, so they hold neither quotes nor backslashes.

use super::{Decision, Handle, Taken};
use crate::exit::error_line;
use crate::{Call, Content, Input, Part, Return, Said, Text, joined_text};
use std::fmt::Write as _;
use std::ops::Range;

/// Between two pieces of an excerpt.
const GAP: &str = "[..]";

/// How many characters of a failure a masked result still tells.
const ERROR_CHARS_MAX: usize = 120;

/// Returns the text that a result is shown as.
pub(super) fn result_text(returned: &Return, taken: &Taken, recall: bool) -> String {
    let text = joined_text(&returned.parts);
    let mut notes = String::new();
    let media = returned.parts.iter().filter(|part| part.as_text().is_none()).count();
    if media > 0 {
        let _ = write!(notes, "; {} cut", media_words(&returned.parts));
    }
    if taken.stale {
        notes.push_str("; stale: changed since");
    }
    notes.push_str(&how(taken.handle, recall));
    match &taken.decision {
        Decision::Excerpt(ranges) => {
            let kept: usize = ranges.iter().map(|range| length(&text, range)).sum();
            let cut = chars(&text).saturating_sub(kept);
            let mut shown = format!("[excerpt, {cut} chars cut{notes}]\n");
            pieces(&mut shown, &text, ranges);
            shown
        }
        Decision::Superseded { .. } => format!("[cut: shown again later{notes}]"),
        _ => {
            let lines =
                text.bytes().filter(|byte| *byte == b'\n').count() + usize::from(!text.ends_with('\n'));
            let plural = if lines == 1 { "" } else { "s" };
            let mut shown = format!("[cut: {lines} line{plural}{notes}]");
            if returned.outcome.is_error() {
                let told = error_line(&text).unwrap_or_default();
                shown.push('\n');
                shown.extend(told.chars().take(ERROR_CHARS_MAX));
            }
            shown
        }
    }
}

/// Returns the input that a call is shown with.
pub(super) fn call_input(call: &Call, taken: &Taken, recall: bool) -> Input {
    let ranges = match (&taken.decision, &call.input) {
        (Decision::Excerpt(ranges), _) => ranges,
        (Decision::Cleared, Input::Arguments(_)) => return Input::Arguments(Text::from_static("{}")),
        (Decision::Cleared, Input::Freeform(_)) => {
            return Input::Freeform(format!("[cut{}]", how(taken.handle, recall)).into());
        }
        _ => return call.input.clone(),
    };
    match &call.input {
        Input::Arguments(text) => Input::Arguments(arguments(text, ranges, taken.handle, recall).into()),
        Input::Freeform(text) => {
            let mut shown = format!("[excerpt{}]\n", how(taken.handle, recall));
            pieces(&mut shown, text, ranges);
            Input::Freeform(shown.into())
        }
    }
}

/// Returns the text that an earlier message is shown as.
pub(super) fn said_text(said: &Said, taken: &Taken, recall: bool) -> String {
    let text = joined_text(&said.parts);
    let notes = how(taken.handle, recall);
    let none = Vec::new();
    let ranges = if let Decision::Excerpt(ranges) = &taken.decision { ranges } else { &none };
    let kept: usize = ranges.iter().map(|range| length(&text, range)).sum();
    let mut shown = String::new();
    pieces(&mut shown, &text, ranges);
    if !shown.is_empty() {
        shown.push('\n');
    }
    let cut = chars(&text).saturating_sub(kept);
    let _ = write!(shown, "[{cut} chars of this message cut{notes}]");
    shown
}

/// Returns the words by which the model learns how to have something back.
fn how(handle: Handle, recall: bool) -> String {
    if recall { format!("; recall {handle}") } else { String::new() }
}

fn media_words(parts: &[Part]) -> String {
    let count = |is: fn(&Content) -> bool| parts.iter().filter(|part| is(&part.content)).count();
    let images = count(|content| matches!(content, Content::Image(_)));
    let others = count(|content| !matches!(content, Content::Image(_) | Content::Text(_)));
    match (images, others) {
        (images, 0) => format!("{images} image{}", if images == 1 { "" } else { "s" }),
        (0, others) => format!("{others} attachment{}", if others == 1 { "" } else { "s" }),
        (images, others) => format!("{images} images, {others} attachments"),
    }
}

/// Counts the characters of a text; most are plain, and then there is nothing to count.
fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

fn length(text: &str, range: &Range<u32>) -> usize {
    text.get(usize_range(range)).map_or(0, chars)
}

fn pieces(shown: &mut String, text: &str, ranges: &[Range<u32>]) {
    let mut end = 0;
    for range in ranges {
        let range = usize_range(range);
        if range.start > end {
            gap(shown);
        }
        shown.push_str(text.get(range.clone()).unwrap_or_default());
        end = range.end;
    }
    if end < text.len() {
        gap(shown);
    }
    if shown.ends_with('\n') {
        shown.pop();
    }
}

/// Marks a gap: on a line of its own between lines, in its place within one.
fn gap(shown: &mut String) {
    if shown.ends_with('\n') {
        shown.push_str(GAP);
        shown.push('\n');
    } else {
        shown.push(' ');
        shown.push_str(GAP);
        shown.push(' ');
    }
}

/// Returns arguments made of `ranges` of the raw text; every gap lies within a string.
fn arguments(text: &str, ranges: &[Range<u32>], handle: Handle, recall: bool) -> String {
    let mut shown = String::new();
    let mut end = 0;
    let mut is_first = true;
    for range in ranges {
        let range = usize_range(range);
        if range.start > end {
            let how = if is_first { how(handle, recall) } else { String::new() };
            let left_out = text.get(end..range.start).map_or(0, chars);
            let _ =
                if is_first { write!(shown, "[{left_out} chars cut{how}]") } else { write!(shown, "{GAP}") };
            is_first = false;
        }
        shown.push_str(text.get(range.clone()).unwrap_or_default());
        end = range.end;
    }
    shown
}

pub(super) fn usize_range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
