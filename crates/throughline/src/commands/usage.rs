//! `throughline usage`: tokens and cost, added up from the record.

use super::history;
use super::search::moment;
use crate::args::{Args, UsageArgs};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone};
use throughline_core::ConversationId;
use throughline_gateway::config::Config;
use throughline_gateway::view::{self, UsageBy, UsageRow};
use throughline_store::short_id;

/// Adds up and prints.
pub fn run(asked: &UsageArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_to_read(&config)?;
    let since = moment("--since", asked.since.as_deref())?;
    let by = UsageBy::from(asked.by);
    let report = history::wait(async { Ok(view::usage(&*history, by, since).await?) })?;
    if args.json {
        return output::print(&output::json_line(|writer| {
            view::write_usage_report(writer, by, &report, &config);
        }));
    }
    if report.rows.is_empty() {
        if !args.quiet {
            output::remark("nothing was used in that time; `throughline ls` lists what there is");
        }
        return Ok(());
    }

    let ink = Ink::of_stdout();
    let mut table = table(by);
    let limit = asked.limit as usize;
    report.rows.iter().take(limit).for_each(|row| table.push(cells(row, by, Tone::Plain, &config, &ink)));
    if report.rows.len() > 1 {
        let total = UsageRow { key: "total".to_owned(), title: None, ..report.total.clone() };
        table.push(cells(&total, by, Tone::Bold, &config, &ink));
    }
    output::page(&table.shown(&ink), args)?;
    if !args.quiet {
        remarks(&report.total, report.rows.len().saturating_sub(limit), &config);
    }
    Ok(())
}

fn table(by: UsageBy) -> Table<10> {
    let name = match by {
        UsageBy::Day => "DAY",
        UsageBy::Model => "MODEL",
        UsageBy::Client => "CLIENT",
        UsageBy::Conversation => "CONVERSATION",
        UsageBy::Project => "PROJECT",
    };
    Table::new([
        Column::words(name).down_to(12),
        Column::number("REQUESTS"),
        Column::number("FAILED").spared(),
        Column::number("NEW"),
        Column::number("CACHED"),
        Column::number("WRITTEN").spared(),
        Column::number("OUTPUT"),
        Column::number("REASONING").spared(),
        Column::number("COST"),
        Column::words(if by == UsageBy::Conversation { "TITLE" } else { "" }).down_to(16).spared(),
    ])
}

fn cells(row: &UsageRow, by: UsageBy, tone: Tone, config: &Config, ink: &Ink) -> [Cell; 10] {
    let used = row.used.total().unwrap_or_default();
    let key = match by {
        UsageBy::Conversation if ink.is_on_terminal() && row.title.is_some() => {
            short_id(&ConversationId::new(row.key.as_str())).to_owned()
        }
        _ => row.key.clone(),
    };
    let number = |count: u64| {
        Cell::new(tone, if ink.is_on_terminal() { output::count(count) } else { count.to_string() })
    };
    let cached = used.cache_read.saturating_add(used.cache_written);
    let failed = match row.failed {
        0 => Cell::new(tone, "0"),
        failed => Cell::new(Tone::Bad, failed.to_string()),
    };
    [
        Cell::new(if tone == Tone::Plain { Tone::Bold } else { tone }, key),
        Cell::new(tone, row.requests.to_string()),
        failed,
        number(used.input.saturating_sub(cached)),
        number(used.cache_read),
        number(used.cache_written),
        number(used.output),
        number(used.reasoning),
        Cell::new(tone, cost(row, config)),
        row.title.as_deref().unwrap_or_default().into(),
    ]
}

/// Returns what it cost; of what has prices only in part, at least so much.
fn cost(row: &UsageRow, config: &Config) -> String {
    match (row.used.cost(config), row.used.cost_known(config)) {
        (Some(cost), _) => output::money(cost),
        (None, 0.0) => "-".to_owned(),
        (None, known) => format!("≥{}", output::money(known)),
    }
}

fn remarks(total: &UsageRow, more: usize, config: &Config) {
    let saved = total.used.cache_saved(config);
    if saved > 0.0 {
        output::remark(&format!("providers' caches saved {}", output::money(saved)));
    }
    let unpriced = total.used.unpriced(config);
    if !unpriced.is_empty() {
        output::remark(&format!(
            "no price is known for {}; `prices` of a backend in the configuration sets one",
            unpriced.join(", ")
        ));
    }
    if more > 0 {
        output::remark(&format!("there are {more} more; -n shows them"));
    }
}
