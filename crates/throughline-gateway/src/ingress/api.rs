//! The record and the switch over HTTP, for the inspector and for scripts.
//!
//! Everything is JSON. Errors have the envelope of the Responses dialect, like those of paths that nobody
//! knows. Lists come in pages: `next` is handed back as `after`.

use super::api_answer::{Parameters, array, bad, listed, no_conversation, paging, respond, unread};
use super::{Ingress, arriving, body, live, openapi, runs, seen};
use crate::exchange::SIDE_QUESTIONS;
use crate::failure::{gateway_error, reject, undecodable};
use crate::gateway::now;
use crate::run_ids::run_of;
use crate::switch;
use crate::view::{self, Ranking, Tally, Tools, UsageBy};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Query, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post, put};
use std::collections::BTreeMap;
use throughline_core::{ConversationId, Dialect, EntryId, Failure, FailureKind, Text};
use throughline_store::{
    ConversationFilter, Conversations, Entries, Exchange, ExchangeId, History, Hit, Moment, Outworn, Page,
    Prune, Recording, Scope, Search, StoreError, Which,
};
use throughline_wire::json::{DecodeError, Document, Writer};

const BODY_BYTES_MAX: usize = 64 * 1024;

/// Returns the routes below `/api`.
pub fn routes() -> Router<Ingress> {
    Router::new()
        .route("/api/conversations", get(conversations))
        .route("/api/conversations/{id}", get(conversation).delete(forget))
        .route("/api/conversations/{id}/pairs", get(pairs))
        .route("/api/conversations/{id}/frames", get(frames))
        .route("/api/conversations/{id}/entries/{entry}", get(entry))
        .route("/api/conversations/{id}/sent/{number}", get(sent))
        .route("/api/conversations/{id}/seen/{number}", get(seen))
        .route("/api/conversations/{id}/arriving", get(arriving::show))
        .route("/api/conversations/{id}/backend", put(switch_conversation))
        .route("/api/runs", get(runs::list))
        .route("/api/runs/{id}", get(runs::one))
        .route("/api/runs/{id}/replay", post(runs::replayed))
        .route("/api/search", get(search))
        .route("/api/usage", get(usage))
        .route("/api/events", get(live::events))
        .route("/api/backends", get(backends))
        .route("/api/active", put(switch_everything))
        .route("/api/openapi.json", get(openapi::show))
        .route_layer(from_fn(check_parameters))
}

async fn check_parameters(request: Request, next: Next) -> Response {
    match known_parameters(&request) {
        Ok(()) => next.run(request).await,
        Err(failure) => reject(Dialect::Responses, &failure),
    }
}

/// Says whether everything behind the `?` is known at this path: a misspelt filter would find too much in silence.
fn known_parameters(request: &Request) -> Result<(), Failure> {
    let query = request.uri().query().unwrap_or_default();
    let names = query.split('&').filter_map(|pair| pair.split('=').next()).filter(|name| !name.is_empty());
    let known = openapi::parameters(request.method().as_str(), request.uri().path());
    let Some(unknown) = names.into_iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let message = match known.as_slice() {
        [] => format!("{unknown}: nothing is taken behind the `?` here"),
        known => format!("{unknown}: there is no such parameter here; there are: {}", known.join(", ")),
    };
    Err(Failure {
        param: Some(Text::from(unknown)),
        ..gateway_error(FailureKind::InvalidRequest, "throughline_unknown_parameter", message)
    })
}

