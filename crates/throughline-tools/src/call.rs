//! Calls: what a model asked for, checked and typed.

#[cfg(feature = "mcp")]
use crate::mcp::ServerCall;
use std::time::Duration;

/// A call whose arguments were found good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `read`.
    Read(Read),
    /// `write`.
    Write(Write),
    /// `edit`.
    Edit(Edit),
    /// `apply_patch`.
    ApplyPatch(ApplyPatch),
    /// `bash`.
    Bash(Bash),
    /// `glob`.
    Glob(Glob),
    /// `grep`.
    Grep(Grep),
    /// `ls`.
    Ls(Ls),
    /// A tool of an MCP server.
    #[cfg(feature = "mcp")]
    Server(ServerCall),
}

/// What a call may do to the world, for whoever has to approve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It looks at files in the working directory.
    Reads,
    /// It changes files in the working directory.
    Edits,
    /// It runs something whose effects are not known.
    Runs,
}

/// Reads a file, or an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Which file.
    pub path: String,
    /// The first line, counted from one.
    pub offset: Option<u64>,
    /// How many lines.
    pub limit: Option<u64>,
}

/// Writes a file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which file.
    pub path: String,
    /// Its new content.
    pub content: String,
}

/// Changes places in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Which file.
    pub path: String,
    /// What is changed, one step on top of the other; all of them or none.
    pub steps: Vec<EditStep>,
}

/// One change of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditStep {
    /// Puts one text in the place of another.
    Replace {
        /// The text that is there.
        old: String,
        /// The text in its place.
        new: String,
        /// Whether every occurrence is meant. Otherwise there must be exactly one.
        all: bool,
    },
    /// Puts lines behind a line; behind line 0 is the beginning of the file.
    Insert {
        /// Which line, counted from one.
        line: u64,
        /// The lines.
        text: String,
    },
}

/// Applies a patch to any number of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyPatch {
    /// The patch, as it came.
    pub patch: String,
}

/// Runs a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bash {
    /// The script.
    pub command: String,
    /// The directory to run it in, if not the working directory.
    pub cwd: Option<String>,
    /// How long it may take.
    pub time_limit: Option<Duration>,
    /// Protected paths that it writes, which somebody has to agree to.
    pub protected: Vec<String>,
}

/// Finds files by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    /// The pattern.
    pub pattern: String,
    /// The directory to look in, if not the working directory.
    pub path: Option<String>,
    /// Whether files are shown that `.gitignore` names.
    pub ignored: bool,
}

/// Finds lines by a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grep {
    /// The regular expression.
    pub pattern: String,
    /// The file or directory to look in, if not the working directory.
    pub path: Option<String>,
    /// Which files to look into.
    pub glob: Option<String>,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
    /// What is answered.
    pub mode: GrepMode,
    /// How many lines to show before a match.
    pub before: u64,
    /// How many lines to show after a match.
    pub after: u64,
    /// The most lines, or files, to answer with.
    pub limit: Option<u64>,
    /// Whether files are searched that `.gitignore` names.
    pub ignored: bool,
}

/// What a grep answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrepMode {
    /// The lines.
    #[default]
    Content,
    /// The files that hold a match.
    Files,
    /// How many lines match in each file.
    Count,
}

/// Lists a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ls {
    /// Which directory, if not the working directory.
    pub path: Option<String>,
    /// Whether entries are shown that `.gitignore` names.
    pub ignored: bool,
}

impl Call {
    /// Returns the name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::ApplyPatch(_) => "apply_patch",
            Self::Bash(_) => "bash",
            Self::Glob(_) => "glob",
            Self::Grep(_) => "grep",
            Self::Ls(_) => "ls",
            #[cfg(feature = "mcp")]
            Self::Server(call) => &call.name,
        }
    }

    /// Returns what the call may do.
    #[must_use]
    pub fn effect(&self) -> Effect {
        match self {
            Self::Read(_) | Self::Glob(_) | Self::Grep(_) | Self::Ls(_) => Effect::Reads,
            Self::Write(_) | Self::Edit(_) | Self::ApplyPatch(_) => Effect::Edits,
            Self::Bash(_) => Effect::Runs,
            // Servers say of some tools that they only read; nobody has checked that.
            #[cfg(feature = "mcp")]
            Self::Server(_) => Effect::Runs,
        }
    }
}
