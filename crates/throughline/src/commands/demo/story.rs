//! The story: what is done in which order, and what is claimed of it.

use super::project::{Project, RIGHT, SORT, WRONG};
use super::{Stage, at, checks::Checks};
use crate::exit::CommandError;
use crate::output::{self, Ink};
use std::process::Stdio;
use throughline_sim::Recorded;
use throughline_wire::json::Document;

/// What the first backend says, answer by answer.
pub const ALPHA: &str = r#"{
  "turns": [
    { "text": "I look at the files first.", "calls": [
      { "name": "read", "arguments": { "path": "prices.csv" } },
      { "name": "read", "arguments": { "path": "total.sh" } } ] },
    { "calls": [{ "name": "bash", "arguments": { "command": "sh test.sh" } }] },
    { "text": "It adds up the first column instead of the third.", "calls": [
      { "name": "edit", "arguments": { "path": "total.sh", "old_string": "cut -d, -f1", "new_string": "cut -d, -f3" } }] },
    { "calls": [{ "name": "bash", "arguments": { "command": "sh test.sh" } }] },
    { "text": "Mended: the totals are right, and the test passes." },
    { "calls": [{ "name": "recall", "arguments": { "query": "bread-42" } }] },
    { "quote": true }
  ]
}"#;

/// The story, as it is told.
pub struct Story<'s> {
    pub stage: &'s Stage,
    pub ink: Ink,
    pub checks: Checks,
    pub quiet: bool,
}

/// Returns the configuration: two backends, and little room for tool history.
pub fn config(alpha: &str, beta: &str) -> String {
    format!(
        r#"active = "alpha"

[history]
truncation_threshold = 1500
recent_calls_to_keep = 2

[[backends]]
name = "alpha"
dialect = "messages"
base_url = "{alpha}"
api_key = "none"
default_model = "sim"

[[backends]]
name = "beta"
dialect = "chat"
base_url = "{beta}"
api_key = "none"
default_model = "sim"
"#
    )
}

