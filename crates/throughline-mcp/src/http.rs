//! The transport by streamable HTTP.
//!
//! Each request is answered by itself, with JSON: nothing is kept between them, so that replicas and restarts make no
//! difference. Who is let in is decided by the caller, before a request is looked at.

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

use crate::server::HistoryServer;

/// The path that is served.
const PATH: &str = "/mcp";

/// Decides who is let in, by the head of a request.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Lets a request in, or says why not.
    ///
    /// # Errors
    /// When it may not come in.
    fn admit(&self, peer: SocketAddr, method: &Method, uri: &Uri, headers: &HeaderMap)
    -> Result<(), Refused>;
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status that it is answered with.
    pub status: StatusCode,
    /// What is said.
    pub message: String,
}

/// Serves at `/mcp`, until `stop` is ready.
///
/// # Errors
/// When the listener fails.
pub async fn serve_http(
    listener: TcpListener,
    server: HistoryServer,
    admission: Arc<dyn Admission>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    // Whose host may be asked for is the admission's to say.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let service: StreamableHttpService<HistoryServer, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
    let routes = Router::new().route_service(PATH, service).layer(from_fn_with_state(admission, admit));
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(stop).await
}

async fn admit(
    State(admission): State<Arc<dyn Admission>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    match admission.admit(peer, request.method(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => (refused.status, refused.message).into_response(),
    }
}
