//! Protected files before a command, to be compared with those after it.

use super::{find, git, list};
use crate::workdir::{Workdir, read_bounded, reading, shown};
use cap_std::fs::{Dir, Permissions};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Protected files as they were.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    files: BTreeMap<PathBuf, State>,
    /// Which directory each of them is in: the same path may be another directory later.
    parents: BTreeMap<PathBuf, Identity>,
}

/// What tells a directory from another one.
type Identity = Option<(u64, u64)>;

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restored {
    /// Paths that are again what they were.
    pub(crate) paths: Vec<String>,
    /// Where the content is that they had been given.
    pub(crate) quarantined: Vec<String>,
    /// Paths that could not be put back.
    pub(crate) failed: Vec<String>,
}

/// What stands at a path.
#[derive(Debug)]
enum State {
    File {
        bytes: Vec<u8>,
        permissions: Permissions,
    },
    Link(PathBuf),
    /// Something else, or a file that is too large to be kept: of it, nothing is known.
    Other,
}

const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const HOOKS_DEPTH_MAX: usize = 3;
/// What the name of something ends with that was written in the place of a protected file.
const QUARANTINE: &str = ".throughline-quarantined";

impl Snapshot {
    /// Looks at what is protected in the working directory.
    pub(crate) fn take(workdir: &Workdir) -> Self {
        let mut files = BTreeMap::new();
        for found in find(workdir) {
            add(workdir.dir(), &found.path, 0, &mut files);
        }
        let parents =
            files.keys().map(|path| (path.clone(), identity(workdir.dir(), path.parent()))).collect();
        Self { files, parents }
    }

    /// Puts back what has changed since, but for what somebody agreed to.
    ///
    /// What was mounted read-only, each an absolute path, the command cannot have changed: that was somebody else, such
    /// as an editor that saves its settings. Only if the directory around it is another one now, it was the command.
    pub(crate) fn restore(&self, workdir: &Workdir, agreed: &[PathBuf], mounted: &[PathBuf]) -> Restored {
        let now = Self::take(workdir);
        let mut restored = Restored::default();
        let paths: BTreeSet<&PathBuf> = self.files.keys().chain(now.files.keys()).collect();
        for path in paths {
            let (before, after) = (self.files.get(path), now.files.get(path));
            let is_fine = is_same(before, after)
                || agreed.iter().any(|it| path.starts_with(it))
                || (before.is_some() && self.was_mounted(path, workdir, mounted))
                || (before.is_none() && after.is_some_and(|after| is_harmless(path, after, workdir.root())))
                || (after.is_none() && !is_there(workdir.dir(), path.parent()));
            if !is_fine {
                restored.put_back(workdir.dir(), path, before, after);
            }
        }
        restored
    }
}

impl Snapshot {
    fn was_mounted(&self, path: &Path, workdir: &Workdir, mounted: &[PathBuf]) -> bool {
        let absolute = workdir.root().join(path);
        let parent = self.parents.get(path).copied().flatten();
        mounted.iter().any(|it| absolute.starts_with(it))
            && parent.is_some()
            && parent == identity(workdir.dir(), path.parent())
    }
}

impl Restored {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.failed.is_empty()
    }

    fn put_back(&mut self, dir: &Dir, path: &Path, before: Option<&State>, after: Option<&State>) {
        let moved = match after {
            Some(_) => quarantine(dir, path).map(Some),
            None => Ok(None),
        };
        let done = moved.and_then(|moved| {
            self.quarantined.extend(moved);
            before.map_or(Ok(()), |before| write(dir, path, before))
        });
        match done {
            Ok(()) => self.paths.push(shown(path)),
            Err(_) => self.failed.push(shown(path)),
        }
    }
}

/// Reads a file of the directory, if it is one and not too large.
pub(super) fn read(dir: &Dir, path: &Path) -> Option<Vec<u8>> {
    let file = dir.open_with(path, &reading()).ok()?;
    file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?;
    read_bounded(file, FILE_BYTES_MAX).ok().flatten()
}

fn add(dir: &Dir, path: &Path, depth: usize, files: &mut BTreeMap<PathBuf, State>) {
    let Ok(metadata) = dir.symlink_metadata(path) else { return };
    let state = if metadata.is_dir() {
        if depth < HOOKS_DEPTH_MAX {
            list(dir, path).into_iter().for_each(|(name, _)| add(dir, &path.join(name), depth + 1, files));
        }
        return;
    } else if metadata.is_symlink() {
        dir.read_link_contents(path).map_or(State::Other, State::Link)
    } else {
        match read(dir, path) {
            Some(bytes) => State::File { bytes, permissions: metadata.permissions() },
            None => State::Other,
        }
    };
    files.insert(path.to_owned(), state);
}

#[cfg(unix)]
fn identity(dir: &Dir, folder: Option<&Path>) -> Identity {
    use cap_std::fs::MetadataExt as _;
    let folder = folder.filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    dir.metadata(folder).ok().map(|it| (it.dev(), it.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Dir, _: Option<&Path>) -> Identity {
    None
}

fn is_same(before: Option<&State>, after: Option<&State>) -> bool {
    match (before, after) {
        (Some(State::File { bytes: a, permissions: p }), Some(State::File { bytes: b, permissions: q })) => {
            a == b && p == q
        }
        (Some(State::Link(a)), Some(State::Link(b))) => a == b,
        (Some(State::Other), Some(State::Other)) | (None, None) => true,
        _ => false,
    }
}

/// Says whether something new is what git writes when it makes a repository.
fn is_harmless(path: &Path, state: &State, root: &Path) -> bool {
    let State::File { bytes, .. } = state else { return false };
    let is_in = |name: &str| path.components().any(|it| it.as_os_str() == name);
    match path.file_name().and_then(|it| it.to_str()) {
        Some("config") if is_in(".git") => git::is_harmless(bytes),
        Some(".git") => git::is_inner_pointer(bytes, root),
        // What leads from a work tree to its repository and back.
        Some("commondir") if is_in("worktrees") => bytes.trim_ascii() == b"../..",
        Some("gitdir") if is_in("worktrees") => true,
        Some(name) if is_in("hooks") => name.ends_with(".sample"),
        _ => false,
    }
}

fn is_there(dir: &Dir, folder: Option<&Path>) -> bool {
    folder.is_none_or(|folder| folder.as_os_str().is_empty() || dir.is_dir(folder))
}

/// Gives something a name under which nothing runs it, and returns that.
fn quarantine(dir: &Dir, path: &Path) -> io::Result<String> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    for number in 1..100 {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let place = path.with_file_name(format!("{name}{QUARANTINE}{number}"));
        if dir.symlink_metadata(&place).is_err() {
            dir.rename(path, dir, &place)?;
            return Ok(shown(&place));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn write(dir: &Dir, path: &Path, state: &State) -> io::Result<()> {
    match state {
        State::File { bytes, permissions } => {
            dir.write(path, bytes)?;
            dir.set_permissions(path, permissions.clone())
        }
        #[cfg(unix)]
        State::Link(target) => dir.symlink_contents(target, path),
        #[cfg(not(unix))]
        State::Link(_) => Err(io::ErrorKind::Unsupported.into()),
        State::Other => Err(io::ErrorKind::Unsupported.into()),
    }
}
