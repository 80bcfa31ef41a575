//! `list_sessions` and `session_summary`.
//!
//! A summary is made by rule from what is kept: nothing is retold by a model, so nothing in it can be invented.

use std::collections::BTreeMap;
use throughline_core::plan::{Subjects, ToolKind, ToolRules};
use throughline_core::{Entry, Kind, Role, Text};
use throughline_store::{
    Conversations, Cursor, Exchanges, Heading, History, Moment, Paging, StoreError, short_id,
};

use crate::budget::{BudgetedText, clipped};
use crate::error::ToolError;
use crate::lookup;
use crate::query::{Term, Words};
use crate::rank::minute;
use crate::request::{self, ListRequest, SummaryRequest};
use crate::units::{Ended, Session, Unit, talk};

const SESSIONS_USUAL: usize = 20;
const TOKENS_USUAL: u64 = 2_000;

/// How many sessions are looked at for a page where a filter leaves few.
const LOOKED_AT_MAX: usize = 2_000;
const PAGE: u32 = 100;

const TITLE_CHARS: usize = 100;
const REQUEST_CHARS: usize = 300;
const ANSWER_CHARS: usize = 1_200;
const COMMAND_CHARS: usize = 120;

/// How much of a summary each part of it takes, in hundredths, so that one long part leaves room for the others.
const SHARES: [(Part, u64); 6] = [
    (Part::Requests, 25),
    (Part::Failures, 15),
    (Part::Changed, 15),
    (Part::Commands, 20),
    (Part::Read, 10),
    (Part::Answer, 15),
];

/// A part of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Requests,
    Failures,
    Changed,
    Commands,
    Read,
    Answer,
}

/// Lists sessions, the latest first.
pub async fn list(history: &dyn History, asked: &ListRequest, now: Moment) -> Result<String, ToolError> {
    let since = lookup::time("since", asked.since.as_deref(), now)?;
    let until = lookup::time("until", asked.until.as_deref(), now)?;
    let terms = Term::parse(&asked.query);
    let limit = request::limit(asked.limit, SESSIONS_USUAL);
    let mut paging = Paging {
        after: asked.cursor.as_deref().map(|cursor| Cursor(Text::from(cursor.trim()))),
        limit: PAGE,
    };
    let (mut shown, mut looked_at) = (Vec::new(), 0);
    let more = loop {
        // One at a time near the end, so that the cursor is that of the last one shown.
        paging.limit = PAGE.min(u32::try_from(limit - shown.len()).unwrap_or(PAGE));
        let page = history
            .conversations(Conversations::All(paging))
            .await
            .map_err(|error| bad_cursor(error, asked))?;
        looked_at += page.items.len();
        for heading in page.items {
            let title = Words::new(heading.title.as_deref().unwrap_or_default());
            let is_in_time = since.is_none_or(|since| heading.updated >= since)
                && until.is_none_or(|until| heading.created < until);
            if !is_in_time || !terms.iter().all(|term| term.count(&title) > 0) {
                continue;
            }
            shown.extend(listed(history, &heading, asked.client.as_deref()).await?);
        }
        let is_over = shown.len() >= limit || looked_at >= LOOKED_AT_MAX;
        match page.next {
            None => break None,
            Some(next) if is_over => break Some(next),
            Some(next) => paging = Paging { after: Some(next), limit: PAGE },
        }
    };
    let mut text = if shown.is_empty() { "No session fits.\n".to_owned() } else { shown.concat() };
    if let Some(next) = more {
        text.push_str(&format!("There are more: pass cursor \"{}\".\n", next.0));
    }
    Ok(text)
}

fn bad_cursor(error: StoreError, asked: &ListRequest) -> ToolError {
    match (error, &asked.cursor) {
        (StoreError::BadCursor(_), Some(cursor)) => ToolError::Cursor(cursor.clone()),
        (error, _) => error.into(),
    }
}

/// Returns a session as a line; none if it is another client's.
async fn listed(
    history: &dyn History,
    heading: &Heading,
    client: Option<&str>,
) -> Result<Option<String>, ToolError> {
    let latest = history
        .exchanges(Exchanges::Of(heading.id.clone(), Paging::first(1)))
        .await?
        .items
        .into_iter()
        .next();
    let of_client = latest.as_ref().and_then(|latest| latest.client.as_deref()).unwrap_or_default();
    let is_wanted = client.is_none_or(|wanted| of_client.to_lowercase().contains(&wanted.to_lowercase()));
    if !is_wanted {
        return Ok(None);
    }
    let title =
        heading.title.as_deref().map_or_else(|| "untitled".to_owned(), |title| clipped(title, TITLE_CHARS));
    let model = latest.as_ref().and_then(|latest| latest.asked_model.as_deref()).unwrap_or_default();
    let by: Vec<&str> = [of_client, model].into_iter().filter(|name| !name.is_empty()).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    Ok(Some(format!(
        "{} [{}] {title}{by}, {} entries\n",
        minute(heading.updated),
        short_id(&heading.id),
        heading.entries,
    )))
}

