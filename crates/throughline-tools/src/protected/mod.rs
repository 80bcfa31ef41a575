//! Protected files: those that run something by themselves. They are not written without an explicit agreement.
//!
//! Tools for files are checked before they write. Commands cannot be: what exists is mounted read-only where there is a
//! mount namespace, and a [`Snapshot`] before and after each command catches the rest and puts it back.

mod git;
mod rules;
mod snapshot;

use crate::workdir::{Workdir, shown};
use cap_std::fs::Dir;
pub(crate) use snapshot::{Restored, Snapshot};
use std::collections::VecDeque;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A path that is protected, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedPath {
    /// The path: relative to the working directory if it is in it.
    pub path: PathBuf,
    /// Why it matters who writes it, as the end of a sentence about it.
    pub reason: String,
}

/// Which paths are protected: those of the rules, and those that the caller adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protection {
    /// Absolute paths; what is below them is protected as well.
    added: Vec<ProtectedPath>,
}

/// How deep, and into how many directories, is looked for protected files when a command is run.
const DEPTH_MAX: usize = 4;
const DIRECTORIES_MAX: usize = 2_000;
/// How deep is looked into a directory whose whole content counts.
const INNER_DEPTH_MAX: usize = 6;
/// Nobody opens these, and they hold a great many directories.
const SKIPPED: &[&str] = &["node_modules", "target"];

impl Protection {
    /// Adds paths. Those that do not exist are taken as they are.
    pub(crate) fn add(&mut self, paths: impl IntoIterator<Item = ProtectedPath>) {
        let real = |it: ProtectedPath| ProtectedPath { path: real_path(&it.path), ..it };
        self.added.extend(paths.into_iter().map(real));
    }

    /// Returns why a path in the working directory is protected, if it is: by its name, or by what it leads to.
    pub(crate) fn reason(&self, workdir: &Workdir, inner: &Path) -> Option<String> {
        let resolved = resolve(workdir.dir(), inner);
        let by_name = [inner, &resolved].into_iter().find_map(rules::reason).map(str::to_owned);
        let absolute = workdir.root().join(&resolved);
        let added =
            || self.added.iter().find(|it| absolute.starts_with(&it.path)).map(|it| it.reason.clone());
        // Something protected may be a link to it, or git may have been told to find its hooks there.
        let led_to = || {
            let found = find(workdir).into_iter();
            found
                .filter(|it| resolved.starts_with(resolve(workdir.dir(), &it.path)))
                .map(|it| it.reason)
                .next()
        };
        by_name.or_else(added).or_else(led_to)
    }

    /// Returns what is protected of the paths that somebody names to be written by a command. A directory that holds
    /// something protected counts.
    pub(crate) fn named(&self, workdir: &Workdir, paths: &[String]) -> Vec<ProtectedPath> {
        let mut named = Vec::new();
        for path in paths {
            let Ok(inner) = workdir.relative(path) else { continue };
            let holds = || {
                let found = find(workdir).into_iter().find(|it| it.path.starts_with(&inner));
                found.map(|it| format!("{} is in it: {}", shown(&it.path), it.reason))
            };
            if let Some(reason) = self.reason(workdir, &inner).or_else(holds) {
                named.push(ProtectedPath { path: inner, reason });
            }
        }
        named
    }

    /// Returns what can be mounted read-only: the outermost of what exists and is protected, absolute, but for what
    /// somebody agreed to.
    pub(crate) fn existing(&self, workdir: &Workdir, agreed: &[PathBuf]) -> Vec<PathBuf> {
        let is_agreed = |path: &Path| agreed.iter().any(|it| path.starts_with(it) || it.starts_with(path));
        let found = find(workdir).into_iter().map(|it| it.path).filter(|path| !is_agreed(path));
        let added = self.added.iter().map(|it| it.path.clone()).filter(|path| path.exists());
        let mut paths: Vec<PathBuf> = found.map(|path| workdir.root().join(path)).chain(added).collect();
        paths.sort();
        paths.dedup_by(|later, earlier| later.starts_with(&*earlier));
        // A link cannot be mounted on; what it leads to is another place.
        paths.retain(|path| path.symlink_metadata().is_ok_and(|it| !it.is_symlink()));
        // The parent of the working directory is not for a command to write in any case.
        paths.retain(|path| !workdir.root().starts_with(path));
        paths
    }
}

