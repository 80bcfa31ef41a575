//! How many tokens a request would take: the question that some clients ask before each turn.
//!
//! The request is rendered as it would be sent, and its size is the answer; nothing is sent and nothing is
//! kept. The count is an estimate by bytes, and errs on the high side for prose.

use super::place::Placed;
use super::prompting::{BYTES_PER_TOKEN, Showing, prompt};
use super::{Incoming, routed};
use crate::gateway::{Gateway, mint};
use crate::ingress::reject::undecodable;
use throughline_core::{ConversationId, Failure};
use throughline_wire::decode_request;

/// Returns about how many tokens a request would take.
///
/// # Errors
/// When the body cannot be understood, or nobody would answer it.
pub fn count(gateway: &Gateway, incoming: Incoming) -> Result<u64, Failure> {
    let ask = decode_request(incoming.dialect, incoming.body).map_err(|error| undecodable(&error))?;
    let placed = Placed {
        conversation: ConversationId::new(mint()),
        identified: "counting",
        key: None,
        parent: None,
        known: 0,
        history: ask.entries.clone(),
    };
    let route = routed(&gateway.setup(), &gateway.standing(), &incoming.headers, &ask, &placed)?;
    let prompted = prompt(&ask, &placed, &route.first, Showing::WHOLE);
    Ok(u64::try_from(prompted.body.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX))
}
