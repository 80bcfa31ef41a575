//! Walking through the working directory, in order, by handles, without what `.gitignore` names.
//!
//! Directories are opened one from another and never by a path from the root of the system, and links are not
//! followed, so that a walk cannot leave the working directory even while somebody moves things about. The order is
//! that of the names: it is the same on every machine.

use crate::workdir::{PathError, Workdir, read_bounded, reading, shown};
use cap_std::fs::{Dir, File, FileType};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The largest `.gitignore` that is read.
const IGNORE_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How deep directories may lie in each other.
const DEPTH_MAX: usize = 128;

/// How to walk.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    /// Whether what `.gitignore` names is visited too.
    pub(crate) ignored: bool,
    /// The most entries to look at.
    pub(crate) entries_max: usize,
    /// Says when to stop.
    pub(crate) stop: &'a CancellationToken,
}

/// Why a walk did not see everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutShort {
    /// The visitor had enough.
    Enough,
    /// There are too many entries.
    Entries,
    /// It was told to stop.
    Stopped,
}

/// A file on the way.
pub(crate) struct Seen<'a> {
    /// Relative to the working directory.
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
    dir: &'a Dir,
    name: &'a OsString,
}

/// What a directory's `.gitignore` files say, from the working directory down to it.
#[derive(Clone, Default)]
pub(crate) struct Ignores(Vec<Arc<Gitignore>>);

struct Walker<'a, V> {
    manner: Manner<'a>,
    visit: V,
    entries: usize,
    unreadable: Vec<String>,
}

/// What became of a walk.
pub(crate) struct Walked {
    pub(crate) cut_short: Option<CutShort>,
    /// Directories that could not be read.
    pub(crate) unreadable: Vec<String>,
}

/// Visits every file below `start`, directories themselves excepted.
pub(crate) fn walk(
    workdir: &Workdir,
    start: &str,
    manner: Manner<'_>,
    visit: impl FnMut(&Seen<'_>) -> ControlFlow<()>,
) -> Result<Walked, PathError> {
    let (path, dir) = workdir.open_dir(start)?;
    let ignores = Ignores::above(workdir, &path);
    let mut walker = Walker { manner, visit, entries: 0, unreadable: Vec::new() };
    let cut_short = walker.directory(&path, &dir, ignores, 0).break_value();
    Ok(Walked { cut_short, unreadable: walker.unreadable })
}

/// Returns the entries of a directory in the order of their names.
pub(crate) fn sorted_entries(dir: &Dir) -> io::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        entries.push((entry.file_name(), entry.file_type()?));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

impl<V: FnMut(&Seen<'_>) -> ControlFlow<()>> Walker<'_, V> {
    fn directory(&mut self, path: &Path, dir: &Dir, ignores: Ignores, depth: usize) -> ControlFlow<CutShort> {
        let Ok(entries) = sorted_entries(dir) else {
            self.unreadable.push(shown(path));
            return ControlFlow::Continue(());
        };
        let ignores = if self.manner.ignored { ignores } else { ignores.with(path, dir) };
        for (name, kind) in entries {
            self.entries += 1;
            if self.entries > self.manner.entries_max {
                return ControlFlow::Break(CutShort::Entries);
            }
            if self.manner.stop.is_cancelled() {
                return ControlFlow::Break(CutShort::Stopped);
            }
            let inner = path.join(&name);
            if ignores.names(&inner, kind.is_dir()) || (kind.is_dir() && name == ".git") {
                continue;
            }
            if !kind.is_dir() {
                let seen = Seen { path: &inner, kind, dir, name: &name };
                if (self.visit)(&seen).is_break() {
                    return ControlFlow::Break(CutShort::Enough);
                }
                continue;
            }
            match dir.open_dir(&name) {
                Ok(child) if depth < DEPTH_MAX => {
                    self.directory(&inner, &child, ignores.clone(), depth + 1)?;
                }
                _ => self.unreadable.push(shown(&inner)),
            }
        }
        ControlFlow::Continue(())
    }
}

impl Seen<'_> {
    /// Opens the file, if it is one.
    pub(crate) fn open(&self) -> io::Result<File> {
        let file = self.dir.open_with(self.name, &reading())?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

impl Ignores {
    /// Returns what holds in the directory at `path` by the files above it.
    pub(crate) fn above(workdir: &Workdir, path: &Path) -> Self {
        let mut ignores = Self::default();
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for parent in above {
            let opened = if parent.as_os_str().is_empty() {
                workdir.dir().try_clone()
            } else {
                workdir.dir().open_dir(parent)
            };
            if let Ok(dir) = opened {
                ignores = ignores.with(parent, &dir);
            }
        }
        ignores
    }

    /// Returns what holds in the directory at `path`, by its own files as well.
    pub(crate) fn with(&self, path: &Path, dir: &Dir) -> Self {
        let mut lines = String::new();
        for file in [".git/info/exclude", ".gitignore"] {
            let read =
                dir.open_with(file, &reading()).and_then(|file| read_bounded(file, IGNORE_FILE_BYTES_MAX));
            if let Ok(Some(bytes)) = read {
                lines.push_str(&String::from_utf8_lossy(&bytes));
                lines.push('\n');
            }
        }
        let mut ignores = self.clone();
        if !lines.trim().is_empty() {
            let mut builder = GitignoreBuilder::new(path);
            for line in lines.lines() {
                // A line that is no pattern means nothing to git either.
                let _ = builder.add_line(None, line);
            }
            ignores.0.extend(builder.build().ok().map(Arc::new));
        }
        ignores
    }

    /// Says whether they name the path; what is nearer outranks what is farther.
    pub(crate) fn names(&self, path: &Path, is_dir: bool) -> bool {
        let mut verdicts = self.0.iter().rev().map(|it| it.matched(path, is_dir));
        verdicts.find(|it| !it.is_none()).is_some_and(|it| it.is_ignore())
    }
}

impl Walked {
    /// Returns what the model has to know about what was not seen.
    pub(crate) fn notes(&self) -> Vec<String> {
        const NAMED_MAX: usize = 5;
        let mut notes = Vec::new();
        match self.cut_short {
            Some(CutShort::Entries) => notes.push(
                "there are too many files: not all of them were looked at; name a narrower path".to_owned(),
            ),
            Some(CutShort::Stopped) => notes.push("stopped before all files were looked at".to_owned()),
            Some(CutShort::Enough) | None => {}
        }
        if !self.unreadable.is_empty() {
            let some = self.unreadable.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
            notes.push(format!("{} directories could not be read: {some}", self.unreadable.len()));
        }
        notes
    }
}

/// Returns the path that a walk of the whole working directory, or of a part of it, starts at.
pub(crate) fn start(path: Option<&str>) -> &str {
    path.unwrap_or(".")
}

/// Returns `path` relative to `start`, for patterns that are meant from there.
pub(crate) fn below<'a>(path: &'a Path, start: &PathBuf) -> &'a Path {
    path.strip_prefix(start).unwrap_or(path)
}