async fn conversations(State(ingress): State<Ingress>, Query(parameters): Parameters) -> Response {
    let answer = async {
        let (filter, paging) = (filter(&parameters)?, paging(&parameters)?);
        let gateway = &*ingress.gateway;
        let (history, setup) = (&*gateway.history, gateway.setup());
        let tallied = |writer: &mut Writer, (listed, tally): &(view::Listed, Tally)| {
            view::write_tallied(writer, listed, tally, &setup.config);
        };
        if let Some(ranking) = ranking(&parameters)? {
            let limit = paging.limit;
            let items = view::ranked(history, &filter, ranking, limit, &gateway.tallies, &setup.config).await;
            let items = items.map_err(|error| unread(&error))?;
            return Ok(paged("conversations", &Page { items, next: None }, tallied));
        }
        let which = Conversations::Matching(Box::new(filter), paging);
        let page = view::list(history, which).await.map_err(|error| unread(&error))?;
        if !is_on(&parameters, "totals")? {
            return Ok(paged("conversations", &page, view::write_listed));
        }
        let mut items = Vec::with_capacity(page.items.len());
        for listed in page.items {
            let tally = gateway.tallies.of(history, &listed.heading).await;
            items.push((listed, tally.map_err(|error| unread(&error))?));
        }
        Ok(paged("conversations", &Page { items, next: page.next }, tallied))
    };
    respond(answer.await)
}

/// Returns which conversations are wanted: the same filters as those of `ls`.
fn filter(parameters: &BTreeMap<String, String>) -> Result<ConversationFilter, Failure> {
    let words = |name: &str| {
        let text = parameters.get(name).filter(|text| !text.is_empty());
        text.map(|text| Text::from(text.as_str()))
    };
    let side_questions = is_on(parameters, "all")?;
    Ok(ConversationFilter {
        id: words("id"),
        title: words("title"),
        client: words("client"),
        backend: words("backend"),
        project: words("project"),
        failed: is_on(parameters, "failed")?,
        since: moment(parameters, "since")?,
        except_identified: (!side_questions).then_some(Text::from_static(SIDE_QUESTIONS)),
    })
}

fn ranking(parameters: &BTreeMap<String, String>) -> Result<Option<Ranking>, Failure> {
    match parameters.get("sort").map(String::as_str) {
        None | Some("" | "updated") => Ok(None),
        Some("cost") => Ok(Some(Ranking::Cost)),
        Some("tokens") => Ok(Some(Ranking::Tokens)),
        Some("exchanges") => Ok(Some(Ranking::Exchanges)),
        Some(_) => Err(bad("sort", "must be updated, cost, tokens or exchanges")),
    }
}

/// Tokens and cost of all exchanges, added up.
async fn usage(State(ingress): State<Ingress>, Query(parameters): Parameters) -> Response {
    let answer = async {
        let by = match parameters.get("by") {
            Some(name) => UsageBy::from_name(name)
                .ok_or_else(|| bad("by", "must be day, model, client, conversation or project"))?,
            None => UsageBy::default(),
        };
        let since = moment(&parameters, "since")?;
        let report = view::usage(&*ingress.gateway.history, by, since).await;
        let report = report.map_err(|error| unread(&error))?;
        let mut writer = Writer::new();
        view::write_usage_report(&mut writer, by, &report, &ingress.gateway.setup().config);
        Ok(writer)
    };
    respond(answer.await)
}

