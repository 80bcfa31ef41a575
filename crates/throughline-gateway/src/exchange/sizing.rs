//! The size of a prompt, counted beside the exchange and compared with what the backend reports.
//!
//! Counting runs on a thread of its own while the backend thinks: nobody waits for it but the opening of a
//! stream that states a size.

use super::prompting::Prompted;
use crate::gateway::Gateway;
use crate::routing::Destination;
use std::sync::Arc;
use throughline_core::{Dialect, Ending, Reply};
use throughline_store::{Moment, Write};
use throughline_tokens::{Gauge, Method, Size};
use tokio::task::JoinHandle;

/// A prompt's size, which may still be in the making.
#[derive(Debug)]
pub struct Sizing {
    gateway: Arc<Gateway>,
    gauge: Gauge,
    destination: Destination,
    /// Whether the backend counts what we count, by a vocabulary, so that its report teaches something.
    teaches: bool,
    count: Progress,
}

#[derive(Debug)]
enum Progress {
    Counting(JoinHandle<Size>),
    Counted(Size),
    /// The thread that counted broke down.
    Lost,
}

impl Sizing {
    /// Begins to count a prompt, if anybody will want to know; `client` is the dialect of the client.
    #[must_use]
    pub fn begin(gateway: &Arc<Gateway>, prompted: &mut Prompted, client: Dialect) -> Option<Self> {
        let destination = prompted.destination.clone();
        let gauge = gateway.token_counters.of(&gateway.standing(), &destination);
        let states_size = !prompted.forwards && client == Dialect::Messages;
        // What was left out is not counted, and a part teaches nothing about the whole.
        if prompted.abridged || (!gauge.learns() && !states_size) {
            return None;
        }
        let countable = std::mem::take(&mut prompted.countable);
        let shared = Arc::clone(gateway);
        // A backend that goes on from what it keeps also counts what it was not sent now.
        let teaches = gauge.method() == Method::Estimate && !prompted.continues;
        let count =
            tokio::task::spawn_blocking(move || countable.size(&gauge, &shared.token_counters.counts));
        let (gateway, count) = (Arc::clone(gateway), Progress::Counting(count));
        Some(Self { gateway, gauge, destination, teaches, count })
    }

    /// Returns how many tokens the prompt takes.
    pub async fn tokens(&mut self) -> Option<u64> {
        let size = self.size().await?;
        Some(self.gauge.tokens(size))
    }

    /// Returns what is to be written about what a reply has taught.
    pub async fn lesson(&mut self, reply: &Reply, at: Moment) -> Option<Write> {
        // An answer that broke off may have been reported in part.
        let usage = reply.usage.filter(|_| self.teaches && matches!(reply.ending, Ending::Stopped(_)))?;
        let size = self.size().await?;
        let standing = self.gateway.standing();
        self.gateway.token_counters.learn(&standing, &self.destination, size, usage.input, at)
    }

    async fn size(&mut self) -> Option<Size> {
        if let Progress::Counting(count) = &mut self.count {
            self.count = count.await.map_or(Progress::Lost, Progress::Counted);
        }
        match self.count {
            Progress::Counted(size) => Some(size),
            Progress::Counting(_) | Progress::Lost => None,
        }
    }
}
