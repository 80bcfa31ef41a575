//! The record as JSON: the shapes of the HTTP interface and of `--json`.
//!
//! Fields that have nothing to say are `null` where a reader would look for them, and else left out.

use super::{Listed, Pair, found_name, iso, kind_name, oddity_words, outcome_name, role_name};
use super::{state_name, text_of};
use crate::config::{Backend, Config};
use crate::routing::Listings;
use crate::switch;
use bytes::Bytes;
use throughline_core::{Call, Dialect, EntryId, Kind, Origin, Return, Text, Thought};
use throughline_store::{
    Attempt, Exchange, ExchangeId, Hit, Kept, KeptKind, Learned, Moment, ProviderEvent, Scope, Standing,
};
use throughline_wire::json::Writer;

/// Writes a conversation of a list.
pub fn write_listed(writer: &mut Writer, listed: &Listed) {
    let heading = &listed.heading;
    writer.begin_object();
    writer.field_str("id", heading.id.as_str());
    writer.field_str("created", &iso(heading.created));
    writer.field_str("updated", &iso(heading.updated));
    writer.field_str("identified", &heading.identified);
    optional(writer, "title", heading.title.as_deref());
    optional(writer, "backend", listed.answered_by.as_deref());
    optional(writer, "switched", heading.backend.as_deref());
    writer.field_uint("entries", heading.entries);
    writer.field_uint("exchanges", heading.exchanges);
    writer.end_object();
}

/// Writes an entry.
pub fn write_entry(writer: &mut Writer, kept: &Kept) {
    writer.begin_object();
    writer.field_str("id", kept.id.as_str());
    optional(writer, "parent", kept.parent.as_ref().map(EntryId::as_str));
    optional(writer, "exchange", kept.exchange.as_ref().map(ExchangeId::as_str));
    writer.field_str("at", &iso(kept.at));
    writer.field_str("kind", kind_name(&kept.entry.kind));
    match &kept.entry.kind {
        Kind::Said(said) => {
            writer.field_str("role", role_name(said.role));
            writer.field_str("text", &text_of(&said.parts));
        }
        Kind::Thought(thought) => write_thought(writer, thought),
        Kind::Called(call) => write_call(writer, call),
        Kind::Returned(returned) => write_return(writer, returned),
        Kind::HandedOver(handover) => {
            writer.key("to");
            write_origin(writer, &handover.to);
            writer.field_str("reason", &handover.reason);
        }
        Kind::Summarised(summary) => {
            writer.field_str("text", &summary.text);
            writer.field_uint("covers", summary.covers.into());
        }
        Kind::Reference { id } => writer.field_str("item", id),
        Kind::Opaque { kind } => writer.field_str("type", kind),
    }
    if let Some(origin) = &kept.entry.origin {
        writer.key("origin");
        write_origin(writer, origin);
    }
    writer.end_object();
}

/// Writes a call with its result.
pub fn write_pair(writer: &mut Writer, pair: &Pair<'_>) {
    writer.begin_object();
    writer.field_str("state", state_name(pair.state));
    optional(writer, "oddity", pair.oddity.map(oddity_words));
    for (name, half) in [("call", pair.call), ("result", pair.result)] {
        writer.key(name);
        match half {
            Some(kept) => write_entry(writer, kept),
            None => writer.null(),
        }
    }
    writer.end_object();
}

/// Writes an exchange; `sent` are the bodies of its attempts, if those are to be shown.
pub fn write_exchange(writer: &mut Writer, exchange: &Exchange, sent: &[(u32, Bytes)]) {
    writer.begin_object();
    writer.field_str("id", exchange.id.as_str());
    writer.field_str("dialect", exchange.dialect.name());
    optional(writer, "client", exchange.client.as_deref());
    optional(writer, "model", exchange.asked_model.as_deref());
    writer.field_str("started", &iso(exchange.started));
    moment(writer, "ended", exchange.ended);
    optional(writer, "ending", exchange.ending.as_deref());
    number(writer, "status", exchange.status);
    if let Some(usage) = exchange.usage {
        writer.key("usage");
        writer.begin_object();
        writer.field_uint("input", usage.input);
        writer.field_uint("cache_read", usage.cache_read);
        writer.field_uint("cache_written", usage.cache_written);
        writer.field_uint("output", usage.output);
        writer.field_uint("reasoning", usage.reasoning);
        writer.end_object();
    }
    writer.key("attempts");
    writer.begin_array();
    for (at, attempt) in (0_u32..).zip(&exchange.attempts) {
        let body = sent.iter().find(|(number, _)| *number == at).map(|(_, body)| body);
        write_attempt(writer, attempt, body);
    }
    writer.end_array();
    writer.end_object();
}

/// Writes an event that came from a backend. Its data is text: not all that comes is JSON.
pub fn write_event(writer: &mut Writer, exchange: &ExchangeId, attempt: u32, event: &ProviderEvent) {
    writer.begin_object();
    writer.field_str("exchange", exchange.as_str());
    writer.field_uint("attempt", attempt.into());
    writer.field_str("at", &iso(event.at));
    optional(writer, "event", event.name.as_deref());
    writer.field_str("data", &event.data);
    writer.end_object();
}

