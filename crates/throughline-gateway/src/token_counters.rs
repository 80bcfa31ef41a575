//! How the models of each backend count, and what their answers teach about it (R10).
//!
//! What was learned is kept in the history beside the verdicts about abilities, for each backend and family of
//! models, so that it survives a restart and `throughline backends` shows it. Here it is held at work: answers
//! come more often than they change anything, and only changes are written.

use crate::routing::Destination;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use throughline_core::Text;
use throughline_store::{Learned, Moment, Standing, Write};
use throughline_tokens::{Calibration, Counts, Gauge, Size, Vocabulary, family};

/// What the history calls the factor of a family of models.
const CAPABILITY: &str = "token_factor";

/// So many answers are written each; later ones when the factor has moved by more than a hundredth.
const ANSWERS_WRITTEN: u32 = 15;

/// How the models of each backend count.
#[derive(Debug, Default)]
pub struct TokenCounters {
    /// What was counted before.
    pub counts: Counts,
    /// By backend and family; what is not here is as the history has it.
    held: Mutex<BTreeMap<(Text, String), Held>>,
}

#[derive(Clone, Debug)]
struct Held {
    calibration: Calibration,
    /// The factor that the history has.
    written: u32,
}

impl TokenCounters {
    /// Makes the tables of all vocabularies. Takes tens of milliseconds: for a thread that may be blocked.
    pub fn load() {
        Vocabulary::ALL.into_iter().for_each(Vocabulary::load);
    }

    /// Returns what is held at work as the history would have it: with more answers than were worth a write.
    #[must_use]
    pub fn held(&self, at: Moment) -> Vec<Learned> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(key, held)| learned(key.clone(), held.written, &held.calibration, at)).collect()
    }

    /// Returns how the model of a destination counts.
    #[must_use]
    pub fn of(&self, standing: &Standing, destination: &Destination) -> Gauge {
        let gauge = Gauge::of_model(&destination.model);
        if !gauge.learns() {
            return gauge;
        }
        let key = (destination.backend.name.clone(), family(&destination.model));
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let calibration = held.map(|held| held.calibration).or_else(|| kept(standing, &key));
        gauge.calibrated(&calibration.unwrap_or_default())
    }

    /// Takes what a backend reported for a prompt. Returns what is to be written, if that changes anything.
    pub fn learn(
        &self,
        standing: &Standing,
        destination: &Destination,
        size: Size,
        reported: u64,
        at: Moment,
    ) -> Option<Write> {
        let gauge = Gauge::of_model(&destination.model);
        let key = (destination.backend.name.clone(), family(&destination.model));
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = all.entry(key.clone()).or_insert_with(|| {
            let calibration = kept(standing, &key).unwrap_or_default();
            Held { written: gauge.calibrated(&calibration).factor(), calibration }
        });
        if !gauge.teach(&mut held.calibration, size, reported) {
            return None;
        }
        let factor = gauge.calibrated(&held.calibration).factor();
        let moved = factor.abs_diff(held.written) * 100 > held.written;
        if held.calibration.answers() > ANSWERS_WRITTEN && !moved {
            return None;
        }
        held.written = factor;
        Some(Write::Learned(learned(key, factor, &held.calibration, at)))
    }
}

fn learned((backend, family): (Text, String), factor: u32, calibration: &Calibration, at: Moment) -> Learned {
    Learned {
        backend,
        model: family.into(),
        capability: Text::from_static(CAPABILITY),
        verdict: format!("{}.{:03}", factor / 1000, factor % 1000).into(),
        reason: calibration.to_string().into(),
        at,
        expires: None,
    }
}

/// Returns what the history has about a family.
fn kept(standing: &Standing, (backend, family): &(Text, String)) -> Option<Calibration> {
    let is_it = |learned: &&Learned| {
        learned.capability == CAPABILITY && learned.backend == *backend && *learned.model == **family
    };
    Calibration::parse(&standing.learned.iter().find(is_it)?.reason)
}
