//! `throughline convert`: request bodies from one dialect to another.
//!
//! Everything is translated before anything is written, so that bad input leaves no half of an output
//! behind. Several documents in one input are JSON Lines, in and out.

use crate::args::ConvertArgs;
use crate::exit::CommandError;
use crate::input;
use crate::output;
use crate::private;
use std::path::Path;
use std::sync::Arc;
use throughline_core::{Action, Dialect, Report, Rules, Target, Text, prepare};
use throughline_wire::json::{DecodeError, Document, Writer};
use throughline_wire::{decode_document, encode_request, path, with_hosted_pairs};

struct Converted {
    body: String,
    report: Report,
}

/// Translates the input and writes the outcome and its report.
pub fn run(args: &ConvertArgs, quiet: bool) -> Result<(), CommandError> {
    let rules = rules(args)?;
    let input = input::read(args.file.as_deref())?;
    let converted = convert_all(&input, args, &rules)?;
    if let Some(file) = &args.report {
        write_reports(file, &converted, args, &rules)?;
    }
    let lines: String = if let [only] = converted.as_slice() {
        format!("{}\n", only.body)
    } else {
        converted.iter().map(|each| one_line(&each.body)).collect()
    };
    output::print(&lines)?;
    if !quiet {
        remark_on_changes(&converted, args);
    }
    Ok(())
}

fn rules(args: &ConvertArgs) -> Result<Rules, CommandError> {
    let dialect = Dialect::from(args.to);
    let Some(name) = &args.rules else { return Ok(Rules::of_dialect(dialect)) };
    let names = || -> String {
        let fitting = Rules::built_in().into_iter().filter(|rules| rules.dialect == dialect);
        fitting.map(|rules| rules.name.to_string()).collect::<Vec<_>>().join(", ")
    };
    match Rules::from_name(name) {
        Some(rules) if rules.dialect == dialect => Ok(rules),
        Some(rules) => Err(CommandError::bad_input(format!(
            "--rules {name}: these are rules for {}, and the output is {dialect}; for that there are {}",
            rules.dialect,
            names()
        ))),
        None => Err(CommandError::bad_input(format!("--rules {name}: no such rules; there are {}", names()))),
    }
}

fn convert_all(input: &Arc<str>, args: &ConvertArgs, rules: &Rules) -> Result<Vec<Converted>, CommandError> {
    let mut converted = Vec::new();
    let mut start = 0;
    let named = |error: DecodeError, count: usize| {
        let document = if count == 0 { String::new() } else { format!("document {}: ", count + 1) };
        CommandError::bad_input(format!("{document}{error}"))
            .hint("the input must be a request body of the dialect that --from names")
    };
    while let Some((document, end)) =
        Document::parse_prefix(input, start).map_err(|error| named(error.into(), converted.len()))?
    {
        let one = convert(&document, args, rules).map_err(|error| named(error, converted.len()))?;
        converted.push(one);
        start = end;
    }
    if converted.is_empty() {
        return Err(CommandError::bad_input("the input is empty (at byte 0)"));
    }
    Ok(converted)
}

fn convert(document: &Document, args: &ConvertArgs, rules: &Rules) -> Result<Converted, DecodeError> {
    let mut ask = decode_document(args.from.into(), document)?;
    ask.entries = with_hosted_pairs(ask.entries, rules);
    let target = Target {
        strategy: args.strategy(),
        foreign_reasoning: args.foreign_reasoning(),
        model: args.model.as_deref().map(Text::from),
        ..Target::new(rules)
    };
    let (prompt, mut report) = prepare(&ask, &target);
    let body = encode_request(&prompt, &mut report);
    Ok(Converted { body, report })
}

/// Returns a body as one line: outside of strings, where none can stand, a line break is white space.
pub(super) fn one_line(body: &str) -> String {
    let mut line = body.replace(['\n', '\r'], " ");
    line.push('\n');
    line
}

fn write_reports(
    file: &Path,
    converted: &[Converted],
    args: &ConvertArgs,
    rules: &Rules,
) -> Result<(), CommandError> {
    let lines: String = converted.iter().map(|each| report_line(&each.report, args, rules)).collect();
    private::write(file, lines).map_err(|source| CommandError::file(file.display(), source))
}

fn report_line(report: &Report, args: &ConvertArgs, rules: &Rules) -> String {
    let from = Dialect::from(args.from);
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("from", from.name());
    writer.field_str("to", rules.dialect.name());
    writer.field_str("rules", &rules.name);
    writer.field_str("strategy", report.strategy);
    write_changes(&mut writer, report, from);
    writer.end_object();
    one_line(&writer.into_string())
}

/// Writes how many changes of each kind there are, and each of them.
pub(super) fn write_changes(writer: &mut Writer, report: &Report, from: Dialect) {
    for action in Action::ALL {
        writer.field_uint(action.name(), report.count(action) as u64);
    }
    writer.key("changes");
    writer.begin_array();
    for change in &report.changes {
        writer.begin_object();
        writer.field_str("action", change.action.name());
        writer.field_str("place", &path(from, &change.subject));
        writer.field_str("reason", &change.reason);
        writer.end_object();
    }
    writer.end_array();
}

fn remark_on_changes(converted: &[Converted], args: &ConvertArgs) {
    let counts: Vec<String> = Action::ALL
        .into_iter()
        .map(|action| (action, converted.iter().map(|each| each.report.count(action)).sum::<usize>()))
        .filter(|(_, count)| *count > 0)
        .map(|(action, count)| format!("{} {count}", action.name()))
        .collect();
    if counts.is_empty() {
        return;
    }
    let place = if args.report.is_some() { "" } else { "; --report FILE lists each with its reason" };
    output::remark(&format!("changed for the target: {}{place}", counts.join(", ")));
}