async fn conversation(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Response {
    let answer = async {
        let history = &*ingress.gateway.history;
        let preview = preview(&parameters)?;
        let listed = listed(&ingress, &id).await?;
        let id = listed.heading.id.clone();
        let entries = history.entries(Entries::Conversation(id.clone())).await;
        let entries = entries.map_err(|error| unread(&error))?;
        let exchanges = view::exchanges(history, &id).await.map_err(|error| unread(&error))?;
        let reports = switch_reports(history, &exchanges).await.map_err(|error| unread(&error))?;
        let none = Recording::default();
        let mut writer = Writer::new();
        writer.begin_object();
        writer.key("conversation");
        let setup = ingress.gateway.setup();
        view::write_tallied(&mut writer, &listed, &Tally::of(&exchanges), &setup.config);
        let tools = Tools::of(&entries);
        array(&mut writer, "entries", &entries, |writer, kept| {
            view::write_preview(writer, kept, preview, tools.exit_code(&kept.entry));
        });
        array(&mut writer, "exchanges", &exchanges, |writer, each| {
            view::write_priced(writer, each, reports.get(&each.id).unwrap_or(&none), &setup.config);
        });
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

async fn pairs(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    let answer = async {
        let id = listed(&ingress, &id).await?.heading.id;
        let branch = view::latest_branch(&*ingress.gateway.history, &id).await;
        let branch = branch.map_err(|error| unread(&error))?;
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("conversation", id.as_str());
        array(&mut writer, "pairs", &view::pairs(&branch), view::write_pair);
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

/// Every event that came back from backends, in the order of exchanges, attempts and events.
///
/// With `run`, those of one run alone; with `exchange`, those of one exchange.
async fn frames(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Parameters,
) -> Response {
    let answer = async {
        let history = &*ingress.gateway.history;
        let id = listed(&ingress, &id).await?.heading.id;
        let exchanges = view::exchanges(history, &id).await.map_err(|error| unread(&error))?;
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("conversation", id.as_str());
        writer.key("frames");
        writer.begin_array();
        let is_wanted = |exchange: &&Exchange| {
            parameters.get("run").is_none_or(|run| run_of(exchange) == Some(run))
                && parameters.get("exchange").is_none_or(|id| exchange.id.as_str() == id)
        };
        for exchange in exchanges.iter().filter(is_wanted) {
            let recording = history.recording(exchange.id.clone(), Which::Events).await;
            let recording = recording.map_err(|error| unread(&error))?;
            for (attempt, event) in &recording.events {
                view::write_event(&mut writer, &exchange.id, *attempt, event);
            }
        }
        writer.end_array();
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

/// One entry with all it has, pictures too.
async fn entry(State(ingress): State<Ingress>, Path((id, entry)): Path<(String, String)>) -> Response {
    let answer = async {
        let found = ingress.gateway.history.entries(Entries::One(EntryId::new(entry.as_str()))).await;
        let found = found.map_err(|error| unread(&error))?;
        let kept = found.iter().find(|kept| kept.conversation.as_str() == id).ok_or_else(|| {
            let message = format!("`{id}` has no entry `{entry}`");
            gateway_error(FailureKind::NotFound, "throughline_no_such_entry", message)
        })?;
        let mut writer = Writer::new();
        view::write_whole(&mut writer, kept);
        Ok(writer)
    };
    respond(answer.await)
}

/// Returns the reports of those exchanges that another backend answers than the one before: they say why.
async fn switch_reports(
    history: &dyn History,
    exchanges: &[Exchange],
) -> Result<BTreeMap<ExchangeId, Recording>, StoreError> {
    let backend = |exchange: &Exchange| exchange.attempts.last().map(|attempt| attempt.backend.clone());
    let mut reports = BTreeMap::new();
    for pair in exchanges.windows(2) {
        if backend(&pair[0]) != backend(&pair[1]) {
            let recording = history.recording(pair[1].id.clone(), Which::Reports).await?;
            reports.insert(pair[1].id.clone(), recording);
        }
    }
    Ok(reports)
}

/// What backends were sent in one exchange, which is counted from 1 on.
async fn sent(State(ingress): State<Ingress>, Path((id, number)): Path<(String, String)>) -> Response {
    let answer = async {
        let exchange = numbered(&ingress, &id, &number).await?;
        let recording = ingress.gateway.history.recording(exchange.id.clone(), Which::Documents).await;
        let recording = recording.map_err(|error| unread(&error))?;
        let mut writer = Writer::new();
        view::write_exchange(&mut writer, &exchange, &recording);
        Ok(writer)
    };
    respond(answer.await)
}

/// What was kept beside what the last attempt of an exchange sent, which is counted from 1 on.
async fn seen(
    State(ingress): State<Ingress>,
    Path((id, number)): Path<(String, String)>,
    Query(parameters): Parameters,
) -> Response {
    let answer = async {
        let preview = preview(&parameters)?;
        let exchange = numbered(&ingress, &id, &number).await?;
        seen::compared(&ingress.gateway, exchange, preview).await
    };
    respond(answer.await)
}

/// Returns the exchange of a conversation that is counted from 1 on.
async fn numbered(ingress: &Ingress, id: &str, number: &str) -> Result<Exchange, Failure> {
    let id = listed(ingress, id).await?.heading.id;
    let exchanges = view::exchanges(&*ingress.gateway.history, &id).await.map_err(|error| unread(&error))?;
    let count = exchanges.len();
    let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    at.and_then(|at| exchanges.into_iter().nth(at)).ok_or_else(|| {
        let message = format!("`{id}` has {count} exchanges, and `{number}` is none of them");
        gateway_error(FailureKind::NotFound, "throughline_no_such_exchange", message)
    })
}

async fn search(State(ingress): State<Ingress>, Query(parameters): Parameters) -> Response {
    let answer = async {
        let failed = is_on(&parameters, "failed")?;
        let narrows = |name: &&str| parameters.contains_key(*name);
        let is_narrowed = failed || ["tool", "path", "command", "conversation"].iter().any(narrows);
        let words = parameters.get("q").cloned().or_else(|| is_narrowed.then(String::new));
        let search = Search {
            words: words.ok_or_else(|| bad("q", "is required, unless something else narrows the search"))?,
            tool: parameters.get("tool").map(|tool| Text::from(tool.as_str())),
            path: parameters.get("path").cloned(),
            command: parameters.get("command").cloned(),
            failed,
            conversation: parameters.get("conversation").map(|id| ConversationId::new(id.as_str())),
            since: moment(&parameters, "since")?,
            until: moment(&parameters, "until")?,
            paging: paging(&parameters)?,
            ..Search::default()
        };
        let page = ingress.gateway.history.search(search).await.map_err(|error| unread(&error))?;
        let titles = titles(&ingress, &page.items).await.map_err(|error| unread(&error))?;
        Ok(paged("hits", &page, |writer, hit| {
            let title = titles.get(&hit.conversation).and_then(Option::as_deref);
            view::write_titled_hit(writer, hit, title);
        }))
    };
    respond(answer.await)
}

/// Returns the titles of the conversations in which something was found.
async fn titles(
    ingress: &Ingress,
    hits: &[Hit],
) -> Result<BTreeMap<ConversationId, Option<Text>>, StoreError> {
    let mut titles = BTreeMap::new();
    for hit in hits {
        if !titles.contains_key(&hit.conversation) {
            let which = Conversations::One(hit.conversation.clone());
            let found = ingress.gateway.history.conversations(which).await?.items.into_iter().next();
            titles.insert(hit.conversation.clone(), found.and_then(|heading| heading.title));
        }
    }
    Ok(titles)
}

async fn backends(State(ingress): State<Ingress>) -> Response {
    let answer = async {
        let standing = ingress.gateway.history.standing().await.map_err(|error| unread(&error))?;
        let mut writer = Writer::new();
        let setup = ingress.gateway.setup();
        view::write_backends(&mut writer, &setup.config, &standing, &setup.listings(), now());
        Ok(writer)
    };
    respond(answer.await)
}

async fn switch_everything(State(ingress): State<Ingress>, request: Request) -> Response {
    respond(make_switch(&ingress, Scope::Everywhere, request).await)
}

async fn switch_conversation(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let scope = Scope::Conversation(ConversationId::new(id));
    respond(make_switch(&ingress, scope, request).await)
}

/// Switches as the body says; from the next request on it holds.
async fn make_switch(ingress: &Ingress, scope: Scope, request: Request) -> Result<Writer, Failure> {
    let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|_| body::too_large(BODY_BYTES_MAX))?;
    let wanted = wanted(&String::from_utf8_lossy(&bytes)).map_err(|error| undecodable(&error))?;
    let setup = ingress.gateway.setup();
    let pick = wanted.map(|text| switch::checked(&setup.config, &text, &setup.listings())).transpose();
    let pick = pick.map_err(|error| Failure {
        param: Some(Text::from_static("backend")),
        ..gateway_error(FailureKind::InvalidRequest, "throughline_unknown_backend", error.to_string())
    })?;
    let written =
        ingress.gateway.history.append(switch::batch(&scope, pick.as_ref(), switch::By::Http, now())).await;
    written.map_err(|error| unread(&error))?;
    ingress.gateway.refresh().await.map_err(|error| unread(&error))?;
    let mut writer = Writer::new();
    writer.begin_object();
    match pick {
        Some(pick) => writer.field_str("backend", &pick.to_string()),
        None => writer.field_null("backend"),
    }
    writer.end_object();
    Ok(writer)
}

/// Reads `{"backend": "NAME[/MODEL]"}`; `null`, there or in place of it all, takes a switch back.
///
/// What else is in it is refused: whoever sends a `model` of its own would be left with another.
fn wanted(body: &str) -> Result<Option<Text>, DecodeError> {
    let document = Document::parse(body)?;
    if document.root().is_null() {
        return Ok(None);
    }
    let backend = document.root().expect_field("backend")?;
    if let Some((_, field)) = document.root().fields().find(|(name, _)| name != "backend") {
        return Err(
            field.error("is no field of a switch; a model is given as `{\"backend\": \"NAME/MODEL\"}`")
        );
    }
    if backend.is_null() {
        return Ok(None);
    }
    let pick = backend.expect_text()?;
    if pick.ends_with('/') {
        return Err(
            backend.error("has no model behind the `/`; leave that out for the models that requests ask for")
        );
    }
    Ok(Some(pick))
}

/// Takes a conversation out of the history, with all that no other one shares.
async fn forget(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    let answer = async {
        let which = Outworn::These(vec![ConversationId::new(id.as_str())]);
        let pruned = ingress.gateway.history.prune(Prune { which, dry_run: false }).await;
        let pruned = pruned.map_err(|error| unread(&error))?;
        if pruned.conversations.is_empty() {
            return Err(no_conversation(&id));
        }
        let mut writer = Writer::new();
        writer.begin_object();
        writer.field_str("id", &id);
        writer.field_bool("deleted", true);
        writer.field_uint("entries", pruned.entries);
        writer.field_uint("exchanges", pruned.exchanges);
        writer.end_object();
        Ok(writer)
    };
    respond(answer.await)
}

/// Says whether a parameter is there, and does not say no.
fn is_on(parameters: &BTreeMap<String, String>, name: &'static str) -> Result<bool, Failure> {
    match parameters.get(name).map(String::as_str) {
        None | Some("false") => Ok(false),
        Some("true" | "") => Ok(true),
        Some(_) => Err(bad(name, "must be true or false")),
    }
}

/// Returns the moment that a parameter names, if it is there.
fn moment(parameters: &BTreeMap<String, String>, name: &'static str) -> Result<Option<Moment>, Failure> {
    let problem =
        "must be a date, a time such as 2026-02-28T09:05:07Z, today, yesterday, or an age such as 2h or 7d";
    let read = |text: &String| view::moment(text, now()).ok_or_else(|| bad(name, problem));
    parameters.get(name).map(read).transpose()
}

/// Returns how many characters of each text are wanted; all of them, unless `preview` says so.
fn preview(parameters: &BTreeMap<String, String>) -> Result<usize, Failure> {
    match parameters.get("preview") {
        Some(chars) => chars.parse().map_err(|_| bad("preview", "must be a number of characters")),
        None => Ok(usize::MAX),
    }
}

fn paged<T>(name: &str, page: &Page<T>, write: impl Fn(&mut Writer, &T)) -> Writer {
    let mut writer = Writer::new();
    writer.begin_object();
    array(&mut writer, name, &page.items, write);
    match &page.next {
        Some(next) => writer.field_str("next", &next.0),
        None => writer.field_null("next"),
    }
    writer.end_object();
    writer
}
