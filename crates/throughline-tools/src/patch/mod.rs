//! Patches as models write them: the `*** Begin Patch` form, and unified diffs.
//!
//! Both are read into the same [`Patch`], and [`apply`] puts hunks into a text. Models miscount lines and misremember
//! white space, so counts are not believed, and the lines around a change may differ from the file in white space.
//! Lines that the patch does not change stay as the file has them, byte for byte.

mod apply;
mod begin;
mod unified;

pub use apply::{HunkError, apply};

/// A patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// What it does, file by file.
    pub files: Vec<FilePatch>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePatch {
    /// Makes a new file.
    Add {
        /// Where.
        path: String,
        /// Its content.
        content: String,
    },
    /// Removes a file.
    Delete {
        /// Which.
        path: String,
    },
    /// Changes a file.
    Update {
        /// Which.
        path: String,
        /// Where it is moved to.
        move_to: Option<String>,
        /// What is changed.
        hunks: Vec<Hunk>,
    },
}

/// One place in a file, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines that stand somewhere above the place, one below the other.
    pub above: Vec<String>,
    /// Where the patch says that the place is, counted from zero.
    pub at: Option<usize>,
    /// The lines.
    pub lines: Vec<HunkLine>,
    /// Whether the place is the end of the file.
    pub at_end: bool,
    /// Whether the file ends without a line break afterwards.
    pub unbroken_end: bool,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HunkLine {
    /// Stays as it is.
    Kept(String),
    /// Goes.
    Removed(String),
    /// Comes.
    Added(String),
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is of neither form.
    #[error(
        "this is no patch: it must begin with \"*** Begin Patch\" or be a unified diff with \"---\" and \"+++\" lines"
    )]
    Neither,
    /// It stops in the middle.
    #[error("the patch does not end with \"*** End Patch\"")]
    NoEnd,
    /// It does nothing.
    #[error("the patch changes nothing")]
    Empty,
    /// A line is out of place.
    #[error("line {line} of the patch: {reason}")]
    Line {
        /// Which, counted from one.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// Says whether a text is meant as a patch.
#[must_use]
pub fn looks_like_one(text: &str) -> bool {
    let text = text.trim_start();
    ["*** Begin Patch", "diff --git ", "--- ", "Index: "].iter().any(|start| text.starts_with(start))
}

/// Reads a patch.
///
/// # Errors
///
/// When the text is no patch; the error says where, for a model to mend it.
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    let lines: Vec<&str> = text.lines().collect();
    let patch = if lines.iter().any(|line| line.trim() == begin::BEGIN) {
        begin::parse(&lines)?
    } else if lines.iter().any(|line| line.starts_with("--- ") || line.starts_with("diff --git ")) {
        unified::parse(&lines)?
    } else {
        return Err(PatchError::Neither);
    };
    if patch.files.is_empty() {
        return Err(PatchError::Empty);
    }
    Ok(patch)
}

impl HunkLine {
    /// Reads a line by its first character; an empty line is an empty line of the file.
    fn parse(line: &str) -> Option<Self> {
        let mut chars = line.chars();
        match chars.next() {
            None => Some(Self::Kept(String::new())),
            Some(' ') => Some(Self::Kept(chars.as_str().to_owned())),
            Some('-') => Some(Self::Removed(chars.as_str().to_owned())),
            Some('+') => Some(Self::Added(chars.as_str().to_owned())),
            Some(_) => None,
        }
    }

    /// Returns the line if it stands in the file before the change.
    fn before(&self) -> Option<&str> {
        match self {
            Self::Kept(line) | Self::Removed(line) => Some(line),
            Self::Added(_) => None,
        }
    }
}

impl Hunk {
    fn is_blank(&self) -> bool {
        self.above.is_empty() && self.lines.is_empty()
    }

    /// Drops empty lines at the end, which separate parts of a patch more often than they belong to the file.
    fn trimmed(mut self, blank_lines: usize) -> Self {
        for _ in 0..blank_lines {
            if self.lines.last() == Some(&HunkLine::Kept(String::new())) {
                self.lines.pop();
            }
        }
        self
    }
}
