//! Three replicas over one PostgreSQL, agents that go from one to the other, and faults meanwhile: what the agents saw
//! completed is in the history, once.
//!
//! `just soak` runs it for minutes, with every fault (`benches/soak.rs`); the test in `soaked.rs` for seconds, with those
//! that disturb nobody else who uses the same server.

mod agents;
mod faults;
mod oracle;
mod replicas;

pub use faults::{Fault, own_schema};

use agents::Agents;
use faults::Faults;
use oracle::Verdict;
use replicas::Replicas;
use std::path::PathBuf;
use std::time::Duration;

/// How a soak is run.
pub struct Plan {
    /// How many agents talk at a time.
    pub agents: usize,
    /// After how many faults it is over.
    pub count: usize,
    /// How many answers come between two faults.
    pub answers: usize,
    /// If they do not come, the next fault comes after this long.
    pub pause: Duration,
    /// For how long the throughput of one and of three replicas is measured, without faults.
    pub calm: Duration,
    /// Which faults.
    pub faults: Vec<Fault>,
    /// The folder of the replicas.
    pub folder: PathBuf,
    /// Where to find the database, and how its connections are called.
    pub url: String,
    /// A folder on the disk of the database that may be filled up.
    pub disk: Option<PathBuf>,
}

/// What came of it.
pub struct Report {
    pub completed: usize,
    pub refused: usize,
    pub injected: Vec<(Fault, usize)>,
    /// Answers a second, of one replica and of three.
    pub throughput: Option<(f64, f64)>,
    pub verdict: Verdict,
}

/// Runs a soak.
pub fn soak(plan: &Plan) -> Report {
    let replicas = Replicas::start(&plan.folder, &plan.url);
    let agents = Agents::new(&replicas);
    let throughput = (!plan.calm.is_zero()).then(|| {
        let one = agents.rate_of(plan, 1);
        (one, agents.rate_of(plan, replicas::COUNT))
    });
    let mut faults = Faults::new(plan, &replicas);
    std::thread::scope(|scope| {
        let agents = &agents;
        (0..plan.agents).for_each(|number| drop(scope.spawn(move || agents.talk(number, replicas::COUNT))));
        for _ in 0..plan.count {
            agents.wait_for(plan.answers, plan.pause);
            faults.inject();
        }
        // After the last one, everything is back.
        agents.wait_for(plan.answers, plan.pause);
        agents.stop();
    });
    let seen = agents.seen();
    let verdict = oracle::judge(&plan.url, &seen);
    Report {
        completed: seen.len(),
        refused: agents.refused(),
        injected: faults.injected(),
        throughput,
        verdict,
    }
}
