//! The paths that the simulated backend answers at.

use crate::delivery::Manner;
use crate::exchange::Exchange;
use crate::gate::Gate;
use crate::recorder::{Recorded, recordable};
use crate::refusal::{Refused, invalid};
use crate::server::Shared;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_core::{Dialect, Failure, FailureKind};

/// The largest body that is read.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The models that are listed where every name is answered to.
const LISTED: &[&str] = &["sim", "sim-mini"];

/// The number that a request was recorded under.
#[derive(Clone, Copy, Debug)]
struct Number(u64);

type Server = State<Arc<Shared>>;

/// Returns all routes.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_messages))
        .route("/v1/responses", post(responses))
        .route("/v1/responses/input_tokens", post(count_responses))
        .route("/v1/responses/{id}", get(stored).delete(delete_stored))
        .route("/v1/responses/{id}/input_items", get(input_items))
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .fallback(unknown)
        // `record` has read the body already, and has the limit.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(shared.clone(), record))
        // Reading the record is not part of it.
        .route("/__recorded", get(recorded))
        .with_state(shared)
}

/// Notes a request before it is answered, and how it was.
async fn record(State(shared): Server, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let bytes = to_bytes(body, BODY_BYTES_MAX).await;
    let text = bytes.as_ref().map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned());
    let number = shared.recorder.add(Recorded {
        number: 0,
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        headers: recordable_headers(&parts.headers),
        body: text,
        status: 0,
        completed: false,
    });
    let response = match bytes {
        Ok(bytes) => {
            parts.extensions.insert(Number(number));
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(_) => too_large(&shared, number, &parts.uri),
    };
    shared.recorder.answered(number, response.status().as_u16());
    response
}

fn too_large(shared: &Shared, number: u64, uri: &Uri) -> Response {
    let exchange = Exchange { shared, dialect: dialect_of(uri.path()), number };
    let failure = Failure::new(FailureKind::TooLarge, "Request exceeds the maximum size");
    exchange.refuse(Refused::new(exchange.dialect, &failure))
}

fn recordable_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), recordable(name.as_str(), &text(value)))).collect()
}

fn dialect_of(path: &str) -> Dialect {
    match path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next()) {
        Some("messages") => Dialect::Messages,
        Some("responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

async fn chat(State(shared): Server, number: Extension<Number>, headers: HeaderMap, body: Bytes) -> Response {
    Exchange { shared: &shared, dialect: Dialect::Chat, number: number.0.0 }.answer(&headers, &body)
}

async fn messages(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    Exchange { shared: &shared, dialect: Dialect::Messages, number: number.0.0 }.answer(&headers, &body)
}

async fn responses(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    Exchange { shared: &shared, dialect: Dialect::Responses, number: number.0.0 }.answer(&headers, &body)
}

async fn count_messages(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    Exchange { shared: &shared, dialect: Dialect::Messages, number: number.0.0 }.count(&headers, &body)
}

async fn count_responses(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    Exchange { shared: &shared, dialect: Dialect::Responses, number: number.0.0 }.count(&headers, &body)
}

async fn stored(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    let found = || shared.stored().find(&id).map(|response| response.body.clone());
    read(&shared, Dialect::Responses, number.0, &headers, || found().ok_or_else(|| no_response(&id)))
}

async fn delete_stored(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    read(&shared, Dialect::Responses, number.0, &headers, || {
        let is_known = shared.stored().remove(&id);
        let answer = json!({ "id": id, "object": "response", "deleted": true });
        if is_known { Ok(answer.to_string()) } else { Err(no_response(&id)) }
    })
}

async fn input_items(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    read(&shared, Dialect::Responses, number.0, &headers, || {
        let items = shared.stored().find(&id).map(|response| response.input.clone());
        let items = items.ok_or_else(|| no_response(&id))?;
        Ok(json!({ "object": "list", "data": items, "has_more": false }).to_string())
    })
}

async fn models(State(shared): Server, number: Extension<Number>, headers: HeaderMap) -> Response {
    let dialect = asking_dialect(&headers);
    read(&shared, dialect, number.0, &headers, || {
        let all: Vec<Value> = model_names(&shared).iter().map(|name| model_object(dialect, name)).collect();
        let ends = || (all.first().map(|model| &model["id"]), all.last().map(|model| &model["id"]));
        Ok(match dialect {
            Dialect::Messages => {
                json!({ "data": all, "has_more": false, "first_id": ends().0, "last_id": ends().1 })
                    .to_string()
            }
            Dialect::Chat | Dialect::Responses => json!({ "object": "list", "data": all }).to_string(),
        })
    })
}

async fn model(
    State(shared): Server,
    number: Extension<Number>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    let dialect = asking_dialect(&headers);
    read(&shared, dialect, number.0, &headers, || {
        let is_known = shared.options.models.is_empty() || shared.options.models.contains(&id);
        let missing = || Failure::new(FailureKind::NotFound, format!("The model `{id}` does not exist"));
        if is_known { Ok(model_object(dialect, &id).to_string()) } else { Err(missing()) }
    })
}

async fn unknown(State(shared): Server, number: Extension<Number>, method: Method, uri: Uri) -> Response {
    let exchange = Exchange { shared: &shared, dialect: dialect_of(uri.path()), number: number.0.0 };
    let message = format!("Unknown request URL: {method} {}", uri.path());
    exchange.refuse(Refused::with_status(exchange.dialect, 404, &invalid(&message, "")))
}

async fn recorded(State(shared): Server) -> Response {
    let mut response = Response::new(Body::from(shared.recorder.lines()));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    response
}

/// Answers a request for something that is there or not.
fn read(
    shared: &Shared,
    dialect: Dialect,
    number: Number,
    headers: &HeaderMap,
    find: impl FnOnce() -> Result<String, Failure>,
) -> Response {
    let exchange = Exchange { shared, dialect, number: number.0 };
    let gate = Gate { options: &shared.options, sealer: &shared.sealer, dialect };
    if let Err(refused) = gate.admit_headers(headers) {
        return exchange.refuse(refused);
    }
    match find() {
        Ok(text) => exchange.whole(text, "application/json", Manner::default()),
        Err(failure) => exchange.refuse(Refused::with_status(dialect, 404, &failure)),
    }
}

fn no_response(id: &str) -> Failure {
    invalid(&format!("Response with id '{id}' not found."), "response_id")
}

/// Returns the dialect of a client that asks for models, which is the same path in all of them.
fn asking_dialect(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") { Dialect::Messages } else { Dialect::Chat }
}

fn model_names(shared: &Shared) -> Vec<String> {
    match shared.options.models.as_slice() {
        [] => LISTED.iter().map(|name| (*name).to_owned()).collect(),
        models => models.to_vec(),
    }
}

fn model_object(dialect: Dialect, name: &str) -> Value {
    match dialect {
        Dialect::Messages => {
            json!({ "type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z" })
        }
        Dialect::Chat | Dialect::Responses => {
            json!({ "id": name, "object": "model", "created": 1_767_225_600, "owned_by": "throughline" })
        }
    }
}
