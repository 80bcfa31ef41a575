//! How many tokens a request would take: the question that some clients ask before each turn.
//!
//! The request is rendered as it would be sent, and its size is the answer; nothing is sent and nothing is
//! kept. Backends that can count are not asked either: the answer is the number that Throughline itself goes
//! by, the same for every backend and without a network.

use super::place::Placed;
use super::prompting::{Showing, prompt};
use super::{Incoming, routed};
use crate::gateway::{Gateway, mint};
use crate::ingress::reject::{own, undecodable};
use std::sync::Arc;
use throughline_core::{ConversationId, Failure, FailureKind};
use throughline_wire::decode_request;

/// Returns how many tokens a request would take.
///
/// # Errors
/// When the body cannot be understood, or nobody would answer it.
pub async fn count(gateway: &Arc<Gateway>, incoming: Incoming) -> Result<u64, Failure> {
    let ask = decode_request(incoming.dialect, incoming.body).map_err(|error| undecodable(&error))?;
    let placed = Placed {
        turn: Vec::new(),
        handover: None,
        earlier: Vec::new(),
        conversation: ConversationId::new(mint()),
        identified: "counting",
        key: None,
        parent: None,
        known: 0,
        history: ask.entries.clone(),
    };
    let route = routed(&gateway.setup(), &gateway.standing(), &incoming.headers, &ask, &placed)?;
    let prompted = prompt(&ask, &placed, &route.first, Showing::WHOLE);
    let gauge = gateway.gauges.of(&gateway.standing(), &route.first);
    let (gateway, countable) = (Arc::clone(gateway), prompted.countable);
    let counting = tokio::task::spawn_blocking(move || {
        gauge.vocabulary().load();
        gauge.tokens(countable.size(&gauge, &gateway.gauges.counts))
    });
    counting.await.map_err(|error| own(FailureKind::Backend, "throughline_not_counted", error.to_string()))
}
