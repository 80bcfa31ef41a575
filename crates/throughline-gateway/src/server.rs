//! The server: accepts connections until it is told to stop, then lets exchanges under way finish.
//!
//! A client that has not shown who it is gets little of everything: time for a head, time in which it may be idle,
//! a place that another one may take. What its requests may do is decided in [`crate::ingress`].

use crate::config::Limits;
use crate::connections::{Full, ObservedIo, OpenConnection, Overdue, Patience};
use crate::gateway::Gateway;
use crate::ingress;
use crate::telemetry::{Refusal, Telemetry};
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::MissedTickBehavior;

/// The most requests that one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 128;

/// How much of an answer waits in memory for each HTTP/2 stream whose client does not read.
const STREAM_BUFFER_BYTES: usize = 64 * 1024;

/// The least that HTTP/1 is read with.
const BUFFER_BYTES_MIN: usize = 16 * 1024;

/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_LASTS: Duration = Duration::from_secs(30);

/// How long to wait when no connection can be accepted, because the process has too many files open.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// How many clients at a time are told that there is no connection for them, and for how long; more are just closed.
const TURNED_AWAY_MAX: usize = 64;
const TURNING_AWAY_LASTS: Duration = Duration::from_secs(1);

/// How often a connection is looked at.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(20);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// Serves a gateway on `listener` until `stop` is done, and then until nobody waits for an answer any more and
/// those that are generated in the background are there.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = ingress::routes(Arc::clone(&gateway));
    let (stopping, _) = watch::channel(false);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut stop = pin!(stop);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut stop => break,
        };
        let limit = gateway.setup().config.limits.connections as usize;
        match gateway.connections.open(peer.ip(), limit) {
            Ok(open) => {
                let connection = Accepted { gateway: Arc::clone(&gateway), open: Arc::new(open), peer };
                tokio::spawn(connection.serve(socket, routes.clone(), stopping.subscribe()));
            }
            Err(Full) => {
                gateway.telemetry.refused(Refusal::Connections);
                if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                    tokio::spawn(turn_away(socket, place));
                }
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    gateway.drain.stop();
    // Each connection has a receiver until it is closed.
    stopping.closed().await;
    gateway.drain.drained().await;
    Ok(())
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                // Without it the kernel holds a small write back until the one before is acknowledged: the first
                // words of an answer would be 40 ms late.
                if let Err(error) = socket.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY was not set");
                }
                return (socket, peer);
            }
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
}

/// Says whether a connection was gone before it was accepted.
fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Tells a client that all connections are at work. What it would ask, and in which dialect, is not known yet.
///
/// What it has sent is read for a moment: closed right away, the connection would be reset, and the client not see this.
async fn turn_away(mut socket: TcpStream, _place: OwnedSemaphorePermit) {
    let telling = async {
        socket.write_all(ingress::no_connection_left().as_bytes()).await?;
        socket.shutdown().await?;
        let mut unread = [0; 4096];
        while socket.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // A client that is gone already misses nothing.
    let _ = tokio::time::timeout(TURNING_AWAY_LASTS, telling).await;
}

/// A connection that was accepted.
struct Accepted {
    gateway: Arc<Gateway>,
    open: Arc<OpenConnection>,
    peer: SocketAddr,
}

impl Accepted {
    async fn serve(self, socket: TcpStream, routes: Router, mut stopping: watch::Receiver<bool>) {
        let Self { gateway, open, peer } = self;
        let limits = gateway.setup().config.limits;
        let connection = Arc::clone(open.connection());
        let io = TokioIo::new(ObservedIo::new(socket, Arc::clone(&connection)));
        let routes = TowerToHyperService::new(routes);
        let shared = Arc::clone(&open);
        let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(Arc::clone(&shared));
            routes.call(request)
        });
        let builder = builder(&limits);
        let mut served = pin!(builder.serve_connection_with_upgrades(io, service));
        let patience = patience(&limits);
        let every = patience.head.min(patience.idle).min(patience.write) / 4;
        let mut looks = tokio::time::interval(every.clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_stopping = false;
        loop {
            tokio::select! {
                // What the connection can do now it does before it is judged: on a busy machine both may be late.
                biased;
                ended = served.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, error, "a connection ended badly");
                    }
                    break;
                }
                () = open.evicted() => {
                    gateway.telemetry.refused(Refusal::Evicted);
                    break;
                }
                _ = stopping.wait_for(|stopping| *stopping), if !is_stopping => {
                    is_stopping = true;
                    served.as_mut().graceful_shutdown();
                }
                _ = looks.tick() => if let Some(overdue) = connection.overdue(Instant::now(), &patience) {
                    note_overdue(&gateway.telemetry, overdue, peer);
                    break;
                },
            }
        }
    }
}

fn note_overdue(telemetry: &Telemetry, overdue: Overdue, peer: SocketAddr) {
    match overdue {
        // Nothing was refused: the client can open another one.
        Overdue::Idle => return,
        Overdue::Head => telemetry.refused(Refusal::HeaderTimeout),
        Overdue::Write => telemetry.refused(Refusal::WriteTimeout),
    }
    tracing::info!(%peer, ?overdue, "a connection was closed: the client took too long");
}

const fn patience(limits: &Limits) -> Patience {
    Patience { head: limits.header_timeout, idle: limits.idle_timeout, write: limits.write_timeout }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // Heads that are a little too large are still read, so that their sender can be told in its dialect.
    let buffer = limits.header_bytes.saturating_mul(2).max(BUFFER_BYTES_MIN);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(buffer);
    builder
        .http2()
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(buffer).unwrap_or(u32::MAX))
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_LASTS);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_accepted_socket_holds_small_writes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = accept(&listener).await;
        assert!(socket.nodelay().unwrap());
    }
}
