//! The working directory, and the only way to the files in it.
//!
//! Every file is opened through a handle on the directory, and the kernel (or cap-std, where the kernel cannot)
//! refuses to leave it while it resolves the path: there is no check that something could change behind our back.
//! Absolute paths that name something in the working directory are taken, since many models write them.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that tools are confined to.
#[derive(Debug)]
pub struct Workdir {
    /// Where it really is.
    root: PathBuf,
    /// How it was named.
    given: PathBuf,
    dir: Dir,
}

/// Why a path cannot be used. The text is for the model, and names the path as the model did.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads outside.
    #[error(
        "\"{0}\" is outside of the working directory, or leads there by a link; only files inside it can be used"
    )]
    Outside(String),
    /// It is empty, or holds a NUL.
    #[error("\"{0}\" is no path")]
    NoPath(String),
    /// There is nothing.
    #[error("\"{path}\" does not exist{}", similar.as_ref().map_or(String::new(), |it| format!("; did you mean \"{it}\"?")))]
    Missing {
        /// The path.
        path: String,
        /// Something in the same directory with nearly the same name.
        similar: Option<String>,
    },
    /// It is a directory where a file is needed.
    #[error("\"{0}\" is a directory; use ls to see what is in it")]
    Directory(String),
    /// It is a file where a directory is needed.
    #[error("\"{0}\" is not a directory")]
    NoDirectory(String),
    /// It is a pipe, a device or a socket.
    #[error("\"{0}\" is neither a file nor a directory")]
    Special(String),
    /// It is too large.
    #[error("\"{path}\" has {bytes} bytes, and at most {max} can be taken; look at parts of it with bash")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The system says no.
    #[error("permission denied for \"{0}\"")]
    Denied(String),
    /// The system says something else.
    #[error("\"{path}\" cannot be used: {error}")]
    Other {
        /// The path.
        path: String,
        /// What the system says.
        error: io::Error,
    },
}

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// What was read.
    pub bytes: Vec<u8>,
    /// How many bytes are behind it.
    pub left_out: u64,
}

/// A file as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) bytes: Vec<u8>,
    pub(crate) permissions: Permissions,
}

