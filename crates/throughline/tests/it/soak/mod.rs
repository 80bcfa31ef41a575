//! Three replicas over one PostgreSQL, agents that go from one to the other, and faults meanwhile: what the agents saw
//! completed is in the history, once.
//!
//! `just soak` runs it for minutes, with every fault (`benches/soak.rs`); the test in `soaked.rs` for seconds, with those
//! that disturb nobody else who uses the same server.

mod agents;
mod faults;
mod oracle;
mod replicas;
mod watch;

pub use faults::{Fault, own_schema};

use agents::Agents;
use faults::Faults;
use oracle::Verdict;
use replicas::Replicas;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use watch::Watch;

/// How often the throughput is measured.
const ROUNDS: u32 = 5;

/// How a soak is run.
pub struct Plan {
    /// How many agents talk at a time.
    pub agents: usize,
    /// After how many faults it is over.
    pub count: usize,
    /// After how long it is over, if it has not had so many by then.
    pub time: Duration,
    /// How many answers come between two faults.
    pub answers: usize,
    /// If they do not come, the next fault comes after this long.
    pub pause: Duration,
    /// For how long the throughput of one and of three replicas is measured, several times, without faults.
    pub calm: Duration,
    /// How often it says how far it has come; never, if it is zero.
    pub every: Duration,
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
    /// The longest that no answer came after a fault was over.
    pub silence: Duration,
    /// Answers a second, of one replica and of three.
    pub throughput: Option<(f64, f64)>,
    pub verdict: Verdict,
}

/// Runs a soak.
pub fn soak(plan: &Plan) -> Report {
    if plan.disk.is_some() {
        faults::make_room(&plan.url);
    }
    let watch = Watch::new();
    let replicas = Replicas::start(plan);
    let agents = Agents::new(&replicas);
    let faults = Faults::new(plan, &replicas);
    std::thread::scope(|scope| {
        let (watch, agents, faults) = (&watch, &agents, &faults);
        if !plan.every.is_zero() {
            scope.spawn(move || watch.look_on(plan.every, || format!("{agents}; {faults}")));
        }
        let report = run(plan, agents, faults, watch);
        watch.end();
        report
    })
}

fn run(plan: &Plan, agents: &Agents<'_>, faults: &Faults<'_>, watch: &Watch) -> Report {
    let throughput = (!plan.calm.is_zero()).then(|| {
        watch.waits_for("the throughput of one replica and of all, in turn");
        // Whatever else the machine does falls on both.
        let rates = (0..ROUNDS).map(|_| (agents.rate_of(plan, 1), agents.rate_of(plan, replicas::COUNT)));
        let sum = rates.fold((0.0, 0.0), |sum, rates| (sum.0 + rates.0, sum.1 + rates.1));
        (sum.0 / f64::from(ROUNDS), sum.1 / f64::from(ROUNDS))
    });
    let silence = disturb(plan, agents, faults, watch);
    let seen = agents.seen();
    let verdict = oracle::judge(&plan.url, &seen, watch);
    Report {
        completed: seen.len(),
        refused: agents.refused(),
        injected: faults.injected(),
        silence,
        throughput,
        verdict,
    }
}

/// Has agents talk while things go wrong, and returns the longest that no answer came after a fault was over.
fn disturb(plan: &Plan, agents: &Agents<'_>, faults: &Faults<'_>, watch: &Watch) -> Duration {
    let (begun, mut silence) = (Instant::now(), Duration::ZERO);
    std::thread::scope(|scope| {
        (0..plan.agents).for_each(|number| drop(scope.spawn(move || agents.talk(number, replicas::COUNT))));
        for _ in 0..plan.count {
            if begun.elapsed() > plan.time {
                break;
            }
            watch.waits_for("answers before the next fault");
            agents.wait_for(plan.answers, plan.pause);
            let fault = faults.next();
            watch.waits_for(format!("{fault:?} to be over"));
            faults.inject(fault);
            watch.waits_for(format!("an answer after {fault:?}"));
            let over = Instant::now();
            agents.wait_for(1, Duration::MAX);
            silence = silence.max(over.elapsed());
        }
        watch.waits_for("agents to end what they are at");
        agents.stop();
    });
    silence
}
