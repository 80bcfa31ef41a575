//! `throughline compact`: what compaction would send of a request, and why.
//!
//! The body goes to standard output and what became of it to standard error, so that both can be used: the one
//! by a program, the other by whoever wants to know what a budget costs.

use super::convert::one_line;
use crate::args::Args;
use crate::args::CompactArgs;
use crate::exit::CommandError;
use crate::input;
use crate::output;
use crate::private;
use std::path::Path;
use throughline_core::Dialect;
use throughline_core::plan::{Budget, Tokens};
use throughline_gateway::exchange::{Preview, PreviewError, Shown, Wanted, preview};
use throughline_wire::json::{Document, Edit, Writer, patch, quote};

/// What can be decided about an entry, the gentlest first.
const DECISIONS: [&str; 6] = ["kept", "superseded", "excerpt", "masked", "summarised", "dropped"];

/// Compacts the input, and writes the outcome and its report.
pub fn run(asked: &CompactArgs, args: &Args) -> Result<(), CommandError> {
    let input = input::read(asked.file.as_deref())?;
    let wanted = wanted(asked);
    let compacted = compacted(&input, asked, &wanted)?;
    let report = report(&compacted, asked);
    if let Some(file) = &asked.report {
        write(file, &format!("{report}\n"))?;
    }
    if args.json {
        return output::print(&format!("{}\n", with_body(&report, &compacted)));
    }
    output::print(&format!("{}\n", compacted.body))?;
    if !args.quiet {
        output::remark(&summary(&compacted, asked));
    }
    Ok(())
}

fn wanted(asked: &CompactArgs) -> Wanted {
    let budget = Budget {
        prompt: Some(Tokens(asked.budget)),
        tool_history: asked.threshold.map(Tokens),
        recent_calls_to_keep: asked.keep,
        policy: asked.policy.into(),
        ..Budget::default()
    };
    Wanted { dialect: asked.dialect.into(), budget, recall: !asked.no_recall, fill: asked.fill }
}

fn compacted(input: &str, asked: &CompactArgs, wanted: &Wanted) -> Result<Preview, CommandError> {
    if input.trim().is_empty() {
        return Err(CommandError::bad_input("the input is empty (at byte 0)"));
    }
    let bad = |error: String| {
        CommandError::bad_input(error)
            .hint("the input must be one request body of the dialect that --dialect names")
    };
    let document = Document::parse(input).map_err(|error| bad(error.to_string()))?;
    let document = match &asked.model {
        Some(model) => {
            let edits = [Edit::Set { name: "model", value: &quote(model) }];
            let text = patch(input, &edits).map_err(|error| bad(error.to_string()))?;
            Document::parse(text.as_str()).map_err(|error| bad(error.to_string()))?
        }
        None => document,
    };
    preview(&document, wanted).map_err(|error| match error {
        PreviewError::Undecodable(error) => bad(error.to_string()),
        PreviewError::Unplanned(error) => CommandError::no(format!("it does not fit: {error}")),
    })
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    private::write(file, text).map_err(|source| CommandError::file(file.display(), source))
}

/// Returns what was done, in one object.
fn report(compacted: &Preview, asked: &CompactArgs) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("dialect", Dialect::from(asked.dialect).name());
    writer.field_str("model", compacted.model.as_deref().unwrap_or_default());
    writer.field_str("counted", counted(compacted));
    writer.field_uint("budget", asked.budget);
    if let Some(threshold) = asked.threshold {
        writer.field_uint("threshold", threshold);
    }
    writer.field_uint("tokens_before", compacted.tokens.0);
    writer.field_uint("tokens_after", compacted.tokens.1);
    writer.field_uint("tokens_at_most_before", compacted.tokens_at_most.0);
    writer.field_uint("tokens_at_most_after", compacted.tokens_at_most.1);
    writer.field_uint("tool_tokens_before", compacted.tool_tokens.0);
    writer.field_uint("tool_tokens_after", compacted.tool_tokens.1);
    if let Some(recall) = &compacted.recall {
        writer.field_str("recall", recall);
    }
    for decision in DECISIONS {
        writer.field_uint(decision, count(compacted, decision) as u64);
    }
    writer.key("entries");
    writer.begin_array();
    compacted.entries.iter().for_each(|shown| write_shown(&mut writer, shown));
    writer.end_array();
    if let Some((place, text)) = &compacted.summary {
        writer.key("summary");
        writer.begin_object();
        writer.field_str("place", place);
        writer.field_str("text", text);
        writer.end_object();
    }
    writer.key("changes");
    writer.begin_array();
    for (place, action, reason) in &compacted.changes {
        writer.begin_object();
        writer.field_str("action", action);
        writer.field_str("place", place);
        writer.field_str("reason", reason);
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.into_string()
}

fn write_shown(writer: &mut Writer, shown: &Shown) {
    writer.begin_object();
    writer.field_str("place", &shown.place);
    writer.field_str("kind", shown.kind);
    writer.field_str("decision", shown.decision);
    writer.field_uint("tokens_before", shown.tokens.0);
    writer.field_uint("tokens_after", shown.tokens.1);
    if let Some(handle) = &shown.handle {
        writer.field_str("handle", handle);
    }
    writer.field_str("reason", &shown.reason);
    writer.end_object();
}

/// Returns the report with the body in it, on one line.
fn with_body(report: &str, compacted: &Preview) -> String {
    let edits = [Edit::Set { name: "body", value: &compacted.body }];
    // What we wrote ourselves can be patched.
    one_line(&patch(report, &edits).unwrap_or_else(|_| report.to_owned())).trim_end().to_owned()
}

const fn counted(compacted: &Preview) -> &'static str {
    if compacted.is_exact { "exact" } else { "estimate" }
}

fn count(compacted: &Preview, decision: &str) -> usize {
    compacted.entries.iter().filter(|shown| shown.decision == decision).count()
}

/// Returns what was done, in the words of people.
fn summary(compacted: &Preview, asked: &CompactArgs) -> String {
    let (before, after) = compacted.tokens;
    let about = if compacted.is_exact { "" } else { "about " };
    // The budget is held against the most that an estimate may stand for, so that is said beside it.
    let at_most = |tokens: u64| match compacted.is_exact {
        true => String::new(),
        false => format!(" (at most {tokens})"),
    };
    let (most_before, most_after) =
        (at_most(compacted.tokens_at_most.0), at_most(compacted.tokens_at_most.1));
    if compacted.entries.iter().all(|shown| shown.decision == "kept") {
        return format!("{about}{before}{most_before} tokens of {}: nothing was touched", asked.budget);
    }
    let decisions: Vec<String> = DECISIONS
        .into_iter()
        .map(|decision| (decision, count(compacted, decision)))
        .filter(|(_, count)| *count > 0)
        .map(|(decision, count)| format!("{decision} {count}"))
        .collect();
    let (tools_before, tools_after) = compacted.tool_tokens;
    let mut text = format!(
        "{about}{before}{most_before} tokens, now {after}{most_after} of {}; calls and results {tools_before}, now \
         {tools_after}\n{}",
        asked.budget,
        decisions.join(", ")
    );
    if let Some(recall) = &compacted.recall {
        text.push_str(&format!(
            "\nthe tool `{recall}` is offered, which the gateway answers; --no-recall leaves it out"
        ));
    }
    if asked.report.is_none() {
        text.push_str("\n--report FILE says of each entry what became of it, and why");
    }
    text
}
