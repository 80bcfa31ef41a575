//! The record as JSON: the shapes of the HTTP interface and of `--json`.
//!
//! Fields that have nothing to say are `null` where a reader would look for them, and else left out.

use super::failure::write_failure;
use super::{
    Listed, Mark, Pair, Row, Seen, Spoken, Tally, cost_of, found_name, iso, kind_name, oddity_words,
    outcome_name, role_name, spoken, state_name, text_of,
};
use crate::async_summary::answering;
use crate::config::{Backend, Config};
use crate::routing::Listings;
use crate::switch;
use bytes::Bytes;
use throughline_core::{
    Call, Content, ConversationId, Dialect, Entry, EntryId, Handover, Kind, Media, Origin, Return, Role,
    Text, Thought, Usage,
};
use throughline_store::{
    Attempt, DocumentKind, Exchange, ExchangeId, Hit, Kept, KeptKind, Learned, Moment, ProviderEvent,
    Recording, Scope, Standing,
};
use throughline_wire::json::Writer;

/// Writes a conversation of a list.
pub fn write_listed(writer: &mut Writer, listed: &Listed) {
    writer.begin_object();
    write_listed_fields(writer, listed);
    writer.end_object();
}

/// Writes a conversation of a list, with what its exchanges add up to.
pub fn write_tallied(writer: &mut Writer, listed: &Listed, tally: &Tally, config: &Config) {
    writer.begin_object();
    write_listed_fields(writer, listed);
    write_usage(writer, "usage_total", tally.used.total());
    write_cost(writer, tally.used.cost(config));
    writer.field_uint("runs", tally.runs.len() as u64);
    writer.end_object();
}

fn write_listed_fields(writer: &mut Writer, listed: &Listed) {
    let heading = &listed.heading;
    writer.field_str("id", heading.id.as_str());
    writer.field_str("created", &iso(heading.created));
    writer.field_str("updated", &iso(heading.updated));
    writer.field_str("identified", &heading.identified);
    optional(writer, "title", heading.title.as_deref());
    optional(writer, "backend", listed.answered_by.as_deref());
    optional(writer, "switched", heading.backend.as_deref());
    optional(writer, "project", heading.project.as_deref());
    optional(writer, "parent", heading.parent.as_ref().map(ConversationId::as_str));
    writer.field_uint("entries", heading.entries);
    writer.field_uint("exchanges", heading.exchanges);
    if let Some(latest) = &listed.latest {
        optional(writer, "client", latest.client.as_deref());
        optional(writer, "model", latest.asked_model.as_deref());
        optional(writer, "ending", latest.ending.as_deref());
        writer.field_bool("answering", latest.ended.is_none());
        write_usage(writer, "usage", latest.usage);
    }
}

/// Writes an entry.
pub fn write_entry(writer: &mut Writer, kept: &Kept, exit_code: Option<i32>) {
    writer.begin_object();
    write_place(writer, kept);
    write_said(writer, &kept.entry, usize::MAX);
    write_exit_code(writer, exit_code);
    writer.end_object();
}

/// Writes an entry with no more than so many characters of each of its texts.
///
/// Where something is cut off, `chars` says how many there are.
pub fn write_preview(writer: &mut Writer, kept: &Kept, chars_max: usize, exit_code: Option<i32>) {
    writer.begin_object();
    write_place(writer, kept);
    write_said(writer, &kept.entry, chars_max);
    write_exit_code(writer, exit_code);
    writer.end_object();
}

/// Writes an entry with its pictures.
pub fn write_whole(writer: &mut Writer, kept: &Kept) {
    writer.begin_object();
    write_place(writer, kept);
    write_said(writer, &kept.entry, usize::MAX);
    let parts = match &kept.entry.kind {
        Kind::Said(said) => &*said.parts,
        Kind::Returned(returned) => &*returned.parts,
        _ => &[],
    };
    writer.key("pictures");
    writer.begin_array();
    for part in parts {
        if let Content::Image(image) = &part.content {
            write_image(writer, &image.media);
        }
    }
    writer.end_array();
    if let Some(wire) = &kept.entry.wire {
        writer.field_str("wire", &wire.text);
    }
    writer.end_object();
}

