//! A bell that rings when something was appended, for whoever shows the history while it grows.

use tokio::sync::watch;

use crate::StoreError;

/// Rings when something was appended since it was last heard. It says that there is something, not what.
#[derive(Clone, Debug)]
pub struct Changes(watch::Receiver<u64>);

impl Changes {
    pub(crate) fn of(rung: &watch::Sender<u64>) -> Self {
        Self(rung.subscribe())
    }

    /// Waits until something was appended; at once, if that was after the last time.
    ///
    /// # Errors
    /// When the history is closed.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        self.0.changed().await.map_err(|_| StoreError::Closed)
    }
}

/// Rings for everybody who listens.
pub(crate) fn ring(rung: &watch::Sender<u64>) {
    rung.send_modify(|rung| *rung += 1);
}
