//! `throughline ls`: the conversations, the latest first.

use super::history::{self, ShortIds};
use super::search::moment;
use crate::args::{Args, LsArgs, SortName};
use crate::exit::CommandError;
use crate::output::{self, Cell, Column, Ink, Table, Tone, json_lines};
use throughline_core::Text;
use throughline_gateway::config::Config;
use throughline_gateway::exchange::SIDE_QUESTIONS;
use throughline_gateway::routing::Pick;
use throughline_gateway::view::{self, Listed, Ranking, Tallies, Tally};
use throughline_store::{ConversationFilter, Conversations, History, Page, Paging, StoreError};

/// What is listed, and what each has taken.
type Rows = Page<(Listed, Tally)>;

/// Lists conversations.
pub fn run(asked: &LsArgs, args: &Args) -> Result<(), CommandError> {
    let config = history::configured(args)?;
    let history = history::open_to_read(&config)?;
    let filter = filter(asked)?;
    let is_narrowed = filter != ConversationFilter { since: None, ..everything(asked.all) };
    let ink = Ink::of_stdout();
    let (page, short) = history::wait(async {
        let page = read(&*history, filter, asked, &config).await?;
        let ids = page.items.iter().map(|(listed, _)| &listed.heading.id);
        let short = ShortIds::read(&*history, ids, &ink).await?;
        Ok((page, short))
    })?;

    if args.json {
        return output::print(&json_lines(&page.items, |writer, (listed, tally)| {
            view::write_tallied(writer, listed, tally, &config);
        }));
    }
    if page.items.is_empty() && !args.quiet {
        output::remark(if is_narrowed {
            "no conversation fits; fewer options let more through"
        } else {
            "no conversations yet; `throughline start claude` runs an agent through the gateway"
        });
    }
    output::page(&shown(&page.items, &short, &config, &ink), args)?;
    if page.next.is_some() && !args.quiet {
        output::remark("there are more; -n shows them");
    }
    Ok(())
}

fn everything(side_questions: bool) -> ConversationFilter {
    let except_identified = (!side_questions).then_some(Text::from_static(SIDE_QUESTIONS));
    ConversationFilter { except_identified, ..ConversationFilter::default() }
}

fn filter(asked: &LsArgs) -> Result<ConversationFilter, CommandError> {
    let text = |words: &Option<String>| words.as_deref().map(Text::from);
    let project = match asked.project.as_deref() {
        Some(".") => {
            let here = std::env::current_dir().map_err(|source| CommandError::file(".", source))?;
            Some(here.display().to_string().into())
        }
        _ => text(&asked.project),
    };
    Ok(ConversationFilter {
        client: text(&asked.client),
        backend: text(&asked.backend),
        project,
        failed: asked.failed,
        since: moment("--since", asked.since.as_deref())?,
        ..everything(asked.all)
    })
}

async fn read(
    history: &dyn History,
    filter: ConversationFilter,
    asked: &LsArgs,
    config: &Config,
) -> Result<Rows, StoreError> {
    let tallies = Tallies::default();
    let ranking = match asked.sort {
        SortName::Updated => None,
        SortName::Cost => Some(Ranking::Cost),
        SortName::Tokens => Some(Ranking::Tokens),
        SortName::Exchanges => Some(Ranking::Exchanges),
    };
    if let Some(ranking) = ranking {
        let items = view::ranked(history, &filter, ranking, asked.limit, &tallies, config).await?;
        return Ok(Page { items, next: None });
    }
    let which = Conversations::Matching(Box::new(filter), Paging::first(asked.limit));
    let page = view::list(history, which).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for listed in page.items {
        let tally = tallies.of(history, &listed.heading).await?;
        items.push((listed, tally));
    }
    Ok(Page { items, next: page.next })
}

fn shown(items: &[(Listed, Tally)], short: &ShortIds, config: &Config, ink: &Ink) -> String {
    let mut table = Table::new([
        Column::words("ID"),
        Column::words("UPDATED"),
        Column::words("STATE"),
        Column::words("CLIENT").down_to(6).spared(),
        Column::words("BACKEND").down_to(8),
        Column::number("EXCHANGES").spared(),
        Column::number("TOKENS").spared(),
        Column::number("COST").spared(),
        Column::words("TITLE").down_to(20),
    ]);
    items.iter().for_each(|(listed, tally)| table.push(row(listed, tally, short, config, ink)));
    table.shown(ink)
}

fn row(listed: &Listed, tally: &Tally, short: &ShortIds, config: &Config, ink: &Ink) -> [Cell; 9] {
    let heading = &listed.heading;
    let backend = match (&listed.answered_by, &heading.backend) {
        (Some(last), Some(switched)) if Pick::parse(switched).backend != *last => {
            format!("{last} → {switched}")
        }
        (_, Some(backend)) | (Some(backend), None) => backend.to_string(),
        (None, None) => "-".to_owned(),
    };
    let client = listed.latest.as_ref().and_then(|latest| latest.client.as_deref());
    let used = tally.used.total();
    let title = heading.title.as_deref().unwrap_or("-");
    [
        short.cell(&heading.id),
        ink.when(heading.updated).into(),
        state(listed),
        client.map_or("-", view::client_name).into(),
        backend.into(),
        heading.exchanges.to_string().into(),
        used.map_or_else(|| "-".to_owned(), |used| output::count(used.input.saturating_add(used.output)))
            .into(),
        tally.used.cost(config).map_or_else(|| "-".to_owned(), output::money).into(),
        if heading.parent.is_some() { format!("↳ {title}") } else { title.to_owned() }.into(),
    ]
}

fn state(listed: &Listed) -> Cell {
    let Some(latest) = &listed.latest else { return "-".into() };
    match view::failure_of(latest) {
        Some(failure) => Cell::new(Tone::Bad, failure.how.name()),
        None if latest.ended.is_none() => Cell::new(Tone::Warn, "answering"),
        None => Cell::new(Tone::Good, "ok"),
    }
}
