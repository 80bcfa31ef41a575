//! Copies a history into an empty one, of whatever store.
//!
//! Rows go through a short queue, so that one side reads while the other writes and neither gets far ahead. What was
//! written is read back before it is kept, and the source is looked at once more: who writes to it meanwhile should
//! know that this is not in the copy.

use tokio::sync::mpsc;

use super::{Inflow, Inventory, Outflow, Page, Teller, Upkeep, Watch};
use crate::StoreError;

/// How many pages may be on their way.
const PAGES_AHEAD: usize = 8;

/// Copies `from` into `to`, which must be empty, and returns what both have now.
///
/// # Errors
/// When one of them cannot be read or written, `to` is not empty, or what was written is not what was read; nothing
/// is kept then, and the same can be begun again.
pub async fn copy(from: &dyn Upkeep, to: &dyn Upkeep, watch: Watch) -> Result<Inventory, StoreError> {
    let total = total(from).await?;
    let (sender, mut between) = mpsc::channel::<Page>(PAGES_AHEAD);
    let (forward, receiver) = mpsc::channel(PAGES_AHEAD);
    let mut teller = Teller::new(watch, "copied", total);
    let tell = async {
        while let Some(page) = between.recv().await {
            if let Page::Rows(_, rows) = &page {
                teller.add(rows.len());
            }
            if forward.send(page).await.is_err() {
                break;
            }
        }
        drop(forward);
        // Whoever still sends is told that nobody listens.
        drop(between);
    };
    let (poured, filled, ()) = tokio::join!(from.pour(Outflow(sender)), to.fill(Inflow(receiver)), tell);
    // Each fails when the other does; what it says of itself comes first.
    match (poured, filled) {
        (Err(error), Err(StoreError::Closed)) | (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
        (Ok(()), Ok(filled)) => Ok(filled),
    }
}

/// Returns how many rows there are, to within what is not worth counting beforehand.
async fn total(from: &dyn Upkeep) -> Result<u64, StoreError> {
    let stats = from.stats().await?;
    let per_exchange = 3;
    Ok(stats.conversations
        + stats.entries
        + stats.exchanges * per_exchange
        + stats.records.count
        + stats.requests.count
        + stats.events.count
        + stats.answers.count)
}
