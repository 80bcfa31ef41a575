//! Footing: the answer that a backend keeps and that a request goes on from (R26).
//!
//! A backend of the Responses dialect may keep its answers. A request that continues one of them is then sent
//! with nothing but what is new. What the backend keeps is a cache of our own history and no more: there is
//! footing only where the answer before is that very backend's, complete and meant to be kept, and where all
//! its calls are answered; in every other case the whole history is sent, which is always right.
//!
//! Nothing is remembered here. The backend's id of its answer is in the record, so footing is found again
//! after a restart and by another gateway over the same history.

use super::compact;
use super::place::Placed;
use super::traces;
use crate::async_summary::answering;
use crate::config::{Backend, Choice};
use crate::routing::Destination;
use std::time::Duration;
use throughline_core::{
    Ask, Dialect, Entry, Extra, Kind, Part, Role, Said, Side, Strategy, Text, Trace, joined_text,
};
use throughline_store::{
    Attempt, Entries, Exchange, Exchanges, History, Moment, ProviderEvent, StoreError, Which,
};
use throughline_wire::json::{Document, quote};

/// The answer that a request goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footing {
    /// Whose it is.
    backend: Text,
    /// The model that gave it.
    model: Text,
    /// The backend's own id for it.
    response: Text,
    /// When it was complete.
    at: Moment,
}

/// Finds the footing of a request at one of its destinations.
///
/// A history that cannot be read gives none: the request has been placed already, and is sent whole.
pub async fn find(
    history: &dyn History,
    ask: &Ask,
    placed: &Placed,
    destinations: &[Destination],
) -> Option<Footing> {
    let may_keep = |destination: &&Destination| leaves_to_keep(ask, &destination.backend);
    destinations.iter().find(may_keep)?;
    // What stands in for something else is put in its place, for which the whole history is needed.
    let refers = |entry: &Entry| matches!(entry.kind, Kind::Reference { .. });
    // What the gateway answered itself the backend does not have.
    let is_hidden = placed.history.iter().any(Entry::is_hidden);
    if is_hidden || ask.entries.iter().any(refers) || compact::is_held(ask) || !answers_all_calls(ask, placed)
    {
        return None;
    }
    let read = async {
        let Some(exchange) = answered_before(history, ask, placed).await? else { return Ok(None) };
        let Some(attempt) = kept_attempt(&exchange) else { return Ok(None) };
        let is_its = |destination: &Destination| is_of(attempt, destination);
        if !destinations.iter().filter(may_keep).any(is_its) {
            return Ok(None);
        }
        let response = own_id(history, &exchange).await?;
        Ok::<_, StoreError>(response.map(|response| Footing {
            backend: attempt.backend.clone(),
            model: attempt.model.clone().unwrap_or_default(),
            response,
            at: exchange.ended.unwrap_or(exchange.started),
        }))
    };
    read.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "what a backend keeps could not be looked up; it is sent everything");
        None
    })
}

/// Says whether the request leaves it to the backend to keep answers, so that there may be footing.
///
/// A client of the dialect has decided that itself, and says so by continuing a response or a conversation. One that resends
/// its history in the dialect owns it, and is forwarded as it is. For clients of other dialects the
/// configuration decides: `always` has answers kept, where `auto` uses only what is kept anyway.
#[must_use]
pub fn leaves_to_keep(ask: &Ask, backend: &Backend) -> bool {
    if backend.dialect != Dialect::Responses || backend.server_state == Choice::Never {
        return false;
    }
    match ask.dialect {
        Dialect::Responses => ask.previous.is_some() || ask.conversation.is_some(),
        Dialect::Chat | Dialect::Messages => {
            let is_wanted = ask.settings.store.unwrap_or(backend.server_state == Choice::Always);
            is_wanted && instructions(&ask.entries).is_some()
        }
    }
}

impl Footing {
    /// Returns the backend's own id of the answer.
    #[must_use]
    pub const fn response(&self) -> &Text {
        &self.response
    }

