//! The server: accepts connections until it is told to stop, then lets exchanges under way finish.

use crate::gateway::Gateway;
use crate::ingress;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

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
    let drain = Arc::clone(&gateway.drain);
    let routes = ingress::routes(gateway).into_make_service_with_connect_info::<SocketAddr>();
    let stopping = {
        let drain = Arc::clone(&drain);
        async move {
            stop.await;
            drain.stop();
        }
    };
    axum::serve(listener, routes).with_graceful_shutdown(stopping).await?;
    drain.drained().await;
    Ok(())
}
