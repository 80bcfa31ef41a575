//! A sign of life on a terminal while something takes long.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use throughline_tools::visible_line;

/// Turns on standard error, if that is a terminal.
pub struct Spinner {
    state: Option<Arc<Mutex<State>>>,
}

struct State {
    /// What takes long, and since when.
    busy: Option<(String, Instant)>,
    is_drawn: bool,
}

const TICK: Duration = Duration::from_millis(100);
/// What is over sooner is not worth a sign.
const PATIENCE: Duration = Duration::from_millis(500);
const SIGNS: [char; 4] = ['|', '/', '-', '\\'];

impl Spinner {
    /// Returns a spinner that says nothing yet.
    pub fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { state: None };
        }
        let state = Arc::new(Mutex::new(State { busy: None, is_drawn: false }));
        let weak = Arc::downgrade(&state);
        std::thread::spawn(move || turn(&weak));
        Self { state: Some(state) }
    }

    /// Returns a spinner that says what is waited for, until it is dropped; one that says nothing if it is not wanted.
    pub fn of(label: &str, wanted: bool) -> Self {
        let spinner = if wanted { Self::new() } else { Self { state: None } };
        spinner.busy(label);
        spinner
    }

    /// Says what is waited for from now on.
    pub fn busy(&self, label: &str) {
        // The words are the model's, and must not take the terminal over.
        let label = visible_line(label);
        self.with(|state| state.busy = Some((label, Instant::now())));
    }

    /// Makes room on the terminal; nothing is waited for any more.
    pub fn clear(&self) {
        self.with(|state| {
            state.busy = None;
            state.wipe();
        });
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = &self.state {
            change(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.clear();
    }
}

impl State {
    fn draw(&mut self, tick: usize) {
        let Some((label, since)) = &self.busy else { return };
        let took = since.elapsed();
        if took < PATIENCE {
            return;
        }
        let sign = SIGNS[tick % SIGNS.len()];
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[2K{sign} {label} {} s", took.as_secs()).and_then(|()| stderr.flush());
        self.is_drawn = true;
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it is drawn by the clock, and nothing waits for it")]
fn turn(state: &Weak<Mutex<State>>) {
    for tick in 0.. {
        std::thread::sleep(TICK);
        let Some(state) = state.upgrade() else { return };
        state.lock().unwrap_or_else(PoisonError::into_inner).draw(tick);
    }
}