/// Writes an entry of an answer under way, which has no place in the history yet.
pub fn write_arriving(writer: &mut Writer, entry: &Entry) {
    writer.begin_object();
    write_said(writer, entry, usize::MAX);
    writer.end_object();
}

/// Writes what a backend saw, with no more than so many characters of each text.
pub fn write_seen(writer: &mut Writer, seen: &Seen<'_>, chars_max: usize) {
    writer.key("tokens");
    writer.begin_object();
    for (class, (kept, sent)) in &seen.tokens {
        writer.key(class);
        writer.begin_object();
        writer.field_uint("kept", *kept);
        writer.field_uint("sent", *sent);
        writer.end_object();
    }
    writer.end_object();
    writer.field_bool("known", seen.unknown.is_none());
    writer.key("rows");
    writer.begin_array();
    seen.rows.iter().for_each(|row| write_row(writer, row, chars_max));
    writer.end_array();
}

fn write_row(writer: &mut Writer, row: &Row<'_>, chars_max: usize) {
    writer.begin_object();
    writer.field_str("mark", row.mark.name());
    writer.field_str("from", row.from.name());
    if let Some(reason) = &row.reason {
        writer.field_str("reason", reason);
    }
    if let Some(handle) = &row.handle {
        writer.field_str("handle", &handle.to_string());
        writer.field_bool("stale", row.stale);
    }
    writer.field_uint("tokens_kept", row.tokens.0);
    writer.field_uint("tokens_sent", row.tokens.1);
    if let Some(kept) = row.kept {
        writer.key("kept");
        write_preview(writer, kept, chars_max, None);
    }
    // What was sent as it was kept need not be said twice.
    if let Some(sent) = row.sent.filter(|_| row.mark != Mark::Same) {
        writer.key("sent");
        writer.begin_object();
        write_said(writer, sent, chars_max);
        writer.end_object();
    }
    writer.end_object();
}

fn write_image(writer: &mut Writer, media: &Media) {
    match media {
        Media::Inline { media_type, base64 } => {
            writer.string(&format!("data:{media_type};base64,{base64}"));
        }
        Media::Url(url) => writer.string(url),
        Media::Plain(_) | Media::Stored(_) => writer.null(),
    }
}

/// Writes the exit code that the result of a command says.
fn write_exit_code(writer: &mut Writer, exit_code: Option<i32>) {
    if let Some(code) = exit_code {
        writer.field_raw("exit_code", &code.to_string());
    }
}

/// Writes where an entry stands.
fn write_place(writer: &mut Writer, kept: &Kept) {
    writer.field_str("id", kept.id.as_str());
    optional(writer, "parent", kept.parent.as_ref().map(EntryId::as_str));
    optional(writer, "exchange", kept.exchange.as_ref().map(ExchangeId::as_str));
    writer.field_str("at", &iso(kept.at));
}

/// Writes what an entry says.
fn write_said(writer: &mut Writer, entry: &Entry, chars_max: usize) {
    writer.field_str("kind", kind_name(&entry.kind));
    match &entry.kind {
        Kind::Said(said) => {
            writer.field_str("role", role_name(said.role));
            let whole = text_of(&said.parts);
            text(writer, "text", &whole, chars_max);
            if said.role == Role::User {
                write_spoken(writer, &whole, chars_max);
            }
        }
        Kind::Thought(thought) => write_thought(writer, thought, chars_max),
        Kind::Called(call) => write_call(writer, call, chars_max),
        Kind::Returned(returned) => write_return(writer, returned, chars_max),
        Kind::HandedOver(handover) => write_handover_fields(writer, handover, Some(chars_max)),
        Kind::Summarised(summary) => {
            text(writer, "text", &summary.text, chars_max);
            writer.field_uint("covers", summary.covers.into());
        }
        Kind::Reference { id } => writer.field_str("item", id),
        Kind::Opaque { kind } => writer.field_str("type", kind),
    }
    if let Some(origin) = &entry.origin {
        writer.key("origin");
        write_origin(writer, origin);
    }
}

