//! The durable history: what was said, called and returned, what backends were sent, and what was learned.
//!
//! [`History`] is the whole interface: one way to write, eight ways to read, one to take out, a look whether it is in order, and a bell,
//! in plain types; [`Upkeep`] is what an operator does beside. The gateway holds it as `Arc<dyn History>`; [`Memory`], [`Sqlite`] and [`Postgres`] stand behind it and pass one
//! suite. What an entry looks like when it is stored is decided in `record/` alone, and core knows nothing of it.
//!
//! Nothing here reads a clock or mints an id: moments and ids are handed in, and an entry's id follows from
//! what it says and what it stands behind.

mod batch;
mod bodies;
mod chain;
mod changes;
mod check;
mod checksum;
mod compaction;
mod digest;
mod error;
mod events;
mod kept;
mod meaning;
mod memory;
mod pack;
mod postgres;
mod prefix;
mod prepared;
mod query;
mod record;
mod sieve;
mod sqlite;
mod tags;
mod time;
mod upkeep;
mod words;

pub use batch::{Batch, Durability, Extension, NewConversation, Receipt, Write};
pub use chain::{Chain, chain, chains};
pub use changes::Changes;
pub use error::StoreError;
pub use kept::{
    Attempt, CompactionStep, DocumentKind, Exchange, ExchangeId, Heading, Hit, Kept, KeptKind, Learned,
    Moment, PARENT, PROJECT, PlanSizes, ProviderEvent, Recording, ResponseMark, Scope, Setting, Standing,
    StepId, title_of,
};
pub use memory::Memory;
pub use postgres::{Condition, Postgres, PostgresOptions};
pub use query::{
    ConversationFilter, Conversations, Cursor, Entries, Exchanges, Field, Locate, Located, Page, Paging,
    Search, Which, short_id,
};

pub use sqlite::{Sqlite, SqliteOptions};
pub use time::{age, iso, moment};
pub use upkeep::{
    Checkup, Finding, Inflow, Inventory, Outflow, Outworn, Progress, Prune, Pruned, Remedy, Stats, Upkeep,
    Volume, Watch, copy, unfinished_backup,
};

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use throughline_core::ConversationId;

/// What a method of [`History`] returns: a future that can be sent to another thread.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The durable history.
///
/// Promises about writing:
/// - A batch is written whole or not at all.
/// - When `append` returns, the batch is there for every later read, of this process or another. A
///   [`Durability::Durable`] batch has then also been flushed to the disk and survives a power failure; a
///   [`Durability::Relaxed`] one survives the end of the process, and a later durable batch carries it along.
/// - When `append` returns an error, nothing of the batch is there.
/// - Two batches of which one was awaited before the other was begun take effect in that order. Batches
///   under way at the same time take effect in some order, and both succeed: an entry that is already there
///   is not an error, and two continuations of one entry are two branches.
/// - Nothing is changed or taken out, with four exceptions, each a statement of its own: an exchange is
///   brought up to date as it goes on, the body of a response is forgotten when the client asks for that,
///   verdicts and settings are replaced by later ones, and whole conversations are taken out by `prune`.
///
/// Promises about reading: a read sees whole batches only, entries come in the order of their branch, and
/// pages come latest first. Asking for what is not there is no error.
pub trait History: fmt::Debug + Send + Sync {
    /// Writes a batch.
    fn append(&self, batch: Batch) -> Answer<'_, Receipt>;

    /// Finds where in the history a request continues.
    fn locate(&self, locate: Locate) -> Answer<'_, Option<Located>>;

    /// Lists conversations, the latest first.
    fn conversations(&self, which: Conversations) -> Answer<'_, Page<Heading>>;

    /// Reads entries: a branch, a whole conversation, or a single one.
    fn entries(&self, which: Entries) -> Answer<'_, Vec<Kept>>;

    /// Lists exchanges, the latest first.
    fn exchanges(&self, which: Exchanges) -> Answer<'_, Page<Exchange>>;

    /// Reads what passed in an exchange: requests as they were sent, provider events, the final answer.
    fn recording(&self, exchange: ExchangeId, which: Which) -> Answer<'_, Recording>;

    /// Reads what was decided about the history of a conversation, step by step, in the order in which it was appended.
    fn compaction(&self, conversation: ConversationId) -> Answer<'_, Vec<CompactionStep>>;

    /// Searches tool history and talk, the latest first.
    fn search(&self, search: Search) -> Answer<'_, Page<Hit>>;

    /// Reads what holds until further notice: learned verdicts and settings made at run time.
    fn standing(&self) -> Answer<'_, Standing>;

    /// Takes conversations out, with all their contents that no other one uses, or says which would go.
    fn prune(&self, prune: Prune) -> Answer<'_, Pruned>;

    /// Says whether a batch could be written now: whether the database is there, is ours, is not damaged where every
    /// batch is written, has a schema that this program knows, and takes a write. It is written to at most once a second,
    /// into a row that is there for nothing else.
    fn ready(&self) -> Answer<'_, ()>;

    /// Returns a bell that rings from now on when something was appended: by this process, and where several
    /// share a PostgreSQL by any of them.
    fn changes(&self) -> Changes;
}
