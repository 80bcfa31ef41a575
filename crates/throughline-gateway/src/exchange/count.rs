//! How many tokens a request would take: the question that some clients ask before each turn.
//!
//! The request is rendered as it would be sent, and its size is the answer; nothing is sent and nothing is
//! kept. Backends that can count are not asked either: the answer is the number that Throughline itself goes
//! by, the same for every backend and without a network.

use super::attempt::decision;
use super::countable::Countable;
use super::handover::{self, Cause, Length, answered_last, cuts, may_recall, room, takeover, written};
use super::place::{Past, Placed, SIDE_QUESTIONS};
use super::planning::{Counter, on_a_thread};
use super::prompting::{Showing, origin, prompt};
use super::reading::{decode, place_whole};
use super::recall::tool_name;
use super::route::{RouteHints, route_request};
use super::{Incoming, editing, identity};
use crate::capability::{Ability, Verdict};
use crate::failure::gateway_error;
use crate::gateway::{Gateway, mint, now};
use crate::routing::Destination;
use http::HeaderMap;
use std::sync::Arc;
use throughline_core::plan::{Budget, Decisions, Measured, Planner, Tally, Tokens, ToolRules};
use throughline_core::{Ask, ConversationId, Dialect, Entry, Failure, FailureKind, Text};
use throughline_tokens::{Counts, Gauge};
use throughline_wire::ContextEdits;

/// How many tokens a request would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// As it would be sent.
    pub tokens: u64,
    /// As it came, where the client asks to have something done with it before.
    pub original: Option<u64>,
}

/// Returns how many tokens a request would take.
///
/// # Errors
/// When the body cannot be understood, or nobody would answer it.
pub async fn count(gateway: &Arc<Gateway>, incoming: Incoming) -> Result<Counted, Failure> {
    let hints = RouteHints::for_request(&incoming);
    let ask = decode(incoming.dialect, incoming.body)?;
    // What it goes on from counts, and whose reasoning it holds decides whether that does.
    let past = Past { remembered: incoming.remembered.as_ref(), behind: None };
    let (headers, fresh) = (&incoming.headers, ConversationId::new(mint()));
    let claim = identity::claim(headers, &ask);
    let mut placed = place_whole(gateway, claim, &ask, past, fresh, true).await?;
    let routed = route_request(&gateway.setup(), &gateway.standing(), &hints, &ask, &placed.conversation)?;
    let destination = &routed.destinations[0];

    let recall = expect_brief(gateway, headers, (&ask, &mut placed), destination, routed.cause).await?;
    let showing = Showing { recall: recall.as_ref(), ..Showing::WHOLE };
    let prompted = prompt(&ask, &placed, destination, showing);
    let gauge = gateway.token_counters.of(&gateway.standing(), destination);
    let edits = editing::honoured(&ask, &destination.backend).filter(|_| ask.dialect == Dialect::Messages);
    let (gateway, countable) = (Arc::clone(gateway), prompted.countable);
    let counting = tokio::task::spawn_blocking(move || {
        gauge.vocabulary().load();
        let counts = &gateway.token_counters.counts;
        let whole = gauge.tokens(countable.size(&gauge, counts));
        let Some(edits) = edits else { return Counted { tokens: whole, original: None } };
        let freed = freed(&countable, &gauge, counts, &edits);
        Counted { tokens: whole.saturating_sub(freed), original: Some(whole) }
    });
    counting
        .await
        .map_err(|error| gateway_error(FailureKind::Backend, "throughline_not_counted", error.to_string()))
}

/// Notes the handover that the request would be, with the brief that the backend would be given; returns the tool by
/// which the model could have back what that leaves out.
///
/// No model is asked for the words of it: the digest that stands in for them is about as long.
async fn expect_brief(
    gateway: &Arc<Gateway>,
    headers: &HeaderMap,
    (ask, placed): (&Ask, &mut Placed),
    destination: &Destination,
    cause: Cause,
) -> Result<Option<Text>, Failure> {
    if placed.identified == SIDE_QUESTIONS {
        return Ok(None);
    }
    let earlier = handover::earlier(gateway, headers, &placed.conversation, &placed.history, true).await?;
    let continued;
    (placed.earlier, continued) = earlier;
    let last = answered_last(&*gateway.history, placed).await;
    placed.handover = takeover(placed, origin(destination), cause, continued.as_ref(), last);
    let verdict = decision(&gateway.standing(), destination, Ability::NativeToolHistory, now()).verdict();
    let is_native = verdict != Some(Verdict::No);
    let recall = may_recall(destination, ask);
    let settings = gateway.setup().config.handover.clone();
    if let Some(takeover) = &mut placed.handover
        && takeover.is_briefed(settings.mode, is_native)
    {
        let entries: Vec<Entry> = placed.earlier.iter().chain(&placed.history).cloned().collect();
        let room = room(destination, ask, &entries);
        let length = Length { settings, halvings: 0, recall, room };
        let backend = Arc::clone(&destination.backend);
        (takeover.handover.brief, _) =
            on_a_thread(move || written(&entries, &backend, None, &length)).await?;
    }
    let brief = placed.brief_for(&destination.backend.name);
    Ok(brief.filter(|brief| recall && cuts(brief)).map(|_| tool_name(ask)))
}

/// Returns how many tokens it frees to clear what a client asks to have cleared.
fn freed(countable: &Countable, gauge: &Gauge, counts: &Counts, edits: &ContextEdits) -> u64 {
    let count = Counter { gauge, counts };
    let sizes = count.sizes(&countable.entries);
    let besides = gauge.prompt(counts, &[], &countable.tools, countable.format.as_ref());
    let besides = Tokens(gauge.tokens_at_most(besides));
    let (budget, rules) = (Budget::default(), ToolRules::default());
    let planner = Planner { budget: &budget, rules: &rules, count: &count, recall: false };
    let history = Measured { entries: &countable.entries, sizes: &sizes, besides };
    let cleared = planner.clear(history, &Decisions::default(), &edits.clearing);
    let tally = Tally::of(&countable.entries, &cleared.decisions);
    (tally.call_tokens + tally.thought_tokens).0
}
