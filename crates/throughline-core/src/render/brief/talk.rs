//! What was said, in few words and without a model: the digest under `## Summary` (R19).
//!
//! It is of the text only. What tools said stands in the sections below it, in its own words.

use crate::{Entry, Kind, Role, Side, joined_text};
use std::ops::Range;

const LINE_CHARS_MAX: usize = 300;
/// The last words of each side are told at more length: they say where the work stands.
const LAST_CHARS_MAX: usize = 1_500;
const SUMMARY_CHARS_MAX: usize = 4_000;
const TALK_CHARS_MAX: usize = 6_000;

/// What clients put between the words of a user, and no user said.
const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// Returns where the user's own message is: the last run of what the user says.
///
/// What a client says in the user's name, a reminder for the model, is no message of the user.
pub(super) fn own_message(entries: &[Entry]) -> Option<Range<usize>> {
    let last = entries.iter().rposition(|entry| is_users(entry) && !words(entry).is_empty())?;
    let first = entries[..last].iter().rposition(|entry| !is_users(entry)).map_or(0, |at| at + 1);
    let end = entries[last..].iter().position(|entry| !is_users(entry)).map_or(entries.len(), |at| last + at);
    Some(first..end)
}

fn is_users(entry: &Entry) -> bool {
    entry.as_said().is_some_and(|said| said.role == Role::User)
}

/// Tells what was said in `entries`, the latest last.
pub(super) fn digest(entries: &[&Entry]) -> Option<String> {
    let lines: Vec<(&'static str, String)> = entries.iter().filter_map(|entry| line(entry)).collect();
    let last = |who: &str| lines.iter().rposition(|(said, _)| *said == who);
    let (user, assistant) = (last(USER), last(ASSISTANT));
    let mut kept: Vec<String> = Vec::new();
    let mut room = TALK_CHARS_MAX;
    for (at, (who, words)) in lines.iter().enumerate().rev() {
        let most = match *who {
            SUMMARY => SUMMARY_CHARS_MAX,
            _ if Some(at) == user || Some(at) == assistant => LAST_CHARS_MAX,
            _ => LINE_CHARS_MAX,
        };
        let told = format!("- {who}: {}", clipped(words, most));
        let length = told.chars().count();
        if length > room && !kept.is_empty() {
            break;
        }
        room = room.saturating_sub(length);
        kept.push(told);
    }
    let left_out = lines.len() - kept.len();
    if left_out > 0 {
        kept.push(format!("({left_out} earlier messages left out)"));
    }
    kept.reverse();
    (!kept.is_empty()).then(|| kept.join("\n"))
}

const USER: &str = "User";
const ASSISTANT: &str = "Assistant";
const SUMMARY: &str = "Summary of earlier work";

fn line(entry: &Entry) -> Option<(&'static str, String)> {
    let who = match &entry.kind {
        Kind::Summarised(_) => SUMMARY,
        Kind::Said(said) if said.role == Role::User => USER,
        Kind::Said(said) if said.role == Role::Assistant => ASSISTANT,
        _ => return None,
    };
    let words = words(entry);
    (!words.is_empty()).then_some((who, words))
}

/// Returns what an entry says, without reminders, on one line.
pub(super) fn words(entry: &Entry) -> String {
    let text = match &entry.kind {
        Kind::Said(said) if entry.side() != Side::System => joined_text(&said.parts),
        Kind::Summarised(summary) => summary.text.clone(),
        _ => return String::new(),
    };
    let (open, close) = REMINDER;
    let mut bare = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once(open) {
        bare.push_str(before);
        rest = behind.split_once(close).map_or("", |(_, behind)| behind);
    }
    bare.push_str(rest);
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn clipped(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_are_nobodys_words() {
        let user = |text: &str| Entry::said(Role::User, text);
        let entries = [
            user("Fix it.\n<system-reminder>Be quiet.</system-reminder>"),
            Entry::said(Role::Assistant, "Done."),
        ];
        let digest = digest(&entries.iter().collect::<Vec<_>>());
        assert_eq!(digest.as_deref(), Some("- User: Fix it.\n- Assistant: Done."));
        let reminded =
            [user("Go."), Entry::said(Role::Assistant, "Yes."), user("<system-reminder>x</system-reminder>")];
        assert_eq!(own_message(&reminded), Some(0..1));
    }

    #[test]
    fn a_long_talk_is_told_from_its_end() {
        let entries: Vec<Entry> =
            (0..200).map(|at| Entry::said(Role::User, format!("{at} {}", "word ".repeat(50)))).collect();
        let digest = digest(&entries.iter().collect::<Vec<_>>()).unwrap();
        assert!(digest.chars().count() <= TALK_CHARS_MAX + 100);
        assert!(digest.starts_with("(1"), "{digest}");
        assert!(digest.contains("- User: 199 word"));
    }
}
