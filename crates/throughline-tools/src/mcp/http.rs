//! Messages to a server by HTTP, of whose answers no more is read than an answer may have.
//!
//! Sending is ours for that reason alone; the rest is the library's.

use super::bounded::{Excess, Meter};
use super::connection::MCP_MESSAGE_BYTES_MAX;
use futures_util::stream::{BoxStream, StreamExt as _};
use http::{HeaderName, HeaderValue, StatusCode, header};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How often a server may send a message on to another of its own addresses.
const REDIRECTS_MAX: usize = 10;

/// How much of the words of a refusal is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// How much of them is passed on.
const QUOTED_CHARS_MAX: usize = 500;

type HttpError = StreamableHttpError<reqwest::Error>;

/// A client that reads bounded answers.
#[derive(Clone, Debug)]
pub(super) struct BoundedClient {
    client: reqwest::Client,
    /// Where an answer that is too large is noted. What the library makes of it depends on whether it hears of the error or
    /// of the closed stream first.
    meter: Arc<Meter>,
}

impl BoundedClient {
    /// Returns a client that goes nowhere but to the address that was configured: credentials are sent with every
    /// message.
    pub(super) fn new(meter: Arc<Meter>) -> Result<Self, reqwest::Error> {
        let stays = reqwest::redirect::Policy::custom(|attempt| {
            let keeps_body =
                matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let origin = attempt.previous().first().map(reqwest::Url::origin);
            let is_same = origin.is_some_and(|origin| origin == attempt.url().origin());
            let is_first = attempt.previous().len() <= REDIRECTS_MAX;
            if keeps_body && is_same && is_first { attempt.follow() } else { attempt.stop() }
        });
        // A connection whose last answer was not read to its end is not used again.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).redirect(stays).build()?;
        Ok(Self { client, meter })
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self.client.post(uri.as_ref()).header(header::ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        request = request.headers(custom_headers.into_iter().collect());
        let has_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(SESSION, session.as_ref());
        }
        let body = serde_json::to_vec(&message)?;
        let request = request.header(header::CONTENT_TYPE, JSON).body(body);
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, &message, has_session).await;
        }
        answered(response, &message, &self.meter).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let (client, limit) = (&self.client, MCP_MESSAGE_BYTES_MAX);
        client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                limit,
            )
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        _: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }
}

/// Reads an answer, whole or as the stream that it is.
async fn answered(
    response: reqwest::Response,
    message: &ClientJsonRpcMessage,
    meter: &Arc<Meter>,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let awaits_nothing = !matches!(message, ClientJsonRpcMessage::Request(_));
    let session = response.headers().get(SESSION).and_then(|it| it.to_str().ok()).map(ToOwned::to_owned);
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    match content_type.as_deref() {
        Some(kind) if kind.starts_with(EVENTS) => {
            let events = SseStream::from_bytes_stream(bounded(response, Arc::clone(meter))).boxed();
            Ok(StreamableHttpPostResponse::Sse(events, session))
        }
        Some(kind) if kind.starts_with(JSON) => {
            let body = taken(response, MCP_MESSAGE_BYTES_MAX).await?;
            let body = body.ok_or_else(|| unexpected(&meter.fail(Excess::Message)))?;
            match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(_) if awaits_nothing => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => Err(unexpected(&format!("no message of the protocol: {error}"))),
            }
        }
        _ if awaits_nothing && response.content_length() == Some(0) => {
            Ok(StreamableHttpPostResponse::Accepted)
        }
        _ => Err(StreamableHttpError::UnexpectedContentType(content_type)),
    }
}

/// Reads why a server refused. One that does not know how the newest version begins is to be asked in the way of the
/// one before, and whoever decides that wants an error with the id of the question.
async fn refused(
    response: reqwest::Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    let body = taken(response, REFUSAL_BYTES_MAX).await?.unwrap_or_default();
    let words: String = String::from_utf8_lossy(&body).chars().take(QUOTED_CHARS_MAX).collect();
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_barred = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
        && !is_barred
    {
        let untold = || ErrorData::invalid_request(format!("HTTP {status}: {words}"), None);
        let error = said.map_or_else(untold, |said| said.error);
        let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(message, None));
    }
    match said {
        Some(error) if !is_barred => Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), None)),
        _ => Err(unexpected(&format!("HTTP {status}: {words}"))),
    }
}

/// Reads a body; none if it is larger than `limit`.
async fn taken(mut response: reqwest::Response, limit: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Returns the bytes of a stream up to where it becomes too large.
fn bounded(
    response: reqwest::Response,
    meter: Arc<Meter>,
) -> impl futures_util::Stream<Item = Result<tokio_util::bytes::Bytes, std::io::Error>> + Send + 'static {
    let mut came = 0_usize;
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        came = came.saturating_add(chunk.len());
        if came > MCP_MESSAGE_BYTES_MAX { Err(meter.fail(Excess::Message)) } else { Ok(chunk) }
    })
}

fn unexpected(what: &dyn std::fmt::Display) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(what.to_string().into())
}