    /// Returns how long ago the answer was given, if it is this destination's.
    #[must_use]
    pub fn age_at(&self, destination: &Destination, now: Moment) -> Option<Duration> {
        let is_its = destination.backend.name == self.backend && destination.model == self.model;
        let millis = u64::try_from(now.0 - self.at.0).unwrap_or_default();
        is_its.then(|| Duration::from_millis(millis))
    }

    /// Returns the request as it goes on from here.
    ///
    /// In the dialect itself it is what the client sent, with the backend's own id. From another one it is the
    /// whole history still, since only then every result has its call; [`cut`] takes out what is known.
    #[must_use]
    pub fn continued(&self, ask: &Ask, placed: &Placed) -> Ask {
        let mut continued = Ask { previous: Some(self.response.clone()), conversation: None, ..ask.clone() };
        if ask.dialect == Dialect::Responses {
            let name = Text::from_static("previous_response_id");
            continued.fields.retain(|field| field.name != name && field.name != "conversation");
            continued.fields.push(Extra { name, value: Text::from(quote(&self.response)) });
            continued.entries = traces::with_traces(&ask.entries, &placed.asked);
            return continued;
        }
        let new = news(ask, placed);
        let known = placed.history.len() - new;
        continued.entries.clone_from(&placed.history);
        continued.entries[..known].iter_mut().for_each(|entry| entry.place = None);
        continued
    }
}

/// Takes out of a rendered history what stands before the new entries, which alone have a place in the
/// request; fails where something without a place came in between, since nobody knows then what is new.
pub fn cut(entries: &mut Vec<Entry>) -> bool {
    let Some(first) = entries.iter().position(|entry| entry.place.is_some() && !entry.is_standing()) else {
        return false;
    };
    if entries[first..].iter().any(|entry| entry.place.is_none()) {
        return false;
    }
    let mut at = 0;
    entries.retain(|entry| {
        at += 1;
        at > first || entry.is_standing()
    });
    true
}

/// Returns the entries with what the operator says before the first word as instructions.
///
/// A backend keeps what is in the conversation, but instructions hold for one request. As messages they
/// would be there once more with each request, the outdated ones too.
#[must_use]
pub fn instructed(entries: Vec<Entry>) -> Vec<Entry> {
    let Some((count, Some(mut instructions))) = instructions(&entries) else { return entries };
    instructions.trace = Trace::joined(entries[..count].iter().map(|entry| &entry.trace));
    std::iter::once(instructions).chain(entries.into_iter().skip(count)).collect()
}

/// Returns how many entries stand before the first word, and what they say as one; nothing if that is not
/// all text.
fn instructions(entries: &[Entry]) -> Option<(usize, Option<Entry>)> {
    let count = entries.iter().take_while(|entry| entry.side() == Side::System).count();
    let said = entries[..count].iter().map(|entry| entry.as_said().map(|said| said.parts.clone()));
    let parts: Vec<Part> = said.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    if parts.is_empty() {
        return Some((count, None));
    }
    if parts.iter().any(|part| part.as_text().is_none()) {
        return None;
    }
    let parts = vec![Part::text(joined_text(&parts))];
    Some((count, Some(Entry::new(Kind::Said(Said { role: Role::System, parts, standing: true })))))
}

/// Returns the request with `store` as the backend is to be told; a client's own words stand as they are.
pub fn store(ask: &mut Ask, store: bool) {
    ask.settings.store = Some(store);
    if ask.dialect == Dialect::Responses {
        ask.fields.retain(|field| field.name != "store");
        let value = Text::from_static(if store { "true" } else { "false" });
        ask.fields.push(Extra { name: Text::from_static("store"), value });
    }
}

/// Returns how many entries of the history are new with this request.
fn news(ask: &Ask, placed: &Placed) -> usize {
    let instructions = ask.entries.iter().take_while(|entry| entry.side() == Side::System).count();
    ask.entries.len() - placed.known.max(instructions).min(ask.entries.len())
}

