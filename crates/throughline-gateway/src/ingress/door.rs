//! What every request passes before anything else looks at it, whatever its path.
//!
//! Its head decides: nothing of its body has been read, and no room was taken for it. A body that is then left
//! unread is read to its end all the same, up to a limit: a client that is still sending when its connection is closed
//! sees a reset, and never the answer that says why.

use super::guard::{self, Denied, Head};
use super::{Ingress, models};
use crate::connections::{OpenConnection, RequestUnderWay};
use crate::failure::{gateway_error, reject};
use crate::telemetry::Refusal;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method, Version, header};
use hyper::body::{Frame, SizeHint};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use throughline_core::{Dialect, Failure, FailureKind};

/// How much of a body that nobody wants is read, and for how long.
const UNREAD_BYTES_MAX: usize = 128 << 20;
const UNREAD_LASTS: Duration = Duration::from_secs(10);

/// Lets a request in, or answers it.
pub async fn pass(State(ingress): State<Ingress>, request: Request, next: Next) -> Response {
    let open = request.extensions().get::<Arc<OpenConnection>>().cloned();
    let under_way = open.as_ref().map(|open| open.connection().begin());
    let request = drained_when_dropped(request);
    let response = match check(&ingress, &request) {
        Ok(()) => {
            if let Some(open) = &open {
                open.connection().admit();
            }
            next.run(request).await
        }
        Err(denied) => {
            let dialect = dialect_of(request.uri().path(), request.headers());
            ingress.gateway.telemetry.refused(denied.reason);
            if is_exchange(&request) {
                ingress.gateway.telemetry.turned_away(dialect);
            }
            tracing::debug!(path = request.uri().path(), reason = denied.reason.name(), "refused");
            reject(dialect, &denied.failure)
        }
    };
    finish(response, under_way)
}

fn check(ingress: &Ingress, request: &Request) -> Result<(), Denied> {
    let setup = ingress.gateway.setup();
    check_size(setup.config.limits.header_bytes, request)?;
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map_or(unknown, |info| info.0);
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    guard::admit(&setup.config.access, &Head { peer, method, uri, headers })
}

/// Says whether a head is within the limits.
fn check_size(limit: usize, request: &Request) -> Result<(), Denied> {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if headers.sum::<usize>() + target <= limit {
        return Ok(());
    }
    let message = format!("the headers are larger than {limit} bytes");
    let failure = gateway_error(FailureKind::TooLarge, "throughline_headers_too_large", message);
    Err(Denied { reason: Refusal::HeaderSize, failure })
}

/// Returns the dialect in which a client of a path understands errors.
fn dialect_of(path: &str, headers: &HeaderMap) -> Dialect {
    if path.starts_with("/v1/chat/") {
        Dialect::Chat
    } else if path.starts_with("/v1/messages") {
        Dialect::Messages
    } else if path.starts_with("/v1/models") {
        models::dialect_of(headers)
    } else {
        Dialect::Responses
    }
}

/// Says whether a request would have been an exchange with a backend.
fn is_exchange(request: &Request) -> bool {
    let paths = ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/responses/compact"];
    request.method() == Method::POST && paths.contains(&request.uri().path())
}

/// Completes an answer: no page of another origin may embed it or guess at what it is, and the request is under
/// way until its answer has ended.
fn finish(mut response: Response, under_way: Option<RequestUnderWay>) -> Response {
    let headers = response.headers_mut();
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    match under_way {
        Some(under_way) => response.map(|body| Body::new(AnswerBody { body, _under_way: under_way })),
        None => response,
    }
}

/// The body of an answer, with which its request ends.
struct AnswerBody {
    body: Body,
    _under_way: RequestUnderWay,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Has what nobody reads of a body read in the end.
///
/// A client that waits for `100 Continue` has not begun to send; with HTTP/2 a stream can be ended by itself.
fn drained_when_dropped(request: Request) -> Request {
    let waits = request.headers().contains_key(header::EXPECT);
    if waits || request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
        return request;
    }
    request.map(|body| Body::new(RequestBody { body: Some(body) }))
}

/// The body of a request that is read to its end, by whomever.
struct RequestBody {
    body: Option<Body>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(tokio::time::timeout(UNREAD_LASTS, drain(body))));
        }
    }
}

async fn drain(body: Body) {
    let mut pieces = body.into_data_stream();
    let mut read = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        read += piece.len();
        if read > UNREAD_BYTES_MAX {
            return;
        }
    }
}

/// Returns what a client is told when there is no connection left, as HTTP/1.
#[must_use]
pub fn no_connection_left() -> String {
    let message = "all connections are in use; try again in a moment";
    let failure = gateway_error(FailureKind::Overloaded, "throughline_busy", message);
    plain(&failure)
}

fn plain(failure: &Failure) -> String {
    let body = throughline_wire::encode_error(Dialect::Responses, failure);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_in_the_dialect_of_the_path() {
        let dialect = |path| dialect_of(path, &HeaderMap::new());
        assert_eq!(dialect("/v1/chat/completions"), Dialect::Chat);
        assert_eq!(dialect("/v1/messages/count_tokens"), Dialect::Messages);
        assert_eq!(dialect("/v1/responses"), Dialect::Responses);
        assert_eq!(dialect("/api/search"), Dialect::Responses);
    }
}
