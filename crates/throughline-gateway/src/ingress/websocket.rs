//! The Responses dialect over a WebSocket.
//!
//! Each text frame of the client is one request, answered by the same exchange as a `POST` is; its events go
//! out as frames, without the framing of SSE and without the mark at its end. Requests that come while one is
//! answered wait for their turn. Exactly one frame ends a turn: the last event of the response, or an error
//! frame if there is no such event.
//!
//! The connection remembers its latest response, so that one that is not to be stored can be continued here.
//! It holds no more than the id: what was said is in the history, where only that id leads to it.

use super::{Ingress, body, busy};
use crate::connections::OpenConnection;
use crate::drain::Hold;
use crate::exchange::{self, Incoming, Purpose};
use crate::failure::{gateway_error, reject, status, undecodable};
use crate::memory::exchange_bytes;
use crate::telemetry::Refusal;
use axum::body::{Body, to_bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::response::Response;
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode, header};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use throughline_core::{Dialect, Failure, FailureKind, Text};
use throughline_wire::sse::{SseDecoder, SseEvent};
use throughline_wire::{
    MAX_EVENT_BYTES, SocketEvent, SocketRequest, continuable_response, encode_error, socket_error, status_of,
    whole_response_event,
};
use tokio::time::{Instant, sleep_until};

/// How many requests may wait for their turn; more are left in the network until there is room.
const REQUESTS_WAITING_MAX: usize = 4;

/// How much of an error body is read; errors are small.
const ERROR_BYTES_MAX: usize = 1 << 20;

/// How many times larger than it may be a frame is still read, so that its sender can be told.
const OVERSIZE: usize = 2;

/// A connection with a client.
struct Connection {
    /// The gateway does not stop before the turn under way is over.
    _held: Hold,
    /// The most bytes of a frame.
    frame_bytes: usize,
    ingress: Ingress,
    /// The headers of the handshake; they hold for every request.
    headers: HeaderMap,
    socket: WebSocket,
    waiting: VecDeque<Message>,
    /// The latest response, as long as it can be continued.
    remembered: Option<Text>,
    until: Instant,
    /// The place of the connection among all that are open.
    open: Option<Arc<OpenConnection>>,
    /// How long the client may take nothing of what is written.
    write_timeout: Duration,
}

/// The client is gone.
struct Gone;

/// How far an answer has been handed on.
#[derive(Default)]
struct Progress {
    /// An error that was reported; it ends the turn only if no event of the response does.
    error: Option<String>,
    /// Whether the turn has ended.
    over: bool,
}

/// Opens a connection.
pub async fn connect(State(ingress): State<Ingress>, request: Request) -> Response {
    upgrade(ingress, request).await.unwrap_or_else(|failure| reject(Dialect::Responses, &failure))
}

async fn upgrade(ingress: Ingress, request: Request) -> Result<Response, Failure> {
    let setup = ingress.gateway.setup();
    let open = request.extensions().get::<Arc<OpenConnection>>().cloned();
    let (mut head, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut head, &()).await.map_err(|refusal| {
        let message = format!("this path is read over a WebSocket only: {}", refusal.body_text());
        gateway_error(FailureKind::InvalidRequest, "throughline_no_upgrade", message)
    })?;
    let limit = setup.config.limits.body_bytes;
    let headers = head.headers;
    let read = limit.saturating_mul(OVERSIZE);
    let upgrade = upgrade.max_message_size(read).max_frame_size(read);
    if let Some(open) = &open {
        open.connection().meter(ingress.gateway.memory.reserve());
    }
    Ok(upgrade.on_upgrade(move |socket| Connection::new(ingress, headers, socket, limit, open).serve()))
}

impl Connection {
    fn new(
        ingress: Ingress,
        headers: HeaderMap,
        socket: WebSocket,
        frame_bytes: usize,
        open: Option<Arc<OpenConnection>>,
    ) -> Self {
        Self {
            until: Instant::now() + ingress.gateway.socket_lasts,
            _held: ingress.gateway.drain.hold(),
            write_timeout: ingress.gateway.setup().config.limits.write_timeout,
            waiting: VecDeque::new(),
            remembered: None,
            frame_bytes,
            ingress,
            headers,
            socket,
            open,
        }
    }

