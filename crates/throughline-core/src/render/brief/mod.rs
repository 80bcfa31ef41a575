//! The brief: a history as one text, for a backend that takes over and is not shown it natively (R16 to R21).
//!
//! What was said is summarised; what tools said goes in as it was, after deduplication (R17), never through a
//! model. What is cut or left out says how much that is and carries a handle. The brief stands in front of the
//! user's own message, once; what follows is shown natively again.
//!
//! Invariants: nothing that a tool said can end its fence; a brief is a function of its input; its tool part is no longer than
//! allowed; of what it covers, all that it does not tell whole is in the report.

mod fence;
mod language;
mod result;
mod talk;

use crate::plan::{self, Told, ToolKind, ToolRules};
use crate::{
    Action, Addition, Content, Entry, Kind, Part, Report, Said, Side, Text, Trace, Treatment, joined_text,
};
use result::Telling;
use std::ops::Range;

const BEGIN: &str = "[CONTEXT FROM PREVIOUS SESSION]";
const END: &str = "[/CONTEXT FROM PREVIOUS SESSION]";

/// How a brief is written.
#[derive(Clone, Copy, Debug)]
pub struct BriefOptions<'a> {
    /// What the tools are.
    pub rules: &'a ToolRules,
    /// What stands under `## Summary`.
    pub summary: BriefSummary<'a>,
    /// Whether what tools said is told at all.
    pub tools: bool,
    /// The most characters of one result, or of one argument of a change; more is cut in the middle. Without a limit
    /// nothing is cut if everything has room, and otherwise nothing takes more than a share of it.
    pub result_chars_max: Option<usize>,
    /// The most characters of all that is told of tools; the latest comes first.
    pub tool_chars_max: Option<usize>,
    /// Whether the model can have back what was cut, and is told so.
    pub recall: bool,
}

/// What stands under `## Summary`.
#[derive(Clone, Copy, Debug)]
pub enum BriefSummary<'a> {
    /// Nothing; there is no such heading then.
    Off,
    /// What was said, in few words and by rule.
    Digest,
    /// These words.
    Words(&'a str),
}

/// Writes the brief of `entries`; none if there is nothing in them but the user's own message.
///
/// Instructions are not in it: they are shown as they are.
#[must_use]
pub fn brief(entries: &[Entry], options: &BriefOptions<'_>, report: &mut Report) -> Option<Text> {
    let own = own_message(entries);
    let is_own = |at: &usize| own.as_ref().is_some_and(|own| own.contains(at));
    let covered: Vec<usize> = (0..entries.len())
        .filter(|at| !is_own(at) && entries[*at].side() != Side::System && !is_note(&entries[*at]))
        .collect();
    if covered.is_empty() {
        return None;
    }
    let mut text = format!("{BEGIN}\n");
    push_summary(&mut text, entries, &covered, options.summary, report);
    if options.tools {
        push_tools(&mut text, entries, options, report);
    } else {
        leave_out_tools(entries, options, report);
    }
    text.push('\n');
    text.push_str(END);
    Some(text.into())
}

/// Returns the entries as they are shown with a brief of them: instructions, the brief, the user's own message.
#[must_use]
pub fn with_brief(entries: &[Entry], brief: &Text) -> Vec<Entry> {
    let mut shown: Vec<Entry> =
        entries.iter().filter(|entry| entry.side() == Side::System && !is_note(entry)).cloned().collect();
    let own = own_message(entries).unwrap_or(0..0);
    let mut own = entries[own].iter();
    let opening = Part::text(format!("{brief}\n\n"));
    match own.next().map(|entry| (entry, entry.as_said())) {
        Some((entry, Some(said))) => {
            let parts = joined(opening, &said.parts);
            let trace = entry.trace.with(Treatment::BehindBrief);
            let kind = Kind::Said(Said { parts, ..said.clone() });
            shown.push(Entry { trace, ..entry.altered(kind) });
        }
        _ => {
            let trace = Trace::Added(Addition::Brief);
            shown.push(Entry { trace, ..Entry::said(crate::Role::User, brief.clone()) });
        }
    }
    shown.extend(own.cloned());
    shown
}

/// Returns where the handover stands by whose brief a backend is shown what came before it, if there is one.
///
/// A brief is for the backend that took over by it, until that takes over anew; one that tells of another
/// conversation is for every backend.
#[must_use]
pub fn brief_in_force(entries: &[Entry], backend: &str) -> Option<usize> {
    let mut has_taken_over = false;
    for (at, entry) in entries.iter().enumerate().rev() {
        let Kind::HandedOver(handover) = &entry.kind else { continue };
        let is_for_it = handover.to.backend == backend && !has_taken_over;
        has_taken_over |= handover.to.backend == backend;
        if handover.brief.is_some() && (is_for_it || handover.continues.is_some()) {
            return Some(at);
        }
    }
    None
}

