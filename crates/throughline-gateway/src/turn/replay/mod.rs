//! Replay: a turn driven again from its record, offline and through the same code, and compared (R30).
//!
//! The history before the turn is copied into one in memory. There the turn is driven by the same machine and the same
//! engine, with the settings that it had: backends answer with their recorded events, tools return what they returned.
//! Then every request is compared byte by byte, and every entry, ending and note that followed.

mod compare;
mod tape;
mod verdict;

pub use compare::{Bodies, Difference, Place, excerpts};
pub use tape::{RunNotes, Tape, artifacts_of, find, run_notes};
pub use verdict::write_replayed;

use super::hands::{Done, Hands};
use super::{Names, Nobody, TurnError, drive, settings};
use crate::config::{Config, ConfigErrors};
use crate::egress::Reel;
use crate::gateway::{BuildError, Gateway, mint};
use compare::Driven;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_core::{Call, Conclusion, Ending, Outcome, Text};
use throughline_store::{History, Memory, StoreError};
use tokio_util::sync::CancellationToken;

/// What came of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// How many requests were compared.
    pub requests: usize,
    /// How many events of providers went through.
    pub events: usize,
    /// How many calls.
    pub calls: usize,
    /// Whether the turn came to an end, and was not cut off by the end of the program.
    pub is_finished: bool,
    /// What differs, in the order of the turn.
    pub differences: Vec<Difference>,
}

/// Why a turn cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// There is no such turn.
    #[error("no run is called `{0}`; `throughline run` prints the id of each")]
    NoSuchTurn(String),
    /// The record of it is not whole.
    #[error("the record of {turn} cannot be replayed: {problem}")]
    Unreadable {
        /// Which turn.
        turn: Text,
        /// What is missing or wrong.
        problem: String,
    },
    /// The recorded settings mean nothing to this version.
    #[error("the recorded settings cannot be read: {0}")]
    Settings(ConfigErrors),
    /// A history could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The gateway could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The turn could not go on.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

/// Drives a recorded turn again and compares; with `against`, under other settings, where nothing counts but what
/// would be sent, and to whom. A backend that speaks another dialect then is played the recorded answers in it.
///
/// # Errors
/// When the record cannot be replayed at all.
pub async fn replay(
    history: &dyn History,
    tape: &Tape,
    against: Option<Config>,
) -> Result<Replayed, ReplayError> {
    let is_other = against.is_some();
    let config = match against {
        Some(config) => config,
        None => settings::read(&tape.settings).map_err(ReplayError::Settings)?,
    };
    let copy: Arc<dyn History> = Arc::new(Memory::new());
    tape.copy_past(history, &*copy).await?;
    let cancel = CancellationToken::new();
    let reel = Arc::new(Reel::default());
    tape.load(&reel, &cancel);
    let compose = config.compose.clone();
    let gateway = Arc::new(Gateway::replaying(config, Arc::clone(&copy), &reel).await?);
    let task = tape.task(compose);
    let hands = Recorded { done: Mutex::new(tape.done.clone().into()), strayed: Mutex::default() };
    let ids = tape.exchanges.iter().map(|(exchange, _)| exchange.id.to_string()).collect();
    let mut names = Known { ids, reel };
    let finished = drive(&gateway, &task, &hands, &mut names, &mut Nobody, &cancel).await?;
    let failure = match finished.conclusion {
        Conclusion::Answer(Ending::Failed(failure)) => Some(failure.message),
        _ => None,
    };
    let mut differences = compare::turns(tape, &Driven { copy: &*copy, is_other, failure }).await?;
    if !is_other {
        differences.extend(hands.strayed.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    differences.sort_by_key(Difference::order);
    Ok(Replayed {
        requests: tape.exchanges.iter().map(|(_, recording)| recording.sent.len()).sum(),
        events: tape.provider_events(),
        calls: tape.done.len(),
        is_finished: tape.ended.is_some(),
        differences,
    })
}

/// The exchanges of the record, one after another.
struct Known {
    ids: VecDeque<String>,
    reel: Arc<Reel>,
}

impl Names for Known {
    fn next(&mut self) -> String {
        let id = self.ids.pop_front().unwrap_or_else(mint);
        self.reel.turn_to(&id);
        id
    }
}

/// Hands that do nothing and return what was returned.
struct Recorded {
    done: Mutex<VecDeque<(Text, Done)>>,
    /// Calls that are not those of the record.
    strayed: Mutex<Vec<Difference>>,
}

impl Hands for Recorded {
    fn run<'a>(
        &'a self,
        call: &'a Call,
        cancel: &'a CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Done> + Send + 'a>> {
        Box::pin(async move {
            let next = self.done.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((id, done)) = next else {
                // The program ended here, and nobody knows what the tool did.
                cancel.cancel();
                return Done::told(Outcome::Unknown, "{}");
            };
            if id != call.id {
                let difference = Difference::call(&id, &call.id);
                self.strayed.lock().unwrap_or_else(PoisonError::into_inner).push(difference);
            }
            done
        })
    }
}
