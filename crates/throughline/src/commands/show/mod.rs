//! `throughline show`: one conversation, in one of four views.
//!
//! `talk` and `pairs` show the branch that was added to last; `full` shows every entry of every branch, and
//! `sent` every exchange. With `--json` each view is JSON Lines.

mod sent;
mod talk;

use super::history;
use crate::args::{Args, ShowArgs, View};
use crate::exit::CommandError;
use crate::output::{self, Ink, json_lines};
use crate::signals;
use std::collections::BTreeSet;
use std::time::Duration;
use talk::{Talk, handover_line};
use throughline_core::{ConversationId, EntryId, Handover, Kind, Text, Thought};
use throughline_gateway::view::{self, Pair, Tools};
use throughline_store::{Conversations, Entries, Exchange, History, Kept};

/// How often it is looked whether something was added.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Prints a conversation.
pub fn run(asked: &ShowArgs, args: &Args) -> Result<(), CommandError> {
    let history = history::open_to_read(&history::configured(args)?)?;
    let ink = Ink::of_stdout();
    let id = history::wait(async { history::find(&*history, &asked.id).await })?;
    if asked.follow {
        return follow(&*history, &id, args.json, &ink);
    }
    let text = history::wait(async {
        if let Some(number) = asked.exchange {
            return sent::one(&*history, &id, number, args.json, &ink).await;
        }
        let body = body(&*history, &id, asked.view, args.json, &ink).await?;
        let heading = if args.json { String::new() } else { heading(&*history, &id, &ink).await? };
        Ok(heading + &body)
    })?;
    output::page(&text, args)
}

