//! Conversations as objects: begun, described, added to, listed and taken out of use by a client.
//!
//! A conversation of the record needs nothing of this; one that was begun by a request can be had here just the
//! same. What a client says about a conversation is kept like a response is: as the answer of the exchange in which
//! it was said, under a mark that follows from the conversation's id. So taking it out of use keeps every entry of it in the history.

use super::input_items;
use super::responses::json;
use super::stored::unreadable;
use super::{Ingress, receive};
use crate::exchange::{conversation_mark, items_taken_out, taken_out_items};
use crate::failure::{gateway_error, reject, undecodable};
use crate::gateway::{mint, now};
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use std::collections::{BTreeMap, BTreeSet};
use throughline_core::{ConversationId, Dialect, Entry, EntryId, Failure, FailureKind, Text};
use throughline_store::{
    Batch, Conversations, Exchange, ExchangeId, Exchanges, Extension, Locate, Moment, NewConversation,
    ResponseMark, Which, Write, title_of,
};
use throughline_wire::decode_request;
use throughline_wire::json::{Document, Writer, quote};

/// A conversation that can be used.
struct Found {
    id: ConversationId,
    /// What was last added to it.
    tip: Option<EntryId>,
    /// What its client said about it, and the exchange in which that was.
    said: Option<(Exchange, String)>,
}

/// What a body about a conversation holds.
struct Given {
    metadata: String,
    entries: Vec<Entry>,
}

/// Begins a conversation.
pub async fn create(State(ingress): State<Ingress>, request: Request) -> Response {
    answered(created(&ingress, request).await)
}

/// Describes a conversation.
pub async fn show(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    answered(shown(&ingress, &id).await)
}

/// Changes what is said about a conversation.
pub async fn update(State(ingress): State<Ingress>, Path(id): Path<String>, request: Request) -> Response {
    answered(updated(&ingress, &id, request).await)
}

/// Takes a conversation out of use; its entries stay in the history.
pub async fn forget(State(ingress): State<Ingress>, Path(id): Path<String>) -> Response {
    answered(forgotten(&ingress, &id).await)
}

/// Adds items to a conversation.
pub async fn add(State(ingress): State<Ingress>, Path(id): Path<String>, request: Request) -> Response {
    answered(added(&ingress, &id, request).await)
}

