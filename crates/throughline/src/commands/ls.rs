//! `throughline ls`: the conversations, the latest first.

use super::history;
use crate::args::Args;
use crate::exit::CommandError;
use crate::output::{self, Ink, json_lines};
use throughline_gateway::routing::Pick;
use throughline_gateway::view::{self, Listed};
use throughline_store::{Conversations, Paging};

/// Lists conversations.
pub fn run(limit: u32, args: &Args) -> Result<(), CommandError> {
    let history = history::open_to_read(&history::configured(args)?)?;
    let which = Conversations::All(Paging::first(limit));
    let page = history::wait(async { Ok(view::list(&*history, which).await?) })?;
    if args.json {
        return output::print(&json_lines(&page.items, view::write_listed));
    }
    if page.items.is_empty() && !args.quiet {
        output::remark("no conversations yet");
    }
    let ink = Ink::of_stdout();
    let rows: Vec<[String; 6]> = page.items.iter().map(|listed| row(listed, &ink)).collect();
    output::print(&ink.table(&["ID", "UPDATED", "BACKEND", "ENTRIES", "EXCHANGES", "TITLE"], &rows))?;
    if page.next.is_some() && !args.quiet {
        output::remark("there are more; --limit shows them");
    }
    Ok(())
}

fn row(listed: &Listed, ink: &Ink) -> [String; 6] {
    let heading = &listed.heading;
    let backend = match (&listed.answered_by, &heading.backend) {
        (Some(last), Some(switched)) if Pick::parse(switched).backend != *last => {
            format!("{last} → {switched}")
        }
        (_, Some(backend)) | (Some(backend), None) => backend.to_string(),
        (None, None) => "-".to_owned(),
    };
    [
        heading.id.to_string(),
        output::seconds(heading.updated),
        backend,
        heading.entries.to_string(),
        heading.exchanges.to_string(),
        ink.tame(heading.title.as_deref().unwrap_or("-")).into_owned(),
    ]
}
