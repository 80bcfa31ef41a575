//! Being stopped: who has to know, and who is waited for.
//!
//! The server itself waits for requests under way. What it does not see are connections that have become
//! something else (WebSockets) and answers that nobody waits for; they hold on here.

use std::sync::Arc;
use tokio::sync::watch;

/// What a gateway waits for before it stops.
#[derive(Debug, Default)]
pub struct Drain {
    stopping: watch::Sender<bool>,
    held: watch::Sender<usize>,
}

/// Something that is waited for as long as this is held.
#[derive(Debug)]
pub struct Hold(Arc<Drain>);

impl Drain {
    /// Says that nothing new is to be begun.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until nothing new is to be begun.
    pub async fn stopping(&self) {
        let mut stopping = self.stopping.subscribe();
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Has the gateway wait for something.
    #[must_use]
    pub fn hold(self: &Arc<Self>) -> Hold {
        self.held.send_modify(|held| *held += 1);
        Hold(Arc::clone(self))
    }

    /// Waits until nobody holds on any more.
    pub async fn drained(&self) {
        let mut held = self.held.subscribe();
        let _ = held.wait_for(|held| *held == 0).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held -= 1);
    }
}
