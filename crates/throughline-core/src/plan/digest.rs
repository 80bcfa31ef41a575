//! The digest: old rounds in few words, without a model (R11, R19).
//!
//! Counts per kind of tool, the files, commands and queries, the latest first as far as there is room, and
//! failures in their own words.

use super::HandleRange;
use super::survey::{Pair, Survey};
use super::tools::ToolKind;
use crate::exit::error_line;
use crate::joined_text;
use std::fmt::Write as _;

/// How a digest begins; by it one is told from the words of a model.
pub(super) const HEADING: &str = "[Earlier in this session";

const COMMAND_CHARS_MAX: usize = 80;
const ERROR_CHARS_MAX: usize = 200;
const ERRORS_MAX: usize = 5;

/// What a digest stands for.
#[derive(Default)]
pub(super) struct Gone {
    /// The pairs that went into it, among those of the survey.
    pub summarised: Vec<usize>,
    /// How many were left out besides because later ones show the same anew; there is nothing to tell about them.
    pub repeated: usize,
    /// By which the model can have all of them back, if it can.
    pub range: Option<HandleRange>,
}

impl Gone {
    /// Returns how many pairs are gone.
    pub const fn pairs(&self) -> usize {
        self.summarised.len() + self.repeated
    }
}

/// Tells what is gone, in about that many characters.
pub(super) fn digest(survey: &Survey<'_>, gone: &Gone, chars_max: usize) -> String {
    let pairs = &gone.summarised;
    let how = gone.range.map_or_else(String::new, |range| format!("; recall {range} lists them"));
    let why = if pairs.is_empty() { ", as later ones show the same" } else { "" };
    let mut text = format!("{HEADING}, {} tool calls, left out here{why}{how}]", gone.pairs());
    let share = chars_max / 4;
    for (kind, intro) in [
        (ToolKind::Read, "Read"),
        (ToolKind::Write, "Changed"),
        (ToolKind::Command, "Ran"),
        (ToolKind::Search, "Searched for"),
        (ToolKind::Other, "Used"),
    ] {
        let of_kind: Vec<&Pair> =
            pairs.iter().map(|at| &survey.pairs[*at]).filter(|pair| pair.usage.kind == kind).collect();
        if !of_kind.is_empty() {
            let _ = write!(text, "\n- {intro}: {}", listed(survey, &of_kind, share));
        }
    }
    let failed: Vec<&Pair> = pairs.iter().map(|at| &survey.pairs[*at]).filter(|pair| pair.failed).collect();
    if !failed.is_empty() {
        text.push_str("\n[Errors encountered]");
    }
    for pair in failed.iter().rev().take(ERRORS_MAX).rev() {
        let _ = write!(text, "\n- {}: {}", name(survey, pair), failure(survey, pair));
    }
    text
}

/// Lists what the pairs were used on, each once, the latest first, within `chars_max`.
fn listed(survey: &Survey<'_>, pairs: &[&Pair], chars_max: usize) -> String {
    let mut seen: Vec<String> = Vec::new();
    for pair in pairs.iter().rev() {
        let items = match (&pair.usage.key, pair.usage.kind) {
            (Some(key), kind) if kind != ToolKind::Other => vec![clipped(key, COMMAND_CHARS_MAX)],
            (None, ToolKind::Write) if !pair.usage.files.is_empty() => pair.usage.files.clone(),
            _ => vec![name(survey, pair).to_owned()],
        };
        for item in items {
            if !seen.contains(&item) {
                seen.push(item);
            }
        }
    }
    let mut length = 0;
    let fits = |item: &&String| {
        length += item.len() + 2;
        length <= chars_max
    };
    let shown = seen.iter().take_while(fits).count().max(1);
    let mut text = seen[..shown.min(seen.len())].join(", ");
    if seen.len() > shown {
        let _ = write!(text, ", +{} more", seen.len() - shown);
    }
    text
}

fn name<'s>(survey: &'s Survey<'_>, pair: &Pair) -> &'s str {
    let call = pair.call.and_then(|call| survey.entries[call].as_call());
    call.map_or("tool", |call| call.name.as_str())
}

fn failure(survey: &Survey<'_>, pair: &Pair) -> String {
    let returned = pair.result.and_then(|result| survey.entries[result].as_return());
    let text = returned.map(|returned| joined_text(&returned.parts)).unwrap_or_default();
    clipped(error_line(&text).unwrap_or_default(), ERROR_CHARS_MAX)
}

/// Returns the beginning of a text on one line.
fn clipped(text: &str, chars_max: usize) -> String {
    let mut line: String = text.chars().take(chars_max).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if text.chars().nth(chars_max).is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, result, settled};
    use super::super::{Tokens, ToolRules};
    use super::*;
    use crate::Outcome;

    #[test]
    fn a_digest_counts_names_and_quotes_failures() {
        let entries = [
            call("a", "Read", r#"{"file_path":"src/a.rs"}"#),
            result("a", "fn a"),
            call("b", "Read", r#"{"file_path":"src/b.rs"}"#),
            result("b", "fn b"),
            call("c", "Bash", r#"{"command":"cargo test"}"#),
            settled("c", "error[E0308]: mismatched types", Outcome::Error),
            call("d", "book_flight", "{}"),
            result("d", "ok"),
        ];
        let sizes = vec![Tokens(10); entries.len()];
        let survey = Survey::of(&entries, &sizes, &ToolRules::default());
        let range = HandleRange { first: survey.pairs[0].handle, last: survey.pairs[3].handle };
        let gone = Gone { summarised: vec![0, 1, 2, 3], repeated: 1, range: Some(range) };
        let text = digest(&survey, &gone, 1_000);
        let heading =
            format!("[Earlier in this session, 5 tool calls, left out here; recall {range} lists them]");
        let expected = "\n\
                        - Read: src/b.rs, src/a.rs\n- Ran: cargo test\n- Used: book_flight\n\
                        [Errors encountered]\n- Bash: error[E0308]: mismatched types";
        assert_eq!(text, format!("{heading}{expected}"));
        let two = Gone { summarised: vec![0, 1], ..Gone::default() };
        assert!(digest(&survey, &two, 20).contains("+1 more"));
        let repeated = digest(&survey, &Gone { repeated: 2, ..Gone::default() }, 100);
        assert_eq!(
            repeated,
            "[Earlier in this session, 2 tool calls, left out here, as later ones show the same]"
        );
    }
}