/// Writes the person's own words apart from what their agent put in, where it did.
fn write_spoken(writer: &mut Writer, whole: &str, chars_max: usize) {
    let Spoken { words, injected } = spoken(whole);
    if injected.is_empty() {
        return;
    }
    match words.char_indices().nth(chars_max) {
        Some((end, _)) => {
            writer.field_str("spoken", &words[..end]);
            writer.field_uint("spoken_chars", words.chars().count() as u64);
        }
        None => writer.field_str("spoken", &words),
    }
    writer.key("injected");
    writer.begin_array();
    for (tag, inside) in injected {
        writer.begin_object();
        writer.field_str("tag", tag);
        writer.field_uint("chars", inside.chars().count() as u64);
        writer.end_object();
    }
    writer.end_array();
}

/// Writes a text, or its beginning and how many characters it has.
fn text(writer: &mut Writer, name: &str, text: &str, chars_max: usize) {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => {
            writer.field_str(name, &text[..end]);
            writer.field_uint("chars", text.chars().count() as u64);
        }
        None => writer.field_str(name, text),
    }
}

/// Writes a call with its result.
pub fn write_pair(writer: &mut Writer, pair: &Pair<'_>) {
    writer.begin_object();
    writer.field_str("state", state_name(pair.state));
    optional(writer, "oddity", pair.oddity.map(oddity_words));
    for (name, half) in [("call", pair.call), ("result", pair.result)] {
        writer.key(name);
        match half {
            Some(kept) => write_entry(writer, kept, pair.exit_code().filter(|_| name == "result")),
            None => writer.null(),
        }
    }
    writer.end_object();
}

/// Writes an exchange with the bodies and reports of its attempts, as far as those were read.
pub fn write_exchange(writer: &mut Writer, exchange: &Exchange, recording: &Recording) {
    writer.begin_object();
    write_exchange_fields(writer, exchange, recording);
    writer.end_object();
}

/// Writes an exchange with what it cost, where that is known, and what of its documents was read.
pub fn write_priced(writer: &mut Writer, exchange: &Exchange, recording: &Recording, config: &Config) {
    writer.begin_object();
    write_exchange_fields(writer, exchange, recording);
    write_cost(writer, cost_of(config, exchange));
    let answered = answering(exchange);
    let window = answered.and_then(|attempt| {
        let facts = config.backend(&attempt.backend)?.model_facts(attempt.model.as_deref()?);
        Some(facts.context_window?.value)
    });
    match window {
        Some(window) => writer.field_uint("window", window),
        None => writer.field_null("window"),
    }
    writer.end_object();
}

fn write_exchange_fields(writer: &mut Writer, exchange: &Exchange, recording: &Recording) {
    writer.field_str("id", exchange.id.as_str());
    writer.field_str("dialect", exchange.dialect.name());
    optional(writer, "client", exchange.client.as_deref());
    optional(writer, "model", exchange.asked_model.as_deref());
    writer.field_str("started", &iso(exchange.started));
    moment_or_null(writer, "ended", exchange.ended);
    optional(writer, "ending", exchange.ending.as_deref());
    number(writer, "status", exchange.status);
    write_usage(writer, "usage", exchange.usage);
    optional(writer, "before", exchange.before.as_ref().map(EntryId::as_str));
    write_failure(writer, exchange);
    writer.key("attempts");
    writer.begin_array();
    for (at, attempt) in (0_u32..).zip(&exchange.attempts) {
        let document = |kind| recording.document(at, kind);
        write_attempt(writer, attempt, document(DocumentKind::Report), document(DocumentKind::Sent));
    }
    writer.end_array();
}

/// Writes what something cost in US dollars; `null` where that is not known.
pub(crate) fn write_cost(writer: &mut Writer, cost: Option<f64>) {
    match cost {
        Some(cost) => writer.field_raw("cost", &format!("{cost:.8}")),
        None => writer.field_null("cost"),
    }
}