/// Lists the items of a conversation.
pub async fn list(
    State(ingress): State<Ingress>,
    Path(id): Path<String>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Response {
    answered(listed(&ingress, &id, &parameters).await)
}

/// Returns one item of a conversation.
pub async fn show_item(State(ingress): State<Ingress>, Path((id, item)): Path<(String, String)>) -> Response {
    answered(item_shown(&ingress, &id, &item).await)
}

/// Takes an item out of a conversation; its entry stays in the history.
pub async fn forget_item(
    State(ingress): State<Ingress>,
    Path((id, item)): Path<(String, String)>,
) -> Response {
    answered(item_forgotten(&ingress, &id, &item).await)
}

async fn created(ingress: &Ingress, request: Request) -> Result<String, Failure> {
    let given = given(ingress, request).await?;
    let id = ConversationId::new(format!("conv_{}", mint()));
    let at = now();
    let begun = NewConversation {
        id: id.clone(),
        at,
        identified: Text::from_static("conversation"),
        title: title_of(&given.entries),
        keys: Vec::new(),
    };
    let found = Found { id, tip: None, said: None };
    let body = object(&found.id, at, &given.metadata);
    let mut writes = vec![Write::Conversation(begun)];
    writes.extend(found.say(&body, &given.entries, at));
    write(ingress, writes).await?;
    Ok(body)
}

async fn shown(ingress: &Ingress, id: &str) -> Result<String, Failure> {
    let found = Found::of(ingress, id).await?;
    match found.said {
        Some((_, said)) => Ok(said),
        None => Ok(object(&found.id, found.began(ingress).await?, "{}")),
    }
}

async fn updated(ingress: &Ingress, id: &str, request: Request) -> Result<String, Failure> {
    let given = given(ingress, request).await?;
    let found = Found::of(ingress, id).await?;
    let body = object(&found.id, found.began(ingress).await?, &given.metadata);
    write(ingress, found.say(&body, &[], now())).await?;
    Ok(body)
}

async fn forgotten(ingress: &Ingress, id: &str) -> Result<String, Failure> {
    let found = Found::of(ingress, id).await?;
    let body = object(&found.id, found.began(ingress).await?, "{}");
    let mut writes = if found.said.is_some() { Vec::new() } else { found.say(&body, &[], now()) };
    writes.push(Write::ForgetResponse { id: conversation_mark(id) });
    write(ingress, writes).await?;
    let mut writer = Writer::new();
    writer.begin_object();
    writer.field_str("id", id);
    writer.field_str("object", "conversation.deleted");
    writer.field_bool("deleted", true);
    writer.end_object();
    Ok(writer.into_string())
}

async fn added(ingress: &Ingress, id: &str, request: Request) -> Result<String, Failure> {
    let given = given(ingress, request).await?;
    let found = Found::of(ingress, id).await?;
    let mut extension = Extension::new(found.id, found.tip, now());
    let ids: Vec<EntryId> = given.entries.iter().map(|entry| extension.push(entry)).collect();
    write(ingress, vec![Write::Entries(extension)]).await?;
    Ok(input_items::list_of(&given.entries, &ids))
}

async fn listed(
    ingress: &Ingress,
    id: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<String, Failure> {
    let found = Found::of(ingress, id).await?;
    let taken_out = taken_out(ingress, &found.id).await;
    input_items::page_behind(ingress, found.tip, parameters, &taken_out).await
}

async fn item_shown(ingress: &Ingress, id: &str, item: &str) -> Result<String, Failure> {
    let found = Found::of(ingress, id).await?;
    let taken_out = taken_out(ingress, &found.id).await;
    let one = input_items::one_behind(ingress, found.tip, item, &taken_out).await?;
    one.map(|(_, json)| json).ok_or_else(|| unknown_item(&found.id, item))
}

async fn item_forgotten(ingress: &Ingress, id: &str, item: &str) -> Result<String, Failure> {
    let found = Found::of(ingress, id).await?;
    let mut taken_out = taken_out(ingress, &found.id).await;
    let one = input_items::one_behind(ingress, found.tip.clone(), item, &taken_out).await?;
    let (entry, _) = one.ok_or_else(|| unknown_item(&found.id, item))?;
    taken_out.insert(entry);
    write(ingress, vec![items_taken_out(&found.id, &taken_out, now())]).await?;
    let refreshed = ingress.gateway.refresh().await;
    refreshed.map_err(|error| unreadable(&error))?;
    shown(ingress, id).await
}

async fn taken_out(ingress: &Ingress, id: &ConversationId) -> BTreeSet<Text> {
    taken_out_items(&*ingress.gateway.latest_standing().await, id)
}

impl Found {
    /// Finds a conversation, unless it was taken out of use.
    async fn of(ingress: &Ingress, id: &str) -> Result<Self, Failure> {
        let history = &ingress.gateway.history;
        let id = ConversationId::new(id);
        let located = history.locate(Locate::Conversation(id.clone())).await;
        let located = located.map_err(|error| unreadable(&error))?.ok_or_else(|| unknown(&id))?;
        let said = history.exchanges(Exchanges::Response(conversation_mark(id.as_str()))).await;
        let said = said.map_err(|error| unreadable(&error))?.items.into_iter().next();
        let Some(exchange) = said else { return Ok(Self { id, tip: located.entry, said: None }) };
        let recording = history.recording(exchange.id.clone(), Which::Answer).await;
        let body = recording.map_err(|error| unreadable(&error))?.answer;
        let body = body.filter(|_| exchange.response.as_ref().is_some_and(|mark| !mark.deleted));
        let body = body.ok_or_else(|| unknown(&id))?.to_string();
        Ok(Self { id, tip: located.entry, said: Some((exchange, body)) })
    }

    /// Returns when the conversation began.
    async fn began(&self, ingress: &Ingress) -> Result<Moment, Failure> {
        let headings = ingress.gateway.history.conversations(Conversations::One(self.id.clone())).await;
        let heading = headings.map_err(|error| unreadable(&error))?.items.into_iter().next();
        heading.map(|heading| heading.created).ok_or_else(|| unknown(&self.id))
    }

    /// Returns what it takes to keep what a client says about the conversation, and what it adds to it.
    fn say(&self, body: &str, entries: &[Entry], at: Moment) -> Vec<Write> {
        let exchange = match &self.said {
            Some((exchange, _)) => exchange.clone(),
            None => self.exchange(at),
        };
        let id = exchange.id.clone();
        let mut extension = Extension::new(self.id.clone(), self.tip.clone(), at).of_exchange(id.clone());
        extension.extend(entries);
        vec![
            Write::Exchange(Box::new(exchange)),
            Write::Entries(extension),
            Write::Answer { exchange: id, json: Text::from(body) },
        ]
    }

    /// Returns an exchange in which nobody was asked anything.
    fn exchange(&self, at: Moment) -> Exchange {
        let mark = ResponseMark { id: conversation_mark(self.id.as_str()), stored: true, deleted: false };
        Exchange {
            id: ExchangeId::new(mint()),
            conversation: self.id.clone(),
            before: None,
            after: None,
            dialect: Dialect::Responses,
            client: None,
            asked_model: None,
            started: at,
            ended: Some(at),
            ending: Some(Text::from_static("taken_in")),
            status: Some(200),
            usage: None,
            attempts: Vec::new(),
            response: Some(mark),
        }
    }
}

/// Reads a body: what is said about the conversation, and the items in it.
async fn given(ingress: &Ingress, request: Request) -> Result<Given, Failure> {
    let incoming = receive(ingress, Dialect::Responses, request).await;
    let incoming = incoming.map_err(|unreceived| unreceived.failure)?;
    let body = if incoming.body.trim().is_empty() { "{}".to_owned() } else { incoming.body };
    let document = Document::parse(body).map_err(|error| undecodable(&error.into()))?;
    let root = document.root().expect_object().map_err(|error| undecodable(&error))?;
    let items = root.field("items").map_or("[]", |items| if items.is_null() { "[]" } else { items.raw() });
    let metadata =
        root.field("metadata").filter(|metadata| !metadata.is_null()).map_or("{}", |value| value.raw());
    // Items and metadata are what they are in a request, so they are read as those of one.
    let ask = decode_request(Dialect::Responses, format!(r#"{{"metadata":{metadata},"input":{items}}}"#));
    let ask = ask.map_err(|mut error| {
        if let Some(rest) = error.path.strip_prefix("input") {
            error.path = format!("items{rest}");
        }
        undecodable(&error)
    })?;
    let setup = ingress.gateway.setup();
    let privacy = &setup.config.privacy;
    let entries = privacy.entries(&ask.entries).into_owned();
    Ok(Given { metadata: privacy.text(metadata).into_owned(), entries })
}

async fn write(ingress: &Ingress, writes: Vec<Write>) -> Result<(), Failure> {
    let written = ingress.gateway.history.append(Batch::durable(writes)).await;
    written.map(drop).map_err(|error| {
        let message = format!("the history cannot be written: {error}");
        gateway_error(FailureKind::Overloaded, "throughline_store_failed", message)
    })
}

fn object(id: &ConversationId, created: Moment, metadata: &str) -> String {
    let id = quote(id.as_str());
    let created = created.0 / 1000;
    format!(r#"{{"id":{id},"object":"conversation","created_at":{created},"metadata":{metadata}}}"#)
}

fn answered(answer: Result<String, Failure>) -> Response {
    answer.map_or_else(|failure| reject(Dialect::Responses, &failure), json)
}

fn unknown_item(id: &ConversationId, item: &str) -> Failure {
    let message = format!("no item of `{}` is called `{item}`", id.as_str());
    gateway_error(FailureKind::NotFound, "throughline_no_such_item", message)
}

fn unknown(id: &ConversationId) -> Failure {
    let message = format!("no conversation is called `{}`", id.as_str());
    gateway_error(FailureKind::NotFound, "throughline_no_such_conversation", message)
}
