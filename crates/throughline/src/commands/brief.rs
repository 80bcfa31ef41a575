//! `throughline brief`: a request's history as the text that a backend is given which takes over (R18).

use super::convert::write_changes;
use super::history;
use crate::args::{Args, BriefArgs};
use crate::exit::CommandError;
use crate::input;
use crate::output::{self, json_line};
use crate::private;
use throughline_core::plan::ToolRules;
use throughline_core::{
    Action, BriefOptions, BriefSummary, Dialect, Entry, Report, brief, joined_text, own_message,
};
use throughline_gateway::config::HandoverSummary;
use throughline_gateway::exchange::tool_rules;
use throughline_wire::json::Writer;
use throughline_wire::{decode_request, with_all_pairs};

/// Prints the brief of the request, and the user's own message behind it.
pub fn run(asked: &BriefArgs, args: &Args) -> Result<(), CommandError> {
    let input = input::read(asked.file.as_deref())?;
    let dialect = Dialect::from(asked.dialect);
    let ask = decode_request(dialect, input).map_err(|error| {
        CommandError::bad_input(error.to_string())
            .hint("the input must be a request body of the dialect that --dialect names")
    })?;
    let config = history::configured(args)?;
    let active = config.backend(&config.active).or(config.backends.first());
    let rules = active.map_or_else(ToolRules::default, |backend| tool_rules(backend));
    let settings = &config.handover;
    let is_silent = asked.no_summary || settings.summary == HandoverSummary::Off;
    let options = BriefOptions {
        rules: &rules,
        summary: if is_silent { BriefSummary::Off } else { BriefSummary::Digest },
        tools: settings.tool_context,
        result_chars_max: asked.max_chars.or(settings.max_result_chars),
        tool_chars_max: asked.max_total_chars.or(settings.max_tool_context_chars),
        recall: active.is_none_or(|backend| backend.history.recall),
    };
    let mut report = Report { strategy: "brief", ..Report::default() };
    let entries = with_all_pairs(ask.entries.clone());
    let text = brief(&entries, &options, &mut report);
    report.sort();
    if let Some(file) = &asked.report {
        let written = private::write(file, json_line(|writer| write_report(writer, &report, dialect)));
        written.map_err(|source| CommandError::file(file.display(), source))?;
    }
    let own = own_words(&ask.entries);
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            write_text(writer, "brief", text.as_deref());
            write_text(writer, "message", own.as_deref());
            writer.key("report");
            write_report(writer, &report, dialect);
            writer.end_object();
        }));
    }
    let texts: Vec<&str> = text.as_deref().into_iter().chain(own.as_deref()).collect();
    output::print(&format!("{}\n", texts.join("\n\n")))?;
    if !args.quiet {
        remark(text.is_some(), &report);
    }
    Ok(())
}

fn own_words(entries: &[Entry]) -> Option<String> {
    let own = own_message(entries)?;
    let said = entries[own].iter().filter_map(Entry::as_said);
    Some(said.map(|said| joined_text(&said.parts).to_string()).collect::<Vec<_>>().join("\n"))
}

fn write_report(writer: &mut Writer, report: &Report, dialect: Dialect) {
    writer.begin_object();
    writer.field_str("strategy", report.strategy);
    write_changes(writer, report, dialect);
    writer.end_object();
}

fn write_text(writer: &mut Writer, name: &str, text: Option<&str>) {
    match text {
        Some(text) => writer.field_str(name, text),
        None => writer.field_null(name),
    }
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
