//! What a person is asked to agree to.
//!
//! All of it: a command whose end is not shown could be any command. Where one line does not hold everything, the whole
//! stands beside it. What cannot be seen is written out.

use crate::call::Call;
use crate::edits;
use crate::limits::Limits;
use crate::visible::{visible, visible_line};
use crate::workdir::Workdir;

/// What a call would do, for a person. What a terminal would obey or hide is written out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// In one line, which may be cut short.
    pub line: String,
    /// What would change in files, as a unified diff.
    pub diff: Option<String>,
    /// All of what would be run, or of what a server would be sent, where the line does not hold it.
    pub whole: Option<String>,
    /// Why the call would fail, if that can be seen already; for the model, as the tool would say it.
    pub problem: Option<String>,
}

/// Returns what a call would do.
pub(crate) fn of(workdir: &Workdir, limits: &Limits, call: &Call) -> Preview {
    let (line, is_cut) = one_line(&line(call));
    let mut preview = Preview { line, ..Preview::default() };
    match call {
        Call::Bash(bash) if is_cut => preview.whole = Some(visible(&bash.command).into_owned()),
        #[cfg(feature = "mcp")]
        Call::Server(call) if is_cut => {
            preview.whole = Some(visible(&laid_out(&call.arguments)).into_owned());
        }
        Call::Write(_) | Call::Edit(_) | Call::ApplyPatch(_) => match edits::plan(workdir, limits, call) {
            Ok(plan) => {
                if let Call::ApplyPatch(_) = call {
                    let paths: Vec<&str> = plan.changes.iter().map(|change| change.path.as_str()).collect();
                    preview.line = one_line(&format!("apply_patch {}", paths.join(", "))).0;
                }
                preview.diff = Some(plan.diff());
            }
            Err(error) => preview.problem = Some(error.to_string()),
        },
        _ => {}
    }
    preview
}

fn line(call: &Call) -> String {
    let within = |path: &Option<String>| path.as_ref().map_or(String::new(), |path| format!(" in {path}"));
    match call {
        Call::Read(it) => format!("read {}", it.path),
        Call::Write(it) => format!("write {}", it.path),
        Call::Edit(it) => format!("edit {}", it.path),
        Call::ApplyPatch(_) => "apply_patch".to_owned(),
        Call::Bash(it) => {
            let limit =
                it.time_limit.map_or(String::new(), |limit| format!(" for {} s", limit.as_secs_f64()));
            format!("bash{}{limit}: {}", within(&it.cwd).replace('\n', "<U+000A>"), it.command.trim_end())
        }
        Call::Glob(it) => format!("glob {}{}", it.pattern, within(&it.path)),
        Call::Grep(it) => format!("grep {}{}", it.pattern, within(&it.path)),
        Call::Ls(it) => format!("ls {}", it.path.as_deref().unwrap_or(".")),
        #[cfg(feature = "mcp")]
        Call::Server(it) => {
            let read = serde_json::from_str::<serde_json::Value>(&it.arguments);
            format!("{} {}", it.name, read.map_or_else(|_| it.arguments.clone(), |value| value.to_string()))
        }
    }
}

/// Returns arguments as the server reads them, a line each, with nothing hidden behind an escape of a plain letter.
#[cfg(feature = "mcp")]
fn laid_out(arguments: &str) -> String {
    let read = serde_json::from_str::<serde_json::Value>(arguments);
    read.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| arguments.to_owned())
}

/// Returns the first line, short enough, with a word about what is left out; and whether anything is.
fn one_line(text: &str) -> (String, bool) {
    const CHARS_MAX: usize = 160;
    let mut lines = text.split('\n');
    let first = visible_line(lines.next().unwrap_or_default());
    let further = lines.count();
    let mut line: String = first.chars().take(CHARS_MAX).collect();
    let is_cut = line.len() < first.len();
    if is_cut {
        line.push('…');
    }
    if further > 0 {
        let lines = if further == 1 { "line" } else { "lines" };
        line.push_str(&format!(" (and {further} more {lines})"));
    }
    (line, is_cut || further > 0)
}
