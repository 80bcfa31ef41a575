//! `throughline mcp`: the history as an MCP server, by standard input and output or by HTTP.

use super::{history, serve};
use crate::args::Args;
use crate::exit::CommandError;
use crate::output;
use crate::signals;
use http::{HeaderMap, Method, StatusCode, Uri};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::FailureKind;
use throughline_gateway::config::{Config, StoreLocation};
use throughline_gateway::ingress::guard::{Head, admit};
use throughline_gateway::secret::AccessKeys;
use throughline_mcp::{Admission, HistoryServer, HistorySource, Refused, serve_http, serve_stdio};
use throughline_store::{History, Memory, StoreError};
use tokio::net::TcpListener;

/// The history, from when it is there: agents start this before anything was recorded.
#[derive(Debug)]
struct LateHistory {
    location: StoreLocation,
    opened: Mutex<Option<Arc<dyn History>>>,
}

/// Lets in whom the gateway would let in.
#[derive(Debug)]
struct AsTheGateway(AccessKeys);

/// Serves until the input ends, or until it is told to stop.
pub fn run(listen: Option<SocketAddr>, args: &Args) -> Result<(), CommandError> {
    let config = match listen {
        // Keys are needed only where somebody has to present one.
        Some(_) => history::configured_with_keys(args)?,
        None => history::configured(args)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CommandError::file("the runtime", source))?;
    let outcome = runtime.block_on(serve(config, listen, args));
    // Reading standard input cannot be interrupted.
    runtime.shutdown_background();
    outcome
}

async fn serve(config: Config, listen: Option<SocketAddr>, args: &Args) -> Result<(), CommandError> {
    let source = LateHistory { location: config.store.location.clone(), opened: Mutex::default() };
    let server = HistoryServer::new(Arc::new(source));
    // Nobody waits for it: until then, sizes are estimated.
    drop(tokio::task::spawn_blocking(HistoryServer::load_vocabulary));
    let stop = signals::stop();

    let Some(listen) = listen else {
        return tokio::select! {
            served = serve_stdio(server) => served.map_err(|error| CommandError::no(format!("MCP: {error}"))),
            () = stop => Ok(()),
        };
    };
    if config.access.is_empty() && !listen.ip().is_loopback() {
        return Err(CommandError::bad_input(format!(
            "{listen}: without keys, only this machine may ask the history"
        ))
        .hint(
            "listen on 127.0.0.1, or give keys: [auth] keys in the configuration, or THROUGHLINE_AUTH_KEYS",
        ));
    }
    let listener = TcpListener::bind(listen).await.map_err(|source| serve::not_bound(listen, source))?;
    let address = listener.local_addr().map_err(|source| CommandError::file(listen, source))?;
    if !args.quiet {
        output::print(&format!("the history is served on http://{address}/mcp\n"))?;
    }
    let admission = Arc::new(AsTheGateway(config.access));
    let served = serve_http(listener, server, admission, stop).await;
    served.map_err(|source| CommandError::file(address, source))
}

impl HistorySource for LateHistory {
    fn history(&self) -> Result<Arc<dyn History>, String> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(history) = &*opened {
            return Ok(Arc::clone(history));
        }
        match history::as_it_is(&self.location) {
            Ok(Some(history)) => {
                let history: Arc<dyn History> = history;
                *opened = Some(Arc::clone(&history));
                Ok(history)
            }
            // Nothing was recorded yet.
            Ok(None) => Ok(Arc::new(Memory::new())),
            Err(error @ StoreError::Older { .. }) => Err(format!("{error}; run `throughline store upgrade`")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Admission for AsTheGateway {
    fn admit(
        &self,
        peer: SocketAddr,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refused> {
        admit(&self.0, &Head { peer, method, uri, headers }).map_err(|denied| Refused {
            status: match denied.failure.kind {
                FailureKind::Authentication => StatusCode::UNAUTHORIZED,
                FailureKind::InvalidRequest => StatusCode::BAD_REQUEST,
                _ => StatusCode::FORBIDDEN,
            },
            message: denied.failure.message.to_string(),
        })
    }
}