/// Prints a conversation and what is added to it, until somebody stops it.
fn follow(history: &dyn History, id: &ConversationId, json: bool, ink: &Ink) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    runtime.block_on(async {
        let mut stopped = Box::pin(signals::stop());
        if !json {
            output::print(&heading(history, id, ink).await?)?;
        }
        let (mut shown, mut written) = (Talk::default(), BTreeSet::new());
        let mut before = None;
        loop {
            let now = state(history, id).await?;
            if before.as_ref() != Some(&now) {
                let branch = view::latest_branch(history, id).await?;
                let text = match json {
                    true => {
                        let fresh: Vec<&Kept> =
                            branch.iter().filter(|kept| written.insert(kept.id.clone())).collect();
                        json_lines(&fresh, |writer, kept| view::write_entry(writer, kept, None))
                    }
                    false => shown.next(&branch, &view::exchanges(history, id).await?, ink),
                };
                output::print(&text)?;
                before = Some(now);
            }
            tokio::select! {
                () = &mut stopped => return Ok(()),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    })
}

/// Returns what is different once something was added: how much there is, and how the latest exchange stands.
async fn state(
    history: &dyn History,
    id: &ConversationId,
) -> Result<Option<(u64, u64, Option<Text>)>, CommandError> {
    let page = view::list(history, Conversations::One(id.clone())).await?;
    let listed = page.items.into_iter().next();
    Ok(listed.map(|listed| {
        let ending = listed.latest.and_then(|latest| latest.ending);
        (listed.heading.entries, listed.heading.exchanges, ending)
    }))
}

async fn body(
    history: &dyn History,
    id: &ConversationId,
    wanted: View,
    json: bool,
    ink: &Ink,
) -> Result<String, CommandError> {
    let kept = match wanted {
        View::Talk | View::Pairs => view::latest_branch(history, id).await?,
        View::Full => history.entries(Entries::Conversation(id.clone())).await?,
        View::Sent => return sent::shown(history, id, json, ink).await,
    };
    Ok(match (wanted, json) {
        (View::Pairs, true) => json_lines(&view::pairs(&kept), view::write_pair),
        (View::Pairs, false) => view::pairs(&kept).iter().map(|pair| pair_shown(pair, ink)).collect(),
        (View::Talk, true) => json_lines(&said(&kept), |writer, kept| view::write_entry(writer, kept, None)),
        (View::Talk, false) => Talk::default().next(&kept, &view::exchanges(history, id).await?, ink),
        (_, true) => {
            let tools = Tools::of(&kept);
            json_lines(&kept, |writer, kept| view::write_entry(writer, kept, tools.exit_code(&kept.entry)))
        }
        (_, false) => full(&kept, &view::exchanges(history, id).await?, ink),
    })
}

async fn heading(history: &dyn History, id: &ConversationId, ink: &Ink) -> Result<String, CommandError> {
    let page = view::list(history, Conversations::One(id.clone())).await?;
    let Some(listed) = page.items.first() else { return Ok(String::new()) };
    let heading = &listed.heading;
    let title = ink.bold(&ink.tame(heading.title.as_deref().unwrap_or("without a title")));
    let begun = ink.when(heading.created);
    let (entries, exchanges) = (heading.entries, heading.exchanges);
    let facts = format!("{id}  begun {begun}  entries {entries}  exchanges {exchanges}");
    Ok(format!("{title}\n{}\n\n", ink.dim(&facts)))
}

/// Returns what user and model said to each other, and where another model took over.
fn said(branch: &[Kept]) -> Vec<&Kept> {
    let is_said = |kept: &&Kept| {
        kept.entry.as_said().is_some_and(talk::is_talk) || matches!(kept.entry.kind, Kind::HandedOver(_))
    };
    branch.iter().filter(is_said).collect()
}

fn full(kept: &[Kept], exchanges: &[Exchange], ink: &Ink) -> String {
    let mut text = String::new();
    let mut before = None;
    let tools = Tools::of(kept);
    for each in kept {
        if before.is_some() && each.parent.as_ref() != before {
            let parent = each.parent.as_ref().map_or("the beginning", EntryId::as_str);
            text.push_str(&format!("{}\n", ink.dim(&format!("-- a branch, behind {parent}"))));
        }
        text.push_str(&entry_shown(each, tools.exit_code(&each.entry), ink));
        let failed = exchanges.iter().filter(|exchange| exchange.before.as_ref() == Some(&each.id));
        for failure in failed.filter_map(view::failure_of) {
            text.push_str(&format!("{}\n\n", ink.bad(&ink.tame(&format!("✗ {}", failure.line())))));
        }
        before = Some(&each.id);
    }
    text
}

fn entry_shown(kept: &Kept, exit_code: Option<i32>, ink: &Ink) -> String {
    let (label, content) = match &kept.entry.kind {
        Kind::Said(said) => (ink.bold(view::role_name(said.role)), view::text_of(&said.parts)),
        Kind::Thought(thought) => (ink.bold("thought"), thought_text(thought)),
        Kind::Called(call) => (
            ink.bold(&ink.tame(&format!("called {} [{}]", call.name, call.id))),
            call.input.text().to_string(),
        ),
        Kind::Returned(returned) => {
            let call = returned.call_id.as_deref().unwrap_or("no id");
            let outcome = view::outcome_name(returned.outcome);
            let code = exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            let label = format!("returned {outcome}{code} [{call}]");
            let label = ink.tame(&label);
            let has_failed = returned.outcome.is_error() || exit_code.is_some_and(|code| code != 0);
            let label = if has_failed { ink.bad(&label) } else { ink.bold(&label) };
            (label, view::text_of(&returned.parts))
        }
        Kind::HandedOver(handover) => (ink.bold("handed over"), handover_text(handover)),
        Kind::Summarised(summary) => {
            (ink.bold(&format!("summary of {} entries", summary.covers)), summary.text.to_string())
        }
        Kind::Reference { id } => (ink.bold("reference"), id.to_string()),
        Kind::Opaque { kind } => (ink.bold("opaque"), kind.to_string()),
    };
    let origin = kept.entry.origin.as_ref().map(|origin| format!("  {}/{}", origin.backend, origin.model));
    let at = output::seconds(kept.at);
    let facts = ink.dim(&ink.tame(&format!("{at}  {}{}", kept.id, origin.unwrap_or_default())));
    format!("{label}  {facts}\n{}\n", ink.block(&content))
}

fn handover_text(handover: &Handover) -> String {
    let line = handover_line(handover);
    handover.brief.as_ref().map_or_else(|| line.clone(), |brief| format!("{line}\n{brief}"))
}

fn thought_text(thought: &Thought) -> String {
    let readable = if thought.content.is_empty() { &thought.summary } else { &thought.content };
    let mut texts: Vec<&str> = readable.iter().map(Text::as_str).collect();
    if thought.seal.is_some() {
        texts.push("[sealed by its issuer]");
    }
    texts.join("\n")
}

fn pair_shown(pair: &Pair<'_>, ink: &Ink) -> String {
    let state = match (view::state_name(pair.state), pair.exit_code()) {
        ("ok", Some(code)) if code != 0 => ink.bad(&format!("exit code {code}")),
        ("ok", _) => ink.good("ok"),
        (state, _) => ink.bad(state),
    };
    let call = pair.call.and_then(|kept| kept.entry.as_call());
    let returned = pair.result.and_then(|kept| kept.entry.as_return());
    let name = call.map(|call| &call.name).or_else(|| returned.and_then(|returned| returned.name.as_ref()));
    let id = call.map(|call| &call.id).or_else(|| returned.and_then(|returned| returned.call_id.as_ref()));
    let name = ink.bold(&ink.tame(name.map_or("(unknown tool)", Text::as_str)));
    let id = ink.dim(&ink.tame(id.map_or("no id", Text::as_str)));
    let oddity = pair.oddity.map(|oddity| format!("  {}", ink.dim(view::oddity_words(oddity))));
    let mut text = format!("{name}  {state}  {id}{}\n", oddity.unwrap_or_default());
    if let Some(call) = call {
        text.push_str(&format!("  call    {}\n", ink.hanging(call.input.text(), 10)));
    }
    if let Some(returned) = returned {
        text.push_str(&format!("  result  {}\n", ink.hanging(&view::text_of(&returned.parts), 10)));
    }
    text
}
