//! What a model is told before anything else: how to work, and the notes for agents that a repository has.
//!
//! Notes come with the repository, so they are read as the tools read files: through a handle on their directory, which no
//! link leads out of; regular files only, so that nothing hangs; and no more than a model should have to read.

use std::path::{Path, PathBuf};
use throughline_tools::{PathError, Workdir, visible_line};

/// Notes are read up to so many bytes each.
const NOTES_BYTES_MAX: u64 = 32 * 1024;
const NOTES: &str = "AGENTS.md";

const INSTRUCTIONS: &str = "You work in a directory on the user's machine, with the tools on offer. Do what the user \
    asks: look before you change anything, make the smallest change that does it, and check it where it can be checked. \
    A result whose text was cut short names what was left out. When a call is denied, do not try the same in another way. \
    When you are done, say what you did and what you found, in few words.";

/// What a model is told, and what the user is told about that.
#[derive(Debug)]
pub struct Instructions {
    /// For the model.
    pub text: String,
    /// For the user: which notes were left out or cut short.
    pub remarks: Vec<String>,
}

impl Instructions {
    /// Gathers how to work, and the notes in this directory and those above it, up to the root of the repository.
    pub fn gather(cwd: &Path) -> Self {
        let mut gathered = Self { text: INSTRUCTIONS.to_owned(), remarks: Vec::new() };
        let here = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        for folder in folders(&here).iter().rev() {
            let place = if *folder == here { "this directory" } else { "a directory above" };
            gathered.add(folder, place);
        }
        gathered
    }

    fn add(&mut self, folder: &Path, place: &str) {
        let read = Workdir::open(folder).map(|folder| folder.read_beginning(NOTES, NOTES_BYTES_MAX));
        let path = visible_line(&folder.join(NOTES).to_string_lossy());
        let notes = match read {
            Ok(Ok(notes)) => notes,
            Ok(Err(PathError::Missing { .. })) => return,
            Ok(Err(problem)) => {
                return self
                    .remarks
                    .push(format!("{path} is ignored: {}", visible_line(&problem.to_string())));
            }
            Err(problem) => return self.remarks.push(format!("{path} is ignored: {problem}")),
        };
        let text = String::from_utf8_lossy(&notes.bytes);
        // A character that was cut through is left out as a whole.
        let text =
            if notes.left_out > 0 { text.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &text };
        self.text.push_str(&format!("\n\nNotes for agents in {place} ({NOTES}):\n\n{}", text.trim()));
        if notes.left_out > 0 {
            let left_out = notes.left_out;
            self.text.push_str(&format!("\n\n[{NOTES} is cut short here: {left_out} more bytes]"));
            self.remarks
                .push(format!("{path} is cut short: its last {left_out} bytes are not told to the model"));
        }
    }
}

/// Returns the directories whose notes count, the innermost first. Outside of a repository that is this one alone, and
/// so it is where a directory above belongs to somebody else.
fn folders(here: &Path) -> Vec<PathBuf> {
    let owner = owner(here);
    let mut folders = Vec::new();
    for folder in here.ancestors().take_while(|folder| self::owner(folder) == owner) {
        folders.push(folder.to_owned());
        if folder.join(".git").symlink_metadata().is_ok() {
            return folders;
        }
    }
    vec![here.to_owned()]
}

#[cfg(unix)]
fn owner(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    folder.symlink_metadata().ok().map(|metadata| metadata.uid())
}

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<u32> {
    None
}
