//! The history as it grows: one event for each conversation that something was added to.
//!
//! Whoever shows a list opens this first and then reads the list, and misses nothing. The bell of the history
//! rings for the other replicas over one PostgreSQL as well. Rings that come together make one look. It does not ring
//! for commands that write the same SQLite file, so the latest conversation is looked at every so often.

use super::Ingress;
use crate::exchange::SIDE_QUESTIONS;
use crate::failure::{gateway_error, reject};
use crate::view::{self, Listed};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use throughline_core::{ConversationId, Dialect, FailureKind};
use throughline_store::{Changes, Conversations, Heading, Paging, StoreError};
use throughline_wire::json::Writer;
use throughline_wire::sse::write_event;

/// How many of the latest conversations are looked at when the bell rings.
const LATEST: u32 = 50;

/// A proxy in between closes what is silent for a minute.
const STILL_THERE_AFTER: Duration = Duration::from_secs(20);

/// So often somebody looks whether another process has added something.
const GLANCE_EVERY: Duration = Duration::from_secs(2);

/// A client that looks on.
struct Onlooker {
    ingress: Ingress,
    changes: Changes,
    seen: BTreeMap<ConversationId, Heading>,
}

/// Opens the stream of events.
pub async fn events(State(ingress): State<Ingress>) -> Response {
    // The bell first: what is added while the list is read rings again.
    let changes = ingress.gateway.history.changes();
    let mut onlooker = Onlooker { ingress, changes, seen: BTreeMap::new() };
    if let Err(error) = onlooker.look().await {
        let failure = gateway_error(FailureKind::Overloaded, "throughline_store_failed", error.to_string());
        return reject(Dialect::Responses, &failure);
    }
    let opened = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b": open\n\n"))]);
    let events = stream::unfold(onlooker, |mut onlooker| async move {
        let events = onlooker.next().await?;
        Some((Ok(Bytes::from(events)), onlooker))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(opened, events));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, body).into_response()
}

impl Onlooker {
    /// Returns what is next for the client; nothing more, when the gateway stops or the history is closed.
    async fn next(&mut self) -> Option<String> {
        let drain = std::sync::Arc::clone(&self.ingress.gateway.drain);
        let mut silent = Duration::ZERO;
        loop {
            let has_rung = tokio::select! {
                rung = self.changes.next() => rung.map(|()| true).ok()?,
                () = tokio::time::sleep(GLANCE_EVERY) => false,
                () = drain.stopping() => return None,
            };
            if !has_rung && self.is_as_it_was().await.ok()? {
                silent += GLANCE_EVERY;
                match silent < STILL_THERE_AFTER {
                    true => continue,
                    false => return Some(": still there\n\n".to_owned()),
                }
            }
            let changed = self.look().await.ok()?;
            if !changed.is_empty() {
                return self.told(&changed).await.ok();
            }
        }
    }

    /// Says whether the latest conversation is as it was: whatever is added makes another one the latest, or changes it.
    async fn is_as_it_was(&self) -> Result<bool, StoreError> {
        let latest = self.ingress.gateway.history.conversations(Conversations::All(Paging::first(1))).await?;
        Ok(latest.items.first().is_none_or(|latest| self.seen.get(&latest.id) == Some(latest)))
    }

    /// Looks at the latest conversations, and returns those that are not as they were, the latest last.
    async fn look(&mut self) -> Result<Vec<Listed>, StoreError> {
        let history = &*self.ingress.gateway.history;
        let page = view::list(history, Conversations::All(Paging::first(LATEST))).await?;
        let seen = page.items.iter().map(|listed| (listed.heading.id.clone(), listed.heading.clone()));
        let before = std::mem::replace(&mut self.seen, seen.collect());
        let is_other = |listed: &Listed| {
            // What clients ask on the side is in no list, and so it is not told of either.
            listed.heading.identified != SIDE_QUESTIONS
                && before.get(&listed.heading.id) != Some(&listed.heading)
        };
        Ok(page.items.into_iter().rev().filter(is_other).collect())
    }

    /// Returns the events that tell of conversations.
    async fn told(&self, changed: &[Listed]) -> Result<String, StoreError> {
        let gateway = &self.ingress.gateway;
        let mut events = String::new();
        for listed in changed {
            let tally = gateway.tallies.of(&*gateway.history, &listed.heading).await?;
            let mut writer = Writer::new();
            view::write_tallied(&mut writer, listed, &tally, &gateway.setup().config);
            write_event(&mut events, Some("conversation"), &writer.into_string());
        }
        Ok(events)
    }
}
