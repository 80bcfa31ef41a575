//! `write`, `edit` and `apply_patch`: first what they would change, then the change.
//!
//! A [`Plan`] holds every file before and after. It is what a person is shown before agreeing, and what is carried
//! out; when a file cannot be written, those already written are put back.

mod overlay;
mod replace;

use crate::call::{Call, Edit, Write};
use crate::diff;
use crate::limits::Limits;
use crate::outcome::{Answer, Outcome};
use crate::patch::{FilePatch, HunkError, PatchError};
use crate::protected::{ProtectedPath, Protection};
use crate::visible::visible_line;
use crate::workdir::{Found, PathError, Workdir};
use overlay::Overlay;
use replace::ReplaceError;
use serde_json::{Value, json};

/// What a call would change.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
}

/// What becomes of one file.
#[derive(Debug)]
pub(crate) struct Change {
    /// Where it is afterwards, or was.
    pub(crate) path: String,
    /// Where it came from, if it moves.
    pub(crate) from: Option<String>,
    pub(crate) before: Option<Found>,
    pub(crate) after: Option<Vec<u8>>,
}

/// Why nothing is changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("\"{path}\": {error}")]
    Replace { path: String, error: ReplaceError },
    #[error(transparent)]
    Patch(#[from] PatchError),
    #[error("\"{path}\": {error}; nothing was changed")]
    Hunk { path: String, error: HunkError },
    #[error("\"{0}\" exists already; update it instead of adding it; nothing was changed")]
    Exists(String),
    #[error("\"{path}\" is protected, and nobody agreed to have it written ({reason}); nothing was changed")]
    Protected { path: String, reason: String },
    #[error("the call was called off before anything was changed")]
    Stopped,
    #[error("{error}; {}", if *restored { "nothing was changed" } else { "some of the files were changed, and not all could be put back" })]
    Undone { error: PathError, restored: bool },
}

/// Works out what a call would change; calls that change nothing have an empty plan.
pub(crate) fn plan(workdir: &Workdir, limits: &Limits, call: &Call) -> Result<Plan, EditError> {
    let changes = match call {
        Call::Write(write) => vec![plan_write(workdir, limits, write)?],
        Call::Edit(edit) => vec![plan_edit(workdir, limits, edit)?],
        Call::ApplyPatch(patch) => plan_patch(workdir, limits, &patch.patch)?,
        _ => Vec::new(),
    };
    Ok(Plan { changes })
}

fn plan_write(workdir: &Workdir, limits: &Limits, write: &Write) -> Result<Change, EditError> {
    let before = workdir.read_if_there(&write.path, limits.file_bytes_max)?;
    Ok(Change {
        path: write.path.clone(),
        from: None,
        before,
        after: Some(write.content.clone().into_bytes()),
    })
}

fn plan_edit(workdir: &Workdir, limits: &Limits, edit: &Edit) -> Result<Change, EditError> {
    let creates = replace::creates(&edit.steps);
    let before = if creates {
        workdir.read_if_there(&edit.path, limits.file_bytes_max)?
    } else {
        Some(workdir.read(&edit.path, limits.file_bytes_max)?)
    };
    let mut bytes = before.as_ref().map_or(Vec::new(), |found| found.bytes.clone());
    for step in &edit.steps {
        bytes = replace::apply(&bytes, step)
            .map_err(|error| EditError::Replace { path: edit.path.clone(), error })?;
    }
    Ok(Change { path: edit.path.clone(), from: None, before, after: Some(bytes) })
}

fn plan_patch(workdir: &Workdir, limits: &Limits, text: &str) -> Result<Vec<Change>, EditError> {
    let patch = crate::patch::parse(text)?;
    let mut overlay = Overlay::new(workdir, limits.file_bytes_max);
    for file in patch.files {
        match file {
            FilePatch::Add { path, content } => overlay.add(&path, content.into_bytes())?,
            FilePatch::Delete { path } => overlay.delete(&path)?,
            FilePatch::Update { path, move_to, hunks } => {
                let applied = crate::patch::apply(overlay.content(&path)?, &hunks);
                let bytes = applied.map_err(|error| EditError::Hunk { path: path.clone(), error })?;
                overlay.update(&path, bytes)?;
                if let Some(to) = move_to {
                    overlay.rename(&path, &to)?;
                }
            }
        }
    }
    Ok(overlay.changes())
}

