//! Files with what users said, for their owner alone: 0600, whatever the umask, and folders 0700.
//!
//! Everything that this program writes into the file system goes through here, except for the history itself. A file
//! appears whole or not at all, and never through a link that somebody else has put there: it is written under a name
//! that nobody knows beforehand, next to where it belongs, and then takes its place.
//!
//! What is only passed on is [`Scratch`]: it is gone when it is dropped, and when a signal ends the program.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

/// Writes a file for its owner alone, in place of one that is there.
///
/// What is there and is no file, such as `/dev/stdout` or a pipe, is written to as it is.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_ref());
    }
    draft(path, text.as_ref())?.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes a file for its owner alone, unless there is something of that name.
pub fn write_new(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    draft(path, text.as_ref())?.persist_noclobber(path).map(drop).map_err(|error| error.error)
}

fn draft(path: &Path, text: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new().prefix(".throughline-").tempfile_in(folder)?;
    draft.write_all(text)?;
    draft.as_file().sync_all()?;
    Ok(draft)
}

/// Makes a folder and those above it, each that is not there yet for its owner alone.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a folder for its owner alone, with a name that nobody knows beforehand; it is gone when it is dropped.
pub fn temporary_folder(prefix: &str) -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}

/// Something that is removed when it is dropped, and when a signal ends the program.
#[derive(Debug)]
pub struct Scratch {
    paths: Vec<PathBuf>,
}

/// What is to be removed when a signal ends the program.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl Scratch {
    /// Makes a folder with a name that nobody knows beforehand.
    pub fn folder(prefix: &str) -> io::Result<Self> {
        listen();
        let folder = temporary_folder(prefix)?.keep();
        Ok(Self::watched(vec![folder]))
    }

    /// Has files removed that somebody else is about to make.
    pub fn files(paths: Vec<PathBuf>) -> Self {
        listen();
        Self::watched(paths)
    }

    fn watched(paths: Vec<PathBuf>) -> Self {
        SCRATCH.lock().unwrap_or_else(PoisonError::into_inner).extend(paths.iter().cloned());
        Self { paths }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let file = self.path().join(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&file)?.write_all(text.as_bytes())?;
        Ok(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| remove(path));
        SCRATCH.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| !self.paths.contains(path));
    }
}

fn remove(path: &Path) {
    // What cannot be removed is for its owner alone, and the program ends anyway.
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
}

/// From now on a signal removes what is left before it ends the program.
fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        #[cfg(unix)]
        listen_to_signals();
    });
}

#[cfg(unix)]
fn listen_to_signals() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    // Listened to from here on, and not from the first poll of another thread.
    let inside = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let signals = kinds.map(|kind| signal(kind).ok().map(|signal| (kind, signal)));
    drop(inside);
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let waits = signals.into_iter().flatten().map(|(kind, mut signal)| {
                tokio::spawn(async move {
                    if signal.recv().await.is_some() {
                        let left = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
                        left.iter().for_each(|path| remove(path));
                        // What a shell makes of a program that a signal ended.
                        std::process::exit(128 + kind.as_raw_value());
                    }
                })
            });
            for wait in waits.collect::<Vec<_>>() {
                let _ = wait.await;
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_gone_when_it_is_dropped() {
        let scratch = Scratch::folder("throughline-test-").unwrap();
        let file = scratch.write("words.json", "{}").unwrap();
        assert!(file.exists());
        assert!(scratch.write("words.json", "again").is_err(), "never through what is there");
        let folder = scratch.path().to_owned();
        drop(scratch);
        assert!(!folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::folder("throughline-test-").unwrap();
        let (target, link) = (scratch.write("target", "mine").unwrap(), scratch.path().join("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(write_new(&link, "words").is_err());
        write(&link, "words").unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "words");
        assert_eq!(std::fs::metadata(&link).unwrap().permissions().mode() & 0o777, 0o600);
        write(Path::new("/dev/null"), "nothing").unwrap();
    }
}