    async fn serve(mut self) {
        while let Ok(message) = self.next().await {
            let _under_way = self.open.as_ref().map(|open| open.connection().begin());
            if let Some(open) = &self.open {
                open.connection().release(message_bytes(&message));
            }
            let turn = match message {
                Message::Text(text) if text.len() > self.frame_bytes => self.refuse_size().await,
                Message::Text(text) => self.turn(text.as_str()).await,
                Message::Binary(_) => self.refuse(&not_text()).await,
                Message::Ping(_) | Message::Pong(_) => Ok(()),
                Message::Close(_) => Err(Gone),
            };
            if turn.is_err() {
                return;
            }
        }
    }

    /// Waits for what the client sends next, until the connection has lasted as long as it may or the gateway
    /// is stopped.
    async fn next(&mut self) -> Result<Message, Gone> {
        let drain = Arc::clone(&self.ingress.gateway.drain);
        let (until, open) = (self.until, self.open.clone());
        if Instant::now() < until {
            tokio::select! {
                // What waits for its turn is not begun any more: its client can send it elsewhere.
                biased;
                () = drain.stopping() => return self.close(close_code::AWAY, "the gateway is stopped").await,
                message = self.arrived() => return message,
                () = evicted(open.as_ref()) => {
                    return self.close(close_code::AGAIN, "too many connections are open").await;
                }
                () = sleep_until(until) => {}
            }
        }
        self.refuse(&lasted()).await?;
        self.close(close_code::NORMAL, "the connection has lasted as long as it may").await
    }

    /// Returns what has come or comes next.
    async fn arrived(&mut self) -> Result<Message, Gone> {
        match self.waiting.pop_front() {
            Some(message) => Ok(message),
            None => self.socket.recv().await.and_then(Result::ok).ok_or(Gone),
        }
    }

    /// Closes the connection, which is what there is to say.
    async fn close<T>(&mut self, code: u16, reason: &'static str) -> Result<T, Gone> {
        let frame = CloseFrame { code, reason: reason.into() };
        let _ = tokio::time::timeout(self.write_timeout, self.socket.send(Message::Close(Some(frame)))).await;
        Err(Gone)
    }

    /// Tells the client that its frame is too large, and closes the connection.
    async fn refuse_size(&mut self) -> Result<(), Gone> {
        self.refuse(&body::too_large(self.frame_bytes)).await?;
        self.close(close_code::SIZE, "the frame is too large").await
    }

    /// Answers one request.
    async fn turn(&mut self, text: &str) -> Result<(), Gone> {
        let mut reservation = self.ingress.gateway.memory.reserve();
        let bytes = exchange_bytes(text.len(), body::count_values(text.as_bytes()));
        if let Err(unreceived) = body::reserve(&mut reservation, bytes) {
            self.ingress.gateway.telemetry.refused(unreceived.reason);
            return self.refuse(&unreceived.failure).await;
        }
        let owned = text.to_owned();
        let create = exchange::unhindered(text.len(), async move { SocketRequest::decode(&owned) }).await;
        let create = match create.and_then(|create| create.map_err(|error| undecodable(&error))) {
            Ok(create) => create,
            Err(failure) => return self.refuse(&failure).await,
        };
        let incoming = Incoming {
            dialect: Dialect::Responses,
            headers: self.headers.clone(),
            body: create.body,
            remembered: self.remembered.clone(),
            purpose: if create.generates { Purpose::Answer } else { Purpose::TakeIn },
            own: None,
            reservation: Some(reservation),
        };
        let room = Arc::clone(&self.ingress.room);
        let Ok(permit) = room.try_acquire() else {
            return self.refuse(&busy(&self.ingress)).await;
        };
        let gateway = Arc::clone(&self.ingress.gateway);
        let response = self.attend(exchange::answer_unhindered(&gateway, incoming)).await?;
        drop(permit);
        let latest = self.hand_on(response).await?;
        // A continuation that fails takes what it continued with it; one of something else does not.
        if latest.is_some() || self.remembered == create.previous {
            self.remembered = latest;
        }
        Ok(())
    }