/// Returns `entries` as a backend is shown them that was given a brief of the first of them; none if it was not.
#[must_use]
pub fn briefed(entries: &[Entry], backend: &str) -> Option<Vec<Entry>> {
    let at = brief_in_force(entries, backend)?;
    let Kind::HandedOver(handover) = &entries[at].kind else { return None };
    let mut shown = with_brief(&entries[..at], handover.brief.as_ref()?);
    shown.extend_from_slice(&entries[at + 1..]);
    Some(shown)
}

/// Returns where in `entries` the user's own message is.
#[must_use]
pub fn own_message(entries: &[Entry]) -> Option<Range<usize>> {
    talk::own_message(entries)
}

/// Returns the parts of a message with the brief in front: one text, where the message opens with text.
fn joined(opening: Part, parts: &[Part]) -> Vec<Part> {
    match (&opening.content, parts) {
        (Content::Text(brief), [Part { content: Content::Text(text), .. }, rest @ ..]) => {
            std::iter::once(Part::text(format!("{brief}{text}"))).chain(rest.iter().cloned()).collect()
        }
        _ => std::iter::once(opening).chain(parts.iter().cloned()).collect(),
    }
}

/// Says whether an entry is a note in the record, which nobody is shown.
const fn is_note(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::HandedOver(_))
}

fn push_summary(
    text: &mut String,
    entries: &[Entry],
    covered: &[usize],
    summary: BriefSummary<'_>,
    report: &mut Report,
) {
    let covered: Vec<&Entry> = covered.iter().map(|at| &entries[*at]).collect();
    let (words, became) = match summary {
        BriefSummary::Off => (None, (Action::Dropped, "the brief has no summary of what was said")),
        BriefSummary::Digest => {
            (talk::digest(&covered), (Action::Shortened, "told in the digest of the brief"))
        }
        BriefSummary::Words(words) => {
            (Some(words.to_owned()), (Action::Shortened, "told in the summary of the brief"))
        }
    };
    for entry in covered {
        match &entry.kind {
            Kind::Said(_) | Kind::Summarised(_) => {
                report.entry(became.0, entry.place, named(became.1, entry));
            }
            Kind::Thought(_) => {
                report.entry(Action::Dropped, entry.place, named("a brief holds no reasoning", entry));
            }
            Kind::Opaque { kind } | Kind::Reference { id: kind } => {
                report.entry(Action::Dropped, entry.place, format!("a brief has no words for {kind}"));
            }
            Kind::Called(_) | Kind::Returned(_) | Kind::HandedOver(_) => {}
        }
    }
    if let Some(words) = words.filter(|words| !words.trim().is_empty()) {
        text.push_str("\n## Summary\n");
        words.trim().lines().for_each(|line| push_line(text, line));
    }
}

/// What a line of the summary may not begin with: it would pass for the frame of the brief, a heading of it, or open a
/// fence that swallows what follows.
const SET_APART: [&str; 5] = [BEGIN, END, "## ", "```", "~~~"];

/// Appends a line that cannot pass for the beginning or the end of the brief, nor for a heading or a fence of it.
fn push_line(text: &mut String, line: &str) {
    let bare = line.trim_start();
    if SET_APART.iter().any(|begin| bare.starts_with(begin)) {
        text.push('\\');
    }
    text.push_str(line);
    text.push('\n');
}

/// The sections for what tools said, in their order.
const SECTIONS: [(&str, &[ToolKind]); 4] = [
    ("## Files Read", &[ToolKind::Read]),
    ("## Files Changed", &[ToolKind::Write]),
    ("## Commands Executed", &[ToolKind::Command]),
    ("## Other Tool Results", &[ToolKind::Search, ToolKind::Other]),
];

/// What the headings and the last line may take of what is allowed. A tenth of the rest is for lines that say what
/// there was no room for.
const FRAME_CHARS: usize = 200;

/// Which share of the room one result may take if not everything has room, and what it may take in any case.
const RESULT_SHARE: usize = 4;
const RESULT_CHARS_LEAST: usize = 2_000;

/// Says in the report that nothing is told of tools.
fn leave_out_tools(entries: &[Entry], options: &BriefOptions<'_>, report: &mut Report) {
    for pair in &plan::told(entries, options.rules) {
        note(pair, entries, report, Action::Dropped, "tool context is turned off for briefs");
    }
}

