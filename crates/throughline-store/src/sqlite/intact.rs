//! The file itself: how it comes to be, for its owner alone, and whether it is whole.
//!
//! SQLite takes an empty file for a new database, deletes the log that lies beside it, and does not mind if a page at the
//! end is missing. So a file that was cut short is found out here, before SQLite sees it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The bytes at the beginning of a database that say what it is.
const HEADER_BYTES: usize = 100;
/// The bytes at the beginning of a log, and before each page in it.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Says whether there is a file, and refuses one that was cut short.
pub(super) fn is_there(path: &Path) -> Result<bool, StoreError> {
    let failed = |error: io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match std::fs::metadata(beside(path, "-wal")) {
                Ok(log) if log.len() > 0 => Err(StoreError::Damaged(format!(
                    "{} is gone, and its log ({}-wal) is there",
                    path.display(),
                    path.display()
                ))),
                _ => Ok(false),
            };
        }
        file => file.map_err(failed)?,
    };
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(StoreError::Unavailable(format!("{} is no file", path.display())));
    }
    if facts.len() == 0 {
        return Err(StoreError::Damaged(format!("{} is empty: it was cut short", path.display())));
    }
    let missing = missing_pages(&mut file, facts.len(), path).map_err(failed)?;
    shut_others_out(path, &facts);
    match missing {
        None => Ok(true),
        Some((there, of)) => Err(StoreError::Damaged(format!(
            "{} was cut short: it has {there} of {of} pages",
            path.display()
        ))),
    }
}

/// Returns how many pages are there, and of how many, if some are neither in the file nor in the log.
///
/// Whoever is killed while the log is written back leaves a file that is too short, with all that it lacks in the log.
fn missing_pages(file: &mut File, bytes: u64, path: &Path) -> io::Result<Option<(u64, u64)>> {
    let mut header = [0; HEADER_BYTES];
    let read = read_up_to(file, &mut header)?;
    if read == HEADER_BYTES && !header.starts_with(b"SQLite format 3\0") {
        // No database at all: SQLite says so.
        return Ok(None);
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let is_told = read == HEADER_BYTES && page_bytes >= 512 && number(24) == number(92);
    let (page_bytes, pages) = match is_told {
        true => (page_bytes, u64::from(number(28))),
        // It broke off in its first page, or does not say how many there should be.
        false if read == HEADER_BYTES => return Ok(None),
        false => (4096, 1),
    };
    let there = bytes / page_bytes;
    if there >= pages {
        return Ok(None);
    }
    let logged = logged_pages(&beside(path, "-wal"), page_bytes)?;
    let is_complete = (there + 1..=pages).all(|page| logged.contains(&page));
    Ok((!is_complete).then_some((there, pages)))
}

/// Returns which pages the log has.
fn logged_pages(log: &Path, page_bytes: u64) -> io::Result<BTreeSet<u64>> {
    let mut pages = BTreeSet::new();
    let Ok(mut log) = File::open(log) else { return Ok(pages) };
    let mut header = [0; LOG_HEADER_BYTES];
    if read_up_to(&mut log, &mut header)? < LOG_HEADER_BYTES {
        return Ok(pages);
    }
    let mut frame = [0; FRAME_HEADER_BYTES];
    while read_up_to(&mut log, &mut frame)? == FRAME_HEADER_BYTES {
        // Frames of an earlier round of the log are left over and do not count.
        if frame[8..16] != header[16..24] {
            break;
        }
        pages.insert(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]).into());
        log.seek(SeekFrom::Current(page_bytes.cast_signed()))?;
    }
    Ok(pages)
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..])? {
            0 => break,
            some => read += some,
        }
    }
    Ok(read)
}

fn beside(path: &Path, rest: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(rest);
    PathBuf::from(name)
}

/// Takes from everybody on this machine what only the owner and their group may have: a file that was copied here may be
/// open to all.
#[cfg(unix)]
fn shut_others_out(path: &Path, facts: &std::fs::Metadata) {
    use std::os::unix::fs::PermissionsExt;
    let mode = facts.permissions().mode();
    if mode & 0o007 != 0 {
        // Whoever does not own it cannot, and may still use it.
        let _ = std::fs::set_permissions(path, PermissionsExt::from_mode(mode & 0o770));
    }
}

#[cfg(not(unix))]
fn shut_others_out(_: &Path, _: &std::fs::Metadata) {}

/// Creates a file that is not there yet, for its owner alone: it will hold everything that anybody said.
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// A database in the making. What is left of it is gone when it is dropped.
pub(super) struct Draft<'p> {
    path: PathBuf,
    place: &'p Path,
}

impl<'p> Draft<'p> {
    /// Creates an empty file under a name that nobody else has.
    pub fn beside(place: &'p Path) -> io::Result<Self> {
        use std::hash::{BuildHasher, RandomState};
        let path = loop {
            let any = RandomState::new().hash_one(std::process::id());
            let path = beside(place, &format!(".new-{any:016x}"));
            match create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => break created.map(|()| path)?,
            }
        };
        Ok(Self { path, place })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has it take its place, unless another has come first: that one is as good.
    pub fn take_place(self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        match std::fs::hard_link(&self.path, self.place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            // Not every file system knows second names.
            Err(_) if !self.place.exists() => std::fs::rename(&self.path, self.place),
            linked => linked,
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        for rest in ["", "-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(beside(&self.path, rest));
        }
    }
}
