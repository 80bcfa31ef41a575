//! Lines from standard input, and the question whether a call may be run.

use crate::output::{self, Ink, Spinner};
use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use throughline_gateway::turn::workbench::{Approver, Decision, Question};
use throughline_tools::Effect;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Standard input, a line at a time, for whoever asks.
pub struct Console {
    lines: OnceLock<tokio::sync::Mutex<UnboundedReceiver<String>>>,
    /// Shown on standard error while something takes long; out of the way while something is asked.
    pub spinner: Spinner,
    /// Only one question at a time.
    ink: Mutex<Ink>,
}

impl Console {
    /// Returns a console that has read nothing yet.
    pub fn new() -> Self {
        Self { lines: OnceLock::new(), spinner: Spinner::new(), ink: Mutex::new(Ink::of_stderr()) }
    }

    /// Waits for a line, behind a mark on a terminal; nothing at the end of input.
    pub async fn line(&self, mark: &str) -> Option<String> {
        self.spinner.clear();
        if std::io::stdin().is_terminal() {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "{mark}").and_then(|()| stderr.flush());
        }
        let lines = self.lines.get_or_init(|| tokio::sync::Mutex::new(listening()));
        lines.lock().await.recv().await
    }

    fn ink(&self) -> Ink {
        *self.ink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn decide(&self, question: &Question<'_>) -> Decision {
        if !std::io::stdin().is_terminal() {
            let effect = if question.effect == Effect::Edits { "edits" } else { "all" };
            return Decision::No(Some(format!(
                "nobody is there to agree to it; --approve {effect} would allow it"
            )));
        }
        self.spinner.clear();
        output::remark(&asked(question, &self.ink()));
        let mark = format!("Allow it? [y]es, [a]lways {}, [n]o, or say why not: ", question.tool);
        let Some(line) = self.line(&mark).await else { return Decision::No(None) };
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => Decision::Yes,
            "a" | "always" => Decision::Always,
            "" | "n" | "no" => Decision::No(None),
            _ => Decision::No(Some(line.trim().to_owned())),
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

/// Returns what somebody is asked to agree to: what would be done, and how files would change.
fn asked(question: &Question<'_>, ink: &Ink) -> String {
    let mut text = ink.bold(&question.preview.line);
    if let Some(script) = &question.preview.script {
        text.push_str(&format!("\n{script}"));
    }
    for line in question.preview.diff.as_deref().unwrap_or_default().lines() {
        let line = match line.as_bytes().first() {
            Some(b'+') => ink.good(line),
            Some(b'-') => ink.bad(line),
            _ => line.to_owned(),
        };
        text.push_str(&format!("\n{line}"));
    }
    text
}

/// Begins to read lines, on a thread that nobody waits for.
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
        let question = Question { tool: "edit", effect: Effect::Edits, preview: &preview };
        assert_eq!(asked(&question, &Ink::plain()), "edit a.txt\n--- a.txt\n+++ a.txt\n-old\n+new");
    }
}
