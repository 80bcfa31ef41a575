//! A turn as a person sees it: the model's words, and a line for each thing that was done.

use super::console::Console;
use super::session::Summary;
use crate::output::{self, Ink};
use std::io::Write;
use std::time::Duration;
use throughline_core::{
    BlockKind, Call, Closing, Entry, Frame, Outcome, Piece, Settled, Settlement, joined_text,
};
use throughline_gateway::turn::{Happening, Watch};
use throughline_gateway::view::outcome_name;
use throughline_wire::json::Document;

/// Shows a turn to a person.
pub struct Face<'c> {
    quiet: bool,
    console: &'c Console,
    ink: Ink,
    /// The block of the answer under way that is being shown, if it is text.
    block: Option<u32>,
    /// Whether the last thing on standard output was no line break.
    is_open: bool,
    /// Whether what the model says is worked over before it counts.
    is_draft: bool,
}

/// So much of what a call is about is shown.
const ABOUT_CHARS: usize = 80;

impl<'c> Face<'c> {
    /// Returns a face that has shown nothing yet.
    pub fn new(quiet: bool, console: &'c Console) -> Self {
        Self { quiet, console, ink: Ink::of_stderr(), block: None, is_open: false, is_draft: false }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.console.spinner.clear();
        if self.is_draft {
            if !self.quiet {
                let mut stderr = anstream::stderr().lock();
                let _ =
                    write!(stderr, "{}", self.ink.dim(&self.ink.tame(text))).and_then(|()| stderr.flush());
            }
        } else {
            // A reader that is gone has seen enough; the turn goes on to its end.
            let _ = output::print(&Ink::of_stdout().tame(text));
        }
        self.is_open = !text.ends_with('\n');
    }

    fn break_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            if self.is_draft {
                output::remark("");
            } else {
                let _ = output::print("\n");
            }
        }
    }

    fn frame(&mut self, frame: &Frame) {
        match frame {
            Frame::Begun { block, kind: BlockKind::Text { .. } | BlockKind::Refusal { .. } } => {
                self.break_line();
                self.block = Some(*block);
            }
            Frame::Grew { block, piece: Piece::Text(text) } if self.block == Some(*block) => self.say(text),
            _ => {}
        }
    }

    fn whole(&mut self, entries: &[Entry]) {
        for said in entries.iter().filter_map(Entry::as_said) {
            self.break_line();
            self.say(&joined_text(&said.parts));
        }
    }

    fn settled(&mut self, settled: &Settled, exit_code: Option<i32>, took: Option<Duration>) {
        self.console.spinner.clear();
        if !self.quiet {
            self.break_line();
            output::remark(&line(settled, exit_code, took, &self.ink));
        }
    }
}

impl Watch for Face<'_> {
    fn see(&mut self, happening: Happening<'_>) {
        match happening {
            Happening::Asked { again, draft, .. } => {
                self.break_line();
                self.is_draft = draft;
                if again && !self.quiet {
                    output::remark(&self.ink.dim("the answer broke off; asking again"));
                }
                self.console.spinner.busy("waiting for the model");
            }
            Happening::Heard { frames, .. } => frames.iter().for_each(|frame| self.frame(frame)),
            Happening::Answered { entries, whole, .. } => {
                if whole {
                    self.whole(entries);
                }
                self.block = None;
                self.break_line();
                self.console.spinner.clear();
            }
            Happening::Called(call) => self.console.spinner.busy(&format!("{} {}", call.name, about(call))),
            Happening::Settled { settled, exit_code, took } => self.settled(settled, exit_code, took),
            Happening::NotComposed { reason } => {
                self.break_line();
                let said = self.ink.tame(reason).into_owned();
                output::remark(&format!(
                    "the answer was not composed: {said}; `throughline show` has the draft"
                ));
            }
        }
    }
}

/// Returns the line about a call: what it was, how it went, how long it took.
fn line(settled: &Settled, exit_code: Option<i32>, took: Option<Duration>, ink: &Ink) -> String {
    let call = &settled.call;
    let head = ink.tame(&format!("{} {}", call.name, about(call))).into_owned();
    let outcome = match (settled.outcome(), exit_code) {
        (Outcome::Ok, Some(code)) if code != 0 => ink.bad(&format!("exit code {code}")),
        (Outcome::Ok, _) => ink.good("ok"),
        (outcome, _) => ink.bad(outcome_name(outcome)),
    };
    let why = match &settled.settlement {
        Settlement::Closed(Closing::Limit) => "  the limit of tool calls is reached",
        Settlement::Closed(Closing::Lost) => "  left open by an earlier run",
        Settlement::Closed(Closing::CutShort) => "  the answer was cut short",
        Settlement::Closed(Closing::Cancelled) | Settlement::Returned(..) => "",
    };
    let took = took.map(|took| format!("  {}", ink.dim(&duration(took)))).unwrap_or_default();
    format!("{} {head}  {outcome}{why}{took}", ink.dim("•"))
}

/// Returns what a call is about: a path, a command, a pattern, or else its arguments.
pub fn about(call: &Call) -> String {
    let text = call.input.text();
    let document = Document::parse(text.as_str()).ok();
    let named = document.as_ref().and_then(|document| {
        let root = document.root();
        let names = ["command", "cmd", "pattern", "query", "path", "file_path", "url", "description", "name"];
        names.iter().find_map(|name| root.field(name)?.as_text())
    });
    let about = named.as_ref().unwrap_or(text);
    let line = about.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(ABOUT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn duration(took: Duration) -> String {
    match took.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}

/// Returns the last line: what the turn came to.
pub fn summed_up(summary: &Summary) -> String {
    let usage = &summary.usage;
    let cached = if usage.cache_read > 0 { format!(" ({} cached)", usage.cache_read) } else { String::new() };
    let cost = summary.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
    let calls =
        if summary.calls == 1 { "1 tool call".to_owned() } else { format!("{} tool calls", summary.calls) };
    let text = format!(
        "{}: {calls}, {} tokens in{cached}, {} out{cost}\n{}, conversation {}",
        summary.conclusion, usage.input, usage.output, summary.run, summary.conversation
    );
    Ink::of_stderr().dim(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_core::{Input, Part};

    fn settled(name: &str, arguments: &str, outcome: Outcome) -> Settled {
        let input = Input::Arguments(arguments.into());
        let call = Call { id: "c".into(), item_id: None, name: name.into(), namespace: None, input };
        Settled { call, settlement: Settlement::Returned(outcome, vec![Part::text("x")]) }
    }

    #[test]
    fn each_call_is_a_line_with_its_outcome_and_duration() {
        let ink = Ink::plain();
        let took = Some(Duration::from_millis(12));
        let read = settled("read", r#"{"path":"src/main.rs"}"#, Outcome::Ok);
        assert_eq!(line(&read, None, took, &ink), "• read src/main.rs  ok  12 ms");
        let bash = settled("bash", r#"{"command":"cargo\n  test"}"#, Outcome::Ok);
        assert_eq!(
            line(&bash, Some(101), Some(Duration::from_millis(2_340)), &ink),
            "• bash cargo test  exit code 101  2.3 s"
        );
        let odd = settled("odd", &"x".repeat(200), Outcome::Denied);
        assert!(line(&odd, None, None, &ink).ends_with("…  denied"));
    }
}
