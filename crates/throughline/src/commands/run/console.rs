//! Lines from standard input, and the question whether a call may be run.
//!
//! On a terminal nothing is read ahead: one line is taken when somebody waits for one. So what was typed before a question
//! can be thrown away, and never answers it.

use crate::output::{self, Ink, Spinner, counted, page_on_terminal};
use crate::terminal;
use std::future::Future;
use std::io::{BufRead, IsTerminal};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use throughline_gateway::turn::workbench::{Approver, Decision, Question};
use throughline_tools::Effect;
use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Standard input, a line at a time, for whoever asks.
pub struct Console {
    /// The lines of what is no terminal, read on a thread of their own.
    piped: OnceLock<tokio::sync::Mutex<UnboundedReceiver<String>>>,
    /// Whoever has the terminal: one question at a time, and one line for each.
    terminal: Arc<tokio::sync::Mutex<()>>,
    /// Whether long questions go through a pager.
    has_pager: bool,
    /// Shown on standard error while something takes long; out of the way while something is asked.
    pub spinner: Spinner,
}

/// The right to use the terminal.
type Turn = OwnedMutexGuard<()>;

impl Console {
    /// Returns a console that has read nothing yet.
    pub fn new(has_pager: bool) -> Self {
        Self { piped: OnceLock::new(), terminal: Arc::default(), has_pager, spinner: Spinner::new() }
    }

    /// Waits for a line, behind a mark on a terminal; nothing at the end of input.
    pub async fn line(&self, mark: &str) -> Option<String> {
        self.spinner.clear();
        if !std::io::stdin().is_terminal() {
            let lines = self.piped.get_or_init(|| tokio::sync::Mutex::new(listening()));
            return lines.lock().await.recv().await;
        }
        let turn = Arc::clone(&self.terminal).lock_owned().await;
        typed(turn, mark).await.1
    }

    async fn decide(&self, question: &Question<'_>) -> Decision {
        if !terminal::is_interactive() {
            if !question.protected.is_empty() {
                return Decision::No(Some("nobody is there to agree to it, and no setting does".to_owned()));
            }
            let effect = if question.effect == Effect::Edits { "edits" } else { "all" };
            return Decision::No(Some(format!(
                "nobody is there to agree to it; --approve {effect} would allow it"
            )));
        }
        let mut turn = Arc::clone(&self.terminal).lock_owned().await;
        self.spinner.clear();
        let ink = Ink::of_stderr();
        let shown = asked(question, &ink);
        let mut is_paged;
        (turn, is_paged) = self.show(turn, &shown).await;
        loop {
            if is_paged {
                output::remark(&summary(question, &ink));
            }
            output::remark(&choices(question, is_paged));
            // Only what is typed behind the question answers it.
            terminal::drain();
            let line;
            (turn, line) = typed(turn, "Allow it? ").await;
            let Some(line) = line else { return Decision::No(None) };
            return match line.trim().to_lowercase().as_str() {
                "y" | "yes" => Decision::Yes,
                "a" | "always" if question.protected.is_empty() => Decision::Always,
                "" | "n" | "no" => Decision::No(None),
                "v" | "view" if is_paged => {
                    (turn, is_paged) = self.show(turn, &shown).await;
                    continue;
                }
                _ => Decision::No(Some(line.trim().to_owned())),
            };
        }
    }

    /// Shows what somebody has to judge, all of it, and says whether that took a pager.
    async fn show(&self, turn: Turn, text: &str) -> (Turn, bool) {
        let (pager, owned) = (Pager::default(), text.to_owned());
        let started = pager.clone();
        let has_pager = self.has_pager;
        let paging = tokio::task::spawn_blocking(move || {
            let is_paged = has_pager && page_on_terminal(&owned, |id| started.0.store(id, Ordering::Relaxed));
            started.0.store(0, Ordering::Relaxed);
            (turn, is_paged)
        });
        let ended = paging.await;
        drop(pager);
        let (turn, is_paged) = match ended {
            Ok(ended) => ended,
            Err(_) => (Arc::clone(&self.terminal).lock_owned().await, false),
        };
        if !is_paged {
            output::remark(text);
        }
        (turn, is_paged)
    }
}

/// The pager that is open, by its process; 0 is none. It is ended when nobody waits for it any more.
#[derive(Clone, Default)]
struct Pager(Arc<AtomicU32>);

impl Drop for Pager {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(id) =
            i32::try_from(self.0.load(Ordering::Relaxed)).ok().and_then(rustix::process::Pid::from_raw)
        {
            // It asks nicely: a pager puts the terminal back as it was.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
    }
}