    /// Does some work while keeping an ear on the client.
    async fn attend<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Gone> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                message = self.socket.recv(), if self.waiting.len() < REQUESTS_WAITING_MAX => match message {
                    None | Some(Err(_) | Ok(Message::Close(_))) => return Err(Gone),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(message)) => self.waiting.push_back(message),
                },
            }
        }
    }

    /// Sends an answer on as frames; returns the id of its response, if that can be continued.
    async fn hand_on(&mut self, response: Response) -> Result<Option<Text>, Gone> {
        let (head, body) = response.into_parts();
        let is_stream =
            head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        if head.status == StatusCode::OK && is_stream {
            return self.hand_on_stream(body).await;
        }
        let body = self.attend(to_bytes(body, usize::MAX)).await?.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        if head.status == StatusCode::OK {
            return self.hand_on_whole(&body).await;
        }
        let excerpt = &body[..body.floor_char_boundary(ERROR_BYTES_MAX)];
        self.send(error_frame(head.status.as_u16(), excerpt)).await?;
        Ok(None)
    }

    async fn hand_on_stream(&mut self, body: Body) -> Result<Option<Text>, Gone> {
        let mut bytes = body.into_data_stream();
        let mut events = SseDecoder::new(MAX_EVENT_BYTES);
        let mut progress = Progress::default();
        let mut latest = None;
        while let Some(Ok(chunk)) = self.attend(bytes.next()).await? {
            let is_readable = events.feed(&chunk).is_ok();
            while let Some(event) = events.next_event() {
                let Some(frame) = progress.handle_event(&event) else { continue };
                latest = if progress.over { continuable_response(&event.data) } else { None };
                self.send(frame).await?;
            }
            if !is_readable {
                break;
            }
        }
        if !progress.over {
            let frame = progress.error.unwrap_or_else(|| failure_frame(&broken_off()));
            self.send(frame).await?;
        }
        Ok(latest)
    }

    /// Sends an answer that came whole, although a stream was asked for, as the event that would have ended it.
    async fn hand_on_whole(&mut self, body: &str) -> Result<Option<Text>, Gone> {
        let frame = whole_response_event(body);
        let latest = continuable_response(&frame);
        self.send(frame).await?;
        Ok(latest)
    }

    async fn refuse(&mut self, failure: &Failure) -> Result<(), Gone> {
        self.send(failure_frame(failure)).await
    }

    async fn send(&mut self, frame: String) -> Result<(), Gone> {
        let sent = self.socket.send(Message::Text(frame.into()));
        match tokio::time::timeout(self.write_timeout, sent).await {
            Ok(sent) => sent.map_err(|_| Gone),
            Err(_) => {
                self.ingress.gateway.telemetry.refused(Refusal::WriteTimeout);
                Err(Gone)
            }
        }
    }
}

impl Progress {
    /// Takes an event of the answer and returns the frame that it makes, if it makes one.
    fn handle_event(&mut self, event: &SseEvent) -> Option<String> {
        if self.over {
            return None;
        }
        match SocketEvent::from_sse(event) {
            SocketEvent::Framing => return None,
            SocketEvent::Error => {
                self.error = Some(error_frame(status_of(FailureKind::Backend), &event.data));
                return None;
            }
            SocketEvent::LastFrame => self.over = true,
            SocketEvent::Frame => {}
        }
        Some(event.data.to_string())
    }
}

/// Returns the frame for an error body.
fn error_frame(status: u16, body: &str) -> String {
    socket_error(status, body).unwrap_or_else(|| failure_frame(&broken_off()))
}

fn failure_frame(failure: &Failure) -> String {
    let body = encode_error(Dialect::Responses, failure);
    socket_error(status(failure), &body).unwrap_or(body)
}

/// Waits until a connection has to make room for another, which one that is not counted never has to.
async fn evicted(open: Option<&Arc<OpenConnection>>) {
    match open {
        Some(open) => open.evicted().await,
        None => std::future::pending().await,
    }
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::Text(text) => text.len(),
        Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Close(_) => 0,
    }
}

fn broken_off() -> Failure {
    gateway_error(FailureKind::Backend, "throughline_backend_stream_broken", "the backend's answer broke off")
}

fn not_text() -> Failure {
    let message = "frames must be text: a JSON object with `type` `response.create`";
    gateway_error(FailureKind::InvalidRequest, "throughline_invalid_request", message)
}

fn lasted() -> Failure {
    let message = "the connection has lasted as long as it may; open another";
    gateway_error(FailureKind::InvalidRequest, "websocket_connection_limit_reached", message)
}