/// Writes what a search found.
pub fn write_hit(writer: &mut Writer, hit: &Hit) {
    writer.begin_object();
    writer.field_str("conversation", hit.conversation.as_str());
    writer.field_str("entry", hit.entry.as_str());
    writer.field_str("at", &iso(hit.at));
    writer.field_str("kind", found_name(hit.kind));
    optional(writer, "tool", hit.tool.as_deref());
    if let KeptKind::Returned(outcome) = hit.kind {
        writer.field_str("outcome", outcome_name(outcome));
    }
    writer.field_str("snippet", &hit.snippet);
    writer.end_object();
}

/// Writes the backends, which of them is active, and what was learned about them.
///
/// `listings` are the models that backends list; of a backend that is not among them, nobody knows.
pub fn write_backends(
    writer: &mut Writer,
    config: &Config,
    standing: &Standing,
    listings: &Listings,
    now: Moment,
) {
    let switched = switch::of(standing, &Scope::Everywhere);
    writer.begin_object();
    writer.field_str("active", &config.active);
    optional(writer, "switched", switched.map(|pick| pick.to_string()).as_deref());
    writer.key("backends");
    writer.begin_array();
    let active = switch::active(config, standing);
    for backend in &config.backends {
        write_backend(writer, backend, backend.name == *active, standing, listings, now);
    }
    writer.end_array();
    writer.end_object();
}

fn write_backend(
    writer: &mut Writer,
    backend: &Backend,
    is_active: bool,
    standing: &Standing,
    listings: &Listings,
    now: Moment,
) {
    writer.begin_object();
    writer.field_str("name", &backend.name);
    writer.field_str("dialect", backend.dialect.name());
    writer.field_str("address", &backend.endpoint.to_string());
    optional(writer, "default_model", backend.default_model.as_deref());
    writer.field_bool("active", is_active);
    writer.key("models");
    match listings.get(&backend.name) {
        Some(models) => {
            writer.begin_array();
            models.iter().for_each(|model| writer.string(model));
            writer.end_array();
        }
        None => writer.null(),
    }
    writer.key("learned");
    writer.begin_array();
    let about = standing.learned.iter().filter(|learned| learned.backend == backend.name);
    about.for_each(|learned| write_learned(writer, learned, now));
    writer.end_array();
    writer.end_object();
}

fn write_learned(writer: &mut Writer, learned: &Learned, now: Moment) {
    writer.begin_object();
    optional(writer, "model", Some(&*learned.model).filter(|model| !model.is_empty()));
    writer.field_str("capability", &learned.capability);
    writer.field_str("verdict", &learned.verdict);
    writer.field_str("reason", &learned.reason);
    writer.field_str("at", &iso(learned.at));
    moment(writer, "expires", learned.expires);
    writer.field_bool("holds", learned.expires.is_none_or(|expires| now < expires));
    writer.end_object();
}

fn write_thought(writer: &mut Writer, thought: &Thought) {
    let readable = if thought.content.is_empty() { &thought.summary } else { &thought.content };
    let texts: Vec<&str> = readable.iter().map(Text::as_str).collect();
    writer.field_str("text", &texts.join("\n"));
    writer.field_bool("sealed", thought.seal.is_some());
}

fn write_call(writer: &mut Writer, call: &Call) {
    writer.field_str("call_id", &call.id);
    writer.field_str("tool", &call.name);
    // The exact text: models do not always manage JSON.
    writer.field_str("input", call.input.text());
}

fn write_return(writer: &mut Writer, returned: &Return) {
    optional(writer, "call_id", returned.call_id.as_deref());
    optional(writer, "tool", returned.name.as_deref());
    writer.field_str("outcome", outcome_name(returned.outcome));
    writer.field_str("text", &text_of(&returned.parts));
}

fn write_origin(writer: &mut Writer, origin: &Origin) {
    writer.begin_object();
    writer.field_str("backend", &origin.backend);
    writer.field_str("dialect", origin.dialect.name());
    writer.field_str("model", &origin.model);
    writer.end_object();
}

fn write_attempt(writer: &mut Writer, attempt: &Attempt, body: Option<&Bytes>) {
    writer.begin_object();
    writer.field_str("backend", &attempt.backend);
    writer.field_str("dialect", Dialect::name(attempt.dialect));
    optional(writer, "model", attempt.model.as_deref());
    optional(writer, "strategy", attempt.strategy.as_deref());
    writer.field_str("started", &iso(attempt.started));
    moment(writer, "ended", attempt.ended);
    number(writer, "status", attempt.status);
    optional(writer, "failure", attempt.failure.as_deref());
    if let Some(report) = &attempt.report {
        writer.field_raw("report", report);
    }
    if let Some(body) = body {
        // As text and not as JSON: what counts is what was sent, byte for byte.
        writer.field_str("body", &String::from_utf8_lossy(body));
    }
    writer.end_object();
}

/// Writes a field that may be `null`.
fn optional(writer: &mut Writer, name: &str, text: Option<&str>) {
    match text {
        Some(text) => writer.field_str(name, text),
        None => writer.field_null(name),
    }
}

fn moment(writer: &mut Writer, name: &str, at: Option<Moment>) {
    optional(writer, name, at.map(iso).as_deref());
}

fn number(writer: &mut Writer, name: &str, number: Option<u16>) {
    match number {
        Some(number) => writer.field_uint(name, number.into()),
        None => writer.field_null(name),
    }
}