/// Asks by a console that others use as well.
pub struct Asking(pub Arc<Console>);

impl Approver for Asking {
    fn ask<'a>(&'a self, question: &'a Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(self.0.decide(question))
    }
}

/// Returns what somebody is asked to agree to: all of what would be done, and how files would change. What comes from the
/// model stands in, so that none of it is taken for the question.
fn asked(question: &Question<'_>, ink: &Ink) -> String {
    let mut text = ink.bold(&question.preview.line);
    for line in question.preview.whole.as_deref().unwrap_or_default().lines() {
        text.push_str(&format!("\n  {line}"));
    }
    for line in question.preview.diff.as_deref().unwrap_or_default().lines() {
        let line = match line.as_bytes().first() {
            Some(b'+') => ink.good(line),
            Some(b'-') => ink.bad(line),
            _ => line.to_owned(),
        };
        text.push_str(&format!("\n{line}"));
    }
    for protected in question.protected {
        let path = protected.path.display().to_string();
        let line = format!("{path} is protected: {}.", protected.reason);
        text.push_str(&format!("\n{}", ink.bad(&line)));
    }
    text
}

/// Returns what was shown in the pager, in a few lines.
fn summary(question: &Question<'_>, ink: &Ink) -> String {
    let preview = question.preview;
    let text = preview.whole.as_deref().or(preview.diff.as_deref()).unwrap_or_default();
    let (lines, characters) = (text.lines().count() as u64, text.chars().count() as u64);
    let size =
        format!("{}, {}", counted(lines, "line", "lines"), counted(characters, "character", "characters"));
    format!("{} ({size})", ink.bold(&preview.line))
}

/// Returns what can be answered, and what each answer covers.
fn choices(question: &Question<'_>, is_paged: bool) -> String {
    let tool = question.tool;
    let further = match (tool, question.effect) {
        ("bash", _) => "every later command, whatever it is".to_owned(),
        (_, Effect::Edits) => format!("every later `{tool}`, of any file in the working directory"),
        _ => format!("every later call of `{tool}`, with any arguments"),
    };
    // What is protected is asked about each time.
    let always = match question.protected {
        [] => format!("\n  a  always: this and {further}, without asking, until the program ends"),
        _ => String::new(),
    };
    let view = if is_paged { "\n  v  show it again" } else { "" };
    format!("  y  yes, this once{always}{view}\n  n  no; anything else is told to the model as the reason")
}

/// Waits for a line on the terminal, behind a mark. When nobody waits any more, the line is left for whoever is next.
async fn typed(turn: Turn, mark: &str) -> (Turn, Option<String>) {
    output::prompt(mark);
    let Ok((abandoned, _abandon)) = terminal::abandonable() else { return (turn, None) };
    let reading = tokio::task::spawn_blocking(move || {
        let line = terminal::read_line(Some(&abandoned)).ok().flatten();
        (turn, line)
    });
    match reading.await {
        Ok(read) => read,
        // The thread broke, and took its turn with it; the next line is asked for anew.
        Err(_) => (Arc::new(tokio::sync::Mutex::new(())).lock_owned().await, None),
    }
}

/// Begins to read the lines of what is no terminal, on a thread that nobody waits for.
fn listening() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_tools::Preview;

    #[test]
    fn a_question_shows_what_would_be_done() {
        let preview = Preview {
            line: "edit a.txt".into(),
            diff: Some("--- a.txt\n+++ a.txt\n-old\n+new".into()),
            ..Preview::default()
        };
        let question = Question { tool: "edit", effect: Effect::Edits, preview: &preview, protected: &[] };
        assert_eq!(asked(&question, &Ink::plain()), "edit a.txt\n--- a.txt\n+++ a.txt\n-old\n+new");
        let preview = Preview {
            line: "bash: ls (and 1 more line)".into(),
            whole: Some("ls\nAllow it? y".into()),
            ..Preview::default()
        };
        let question = Question { tool: "bash", effect: Effect::Runs, preview: &preview, protected: &[] };
        assert_eq!(asked(&question, &Ink::plain()), "bash: ls (and 1 more line)\n  ls\n  Allow it? y");
    }

    #[test]
    fn always_says_what_it_covers() {
        let preview = Preview::default();
        let covers =
            |tool, effect| choices(&Question { tool, effect, preview: &preview, protected: &[] }, false);
        assert!(covers("bash", Effect::Runs).contains("every later command, whatever it is"));
        assert!(covers("edit", Effect::Edits).contains("every later `edit`, of any file"));
        assert!(
            covers("web__get", Effect::Runs).contains("every later call of `web__get`, with any arguments")
        );
    }
}
