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
    /// The whole that what is shown is a part of: what it is called, how much of it is done, and how much there is.
    whole: Option<(String, u64, u64)>,
}

impl Bar {
    /// Returns a bar that is shown if it is wanted and somebody can see it.
    pub fn new(wanted: bool, unit: Unit) -> Self {
        let ink = Ink::of_stderr();
        let drawn =
            || Arc::new(Mutex::new(Drawn { ink, unit, begun: Instant::now(), last: None, whole: None }));
        Self((wanted && ink.is_on_terminal()).then(drawn))
    }

    /// Lets what is shown from now on be a part of a whole, of which so much is done.
    pub fn within(&self, what: &str, done: u64, total: u64) {
        if let Some(drawn) = &self.0 {
            let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            drawn.whole = Some((what.to_owned(), done, total));
        }
    }

    /// Shows how far it has come.
    pub fn at(&self, what: &str, done: u64, total: u64) {
        let Some(drawn) = &self.0 else { return };
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.begun.elapsed() < PATIENCE || drawn.last.is_some_and(|last| last.elapsed() < TICK) {
            return;
        }
        drawn.last = Some(Instant::now());
        let (what, done, total) = match &drawn.whole {
            Some((what, before, total)) => (what.as_str(), before.saturating_add(done), *total),
            None => (what, done, total),
        };
        let left = left(drawn.begun.elapsed(), done, total);
        let line = line(what, done, total, drawn.unit, left, &drawn.ink);
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

/// Returns how long the rest takes, if it goes on like this; nothing, as long as that cannot be told.
fn left(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    const TOLD_AFTER: Duration = Duration::from_secs(1);
    if elapsed < TOLD_AFTER || done == 0 || done >= total {
        return None;
    }
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * (total - done) as f64 / done as f64).ok()
}

/// Returns a span of time in few characters: `4 s`, `3 min`, `2 h`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..90 => format!("{} s", seconds.max(1)),
        seconds @ 90..5400 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// Returns the bar as a line that fits the terminal: what, how far, and how much of how much.
fn line(what: &str, done: u64, total: u64, unit: Unit, left: Option<Duration>, ink: &Ink) -> String {
    let number = |count: u64| if unit == Unit::Bytes { bytes(count) } else { count.to_string() };
    let width = ink.width().unwrap_or(usize::MAX);
    if total == 0 {
        return cut(&format!("{what}  {}", number(done)), width).into_owned();
    }
    let share = (done.min(total) as f64) / (total as f64);
    let left = left.map(|left| format!("  {} left", span(left))).unwrap_or_default();
    let facts = format!("{:3.0} %  {} of {}{left}", (share * 100.0).floor(), number(done), number(total));
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
        let shown = |width, done, total| {
            line("entries", done, total, Unit::Count, None, &Ink::of_width(width, Moment(0)))
        };
        assert_eq!(shown(80, 50, 200), format!("entries  {}   25 %  50 of 200", "━".repeat(30)));
        assert_eq!(shown(80, 7, 0), "entries  7");
        for width in 40..100 {
            let line = shown(width, 1_999_999, 2_000_000);
            assert!(columns(&line) < width && line.contains("99 %"), "{width}: {line}");
        }
        let bytes = line("a-session", 1_500_000, 3_000_000, Unit::Bytes, None, &Ink::of_width(80, Moment(0)));
        assert!(bytes.ends_with("50 %  1.5 MB of 3.0 MB"), "{bytes}");
    }

    #[test]
    fn a_bar_says_how_long_the_rest_takes() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(10), 25, 100), Some(seconds(30)));
        assert_eq!([left(seconds(0), 1, 9), left(seconds(9), 0, 9), left(seconds(9), 9, 9)], [None; 3]);
        assert_eq!([30, 150, 7000].map(|time| span(seconds(time))), ["30 s", "3 min", "2 h"]);
        let ink = Ink::of_width(80, Moment(0));
        let shown = line("entries", 50, 200, Unit::Count, Some(seconds(150)), &ink);
        assert!(shown.ends_with("25 %  50 of 200  3 min left"), "{shown}");
    }
}