/// Says what happened in a session.
pub async fn summarise(history: &dyn History, asked: &SummaryRequest) -> Result<String, ToolError> {
    let session = lookup::session(history, &asked.session).await?;
    let budget = request::budget(asked.max_tokens, TOKENS_USUAL);
    Ok(summary(&session, budget))
}

/// Returns a session in about so many tokens.
pub fn summary(session: &Session, tokens_max: u64) -> String {
    let parts = parts(session);
    let heading = &session.heading;
    let title =
        heading.title.as_deref().map_or_else(|| "untitled".to_owned(), |title| clipped(title, TITLE_CHARS));
    let by: Vec<&str> = [session.client.as_deref(), session.model.as_deref()].into_iter().flatten().collect();
    let mut text = format!(
        "\"{title}\" [{}]\n{} to {}, {} entries, {} tool calls{}\n",
        session.short_id(),
        minute(heading.created),
        minute(heading.updated),
        heading.entries,
        session.units.iter().filter(|unit| matches!(unit, Unit::Pair { .. })).count(),
        if by.is_empty() { String::new() } else { format!(", {}", by.join(", ")) },
    );
    for (part, share) in SHARES {
        let Some(lines) = parts.get(&part).filter(|lines| !lines.is_empty()) else { continue };
        let mut section = BudgetedText::new(tokens_max * share / 100);
        section.push(&format!("\n{}\n", part.title()));
        // What came last is nearest to how things stand; it is shown in order.
        let mut shown = Vec::new();
        for line in lines.iter().rev() {
            if !section.push(line) {
                break;
            }
            shown.push(line.as_str());
        }
        shown.reverse();
        text.push_str(&format!("\n{}\n", part.title()));
        if shown.len() < lines.len() {
            text.push_str(&format!("({} earlier ones are left out)\n", lines.len() - shown.len()));
        }
        shown.iter().for_each(|line| text.push_str(line));
    }
    text
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Requests => "The user asked:",
            Self::Failures => "Failed:",
            Self::Changed => "Files changed:",
            Self::Commands => "Commands:",
            Self::Read => "Files read:",
            Self::Answer => "The last answer:",
        }
    }
}

/// Returns the lines of each part.
fn parts(session: &Session) -> BTreeMap<Part, Vec<String>> {
    let mut parts: BTreeMap<Part, Vec<String>> = BTreeMap::new();
    let mut answer = None;
    for unit in session.units.iter().copied() {
        match unit {
            Unit::Talk(at) => match &session.entry(at).kind {
                Kind::Said(said) if said.role == Role::User => {
                    let said = talk(session.entry(at)).unwrap_or_default();
                    // Agents put notes to the model into the user's mouth, in tags.
                    if !said.trim_start().starts_with('<') && !said.trim().is_empty() {
                        parts
                            .entry(Part::Requests)
                            .or_default()
                            .push(format!("- {}\n", clipped(&said, REQUEST_CHARS)));
                    }
                }
                _ => answer = talk(session.entry(at)).filter(|text| !text.trim().is_empty()).or(answer),
            },
            Unit::Pair { call: Some(call), .. } => {
                let (part, line) = pair_line(session, unit, session.entry(call));
                if let Some(part) = part {
                    let lines = parts.entry(part).or_default();
                    // The last time counts, with the id of that time.
                    lines.retain(|known| subject(known) != subject(&line));
                    lines.push(line.clone());
                }
                if !matches!(session.ended(unit), Ended::Well | Ended::Open) {
                    parts.entry(Part::Failures).or_default().push(line);
                }
            }
            Unit::Pair { call: None, .. } => {}
        }
    }
    if let Some(answer) = answer {
        parts.insert(Part::Answer, vec![format!("{}\n", clipped(&answer, ANSWER_CHARS))]);
    }
    parts
}

/// Returns what a call was about, and in which part of a summary it stands.
fn pair_line(session: &Session, unit: Unit, entry: &Entry) -> (Option<Part>, String) {
    let Some(call) = entry.as_call() else { return (None, String::new()) };
    let Subjects { paths, command } = Subjects::of(call);
    let part = match ToolRules::default().kind(&call.name) {
        ToolKind::Read => Some(Part::Read),
        ToolKind::Write => Some(Part::Changed),
        ToolKind::Command => Some(Part::Commands),
        ToolKind::Search | ToolKind::Other => None,
    };
    let about = command.unwrap_or_else(|| {
        if paths.is_empty() { session.title(unit, COMMAND_CHARS) } else { paths.join(", ") }
    });
    let ended = session.ended(unit).words();
    let ended = if ended.is_empty() { ended } else { format!(" → {ended}") };
    (part, format!("- {} [{}]{ended}\n", clipped(&about, COMMAND_CHARS), session.unit_id(unit)))
}

/// Returns what a line is about, without the id and how it went.
fn subject(line: &str) -> &str {
    line.rsplit_once(" [").map_or(line, |(subject, _)| subject)
}
