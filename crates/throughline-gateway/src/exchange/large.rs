//! Large requests: reading, placing and rendering one takes long enough to hold up whoever shares its thread.
//!
//! They are therefore carried out on a thread of their own, up to the beginning of their answer. What comes after
//! that is moved piece by piece, as with any other.

use super::Incoming;
use super::planning::on_a_thread;
use crate::failure::reject;
use crate::gateway::Gateway;
use axum::response::Response;
use std::future::Future;
use std::sync::Arc;
use throughline_core::{Failure, FailureKind};
use tokio_util::sync::CancellationToken;

/// Requests from this size on are carried out on a thread of their own.
const LARGE_BYTES: usize = 256 * 1024;

/// Answers a request, wherever that holds up nobody.
pub async fn answer(gateway: &Arc<Gateway>, incoming: Incoming) -> Response {
    let (gateway, dialect, bytes) = (Arc::clone(gateway), incoming.dialect, incoming.body.len());
    // On the heap: its state is large, and each future around it would hold, and move, a copy of all of it. Together they
    // took more than the stack of a thread has.
    let work = Box::pin(async move { super::answer(&gateway, incoming).await });
    let answered = unhindered(bytes, work).await;
    answered.unwrap_or_else(|failure| reject(dialect, &failure))
}

/// Carries out work on so many bytes where it holds up nobody; it ends when this is dropped, at the next point
/// where it waits.
///
/// # Errors
/// When it panicked.
pub async fn unhindered<T: Send + 'static>(
    bytes: usize,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    if bytes < LARGE_BYTES {
        return Ok(work.await);
    }
    let dropped = CancellationToken::new();
    let _guard = dropped.clone().drop_guard();
    let runtime = tokio::runtime::Handle::current();
    let done = on_a_thread(move || runtime.block_on(dropped.run_until_cancelled(work))).await?;
    done.ok_or_else(|| Failure::new(FailureKind::Backend, "nobody waits for this any more"))
}
