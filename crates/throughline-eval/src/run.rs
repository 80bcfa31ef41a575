//! Whole files measured, on all cores, with a line that says how far it is.

use crate::atoms::Facts;
use crate::handover::{Handed, handover};
use crate::policy::{self, Scope};
use crate::rolling::{Rolled, rolling};
use crate::scene::Scene;
use crate::trajectory::{Trajectory, TrajectoryError};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is to be measured.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The budgets, in tokens of calls and results.
    pub budgets: Vec<u64>,
    /// What the budgets are for, where every step is measured.
    pub scope: Scope,
    /// What counts as a fact.
    pub facts: Facts,
    /// Whether the model's words need facts as well as its arguments.
    pub with_words: bool,
    /// Whether every step is measured.
    pub rolling: bool,
    /// Whether handovers are.
    pub handover: bool,
}

/// What came of a file.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many runs.
    pub runs: usize,
    /// By policy, if it was measured.
    pub rolling: Vec<(String, Rolled)>,
    /// By policy, if it was measured.
    pub handover: Vec<(String, Handed)>,
}

/// A line that is not a run.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct LineError {
    line: usize,
    source: TrajectoryError,
}

/// Measures the runs of a file; `progress` is told how many are done.
///
/// # Errors
/// When a line is not a run.
pub fn run(
    lines: &[&str],
    options: &Options,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Outcome, LineError> {
    let next = AtomicUsize::new(0);
    let sum = Mutex::new((options.outcome(lines.len()), None::<LineError>));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(line) = lines.get(at) else { return };
            let measured = options.measure(line);
            let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
            match measured {
                Ok((rolled, handed)) => sum.0.merge(&rolled, &handed),
                Err(source) => sum.1 = Some(LineError { line: at + 1, source }),
            }
            progress(at + 1);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let (outcome, error) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(outcome), Err)
}

impl Options {
    fn outcome(&self, runs: usize) -> Outcome {
        let names =
            |once| policy::all(&self.budgets, Scope::default(), once).into_iter().map(|(name, _)| name);
        let rolling = names(false).filter(|_| self.rolling).map(|name| (name, Rolled::default())).collect();
        let handover = names(true).filter(|_| self.handover).map(|name| (name, Handed::default())).collect();
        Outcome { runs, rolling, handover }
    }

    fn measure(&self, line: &str) -> Result<(Vec<Rolled>, Vec<Handed>), TrajectoryError> {
        let scene = Scene::new(Trajectory::parse(line)?);
        let policies = |scope, once| policy::all(&self.budgets, scope, once);
        let rolled = || rolling(&scene, &policies(self.scope, false), self.facts, self.with_words);
        let handed = || handover(&scene, &policies(Scope::Tools, true), self.facts, self.with_words);
        let rolled = if self.rolling { rolled() } else { Vec::new() };
        let handed = if self.handover { handed() } else { Vec::new() };
        Ok((rolled, handed))
    }
}

impl Outcome {
    /// Adds what came of another file, measured in the same way.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        let of = |all: &[(String, Rolled)]| all.iter().map(|(_, rolled)| rolled.clone()).collect::<Vec<_>>();
        let handed: Vec<Handed> = other.handover.iter().map(|(_, handed)| handed.clone()).collect();
        self.merge(&of(&other.rolling), &handed);
    }

    fn merge(&mut self, rolled: &[Rolled], handed: &[Handed]) {
        self.rolling.iter_mut().zip(rolled).for_each(|((_, sum), rolled)| sum.merge(rolled));
        self.handover.iter_mut().zip(handed).for_each(|((_, sum), handed)| sum.merge(handed));
    }
}