pub(crate) fn write_usage(writer: &mut Writer, name: &str, usage: Option<Usage>) {
    let Some(usage) = usage else { return };
    writer.key(name);
    writer.begin_object();
    writer.field_uint("input", usage.input);
    writer.field_uint("cache_read", usage.cache_read);
    writer.field_uint("cache_written", usage.cache_written);
    writer.field_uint("output", usage.output);
    writer.field_uint("reasoning", usage.reasoning);
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
    write_hit_fields(writer, hit);
    writer.end_object();
}

/// Writes what a search found, with the title of the conversation that it stands in.
pub fn write_titled_hit(writer: &mut Writer, hit: &Hit, title: Option<&str>) {
    writer.begin_object();
    write_hit_fields(writer, hit);
    optional(writer, "title", title);
    writer.end_object();
}

fn write_hit_fields(writer: &mut Writer, hit: &Hit) {
    writer.field_str("conversation", hit.conversation.as_str());
    writer.field_str("entry", hit.entry.as_str());
    writer.field_str("at", &iso(hit.at));
    writer.field_str("kind", found_name(hit.kind));
    optional(writer, "tool", hit.tool.as_deref());
    if let KeptKind::Returned(outcome) = hit.kind {
        writer.field_str("outcome", outcome_name(outcome));
    }
    write_exit_code(writer, hit.exit_code);
    writer.field_str("snippet", &hit.snippet);
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
    if let Some(lacks) = &backend.lacks {
        writer.field_str("lacks", lacks);
    }
    write_configured(writer, backend);
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

/// Writes what the configuration says of a backend: of abilities, `auto` means that it is found out.
fn write_configured(writer: &mut Writer, backend: &Backend) {
    writer.key("configured");
    writer.begin_object();
    writer.field_str("native_tool_history", backend.native_tool_history.name());
    writer.field_str("server_state", backend.server_state.name());
    writer.field_str("context_management", backend.context_management.name());
    writer.field_str("reasoning", backend.reasoning.name());
    match backend.context_window {
        Some(window) => writer.field_uint("context_window", window),
        None => writer.field_null("context_window"),
    }
    writer.key("fallback");
    writer.begin_array();
    backend.fallback.iter().for_each(|name| writer.string(name));
    writer.end_array();
    writer.key("prices");
    match &backend.prices {
        Some(prices) => {
            writer.begin_object();
            let all = [
                ("input", Some(prices.input)),
                ("output", Some(prices.output)),
                ("cache_read", prices.cache_read),
                ("cache_write", prices.cache_write),
            ];
            for (name, price) in all {
                match price {
                    Some(price) => writer.field_raw(name, &format!("{price}")),
                    None => writer.field_null(name),
                }
            }
            writer.end_object();
        }
        None => writer.null(),
    }
    writer.end_object();
}

fn write_learned(writer: &mut Writer, learned: &Learned, now: Moment) {
    writer.begin_object();
    optional(writer, "model", Some(&*learned.model).filter(|model| !model.is_empty()));
    writer.field_str("capability", &learned.capability);
    writer.field_str("verdict", &learned.verdict);
    writer.field_str("reason", &learned.reason);
    writer.field_str("at", &iso(learned.at));
    moment_or_null(writer, "expires", learned.expires);
    writer.field_bool("holds", learned.expires.is_none_or(|expires| now < expires));
    writer.end_object();
}

/// Writes a handover, and of its brief only how long it is.
pub fn write_handover(writer: &mut Writer, handover: &Handover) {
    writer.begin_object();
    write_handover_fields(writer, handover, None);
    writer.end_object();
}

fn write_handover_fields(writer: &mut Writer, handover: &Handover, chars_max: Option<usize>) {
    writer.key("from");
    match &handover.from {
        Some(from) => write_origin(writer, from),
        None => writer.null(),
    }
    writer.key("to");
    write_origin(writer, &handover.to);
    writer.field_str("by", &handover.by);
    writer.field_str("reason", &handover.reason);
    writer.field_str("mode", if handover.brief.is_some() { "brief" } else { "native" });
    if let Some(continued) = &handover.continues {
        writer.field_str("continues", continued.conversation.as_str());
    }
    if let Some(brief) = &handover.brief {
        writer.field_uint("brief_chars", brief.chars().count() as u64);
        if let Some(chars_max) = chars_max {
            text(writer, "brief", brief, chars_max);
        }
    }
}

fn write_thought(writer: &mut Writer, thought: &Thought, chars_max: usize) {
    let readable = if thought.content.is_empty() { &thought.summary } else { &thought.content };
    let texts: Vec<&str> = readable.iter().map(Text::as_str).collect();
    text(writer, "text", &texts.join("\n"), chars_max);
    writer.field_bool("sealed", thought.seal.is_some());
}

fn write_call(writer: &mut Writer, call: &Call, chars_max: usize) {
    writer.field_str("call_id", &call.id);
    writer.field_str("tool", &call.name);
    // The exact text: models do not always manage JSON.
    text(writer, "input", call.input.text(), chars_max);
}

fn write_return(writer: &mut Writer, returned: &Return, chars_max: usize) {
    optional(writer, "call_id", returned.call_id.as_deref());
    optional(writer, "tool", returned.name.as_deref());
    writer.field_str("outcome", outcome_name(returned.outcome));
    text(writer, "text", &text_of(&returned.parts), chars_max);
    let images = returned.parts.iter().filter(|part| matches!(part.content, Content::Image(_))).count();
    if images > 0 {
        writer.field_uint("images", images as u64);
    }
}

fn write_origin(writer: &mut Writer, origin: &Origin) {
    writer.begin_object();
    writer.field_str("backend", &origin.backend);
    writer.field_str("dialect", origin.dialect.name());
    writer.field_str("model", &origin.model);
    writer.end_object();
}

fn write_attempt(writer: &mut Writer, attempt: &Attempt, report: Option<&Bytes>, body: Option<&Bytes>) {
    writer.begin_object();
    writer.field_str("backend", &attempt.backend);
    writer.field_str("dialect", Dialect::name(attempt.dialect));
    optional(writer, "model", attempt.model.as_deref());
    optional(writer, "strategy", attempt.strategy.as_deref());
    writer.field_str("started", &iso(attempt.started));
    moment_or_null(writer, "ended", attempt.ended);
    number(writer, "status", attempt.status);
    optional(writer, "failure", attempt.failure.as_deref());
    if let Some(step) = &attempt.compaction {
        writer.key("compaction");
        writer.begin_object();
        writer.field_str("exchange", step.exchange.as_str());
        writer.field_uint("attempt", step.attempt.into());
        writer.end_object();
    }
    if let Some(plan) = &attempt.plan {
        writer.key("plan");
        writer.begin_object();
        writer.field_uint("tokens_before", plan.before);
        writer.field_uint("tokens_after", plan.after);
        writer.field_uint("tool_tokens", plan.tools);
        writer.end_object();
    }
    if let Some(response) = &attempt.continues {
        writer.field_str("continues", response);
    }
    if let Some(recall) = &attempt.recall {
        writer.field_str("recall", recall);
    }
    if let Some(Ok(report)) = report.map(|report| std::str::from_utf8(report)) {
        writer.field_raw("report", report);
    }
    if let Some(body) = body {
        // As text and not as JSON: what counts is what was sent, byte for byte.
        writer.field_str("body", &String::from_utf8_lossy(body));
    }
    writer.end_object();
}

/// Writes a field that may be `null`.
pub(crate) fn optional(writer: &mut Writer, name: &str, text: Option<&str>) {
    match text {
        Some(text) => writer.field_str(name, text),
        None => writer.field_null(name),
    }
}

pub(crate) fn moment_or_null(writer: &mut Writer, name: &str, at: Option<Moment>) {
    optional(writer, name, at.map(iso).as_deref());
}

fn number(writer: &mut Writer, name: &str, number: Option<u16>) {
    match number {
        Some(number) => writer.field_uint(name, number.into()),
        None => writer.field_null(name),
    }
}
