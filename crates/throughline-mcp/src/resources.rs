//! Conversations as resources: `throughline://conversations/ID`, and the results in them.
//!
//! A conversation is its summary and its talk, with a line for each call: what tools returned is a resource of its own,
//! so that opening a conversation never costs more than a model can take.

use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use throughline_core::Text;
use throughline_store::{Conversations, Cursor, History, Paging, StoreError, short_id};

use crate::budget::{BudgetedText, clipped};
use crate::error::ToolError;
use crate::lookup;
use crate::rank::minute;
use crate::reading;
use crate::request::{ResultRequest, TOKENS_MAX};
use crate::sessions;
use crate::units::{Session, Unit};

const PREFIX: &str = "throughline://conversations/";
const RESULTS: &str = "/results/";
const PAGE: u32 = 50;
const SUMMARY_TOKENS: u64 = 1_500;
const CONVERSATION_TOKENS: u64 = 20_000;
const CALL_CHARS: usize = 200;
const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Lists conversations, the latest first.
pub async fn list(history: &dyn History, cursor: Option<String>) -> Result<ListResourcesResult, ToolError> {
    let after = cursor.as_deref().map(|cursor| Cursor(Text::from(cursor)));
    let page = history.conversations(Conversations::All(Paging { after, limit: PAGE })).await;
    let page = page.map_err(|error| match error {
        StoreError::BadCursor(cursor) => ToolError::Cursor(cursor),
        error => error.into(),
    })?;
    let resource = |heading: throughline_store::Heading| {
        let title =
            heading.title.as_deref().map_or_else(|| "untitled".to_owned(), |title| clipped(title, 80));
        Resource::new(format!("{PREFIX}{}", heading.id), short_id(&heading.id))
            .with_title(title)
            .with_description(format!("{}, {} entries", minute(heading.updated), heading.entries))
            .with_mime_type(MARKDOWN)
    };
    Ok(ListResourcesResult {
        resources: page.items.into_iter().map(resource).collect(),
        next_cursor: page.next.map(|next| next.0.to_string()),
        ..ListResourcesResult::default()
    })
}

/// Returns how the addresses of resources are made.
pub fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(format!("{PREFIX}{{session}}"), "conversation")
            .with_title("A conversation")
            .with_description("What was said and called in a session; results by their ids")
            .with_mime_type(MARKDOWN),
        ResourceTemplate::new(format!("{PREFIX}{{session}}{RESULTS}{{handle}}"), "tool result")
            .with_title("A tool result")
            .with_description("What a tool call returned")
            .with_mime_type(PLAIN),
    ])
}

/// Reads a resource; none if the address is not one of these.
pub async fn read(history: &dyn History, uri: &str) -> Result<Option<ReadResourceResult>, ToolError> {
    let Some(path) = uri.strip_prefix(PREFIX) else { return Ok(None) };
    let (text, kind) = match path.split_once(RESULTS) {
        Some((session, handle)) => {
            let asked = ResultRequest {
                id: handle.to_owned(),
                session: Some(session.to_owned()),
                from_line: None,
                to_line: None,
                query: None,
                max_tokens: Some(TOKENS_MAX),
            };
            (reading::read(history, &asked).await?, PLAIN)
        }
        None => (conversation(&lookup::session(history, path).await?), MARKDOWN),
    };
    Ok(Some(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)])))
}

/// Returns a conversation as text: its summary, and then what was said and called, the latest part of it where that
/// is long.
fn conversation(session: &Session) -> String {
    let mut budget = BudgetedText::new(CONVERSATION_TOKENS);
    let mut shown = Vec::new();
    for unit in session.units.iter().rev() {
        let line = match unit {
            Unit::Talk(_) => format!("**{}**\n\n{}\n\n", session.title(*unit, 0), session.output_text(*unit)),
            Unit::Pair { .. } => {
                let ended = session.ended(*unit).words();
                let ended = if ended.is_empty() { ended } else { format!(" → {ended}") };
                format!("- {} [{}]{ended}\n\n", session.title(*unit, CALL_CHARS), session.unit_id(*unit))
            }
        };
        if !budget.push(&line) {
            break;
        }
        shown.push(line);
    }
    let left_out = session.units.len() - shown.len();
    shown.reverse();
    let mut text = format!("{}\n---\n\n", sessions::summary(session, SUMMARY_TOKENS));
    if left_out > 0 {
        text.push_str(&format!(
            "[{left_out} earlier messages and calls are left out; search_history finds them]\n\n"
        ));
    }
    text.push_str(&shown.concat());
    text
}
