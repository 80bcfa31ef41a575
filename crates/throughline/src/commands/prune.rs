//! `throughline rm` and `throughline store prune`: take conversations out of the history.

use super::{history, trash};
use crate::args::{Args, CareArgs, PruneArgs, RmArgs};
use crate::exit::CommandError;
use crate::output::{self, Bar, Cell, Column, Ink, Spinner, Table, Tone, Unit, counted, json_line};
use crate::terminal;
use std::path::Path;
use throughline_core::ConversationId;
use throughline_gateway::gateway::now;
use throughline_gateway::view;
use throughline_store::{Conversations, Heading, History, Moment, Outworn, Prune, Pruned};
use throughline_wire::json::Writer;

/// So many conversations are shown before somebody is asked whether they go.
const ASKED_MAX: usize = 20;

/// Removes the conversations of these ids, or brings back what was removed last.
pub fn remove(asked: &RmArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_existing(&config)?;
    let folder = trash::folder(&config);
    if asked.undo {
        let ids = history::wait(async { trash::undo(&*history, &folder).await })?;
        return tell_undone(&ids, args);
    }
    let pruned = history::wait(async {
        let ids = found(&*history, &asked.id).await?;
        delete(&*history, ids, asked.care, &folder, args).await
    })?;
    tell(&pruned, false, args)?;
    remark_on_undo(asked.care, args);
    Ok(())
}

/// Takes old conversations out.
pub fn run(asked: &PruneArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_existing(&config)?;
    let folder = trash::folder(&config);
    let which = |ids: Vec<ConversationId>| match (&asked.which.older_than, &asked.which.max_size) {
        (Some(age), _) => Ok::<_, CommandError>(Outworn::Before(Moment(now().0 - milliseconds(age)?))),
        (_, Some(size)) => Ok(Outworn::Beyond(bytes(size)?)),
        _ => Ok(Outworn::These(ids)),
    };
    let (pruned, headings) = history::wait(async {
        let ids = found(&*history, &asked.which.conversation).await?;
        let would = history.prune(Prune { which: which(ids)?, dry_run: true }).await?;
        if asked.dry_run {
            let headings = headings(&*history, &would.conversations).await?;
            return Ok((would, headings));
        }
        let pruned = delete(&*history, would.conversations, asked.care, &folder, args).await?;
        if asked.shrink {
            let _spinner = Spinner::of("giving the space back", !args.quiet);
            history.shrink().await?;
        }
        Ok((pruned, Vec::new()))
    })?;
    if asked.dry_run && !args.json && !args.quiet {
        let ink = Ink::of_stdout();
        output::page(&listed(&headings, &ink).shown(&ink), args)?;
        remark(&pruned, true);
        return Ok(());
    }
    tell(&pruned, asked.dry_run, args)?;
    if !asked.dry_run {
        remark_on_undo(asked.care, args);
    }
    Ok(())
}

/// Deletes conversations: asks somebody at a terminal, and keeps a copy for a day.
async fn delete(
    history: &dyn History,
    ids: Vec<ConversationId>,
    care: CareArgs,
    folder: &Path,
    args: &Args,
) -> Result<Pruned, CommandError> {
    if !care.yes && !ids.is_empty() && terminal::is_interactive() && !args.quiet {
        let ink = Ink::of_stderr();
        let shown = headings(history, &ids[..ids.len().min(ASKED_MAX)]).await?;
        output::remark(listed(&shown, &ink).shown(&ink).trim_end());
        let count = counted(ids.len() as u64, "conversation", "conversations");
        terminal::drain();
        output::prompt(&format!("Delete {count}? [y]es, or Enter for no: "));
        let answer = terminal::read_line(None).ok().flatten().unwrap_or_default();
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Err(CommandError::no("nothing was deleted"));
        }
    }
    let bar = Bar::new(!args.quiet, Unit::Count);
    if !care.for_good {
        trash::keep(history, &ids, folder, &bar).await?;
    }
    Ok(history.prune(Prune { which: Outworn::These(ids), dry_run: false }).await?)
}

async fn headings(history: &dyn History, ids: &[ConversationId]) -> Result<Vec<Heading>, CommandError> {
    let mut headings = Vec::with_capacity(ids.len());
    for id in ids {
        headings.extend(history.conversations(Conversations::One(id.clone())).await?.items);
    }
    Ok(headings)
}

fn remark_on_undo(care: CareArgs, args: &Args) {
    if !care.for_good && !args.quiet && !args.json {
        output::remark("for a day, `throughline rm --undo` brings it back");
    }
}

fn tell_undone(ids: &[ConversationId], args: &Args) -> Result<(), CommandError> {
    if args.json {
        return output::print(&json_line(|writer| {
            writer.begin_object();
            writer.key("restored");
            writer.begin_array();
            ids.iter().for_each(|id| writer.string(id.as_str()));
            writer.end_array();
            writer.end_object();
        }));
    }
    output::print(&ids.iter().map(|id| format!("{id}\n")).collect::<String>())?;
    if !args.quiet {
        output::remark(&format!(
            "{} back",
            counted(ids.len() as u64, "conversation is", "conversations are")
        ));
    }
    Ok(())
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
