//! HTTP in: the routes, who is let in, how much, and the bodies.

mod api;
pub mod body;
mod guard;
mod models;
pub mod reject;
mod responses;

use crate::exchange::{self, Incoming};
use crate::gateway::Gateway;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::StatusCode;
use reject::{own, reject};
use std::net::SocketAddr;
use std::sync::Arc;
use throughline_core::{Dialect, Failure, FailureKind};
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
        .route("/v1/responses", post(answer_responses))
        .route("/v1/responses/{id}", get(responses::show).delete(responses::forget))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::one))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(api::routes(ingress.clone()))
        .fallback(unknown)
        .with_state(ingress)
}

async fn chat(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Chat, request).await
}

async fn messages(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Messages, request).await
}

async fn answer_responses(state: State<Ingress>, request: Request) -> Response {
    exchange(state, Dialect::Responses, request).await
}

async fn exchange(State(ingress): State<Ingress>, dialect: Dialect, request: Request) -> Response {
    // Held until the head of the answer is ready; a stream under way takes no room of this kind.
    let Ok(_permit) = ingress.room.try_acquire() else {
        let message = "too many requests are under way; try again in a moment";
        return reject(dialect, &own(FailureKind::Overloaded, "throughline_busy", message));
    };
    match receive(&ingress, dialect, request).await {
        Ok(incoming) => exchange::answer(&ingress.gateway, incoming).await,
        Err(failure) => reject(dialect, &failure),
    }
}

/// Lets a request in and reads it whole.
async fn receive(ingress: &Ingress, dialect: Dialect, request: Request) -> Result<Incoming, Failure> {
    let setup = ingress.gateway.setup();
    admit(ingress, &request)?;
    let limits = setup.config.limits;
    let (head, body) = request.into_parts();
    let head_bytes: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if head_bytes > limits.header_bytes {
        let message = format!("the headers are larger than {} bytes", limits.header_bytes);
        return Err(own(FailureKind::TooLarge, "throughline_headers_too_large", message));
    }
    let read = tokio::time::timeout(limits.request_timeout, to_bytes(body, limits.body_bytes)).await;
    let late =
        || own(FailureKind::TimedOut, "throughline_request_timeout", "the body took too long to arrive");
    let bytes = read.map_err(|_| late())?.map_err(|_| body::too_large(limits.body_bytes))?;
    let body = body::text(&head.headers, bytes, limits.body_bytes).await?;
    Ok(Incoming { dialect, headers: head.headers, body })
}

/// Says whether a request may come in.
fn admit(ingress: &Ingress, request: &Request<Body>) -> Result<(), Failure> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map_or(unknown, |info| info.0);
    guard::admit(&ingress.gateway.setup().config.access, peer, request.headers())
}

async fn ready(State(ingress): State<Ingress>) -> Response {
    match ingress.gateway.history.standing().await {
        Ok(_) => "ready\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("the history cannot be read: {error}\n"))
            .into_response(),
    }
}

async fn unknown(request: Request) -> Response {
    let message = format!("there is nothing at {} {}", request.method(), request.uri().path());
    reject(Dialect::Responses, &own(FailureKind::NotFound, "throughline_no_such_path", message))
}
