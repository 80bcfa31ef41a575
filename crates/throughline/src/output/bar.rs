//! A bar on standard error that says how far something has come; nothing where nobody would see it move.

use super::bytes;
use super::ink::{Ink, columns, cut};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is over sooner is not worth a bar.
const PATIENCE: Duration = Duration::from_millis(200);
/// The bar is drawn no more often than this.
const TICK: Duration = Duration::from_millis(50);
/// The most characters that the bar itself has.
const LENGTH_MAX: usize = 30;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

/// Shows how far something has come. Clones show the same bar; it goes with the last of them.
#[derive(Clone, Debug)]
pub struct Bar(Option<Arc<Mutex<Drawn>>>);

#[derive(Debug)]
struct Drawn {
    ink: Ink,
    unit: Unit,
    begun: Instant,
    last: Option<Instant>,
}

impl Bar {
    /// Returns a bar that is shown if it is wanted and somebody can see it.
    pub fn new(wanted: bool, unit: Unit) -> Self {
        let ink = Ink::of_stderr();
        let drawn = || Arc::new(Mutex::new(Drawn { ink, unit, begun: Instant::now(), last: None }));
        Self((wanted && ink.is_on_terminal()).then(drawn))
    }

    /// Shows how far it has come.
    pub fn at(&self, what: &str, done: u64, total: u64) {
        let Some(drawn) = &self.0 else { return };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.begun.elapsed() < PATIENCE || drawn.last.is_some_and(|last| last.elapsed() < TICK) {
            return;
        }
        drawn.last = Some(Instant::now());
        let line = line(what, done, total, drawn.unit, &drawn.ink);
        // Nobody is left to tell if even this fails.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{line}");
    }

    /// Takes it off the line, so that something else can be said.
    pub fn clear(&self) {
        if let Some(drawn) = &self.0 {
            drawn.lock().unwrap_or_else(PoisonError::into_inner).wipe();
        }
    }
}

impl Drawn {
    fn wipe(&mut self) {
        if self.last.take().is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Returns the bar as a line that fits the terminal: what, how far, and how much of how much.
fn line(what: &str, done: u64, total: u64, unit: Unit, ink: &Ink) -> String {
    let number = |count: u64| if unit == Unit::Bytes { bytes(count) } else { count.to_string() };
    let width = ink.width().unwrap_or(usize::MAX);
    if total == 0 {
        return cut(&format!("{what}  {}", number(done)), width).into_owned();
    }
    let share = (done.min(total) as f64) / (total as f64);
    let facts = format!("{:3.0} %  {} of {}", (share * 100.0).floor(), number(done), number(total));
    let what = cut(what, width.saturating_sub(columns(&facts) + 14).max(8));
    let length = width.saturating_sub(columns(&what) + columns(&facts) + 5).min(LENGTH_MAX);
    let full = (share * length as f64) as usize;
    let bar = format!("{}{}", ink.good(&"━".repeat(full)), ink.dim(&"━".repeat(length - full)));
    format!("{what}  {bar}  {facts}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_store::Moment;

    #[test]
    fn a_bar_says_what_and_how_far_and_fits_the_terminal() {
        let shown =
            |width, done, total| line("entries", done, total, Unit::Count, &Ink::of_width(width, Moment(0)));
        assert_eq!(shown(80, 50, 200), format!("entries  {}   25 %  50 of 200", "━".repeat(30)));
        assert_eq!(shown(80, 7, 0), "entries  7");
        for width in 40..100 {
            let line = shown(width, 1_999_999, 2_000_000);
            assert!(columns(&line) < width && line.contains("99 %"), "{width}: {line}");
        }
        let bytes = line("a-session", 1_500_000, 3_000_000, Unit::Bytes, &Ink::of_width(80, Moment(0)));
        assert!(bytes.ends_with("50 %  1.5 MB of 3.0 MB"), "{bytes}");
    }
}
