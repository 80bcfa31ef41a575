//! Upkeep: what an operator does to a whole history. Stores are counted, checked, copied and thinned out.
//!
//! Both durable stores keep the same things in tables of their own. `rows.rs` names what they have in common, row by
//! row, without the numbers that a database gives out; so a history can be poured from one into the other, and two
//! are equal when their inventories are. What makes a history sound is decided in `checkup.rs` alone, whatever store
//! it lies in. Docs: docs/operations.md, docs/decisions/0020.

mod checkup;
mod copy;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throughline_core::ConversationId;
use tokio::sync::mpsc;

use crate::{Answer, History, Moment, StoreError};

pub(crate) use checkup::{Checker, SourcedBody};
pub use checkup::{Checkup, Finding, Remedy};
pub use copy::copy;
pub use rows::Inventory;
pub(crate) use rows::{Cell, Column, Row, TABLES, Table};

/// What an operator does to a whole history, beside what everybody does.
pub trait Upkeep: History {
    /// Counts what there is.
    fn stats(&self) -> Answer<'_, Stats>;

    /// Verifies everything against its digests: contents, the tree, chains, requests as sent, and pairs.
    fn check(&self, watch: Watch) -> Answer<'_, Checkup>;

    /// Writes a copy to a file that is not there yet, while the history is in use: an SQLite history, whatever
    /// this one is.
    fn back_up<'a>(&'a self, file: &'a Path, watch: Watch) -> Answer<'a, ()>;

    /// Builds the index of words anew from the entries, whatever state it is in.
    fn reindex(&self) -> Answer<'_, ()>;

    /// Gives space that was freed back to the file system. Writers wait meanwhile.
    fn shrink(&self) -> Answer<'_, ()>;

    /// Sends every row of one state of the history.
    fn pour(&self, into: Outflow) -> Answer<'_, ()>;

    /// Takes in every row of another history, reads back what was written, and keeps it if it is equal. Refuses
    /// to if there is anything here already; when that or anything else fails, nothing is kept.
    fn fill(&self, from: Inflow) -> Answer<'_, Inventory>;
}

/// Where rows are sent to.
#[derive(Debug)]
pub struct Outflow(pub(crate) mpsc::Sender<Page>);

/// Where rows come from.
#[derive(Debug)]
pub struct Inflow(pub(crate) mpsc::Receiver<Page>);

/// What flows from one history into another.
#[derive(Debug)]
pub(crate) enum Page {
    /// Some rows of the table of that number.
    Rows(usize, Vec<Row>),
    /// That was all. Without it, the source broke off.
    End,
}

/// Is told how far a piece of work has come.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being worked on.
    pub what: &'static str,
    /// How many rows are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// How much of each thing there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many conversations.
    pub conversations: u64,
    /// How many entries.
    pub entries: u64,
    /// How many exchanges.
    pub exchanges: u64,
    /// Records of entries and envelopes.
    pub records: Volume,
    /// Requests as they were sent.
    pub requests: Volume,
    /// Pieces of provider events.
    pub events: Volume,
    /// Final answers.
    pub answers: Volume,
    /// When the first conversation began.
    pub oldest: Option<Moment>,
    /// When something was last added.
    pub latest: Option<Moment>,
    /// How many bytes the database takes, indexes and free space included.
    pub disk: u64,
}

/// How many contents there are, and how large they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// How many.
    pub count: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many bytes they would take if they were not packed; of requests, what differs from others.
    pub unpacked: u64,
}

/// What to take out of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// Which conversations.
    pub which: Outworn,
    /// Whether only to say what would go.
    pub dry_run: bool,
}

/// Which conversations have had their day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outworn {
    /// These.
    These(Vec<ConversationId>),
    /// Those to which nothing was added since.
    Before(Moment),
    /// The oldest, until the contents of the rest take no more than so many bytes: see [`Stats::content`].
    Beyond(u64),
}

/// What was taken out, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The conversations.
    pub conversations: Vec<ConversationId>,
    /// How many entries they had.
    pub entries: u64,
    /// How many exchanges they took.
    pub exchanges: u64,
    /// How many contents went with them: those that nothing else uses. Not known of a dry run.
    pub contents: u64,
}

/// A conversation with what decides whether it goes.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub n: i64,
    pub id: ConversationId,
    pub bytes: u64,
}

/// From one write to the next that shows whether something can be written: whoever asks all the time is told what was
/// seen the last time.
pub(crate) const WRITE_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the files that a backup to `file` leaves behind if it is called off.
#[must_use]
pub fn unfinished_backup(file: &Path) -> [PathBuf; 3] {
    crate::sqlite::unfinished(file)
}

/// How many conversations are taken out in one transaction: others write between two of them.
pub(crate) const PRUNED_AT_ONCE: usize = 64;

impl Stats {
    /// Returns how many bytes the contents take: records, requests, events and answers.
    #[must_use]
    pub const fn content(&self) -> u64 {
        self.records.bytes + self.requests.bytes + self.events.bytes + self.answers.bytes
    }

    /// Returns how many rows a check tells of; requests are read twice.
    pub(crate) const fn rows_to_check(&self) -> u64 {
        self.conversations + self.exchanges + self.entries + self.records.count + 2 * self.requests.count
    }
}

/// Returns those of the candidates, the oldest first, that have to go for the rest to take no more than `keep`.
pub(crate) fn beyond(candidates: Vec<Candidate>, keep: u64) -> Vec<Candidate> {
    let mut left: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    candidates
        .into_iter()
        .take_while(|candidate| {
            let goes = left > keep;
            left -= candidate.bytes;
            goes
        })
        .collect()
}

/// Tells a watch of every so many rows.
pub(crate) struct Teller {
    watch: Watch,
    progress: Progress,
}

impl Teller {
    pub fn new(watch: Watch, what: &'static str, total: u64) -> Self {
        Self { watch, progress: Progress { what, done: 0, total } }
    }

    pub fn add(&mut self, rows: usize) {
        self.progress.done += rows as u64;
        // What is written meanwhile by others is not counted beforehand.
        self.progress.total = self.progress.total.max(self.progress.done);
        (self.watch)(self.progress);
    }
}

/// Says that a copy is not what it was made of.
pub(crate) fn unequal(table: &str) -> StoreError {
    StoreError::Damaged(format!("what was written of {table} is not what was read, so none of it was kept"))
}

/// Says that there is something where nothing should be.
pub(crate) fn not_empty() -> StoreError {
    StoreError::Unsupported("there is a history already; give the name of an empty one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        let candidates = |bytes: &[u64]| -> Vec<Candidate> {
            let candidate = |(n, bytes): (usize, &u64)| Candidate {
                n: n as i64,
                id: ConversationId::new(n.to_string()),
                bytes: *bytes,
            };
            bytes.iter().enumerate().map(candidate).collect()
        };
        assert_eq!(beyond(candidates(&[5, 5, 5]), 15).len(), 0);
        assert_eq!(beyond(candidates(&[5, 5, 5]), 14).len(), 1);
        assert_eq!(beyond(candidates(&[5, 5, 5]), 5).len(), 2);
        assert_eq!(beyond(candidates(&[5, 5, 5]), 0).len(), 3);
    }
}
