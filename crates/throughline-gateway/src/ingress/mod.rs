//! HTTP in: the routes, who is let in, how much, and the bodies.

mod api;
mod api_answer;
mod arriving;
pub mod body;
mod conversations;
mod door;
pub mod guard;
pub mod input_items;
mod inspector;
mod live;
mod metrics;
mod models;
pub mod openapi;
mod responses;
mod runs;
mod seen;
pub mod stored;
mod websocket;

use crate::exchange::{self, Incoming, Purpose};
use crate::failure::{gateway_error, reject};
use crate::gateway::Gateway;
use crate::telemetry::Refusal;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use body::Unreceived;
pub use door::no_connection_left;
use http::{StatusCode, header};
use std::sync::Arc;
use throughline_core::{Dialect, Failure, FailureKind};
use throughline_wire::json::Writer;
use tokio::sync::Semaphore;

/// What the routes share.
#[derive(Clone)]
pub struct Ingress {
    gateway: Arc<Gateway>,
    /// One permit for each request that may be under way.
    room: Arc<Semaphore>,
}

/// Returns the routes of a gateway.
pub fn routes(gateway: Arc<Gateway>) -> Router {
    let room = gateway.setup().config.limits.concurrent_requests as usize;
    let ingress = Ingress { gateway, room: Arc::new(Semaphore::new(room)) };
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_messages))
        .route("/v1/responses/input_tokens", post(count_responses))
        .route("/v1/responses/compact", post(compact))
        .route("/v1/responses", post(answer_responses).get(websocket::connect))
        .route("/v1/responses/{id}", get(responses::show).delete(responses::forget))
        .route("/v1/responses/{id}/input_items", get(responses::list_input))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/conversations", post(conversations::create))
        .route(
            "/v1/conversations/{id}",
            get(conversations::show).post(conversations::update).delete(conversations::forget),
        )
        .route("/v1/conversations/{id}/items", get(conversations::list).post(conversations::add))
        .route(
            "/v1/conversations/{id}/items/{item}",
            get(conversations::show_item).delete(conversations::forget_item),
        )
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::one))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::show))
        .merge(api::routes())
        .merge(inspector::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(ingress.clone(), door::pass))
        .with_state(ingress)
}

async fn chat(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Chat, Purpose::Answer, request).await
}

async fn messages(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Messages, Purpose::Answer, request).await
}

async fn answer_responses(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Responses, Purpose::Answer, request).await
}

async fn compact(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Responses, Purpose::Compact, request).await
}

async fn count_messages(state: State<Ingress>, request: Request) -> Response {
    count(state, Dialect::Messages, request).await
}

async fn count_responses(state: State<Ingress>, request: Request) -> Response {
    count(state, Dialect::Responses, request).await
}

async fn count(State(ingress): State<Ingress>, dialect: Dialect, request: Request) -> Response {
    let incoming = match receive(&ingress, dialect, request).await {
        Ok(incoming) => incoming,
        Err(unreceived) => return unreceived.into_response(dialect),
    };
    let (gateway, bytes) = (Arc::clone(&ingress.gateway), incoming.body.len());
    let counting = async move { exchange::count(&gateway, incoming).await };
    let counted = match exchange::unhindered(bytes, counting).await.and_then(|counted| counted) {
        Ok(counted) => counted,
        Err(failure) => return reject(dialect, &failure),
    };
    let mut writer = Writer::new();
    writer.begin_object();
    if dialect == Dialect::Responses {
        writer.field_str("object", "response.input_tokens");
    }
    writer.field_uint("input_tokens", counted.tokens);
    if let Some(original) = counted.original {
        writer.key("context_management");
        writer.begin_object();
        writer.field_uint("original_input_tokens", original);
        writer.end_object();
    }
    writer.end_object();
    ([(header::CONTENT_TYPE, "application/json")], writer.into_string()).into_response()
}

async fn exchange(
    State(ingress): State<Ingress>,
    dialect: Dialect,
    purpose: Purpose,
    request: Request,
) -> Response {
    // Held until the head of the answer is ready; a stream under way takes no room of this kind.
    let Ok(_permit) = ingress.room.try_acquire() else {
        ingress.gateway.telemetry.turned_away(dialect);
        return reject(dialect, &busy(&ingress));
    };
    match receive(&ingress, dialect, request).await {
        Ok(incoming) => exchange::answer_unhindered(&ingress.gateway, Incoming { purpose, ..incoming }).await,
        Err(unreceived) => {
            ingress.gateway.telemetry.turned_away(dialect);
            unreceived.into_response(dialect)
        }
    }
}

/// Reads a request whole.
async fn receive(ingress: &Ingress, dialect: Dialect, request: Request) -> Result<Incoming, Unreceived> {
    let gateway = &ingress.gateway;
    let limits = gateway.setup().config.limits;
    let (head, body) = request.into_parts();
    let arriving = body::receive(&head.headers, body, limits.body_bytes, gateway.memory.reserve());
    let received = match tokio::time::timeout(limits.request_timeout, arriving).await {
        Ok(received) => received,
        Err(_) => Err(Unreceived::late()),
    };
    let received = received.inspect_err(|unreceived| gateway.telemetry.refused(unreceived.reason))?;
    Ok(Incoming {
        dialect,
        headers: head.headers,
        body: received.text,
        remembered: None,
        purpose: Purpose::Answer,
        own: None,
        reservation: Some(received.reservation),
    })
}

/// Returns the failure of a request for which there is no room among those under way.
fn busy(ingress: &Ingress) -> Failure {
    ingress.gateway.telemetry.refused(Refusal::Requests);
    let message = "too many requests are under way; try again in a moment";
    gateway_error(FailureKind::Overloaded, "throughline_busy", message)
}

async fn ready(State(ingress): State<Ingress>) -> Response {
    match ingress.gateway.history.ready().await {
        Ok(()) => "ready\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

async fn not_allowed(request: Request) -> Response {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    let failure = gateway_error(FailureKind::InvalidRequest, "throughline_method_not_allowed", message);
    let mut response = reject(Dialect::Responses, &failure);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn unknown(request: Request) -> Response {
    let message = format!("there is nothing at {} {}", request.method(), request.uri().path());
    reject(Dialect::Responses, &gateway_error(FailureKind::NotFound, "throughline_no_such_path", message))
}