/// Returns how many characters of one result are told: all, if everything has room.
fn result_limit(pairs: &[Told], entries: &[Entry], options: &BriefOptions<'_>) -> usize {
    let (Some(room), None) = (options.tool_chars_max, options.result_chars_max) else {
        return options.result_chars_max.unwrap_or(usize::MAX);
    };
    let telling = Telling::new(entries, pairs, options, usize::MAX);
    let shown = (0..pairs.len()).filter(|at| !telling.is_hidden(*at) && pairs[*at].superseded_by.is_none());
    let whole: usize = shown.map(|at| telling.item(at).0.chars().count()).sum();
    // As much as is handed out before lines are kept free for what has no room.
    let room = room.saturating_sub(FRAME_CHARS);
    if whole <= room - room / 10 { usize::MAX } else { (room / RESULT_SHARE).max(RESULT_CHARS_LEAST) }
}

fn push_tools(text: &mut String, entries: &[Entry], options: &BriefOptions<'_>, report: &mut Report) {
    let pairs = plan::told(entries, options.rules);
    let telling = Telling::new(entries, &pairs, options, result_limit(&pairs, entries, options));
    let mut room = options.tool_chars_max.unwrap_or(usize::MAX).saturating_sub(FRAME_CHARS);
    let reserved = room / 10;
    let mut left_out = 0;
    let mut items: Vec<(usize, String)> = Vec::new();
    // The latest first: what is said last is what the work goes on from.
    for at in (0..pairs.len()).rev() {
        if telling.is_hidden(at) {
            continue;
        }
        if let Some(by) = pairs[at].superseded_by {
            note(&pairs[at], entries, report, Action::Dropped, &superseded(&pairs[by], entries));
            continue;
        }
        let (item, became) = telling.item(at);
        let fits = item.chars().count() <= room.saturating_sub(reserved);
        let (item, became) = if fits { (item, became) } else { telling.left_out(at) };
        let length = item.chars().count();
        if length > room {
            left_out += 1;
            note(&pairs[at], entries, report, Action::Dropped, "the brief has no room for it");
            continue;
        }
        room -= length;
        note(&pairs[at], entries, report, became.0, &became.1);
        items.push((at, item));
    }
    items.reverse();
    for (heading, kinds) in SECTIONS {
        let of_kind = |(at, _): &&(usize, String)| kinds.contains(&pairs[*at].kind);
        let mut of_section = items.iter().filter(of_kind).peekable();
        if of_section.peek().is_some() {
            text.push_str(&format!("\n{heading}\n"));
        }
        of_section.for_each(|(_, item)| text.push_str(item));
    }
    if left_out > 0 {
        let how = if options.recall { "; recall finds them" } else { "" };
        text.push_str(&format!("\n[{left_out} earlier tool results left out: no room{how}]\n"));
    }
}

fn superseded(by: &Told, entries: &[Entry]) -> String {
    let place = by.call.and_then(|call| entries[call].place);
    match place {
        Some(place) => format!("superseded: message {} shows it anew", place.message),
        None => "superseded: a later call shows it anew".to_owned(),
    }
}

fn note(pair: &Told, entries: &[Entry], report: &mut Report, action: Action, reason: &str) {
    for at in pair.call.into_iter().chain(pair.result) {
        report.entry(action, entries[at].place, named(reason, &entries[at]));
    }
}

/// How many characters name something that was said.
const NAME_CHARS: usize = 40;

/// Adds to a reason what it is about, where no place in the request says so: what a model said in answer stands in none.
fn named(reason: &str, entry: &Entry) -> Text {
    let beginning = |text: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(NAME_CHARS) {
            Some((end, _)) => format!("\"{}…\"", &line[..end]),
            None => format!("\"{line}\""),
        }
    };
    let name = match &entry.kind {
        _ if entry.place.is_some() => return reason.into(),
        Kind::Said(said) => beginning(&joined_text(&said.parts)),
        Kind::Summarised(summary) => beginning(&summary.text),
        Kind::Called(call) => format!("call {} of {}", call.id, call.name),
        Kind::Returned(returned) => format!("result of {}", returned.call_id.as_deref().unwrap_or("a call")),
        Kind::Thought(thought) => match thought.content.first().or(thought.summary.first()) {
            Some(text) => beginning(text),
            None => return reason.into(),
        },
        _ => return reason.into(),
    };
    format!("{reason}: {name}").into()
}

#[cfg(test)]
mod tests;