impl Workdir {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    ///
    /// When there is none, or it may not be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { root, given: std::path::absolute(path)?, dir })
    }

    /// Returns where the directory is, without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Returns `path` relative to the directory, without `.` and `..`; whether a link
    /// leads outside shows when it is opened.
    pub(crate) fn relative(&self, path: &str) -> Result<PathBuf, PathError> {
        if path.is_empty() || path.contains('\0') {
            return Err(PathError::NoPath(path.to_owned()));
        }
        let named = Path::new(path);
        let inner = if named.has_root() || named.is_absolute() {
            let inside = named.strip_prefix(&self.root).or_else(|_| named.strip_prefix(&self.given));
            inside.map_err(|_| PathError::Outside(path.to_owned()))?
        } else {
            named
        };
        let mut relative = PathBuf::new();
        for part in inner.components() {
            let inside = match part {
                Component::Normal(name) => {
                    relative.push(name);
                    true
                }
                Component::ParentDir => relative.pop(),
                Component::CurDir => true,
                Component::RootDir | Component::Prefix(_) => false,
            };
            if !inside {
                return Err(PathError::Outside(path.to_owned()));
            }
        }
        Ok(relative)
    }

    /// Reads a whole file.
    pub(crate) fn read(&self, path: &str, max: u64) -> Result<Found, PathError> {
        let inner = self.relative(path)?;
        let (file, metadata) = self.open_file(path, &inner)?;
        read_bounded(file, max)
            .map_err(|error| self.explain(path, &inner, error))?
            .map(|bytes| Found { bytes, permissions: metadata.permissions() })
            .ok_or_else(|| PathError::TooLarge { path: path.to_owned(), bytes: metadata.len(), max })
    }

    /// Reads the beginning of a file, at most `max` bytes, as the tools would: a regular file in the directory, with
    /// nothing waited for and no link that leads out.
    ///
    /// # Errors
    ///
    /// When there is none, or it may not be read.
    pub fn read_beginning(&self, path: &str, max: u64) -> Result<Beginning, PathError> {
        let inner = self.relative(path)?;
        let (file, metadata) = self.open_file(path, &inner)?;
        let mut bytes = Vec::new();
        let read = file.take(max).read_to_end(&mut bytes);
        read.map_err(|error| self.explain(path, &inner, error))?;
        Ok(Beginning { left_out: metadata.len().saturating_sub(bytes.len() as u64), bytes })
    }

    /// Reads a file if there is one.
    pub(crate) fn read_if_there(&self, path: &str, max: u64) -> Result<Option<Found>, PathError> {
        match self.read(path, max) {
            Ok(found) => Ok(Some(found)),
            // A link to nothing is something, and writing to it would make a file where nobody looks.
            Err(PathError::Missing { .. }) if self.is_link(path)? => Err(PathError::Special(path.to_owned())),
            Err(PathError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a directory.
    pub(crate) fn open_dir(&self, path: &str) -> Result<(PathBuf, Dir), PathError> {
        let inner = self.relative(path)?;
        let opened =
            if inner.as_os_str().is_empty() { self.dir.try_clone() } else { self.dir.open_dir(&inner) };
        let dir = opened.map_err(|error| self.explain(path, &inner, error))?;
        Ok((inner, dir))
    }

    /// Says whether there is a directory at `path`.
    pub(crate) fn is_dir(&self, path: &str) -> Result<bool, PathError> {
        let inner = self.relative(path)?;
        if inner.as_os_str().is_empty() {
            return Ok(true);
        }
        let metadata = self.dir.metadata(&inner).map_err(|error| self.explain(path, &inner, error))?;
        Ok(metadata.is_dir())
    }

    /// Puts `bytes` in the place of the file: whoever opens it sees either the old content or the new.
    pub(crate) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        permissions: Option<Permissions>,
    ) -> Result<(), PathError> {
        let inner = self.relative(path)?;
        self.replace(&inner, bytes, permissions).map_err(|error| self.explain(path, &inner, error))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &str) -> Result<(), PathError> {
        let inner = self.relative(path)?;
        self.dir.remove_file(&inner).map_err(|error| self.explain(path, &inner, error))
    }

    fn is_link(&self, path: &str) -> Result<bool, PathError> {
        let inner = self.relative(path)?;
        Ok(self.dir.symlink_metadata(&inner).is_ok_and(|it| it.is_symlink()))
    }

    fn open_file(&self, path: &str, inner: &Path) -> Result<(File, Metadata), PathError> {
        if inner.as_os_str().is_empty() {
            return Err(PathError::Directory(path.to_owned()));
        }
        let opened = self.dir.open_with(inner, &reading());
        let file = opened.map_err(|error| self.explain(path, inner, error))?;
        let metadata = file.metadata().map_err(|error| self.explain(path, inner, error))?;
        if metadata.is_dir() {
            return Err(PathError::Directory(path.to_owned()));
        }
        if !metadata.is_file() {
            return Err(PathError::Special(path.to_owned()));
        }
        Ok((file, metadata))
    }

    fn replace(&self, inner: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
        let is_link = self.dir.symlink_metadata(inner).is_ok_and(|it| it.is_symlink());
        // Behind a link, the file it leads to is written, not the link.
        let target = if is_link { self.dir.canonicalize(inner)? } else { inner.to_owned() };
        let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let parent = match target.parent().filter(|it| !it.as_os_str().is_empty()) {
            Some(parent) => {
                self.dir.create_dir_all(parent)?;
                self.dir.open_dir(parent)?
            }
            None => self.dir.try_clone()?,
        };
        let draft = draft_name();
        let written = write_draft(&parent, &draft, bytes, permissions)
            .and_then(|()| parent.rename(&draft, &parent, name));
        if written.is_err() {
            // Nothing more can be done about a draft that cannot be removed either.
            let _ = parent.remove_file(&draft);
        }
        written
    }

    fn explain(&self, path: &str, inner: &Path, error: io::Error) -> PathError {
        let path = path.to_owned();
        match error.kind() {
            // cap-std has no error number for this one, and the system has one for all of its own.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => PathError::Outside(path),
            io::ErrorKind::PermissionDenied => PathError::Denied(path),
            io::ErrorKind::NotFound => PathError::Missing { similar: self.similar(inner), path },
            io::ErrorKind::IsADirectory => PathError::Directory(path),
            io::ErrorKind::NotADirectory => PathError::NoDirectory(path),
            _ => PathError::Other { path, error },
        }
    }

    /// Returns what in the same directory is named nearly the same.
    fn similar(&self, inner: &Path) -> Option<String> {
        const LOOKED_AT_MAX: usize = 1_000;
        let wanted = inner.file_name()?.to_str()?;
        let parent = inner.parent().filter(|it| !it.as_os_str().is_empty());
        let entries = match parent {
            Some(parent) => self.dir.read_dir(parent),
            None => self.dir.entries(),
        };
        let names =
            entries.ok()?.take(LOOKED_AT_MAX).filter_map(|it| it.ok()?.file_name().into_string().ok());
        let near = names.filter(|name| is_near(name, wanted)).min()?;
        Some(parent.map_or(near.clone(), |parent| shown(&parent.join(&near))))
    }
}

/// Returns a path as it is shown: relative, with slashes.
pub(crate) fn shown(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// Reads a file of at most `max` bytes; returns nothing if it is larger.
pub(crate) fn read_bounded(file: File, max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

/// Returns how to open a file for reading: without waiting for the other end of a pipe.
pub(crate) fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

fn write_draft(parent: &Dir, draft: &str, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut file = parent.open_with(draft, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

/// Returns a name for a file that is not finished; no two of them are the same on one machine.
fn draft_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".throughline-{}-{count}.draft", std::process::id())
}

/// Says whether two names differ in case only, or by one letter, or in what is behind the dot.
fn is_near(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (name.to_lowercase(), wanted.to_lowercase());
    let stem = |it: &str| it.rsplit_once('.').map_or(it.to_owned(), |(stem, _)| stem.to_owned());
    if name == wanted || stem(&name) == stem(&wanted) {
        return true;
    }
    let (name, wanted): (Vec<char>, Vec<char>) = (name.chars().collect(), wanted.chars().collect());
    let same_start = name.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let same_end = name.iter().rev().zip(wanted.iter().rev()).take_while(|(a, b)| a == b).count();
    let longer = name.len().max(wanted.len());
    longer >= 4 && name.len().abs_diff(wanted.len()) <= 1 && same_start + same_end + 1 >= longer
}
