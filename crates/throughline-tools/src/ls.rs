//! `ls`: what is in a directory.

use crate::call::Ls;
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome};
use crate::walk::{self, Ignores};
use crate::workdir::{PathError, Workdir, shown};

/// Lists a directory.
pub(crate) fn run(workdir: &Workdir, limits: &Limits, call: &Ls) -> Result<Outcome, PathError> {
    let path = walk::start(call.path.as_deref());
    let (inner, dir) = workdir.open_dir(path)?;
    let ignores =
        if call.ignored { Ignores::default() } else { Ignores::above(workdir, &inner).with(&inner, &dir) };
    let entries =
        walk::sorted_entries(&dir).map_err(|error| PathError::Other { path: path.to_owned(), error })?;
    let mut names = Vec::new();
    let mut hidden = 0_usize;
    for (name, kind) in &entries {
        if ignores.names(&inner.join(name), kind.is_dir()) {
            hidden += 1;
            continue;
        }
        let mark = if kind.is_dir() {
            "/"
        } else if kind.is_symlink() {
            "@"
        } else {
            ""
        };
        names.push(format!("{}{mark}", name.to_string_lossy()));
    }
    let left_out = names.len().saturating_sub(limits.matches_max);
    names.truncate(limits.matches_max);
    let mut answer = Answer::default().field("path", shown(&inner)).field("entries", names);
    if hidden > 0 {
        answer = answer.note(format!("{hidden} entries that .gitignore names are not shown"));
    }
    if left_out > 0 {
        answer = answer.note(format!("{left_out} further entries are not shown; use glob with a pattern"));
    }
    Ok(answer.done())
}
