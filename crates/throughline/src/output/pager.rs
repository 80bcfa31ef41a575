//! Long output, a screen at a time.
//!
//! Only for people: where standard output is no terminal, everything is printed at once. The pager is
//! `THROUGHLINE_PAGER`, else `PAGER`, else `less`; an empty one, `cat`, or one that is not there means none.

use super::ink::{columns, height};
use super::{Ink, print};
use crate::args::Args;
use crate::exit::CommandError;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// The pager where the user names none: it ends by itself if everything fits, shows colours, and leaves the text there.
const USUAL: &str = "less -FRX";

/// Writes to standard output: through a pager, if that is a terminal and the text is longer than it.
pub fn page(text: &str, args: &Args) -> Result<(), CommandError> {
    let ink = Ink::of_stdout();
    let Some(width) = ink.width().filter(|_| !args.no_pager) else { return print(text) };
    if height().is_some_and(|height| lines_taken(text, width) < height) {
        return print(text);
    }
    match users_pager().and_then(|pager| started(&pager, None)) {
        Some(shown) => shown.show(text),
        None => print(text),
    }
}

/// Shows a text on the terminal of standard error through a pager, if it is longer than that. Says whether it was shown;
/// else it is left to the caller. The pager's process is told as soon as it runs.
pub fn page_on_terminal(text: &str, on_start: impl FnOnce(u32)) -> bool {
    let (Some(width), Some(height)) = (Ink::of_stderr().width(), height()) else { return false };
    // A line is left for the question.
    if lines_taken(text, width) + 1 < height {
        return false;
    }
    let Some(pager) = users_pager() else { return false };
    let Some(shown) = started(&pager, Some(Stdio::from(io::stderr()))) else { return false };
    on_start(shown.child.id());
    shown.show(&format!("{text}\n")).is_ok()
}

fn users_pager() -> Option<String> {
    let named = |name| std::env::var(name).ok();
    chosen(named("THROUGHLINE_PAGER"), named("PAGER"))
}

/// Returns the pager that is meant, if one is.
fn chosen(own: Option<String>, usual: Option<String>) -> Option<String> {
    let pager = own.or(usual).unwrap_or_else(|| USUAL.to_owned());
    (!pager.trim().is_empty() && pager.trim() != "cat").then_some(pager)
}

/// Returns how many lines of a terminal a text takes.
fn lines_taken(text: &str, width: usize) -> usize {
    // Styles are counted as if they were seen: then the pager is started, and ends by itself.
    text.lines().map(|line| columns(line).div_ceil(width).max(1)).sum()
}

/// A pager that runs, and the signal that it has for itself meanwhile.
struct Shown {
    child: std::process::Child,
    _kept: Option<tokio::runtime::Runtime>,
}

fn started(pager: &str, output: Option<Stdio>) -> Option<Shown> {
    let mut words = pager.split_whitespace();
    let mut command = Command::new(words.next()?);
    command.args(words).stdin(Stdio::piped());
    if let Some(output) = output {
        command.stdout(output);
    }
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let child = command.spawn().ok()?;
    Some(Shown { child, _kept: kept_alive() })
}

impl Shown {
    fn show(mut self, text: &str) -> Result<(), CommandError> {
        if let Some(mut input) = self.child.stdin.take() {
            // Whoever quits the pager has seen enough.
            let _ = input.write_all(text.as_bytes());
        }
        let ended = self.child.wait();
        ended.map(drop).map_err(|source| CommandError::file("the pager", source))
    }
}

/// Keeps Ctrl-C from ending this program while the pager is open, which takes it for itself.
fn kept_alive() -> Option<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    #[cfg(unix)]
    {
        let _inside = runtime.enter();
        drop(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()));
    }
    Some(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_pager_comes_first_and_none_is_a_choice() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(chosen(None, None).as_deref(), Some(USUAL));
        assert_eq!(chosen(None, some("more")).as_deref(), Some("more"));
        assert_eq!(chosen(some("bat -p"), some("more")).as_deref(), Some("bat -p"));
        assert_eq!(chosen(some(""), some("more")), None);
        assert_eq!(chosen(None, some("cat")), None);
    }

    #[test]
    fn lines_that_wrap_take_more_than_one() {
        assert_eq!(lines_taken("one\n\nthree\n", 80), 3);
        assert_eq!(lines_taken(&"x".repeat(81), 80), 2);
    }
}