impl Plan {
    /// Carries the plan out: all of it, or nothing.
    pub(crate) fn commit(self, workdir: &Workdir) -> Result<Outcome, EditError> {
        for (index, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.commit(workdir) {
                let undone = self.changes[..=index].iter().rev().map(|it| it.undo(workdir));
                // Each is tried, also when one fails.
                let restored = undone.fold(true, |all, done| all & done);
                return Err(EditError::Undone { error, restored });
            }
        }
        let changed: Vec<Value> = self.changes.iter().map(Change::summary).collect();
        Ok(Answer::default().field("changed", changed).done())
    }

    /// Returns what of the files that it changes is protected.
    pub(crate) fn protected(
        &self,
        workdir: &Workdir,
        protection: &Protection,
    ) -> Result<Vec<ProtectedPath>, EditError> {
        let mut found = Vec::new();
        for path in self.changes.iter().flat_map(|it| it.from.iter().chain([&it.path])) {
            let path = workdir.relative(path)?;
            let reason = protection.reason(workdir, &path);
            found.extend(reason.map(|reason| ProtectedPath { path, reason }));
        }
        Ok(found)
    }

    /// Returns the difference that a person is shown.
    pub(crate) fn diff(&self) -> String {
        self.changes.iter().map(Change::diff).collect()
    }
}

impl Change {
    fn commit(&self, workdir: &Workdir) -> Result<(), PathError> {
        match &self.after {
            Some(bytes) => {
                let permissions = self.before.as_ref().map(|found| found.permissions.clone());
                workdir.write(&self.path, bytes, permissions)?;
                self.from.as_ref().map_or(Ok(()), |from| workdir.remove(from))
            }
            None => workdir.remove(&self.path),
        }
    }

    /// Puts things back as they were, and says whether that succeeded.
    fn undo(&self, workdir: &Workdir) -> bool {
        let moved_away = self.from.is_none() || is_gone(workdir, &self.path);
        let original = self.from.as_ref().unwrap_or(&self.path);
        match &self.before {
            Some(found) => {
                let same = workdir.read(original, u64::MAX - 1).is_ok_and(|now| now.bytes == found.bytes);
                let put_back =
                    || workdir.write(original, &found.bytes, Some(found.permissions.clone())).is_ok();
                (same || put_back()) && moved_away
            }
            None => is_gone(workdir, original),
        }
    }

    fn summary(&self) -> Value {
        let (before, after) = self.both();
        let (added, removed) = diff::counts(before, after);
        match (&self.from, &self.before, &self.after) {
            (Some(from), _, _) => {
                json!({"path": self.path, "change": "moved", "from": from, "added": added, "removed": removed})
            }
            (None, None, _) => json!({"path": self.path, "change": "created", "lines": added}),
            (None, Some(_), None) => json!({"path": self.path, "change": "deleted"}),
            (None, Some(_), Some(_)) if before == after => json!({"path": self.path, "change": "none"}),
            (None, Some(_), Some(_)) => {
                json!({"path": self.path, "change": "edited", "added": added, "removed": removed})
            }
        }
    }

    fn diff(&self) -> String {
        let (before, after) = self.both();
        let from = match &self.before {
            Some(_) => format!("a/{}", visible_line(self.from.as_ref().unwrap_or(&self.path))),
            None => "/dev/null".to_owned(),
        };
        let to = match &self.after {
            Some(_) => format!("b/{}", visible_line(&self.path)),
            None => "/dev/null".to_owned(),
        };
        let text = diff::unified(&from, &to, before, after);
        if text.is_empty() && from != to { format!("--- {from}\n+++ {to}\n") } else { text }
    }

    fn both(&self) -> (&[u8], &[u8]) {
        let before = self.before.as_ref().map_or(&[][..], |found| &found.bytes);
        (before, self.after.as_deref().unwrap_or_default())
    }
}

/// Removes a file that was not there before, and says whether it is gone; where it could not be made, it is.
fn is_gone(workdir: &Workdir, path: &str) -> bool {
    use PathError::{Missing, NoDirectory, Outside};
    matches!(workdir.remove(path), Ok(()) | Err(Missing { .. } | NoDirectory(_) | Outside(_)))
}
