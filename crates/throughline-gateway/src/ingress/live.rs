//! The history as it grows: one event for each conversation that something was added to.
//!
//! Whoever shows a list opens this first and then reads the list, and misses nothing. The bell of the history
//! rings for the other replicas over one PostgreSQL as well. Rings that come together make one look.

use super::Ingress;
use super::reject::{own, reject};
use crate::view;
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
        let failure = own(FailureKind::Overloaded, "throughline_store_failed", error.to_string());
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
        loop {
            tokio::select! {
                rung = self.changes.next() => rung.ok()?,
                () = tokio::time::sleep(STILL_THERE_AFTER) => return Some(": still there\n\n".to_owned()),
                () = drain.stopping() => return None,
            }
            let events = self.look().await.ok()?;
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    /// Looks at the latest conversations, and tells of those that are not as they were.
    async fn look(&mut self) -> Result<String, StoreError> {
        let history = &*self.ingress.gateway.history;
        let page = view::list(history, Conversations::All(Paging::first(LATEST))).await?;
        let before = std::mem::take(&mut self.seen);
        let mut events = String::new();
        for listed in page.items.into_iter().rev() {
            let heading = &listed.heading;
            if before.get(&heading.id) != Some(heading) {
                let mut writer = Writer::new();
                view::write_listed(&mut writer, &listed);
                write_event(&mut events, Some("conversation"), &writer.into_string());
            }
            self.seen.insert(heading.id.clone(), listed.heading);
        }
        Ok(events)
    }
}
