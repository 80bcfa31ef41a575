//! `throughline ls`: the conversations, the latest first.

use super::history;
use crate::args::Args;
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone, json_lines};
use throughline_gateway::exchange::SIDE_QUESTIONS;
use throughline_gateway::routing::Pick;
use throughline_gateway::view::{self, Listed};
use throughline_store::{Conversations, History, Page, Paging, StoreError};

/// Lists conversations; with `all`, also what clients asked on the side.
pub fn run(limit: u32, all: bool, args: &Args) -> Result<(), CommandError> {
    let history = history::open_to_read(&history::configured(args)?)?;
    let page = history::wait(async { Ok(page(&*history, limit, all).await?) })?;
    if args.json {
        return output::print(&json_lines(&page.items, view::write_listed));
    }
    if page.items.is_empty() && !args.quiet {
        output::remark("no conversations yet; `throughline env` says how clients come through here");
    }
    output::page(&shown(&page.items, &Ink::of_stdout()), args)?;
    if page.next.is_some() && !args.quiet {
        output::remark("there are more; --limit shows them");
    }
    Ok(())
}

async fn page(history: &dyn History, limit: u32, all: bool) -> Result<Page<Listed>, StoreError> {
    let is_listed = |listed: &Listed| all || listed.heading.identified != SIDE_QUESTIONS;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: Page<Listed> = Page { items: Vec::new(), next: None };
    loop {
        let left = u32::try_from(wanted.saturating_sub(found.items.len())).unwrap_or(u32::MAX);
        let paging = Paging { after: found.next.take(), limit: left };
        let page = view::list(history, Conversations::All(paging)).await?;
        found.items.extend(page.items.into_iter().filter(is_listed));
        found.next = page.next;
        if found.next.is_none() || found.items.len() >= wanted {
            return Ok(found);
        }
    }
}

fn shown(items: &[Listed], ink: &Ink) -> String {
    let mut table = Table::new([
        Column::words("ID"),
        Column::words("UPDATED"),
        Column::words("BACKEND").down_to(8),
        Column::number("ENTRIES").spared(),
        Column::number("EXCHANGES").spared(),
        Column::words("TITLE").down_to(20),
    ]);
    let short = history::short(items.iter().map(|listed| &listed.heading.id), ink);
    items.iter().for_each(|listed| table.push(row(listed, short(&listed.heading.id), ink)));
    table.shown(ink)
}

fn row(listed: &Listed, id: String, ink: &Ink) -> [Cell; 6] {
    let heading = &listed.heading;
    let backend = match (&listed.answered_by, &heading.backend) {
        (Some(last), Some(switched)) if Pick::parse(switched).backend != *last => {
            format!("{last} → {switched}")
        }
        (_, Some(backend)) | (Some(backend), None) => backend.to_string(),
        (None, None) => "-".to_owned(),
    };
    [
        Cell::new(Tone::Bold, id),
        ink.when(heading.updated).into(),
        backend.into(),
        heading.entries.to_string().into(),
        heading.exchanges.to_string().into(),
        heading.title.as_deref().unwrap_or("-").into(),
    ]
}
