//! Finding a session, or something in it, by what a model wrote.

use throughline_core::ConversationId;
use throughline_core::plan::Handle;
use throughline_store::{
    ConversationFilter, Conversations, Entries, History, Moment, Paging, moment, short_id,
};

use crate::error::ToolError;
use crate::units::{Session, Unit};

/// How many sessions that fit an id are looked at.
const FITTING_MAX: u32 = 100;

/// How many sessions are looked through for a handle without a session.
const SCANNED_MAX: usize = 100;

/// How many candidates an error names.
const NAMED_MAX: usize = 5;

/// Finds a session by its id, or by the beginning of it.
pub async fn session_id(history: &dyn History, typed: &str) -> Result<ConversationId, ToolError> {
    let typed = typed.trim();
    for exact in [typed.to_owned(), format!("conv_{typed}")] {
        let page = history.conversations(Conversations::One(ConversationId::new(exact))).await?;
        if let Some(heading) = page.items.into_iter().next() {
            return Ok(heading.id);
        }
    }
    let fitting = beginning_with(history, typed).await?;
    match fitting.as_slice() {
        [] => Err(ToolError::NoSession(typed.to_owned())),
        [only] => Ok(only.clone()),
        several => whole_session(several).cloned().ok_or_else(|| ToolError::ManySessions {
            id: typed.to_owned(),
            candidates: several.iter().take(NAMED_MAX).map(|id| short_id(id).to_owned()).collect(),
        }),
    }
}

/// Reads a session by its id, or by the beginning of it.
pub async fn session(history: &dyn History, typed: &str) -> Result<Session, ToolError> {
    let id = session_id(history, typed).await?;
    Session::load(history, &id).await?.ok_or_else(|| ToolError::NoSession(typed.to_owned()))
}

/// Finds what an id names: `SESSION/HANDLE`, `SESSION/ENTRY`, a handle alone, or the whole id of an entry.
pub async fn unit(
    history: &dyn History,
    id: &str,
    within: Option<&str>,
) -> Result<(Session, Unit), ToolError> {
    // Models copy what stands around an id as well.
    let id = id.trim().trim_matches(['`', '[', ']', '"']);
    let id = id.strip_prefix("recall ").unwrap_or(id);
    let (of_session, name) = match id.rsplit_once('/') {
        Some((session, name)) => (Some(session), name),
        None => (within, id),
    };
    let missing = || ToolError::NoResult(id.to_owned());
    if let Some(typed) = of_session {
        let session = session(history, typed).await?;
        let unit = named(&session, name).ok_or_else(missing)?;
        return Ok((session, unit));
    }
    let by_entry = history.entries(Entries::One(throughline_core::EntryId::new(name))).await?;
    if let Some(kept) = by_entry.into_iter().next() {
        let session = Session::load(history, &kept.conversation).await?.ok_or_else(missing)?;
        let unit = named(&session, name).ok_or_else(missing)?;
        return Ok((session, unit));
    }
    match Handle::parse(name) {
        Some(_) => scan(history, name).await,
        None => Err(missing()),
    }
}

/// Reads a moment that a model wrote.
pub fn time(name: &'static str, text: Option<&str>, now: Moment) -> Result<Option<Moment>, ToolError> {
    let read =
        |text: &str| moment(text.trim(), now).ok_or_else(|| ToolError::Time { name, value: text.to_owned() });
    text.map(read).transpose()
}

/// Returns where a page begins that an earlier one named.
pub fn offset(cursor: Option<&str>) -> Result<usize, ToolError> {
    let read = |cursor: &str| cursor.trim().parse().map_err(|_| ToolError::Cursor(cursor.to_owned()));
    cursor.map_or(Ok(0), read)
}

/// Finds a unit of a session by its handle, or by the beginning of the id of one of its entries.
fn named(session: &Session, name: &str) -> Option<Unit> {
    if let Some(handle) = Handle::parse(name) {
        let is_pair = |unit: &&Unit| matches!(unit, Unit::Pair { .. }) && session.handle(**unit) == handle;
        if let Some(unit) = session.units.iter().find(is_pair) {
            return Some(*unit);
        }
    }
    let begins = |unit: &&Unit| unit.indexes().any(|at| session.kept[at].id.as_str().starts_with(name));
    session.units.iter().find(begins).copied().filter(|_| !name.is_empty())
}

/// Looks through the latest sessions for a handle.
async fn scan(history: &dyn History, handle: &str) -> Result<(Session, Unit), ToolError> {
    let page = history.conversations(Conversations::All(Paging::first(SCANNED_MAX as u32))).await?;
    let sessions = page.items.len();
    for heading in page.items {
        if let Some(session) = Session::load(history, &heading.id).await?
            && let Some(unit) = named(&session, handle)
        {
            return Ok((session, unit));
        }
    }
    Err(ToolError::NoHandle { handle: handle.to_owned(), sessions })
}

async fn beginning_with(history: &dyn History, typed: &str) -> Result<Vec<ConversationId>, ToolError> {
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    let filter = ConversationFilter { id: Some(typed.into()), ..ConversationFilter::default() };
    let page =
        history.conversations(Conversations::Matching(Box::new(filter), Paging::first(FITTING_MAX))).await?;
    Ok(page.items.into_iter().map(|heading| heading.id).collect())
}

/// Returns the session among its sub-agents, whose ids go on where its own ends.
fn whole_session(ids: &[ConversationId]) -> Option<&ConversationId> {
    let is_of_all = |id: &&ConversationId| {
        ids.iter().all(|other| other == *id || other.as_str().starts_with(&format!("{id}.")))
    };
    ids.iter().find(is_of_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_before_its_sub_agents_and_not_before_another() {
        let ids = |names: &[&str]| names.iter().map(|name| ConversationId::new(*name)).collect::<Vec<_>>();
        let family = ids(&["conv_a.1", "conv_a", "conv_a.2"]);
        assert_eq!(whole_session(&family).map(ConversationId::as_str), Some("conv_a"));
        assert_eq!(whole_session(&ids(&["conv_a", "conv_ab"])), None);
    }

    #[test]
    fn a_cursor_is_a_number_and_anything_else_is_refused() {
        assert_eq!(offset(None).unwrap(), 0);
        assert_eq!(offset(Some("16")).unwrap(), 16);
        assert!(matches!(offset(Some("x")), Err(ToolError::Cursor(_))));
    }
}
