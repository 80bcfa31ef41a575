//! `throughline search`: find tool history and talk by words.

use super::history::{self, ShortIds};
use crate::args::{Args, SearchArgs};
use crate::exit::CommandError;
use crate::output::{self, Ink, json_lines};
use throughline_core::{Outcome, Text};
use throughline_gateway::gateway::now;
use throughline_gateway::view;
use throughline_store::{Cursor, History, Hit, KeptKind, Moment, Page, Paging, Search, StoreError};

/// Searches. Nothing found is the answer "no".
pub fn run(asked: &SearchArgs, args: &Args) -> Result<(), CommandError> {
    let is_narrowed = asked.failed
        || [&asked.tool, &asked.path, &asked.command, &asked.conversation].iter().any(|it| it.is_some());
    if asked.query.is_none() && !is_narrowed {
        return Err(CommandError::bad_input("there is nothing to search for")
            .hint("give words, or --tool, --path, --command, --failed or --conversation"));
    }
    let history = history::open_to_read(&history::configured(args)?)?;
    let ink = Ink::of_stdout();
    let (page, short) = history::wait(async {
        let page = found(&*history, asked).await?;
        let ids = page.items.iter().map(|hit| &hit.conversation);
        let short = ShortIds::read(&*history, ids, &ink).await?;
        Ok((page, short))
    })?;
    if page.items.is_empty() {
        let hint = match asked.query {
            Some(_) => {
                "all words must occur; test* stands for words that begin so, and fewer words find more"
            }
            None => "each of the options narrows it down; fewer find more",
        };
        return Err(CommandError::no("nothing was found").hint(hint));
    }
    if args.json {
        output::print(&json_lines(&page.items, view::write_hit))?;
        remark_on_more(&page, args);
        return Ok(());
    }
    let words = asked.query.as_deref().unwrap_or_default();
    let hit = |hit: &Hit| shown(hit, short.text(&hit.conversation), words, &ink);
    output::page(&page.items.iter().map(hit).collect::<String>(), args)?;
    remark_on_more(&page, args);
    Ok(())
}

/// Searches until there is a page full, or nothing more.
async fn found(history: &dyn History, asked: &SearchArgs) -> Result<Page<Hit>, CommandError> {
    let conversation = match &asked.conversation {
        Some(typed) => Some(history::find(history, typed).await?),
        None => None,
    };
    let after = asked.after.as_deref().map(|after| Cursor(Text::from(after)));
    let mut search = Search {
        words: asked.query.clone().unwrap_or_default(),
        tool: asked.tool.as_deref().map(Text::from),
        path: asked.path.clone(),
        command: asked.command.clone(),
        failed: asked.failed,
        conversation,
        since: moment("--since", asked.since.as_deref())?,
        until: moment("--until", asked.until.as_deref())?,
        paging: Paging { after, limit: asked.limit },
        ..Search::default()
    };
    let mut found = Page::default();
    loop {
        let page = history.search(search.clone()).await.map_err(|error| match error {
            StoreError::BadCursor(_) => CommandError::bad_input(format!("--after: {error}")),
            error => error.into(),
        })?;
        found.items.extend(page.items);
        search.paging.limit =
            asked.limit.saturating_sub(u32::try_from(found.items.len()).unwrap_or(u32::MAX));
        search.paging.after = page.next.clone();
        if page.next.is_none() || search.paging.limit == 0 {
            return Ok(Page { next: page.next, ..found });
        }
    }
}

/// Says how to see more, on standard error and so with `--json` too.
fn remark_on_more(page: &Page<Hit>, args: &Args) {
    if let (Some(next), false) = (&page.next, args.quiet) {
        output::remark(&format!("there is more: --after {} goes on", next.0));
    }
}

/// Reads what a flag says about when.
pub fn moment(flag: &str, text: Option<&str>) -> Result<Option<Moment>, CommandError> {
    let read = |text| {
        let bad = || {
            format!(
                "{flag}: invalid time `{text}`; expected a date, a time such as 2026-02-28T09:05:07Z, today, \
                 yesterday, or an age such as 2h"
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
        KeptKind::Returned(Outcome::Ok) => match hit.exit_code {
            Some(code) if code != 0 => format!(" {}", ink.bad(&format!("exit code {code}"))),
            _ => String::new(),
        },
        KeptKind::Said(_) | KeptKind::Thought => String::new(),
        KeptKind::Returned(outcome) => format!(" {}", ink.bad(view::outcome_name(outcome))),
        KeptKind::Called | KeptKind::Other => String::new(),
    };
    let place = ink.dim(&format!("{}  {conversation}", ink.when(hit.at)));
    let snippet = ink.marked(&ink.wrapped(&hit.snippet, 4), query);
    format!("{place}  {kind}{tool}{outcome}\n    {snippet}\n")
}