/// Returns what exists in the working directory and is protected: files, links, and directories of hooks.
fn find(workdir: &Workdir) -> Vec<ProtectedPath> {
    let mut found = Vec::new();
    let mut ahead = VecDeque::from([(PathBuf::new(), 0)]);
    let mut looked_at = 0;
    while let Some((folder, depth)) = ahead.pop_front() {
        looked_at += 1;
        if looked_at > DIRECTORIES_MAX {
            break;
        }
        for (name, is_dir) in list(workdir.dir(), &folder) {
            let path = folder.join(&name);
            if name.eq_ignore_ascii_case(".git") {
                find_git(workdir, &path, is_dir, &mut found);
            } else if is_dir && rules::DIRECTORIES.iter().any(|it| name.eq_ignore_ascii_case(it)) {
                find_below(workdir.dir(), &path, 0, &mut found);
            } else if let Some(reason) = rules::reason(&path) {
                found.push(ProtectedPath { path, reason: reason.to_owned() });
            } else if is_dir && depth < DEPTH_MAX && !SKIPPED.contains(&name.as_str()) {
                ahead.push_back((path, depth + 1));
            }
        }
    }
    found
}

/// Looks at a git directory, or at the file that stands for one.
fn find_git(workdir: &Workdir, path: &Path, is_dir: bool, found: &mut Vec<ProtectedPath>) {
    if !is_dir {
        let reason = rules::reason(path).unwrap_or_default().to_owned();
        found.push(ProtectedPath { path: path.to_owned(), reason });
        return;
    }
    for (name, is_dir) in list(workdir.dir(), path) {
        let inner = path.join(&name);
        match (name.as_str(), is_dir) {
            ("modules" | "worktrees", true) => find_below(workdir.dir(), &inner, 0, found),
            _ => {
                if let Some(reason) = rules::reason(&inner) {
                    found.push(ProtectedPath { path: inner, reason: reason.to_owned() });
                }
            }
        }
    }
    let config = snapshot::read(workdir.dir(), &path.join("config")).unwrap_or_default();
    let hooks = git::hooks_path(&config).and_then(|named| workdir.relative(&named).ok());
    // Without a working directory of git's own it is relative to where git runs; that is the root in most cases.
    let base = path.parent().unwrap_or(Path::new(""));
    if let Some(hooks) = hooks.map(|hooks| base.join(hooks)).filter(|it| !it.as_os_str().is_empty()) {
        let reason = rules::reason(&path.join("hooks")).unwrap_or_default().to_owned();
        found.push(ProtectedPath { path: hooks, reason });
    }
}

/// Looks at everything below a directory whose content counts.
fn find_below(dir: &Dir, folder: &Path, depth: usize, found: &mut Vec<ProtectedPath>) {
    if let Some(reason) = rules::reason(folder) {
        found.push(ProtectedPath { path: folder.to_owned(), reason: reason.to_owned() });
        return;
    }
    for (name, is_dir) in list(dir, folder) {
        let path = folder.join(&name);
        if matches!(name.as_str(), "objects" | "refs" | "logs") {
            continue;
        }
        if is_dir && depth < INNER_DEPTH_MAX {
            find_below(dir, &path, depth + 1, found);
        } else if let Some(reason) = rules::reason(&path) {
            found.push(ProtectedPath { path, reason: reason.to_owned() });
        }
    }
}

/// Returns the names in a directory that are text, sorted, and whether each is a directory itself. Links are not.
fn list(dir: &Dir, folder: &Path) -> Vec<(String, bool)> {
    let entries = if folder.as_os_str().is_empty() { dir.entries() } else { dir.read_dir(folder) };
    let named = |entry: io::Result<cap_std::fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir()))
    };
    let mut names: Vec<(String, bool)> = entries.into_iter().flatten().filter_map(named).collect();
    names.sort();
    names
}

/// Returns where a path leads, as far as it exists, relative to the directory. One that leads out stays as it is.
fn resolve(dir: &Dir, inner: &Path) -> PathBuf {
    for ancestor in inner.ancestors().filter(|it| !it.as_os_str().is_empty()) {
        if let Ok(real) = dir.canonicalize(ancestor) {
            let rest = inner.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return real.join(rest).components().filter(|it| matches!(it, Component::Normal(_))).collect();
        }
    }
    inner.to_owned()
}

fn real_path(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return path.strip_prefix(ancestor).map_or(real.clone(), |rest| real.join(rest));
        }
    }
    path.to_owned()
}
