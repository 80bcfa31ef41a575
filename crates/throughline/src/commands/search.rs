//! `throughline search`: find tool history and talk by words.

use super::history;
use crate::args::{Args, SearchArgs};
use crate::exit::CommandError;
use crate::output::{self, Ink, json_lines};
use throughline_core::{Outcome, Text};
use throughline_gateway::gateway::now;
use throughline_gateway::view;
use throughline_store::{Hit, KeptKind, Moment, Paging, Search};

/// Searches. Nothing found is the answer "no".
pub fn run(asked: &SearchArgs, args: &Args) -> Result<(), CommandError> {
    let history = history::open_to_read(&history::configured(args)?)?;
    let page = history::wait(async {
        let conversation = match &asked.conversation {
            Some(typed) => Some(history::find(&*history, typed).await?),
            None => None,
        };
        let search = Search {
            words: asked.query.clone(),
            tool: asked.tool.as_deref().map(Text::from),
            failed: asked.failed,
            conversation,
            since: moment("--since", asked.since.as_deref())?,
            until: moment("--until", asked.until.as_deref())?,
            paging: Paging::first(asked.limit),
            ..Search::default()
        };
        Ok(history.search(search).await?)
    })?;
    if page.items.is_empty() {
        return Err(CommandError::no("nothing was found")
            .hint("all words must occur; test* stands for words that begin so, and fewer words find more"));
    }
    if args.json {
        return output::print(&json_lines(&page.items, view::write_hit));
    }
    let ink = Ink::of_stdout();
    let short = history::short(page.items.iter().map(|hit| &hit.conversation), &ink);
    let hit = |hit: &Hit| shown(hit, &short(&hit.conversation), &asked.query, &ink);
    output::page(&page.items.iter().map(hit).collect::<String>(), args)?;
    if page.next.is_some() && !args.quiet {
        output::remark("there is more; --limit shows it");
    }
    Ok(())
}

/// Reads what a flag says about when.
fn moment(flag: &str, text: Option<&str>) -> Result<Option<Moment>, CommandError> {
    let read = |text| {
        let bad = || {
            format!(
                "{flag}: `{text}` is no date, no time such as 2026-02-28T09:05:07Z, and no age such as 2h"
            )
        };
        view::moment(text, now()).ok_or_else(|| CommandError::bad_input(bad()))
    };
    text.map(read).transpose()
}

fn shown(hit: &Hit, conversation: &str, query: &str, ink: &Ink) -> String {
    let kind = ink.bold(view::found_name(hit.kind));
    let tool = hit.tool.as_deref().map(|tool| format!(" {}", ink.tame(tool))).unwrap_or_default();
    let outcome = match hit.kind {
        KeptKind::Returned(Outcome::Ok) | KeptKind::Said(_) | KeptKind::Thought => String::new(),
        KeptKind::Returned(outcome) => format!(" {}", ink.bad(view::outcome_name(outcome))),
        KeptKind::Called | KeptKind::Other => String::new(),
    };
    let place = ink.dim(&format!("{}  {conversation}", ink.when(hit.at)));
    let snippet = ink.marked(&ink.wrapped(&hit.snippet, 4), query);
    format!("{place}  {kind}{tool}{outcome}\n    {snippet}\n")
}