impl Story<'_> {
    /// Tells it from beginning to end.
    pub async fn tell(&mut self) -> Result<(), CommandError> {
        let conversation = self.work().await?;
        self.shortened()?;
        self.switch_to_text(&conversation)?;
        self.switch_back(&conversation)?;
        self.replay(&conversation)?;
        self.kept(&conversation)
    }

    /// An agent mends a program, with real tools.
    async fn work(&mut self) -> Result<String, CommandError> {
        self.heading(
            "An agent works in a scratch project. The model behind it is `alpha`, which speaks Messages.",
        )?;
        let folder = self.stage.folder.path().join("bakery");
        let place = folder.display().to_string();
        let ran = self.shown(&[
            "run",
            "--approve",
            "all",
            "--cwd",
            &place,
            "The test fails. Find out why, and mend it.",
        ])?;
        self.claim("the run ended well", ran.success)?;
        let script =
            std::fs::read_to_string(folder.join("total.sh")).map_err(|source| at(&folder, source))?;
        self.claim("the file was really changed", script.contains(RIGHT) && !script.contains(WRONG))?;
        let sent = self.stage.alpha.recorded();
        let with_results = sent.iter().filter(|request| request.body.contains("\"tool_result\""));
        self.claim("alpha was sent every result as a native tool_result", with_results.count() == 4)?;
        let first = sent.iter().find(|request| request.body.contains("\"tool_result\""));
        let holds_list = first.is_some_and(|request| holds(request, &Project::prices()));
        self.claim("the list of prices was in its prompt to the byte", holds_list)?;
        let listed = self.quietly(&["ls", "--json"])?;
        let line = listed.text.lines().next().unwrap_or_default();
        let document = Document::parse(line).map_err(|error| CommandError::bad_input(error.to_string()))?;
        let id = document.root().field("id").and_then(|id| id.as_text());
        id.map(|id| id.to_string()).ok_or_else(|| CommandError::bad_input("the run left no conversation"))
    }

    /// What grew too large was shortened on the way.
    fn shortened(&mut self) -> Result<(), CommandError> {
        self.heading(
            "The list was too long for `truncation_threshold = 1500`, so it was shortened on the way.",
        )?;
        let sent = self.stage.alpha.recorded();
        let last = sent.last();
        let is_short = last
            .is_some_and(|request| request.body.contains("recall ") && !holds(request, &Project::prices()));
        self.claim("the last prompt holds an excerpt with a handle instead of the list", is_short)?;
        let refused = sent.iter().filter(|request| request.status >= 400).count();
        self.claim("alpha, as strict as its provider, refused nothing", refused == 0)
    }

    /// The backend is changed for one that takes no tool items.
    fn switch_to_text(&mut self, conversation: &str) -> Result<(), CommandError> {
        self.heading("Now `beta` takes over, in the middle of the conversation. It speaks Chat, and rejects tool items.")?;
        self.shown(&["use", "beta"])?;
        let asked = "From memory: what did `sh test.sh` print?";
        let place = self.stage.folder.path().join("bakery").display().to_string();
        let ran =
            self.shown(&["run", "--approve", "none", "--cwd", &place, "--continue", conversation, asked])?;
        self.claim("the run ended well", ran.success)?;
        let sent = self.stage.beta.recorded();
        let refused = sent.iter().any(|request| request.status == 400);
        self.claim("beta refused the native history", refused)?;
        let is_brief = |request: &&Recorded| {
            request.status == 200 && request.body.matches("[CONTEXT FROM PREVIOUS SESSION]").count() == 1
        };
        let briefed = sent.iter().filter(is_brief).count();
        self.claim("it was given a brief at once, with what the tools had said", briefed == 1)?;
        self.claim("and quotes what the test printed on alpha", ran.text.contains("ok: "))
    }

    /// And back again; what was taken out is recalled.
    fn switch_back(&mut self, conversation: &str) -> Result<(), CommandError> {
        self.heading(&format!(
            "Back to `alpha`, with a question about {SORT}, which is in no prompt any more."
        ))?;
        self.shown(&["use", "alpha"])?;
        let before = self.stage.alpha.recorded().len();
        let asked = format!("What does {SORT} cost?");
        let place = self.stage.folder.path().join("bakery").display().to_string();
        let ran =
            self.shown(&["run", "--approve", "none", "--cwd", &place, "--continue", conversation, &asked])?;
        self.claim("the run ended well", ran.success)?;
        let sent = self.stage.alpha.recorded();
        let line = Project::line_of_sort();
        let new = sent.get(before..).unwrap_or_default();
        let without = new.first().is_some_and(|request| !holds(request, &line));
        self.claim("the line was not in the prompt", without)?;
        let with = new.last().is_some_and(|request| holds(request, &line));
        self.claim("the model recalled it from the record, inside the turn", with && ran.text.contains(&line))
    }

    /// Everything is driven again, offline.
    fn replay(&mut self, conversation: &str) -> Result<(), CommandError> {
        self.heading("All of it again, from the record alone: every request and every frame is compared.")?;
        let asked = self.stage.alpha.recorded().len() + self.stage.beta.recorded().len();
        let replayed = self.shown(&["replay", conversation])?;
        self.claim("every byte is the same", replayed.success)?;
        let now = self.stage.alpha.recorded().len() + self.stage.beta.recorded().len();
        self.claim("and no backend was asked", asked == now)
    }

    /// The record has everything as it came.
    fn kept(&mut self, conversation: &str) -> Result<(), CommandError> {
        self.heading("What the tools said is in the record, whole, whatever the backends were shown.")?;
        let pairs = self.quietly(&["show", conversation, "--view", "pairs", "--json"])?;
        let is_kept = pairs.text.lines().any(|line| holds_text(line, &Project::prices()));
        self.claim("the list of prices, to the byte", is_kept)?;
        let open = pairs.text.lines().filter(|line| line.contains("\"state\":\"open\"")).count();
        self.claim("every call has its result", open == 0 && !pairs.text.is_empty())
    }

    fn heading(&self, text: &str) -> Result<(), CommandError> {
        output::print(&format!("\n{}\n", self.ink.bold(text)))
    }

    fn claim(&mut self, claim: &str, holds: bool) -> Result<(), CommandError> {
        self.checks.claim(&self.ink, claim, holds)
    }

    /// Runs a command as somebody would type it, and shows what it prints.
    fn shown(&self, words: &[&str]) -> Result<Ran, CommandError> {
        let typed: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        output::print(&format!("  {}\n", self.ink.dim(&format!("$ throughline {}", typed.join(" ")))))?;
        let ran = self.quietly(words)?;
        if !self.quiet {
            let lines = ran.told.lines().chain(ran.text.lines());
            let shown: String =
                lines.take(LINES_SHOWN).map(|line| format!("  {}\n", clipped(line))).collect();
            output::print(&shown)?;
        }
        Ok(ran)
    }

    fn quietly(&self, words: &[&str]) -> Result<Ran, CommandError> {
        let output = self.stage.command(words)?.stdin(Stdio::null()).output();
        let output = output.map_err(|source| at(self.stage.folder.path(), source))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Ran { success: output.status.success(), text: text(output.stdout), told: text(output.stderr) })
    }
}

/// So many lines of what a command prints are shown.
const LINES_SHOWN: usize = 14;
/// So much of a line.
const CHARS_SHOWN: usize = 110;

/// What a command left behind.
struct Ran {
    success: bool,
    /// Standard output.
    text: String,
    /// Standard error.
    told: String,
}

/// Says whether a request holds a text, however JSON writes it.
fn holds(request: &Recorded, text: &str) -> bool {
    holds_text(&request.body, text)
}

/// Says whether JSON holds a text in one of its strings, once or twice over: tools answer in JSON themselves.
fn holds_text(json: &str, text: &str) -> bool {
    let once = escaped(text);
    json.contains(&once) || json.contains(&escaped(&once))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

fn clipped(line: &str) -> String {
    match line.char_indices().nth(CHARS_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
