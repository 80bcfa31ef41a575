//! Who looks on while a soak runs: says every some seconds how far it has come, and ends one that no longer gets on.
//!
//! Whatever a soak waits for has a name and takes less than [`PATIENCE`]: what takes longer is a finding, and is told
//! rather than waited for.

use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longer than any agent waits for an answer, and than the database takes to recover.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is watched.
pub struct Watch {
    begun: Instant,
    state: Mutex<State>,
    over: Condvar,
}

struct State {
    /// What is waited for, and since when.
    waits_for: String,
    since: Instant,
    over: bool,
}

impl Watch {
    pub fn new() -> Self {
        let state = State { waits_for: "the replicas".to_owned(), since: Instant::now(), over: false };
        Self { begun: Instant::now(), state: Mutex::new(state), over: Condvar::new() }
    }

    /// Notes what is waited for from now on.
    pub fn waits_for(&self, what: impl Into<String>) {
        let mut state = self.state();
        (state.waits_for, state.since) = (what.into(), Instant::now());
    }

    /// Prints a line every so often until it is over; if it does not get on, ends it.
    #[expect(clippy::print_stdout, reason = "whoever waits for minutes is told how far it has come")]
    pub fn look_on(&self, every: Duration, counts: impl Fn() -> String) {
        loop {
            let waited = self.over.wait_timeout_while(self.state(), every, |state| !state.over);
            let state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.over {
                return;
            }
            println!("{:>4} s  {}; waits for {}", self.begun.elapsed().as_secs(), counts(), state.waits_for);
            if state.since.elapsed() > PATIENCE {
                println!("given up: {} took longer than {PATIENCE:?}", state.waits_for);
                // The replicas would go on without us.
                let _ = Command::new("pkill").args(["-KILL", "-P", &std::process::id().to_string()]).status();
                std::process::exit(1);
            }
        }
    }

    /// Ends the looking on.
    pub fn end(&self) {
        self.state().over = true;
        self.over.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
