//! The running server: it listens, accepts, and can be stopped at once.
//!
//! Connections are children of the accepting task, so that stopping it breaks them all, as a backend that
//! dies would.

use crate::options::SimOptions;
use crate::recorder::{Recorded, Recorder};
use crate::routes::router;
use crate::script::Act;
use crate::seal::Sealer;
use crate::stored::Stored;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A running simulated backend; dropping it stops it.
#[derive(Debug)]
pub struct Sim {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: SimOptions,
    pub(crate) sealer: Sealer,
    pub(crate) recorder: Arc<Recorder>,
    stored: Mutex<Stored>,
    turns: AtomicUsize,
}

impl Sim {
    /// Starts a simulated backend.
    ///
    /// # Errors
    /// When it cannot listen at the address.
    pub async fn start(options: SimOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            sealer: Sealer::new(&options.seed),
            options,
            recorder: Arc::default(),
            stored: Mutex::default(),
            turns: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, router(shared.clone())));
        Ok(Self { address, shared, accepting })
    }

    /// Returns where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what clients take as base URL, up to and including the version.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns what it was sent, in the order of arrival.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.recorder.all()
    }

    /// Stops it; whatever is under way breaks off.
    pub async fn stop(mut self) {
        self.accepting.abort();
        // It was told to end, so how it ended says nothing.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    /// Returns the responses that are kept.
    pub(crate) fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is done about the next request.
    pub(crate) fn next_act(&self, prompt: &throughline_core::Ask) -> Act {
        match &self.options.script {
            Some(script) => script.act(self.turns.fetch_add(1, Ordering::Relaxed), prompt),
            None => Act::thinking(prompt),
        }
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, router.clone()));
            }
            // Too many open files, most likely: those under way must end first.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, router: Router) {
    // Events are small and must not wait for each other.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    // A connection that ends badly, some by script, is no concern of the others.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
