//! `get_tool_result`: what a tool returned, word for word, as much of it as the budget takes.

use throughline_store::History;

use crate::budget::{BudgetedText, tokens};
use crate::error::ToolError;
use crate::lookup;
use crate::query::Term;
use crate::rank::session_line;
use crate::request::{self, ResultRequest};
use crate::units::{Session, Unit};

const TOKENS_USUAL: u64 = 4_000;

/// How much of the arguments of a call is shown above its result.
const INPUT_CHARS_MAX: usize = 400;

/// How many lines are shown around one that holds a word of the query.
const LINES_AROUND: usize = 2;

/// The most characters of one line; a file on a single line is read by query.
const LINE_CHARS_MAX: usize = 4_000;

/// Answers with a result, or with what somebody said.
pub async fn read(history: &dyn History, asked: &ResultRequest) -> Result<String, ToolError> {
    let (session, unit) = lookup::unit(history, &asked.id, asked.session.as_deref()).await?;
    let output = session.output_text(unit);
    let lines: Vec<&str> = output.lines().collect();
    let mut text = BudgetedText::new(request::budget(asked.max_tokens, TOKENS_USUAL));
    text.push(&head(&session, unit));
    if lines.is_empty() {
        text.push_anyway("[the result is empty]\n");
        return Ok(text.into_string());
    }
    let (from, to) = range(asked, lines.len())?;
    match asked.query.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => matching(&mut text, &lines, from, to, query)?,
        None => whole(&mut text, &lines, from, to),
    }
    Ok(text.into_string())
}

/// Returns what was called, how it went, and where that is from.
fn head(session: &Session, unit: Unit) -> String {
    let ended = session.ended(unit).words();
    let ended = if ended.is_empty() { ended } else { format!(" → {ended}") };
    format!(
        "{} [{}]{ended}\n{}\n\n",
        session.title(unit, INPUT_CHARS_MAX),
        session.unit_id(unit),
        session_line(session, session.at(unit)),
    )
}

/// Returns the lines that were asked for, as indexes.
fn range(asked: &ResultRequest, lines: usize) -> Result<(usize, usize), ToolError> {
    let from = asked.from_line.unwrap_or(1).max(1);
    let to = asked.to_line.unwrap_or(lines);
    if from > lines || to < from {
        return Err(ToolError::NoLines { lines, from, to });
    }
    Ok((from - 1, to.min(lines)))
}

/// Writes lines as they are, and where to go on if they do not all fit.
fn whole(text: &mut BudgetedText, lines: &[&str], from: usize, to: usize) {
    for (at, line) in lines.iter().enumerate().take(to).skip(from) {
        let line = bounded(line);
        if !text.push(&format!("{line}\n")) {
            text.push_anyway(&format!(
                "[lines {} to {at} of {}; go on with from_line {}]\n",
                from + 1,
                lines.len(),
                at + 1
            ));
            return;
        }
    }
    if from > 0 || to < lines.len() {
        text.push_anyway(&format!("[lines {} to {to} of {}]\n", from + 1, lines.len()));
    }
}

/// Writes the lines that hold a word of the query and those around them, with their numbers.
fn matching(
    text: &mut BudgetedText,
    lines: &[&str],
    from: usize,
    to: usize,
    query: &str,
) -> Result<(), ToolError> {
    let terms = Term::parse(query);
    let lower = |line: &str| line.chars().flat_map(char::to_lowercase).collect::<String>();
    let count = |line: &str| {
        let line = lower(line);
        terms.iter().filter(|term| term.find(&line).is_some()).count()
    };
    let counts: Vec<usize> = lines[from..to].iter().map(|line| count(line)).collect();
    // Where some lines hold several of the words, those with only one of them are beside the point.
    let best = counts.iter().copied().max().unwrap_or_default();
    if best == 0 {
        return Err(ToolError::NoMatch { lines: lines.len(), query: query.to_owned() });
    }
    let wanted = best.div_ceil(2);
    let is_shown = |at: usize| {
        let around = at.saturating_sub(LINES_AROUND)..(at + LINES_AROUND + 1).min(counts.len());
        counts[around].iter().any(|count| *count >= wanted)
    };
    let mut last = None;
    for at in (0..counts.len()).filter(|at| is_shown(*at)) {
        let gap = if last.is_some_and(|last| last + 1 < at) { "…\n" } else { "" };
        let line = format!("{gap}{}: {}\n", from + at + 1, bounded(lines[from + at]));
        if !text.push(&line) {
            text.push_anyway(&format!("[there are more matches; go on with from_line {}]\n", from + at + 1));
            return Ok(());
        }
        last = Some(at);
    }
    text.push_anyway(&format!("[of {} lines]\n", lines.len()));
    Ok(())
}

/// Returns a line, cut where it is longer than any line that is read.
fn bounded(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}… [{} more tokens on this line]", &line[..end], tokens(&line[end..])),
        None => line.to_owned(),
    }
}