/// Says whether each call of the answer before has its result in the request. The missing ones would be
/// filled in, if the history were sent whole.
fn answers_all_calls(ask: &Ask, placed: &Placed) -> bool {
    let (known, new) = placed.history.split_at(placed.history.len() - news(ask, placed));
    let answered = |id: &Text| {
        new.iter().filter_map(Entry::as_return).any(|returned| returned.call_id.as_ref() == Some(id))
    };
    let latest = known.iter().rev().take_while(|entry| entry.side() == Side::Assistant);
    let mut calls = latest.filter_map(|entry| match &entry.kind {
        Kind::Called(call) => Some(&call.id),
        _ => None,
    });
    !new.is_empty() && calls.all(answered)
}

/// Returns the exchange whose answer the request goes on from.
async fn answered_before(
    history: &dyn History,
    ask: &Ask,
    placed: &Placed,
) -> Result<Option<Exchange>, StoreError> {
    let which = match (&ask.previous, &placed.parent) {
        (Some(previous), _) => Exchanges::Response(previous.clone()),
        (None, Some(parent)) => {
            let kept = history.entries(Entries::One(parent.clone())).await?.into_iter().next();
            let Some(exchange) = kept.and_then(|kept| kept.exchange) else { return Ok(None) };
            Exchanges::One(exchange)
        }
        (None, None) => return Ok(None),
    };
    let found = history.exchanges(which).await?.items.into_iter().next();
    Ok(found.filter(|exchange| exchange.after.is_some() && exchange.after == placed.parent))
}

/// Returns the attempt that was answered, if the answer is whole and the backend has seen all that we have.
fn kept_attempt(exchange: &Exchange) -> Option<&Attempt> {
    let is_whole =
        exchange.ending.as_ref().is_some_and(|ending| ["end_turn", "tool_calls"].contains(&&**ending));
    let attempt = answering(exchange)?;
    let is_native = attempt.strategy.as_ref().is_some_and(|strategy| *strategy == Strategy::Native.name());
    let is_kept = attempt.dialect == Dialect::Responses && attempt.failure.is_none();
    // A history that does not fit is planned anew, so that the model can go on recalling what is not in it.
    (is_whole && is_native && is_kept && attempt.recall.is_none()).then_some(attempt)
}

fn is_of(attempt: &Attempt, destination: &Destination) -> bool {
    attempt.backend == destination.backend.name && attempt.model.as_ref() == Some(&destination.model)
}

/// Returns the backend's own id of an answer, unless it was not to keep it.
async fn own_id(history: &dyn History, exchange: &Exchange) -> Result<Option<Text>, StoreError> {
    // An answer that was forwarded has the backend's id; one that we have written has ours.
    let ours = super::response_ids::response_id(exchange.id.as_str());
    if let Some(mark) = exchange.response.as_ref().filter(|mark| *mark.id != *ours) {
        return Ok(Some(mark.id.clone()).filter(|_| mark.stored));
    }
    let last = u32::try_from(exchange.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let recording = history.recording(exchange.id.clone(), Which::Events).await?;
    let mut events = recording.events.iter().filter(|(attempt, _)| *attempt == last);
    Ok(events.find_map(|(_, event)| announced(event)).and_then(|(id, kept)| kept.then_some(id)))
}

/// Returns the response that an event is about, and whether it is kept.
fn announced(event: &ProviderEvent) -> Option<(Text, bool)> {
    let document = Document::parse(event.data.as_str()).ok()?;
    let root = document.root();
    let response = root.field("response").unwrap_or(root);
    let is_response = response.field("object").is_none_or(|object| object.is_str("response"));
    let id = response.field("id").filter(|_| is_response)?.as_text()?;
    Some((id, response.field("store").and_then(|store| store.as_bool()) != Some(false)))
}
