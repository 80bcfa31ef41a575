//! `throughline brief`: a request's history as the text that a backend is given which takes over (R18).

use super::convert::write_changes;
use crate::args::BriefArgs;
use crate::exit::CommandError;
use crate::input;
use crate::output;
use throughline_core::plan::ToolRules;
use throughline_core::{
    Action, BriefOptions, BriefSummary, Dialect, Entry, Report, brief, joined_text, own_message,
};
use throughline_wire::decode_request;
use throughline_wire::json::Writer;

/// Prints the brief of the request, and the user's own message behind it.
pub fn run(args: &BriefArgs, quiet: bool) -> Result<(), CommandError> {
    let input = input::read(args.file.as_deref())?;
    let dialect = Dialect::from(args.dialect);
    let ask = decode_request(dialect, input).map_err(|error| CommandError::BadInput {
        message: error.to_string(),
        hint: Some("the input must be a request body of the dialect that --dialect names"),
    })?;
    let rules = ToolRules::default();
    let least = BriefOptions::TOOL_CHARS_MAX.max(args.max_chars.saturating_mul(2));
    let options = BriefOptions {
        rules: &rules,
        summary: if args.no_summary { BriefSummary::Off } else { BriefSummary::Digest },
        result_chars_max: args.max_chars,
        tool_chars_max: args.max_total_chars.unwrap_or(least),
        recall: true,
    };
    let mut report = Report { strategy: "brief", ..Report::default() };
    let text = brief(&ask.entries, &options, &mut report);
    report.sort();
    if let Some(file) = &args.report {
        let written = std::fs::write(file, report_of(&report, dialect));
        written.map_err(|source| CommandError::File { path: file.display().to_string(), source })?;
    }
    let own = own_words(&ask.entries);
    let texts: Vec<&str> = text.as_deref().into_iter().chain(own.as_deref()).collect();
    output::print(&format!("{}\n", texts.join("\n\n")))?;
    if !quiet {
        remark(text.is_some(), &report);
    }
    Ok(())
}

fn own_words(entries: &[Entry]) -> Option<String> {
    let own = own_message(entries)?;
    let said = entries[own].iter().filter_map(Entry::as_said);
    Some(said.map(|said| joined_text(&said.parts).to_string()).collect::<Vec<_>>().join("\n"))
}

fn report_of(report: &Report, dialect: Dialect) -> String {
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("strategy", report.strategy);
    write_changes(&mut writer, report, dialect);
    writer.end_object();
    writer.into_string() + "\n"
}

fn remark(is_told: bool, report: &Report) {
    if !is_told {
        return output::remark("there is nothing before the user's own message");
    }
    let counts = [Action::Shortened, Action::Dropped].map(|action| (action.name(), report.count(action)));
    let told: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !told.is_empty() {
        output::remark(&format!("not told whole: {}", told.join(", ")));
    }
}
