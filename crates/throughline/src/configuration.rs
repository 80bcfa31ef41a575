//! The configuration as a command loads it.
//!
//! A file that was found in the working directory and is not trusted is asked about where somebody can be asked, and is
//! else named and ignored. What is shown, what is recorded and what is parsed are the same bytes, read once.

use crate::args::Args;
use crate::output::{self, Ink, page_on_terminal};
use crate::terminal;
use std::cell::RefCell;
use std::io;
use std::path::Path;
use throughline_gateway::config::{
    self, Config, ConfigErrors, Distrust, Flags, FoundFile, IgnoredFile, Process, Surroundings, Trust,
    TrustRecord, Verdict, grants,
};
use throughline_tools::visible_line;

/// Whether somebody may be asked about a file that is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// If they can be.
    Allowed,
    /// No: the command only says what it found.
    Left,
}

impl Question {
    /// Returns whether a command may ask: one that is to say nothing, or that a program reads, does not.
    pub const fn of(args: &Args) -> Self {
        if args.quiet || args.json { Self::Left } else { Self::Allowed }
    }
}

/// Loads the configuration, with every key that it refers to.
pub fn load(flags: &Flags, question: Question) -> Result<Config, ConfigErrors> {
    loaded(question, |surroundings| config::load(surroundings, flags))
}

/// Loads the configuration for a command that asks no backend: keys need not be there.
pub fn load_to_look(flags: &Flags, question: Question) -> Result<Config, ConfigErrors> {
    loaded(question, |surroundings| config::load_to_look(surroundings, flags))
}

fn loaded(
    question: Question,
    load: impl FnOnce(&dyn Surroundings) -> Result<Config, ConfigErrors>,
) -> Result<Config, ConfigErrors> {
    let asker = Asker { question, ignored: RefCell::default() };
    let loaded = load(&asker);
    // Also with --quiet, and before whatever the next file has to say: a file that does not count explains much.
    if let Some(ignored) = asker.ignored.into_inner() {
        output::remark(&format!("warning: {ignored}"));
    }
    loaded
}

/// Loads the configuration for a command that asks no backend and says itself which file was ignored.
pub fn examine(flags: &Flags) -> (Result<Config, ConfigErrors>, Option<IgnoredFile>) {
    let asker = Asker { question: Question::Left, ignored: RefCell::default() };
    let loaded = config::load_to_look(&asker, flags);
    (loaded, asker.ignored.into_inner())
}

/// This process, with somebody in front of it.
struct Asker {
    question: Question,
    ignored: RefCell<Option<IgnoredFile>>,
}

impl Surroundings for Asker {
    fn variable(&self, name: &str) -> Option<String> {
        Process.variable(name)
    }

    fn variable_names(&self) -> Vec<String> {
        Process.variable_names()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        Process.read(path)
    }

    fn read_found(&self, path: &Path) -> io::Result<FoundFile> {
        let mut found = match Process.read_found(path) {
            Ok(found) => found,
            Err(error) => {
                self.note_unreadable(path, &error);
                return Err(error);
            }
        };
        let Trust::Untrusted(why) = found.trust.clone() else { return Ok(found) };
        found.trust = match grants(path, &found.text) {
            Ok(grants) if self.may_ask(&why) => ask(&found, &grants, why),
            Ok(_) => Trust::Untrusted(why),
            // What cannot be described is not asked about.
            Err(errors) => Trust::Untrusted(Distrust::Unreadable(errors.to_string())),
        };
        if let Trust::Untrusted(why) = &found.trust {
            self.note(IgnoredFile { path: found.path.clone(), why: why.clone() });
        }
        Ok(found)
    }
}

impl Asker {
    fn may_ask(&self, why: &Distrust) -> bool {
        let is_open = matches!(why, Distrust::Undecided | Distrust::Changed);
        is_open && self.question == Question::Allowed && terminal::is_interactive()
    }

    fn note(&self, ignored: IgnoredFile) {
        self.ignored.replace(Some(ignored));
    }

    fn note_unreadable(&self, path: &Path, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            self.note(IgnoredFile { path, why: Distrust::Unreadable(error.to_string()) });
        }
    }
}

/// Asks whether a file is trusted, and records the answer.
fn ask(found: &FoundFile, grants: &[String], why: Distrust) -> Trust {
    show(&described(found, grants, &why, &Ink::of_stderr()));
    terminal::drain();
    output::prompt("Trust it as it is now? [y]es, [n]o and do not ask again, or Enter for not now: ");
    let typed = terminal::read_line(None).ok().flatten().unwrap_or_default();
    let (verdict, trust) = match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => (Verdict::Trusted, Trust::Trusted),
        "n" | "no" => (Verdict::Refused, Trust::Untrusted(Distrust::Refused)),
        _ => return Trust::Untrusted(why),
    };
    let kept = TrustRecord::of_user(&Process)
        .and_then(|record| record.decide(found, verdict).map_err(|error| error.to_string()));
    if let Err(error) = kept {
        output::remark(&format!("warning: this could not be remembered: {error}"));
    }
    trust
}

/// Shows a text that somebody has to judge: all of it.
fn show(text: &str) {
    if !page_on_terminal(text, |_| {}) {
        output::remark(text);
    }
}

/// Returns what somebody is told before they are asked.
fn described(found: &FoundFile, grants: &[String], why: &Distrust, ink: &Ink) -> String {
    let path = visible_line(&found.path.to_string_lossy());
    let state = match why {
        Distrust::Changed => "has changed since you trusted it",
        _ => "was found in the working directory, and you have not trusted it",
    };
    let mut text = format!("{} {state}.", ink.bold(&path));
    if let Some(owner) = found.foreign_owner {
        text.push_str(&format!("\nIt belongs to another user (id {owner})."));
    }
    if grants.is_empty() {
        text.push_str(" It sets nothing.");
    } else {
        text.push_str(" If it is used, it");
        grants.iter().for_each(|line| text.push_str(&format!("\n  - {line}")));
    }
    text
}
