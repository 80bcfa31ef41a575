//! What a person is asked to agree to.

use crate::call::Call;
use crate::diff::visible;
use crate::edits;
use crate::limits::Limits;
use crate::workdir::Workdir;

/// What a call would do, for a person. Control characters in it are made visible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// In one line.
    pub line: String,
    /// What would change in files, as a unified diff.
    pub diff: Option<String>,
    /// What would be run, if it has more than one line.
    pub script: Option<String>,
    /// Why the call would fail, if that can be seen already.
    pub problem: Option<String>,
}

/// Returns what a call would do.
pub(crate) fn of(workdir: &Workdir, limits: &Limits, call: &Call) -> Preview {
    let mut preview = Preview { line: one_line(&line(call)), ..Preview::default() };
    match call {
        Call::Bash(bash) if bash.command.trim_end().contains('\n') => {
            preview.script = Some(visible(&bash.command));
        }
        Call::Write(_) | Call::Edit(_) | Call::ApplyPatch(_) => match edits::plan(workdir, limits, call) {
            Ok(plan) => {
                if let Call::ApplyPatch(_) = call {
                    let paths: Vec<&str> = plan.changes.iter().map(|change| change.path.as_str()).collect();
                    preview.line = one_line(&format!("apply_patch {}", paths.join(", ")));
                }
                preview.diff = Some(plan.diff());
            }
            Err(error) => preview.problem = Some(visible(&error.to_string())),
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
        Call::Bash(it) => format!("bash{}: {}", within(&it.cwd), it.command),
        Call::Glob(it) => format!("glob {}{}", it.pattern, within(&it.path)),
        Call::Grep(it) => format!("grep {}{}", it.pattern, within(&it.path)),
        Call::Ls(it) => format!("ls {}", it.path.as_deref().unwrap_or(".")),
        #[cfg(feature = "mcp")]
        Call::Server(it) => format!("{} {}", it.name, it.arguments),
    }
}

/// Returns the first line, short enough, with a word about what is left out.
fn one_line(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let text = visible(text.trim_end()).replace('\t', " ");
    let first = text.lines().next().unwrap_or("");
    let further = text.lines().count().saturating_sub(1);
    let mut line: String = first.chars().take(CHARS_MAX).collect();
    if line.len() < first.len() {
        line.push('…');
    }
    if further > 0 {
        line.push_str(&format!(" (and {further} more lines)"));
    }
    line
}
