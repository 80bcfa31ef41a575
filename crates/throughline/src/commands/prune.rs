//! `throughline rm` and `throughline store prune`: take conversations out of the history.

use super::history;
use crate::args::{Args, PruneArgs};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Spinner, Table, Tone, counted, json_line};
use throughline_core::ConversationId;
use throughline_gateway::gateway::now;
use throughline_gateway::view;
use throughline_store::{Conversations, Heading, History, Moment, Outworn, Prune, Pruned};
use throughline_wire::json::Writer;

/// Removes the conversations of these ids.
pub fn remove(typed: &[String], args: &Args) -> Result<(), CommandError> {
    let history = history::open_existing(&history::configured(args)?)?;
    let pruned = history::wait(async {
        let which = Outworn::These(found(&*history, typed).await?);
        Ok(history.prune(Prune { which, dry_run: false }).await?)
    })?;
    tell(&pruned, false, args)
}

/// Takes old conversations out.
pub fn run(asked: &PruneArgs, args: &Args) -> Result<(), CommandError> {
    let history = history::open_existing(&history::configured(args)?)?;
    let spinner = Spinner::of("taking conversations out", !args.quiet);
    let (pruned, headings) = history::wait(async {
        let which = match (&asked.which.older_than, &asked.which.max_size) {
            (Some(age), _) => Outworn::Before(Moment(now().0 - milliseconds(age)?)),
            (_, Some(size)) => Outworn::Beyond(bytes(size)?),
            _ => Outworn::These(found(&*history, &asked.which.conversation).await?),
        };
        let pruned = history.prune(Prune { which, dry_run: asked.dry_run }).await?;
        if asked.shrink {
            spinner.busy("giving the space back");
            history.shrink().await?;
        }
        let mut headings = Vec::new();
        if asked.dry_run {
            for id in &pruned.conversations {
                headings.extend(history.conversations(Conversations::One(id.clone())).await?.items);
            }
        }
        Ok((pruned, headings))
    })?;
    drop(spinner);
    if asked.dry_run && !args.json && !args.quiet {
        let ink = Ink::of_stdout();
        output::page(&listed(&headings, &ink).shown(&ink), args)?;
        remark(&pruned, true);
        return Ok(());
    }
    tell(&pruned, asked.dry_run, args)
}

/// Returns what would go, so that it can be told whether that is meant.
fn listed(headings: &[Heading], ink: &Ink) -> Table<5> {
    let mut table = Table::new([
        Column::words("ID"),
        Column::words("LAST USED"),
        Column::number("ENTRIES"),
        Column::number("EXCHANGES").spared(),
        Column::words("TITLE").down_to(20),
    ]);
    for heading in headings {
        table.push([
            Cell::new(Tone::Bold, heading.id.as_str()),
            ink.when(heading.updated).into(),
            heading.entries.to_string().into(),
            heading.exchanges.to_string().into(),
            heading.title.as_deref().unwrap_or("-").into(),
        ]);
    }
    table
}

async fn found(history: &dyn History, typed: &[String]) -> Result<Vec<ConversationId>, CommandError> {
    let mut ids = Vec::new();
    for typed in typed {
        ids.push(history::find(history, typed).await?);
    }
    Ok(ids)
}

fn tell(pruned: &Pruned, dry_run: bool, args: &Args) -> Result<(), CommandError> {
    if args.json {
        return output::print(&json_line(|writer| write(writer, pruned, dry_run)));
    }
    if args.quiet {
        return Ok(());
    }
    let ids: String = pruned.conversations.iter().map(|id| format!("{id}\n")).collect();
    output::print(&ids)?;
    remark(pruned, dry_run);
    Ok(())
}

fn remark(pruned: &Pruned, dry_run: bool) {
    let would = if dry_run { "would go" } else { "gone" };
    let mut counts = vec![
        counted(pruned.conversations.len() as u64, "conversation", "conversations"),
        counted(pruned.entries, "entry", "entries"),
        counted(pruned.exchanges, "exchange", "exchanges"),
    ];
    if !dry_run {
        counts.push(counted(pruned.contents, "content", "contents"));
    }
    output::remark(&format!("{} {would}", counts.join(", ")));
}

fn write(writer: &mut Writer, pruned: &Pruned, dry_run: bool) {
    writer.begin_object();
    writer.field_bool("dry_run", dry_run);
    writer.key("conversations");
    writer.begin_array();
    pruned.conversations.iter().for_each(|id| writer.string(id.as_str()));
    writer.end_array();
    writer.field_uint("entries", pruned.entries);
    writer.field_uint("exchanges", pruned.exchanges);
    writer.field_uint("contents", pruned.contents);
    writer.end_object();
}

fn milliseconds(text: &str) -> Result<i64, CommandError> {
    view::age(text).ok_or_else(|| {
        CommandError::bad_input(format!("--older-than: `{text}` is no age such as 90d, 12h or 30m"))
    })
}

/// Reads a size: `500MB`, `20GB`, or plain bytes.
fn bytes(text: &str) -> Result<u64, CommandError> {
    let units = [("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000), ("", 1)];
    let read = units.iter().find_map(|(unit, each): &(&str, u64)| {
        text.strip_suffix(unit)?.trim_end().parse::<u32>().ok().map(|count| u64::from(count) * each)
    });
    read.ok_or_else(|| {
        CommandError::bad_input(format!("--max-size: `{text}` is no size such as 500MB or 20GB"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_read_as_people_write_them() {
        assert_eq!(milliseconds("2d").unwrap(), 172_800_000);
        assert_eq!(milliseconds("90m").unwrap(), 5_400_000);
        assert!(milliseconds("90").is_err() && milliseconds("-1d").is_err() && milliseconds("d").is_err());
        assert_eq!(bytes("20GB").unwrap(), 20_000_000_000);
        assert_eq!(bytes("12").unwrap(), 12);
        assert!(bytes("12XB").is_err() && bytes("GB").is_err());
    }
}
