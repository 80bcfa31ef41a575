//! Files as a patch leaves them, one part of it after the other, before any of it is written.

use super::{Change, EditError};
use crate::workdir::{Found, PathError, Workdir, shown};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The files that a patch has touched so far.
pub(super) struct Overlay<'a> {
    workdir: &'a Workdir,
    file_bytes_max: u64,
    files: BTreeMap<PathBuf, Touched>,
}

struct Touched {
    original: Option<Found>,
    /// The content; nothing if there is no such file.
    now: Option<Vec<u8>>,
    /// Where the content was before, if it was moved here from a file that the patch did not make.
    from: Option<PathBuf>,
}

impl<'a> Overlay<'a> {
    pub(super) fn new(workdir: &'a Workdir, file_bytes_max: u64) -> Self {
        Self { workdir, file_bytes_max, files: BTreeMap::new() }
    }

    /// Returns the content of a file that must be there.
    pub(super) fn content(&mut self, path: &str) -> Result<&[u8], EditError> {
        let missing = PathError::Missing { path: path.to_owned(), similar: None };
        match &self.touch(path)?.now {
            // Reading it again gives the error its suggestion.
            None => Err(self.workdir.read(path, self.file_bytes_max).err().unwrap_or(missing).into()),
            Some(_) => Ok(self.touch(path)?.now.as_deref().unwrap_or_default()),
        }
    }

    pub(super) fn add(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), EditError> {
        let file = self.touch(path)?;
        if file.now.is_some() {
            return Err(EditError::Exists(path.to_owned()));
        }
        file.now = Some(bytes);
        Ok(())
    }

    pub(super) fn update(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), EditError> {
        self.touch(path)?.now = Some(bytes);
        Ok(())
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<(), EditError> {
        self.content(path)?;
        self.touch(path)?.now = None;
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), EditError> {
        if self.workdir.relative(from)? == self.workdir.relative(to)? {
            return Ok(());
        }
        if self.touch(to)?.now.is_some() {
            return Err(EditError::Exists(to.to_owned()));
        }
        let bytes = self.touch(from)?.now.take();
        let origin = self.workdir.relative(from)?;
        let target = self.touch(to)?;
        target.now = bytes;
        target.from = Some(origin);
        Ok(())
    }

    /// Returns what is changed, in the order of the paths.
    pub(super) fn changes(self) -> Vec<Change> {
        let mut files = self.files;
        // A move is one change, if the file it came from was there and is gone.
        let moves: Vec<(PathBuf, PathBuf)> =
            files.iter().filter_map(|(to, it)| Some((it.from.clone()?, to.clone()))).collect();
        let mut changes = Vec::new();
        for (from, to) in moves {
            let gone = files.get(&from).is_some_and(|it| it.now.is_none() && it.original.is_some());
            let fresh = files.get(&to).is_some_and(|it| it.original.is_none() && it.now.is_some());
            if !gone || !fresh {
                continue;
            }
            if let (Some(source), Some(target)) = (files.remove(&from), files.remove(&to)) {
                let (path, from) = (shown(&to), Some(shown(&from)));
                changes.push(Change { path, from, before: source.original, after: target.now });
            }
        }
        for (path, file) in files {
            if file.original.is_some() || file.now.is_some() {
                changes.push(Change {
                    path: shown(&path),
                    from: None,
                    before: file.original,
                    after: file.now,
                });
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    fn touch(&mut self, path: &str) -> Result<&mut Touched, EditError> {
        let inner = self.workdir.relative(path)?;
        if !self.files.contains_key(&inner) {
            let original = self.workdir.read_if_there(path, self.file_bytes_max)?;
            let now = original.as_ref().map(|found| found.bytes.clone());
            self.files.insert(inner.clone(), Touched { original, now, from: None });
        }
        Ok(self.files.entry(inner).or_insert(Touched { original: None, now: None, from: None }))
    }
}
